"""What the screen says of good and damaged runs, asked while all of them are judged exactly.

In:   a Spark session, and rows by run.
Out:  Screening: the runs that were proven, or some of their views, what was found in them, and then in all.

Both keep settings in their session while they work, so each has one of its own. They share Java, and its cores.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from unittest import mock

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit, when

from covey.analysis import read_trace, screening
from covey.analysis.claims import CLAIMS, NONE
from covey.analysis.judging import Judgement, LevelVerdict, judge_screened, verdicts_of
from covey.analysis.screening import screened_runs
from covey.analysis.store import write_parquet
from covey.analysis.workshop import workshop
from covey.trace.record import COLUMNS, Row

TORN = "torn"


class Screening(NamedTuple):
    proven: set[str]
    partly: set[str]
    found: list[LevelVerdict]
    is_all: bool
    whole_way: Judgement
    """Empty if it was not gone."""


def with_claims(spark: SparkSession, runs: dict[str, list[Row]], path: Path) -> Screening:
    """Also of runs with forged claims; and what is not proven is judged."""
    trace = _stored(spark, runs, path)
    return _screened(trace.unionByName(_forged(trace, next(iter(runs)))), judged=True)


def without_claims(spark: SparkSession, runs: dict[str, list[Row]], path: Path) -> Screening:
    """As if there were many views: their tables are stored in files too."""
    with mock.patch.object(screening, "ROWS_SMALL", 0):
        return _screened(_stored(spark, runs, path).select(*COLUMNS), judged=False)


def torn_run(rows: list[Row]) -> list[Row]:
    """As TORN: of one process a delivery is not there, and another one is there twice."""
    process = next(row.process for row in rows if row.event == "deliver")
    first, second, *_ = (row for row in rows if row.process == process and row.event == "deliver")
    return [msgspec.structs.replace(second if row is first else row, run=TORN) for row in rows]


def forged_run(claim: str) -> str:
    return f"forged {claim}"


def _stored(spark: SparkSession, runs: dict[str, list[Row]], path: Path) -> DataFrame:
    path.mkdir()
    write_parquet((row for rows in runs.values() for row in rows), path / "all.parquet")
    return read_trace(spark.newSession(), path)


def _forged(trace: DataFrame, run: str) -> DataFrame:
    """The same run for each claim, with that one as low as it gets: then nothing seems to be overtaken."""
    one = trace.where(col("run") == run)
    low = [one.withColumns({"run": lit(forged_run(name)), name: when(col(name).isNotNull(), NONE)}) for name in CLAIMS]
    return low[0].unionByName(low[1]).unionByName(low[2]).unionByName(low[3])


def _screened(trace: DataFrame, *, judged: bool) -> Screening:
    with workshop(trace.sparkSession, None, progress=lambda _: None) as shop:
        screened = screened_runs(trace, trace.count(), shop)
        return Screening(
            {row["run"] for row in screened.proven.collect()},
            {row["run"] for row in screened.partly.collect()},
            verdicts_of(screened.found),
            screened.is_all,
            judge_screened(trace, screened, shop) if judged else Judgement(),
        )
