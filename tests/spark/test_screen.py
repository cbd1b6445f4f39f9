"""The screen and the exact checks say the same of every run: what holds, and how often it was asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, when

from covey.analysis import read_trace
from covey.analysis.claims import CLAIMS, NONE
from covey.analysis.judging import Judgement, Verdict, verdicts_of
from covey.analysis.screening import screened_runs
from covey.analysis.store import write_parquet
from covey.analysis.workshop import workshop
from covey.trace.record import COLUMNS, Row

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

DAMAGED_SEED = 2
DAMAGES = ("lost end", "lost signal", "fewer members", "another digest", "moved delivery", "fifo too early")
OF_MESSAGES = ("S6", "S7", "M3", "M4", "M5")


@pytest.fixture(scope="module")
def damaged(small_runs: dict[str, list[Row]]) -> dict[str, list[Row]]:
    return {f"{DAMAGED_SEED} {damage}": small_runs[f"{DAMAGED_SEED} {damage}"] for damage in DAMAGES}


@pytest.fixture(scope="module")
def trace(
    spark: SparkSession,
    lossless_runs: dict[str, list[Row]],
    damaged: dict[str, list[Row]],
    tmp_path_factory: pytest.TempPathFactory,
) -> DataFrame:
    directory: Path = tmp_path_factory.mktemp("screened")
    both = [*lossless_runs.values(), *damaged.values()]
    write_parquet((row for rows in both for row in rows), directory / "all.parquet")
    return read_trace(spark, directory)


@pytest.mark.parametrize("kept", [[*COLUMNS, *CLAIMS], COLUMNS], ids=["with claims", "without claims"])
def test_the_screen_and_the_exact_checks_agree(
    judgement: Judgement,
    trace: DataFrame,
    lossless_runs: dict[str, list[Row]],
    damaged: dict[str, list[Row]],
    kept: list[str],
) -> None:
    with workshop(trace.sparkSession, None, progress=lambda _: None) as shop:
        screened = screened_runs(trace.select(*kept), shop)
        proven = {row["run"] for row in screened.proven.collect()}
        found = verdicts_of(screened.found)
    broken = {one.run for one in judgement.violations if one.run in damaged and one.guarantee in OF_MESSAGES}
    assert lossless_runs.keys() <= proven
    assert broken
    assert not proven & broken
    assert not screened.is_all
    assert _asked(found) == _asked([one for one in judgement.verdicts if one.run in proven])


def test_a_claim_that_is_not_true_proves_nothing(trace: DataFrame, lossless_runs: dict[str, list[Row]]) -> None:
    """Each claim as low as it gets, in one run each: then nothing seems to be overtaken."""
    forged = dict(zip(CLAIMS, lossless_runs, strict=False))
    low = {
        name: when((col("run") == run) & col(name).isNotNull(), NONE).otherwise(col(name))
        for name, run in forged.items()
    }
    with workshop(trace.sparkSession, None, progress=lambda _: None) as shop:
        screened = screened_runs(trace.withColumns(low), shop)
        proven = {row["run"] for row in screened.proven.collect()}
    assert proven & lossless_runs.keys() == lossless_runs.keys() - set(forged.values())


def _asked(verdicts: list[Verdict]) -> list[Verdict]:
    return [one for one in verdicts if one.rows_checked or one.violations]
