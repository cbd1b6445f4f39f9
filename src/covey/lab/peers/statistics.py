"""What the rounds say together: medians, and ratios to Covey in the same round.

In:        samples.  Out: one PeerSummary for each case and system.
Not here:  measuring (measure.py), showing (cli/bench_peers_tables.py).

A machine is now faster, now slower; within a round all systems meet the same. So ratios are made round by round, and
their range tells how much they are worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

import msgspec

from .measure import PeerSample
from .plan import OURS, PeerCase

FIGURES: Final = (
    "messages_per_s",
    "mb_per_s",
    "p50_us",
    "p99_us",
    "server_cpu_us",
    "program_cpu_us",
    "idle_cpu_percent",
)


class Spread(msgspec.Struct, frozen=True):
    """
    >>> spread([3.0, 1.0, 2.0])
    Spread(median=2.0, lowest=1.0, highest=3.0)
    """

    median: float
    lowest: float
    highest: float


class PeerSummary(msgspec.Struct, frozen=True, kw_only=True):
    workload: str
    size: int
    system: str
    rounds: int
    figures: dict[str, Spread]
    ratios: dict[str, Spread]
    """This system's figure by Covey's of the same round: below 1 is less than Covey's."""


def summaries(samples: Sequence[PeerSample]) -> list[PeerSummary]:
    """In the order in which cases and systems came first."""
    cases = dict.fromkeys(PeerCase(one.workload, one.size) for one in samples)
    return [summary for case in cases for summary in _of_case([one for one in samples if _case(one) == case])]


def _of_case(samples: list[PeerSample]) -> list[PeerSummary]:
    ours = {one.round: one for one in samples if one.system == OURS}
    return [
        _summary([one for one in samples if one.system == system], ours)
        for system in dict.fromkeys(one.system for one in samples)
    ]


def _summary(samples: list[PeerSample], ours: dict[int, PeerSample]) -> PeerSummary:
    figures, ratios = {}, {}
    for name in FIGURES:
        values = {one.round: value for one in samples if (value := getattr(one, name)) is not None}
        if values:
            figures[name] = spread(list(values.values()))
        if by_ours := _ratios(name, values, ours):
            ratios[name] = spread(by_ours)
    first = samples[0]
    return PeerSummary(
        workload=first.workload,
        size=first.size,
        system=first.system,
        rounds=len(samples),
        figures=figures,
        ratios=ratios,
    )


def _ratios(name: str, values: dict[int, float], ours: dict[int, PeerSample]) -> list[float]:
    """Of the rounds in which both have the figure, and ours is not nothing."""
    pairs = [(value, getattr(ours[number], name)) for number, value in values.items() if number in ours]
    return [value / our for value, our in pairs if our]


def spread(values: Sequence[float]) -> Spread:
    return Spread(median(values), min(values), max(values))


def _case(sample: PeerSample) -> PeerCase:
    return PeerCase(sample.workload, sample.size)
