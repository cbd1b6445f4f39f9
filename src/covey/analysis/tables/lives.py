"""Lives: one row a process, with how it began and ended.

In:        the rows of a trace at levels S and C.
Out:       run, level, process, name, daemon, ended, departed (crash or stop at S; at C also disconnect and expulsion),
           witness (at rest: ended and not departed), calm (the connected set, null without a calm row), ...
Not here:  what it did in between.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.tables.columns import CAUSAL, DELIVERED, DEPARTED, PROCESS, is_client, strength


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
        F.max(F.when(~early, F.col("order_stamp"))).alias("reached"),
    )
    return lives.withColumn("witness", F.col("ended") & ~F.col("departed"))


def _last_calm() -> Column:
    members = F.array_sort(F.array_distinct("members"))
    is_calm = F.col("event") == "calm"
    return F.max_by(F.when(is_calm, members), F.when(is_calm, F.col("index")))


def gaps_in(rows: DataFrame) -> DataFrame:
    """Processes of which rows are missing: a `gap` row, or an index that is not there, or there twice."""
    found = rows.groupBy(*PROCESS).agg(
        F.count("*").alias("rows"),
        F.min("index").alias("first"),
        F.max("index").alias("last"),
        F.count_if(F.col("event") == "gap").alias("gap_rows"),
        F.max(F.when(F.col("event") == "gap", F.col("detail"))).alias("detail"),
    )
    whole = (F.col("gap_rows") == 0) & (F.col("first") == 0) & (F.col("last") + 1 == F.col("rows"))
    return found.where(~whole)
