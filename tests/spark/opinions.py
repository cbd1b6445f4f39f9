"""What the oracle and the simulator's checkers say of the small traces of one seed.

In:   a seed.
Out:  its traces, and for each opinion the guarantees that they break, by run and level.
"""

from __future__ import annotations

from typing import NamedTuple

from covey.guarantees.checkers import check_levels
from covey.trace.record import Row
from tests.spark.corpus import corpus
from tests.spark.oracle import broken
from tests.spark.oracle.story import Story

Rows = list[Row]
Breach = tuple[str, str, str]
"""The run, the level and the guarantee."""


class Opinions(NamedTuple):
    runs: dict[str, Rows]
    oracle: set[Breach]
    checkers: set[Breach]
    undecided: set[Breach]
    """Where histories run in circles (S7), what happened before has no meaning, and M4 says nothing."""


def opinions_on(seed: int) -> Opinions:
    runs = dict(corpus(range(seed, seed + 1)))
    return Opinions(
        runs,
        {(run, *breach) for run, rows in runs.items() for breach in broken(rows)},
        {(run, *breach) for run, rows in runs.items() for breach in _checked(run, rows)},
        {(run, level, "M4") for run, rows in runs.items() for level in ("S", "C") if _runs_in_circles(rows, level)},
    )


def together(parts: list[Opinions]) -> Opinions:
    """The opinions on several seeds as one."""
    return Opinions(
        {run: rows for part in parts for run, rows in part.runs.items()},
        {breach for part in parts for breach in part.oracle},
        {breach for part in parts for breach in part.checkers},
        {breach for part in parts for breach in part.undecided},
    )


def _checked(run: str, rows: Rows) -> set[tuple[str, str]]:
    levels = zip("SC", check_levels(run, rows), strict=True)
    return {(level, verdict.guarantee) for level, verdicts in levels for verdict in verdicts if not verdict.holds}


def _runs_in_circles(rows: Rows, level: str) -> bool:
    return Story(rows, level).runs_in_circles()
