"""How often each promise was put to the test in views that the screen has proven: what the exact checks would count.

In:        what was seen in each stay and session of good views (digests.py), and all views.
Out:       premises: guarantee, run, level, premises.
Not here:  the proof.

All who were in a good view have delivered the same messages, once, and the same of them after the signal. So what the
exact checks count message by message is a matter of stays and sums. What each line counts is explained where the exact
check counts it, in the file of its family. Where only some views of a run are good, what ties them to the others is not
counted: what is first is so among the good ones (M3, M4), and growth is from one of them to the next (M5).
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.tables.build import ViewTables
from covey.analysis.tables.cohorts import moving
from covey.analysis.tables.columns import CAUSAL, RELIABLE

VIEW = ["run", "view"]


def premises(seen: DataFrame, sent: DataFrame, views: ViewTables) -> DataFrame:
    """All of one table each, put together. `seen`: one row a stay with messages, of good views alone."""
    here = _views(seen)
    sent = sent.join(seen.select("run", "view", "process", "place"), "place").join(here.select(*VIEW, "stays"), VIEW)
    parts = [
        _of_first_in_session(sent),
        _of_sends(seen, sent),
        _of_stays(seen),
        _of_growth(seen),
        _of_first_rows(seen, here),
        _of_cohorts(views, here),
        _of_safe(seen, views),
    ]
    found = _together(parts).where(F.col("premises") > 0)
    return found.select("guarantee", "run", F.lit("S").alias("level"), "premises")


def by_sends(seen: DataFrame, digests: DataFrame, sends: DataFrame) -> DataFrame:
    """Of each process, view and session: how many of its sends are followed by what puts them to the test."""
    fifo = digests.where("sent").groupBy("place", "session").agg(F.max("last_fifo").alias("last_fifo"))
    known = fifo.join(seen.select("place", "top", "top_late"), "place")
    is_below = F.coalesce(F.col("key") < F.col("top"), F.lit(False))
    return (
        sends.join(F.broadcast(known), ["place", "session"])
        .groupBy("place", "session")
        .agg(
            F.min("seq").alias("first"),
            F.min_by("strength", "seq").alias("strength"),
            F.count_if((F.col("strength") >= CAUSAL) & (F.col("seq") < F.col("last_fifo"))).alias("before_fifo"),
            F.count_if(is_below).alias("below"),
            F.count_if(~is_below & (F.col("key") < F.col("top_late"))).alias("between"),
        )
    )


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


def _of_first_in_session(sent: DataFrame) -> DataFrame:
    """M3 is not put to the test by the first message of a session."""
    first = sent.groupBy("run", "session").agg(F.min_by(F.struct("stays", "strength"), "first").alias("one"))
    return _counted(first.where(F.col("one.strength") > RELIABLE), {"M3": -F.col("one.stays")})


def _of_sends(seen: DataFrame, sent: DataFrame) -> DataFrame:
    """M7: ordered messages that a fifo one of their session and view follows, at all who were there.

    M5: messages that an ordered one follows, before the signal at all, after it at those whom their sender joins.
    """
    movers = seen.select(*VIEW, F.explode("movers").alias("process"))
    after = sent.where(F.col("between") > 0).join(movers, [*VIEW, "process"])
    counts = {"M7": F.col("before_fifo") * F.col("stays"), "M5": F.col("below") * F.col("stays")}
    return _counted(sent, counts).unionByName(_counted(after, {"M5": F.col("between")}))


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
