"""How Covey beside others stands in the documents: one Markdown table, and what is to be known about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .bench_peers_tables import NONE, figure_text

if TYPE_CHECKING:
    from covey.lab.peers.plan import PeersPlan
    from covey.lab.peers.statistics import PeerSummary

UNITS = {
    "messages_per_s": "messages/s",
    "p50_us": "p50, µs",
    "p99_us": "p99, µs",
    "server_cpu_us": "CPU of servers, µs a message",
    "idle_cpu_percent": "CPU of servers, % of a core",
}
"""Of what workloads tell (PeerWorkload.tells)."""


def markdown(found: Sequence[PeerSummary], plan: PeersPlan, machine: dict[str, Any]) -> str:
    """A row for each workload, size and figure; a column for each system."""
    systems = list(machine["systems"])
    lines = [_row(["", *systems]), _row(["---"] * (1 + len(systems)))]
    lines += [_row(row) for row in _rows(found, systems)]
    return "\n".join([*lines, "", *_notes(plan, machine)])


def _rows(found: Sequence[PeerSummary], systems: Sequence[str]) -> Iterator[list[str]]:
    from covey.lab.peers.plan import PeerCase

    for case in dict.fromkeys(PeerCase(one.workload, one.size) for one in found):
        by_system = {one.system: one for one in found if PeerCase(one.workload, one.size) == case}
        for figure in case.work.tells:
            cells = [_cell(by_system.get(name), figure) for name in systems]
            yield [f"{case.title()}: {UNITS[figure]}", *cells]


def _cell(one: PeerSummary | None, figure: str) -> str:
    """The median, and in brackets that of the ratios to Covey."""
    from covey.lab.peers.plan import OURS

    if one is None or figure not in one.figures:
        return NONE
    text = figure_text(one.figures[figure])
    has_ratio = one.system != OURS and figure in one.ratios
    return f"{text} ({one.ratios[figure].median:.2f})" if has_ratio else text


def _notes(plan: PeersPlan, machine: dict[str, Any]) -> Iterator[str]:
    often = "1 round" if plan.rounds == 1 else f"{plan.rounds} rounds"
    yield f"Medians of {often} of {plan.seconds:g} s; in brackets the median of the ratios to Covey in the same round."
    yield f"{machine['cores']} cores. " + "; ".join(machine["systems"].values()) + "."
    for name, reason in machine["skipped"].items():
        yield f"Without {name}: {reason}."


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
