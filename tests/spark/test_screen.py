"""The screen and the exact checks say the same of every run: what holds, and how often it was asked."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from covey.analysis import read_trace
from covey.analysis.checks import screen
from covey.analysis.checks.digests import run_id
from covey.analysis.claims import CLAIMS
from covey.analysis.judging import Judgement, LevelVerdict
from covey.analysis.store import write_parquet
from covey.trace.record import Row
from tests.spark.holes import HOLES
from tests.spark.screenings import TORN, Screening, forged_run

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
    assert not screening.proven & HOLES.keys()
    assert not screening.is_all
    assert _asked(screening.found, screening.proven) == _asked(judgement.verdicts, screening.proven)


def test_a_missing_row_is_told_whatever_else_is_proven(screenings: dict[str, Future[Screening]]) -> None:
    screening = screenings["with claims"].result()
    assert TORN not in screening.proven
    assert {gap.run for gap in screening.whole_way.gaps} == {TORN}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_that_is_not_true_proves_nothing(screenings: dict[str, Future[Screening]], claim: str) -> None:
    """The same run is proven as it is."""
    assert forged_run(claim) not in screenings["with claims"].result().proven


def test_what_the_screen_leaves_and_the_exact_checks_find_the_same(
    judgement: Judgement, screenings: dict[str, Future[Screening]], daemon_runs: dict[str, list[Row]]
) -> None:
    screening = screenings["with claims"].result()
    assert _broken(screening.whole_way.verdicts, daemon_runs) == _broken(judgement.verdicts, daemon_runs)


def test_where_only_some_views_are_proven_no_more_is_counted(
    judgement: Judgement, screenings: dict[str, Future[Screening]], daemon_runs: dict[str, list[Row]]
) -> None:
    screening = screenings["with claims"].result()
    partly = screening.partly & daemon_runs.keys()
    wrong = {run for run, _, _ in _broken(judgement.verdicts, partly)}
    counts, exact = (
        {(one.run, one.guarantee): one.rows_checked for one in _asked(verdicts, partly - wrong)}
        for verdicts in (screening.whole_way.verdicts, judgement.verdicts)
    )
    assert wrong
    assert counts
    assert [key for key, count in sorted(counts.items()) if count > exact.get(key, 0)] == []
    assert _asked(screening.whole_way.verdicts, wrong) == _asked(judgement.verdicts, wrong)


@pytest.mark.parametrize("run", HOLES)
def test_what_hardly_shows_is_found(screenings: dict[str, Future[Screening]], run: str) -> None:
    screening = screenings["with claims"].result()
    assert (run, "S", HOLES[run]) in _broken(screening.whole_way.verdicts, {run})


def test_runs_with_clients_are_left_to_the_exact_checks(spark: SparkSession, tmp_path: Path) -> None:
    """Their rows are counted all the same: one that is there twice does not make up for another that is not."""
    row = Row(run="whole", level="C", process="x", name="x", daemon="d", index=0, time_ns=0, event="join")
    indexes = {"whole": (0, 1, 2, 3), "torn": (0, 1, 1, 3), "short": (1, 2)}
    rows = [msgspec.structs.replace(row, run=run, index=index) for run, found in indexes.items() for index in found]
    rows.append(msgspec.structs.replace(row, run="told", event="gap"))
    write_parquet([*rows, msgspec.structs.replace(row, run="daemons", level="S")], tmp_path / "a.parquet")
    doubts = screen.others(read_trace(spark, tmp_path))
    names = {hashed: run for run, hashed in _hashed([*indexes, "told", "daemons"], spark).items()}
    assert {(names[one["run_id"]], one["subject"]) for one in doubts.collect()} == {
        *((run, screen.OF_RUN) for run in (*indexes, "told")),
        *((run, screen.OF_ROWS) for run in ("torn", "short", "told")),
    }


def _hashed(runs: list[str], spark: SparkSession) -> dict[str, int]:
    rows = spark.createDataFrame([(run,) for run in runs], "run string").withColumn("run_id", run_id()).collect()
    return {row["run"]: row["run_id"] for row in rows}


def _asked(verdicts: list[LevelVerdict], runs: Collection[str]) -> list[LevelVerdict]:
    return [one for one in verdicts if one.run in runs and (one.rows_checked or one.violations)]


def _broken(verdicts: list[LevelVerdict], runs: Collection[str]) -> set[tuple[str, str, str]]:
    return {(one.run, one.level, one.guarantee) for one in verdicts if one.violations and one.run in runs}
