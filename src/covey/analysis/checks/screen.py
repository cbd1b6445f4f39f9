"""The cheap way first: runs of daemons in which nothing can be wrong are recognised in three passes over messages.

In:        a trace, and the stays of its daemons.
Out:       the runs that are not proven good as far as messages go, and what was seen of the others.
Not here:  views and rest (views.py, liveness.py), which are small and are always judged exactly; how often each promise
           was put to the test (screened.py).

A run is proven if all of this holds (every condition is sufficient, none is necessary):
  1  each row names the view that its process is in (S1), and no message is unreliable
  2  in each view, everybody has delivered exactly what was sent in it, with the same content, and the same of it after
     the signal: equal counts and equal sums of two hashes (S6 to S13, M2, M6; nothing is missing for M3 to M7)
  3  at each process, a delivery stands above all causal or stronger ones before it, and a send above everything before
     it (M4, M5; no circle for S7)
  4  in each session stamps grow with the sequence, and no message comes after a fifo one with a larger number (M3, M7;
     after a stronger one with a larger number it cannot come, since that would stand above it against 3)
  5  no daemon has two lives in it (S10), and whoever is a member of a view and at rest has been in it (M6, S13)

Condition 2 compares 128 bits of hashes; that two different sets agree by chance is less likely than a broken disk.
Names are hashes too: what two of them share makes conditions harder to meet, never easier.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.checks import blocks
from covey.analysis.tables.columns import CAUSAL, FIFO, RELIABLE, SAFE, life_name, strength

STAMP_BITS: Final = 52
SITE_BITS: Final = 9
INDEX_BITS: Final = 60

# Kinds of rows for the order at a process, and of messages for that of a session.
EARLY, ORDERED, SENT = range(3)
LOOSE, IN_SEQUENCE, IN_ORDER = range(3)


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
)


def _is_message() -> Column:
    return (F.col("level") == "S") & F.col("event").isin("send", "deliver")


def control(trace: DataFrame) -> DataFrame:
    """All rows but the messages of daemons."""
    return trace.where(~_holds(_is_message())).select(*CONTROL)


def torn(control: DataFrame, per_stay: DataFrame) -> DataFrame:
    """Whether rows may be missing: processes whose indexes do not run from 0 on, one by one, or that say so."""
    own = control.groupBy(F.xxhash64("run", "process").alias("pid"), "level").agg(
        F.count("*").alias("rows"),
        F.min("index").alias("first"),
        F.max("index").alias("last"),
        F.max(F.col("event") == "gap").alias("told"),
    )
    told = F.lit(False).alias("told")
    both = own.unionByName(per_stay.select("pid", F.lit("S").alias("level"), "rows", "first", "last", told))
    found = both.groupBy("pid", "level").agg(
        F.sum("rows").alias("rows"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
        F.max("told").alias("told"),
    )
    return found.where(F.col("told") | (F.col("first") != 0) | (F.col("last") + 1 != F.col("rows")))


def narrow(trace: DataFrame) -> DataFrame:
    """Level S: the messages, with hashes for names, and the order as one number."""
    rows = trace.where(_is_message()).withColumn("key", _key()).withColumn("strength", strength())
    # The view is not part of the content: each row names its own, and its key is of that one.
    content = ("message", "sender", "key", "strength", "digest", "size", "session_seq", "count")
    strange = (
        ~_holds(F.col("order_view") == F.col("view"))
        | (F.col("strength") < RELIABLE)
        | F.col("key").isNull()
        | F.col("message").isNull()
        | ~_holds(F.col("index").between(0, (1 << INDEX_BITS) - 1))
    )
    return rows.select(
        F.xxhash64("run").alias("run_id"),
        F.xxhash64("run", "process").alias("pid"),
        F.xxhash64("run", "process", "view").alias("place"),
        F.xxhash64("run", "sender").alias("session"),
        "index",
        (F.col("event") == "send").alias("sent"),
        F.col("session_seq").alias("seq"),
        "strength",
        "key",
        strange.alias("strange"),
        F.xxhash64(*content).alias("one"),
        F.xxhash64(F.lit(1), *reversed(content)).alias("two"),
    )


def _key() -> Column:
    """The born order as one number; null for what does not fit, and for all but the first of a bundle."""
    stamp, site = F.col("order_stamp"), F.col("order_site").cast("bigint")
    fits = (
        stamp.between(0, (1 << STAMP_BITS) - 1)
        & site.between(0, (1 << SITE_BITS) - 1)
        & (F.coalesce("order_index", F.lit(0)) == 0)
    )
    return F.when(fits, F.shiftleft(stamp, SITE_BITS).bitwiseOR(site))


def stays_to_compare(stays: DataFrame) -> DataFrame:
    """Level S: each stay as the rows name it."""
    of_daemons = stays.where(F.col("level") == "S")
    place = F.xxhash64("run", "process", "view").alias("place")
    movers = F.col("next.transitional").alias("movers")
    return of_daemons.select(
        "run", "process", "view", "rank", place, "stay", "end", "signal", "members", movers, "is_last", "witness"
    )


def per_stay(messages: DataFrame, stays: DataFrame) -> DataFrame:
    """For each process and view: what it sent and delivered, as counts and sums of hashes."""
    rows = messages.join(F.broadcast(stays.select("place", "signal")), "place", "left")
    rows = rows.withColumn("late", ~F.col("sent") & _holds(F.col("index") > F.col("signal")))
    return rows.groupBy("run_id", "pid", "place").agg(
        F.max("strange").alias("wrong"),
        F.count("*").alias("rows"),
        F.min("index").alias("first"),
        F.max("index").alias("last"),
        *_seen(),
    )


def _seen() -> list[Column]:
    """Aggregates: counts, sums, the highest ordered keys before and after the signal, and the first send of such."""
    sent, late, strength = F.col("sent"), F.col("late"), F.col("strength")
    delivered, of_order = ~sent, strength >= CAUSAL
    counts = {
        "sent": sent,
        "sent_reliable": sent & (strength == RELIABLE),
        "got": delivered,
        "late": late,
        "reliable": delivered & (strength == RELIABLE),
        "fifo": delivered & (strength == FIFO),
        "ordered": delivered & of_order,
        "safe": delivered & (strength == SAFE),
        "safe_late": late & (strength == SAFE),
    }
    sums = {"sent": sent, "got": delivered, "late": late}
    return [
        *(F.count_if(condition).alias(name) for name, condition in counts.items()),
        *(
            F.coalesce(F.bit_xor(F.when(condition, F.col(part))), F.lit(0)).alias(f"{name}_{part}")
            for name, condition in sums.items()
            for part in ("one", "two")
        ),
        F.max(F.when(delivered & of_order & ~late, F.col("key"))).alias("top"),
        F.max(F.when(delivered & of_order & late, F.col("key"))).alias("top_late"),
        F.min(F.when(sent & of_order, F.col("index"))).alias("first_asking"),
    ]


def disordered(messages: DataFrame) -> DataFrame:
    """Blocks of rows of a process that break condition 3."""
    of_order = F.col("strength") >= CAUSAL
    kind = F.when(F.col("sent"), SENT).when(of_order, ORDERED).otherwise(EARLY)
    rows = messages.groupBy("run_id", "pid", blocks.block("index").alias("block"))
    found = rows.agg(*blocks.slots("index", F.col("key"), kind))
    keys = blocks.values()
    slots = list(zip(blocks.kinds(), keys, strict=True))
    sends, deliveries, ordered = (
        [F.when(kind.isin(*wanted), key) for kind, key in slots] for wanted in ((SENT,), (EARLY, ORDERED), (ORDERED,))
    )
    found = blocks.with_disorder(found, ["pid"], [(sends, keys), (deliveries, ordered)])
    return found.where("disorder").select("run_id").distinct()


def sequences(messages: DataFrame) -> DataFrame:
    """Of each session what was sent, in blocks; and blocks of deliveries that break condition 4."""
    rows = messages.withColumn("value", F.when(F.col("sent"), F.col("key")).otherwise(F.col("index")))
    rows = rows.withColumn("reader", F.when(F.col("sent"), F.lit(0)).otherwise(F.col("pid")))
    kind = F.when(F.col("strength") >= CAUSAL, IN_ORDER).when(F.col("strength") == FIFO, IN_SEQUENCE).otherwise(LOOSE)
    keys = ["run_id", "place", "session", "sent", "reader"]
    found = rows.groupBy(*keys, blocks.block("seq").alias("block")).agg(*blocks.slots("seq", F.col("value"), kind))
    values = blocks.values()
    asking = [
        F.when(F.col("sent") | (kind == IN_SEQUENCE), value) for kind, value in zip(blocks.kinds(), values, strict=True)
    ]
    found = blocks.with_disorder(found, ["reader", "session", "sent"], [(asking, values)])
    return found.where(F.col("sent") | F.col("disorder"))


def located(per_stay: DataFrame, stays: DataFrame) -> DataFrame:
    """What was seen, with the stay that it belongs to; `wrong` also where it is in none."""
    rows = per_stay.join(stays, "place", "left")
    inside = (F.col("first") > F.col("stay")) & (F.col("end").isNull() | (F.col("last") < F.col("end")))
    return rows.withColumn("wrong", F.col("wrong") | ~_holds(inside))


def unproven(
    located: DataFrame, disordered: DataFrame, sequences: DataFrame, stays: DataFrame, lives: DataFrame
) -> DataFrame:
    """The runs, by their hashes, that break one of the conditions."""
    doubts = [
        _unequal_views(located, stays),
        disordered,
        sequences.where("disorder").select("run_id"),
        _strange_lives(stays, lives).select(F.xxhash64("run").alias("run_id")),
    ]
    return reduce(DataFrame.unionByName, doubts).distinct()


def _unequal_views(located: DataFrame, stays: DataFrame) -> DataFrame:
    """Runs in which some view's members differ from one another, or from what was sent in it (conditions 1 and 2)."""
    here = stays.groupBy("run", "view").agg(F.count("*").alias("stays"))
    names = ("got", "got_one", "got_two", "late", "late_one", "late_two")
    views = located.groupBy("run_id", "run", "view").agg(
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


def _holds(condition: Column) -> Column:
    return F.coalesce(condition, F.lit(False))
