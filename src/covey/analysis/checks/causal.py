"""Happened-before: M4.

In:        Tables; for the exact form also arrivals (arrivals.py).
Out:       candidates, findings.
Not here:  how far the knowledge of a message spreads (arrivals.py), circles (circles.py).

  M4  nothing that happened before a causal or stronger message comes after it, nor is it missing in the same view

This is dear in general, so a cheap filter goes first: if every send stands above all that its process had sent or
delivered, then what happened before has a smaller key, and only a message that came after one of a larger key, or not
at all, can be wrong.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from covey.analysis.findings import broken, tested
from covey.analysis.tables.build import Tables
from covey.analysis.tables.columns import CAUSAL, MESSAGE, PROCESS, RELIABLE, RUN, before, is_client, whole

from .arrivals import first_after


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


def causal(tables: Tables, chosen: DataFrame, arrivals: DataFrame) -> DataFrame:
    """M4 for the candidates: a causal or stronger message was delivered that knew of them, before or without them."""
    known = arrivals.select(*MESSAGE, F.col("process").alias("by"), F.col("at").alias("known_at"))
    asked = chosen.join(known, MESSAGE)
    later = tables.delivered.where((F.col("strength") >= CAUSAL) & F.col("send").isNotNull()).select(
        *PROCESS,
        F.col("origin").alias("by"),
        F.col("send.index").alias("sent_at"),
        "order_view",
        F.struct(F.col("index").alias("at"), F.col("message").alias("name"), F.col("send.index").alias("sent")).alias(
            "later"
        ),
    )
    later = later.join(chosen.select(*PROCESS).distinct(), PROCESS, "left_semi")
    by_sender = [*PROCESS, "by"]
    late = first_after(asked.where(F.col("index").isNotNull()), "known_at", later, "sent_at", "later", by_sender)
    missing = first_after(
        asked.where(F.col("index").isNull()), "known_at", later, "sent_at", "later", [*by_sender, "order_view"]
    )
    wrong = late.where(F.col("index") > F.col("later.at")).unionByName(missing.where(F.col("later").isNotNull()))
    wrong = wrong.groupBy(*PROCESS, "message", "index", "origin", "send").agg(
        F.min(F.struct("later.at", "later.name", "later.sent", "by")).alias("one")
    )
    how = F.when(F.col("index").isNull(), F.lit(" without ")).otherwise(F.lit(" before "))
    return broken(
        wrong,
        "M4",
        [F.col("process"), " delivered ", F.col("one.name"), how, F.col("message"), ", which happened before it"],
        message="message",
        evidence=[
            ("origin", F.col("send.index")),
            (F.col("one.by"), F.col("one.sent")),
            ("process", F.col("one.at")),
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
