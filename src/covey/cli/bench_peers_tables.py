"""How Covey beside others is shown: a table for each workload and size, and what machine it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from covey.lab.peers.plan import PeerWorkload
    from covey.lab.peers.statistics import PeerSummary, Spread

COLUMNS = {
    "messages_per_s": "messages/s",
    "mb_per_s": "MB/s",
    "p50_us": "p50 µs",
    "p99_us": "p99 µs",
    "server_cpu_us": "servers*",
    "program_cpu_us": "programs*",
    "idle_cpu_percent": "% of a core",
}
NONE = "–"


def show_peers(found: Sequence[PeerSummary], machine: dict[str, Any]) -> None:
    from .tables import console

    screen = console()
    for workload, size in dict.fromkeys((one.workload, one.size) for one in found):
        _show_case([one for one in found if (one.workload, one.size) == (workload, size)])
    for name, version in machine["systems"].items():
        screen.print(f"{name}: {version}", markup=False, highlight=False)
    often = max((one.rounds for one in found), default=0)
    screen.print(f"Medians of {often} rounds, and of the ratios in a round, with their range.", highlight=False)
    screen.print("* µs of processor time for each message sent", markup=False, highlight=False)
    loads = [" ".join(f"{load:.2f}" for load in machine[when]) for when in ("load_before", "load_after")]
    screen.print(f"{machine['cores']} cores; load before {loads[0]}, after {loads[1]}", highlight=False)


def _show_case(found: list[PeerSummary]) -> None:
    from rich.table import Table

    from covey.lab.peers.plan import PeerCase

    from .tables import console

    case = PeerCase(found[0].workload, found[0].size)
    shown, compared = columns(case.work), case.work.tells[0]
    title = f"{case.title()}: {case.work.meaning}"
    headings = [*(COLUMNS[name] for name in shown), f"{COLUMNS[compared]} by Covey's"]
    table = Table("system", *headings, title=title, title_justify="left")
    for one in found:
        cells = [figure_text(one.figures.get(name)) for name in shown]
        table.add_row(one.system, *cells, ratio_text(one.ratios.get(compared)))
    console().print(table)


def columns(work: PeerWorkload) -> list[str]:
    """What the workload tells, and what else is known of it.

    >>> from covey.lab.peers.plan import WORKLOADS
    >>> columns(WORKLOADS["single"])
    ['messages_per_s', 'mb_per_s', 'server_cpu_us', 'program_cpu_us']
    >>> columns(WORKLOADS["idle"])
    ['idle_cpu_percent']
    """
    besides = set() if work.is_idle else {"program_cpu_us"} if work.rate else {"mb_per_s", "program_cpu_us"}
    return [name for name in COLUMNS if name in besides.union(work.tells)]


def figure_text(value: Spread | None) -> str:
    """The median."""
    if value is None:
        return NONE
    return f"{value.median:,.0f}" if value.median >= 100 else f"{value.median:.3g}"


def ratio_text(value: Spread | None) -> str:
    """The median, and the range of the rounds."""
    return NONE if value is None else f"{value.median:.2f} ({value.lowest:.2f}{NONE}{value.highest:.2f})"
