"""The cheap way first: views of daemons in which nothing can be wrong are recognised in one pass over messages.

In:        a trace, and the stays of its daemons.
Out:       the runs of which nothing is proven as far as messages go; of the others, the views that are not; and what
           was seen in each stay.
Not here:  the pass (digests.py); views and rest (views.py, liveness.py), which are small and are always judged exactly;
           how often each promise was put to the test (screened.py).

Every condition is sufficient, none is necessary. Of a run these must hold, or it is vetoed: judged exactly as a whole.
  1  each row names the view that its process is in (S1), and is stamped there; its id is its session and sequence
  2  at each process, a delivery stands above all causal or stronger ones before it, and a send above everything before
     it (M4, M5; no circle for S7)
  3  in each session, which is sent from one process, the sequence grows and with it, by 2, the stamps; and no message
     comes after a fifo one with a larger number (M3, M7; after a stronger one with a larger number it cannot come,
     since that would stand above it against 2)
A view of such a run is good if these hold too; of the others, the bad ones, the messages are judged exactly.
  4  everybody has delivered exactly what was sent in it, with the same content, and the same of it after the signal:
     equal counts and equal sums of hashes (S6 to S13, M2, M6; nothing is missing for M3 to M7); nothing is unreliable
  5  no view up to it has a later life of a member (S10); who is a member and at rest has been in it (M6, S13)
  6  no two of its messages have the same place in the order (M5)
A run is proven if all its views are good; partly proven if only some are.

Why nothing is missed in a run that is partly proven: a breach concerns one message, or several of one view, or the
order of messages of different views. The last kind is excluded by 2 and 3, of which unreliable messages need only that
no send repeats an id. The others lie wholly in a good view or wholly in bad ones, since by 1 and 3 a message is sent
once, and by 4 what is delivered in a good view was sent there: in a bad one it is a delivery that nobody sent (S7). A
message that a later view needs (M3) is missing among processes that went on together, which S8 or S12 finds in its own
view. What follows from a message, and every circle, stays in its view, since only views lead on, and their ranks grow
(S3). This takes for granted that views and contents are as they must be. If not, a violation is found in the control
rows or the bad views, and the whole run is judged.

What is before a row, for conditions 2 and 3, the store has written beside it. If the sums of these claims do not prove
that they are true (links.py), say because a row is missing, the run is vetoed too. Where the store has not written
them, the messages are sorted.

Condition 4 compares sums of 64 bits; that two different sets agree by chance is less likely than a broken disk. Names
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
from covey.analysis.tables.columns import life_name, life_number, ordered

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


def unclaimed(control: DataFrame) -> DataFrame:
    """Rows of daemons beside which nobody wrote down what they come after."""
    return control.where((F.col("level") == "S") & F.col("claim_top").isNull())


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
    return histories.where(~_is_full() | F.col("told"))


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
        "run_id",
        "pid",
        place().alias("place"),
        F.xxhash64("run_id", "view").alias("view_id"),
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
    rows = per_stay.join(stays.drop("run_id"), "place", "left")
    inside = (F.col("first") > F.col("stay")) & (F.col("end").isNull() | (F.col("last") < F.col("end")))
    return rows.withColumn("wrong", F.col("wrong") | ~holds(inside))


def vetoed(located: DataFrame, threads: DataFrame, stays: DataFrame, control: DataFrame) -> DataFrame:
    """The runs, by their hashes, of which nothing is proven, even if each row comes after what it claims."""
    senders = threads.where("sent").groupBy("run_id", "session").agg(F.count("*").alias("processes"))
    doubts = [
        located.where("wrong"),
        senders.where(F.col("processes") > 1),
        # Ranks keep what follows from a message within its view.
        stays.where(F.col("rank").isNull()),
        control.where(F.col("level") != "S").withColumn("run_id", run_id()),
    ]
    return reduce(DataFrame.unionByName, (one.select("run_id") for one in doubts)).distinct()


def bad_views(located: DataFrame, stays: DataFrame, lives: DataFrame, shared: DataFrame) -> DataFrame:
    """The views, with the hashes of their runs, in which the messages must be looked at one by one."""
    strange = _strange_views(stays, lives).unionByName(shared)
    # Where there are no messages, there is nothing to look at.
    strange = located.select("run_id", "run", "view").distinct().join(strange, ["run", "view"], "left_semi")
    columns = ("run_id", "view")
    return _unequal_views(located, stays).select(*columns).unionByName(strange.select(*columns)).distinct()


def shared_places(stays: DataFrame, sends: DataFrame) -> DataFrame:
    """Views with two messages at one place of the order (condition 6): if they are reliable, nothing else tells."""
    views = stays.select("run", "view", "view_id").distinct()
    rows = sends.where(F.col("key").isNotNull()).join(F.broadcast(stays.select("place", "view_id")), "place")
    shared = rows.groupBy("view_id", "key").agg(F.count("*").alias("messages")).where(F.col("messages") > 1)
    return views.join(shared, "view_id", "left_semi").select("run", "view")


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
    """Views whose members differ from one another, or from what was sent in it (condition 4)."""
    here = stays.groupBy("run", "view").agg(F.count("*").alias("stays"))
    names = ("got", "got_one", "late", "late_one")
    views = located.groupBy("run_id", "run", "view").agg(
        F.max("loose").alias("loose"),
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
    return views.where(F.col("loose") | differ | unlike | missing)


def _strange_views(stays: DataFrame, lives: DataFrame) -> DataFrame:
    """Views that a member at rest was never in, or of an earlier life, or not the same to all (condition 5)."""
    nobody = F.array().cast("array<string>")
    promised = F.explode(F.array_union("members", F.coalesce("movers", nobody))).alias("process")
    members = stays.select("run", "view", promised).distinct()
    absent = members.join(lives.where("witness").select("run", "process"), ["run", "process"], "left_semi")
    absent = absent.join(stays.select("run", "view", "process"), ["run", "view", "process"], "left_anti")
    again = stays.groupBy("run", "process", "view").count().where(F.col("count") > 1)
    uneven = stays.groupBy("run", "view").agg(F.min("rank").alias("low"), F.max("rank").alias("high"))
    found = [absent, again, uneven.where(F.col("low") != F.col("high")), _views_of_earlier_lives(stays)]
    return reduce(DataFrame.unionByName, (one.select("run", "view") for one in found))


def _views_of_earlier_lives(stays: DataFrame) -> DataFrame:
    """Views with a member of which they, or a view that is not above them, have a later life (S10)."""
    members = stays.select("run", "view", "rank", F.explode("members").alias("member")).distinct()
    lives = members.withColumns({"life": life_name(F.col("member")), "number": life_number(F.col("member"))})
    # All of one rank see one another.
    latest = F.max("number").over(ordered(["run", "life"], "rank"))
    return lives.withColumn("latest", latest).where(F.col("number") < F.col("latest"))
