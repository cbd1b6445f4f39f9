"""The screen and the exact checks say the same of every run: what holds, and how often it was asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from covey.analysis import read_trace
from covey.analysis.judging import Judgement, Verdict, verdicts_of
from covey.analysis.screening import screened_runs
from covey.analysis.store import write_parquet
from covey.analysis.workshop import workshop
from covey.trace.record import Row

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

DAMAGED_SEED = 2
DAMAGES = ("lost end", "lost signal", "fewer members", "another digest", "moved delivery", "fifo too early")
OF_MESSAGES = ("S6", "S7", "M3", "M4", "M5")


def test_the_screen_and_the_exact_checks_agree(
    spark: SparkSession,
    judgement: Judgement,
    small_runs: dict[str, list[Row]],
    lossless_runs: dict[str, list[Row]],
    tmp_path: Path,
) -> None:
    damaged = {f"{DAMAGED_SEED} {damage}": small_runs[f"{DAMAGED_SEED} {damage}"] for damage in DAMAGES}
    both = [*lossless_runs.values(), *damaged.values()]
    write_parquet((row for rows in both for row in rows), tmp_path / "all.parquet")
    with workshop(spark, None, progress=lambda _: None) as shop:
        screened = screened_runs(read_trace(spark, tmp_path), shop)
        proven = {row["run"] for row in screened.proven.collect()}
        found = verdicts_of(screened.found)
    broken = {one.run for one in judgement.violations if one.run in damaged and one.guarantee in OF_MESSAGES}
    assert lossless_runs.keys() <= proven
    assert broken
    assert not proven & broken
    assert not screened.is_all
    assert _asked(found) == _asked([one for one in judgement.verdicts if one.run in proven])


def _asked(verdicts: list[Verdict]) -> list[Verdict]:
    return [one for one in verdicts if one.rows_checked or one.violations]
