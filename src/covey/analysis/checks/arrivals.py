"""From which moment on each process knows of a message: what both happened-before and circles are found by.

In:        Tables, and the messages that are asked about.
Out:       links, the first arrivals, and one round of them.
Not here:  who asks, and why (causal.py, circles.py); how many rounds (judging.py), since a plan cannot tell.

A message *arrives* at a process where it was sent or delivered, and where anything is delivered that was sent by a
process after it had arrived there. This is the earliest arrival in a network of processes, so it is complete after as
many rounds as there are processes.

No pairs of messages are formed. What was sent by one process and delivered by another is gone through from the last
send to the first, with the earliest delivery so far: that is where an arrival at the first process leads to.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from covey.analysis.tables.build import Tables
from covey.analysis.tables.columns import MESSAGE, RUN, before

ARRIVAL = [*MESSAGE, "process"]
WAY = [*RUN, "from_process", "to_process"]


def first_after(
    asked: DataFrame, at: str, events: DataFrame, event_at: str, value: str, keys: Sequence[str]
) -> DataFrame:
    """What is asked, with the least value of the events that have the same keys and a place after its own."""
    asked = asked.withColumns({"is_asked": F.lit(True), "where_at": F.col(at)})
    events = events.select(*keys, value, F.lit(False).alias("is_asked"), F.col(event_at).alias("where_at"))
    rows = asked.unionByName(events, allowMissingColumns=True)
    after = before(keys, F.col("where_at").desc(), F.col("is_asked").desc())
    return rows.withColumn(value, F.min(value).over(after)).where("is_asked").drop("is_asked", "where_at")


def links(tables: Tables, weakest: int) -> DataFrame:
    """What carries the past on: a message sent at one process at some index, delivered at another at some index."""
    carried = tables.delivered.where((F.col("strength") >= weakest) & F.col("send").isNotNull())
    return carried.select(
        *RUN,
        F.col("origin").alias("from_process"),
        F.col("send.index").alias("sent_at"),
        F.col("process").alias("to_process"),
        F.col("index").alias("heard_at"),
    )


def first_arrivals(tables: Tables, chosen: DataFrame, with_send: bool) -> DataFrame:
    """Where the chosen messages were delivered and, if asked for, sent."""
    names = chosen.select(*MESSAGE).distinct()
    heard = tables.delivered.join(names, MESSAGE, "left_semi").select(*ARRIVAL, F.col("index").alias("at"))
    if not with_send:
        return heard
    sent = tables.messages.join(names, MESSAGE, "left_semi").where(F.col("send").isNotNull())
    sent = sent.select(*MESSAGE, F.col("origin").alias("process"), F.col("send.index").alias("at"))
    return heard.unionByName(sent).groupBy(*ARRIVAL).agg(F.min("at").alias("at"))


def ways(edges: DataFrame) -> DataFrame:
    """Who delivered anything of whom."""
    return edges.select(*WAY).distinct()


def next_arrivals(arrivals: DataFrame, edges: DataFrame, ways: DataFrame) -> DataFrame:
    """One round more, from what moved in the last one; `moved` says what this one changed."""
    moved = arrivals.where("moved").drop("moved").withColumnRenamed("process", "from_process")
    onward = first_after(moved.join(ways, [*RUN, "from_process"]), "at", edges, "sent_at", "heard_at", WAY)
    onward = onward.where(F.col("heard_at").isNotNull()).select(
        *MESSAGE, F.col("to_process").alias("process"), F.col("heard_at").alias("at")
    )
    both = arrivals.select(*ARRIVAL, "at", F.col("at").alias("was")).unionByName(
        onward.withColumn("was", F.lit(None).cast("bigint"))
    )
    found = both.groupBy(*ARRIVAL).agg(F.min("at").alias("at"), F.min("was").alias("was"))
    return found.select(*ARRIVAL, "at", (F.col("was").isNull() | (F.col("at") < F.col("was"))).alias("moved"))
