"""The cheap way first: runs of daemons in which nothing can be wrong are recognised in one pass over messages.

In:        a trace, and the stays of its daemons.
Out:       the runs that are not proven good as far as messages go, and what was seen of the others.
Not here:  the pass (digests.py); views and rest (views.py, liveness.py), which are small and are always judged exactly;
           how often each promise was put to the test (screened.py).

A run is proven if all of this holds (every condition is sufficient, none is necessary):
  1  each row names the view that its process is in (S1), and no message is unreliable
  2  in each view, everybody has delivered exactly what was sent in it, with the same content, and the same of it after
     the signal: equal counts and equal sums of hashes (S6 to S13, M2, M6; nothing is missing for M3 to M7)
  3  at each process, a delivery stands above all causal or stronger ones before it, and a send above everything before
     it (M4, M5; no circle for S7)
  4  in each session, which is sent from one process, the sequence grows and with it, by 3, the stamps; and no message
     comes after a fifo one with a larger number (M3, M7; after a stronger one with a larger number it cannot come,
     since that would stand above it against 3)
  5  no daemon has two lives in it (S10), and whoever is a member of a view and at rest has been in it (M6, S13)

What is before a row, for conditions 3 and 4, the store has written beside it. If the sums of these claims do not prove
that they are true (links.py), say because a row is missing, the run is not proven either. Where the store has not
written them, the messages are sorted.

Condition 2 compares sums of 64 bits; that two different sets agree by chance is less likely than a broken disk. Names
are hashes too: what two of them share makes conditions harder to meet, never easier.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.checks import links
from covey.analysis.checks.digests import holds, pid, place, run_id
from covey.analysis.claims import MESSAGES, NONE
from covey.analysis.tables.columns import life_name

# What the small rest of a trace, its views and ends, is read for.
CONTROL: Final = (
    "run",
    "level",
    "process",
    "index",
    "event",
    "name",
    "daemon",
    "group",
    "view",
    "view_new",
    "view_rank",
    "members",
    "transitional",
    "cause",
    "detail",
    "service",
    "order_view",
    "order_stamp",
    "order_site",
    "order_index",
    "claim_top",
    "claim_ordered",
)


def control(trace: DataFrame) -> DataFrame:
    """All rows but the messages of daemons. Written so that row groups with nothing else are passed over."""
    level, event = F.col("level"), F.col("event")
    is_other = (level != "S") | level.isNull() | event.isNull() | ~event.isin(*MESSAGES)
    return trace.where(is_other).select(*CONTROL)


def claims_are_there(control: DataFrame) -> bool:
    """Whether whoever wrote the trace also wrote down what each row comes after."""
    return control.where((F.col("level") == "S") & F.col("claim_top").isNull()).isEmpty()


def histories(control: DataFrame, located: DataFrame) -> DataFrame:
    """Of each process at each level, messages or not: how many rows it has, with which indexes, and their links."""
    named = control.withColumn("run_id", run_id()).withColumn("pid", pid())
    unordered = F.lit(None).cast("bigint")
    kept = ("run_id", "pid", "level", "rows", "first", "last", "told", "history", "highest", "highest_ordered")
    own = named.select(
        *("run_id", "pid", "level"),
        F.lit(1).cast("bigint").alias("rows"),
        F.col("index").alias("first"),
        F.col("index").alias("last"),
        (F.col("event") == "gap").alias("told"),
        links.in_history(F.col("claim_top"), F.col("claim_ordered")).alias("history"),
        unordered.alias("highest"),
        unordered.alias("highest_ordered"),
    )
    messages = located.withColumns({"level": F.lit("S"), "told": F.lit(False)}).select(*kept)
    return (
        own.unionByName(messages)
        .groupBy("run_id", "pid", "level")
        .agg(
            F.sum("rows").alias("rows"),
            F.min("first").alias("first"),
            F.max("last").alias("last"),
            F.max("told").alias("told"),
            F.bit_xor("history").alias("history"),
            F.coalesce(F.max("highest"), F.lit(NONE)).alias("highest"),
            F.coalesce(F.max("highest_ordered"), F.lit(NONE)).alias("highest_ordered"),
        )
    )


def torn(histories: DataFrame) -> DataFrame:
    """Where rows may be missing: processes whose indexes do not run from 0 on, one by one, or that say so."""
    return histories.where(~_is_full() | F.col("told") | F.col("pid").isNull())


def _is_full() -> Column:
    return (F.col("first") == 0) & (F.col("last") + 1 == F.col("rows"))


def stays_to_compare(stays: DataFrame) -> DataFrame:
    """Level S: each stay as the rows name it."""
    of_daemons = stays.where(F.col("level") == "S").withColumn("run_id", run_id()).withColumn("pid", pid())
    movers = F.col("next.transitional").alias("movers")
    return of_daemons.select(
        "run",
        "process",
        "view",
        "rank",
        "pid",
        place().alias("place"),
        "stay",
        "end",
        "signal",
        "members",
        movers,
        "is_last",
        "witness",
    )


def located(per_stay: DataFrame, stays: DataFrame) -> DataFrame:
    """What was seen, with the stay that it belongs to; `wrong` also where it is in none."""
    rows = per_stay.join(stays, "place", "left")
    inside = (F.col("first") > F.col("stay")) & (F.col("end").isNull() | (F.col("last") < F.col("end")))
    return rows.withColumn("wrong", F.col("wrong") | ~holds(inside))


def unproven(located: DataFrame, threads: DataFrame, stays: DataFrame, lives: DataFrame) -> DataFrame:
    """The runs, by their hashes, that break one of the conditions if each row comes after what it claims."""
    doubts = [
        _unequal_views(located, stays),
        threads.where("sent").groupBy("run_id", "session").count().where(F.col("count") > 1).select("run_id"),
        _strange_lives(stays, lives).select(F.xxhash64("run").alias("run_id")),
    ]
    return reduce(DataFrame.unionByName, doubts).distinct()


def threads(digests: DataFrame, stays: DataFrame) -> DataFrame:
    """What each process sent in each session, or delivered of it: their links. What is in no stay is not asked."""
    rows = digests.join(F.broadcast(stays.select("place", "pid")), "place")
    return rows.groupBy("run_id", "pid", "session", "sent").agg(
        F.sum("starts").alias("starts"),
        F.bit_xor("thread").alias("thread"),
        F.max("last").alias("last"),
        F.coalesce(F.max("floor"), F.lit(NONE)).alias("floor"),
    )


def unlinked(histories: DataFrame, threads: DataFrame) -> DataFrame:
    """The runs, by their hashes, in which it is not proven that rows come after what they claim (links.py)."""
    whole = links.whole_history(F.col("rows"), F.col("highest"), F.col("highest_ordered"))
    is_chain = _is_full() & (F.col("history") == whole)
    line = links.whole_thread(F.col("last"), F.col("floor"))
    is_line = (F.col("starts") == 1) & (F.col("thread") == line)
    broken = histories.where((F.col("level") == "S") & ~holds(is_chain)).select("run_id")
    return broken.unionByName(threads.where(~holds(is_line)).select("run_id"))


def _unequal_views(located: DataFrame, stays: DataFrame) -> DataFrame:
    """Runs in which some view's members differ from one another, or from what was sent in it (conditions 1 and 2)."""
    here = stays.groupBy("run", "view").agg(F.count("*").alias("stays"))
    names = ("got", "got_one", "late", "late_one")
    views = located.groupBy("run_id", "run", "view").agg(
        F.max("wrong").alias("wrong"),
        F.count("*").alias("active"),
        F.sum("sent").alias("sent"),
        F.bit_xor("sent_one").alias("sent_one"),
        *(F.min(name).alias(f"min_{name}") for name in names),
        *(F.max(name).alias(f"max_{name}") for name in names),
    )
    views = views.join(here, ["run", "view"], "left")
    differ = reduce(or_, (F.col(f"min_{name}") != F.col(f"max_{name}") for name in names))
    unlike = reduce(or_, (F.col(f"min_got{part}") != F.col(f"sent{part}") for part in ("", "_one")))
    missing = F.col("stays").isNull() | (F.col("active") != F.col("stays"))
    return views.where(F.col("wrong") | differ | unlike | missing).select("run_id")


def _strange_lives(stays: DataFrame, lives: DataFrame) -> DataFrame:
    """Runs in which a daemon has two lives, or one at rest was never in a view that counts it (condition 5)."""
    nobody = F.array().cast("array<string>")
    promised = F.explode(F.array_union("members", F.coalesce("movers", nobody))).alias("process")
    members = stays.select("run", "view", promised).distinct()
    known = lives.select("run", "process").unionByName(members.select("run", "process")).distinct()
    twice = known.groupBy("run", life_name(F.col("process")).alias("life")).count().where(F.col("count") > 1)
    absent = members.join(lives.where("witness").select("run", "process"), ["run", "process"], "left_semi")
    absent = absent.join(stays.select("run", "view", "process"), ["run", "view", "process"], "left_anti")
    again = stays.groupBy("run", "process", "view").count().where(F.col("count") > 1)
    uneven = stays.groupBy("run", "view").agg(F.min("rank").alias("low"), F.max("rank").alias("high"))
    found = [twice, absent, again, uneven.where(F.col("low") != F.col("high"))]
    return reduce(DataFrame.unionByName, (one.select("run") for one in found))
