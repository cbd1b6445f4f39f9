"""How often each promise was put to the test in runs that the screen has proven: what the exact checks would count.

In:        what was seen in each stay and session of proven runs (digests.py), and their views.
Out:       premises: guarantee, run, level, premises.
Not here:  the proof.

In a proven run all who were in a view have delivered the same messages, once, and the same of them after the signal. So
what the exact checks count message by message is a matter of stays and sums. What each line counts is explained where
the exact check counts it, in the file of its family.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.checks import blocks
from covey.analysis.checks.digests import IN_ORDER, IN_SEQUENCE, LOOSE
from covey.analysis.tables.build import ViewTables
from covey.analysis.tables.cohorts import moving
from covey.analysis.tables.columns import whole

VIEW = ["run", "view"]


def premises(seen: DataFrame, by_sends: DataFrame, views: ViewTables) -> DataFrame:
    """All of one table each, put together. `seen`: one row a stay with messages, of proven runs alone."""
    here = _views(seen)
    parts = [
        by_sends,
        _of_stays(seen),
        _of_growth(seen),
        _of_first_rows(seen, here),
        _of_cohorts(views, here),
        _of_safe(seen, views),
    ]
    found = _together(parts).where(F.col("premises") > 0)
    return found.select("guarantee", "run", F.lit("S").alias("level"), "premises")


def by_sends(seen: DataFrame, sends: DataFrame) -> DataFrame:
    """What single messages put to the test: run, guarantee, premises, which may also be fewer than none."""
    sends = sends.join(_places(seen), "place").join(_views(seen).select(*VIEW, "stays"), VIEW)
    return _together([_of_first_in_session(sends), _of_mixing(sends), _of_order(seen, sends)])


def _together(parts: list[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, parts).groupBy("run", "guarantee").agg(F.sum("premises").alias("premises"))


def _views(seen: DataFrame) -> DataFrame:
    """Of each view how many were in it, and what each of them got."""
    return seen.groupBy(*VIEW).agg(
        F.count("*").alias("stays"), *(F.max(name).alias(name) for name in ("got", "ordered", "reliable"))
    )


def _counted(rows: DataFrame, counts: dict[str, Column]) -> DataFrame:
    """These numbers of each row, by guarantee."""
    pairs = [
        F.struct(F.lit(label).alias("guarantee"), count.cast("bigint").alias("premises"))
        for label, count in counts.items()
    ]
    return rows.select("run", F.explode(F.array(*pairs)).alias("one")).select("run", "one.guarantee", "one.premises")


def _places(seen: DataFrame) -> DataFrame:
    return seen.select("run", "view", "process", "place", "top", "top_late")


def _of_stays(seen: DataFrame) -> DataFrame:
    """What each stay's own rows put to the test."""
    sent, got = F.col("sent"), F.col("got")
    lives_on = ~F.col("is_last") | F.col("witness")
    counts = {
        "S1": sent + got,
        "S6": got,
        "S7": got,
        # All but the first who delivered a message.
        "S9": got - sent,
        "S10": got,
        "S12": F.when(lives_on, sent).otherwise(0),
        "S13": F.when(F.col("is_last") & F.col("witness"), sent).otherwise(0),
        "M2": F.col("reliable") + F.when(lives_on, F.col("sent_reliable")).otherwise(0),
        "M3": F.col("fifo") + F.col("ordered"),
        "M4": F.col("ordered"),
        "M5": sent + got,
    }
    return _counted(seen, counts)


def _of_growth(seen: DataFrame) -> DataFrame:
    """M5: from each stay with ordered deliveries to the next one."""
    found = seen.where(F.col("ordered") > 0).groupBy("run", "process").agg(F.count("*").alias("stays"))
    return _counted(found, {"M5": F.col("stays") - 1})


def _of_first_rows(seen: DataFrame, here: DataFrame) -> DataFrame:
    """M4 is not put to the test by a message before which its sender had sent and delivered nothing."""
    first = seen.groupBy("run", "process").agg(
        F.min("first").alias("first"),
        F.min("first_asking").alias("first_asking"),
        F.min_by("view", "first").alias("view"),
    )
    return _counted(first.where(F.col("first") == F.col("first_asking")).join(here, VIEW), {"M4": -F.col("stays")})


def _of_first_in_session(sends: DataFrame) -> DataFrame:
    """M3 is not put to the test by the first message of a session."""
    one = F.struct("stays", blocks.first_kind().alias("kind"))
    first = sends.groupBy("run", "session").agg(F.min_by(one, "first").alias("one"))
    return _counted(first.where(F.col("one.kind") != LOOSE), {"M3": -F.col("one.stays")})


def _of_mixing(sends: DataFrame) -> DataFrame:
    """M7: ordered messages that a fifo one of their session and view follows, at all who were there."""
    numbered = list(zip(blocks.kinds(), blocks.numbers(), strict=True))
    last = F.greatest(*(F.when(kind == IN_SEQUENCE, number) for kind, number in numbered))
    rows = sends.withColumn("last_fifo", F.max(last).over(whole(["place", "session"])))
    followed = _how_many((kind == IN_ORDER) & (number < F.col("last_fifo")) for kind, number in numbered)
    return _counted(rows, {"M7": followed * F.col("stays")})


def _of_order(seen: DataFrame, sends: DataFrame) -> DataFrame:
    """M5: messages that an ordered one follows, before the signal at all, after it at those whom their sender joins."""
    keys = blocks.values()
    below = _how_many(key < F.col("top") for key in keys)
    between = _how_many(~F.coalesce(key < F.col("top"), F.lit(False)) & (key < F.col("top_late")) for key in keys)
    counts = sends.select("run", "view", "process", "stays", below.alias("below"), between.alias("between"))
    movers = seen.select(*VIEW, F.explode("movers").alias("process"))
    after = counts.where(F.col("between") > 0).join(movers, [*VIEW, "process"])
    return _counted(counts, {"M5": F.col("below") * F.col("stays")}).unionByName(
        _counted(after, {"M5": F.col("between")})
    )


def _of_cohorts(views: ViewTables, here: DataFrame) -> DataFrame:
    """S8, S11 and M2: each message once for each set of processes that moved on together."""
    cohorts = moving(views.stays).select("run", "cohort", F.col("left_view").alias("view")).distinct()
    counts = {"S8": F.col("got"), "S11": F.col("ordered"), "M2": F.col("reliable")}
    return _counted(cohorts.join(here, VIEW), counts)


def _of_safe(seen: DataFrame, views: ViewTables) -> DataFrame:
    """M6: before the signal for each member of the view, after it for each that moves along, who lived on."""
    promises = F.array(
        F.struct(
            F.lit(False).alias("after"),
            F.col("members").alias("to"),
            (F.col("safe") - F.col("safe_late")).alias("safe"),
        ),
        F.struct(F.lit(True).alias("after"), F.col("movers").alias("to"), F.col("safe_late").alias("safe")),
    )
    told = seen.select(*VIEW, F.explode(promises).alias("promise")).distinct()
    asked = told.select(*VIEW, F.explode("promise.to").alias("process"), F.col("promise.safe").alias("safe"))
    rested = views.lives.where("witness").select("run", "process")
    left = views.daemon_views.where(F.col("next").isNotNull()).select("run", "view", F.col("daemon").alias("process"))
    members = asked.select(*VIEW, "process").distinct()
    lived_on = members.join(rested, ["run", "process"], "left_semi").unionByName(
        members.join(left, [*VIEW, "process"], "left_semi")
    )
    return _counted(asked.join(lived_on.distinct(), [*VIEW, "process"]), {"M6": F.col("safe")})


def _how_many(conditions: Iterable[Column]) -> Column:
    return reduce(Column.__add__, (F.coalesce(one, F.lit(False)).cast("int") for one in conditions))
