"""What the screen says of good and damaged runs, asked while all of them are judged exactly.

In:   a Spark session, and rows by run.
Out:  Screening: the runs that were proven, or some of their views, what was found in them, and then in all.

Both keep settings in their session while they work, so each has one of its own. They share Java, and its cores.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit, when

from covey.analysis import read_trace
from covey.analysis.claims import CLAIMS, NONE
from covey.analysis.judging import Verdict, judge_screened, verdicts_of
from covey.analysis.screening import screened_runs
from covey.analysis.store import write_parquet
from covey.analysis.workshop import workshop
from covey.trace.record import COLUMNS, Row


class Screening(NamedTuple):
    proven: set[str]
    partly: set[str]
    found: list[Verdict]
    is_all: bool
    verdicts: list[Verdict]
    """Of the whole way, if it was gone."""


def with_claims(spark: SparkSession, runs: dict[str, list[Row]], path: Path) -> Screening:
    """Also of runs with forged claims; and what is not proven is judged."""
    trace = _stored(spark, runs, path)
    return _screened(trace.unionByName(_forged(trace, next(iter(runs)))), judged=True)


def without_claims(spark: SparkSession, runs: dict[str, list[Row]], path: Path) -> Screening:
    return _screened(_stored(spark, runs, path).select(*COLUMNS), judged=False)


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
            judge_screened(trace, screened, shop).verdicts if judged else [],
        )
