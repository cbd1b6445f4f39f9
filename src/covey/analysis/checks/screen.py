"""The cheap way first: runs of daemons in which nothing can be wrong are recognised in one pass over their messages.

In:        a trace, and the stays of its daemons.
Out:       runs that are proven good as far as messages go, each with its counts; what is not proven is judged exactly.
Not here:  views and rest (views.py, liveness.py), which are small and are always judged exactly.

A run is proven if all of this holds (every condition is sufficient, none is necessary):
  1  each row names the view that its process is in (S1), and no message is unreliable
  2  in each view, everybody has delivered exactly what was sent in it, with the same content, and the same of it after
     the signal: equal counts and equal sums of two hashes (S6 to S13, M2, M6; nothing is missing for M3 to M7)
  3  at each process, a delivery stands above all causal or stronger ones before it, and a send above everything before
     it (M4, M5; no circle for S7)
  4  in each session stamps grow with the sequence, and fifo messages come in sequence (M3, M7)
  5  no daemon has two lives in it (S10), and whoever is a member of a view and at rest has been in it (M6, S13)

Condition 2 compares 128 bits of hashes; that two different sets agree by chance is less likely than a broken disk.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.tables.columns import CAUSAL, FIFO, RELIABLE, SAFE, before, key, life_name, ordered, strength

CONTENT = (
    "message",
    "digest",
    "size",
    "service",
    "sender",
    "session_seq",
    "count",
    "order_view",
    "order_stamp",
    "order_site",
    "order_index",
)


def narrow(trace: DataFrame) -> DataFrame:
    """Level S: the messages, with hashes for names. One shuffle by process is all that follows."""
    rows = trace.where((F.col("level") == "S") & F.col("event").isin("send", "deliver"))
    return rows.select(
        "run",
        F.xxhash64("run", "process").alias("pid"),
        F.xxhash64("run", "process", "view").alias("place"),
        F.xxhash64("run", "sender").alias("session"),
        "index",
        (F.col("event") == "send").alias("sent"),
        F.col("session_seq").alias("seq"),
        strength().alias("strength"),
        key().alias("key"),
        (F.col("order_view") == F.col("view")).alias("at_home"),
        F.xxhash64(*CONTENT).alias("one"),
        F.xxhash64(F.lit(1), *reversed(CONTENT)).alias("two"),
    )


def stays_to_compare(stays: DataFrame) -> DataFrame:
    """Level S: each stay as the rows name it."""
    of_daemons = stays.where(F.col("level") == "S")
    place = F.xxhash64("run", "process", "view").alias("place")
    nobody = F.array().cast("array<string>")
    promised = F.array_union("members", F.coalesce("next.transitional", nobody)).alias("members")
    return of_daemons.select("run", "process", "view", "rank", place, "stay", "end", "signal", promised)


def per_stay(messages: DataFrame, stays: DataFrame) -> DataFrame:
    """For each process and view: what it sent and delivered, as counts and sums of hashes, and whether order holds."""
    small = F.broadcast(stays.select("place", "view", "stay", "end", "signal"))
    rows = messages.join(small, "place", "left")
    inside = (F.col("index") > F.col("stay")) & (F.col("end").isNull() | (F.col("index") < F.col("end")))
    rows = rows.withColumn("inside", F.coalesce(inside & F.col("at_home"), F.lit(False)))
    top = before(["pid"], "index")
    sent, known = F.col("sent"), F.col("key").isNotNull() & (F.col("strength") >= RELIABLE)
    rows = rows.withColumn("top_agreed", F.max(F.when(~sent & (F.col("strength") >= CAUSAL), F.col("key"))).over(top))
    rows = rows.withColumn("top_all", F.max("key").over(top))
    disorder = F.when(sent, F.col("key") <= F.col("top_all")).otherwise(F.col("key") <= F.col("top_agreed"))
    wrong = ~F.col("inside") | ~known | F.coalesce(disorder, F.lit(False))
    late = ~sent & F.coalesce(F.col("index") > F.col("signal"), F.lit(False))
    return rows.groupBy("run", "pid", "view").agg(
        F.max(wrong).alias("wrong"), *_sums("sent", sent), *_sums("got", ~sent), *_sums("late", late), *_counts()
    )


def _sums(name: str, condition: Column) -> list[Column]:
    return [
        F.count_if(condition).alias(name),
        F.coalesce(F.bit_xor(F.when(condition, F.col("one"))), F.lit(0)).alias(f"{name}_one"),
        F.coalesce(F.bit_xor(F.when(condition, F.col("two"))), F.lit(0)).alias(f"{name}_two"),
    ]


def _counts() -> list[Column]:
    delivered = ~F.col("sent")
    return [
        F.count_if(delivered & (F.col("strength") == RELIABLE)).alias("reliable"),
        F.count_if(delivered & (F.col("strength") >= FIFO)).alias("fifo"),
        F.count_if(delivered & (F.col("strength") == FIFO)).alias("fifo_only"),
        F.count_if(delivered & (F.col("strength") >= CAUSAL)).alias("agreed"),
        F.count_if(delivered & (F.col("strength") == SAFE)).alias("safe"),
        F.max(F.when(F.col("strength") < CAUSAL, 1)).alias("early"),
    ]


def unproven_views(per_stay: DataFrame, stays: DataFrame) -> DataFrame:
    """Runs in which some view's members differ from one another, or from what was sent in it (conditions 1 to 3)."""
    here = stays.groupBy("run", "view").agg(F.count("*").alias("stays"))
    names = ("got", "got_one", "got_two", "late", "late_one", "late_two")
    views = per_stay.groupBy("run", "view").agg(
        F.max("wrong").alias("wrong"),
        F.count("*").alias("active"),
        F.sum("sent").alias("sent"),
        F.bit_xor("sent_one").alias("sent_one"),
        F.bit_xor("sent_two").alias("sent_two"),
        *(F.min(name).alias(f"min_{name}") for name in names),
        *(F.max(name).alias(f"max_{name}") for name in names),
    )
    views = views.join(here, ["run", "view"], "left")
    differ = reduce(or_, (F.col(f"min_{name}") != F.col(f"max_{name}") for name in names))
    unlike = reduce(or_, (F.col(f"min_got{part}") != F.col(f"sent{part}") for part in ("", "_one", "_two")))
    missing = F.col("stays").isNull() | (F.col("active") != F.col("stays"))
    return views.where(F.col("view").isNull() | F.col("wrong") | differ | unlike | missing).select("run").distinct()


def unproven_sessions(messages: DataFrame) -> DataFrame:
    """Runs in which a session's stamps do not grow with its sequence, or a number comes twice (condition 4)."""
    sends = messages.where("sent").select("run", "session", "seq", "key")
    earlier = F.lag(F.struct("seq", "key")).over(ordered(["session"], "seq", "key"))
    pairs = sends.withColumn("earlier", earlier).where(F.col("earlier").isNotNull())
    wrong = (F.col("seq") <= F.col("earlier.seq")) | (F.col("key") <= F.col("earlier.key"))
    return pairs.where(F.coalesce(wrong, F.lit(True))).select("run").distinct()


def unproven_fifo(messages: DataFrame) -> DataFrame:
    """Runs in which a message comes after a fifo or stronger one of its session with a larger number (condition 4)."""
    mixed = messages.where(F.col("sent") & (F.col("strength") < CAUSAL)).select("session").distinct()
    rows = messages.where(~F.col("sent")).join(F.broadcast(mixed), "session", "left_semi")
    top = F.max(F.when(F.col("strength") >= FIFO, F.col("seq"))).over(before(["pid", "session"], "index"))
    return rows.withColumn("top", top).where(F.col("seq") <= F.col("top")).select("run").distinct()


def unproven_lives(stays: DataFrame, lives: DataFrame) -> DataFrame:
    """Runs in which a daemon has two lives, or one at rest was never in a view that counts it (condition 5)."""
    known = (
        lives.select("run", "process")
        .unionByName(stays.select("run", F.explode("members").alias("process")))
        .distinct()
    )
    twice = known.groupBy("run", life_name(F.col("process")).alias("life")).count().where(F.col("count") > 1)
    members = stays.select("run", "view", F.explode("members").alias("process")).distinct()
    absent = members.join(lives.where("witness").select("run", "process"), ["run", "process"], "left_semi")
    absent = absent.join(stays.select("run", "view", "process"), ["run", "view", "process"], "left_anti")
    again = stays.groupBy("run", "process", "view").count().where(F.col("count") > 1)
    uneven = stays.groupBy("run", "view").agg(F.min("rank").alias("low"), F.max("rank").alias("high"))
    again = again.select("run").unionByName(uneven.where(F.col("low") != F.col("high")).select("run"))
    return twice.select("run").unionByName(absent.select("run")).unionByName(again).distinct()


def premises(per_stay: DataFrame, proven: DataFrame) -> DataFrame:
    """How often each promise was put to the test in proven runs: as findings, one row a run and guarantee."""
    sums = (
        per_stay.join(proven, "run", "left_semi")
        .groupBy("run")
        .agg(*(F.sum(name).alias(name) for name in ("sent", "got", "reliable", "fifo", "fifo_only", "agreed", "safe")))
    )
    counted = {
        "S1": F.col("got") + F.col("sent"),
        **dict.fromkeys(("S6", "S7", "S8", "S9", "S10"), F.col("got")),
        **dict.fromkeys(("S12", "S13"), F.col("sent")),
        "S11": F.col("agreed"),
        "M2": F.col("reliable"),
        "M3": F.col("fifo"),
        **dict.fromkeys(("M4", "M5"), F.col("agreed")),
        "M6": F.col("safe"),
        "M7": F.col("fifo_only"),
    }
    pairs = [F.struct(F.lit(label).alias("guarantee"), count.alias("premises")) for label, count in counted.items()]
    rows = sums.select("run", F.explode(F.array(*pairs)).alias("one")).where(F.col("one.premises") > 0)
    return rows.select("one.guarantee", "run", F.lit("S").alias("level"), "one.premises")
