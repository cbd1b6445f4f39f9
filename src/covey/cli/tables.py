"""Tables and progress for people, on standard error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

if TYPE_CHECKING:
    from covey.drivers.simulation.probes import Tally

Item = TypeVar("Item")


class ShownViolation(Protocol):
    """A violation, wherever it comes from."""

    @property
    def guarantee(self) -> str: ...
    @property
    def process(self) -> str: ...
    @property
    def detail(self) -> str: ...


def console() -> Console:
    return Console(stderr=True)


def progress(items: Iterable[Item], total: int, unit: str) -> Iterator[Item]:
    """A progress bar on a terminal; silence elsewhere."""
    columns = (TextColumn(unit), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    screen = console()
    with Progress(*columns, console=screen, disable=not screen.is_terminal, transient=True) as bar:
        yield from bar.track(items, total=total)


def print_guarantees(
    title: str, premises: Mapping[str, int], violations: Sequence[ShownViolation], excused: Mapping[str, int]
) -> None:
    """How many cases each guarantee was checked on, what broke it, and how often only an excuse kept it."""
    table = Table("guarantee", "cases checked", "violations", "excused", title=title, title_justify="left")
    broken: dict[str, int] = {}
    for one in violations:
        broken[one.guarantee] = broken.get(one.guarantee, 0) + 1
    for guarantee in sorted({*premises, *broken}, key=_in_order):
        used = str(excused[guarantee]) if guarantee in excused else ""
        table.add_row(guarantee, f"{premises.get(guarantee, 0):,}", str(broken.get(guarantee, 0)), used)
    screen = console()
    screen.print(table)
    for one in violations[:20]:
        screen.print(f"{one.guarantee} {one.process}: {one.detail}", markup=False)


def print_costs(costs: list[tuple[float, int]]) -> None:
    """What seeds cost, and which was the dearest."""
    if not costs:
        return
    mean, (worst, seed) = sum(cost for cost, _ in costs) / len(costs), max(costs)
    console().print(f"CPU a seed: {mean:.2f} s on average, {worst:.2f} s at most (seed {seed})", highlight=False)


def print_probes(tally: Tally, enforce: bool) -> list[str]:
    """What the protocol was made to do, and the names of probes seen too rarely."""
    table = Table("reaction", "seeds", "floor", "meaning", title="what was exercised", title_justify="left")
    low = []
    for probe in tally.probes:
        rare = enforce and tally.share(probe) < probe.floor
        if rare:
            low.append(probe.name)
        share = f"{tally.share(probe):.0%}" + (" too rare" if rare else "")
        table.add_row(probe.name, share, f"{probe.floor:.0%}" if enforce else "-", probe.meaning)
    console().print(table)
    return low


def _in_order(guarantee: str) -> tuple[int, str, int]:
    letter, number = guarantee[:1], guarantee[1:]
    known = "SMCVO".find(letter) if number.isdigit() else -1
    return (known, letter, int(number) if number.isdigit() else 0)
