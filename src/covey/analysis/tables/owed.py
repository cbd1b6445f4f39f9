"""What is owed to whom: the messages that a process must deliver if anybody of its view does, in the order of things.

In:        memberships, messages, and the daemons' own rows, which tell what passed when.
Out:       owed (level C: process, group, membership, message), and shares (process, message, where it was delivered or
           null): every message that a process delivered or that concerns it.
Not here:  whether it must be delivered at all: that is for the checks to say.

A membership is a piece of the agreed order: from the join's place, or from the daemon view of the network view that
first showed it, to the leave's place. A causal, agreed or safe message is owed if its place is in that piece. A
reliable or fifo one is delivered early: one that passed the daemon before the join took effect there is not owed.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .columns import CAUSAL, MESSAGE, PROCESS, RELIABLE, is_client, ordered
from .traffic import ATTRIBUTES

OWED = ("strength", "from_outside", "to_several", "place", "origin", "sent_at")
"""What is known of a message that is owed."""


def daemon_views_of(stays: DataFrame) -> DataFrame:
    """Level S: run, daemon, view, nth, with what the stay was. A view that a daemon came to twice counts once."""
    found = stays.where(~is_client()).withColumn("again", F.row_number().over(ordered([*PROCESS, "view"], "stay")))
    found = found.where(F.col("again") == 1).drop("daemon").withColumnRenamed("process", "daemon")
    nth = F.row_number().over(ordered(["run", "daemon"], "stay"))
    return found.withColumn("nth", nth).drop("level", "grp", "again", "witness")


def passed_of(deliveries: DataFrame, held: DataFrame) -> DataFrame:
    """Level S: when each daemon passed the bundle at each place, and whether ever after a signal."""
    place = F.struct(
        F.col("row_order_view").alias("view"),
        F.col("row_key.stamp").alias("stamp"),
        F.col("row_key.site").alias("site"),
    )
    known = ~is_client() & F.col("row_order_view").isNotNull() & F.col("row_key").isNotNull()
    after = (
        held.where(known & F.col("after"))
        .select("run", F.col("process").alias("daemon"), place.alias("place"))
        .distinct()
    )
    passed = deliveries.where(known).groupBy("run", F.col("process").alias("daemon"), place.alias("place"))
    found = passed.agg(F.max("index").alias("passed"))
    return found.join(after.withColumn("late", F.lit(True)), ["run", "daemon", "place"], "left").select(
        "run", "daemon", "place", "passed", F.coalesce("late", F.lit(False)).alias("after_signal")
    )


def itineraries_of(rows: DataFrame, lives: DataFrame, daemon_views: DataFrame) -> DataFrame:
    """Level C: the daemon views that each client went through, as its daemon tells or, without it, its own rows."""
    clients = lives.where(is_client()).select("run", "process", "daemon")
    by_daemon = clients.join(
        daemon_views.select("run", "daemon", F.col("view").alias("daemon_view"), "nth"), ["run", "daemon"]
    )
    silent = clients.join(daemon_views.select("run", "daemon").distinct(), ["run", "daemon"], "left_anti")
    shown = F.when(F.col("event") == "view", F.split(F.coalesce("view_new", F.lit("")), "/", 2)[0]).otherwise(
        F.col("order_view")
    )
    seen = rows.where(is_client()).withColumn("daemon_view", shown).where(F.col("daemon_view").isNotNull())
    seen = seen.join(silent.select("run", "process"), ["run", "process"], "left_semi")
    seen = seen.groupBy("run", "process", "daemon_view").agg(F.min("index").alias("nth"))
    return by_daemon.select("run", "process", "daemon_view", "nth").unionByName(seen)


def memberships_of(stays: DataFrame, itineraries: DataFrame) -> DataFrame:
    """Level C: run, process, group, membership, with its first view, where it was left, and its daemon views' range."""
    last = stays.where(is_client() & F.col("is_last"))
    ones = last.select(
        "run",
        "level",
        "process",
        "grp",
        "membership",
        "stay",
        "view",
        "members",
        "signals",
        "first",
        "left",
        "open",
        "closed_by",
        "daemon",
        "witness",
    )
    first = itineraries.select(
        "run", "process", F.col("daemon_view").alias("from_view"), F.col("nth").alias("from_nth")
    )
    until = itineraries.select("run", "process", F.col("daemon_view").alias("to_view"), F.col("nth").alias("to_nth"))
    ones = ones.withColumn("from_view", F.col("first.daemon_view")).withColumn("to_view", F.col("left.view"))
    return ones.join(first, ["run", "process", "from_view"], "left").join(until, ["run", "process", "to_view"], "left")


def owed_of(memberships: DataFrame, itineraries: DataFrame, messages: DataFrame, passed: DataFrame) -> DataFrame:
    in_groups = messages.where(is_client() & (F.col("strength") >= RELIABLE) & F.col("key").isNotNull())
    in_groups = in_groups.select(
        "run",
        F.explode("groups").alias("grp"),
        F.col("order_view").alias("daemon_view"),
        "message",
        "place",
        F.col("send.index").alias("sent_at"),
        *(name for name in OWED if name not in ("place", "sent_at")),
    )
    ones = memberships.where(F.col("from_nth").isNotNull()).select(
        "run", "process", "grp", "membership", "daemon", "from_view", "from_nth", "to_view", "to_nth", "first", "left"
    )
    pairs = ones.join(itineraries, ["run", "process"]).where(
        (F.col("nth") >= F.col("from_nth"))
        & (F.col("to_nth").isNull() | (F.col("to_nth") < F.col("from_nth")) | (F.col("nth") <= F.col("to_nth")))
    )
    pairs = pairs.join(in_groups, ["run", "grp", "daemon_view"])
    return (
        _after_join(_before_leave(pairs), passed)
        .select("run", F.lit("C").alias("level"), "process", "grp", "membership", "message", *OWED)
        .distinct()
    )


def _before_leave(pairs: DataFrame) -> DataFrame:
    """In the daemon view of the leave, only what is ordered below it."""
    here = F.struct("place.stamp", "place.site") < F.struct("left.stamp", "left.site")
    ends_here = F.col("to_nth").isNotNull() & (F.col("to_nth") >= F.col("from_nth")) & (F.col("nth") == F.col("to_nth"))
    return pairs.where(~F.coalesce(ends_here, F.lit(False)) | here)


def _after_join(pairs: DataFrame, passed: DataFrame) -> DataFrame:
    """In the daemon view of the join: what is ordered above it, or, of early ones, what passed the daemon after it."""
    begins_here = (F.col("nth") == F.col("from_nth")) & F.col("first.change").isNotNull()
    pairs = pairs.withColumn("begins_here", F.coalesce(begins_here, F.lit(False)))
    above = F.struct("place.stamp", "place.site") > F.struct("first.change.stamp", "first.change.site")
    clear = pairs.where(~F.col("begins_here") | ((F.col("strength") >= CAUSAL) & above))
    early = pairs.where(F.col("begins_here") & (F.col("strength") < CAUSAL)).withColumn("join", F.col("first.change"))
    joins = passed.select("run", "daemon", F.col("place").alias("join"), F.col("passed").alias("joined"))
    early = early.join(joins, ["run", "daemon", "join"]).join(passed, ["run", "daemon", "place"])
    return clear.unionByName(early.where(F.col("passed") > F.col("joined")).select(*clear.columns))


def shares_of(messages: DataFrame, delivered: DataFrame, stays: DataFrame, owed: DataFrame) -> DataFrame:
    """Each process with each message that it delivered, or that is owed to it (C), or of a view it touched (S)."""
    touched = stays.where(~is_client()).select(*PROCESS, F.col("view").alias("order_view"))
    by_delivery = delivered.where(~is_client() & F.col("order_view").isNotNull() & (F.col("strength") >= RELIABLE))
    touched = touched.unionByName(by_delivery.select(*PROCESS, "order_view")).distinct()
    of_views = messages.where(~is_client() & (F.col("strength") >= RELIABLE)).select(*MESSAGE, "order_view")
    concerned = touched.join(of_views, ["run", "level", "order_view"]).select(*PROCESS, "message")
    concerned = concerned.unionByName(owed.select(*PROCESS, "message").distinct()).withColumn("owed", F.lit(True))
    here = delivered.where(F.col("strength") >= RELIABLE).select(*PROCESS, "message", "index")
    both = concerned.join(here, [*PROCESS, "message"], "full")
    both = both.withColumn("owed", F.coalesce("owed", F.lit(False)))
    return both.join(messages.select(*MESSAGE, *ATTRIBUTES), MESSAGE)
