"""How Covey beside others is shown: a table for each workload and size, and what machine it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from covey.lab.peers.measure import PeerSample
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


def show_peers(samples: Sequence[PeerSample], machine: dict[str, Any]) -> None:
    from covey.lab.peers.statistics import summaries

    from .tables import console

    screen, found = console(), summaries(samples)
    for workload, size in dict.fromkeys((one.workload, one.size) for one in found):
        _show_case([one for one in found if (one.workload, one.size) == (workload, size)])
    for name, version in machine["systems"].items():
        screen.print(f"{name}: {version}", markup=False, highlight=False)
    screen.print("* µs of processor time for each message sent", markup=False, highlight=False)
    loads = [" ".join(f"{load:.2f}" for load in machine[when]) for when in ("load_before", "load_after")]
    screen.print(f"{machine['cores']} cores; load before {loads[0]}, after {loads[1]}", highlight=False)


def _show_case(found: list[PeerSummary]) -> None:
    from rich.table import Table

    from covey.lab.peers.plan import PeerCase

    from .tables import console

    case = PeerCase(found[0].workload, found[0].size)
    shown = [name for name in COLUMNS if any(name in one.figures for one in found)]
    if not shown:
        return
    title = f"{case.title()}: {case.work.meaning}; medians of {max(one.rounds for one in found)} rounds"
    compared = ratio_of(shown)
    table = Table("system", *(COLUMNS[name] for name in shown), f"{COLUMNS[compared]} by Covey's", title=title)
    for one in found:
        cells = [figure_text(one.figures.get(name)) for name in shown]
        table.add_row(one.system, *cells, ratio_text(one.ratios.get(compared)))
    console().print(table)


def ratio_of(shown: Sequence[str]) -> str:
    """The figure that tells systems apart: at a rate that all keep, that is the latency.

    >>> ratio_of(["messages_per_s", "p50_us"]), ratio_of(["idle_cpu_percent"])
    ('p50_us', 'idle_cpu_percent')
    """
    return "p50_us" if "p50_us" in shown else shown[0]


def figure_text(value: Spread | None) -> str:
    if value is None:
        return "-"
    return f"{value.median:,.0f}" if value.median >= 100 else f"{value.median:.3g}"


def ratio_text(value: Spread | None) -> str:
    """The median, and the range of the rounds."""
    return "-" if value is None else f"{value.median:.2f} ({value.lowest:.2f} to {value.highest:.2f})"
