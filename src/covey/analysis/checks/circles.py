"""Circles in S7: no delivery comes before its send, in whatever order the histories are put.

In:        Tables; for the exact form also arrivals (arrivals.py).
Out:       messages that may be in a circle, by two filters; findings.
Not here:  how far the knowledge of a message spreads (arrivals.py).

A circle leads from a send to a delivery, on in the history of that process to a send, and so on back to where it began.
Whatever never falls on the way, but must rise somewhere, rules it out. Two such things are cheap:

  clocks  step or time, if they grow in each history: every circle has a delivery that they do not put after its send
  order   the highest place in the order that a process has sent or delivered so far. A send above all that its process
          knew raises it; so a circle has a delivery with a lower one than its send, or an equal one that the send did
          not raise

Clocks of several machines differ, so the order decides where they fail; it says nothing of unreliable messages.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.findings import broken
from covey.analysis.tables.build import Tables
from covey.analysis.tables.columns import MESSAGE, PROCESS, RUN, before, ordered, whole


def unordered(tables: Tables) -> DataFrame:
    """Messages that may be in a circle: neither step nor time puts all their deliveries after their send."""
    edges = tables.deliveries.where(F.col("send").isNotNull()).select(
        *MESSAGE,
        "process",
        "index",
        "origin",
        "send",
        _backward("step").alias("step_back"),
        _backward("time_ns").alias("time_back"),
    )
    rows = tables.traffic.where(F.col("is_send") | F.col("is_delivery")).select(*PROCESS, "index", "step", "time_ns")
    steady = rows.select(
        "*", *(F.lag(name).over(ordered(PROCESS, "index")).alias(f"{name}_before") for name in ("step", "time_ns"))
    )
    unsteady = steady.groupBy(*RUN).agg(
        F.max(F.col("step").isNull() | (F.col("step") < F.col("step_before"))).alias("step_unsteady"),
        F.max(F.col("time_ns") < F.col("time_ns_before")).alias("time_unsteady"),
    )
    backward = edges.groupBy(*RUN).agg(F.max("step_back").alias("step_back"))
    doubtful = unsteady.join(backward, RUN).where(
        F.coalesce("step_unsteady", F.lit(False)) | F.coalesce("step_back", F.lit(False))
    )
    doubtful = doubtful.select(*RUN, F.coalesce("time_unsteady", F.lit(False)).alias("time_unsteady"))
    return edges.join(doubtful, RUN).where(F.col("time_unsteady") | F.col("time_back")).select(*MESSAGE).distinct()


def _backward(clock: str) -> Column:
    """Whether this clock fails to put a delivery after its send; within one process the index does."""
    own = (F.col("process") == F.col("origin")) & (F.col("index") > F.col("send.index"))
    return ~own & ~F.coalesce(F.col(clock) > F.col(f"send.{clock}"), F.lit(False))


def unraised(tables: Tables, doubtful: DataFrame) -> DataFrame:
    """Of the runs of doubtful messages, those messages that the order does not clear either."""
    columns = [*MESSAGE, "key"]
    sent = tables.messages.where(F.col("send").isNotNull()).select(
        *columns, F.col("origin").alias("process"), F.col("send.index").alias("index"), F.lit(True).alias("is_send")
    )
    heard = tables.deliveries.select(*columns, "process", "index", F.lit(False).alias("is_send"))
    rows = sent.unionByName(heard).join(doubtful.select(*RUN).distinct(), RUN, "left_semi")
    rows = rows.withColumn("below", F.max("key").over(before(PROCESS, "index")))
    raised = F.coalesce(F.col("key") > F.col("below"), F.col("key").isNotNull())
    here = F.struct(F.greatest("key", "below").alias("top"), raised.alias("raised"), "process", "index")
    rows = rows.withColumn("here", here)
    rows = rows.withColumn("there", F.max(F.when(F.col("is_send"), F.col("here"))).over(whole(MESSAGE)))
    edges = rows.where(~F.col("is_send") & F.col("there").isNotNull())
    own = (F.col("process") == F.col("there.process")) & (F.col("index") > F.col("there.index"))
    top, sent_top = F.col("here.top"), F.col("there.top")
    higher = top.isNotNull() & (sent_top.isNull() | (top > sent_top))
    equal = F.col("there.raised") & (top == sent_top)
    return edges.where(~own & ~higher & ~F.coalesce(equal, F.lit(False))).select(*MESSAGE).distinct()


def circles(tables: Tables, arrivals: DataFrame) -> DataFrame:
    """S7: a message of which its sender knew before it sent it."""
    sent = tables.messages.where(F.col("send").isNotNull()).select(*MESSAGE, F.col("origin").alias("process"), "send")
    wrong = arrivals.join(sent, [*MESSAGE, "process"]).where(F.col("at") < F.col("send.index"))
    return broken(
        wrong,
        "S7",
        [
            "deliveries of ",
            F.col("message"),
            ", or of what followed from them, came before ",
            F.col("process"),
            " can have sent it",
        ],
        message="message",
        evidence=[("process", "at"), ("process", F.col("send.index"))],
    )
