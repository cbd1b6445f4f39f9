"""Stays: one row for each view that a process installed, from there to the next view, a leave or a departure.

In:        the rows of a trace that are no messages.
Out:       marks (views, signals, leaves, departures, each with the view the process was in) and stays.
Not here:  what is delivered in a stay (traffic.py).

At level S there is one group, the empty name. A *membership* is a chain of stays in one group; joining again begins
another. A *span* (level C) goes from a network view, or the first view of a membership, to the next network view.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from .columns import (
    DEPARTED,
    MEMBERSHIP,
    PROCESS,
    STAY,
    as_set,
    before,
    is_client,
    ordered,
    place,
    until,
    whole,
)

GROUP = [*PROCESS, "grp"]


def marks_of(rows: DataFrame) -> DataFrame:
    """Views, signals and what closes a stay, by process and group; `current` is the view the process is in."""
    grouped = rows.where(F.col("event").isin("view", "transitional", "self_leave"))
    groups = grouped.where(is_client()).select(*GROUP).distinct()
    departures = rows.where(is_client() & F.col("event").isin(*DEPARTED)).drop("grp").join(groups, PROCESS)
    which = F.when(F.col("event") == "view", "view").when(F.col("event") == "transitional", "signal").otherwise("close")
    marks = grouped.unionByName(departures).withColumn("which", which)
    last = F.when(F.col("which") != "signal", F.struct("which", "view_new"))
    marks = marks.withColumn("last", F.last(last, ignorenulls=True).over(before(GROUP, "index")))
    current = F.when(F.col("last.which") == "view", F.coalesce("last.view_new", F.lit("")))
    return marks.withColumn("current", current).drop("last")


def stays_of(marks: DataFrame, lives: DataFrame) -> DataFrame:
    stays = _chained(marks.where(F.col("which") != "signal")).join(_signals(marks), [*GROUP, "stay"], "left")
    stays = stays.withColumn("signals", F.coalesce("signals", F.lit(0)))
    signals_before = F.when(F.col("came"), F.lag("signals").over(ordered(GROUP, "stay")))
    stays = _with_spans(_with_memberships(stays.withColumn("signals_before", signals_before)))
    return stays.join(lives.select(*PROCESS, "daemon", "witness"), PROCESS)


def _chained(marks: DataFrame) -> DataFrame:
    """The views, each with the one before it, if it came from there, and with what came after it."""
    named = F.col("view").isNotNull() | ~is_client()
    came = (F.col("which") == "view") & F.col("current").isNotNull() & named
    marks = marks.withColumn("came", came).withColumn("change", place())
    beside = F.struct(
        F.col("index").alias("stay"),
        F.col("came"),
        F.col("event"),
        F.col("change"),
        F.coalesce("view_new", F.lit("")).alias("view"),
        F.col("view_rank").alias("rank"),
        as_set("members").alias("members"),
        as_set("transitional").alias("transitional"),
    )
    order = ordered(GROUP, "index")
    marks = marks.withColumn("beside", beside)
    marks = marks.withColumn("earlier", F.lag("beside").over(order)).withColumn("later", F.lead("beside").over(order))
    views = marks.where(F.col("which") == "view")
    later = F.when(F.col("later.came"), F.col("later"))
    return views.select(
        *GROUP,
        "beside.stay",
        "beside.view",
        "beside.rank",
        "beside.members",
        "beside.transitional",
        "cause",
        "change",
        F.col("came"),
        F.when(F.col("came"), F.col("earlier")).alias("previous"),
        later.alias("next"),
        F.col("later.stay").alias("end"),
        F.when(~F.coalesce("later.came", F.lit(False)), F.col("later")).alias("closed_by"),
    )


def _signals(marks: DataFrame) -> DataFrame:
    """Of each stay: how many signals it has, and where the first one is."""
    stay = F.last(F.when(F.col("which") == "view", F.col("index")), ignorenulls=True).over(before(GROUP, "index"))
    inside = marks.withColumn("stay", stay).where((F.col("which") == "signal") & F.col("current").isNotNull())
    return inside.groupBy(*GROUP, "stay").agg(F.count("*").alias("signals"), F.min("index").alias("signal"))


def _with_memberships(stays: DataFrame) -> DataFrame:
    """The number of the membership, its first stay, and the row that ended it."""
    begins = F.when(F.col("came"), F.lit(None)).otherwise(F.col("stay"))
    stays = stays.withColumn("membership", F.last(begins, ignorenulls=True).over(until(GROUP, "stay")))
    stays = stays.withColumn("light", is_client() & ~F.col("view").endswith("/net"))
    stays = stays.withColumn("daemon_view", F.when(is_client(), F.split("view", "/", 2)[0]).otherwise(F.col("view")))
    whole_of = whole(MEMBERSHIP)
    first = F.struct("view", "rank", "daemon_view", "change")
    stays = stays.withColumn("first", F.min_by(first, "stay").over(whole_of))
    # Only the last stay of a membership has a row that ended it.
    stays = stays.withColumn("closed_by", F.max_by("closed_by", "stay").over(whole_of))
    stays = stays.withColumn("open", F.col("closed_by").isNull())
    left = F.when(F.col("closed_by.event") == "self_leave", F.col("closed_by.change"))
    return stays.withColumn("left", left).withColumn("is_last", F.col("next").isNull())


def _with_spans(stays: DataFrame) -> DataFrame:
    starts = F.when(~F.col("light") | ~F.col("came"), F.struct("stay", "rank", "light"))
    return stays.withColumn("span", F.last(starts, ignorenulls=True).over(until(MEMBERSHIP, "stay")))


def first_of(stays: DataFrame, *keys: str) -> DataFrame:
    """One stay for each of these keys: that of the process whose name comes first."""
    order: list[Column | str] = [F.col("process"), F.col("stay")]
    ranked = stays.withColumn("nth", F.row_number().over(ordered(keys, *order)))
    return ranked.where(F.col("nth") == 1).drop("nth")


__all__ = ["GROUP", "STAY", "first_of", "marks_of", "stays_of"]
