"""Happened-before: M4, and the circles of S7.

In:        Tables; for the exact form also arrivals, which the caller lets grow until they do not change.
Out:       candidates, the first arrivals and one round of them, findings.
Not here:  the loop (judging.py): a plan cannot tell when it is done.

  M4  nothing that happened before a causal or stronger message comes after it, nor is it missing in the same view
  S7  no delivery comes before its send, in whatever order the histories are put

Both are dear in general, so a cheap filter goes first. For M4: if every send stands above all that its process had sent
or delivered, then what happened before has a smaller key, and only a message that came after one of a larger key, or
not at all, can be wrong. For S7: if time or step orders the rows, there is no circle.

The exact form asks of each candidate m from which moment on a process knows of it: it *arrives* where it was sent or
delivered, and where anything is delivered that was sent by a process after it had arrived there. This is the earliest
arrival in a network of processes, so it is complete after as many rounds as there are processes.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.findings import broken, tested
from covey.analysis.tables.build import Tables
from covey.analysis.tables.columns import CAUSAL, MESSAGE, PROCESS, RELIABLE, RUN, before, is_client, ordered, whole

ARRIVAL = [*MESSAGE, "process"]


# ------------------------------------------------------------------------------------------------- the filter of M4


def candidates(tables: Tables) -> DataFrame:
    """Processes and messages that may break M4: process, message, when it was delivered there, or null."""
    shares = tables.shares.join(_unclear_runs(tables), RUN, "left").withColumn(
        "unclear", F.coalesce("unclear", F.lit(False))
    )
    delivered = F.col("index").isNotNull() & (F.col("strength") >= CAUSAL)
    overtaker = F.max(F.when(delivered, F.col("key"))).over(before(PROCESS, "index"))
    any_before = F.max(F.when(delivered, 1)).over(before(PROCESS, "index"))
    late = shares.where(F.col("index").isNotNull()).select("*", overtaker.alias("highest"), any_before.alias("any"))
    late = late.where((F.col("highest") > F.col("key")) | (F.col("unclear") & F.col("any").isNotNull()))
    in_view = whole([*PROCESS, "order_view"])
    missing = shares.where(F.col("order_view").isNotNull()).select(
        "*",
        F.max(F.when(delivered, F.col("key"))).over(in_view).alias("highest"),
        F.max(F.when(delivered, 1)).over(in_view).alias("any"),
    )
    missing = missing.where(F.col("owed") & F.col("index").isNull())
    missing = missing.where((F.col("highest") > F.col("key")) | (F.col("unclear") & F.col("any").isNotNull()))
    columns = [*PROCESS, "message", "index", "order_view", "origin", "send"]
    return late.select(*columns).unionByName(missing.select(*columns))


def _unclear_runs(tables: Tables) -> DataFrame:
    """Runs with a send that does not stand above all that its process had sent or delivered before."""
    known = tables.messages.where(F.col("strength") >= RELIABLE)
    sent = known.where(F.col("send").isNotNull()).select(
        *RUN, F.col("origin").alias("process"), F.col("send.index").alias("index"), "key", F.lit(True).alias("sent")
    )
    heard = tables.shares.where(F.col("index").isNotNull()).select(*PROCESS, "index", "key", F.lit(False).alias("sent"))
    rows = sent.unionByName(heard).withColumn("highest", F.max("key").over(before(PROCESS, "index")))
    unplaced = F.col("key").isNull() & ~is_client()
    wrong = F.col("sent") & (unplaced | (F.col("key") <= F.col("highest")))
    return rows.where(wrong).select(*RUN, F.lit(True).alias("unclear")).distinct()


# ------------------------------------------------------------------------------------------------ the filter of S7


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


# -------------------------------------------------------------------------------------------------- the exact form


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


def next_arrivals(arrivals: DataFrame, edges: DataFrame) -> DataFrame:
    """One round more; `moved` says whether that changed anything."""
    onward = arrivals.withColumnRenamed("process", "from_process").join(edges, [*RUN, "from_process"])
    onward = onward.where(F.col("sent_at") > F.col("at")).select(
        *MESSAGE, F.col("to_process").alias("process"), F.col("heard_at").alias("at")
    )
    both = arrivals.select(*ARRIVAL, "at", F.col("at").alias("was")).unionByName(
        onward.withColumn("was", F.lit(None).cast("bigint"))
    )
    found = both.groupBy(*ARRIVAL).agg(F.min("at").alias("at"), F.min("was").alias("was"))
    return found.select(*ARRIVAL, "at", (F.col("was").isNull() | (F.col("at") < F.col("was"))).alias("moved"))


def causal(tables: Tables, chosen: DataFrame, arrivals: DataFrame) -> DataFrame:
    """M4 for the candidates: a causal or stronger message was delivered that knew of them, before or without them."""
    known = arrivals.select(*MESSAGE, F.col("process").alias("by"), F.col("at").alias("known_at"))
    later = tables.delivered.where((F.col("strength") >= CAUSAL) & F.col("send").isNotNull()).select(
        *PROCESS,
        F.col("message").alias("later"),
        F.col("index").alias("later_at"),
        F.col("origin").alias("by"),
        F.col("send.index").alias("later_sent"),
        F.col("order_view").alias("later_view"),
    )
    pairs = chosen.join(known, MESSAGE).join(later, [*PROCESS, "by"]).where(F.col("later_sent") > F.col("known_at"))
    late = F.col("index") > F.col("later_at")
    missing = F.col("index").isNull() & (F.col("later_view") == F.col("order_view"))
    wrong = (
        pairs.where(late | missing)
        .groupBy(*PROCESS, "message", "index", "origin", "send")
        .agg(F.min_by(F.struct("later", "later_at", "by", "later_sent"), "later_at").alias("one"))
    )
    how = F.when(F.col("index").isNull(), F.lit(" without ")).otherwise(F.lit(" before "))
    return broken(
        wrong,
        "M4",
        [F.col("process"), " delivered ", F.col("one.later"), how, F.col("message"), ", which happened before it"],
        message="message",
        evidence=[
            ("origin", F.col("send.index")),
            (F.col("one.by"), F.col("one.later_sent")),
            ("process", F.col("one.later_at")),
            ("process", "index"),
        ],
    )


def premises(tables: Tables) -> DataFrame:
    """M4 is put to the test by each causal or stronger delivery whose sender had sent or delivered something before."""
    heard = tables.delivered.where(F.col("strength") >= RELIABLE).select(*PROCESS, "index")
    sent = tables.messages.where(F.col("send").isNotNull() & (F.col("strength") >= RELIABLE))
    sent = sent.select(*RUN, F.col("origin").alias("process"), F.col("send.index").alias("index"))
    first = heard.unionByName(sent).groupBy(*PROCESS).agg(F.min("index").alias("first"))
    first = first.select(*RUN, F.col("process").alias("origin"), "first")
    judged = tables.deliveries.where((F.col("strength") >= CAUSAL) & F.col("send").isNotNull()).join(
        first, [*RUN, "origin"]
    )
    return tested(judged.where(F.col("send.index") > F.col("first")), "M4")


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
