"""Three opinions on thousands of small traces, good and damaged: Spark, the oracle, the simulator's checkers.

They share nothing but the documents, and agree on every guarantee of every trace.
"""

from __future__ import annotations

from collections import Counter

import pytest

from covey.analysis.guarantees import CHECKED
from covey.analysis.judging import Judgement
from covey.drivers.simulation.checkers import DAEMON_CHECKERS, History, clients
from covey.trace.record import Row
from tests.spark.oracle import broken
from tests.spark.oracle.story import Story

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(2_400)]

Rows = list[Row]
Breach = tuple[str, str, str]
"""The run, the level and the guarantee."""


@pytest.fixture(scope="module")
def of_spark(judgement: Judgement, small_runs: dict[str, Rows]) -> set[Breach]:
    found = {(one.run, one.level, one.guarantee) for one in judgement.verdicts if one.violations}
    return {breach for breach in found if breach[0] in small_runs}


@pytest.fixture(scope="module")
def of_the_oracle(small_runs: dict[str, Rows]) -> set[Breach]:
    return {(run, *breach) for run, rows in small_runs.items() for breach in broken(rows)}


@pytest.fixture(scope="module")
def of_the_checkers(small_runs: dict[str, Rows]) -> set[Breach]:
    return {(run, *breach) for run, rows in small_runs.items() for breach in _checked(run, rows)}


@pytest.fixture(scope="module")
def undecided(small_runs: dict[str, Rows]) -> set[Breach]:
    """Where histories run in circles (S7), what happened before has no meaning, and M4 says nothing."""
    return {
        (run, level, "M4")
        for run, rows in small_runs.items()
        for level in ("S", "C")
        if Story(rows, level).runs_in_circles()
    }


def _checked(run: str, rows: Rows) -> set[tuple[str, str]]:
    history = History(run, rows)
    found = {("S", number) for number, checker in DAEMON_CHECKERS.items() if not checker(history).holds}
    if any(row.level == "C" for row in rows):
        of_clients = clients.ClientHistory(run, rows, history)
        found |= {("C", number) for number, checker in clients.CHECKERS.items() if not checker(of_clients).holds}
    return found


def test_spark_and_the_oracle_agree(of_spark: set[Breach], of_the_oracle: set[Breach], undecided: set[Breach]) -> None:
    assert sorted((of_spark ^ of_the_oracle) - undecided) == []


def test_spark_and_the_checkers_agree(
    of_spark: set[Breach], of_the_checkers: set[Breach], undecided: set[Breach]
) -> None:
    assert sorted((of_spark ^ of_the_checkers) - undecided) == []


def test_good_traces_break_nothing(of_spark: set[Breach]) -> None:
    assert [breach for breach in sorted(of_spark) if breach[0].endswith(" good")] == []


def test_every_guarantee_is_hit(of_spark: set[Breach]) -> None:
    """At level C where clients have it, and at level S where daemons do."""
    hit = Counter((level, guarantee) for _, level, guarantee in of_spark)
    asked = {("S", number) for number in DAEMON_CHECKERS} | {("C", number) for number in clients.CHECKERS}
    assert sorted(asked - hit.keys()) == []


def test_every_guarantee_is_put_to_the_test(judgement: Judgement, small_runs: dict[str, Rows]) -> None:
    tested = {one.guarantee for one in judgement.verdicts if one.rows_checked and one.run.endswith(" good")}
    assert sorted(CHECKED.keys() - tested) == []


def test_a_violation_comes_with_its_evidence(judgement: Judgement) -> None:
    bare = [one for one in judgement.violations if not one.detail or not one.run or not one.process]
    assert bare == []
