"""Traces of the real protocol: good runs break nothing, and each planted bug is caught by the guarantee it names."""

from __future__ import annotations

import pytest

from covey.analysis.judging import Judgement
from covey.guarantees import HELD
from covey.trace.record import Row
from tests.simulation.client_mutants import CLIENT_MUTANTS
from tests.simulation.mutants import MUTANTS
from tests.spark.recorded import IN_TRACES

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(2_400)]

Rows = list[Row]


def test_good_runs_break_nothing(judgement: Judgement, simulated_runs: dict[str, Rows]) -> None:
    assert [one for one in judgement.violations if one.run in simulated_runs] == []


def test_good_runs_put_every_guarantee_to_the_test(judgement: Judgement, simulated_runs: dict[str, Rows]) -> None:
    tested = {one.guarantee for one in judgement.verdicts if one.rows_checked and one.run in simulated_runs}
    assert sorted(HELD.keys() - tested) == []


@pytest.mark.parametrize("name", IN_TRACES)
def test_a_mutant_is_caught_by_the_guarantee_it_names(
    name: str, judgement: Judgement, broken_runs: dict[str, Rows]
) -> None:
    mutant = MUTANTS.get(name) or CLIENT_MUTANTS[name]
    assert name in broken_runs
    found = [one for one in judgement.violations if one.run == name and one.guarantee == mutant.guarantee]
    assert found, f"{mutant.guarantee} did not catch it: {mutant.what}"
    assert all(one.detail for one in found)


def test_no_trace_has_a_gap(judgement: Judgement) -> None:
    assert judgement.gaps == []
