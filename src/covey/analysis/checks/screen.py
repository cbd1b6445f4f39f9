"""The cheap way first: views of daemons in which nothing can be wrong are recognised in one pass over messages.

In:        the stays of daemons, and what was sent and delivered in them.
Out:       what was seen in each stay; and doubts: the runs of which nothing is proven, of the others the views of which
           it is not proven that their messages are as they must be, and the runs of which it is not that their views
           are; and where rows may be missing.
Not here:  the pass (digests.py); stays (screen_stays.py); how often each promise was put to the test (screened.py).

Every condition is sufficient, none is necessary. Of a run these must hold, or it is vetoed: judged exactly as a whole.
  1  each row names the view that its process is in (S1), and is stamped there; the id of what is sent is its session
     and sequence
  2  at each process, a delivery stands above all causal or stronger ones before it, and a send above everything before
     it (M4, M5; no circle for S7)
  3  in each session, which is sent from one process, the sequence grows and with it, by 2, the stamps; and no message
     comes after a fifo one with a larger number (M3, M7; after a stronger one with a larger number it cannot come,
     since that would stand above it against 2)
A view of such a run is good if these hold too; of the others, the bad ones, the messages are judged exactly.
  4  everybody has delivered exactly what was sent in it, with the same content, and the same of it after the signal:
     equal counts and equal sums of hashes (S6 to S13, M2, M6; nothing is missing for M3 to M7); nothing is unreliable
  5  no view up to it has a later life of a member (S10); all its members have installed it, alike (M6, S13)
  6  no two of its messages have the same place in the order (M5): by 2 no two of one sender, and senders have
     different sites; where they do not, it is looked up
And of the views of a run, or they are judged exactly, which takes no messages:
  7  no stay is odd (S1 to S3, S5, S11, S14, S15); all who installed a view say the same of it (S4); where somebody ends
     in a view, connected to its members, they all do (S14)
A run is proven if all its views are good and 7 holds; partly proven if only some are, or 7 does not.

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
from covey.analysis.claims import NONE
from covey.analysis.tables.columns import life_name, life_number, ordered, whole

from .digests import holds, run_id

OF_RUN, OF_VIEW, OF_VIEWS, OF_SITE, OF_ROWS = "run", "view", "views", "site", "rows"
"""What a doubt is on: all of a run; the messages of a view; the views of a run; the places that daemons of one site
gave to messages, if several did; and whether rows are missing."""
COUNTS: Final = (
    *("sent", "sent_reliable", "got", "late", "reliable", "fifo", "ordered", "ordered_late", "safe", "safe_late"),
    *("sent_one", "got_one", "late_one"),
)


def others(trace: DataFrame) -> DataFrame:
    """Doubts on the runs in which not only daemons have rows."""
    rows = trace.where(~holds(F.col("level") == "S"))
    index = F.xxhash64("index").bitwiseXOR(F.xxhash64(links.next_index()))
    named = rows.groupBy("run", "level", "process").agg(
        F.count("*").alias("rows"), F.bit_xor(index).alias("history"), F.max(F.col("event") == "gap").alias("told")
    )
    is_torn = F.col("told") | ~holds(F.col("history") == links.whole_count(F.col("rows")))
    return _each(named.withColumn("run_id", run_id()), {OF_RUN: F.lit(True), OF_ROWS: is_torn}).distinct()


def seen(stays: DataFrame, per_stay: DataFrame) -> DataFrame:
    """Each stay with what was seen in it; `alien` also where that is not in the stay, or in none."""
    messages = per_stay.select(
        *("stay_id", *COUNTS, "loose", "wrong", "first", "first_asking", "last"),
        *("highest", "highest_ordered", "lowest", "first_site", "last_site"),
        *(F.col(name).alias(f"of_{name}") for name in ("run_id", "pid", "rows", "history")),
    )
    rows = stays.join(messages, "stay_id", "full")
    is_there = F.col("of_rows").isNull() | (
        (F.col("first") > F.col("stay")) & (F.col("end").isNull() | (F.col("last") < F.col("end")))
    )
    is_right = is_there & ~F.col("alien") & ~F.coalesce("wrong", F.lit(False))
    in_view = whole(["run_id", "view"])
    rows = rows.withColumns(
        {
            "run_id": F.coalesce("run_id", "of_run_id"),
            "pid": F.coalesce("pid", "of_pid"),
            "alien": ~holds(is_right),
            "odd": F.coalesce("odd", F.lit(True)),
            "loose": F.coalesce("loose", F.lit(False)),
            "told": F.coalesce("told", F.lit(False)),
            "rows": F.coalesce("rows", F.lit(0)) + F.coalesce("of_rows", F.lit(0)),
            "history": F.coalesce("history", F.lit(0)).bitwiseXOR(F.coalesce("of_history", F.lit(0))),
            "stays": F.count("*").over(in_view),
            "heads": F.col("process") == F.min("process").over(in_view),
            "lowest": F.min("lowest").over(in_view),
            "low": F.least("low", "first"),
            "high": F.greatest("high", "last"),
        }
        | {name: F.coalesce(name, F.lit(0)) for name in COUNTS}
    )
    return rows.drop("of_run_id", "of_pid", "of_rows", "of_history", "wrong", "last")


def doubts(seen: DataFrame, digests: DataFrame, is_claimed: bool) -> DataFrame:
    """`run_id`, `view` and `subject` of each."""
    views = _views(seen)
    of_view = {OF_RUN: F.col("alien"), OF_VIEWS: F.col("odd"), OF_VIEW: F.col("bad"), OF_SITE: F.col("crowded")}
    found = [
        _each(views, of_view),
        _each(_views_of_earlier_lives(views), {OF_VIEW: F.lit(True)}),
        _each(_threads(digests), {OF_RUN: ~holds(_has_one_origin() & (F.lit(not is_claimed) | _is_line()))}),
        _each(_histories(seen, is_claimed), {OF_RUN: F.col("broken"), OF_ROWS: F.col("torn")}),
    ]
    return reduce(DataFrame.union, found).distinct()


def shared_places(doubts: DataFrame, seen: DataFrame, sends: DataFrame) -> DataFrame:
    """Which of the views that are in doubt for their sites have two messages at one place."""
    crowded = doubts.where(F.col("subject") == OF_SITE).select("run_id", "view")
    stays = seen.select("stay_id", "run_id", "view").join(crowded, ["run_id", "view"], "left_semi")
    rows = sends.where(F.col("key").isNotNull()).join(F.broadcast(stays), "stay_id")
    shared = rows.groupBy("run_id", "view", "key").agg(F.count("*").alias("messages")).where(F.col("messages") > 1)
    return _each(shared, {OF_VIEW: F.lit(True)}).distinct()


def _each(rows: DataFrame, subjects: dict[str, Column]) -> DataFrame:
    """One row for each condition that holds."""
    which = F.array_compact(F.array(*(F.when(condition, F.lit(subject)) for subject, condition in subjects.items())))
    view = F.col("view") if "view" in rows.columns else F.lit(None).cast("string").alias("view")
    return rows.select("run_id", view, F.explode(which).alias("subject"))


def _views(seen: DataFrame) -> DataFrame:
    """Each view, with what its members disagree about."""
    names = ("got", "got_one", "late", "late_one", "members", "rank")
    views = seen.groupBy("run_id", "view").agg(
        F.max("alien").alias("alien"),
        F.max("odd").alias("odd"),
        F.max("loose").alias("loose"),
        F.count("*").alias("stays"),
        F.count_if("is_final").alias("final"),
        F.sum("sent").alias("sent"),
        F.bit_xor("sent_one").alias("sent_one"),
        F.count("first_site").alias("senders"),
        F.size(F.collect_set("first_site")).alias("sites"),
        F.max(F.col("first_site") != F.col("last_site")).alias("moved"),
        *(F.min(name).alias(f"min_{name}") for name in names),
        *(F.max(name).alias(f"max_{name}") for name in names),
    )
    differs = {name: F.col(f"min_{name}") != F.col(f"max_{name}") for name in names}
    unlike = reduce(or_, (F.col(f"min_got{part}") != F.col(f"sent{part}") for part in ("", "_one")))
    members = F.size("max_members")
    is_partial = F.col("stays") != members
    is_odd = F.col("odd") | differs["members"] | differs["rank"] | ((F.col("final") > 0) & (F.col("final") != members))
    is_bad = F.col("loose") | unlike | is_partial | reduce(or_, differs.values())
    in_view = F.col("view").isNotNull()
    return views.select(
        *("run_id", "view", "alien", F.col("max_members").alias("members"), F.col("max_rank").alias("rank")),
        F.when(in_view, ~holds(~is_odd)).otherwise(F.col("odd")).alias("odd"),
        (in_view & ~holds(~is_bad) & (F.col("max_got") + F.col("sent") > 0)).alias("bad"),
        (in_view & holds(F.col("moved") | (F.col("sites") < F.col("senders")))).alias("crowded"),
    )


def _views_of_earlier_lives(views: DataFrame) -> DataFrame:
    """Views with a member of which they, or a view that is not above them, have a later life (S10)."""
    members = views.select("run_id", "view", "rank", F.explode("members").alias("member"))
    lives = members.withColumns({"life": life_name(F.col("member")), "number": life_number(F.col("member"))})
    # All of one rank see one another.
    latest = F.max("number").over(ordered(["run_id", "life"], "rank"))
    return lives.withColumn("latest", latest).where(F.col("number") < F.col("latest"))


def _threads(digests: DataFrame) -> DataFrame:
    """What each process sent in each session, or delivered of it: their links; and who sent in the session."""
    threads = digests.groupBy("run_id", "pid", "session", "sent").agg(
        F.sum("starts").alias("starts"),
        F.bit_xor("thread").alias("thread"),
        F.max("last").alias("last"),
        F.coalesce(F.max("floor"), F.lit(NONE)).alias("floor"),
    )
    session, origin = whole(["run_id", "session"]), F.when(F.col("sent"), F.col("pid"))
    return threads.withColumns({"origin": F.min(origin).over(session), "other": F.max(origin).over(session)})


def _has_one_origin() -> Column:
    return F.col("origin").isNull() | (F.col("origin") == F.col("other"))


def _is_line() -> Column:
    return (F.col("starts") == 1) & (F.col("thread") == links.whole_thread(F.col("last"), F.col("floor")))


def _histories(seen: DataFrame, is_claimed: bool) -> DataFrame:
    """Of each daemon: whether its rows are there, each once, and come after what they claim (links.py)."""
    histories = seen.groupBy("run_id", "pid").agg(
        F.sum("rows").alias("rows"),
        F.min("low").alias("low"),
        F.max("high").alias("high"),
        F.max("told").alias("told"),
        F.bit_xor("history").alias("history"),
        F.coalesce(F.max("highest"), F.lit(NONE)).alias("highest"),
        F.coalesce(F.max("highest_ordered"), F.lit(NONE)).alias("highest_ordered"),
    )
    told, is_there = F.col("told"), (F.col("low") == 0) & (F.col("high") == F.col("rows") - 1)
    chain = links.whole_history(F.col("rows"), F.col("highest"), F.col("highest_ordered"))
    broken = ~holds(is_there & (F.col("history") == chain))
    if not is_claimed:
        # Then one row that is there twice would hide another that is not there at all: who doubts it has to look.
        broken, told = F.lit(False), F.lit(True)
    return histories.select("run_id", broken.alias("broken"), (told | broken).alias("torn"))
