"""The screen and the exact checks say the same of every run: what holds, and how often it was asked."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from covey.analysis.claims import CLAIMS
from covey.analysis.judging import Judgement, Verdict
from covey.trace.record import Row
from tests.spark.screenings import Screening, forged_run

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

OF_MESSAGES = ("S6", "S7", "M3", "M4", "M5")


@pytest.mark.parametrize("which", ["with claims", "without claims"])
def test_the_screen_and_the_exact_checks_agree(
    judgement: Judgement,
    screenings: dict[str, Future[Screening]],
    lossless_runs: dict[str, list[Row]],
    damaged_runs: dict[str, list[Row]],
    which: str,
) -> None:
    screening = screenings[which].result()
    broken = {one.run for one in judgement.violations if one.run in damaged_runs and one.guarantee in OF_MESSAGES}
    assert lossless_runs.keys() <= screening.proven
    assert broken
    assert not screening.proven & broken
    assert not screening.is_all
    assert _asked(screening.found) == _asked([one for one in judgement.verdicts if one.run in screening.proven])


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_that_is_not_true_proves_nothing(screenings: dict[str, Future[Screening]], claim: str) -> None:
    """The same run is proven as it is."""
    assert forged_run(claim) not in screenings["with claims"].result().proven


def _asked(verdicts: list[Verdict]) -> list[Verdict]:
    return [one for one in verdicts if one.rows_checked or one.violations]
