"""Lives: one row a process, with how it began and ended.

In:        the rows of a trace at levels S and C.
Out:       run, level, process, name, daemon, ended, departed (crash or stop at S; at C also disconnect and expulsion),
           witness (at rest: ended and not departed), calm (the connected set, null without a calm row), calm_at,
           ...
Not here:  what it did in between.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from .columns import CAUSAL, DELIVERED, DEPARTED, PROCESS, is_client, ordered, strength


def lives_of(rows: DataFrame) -> DataFrame:
    event = F.col("event")
    ends = F.when(is_client(), event.isin(*DEPARTED)).otherwise(event.isin("crash", "stop"))
    early = event.isin(*DELIVERED) & (strength() < CAUSAL)
    lives = rows.groupBy(*PROCESS).agg(
        F.min_by("name", "index").alias("name"),
        F.min_by("daemon", "index").alias("daemon"),
        F.max(event == "end").alias("ended"),
        F.max(ends).alias("departed"),
        F.min(F.when(ends, F.col("index"))).alias("departed_at"),
        F.max(event == "expelled").alias("expelled"),
        F.max(event == "refused").alias("refused"),
        F.min_by("cause", "index").alias("first_cause"),
        F.count("*").alias("rows"),
        _last_calm().alias("calm"),
        F.max(F.when(event == "calm", F.col("index"))).alias("calm_at"),
        F.max(F.when(~early, F.col("order_stamp"))).alias("reached"),
    )
    return lives.withColumn("witness", F.col("ended") & ~F.col("departed"))


def _last_calm() -> Column:
    members = F.array_sort(F.array_distinct("members"))
    is_calm = F.col("event") == "calm"
    return F.max_by(F.when(is_calm, members), F.when(is_calm, F.col("index")))


def gaps_in(rows: DataFrame) -> DataFrame:
    """Processes of which rows are missing: a `gap` row, or an index that is not there, or there twice; and `detail`."""
    index, last = F.col("index"), F.coalesce("last_index", F.lit(-1))
    sane = F.coalesce(index >= 0, F.lit(False))
    known = rows.select(*PROCESS, F.when(sane, index).alias("index"), "event", "detail")
    known = known.withColumn("last_index", F.lag("index").over(ordered(PROCESS, "index")))
    found = known.groupBy(*PROCESS).agg(
        F.count("*").alias("rows"),
        F.min("index").alias("first"),
        F.max("index").alias("last"),
        F.coalesce(F.sum(F.greatest(index - 1 - last, F.lit(0))), F.lit(0)).alias("missing"),
        F.min(F.when(index - 1 > last, last + 1)).alias("first_missing"),
        F.count_if(index == last).alias("twice"),
        F.min(F.when(index == last, index)).alias("first_twice"),
        F.count_if(index.isNull()).alias("odd"),
        F.count_if(F.col("event") == "gap").alias("gap_rows"),
        F.max(F.when(F.col("event") == "gap", F.col("detail"))).alias("detail"),
    )
    torn = found.where((F.col("gap_rows") > 0) | (F.col("missing") + F.col("twice") + F.col("odd") > 0))
    return torn.withColumn("detail", _what_is_missing())


def _what_is_missing() -> Column:
    return F.concat_ws(
        ", ",
        F.when(F.col("gap_rows") > 0, F.coalesce("detail", F.lit("rows were lost"))),
        _first_of("missing", "is missing", "are missing"),
        _first_of("twice", "is there twice", "are there twice"),
        F.when(F.col("odd") > 0, F.concat(F.col("odd"), F.lit(" without an index from 0 on"))),
    )


def _first_of(number: str, is_one: str, are_several: str) -> Column:
    """Say, "row 17 is missing", or "3 rows are missing, the first is row 17"."""
    first, many = F.col(f"first_{number}"), F.col(number)
    one = F.concat(F.lit("row "), first, F.lit(f" {is_one}"))
    several = F.concat(many, F.lit(f" rows {are_several}, the first is row "), first)
    return F.when(many == 1, one).when(many > 1, several)
