"""Three opinions on two thousand small traces, good and damaged: Spark, the oracle, the simulator's checkers.

They share nothing but the documents, and agree on every guarantee of every trace.
"""

from __future__ import annotations

from collections import Counter

import pytest

from covey.analysis.judging import Judgement
from covey.guarantees import HELD
from covey.guarantees.checkers import DAEMON_CHECKERS, clients
from covey.trace.record import Row
from tests.spark.opinions import Breach, Opinions

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(2_400)]

Rows = list[Row]


@pytest.fixture(scope="module")
def of_spark(judgement: Judgement, small_runs: dict[str, Rows]) -> set[Breach]:
    found = {(one.run, one.level, one.guarantee) for one in judgement.verdicts if one.violations}
    return {breach for breach in found if breach[0] in small_runs}


def test_spark_and_the_oracle_agree(of_spark: set[Breach], opinions: Opinions) -> None:
    assert sorted((of_spark ^ opinions.oracle) - opinions.undecided) == []


def test_spark_and_the_checkers_agree(of_spark: set[Breach], opinions: Opinions) -> None:
    assert sorted((of_spark ^ opinions.checkers) - opinions.undecided) == []


def test_good_traces_break_nothing(of_spark: set[Breach]) -> None:
    assert [breach for breach in sorted(of_spark) if breach[0].endswith(" good")] == []


def test_every_guarantee_is_hit(of_spark: set[Breach]) -> None:
    """At level C where clients have it, and at level S where daemons do."""
    hit = Counter((level, guarantee) for _, level, guarantee in of_spark)
    asked = {("S", number) for number in DAEMON_CHECKERS} | {("C", number) for number in clients.CHECKERS}
    assert sorted(asked - hit.keys()) == []


def test_every_guarantee_is_put_to_the_test(judgement: Judgement, small_runs: dict[str, Rows]) -> None:
    tested = {one.guarantee for one in judgement.verdicts if one.rows_checked and one.run.endswith(" good")}
    assert sorted(HELD.keys() - tested) == []


def test_a_violation_comes_with_its_evidence(judgement: Judgement) -> None:
    bare = [one for one in judgement.violations if not (one.detail and one.run and one.process and one.evidence)]
    assert bare == []
