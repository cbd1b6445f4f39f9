"""How often each promise was put to the test in views that the screen has proven: what the exact checks would count.

In:        what was seen in each stay of good views (screen.py), and what was sent in each session (digests.py).
Out:       premises: guarantee, run, level, premises.
Not here:  the proof.

All who were in a good view have delivered the same messages, once, and the same of them after the signal. So what the
exact checks count message by message is a matter of stays and sums. What each line counts is explained where the exact
check counts it, in the file of its family. Where only some views of a run are good, what ties them to the others is not
counted: what is first is so among the good ones (M3, M4), and growth is from one of them to the next (M5). Of views
themselves it is counted only if all of the run is proven (`proven`); otherwise the exact checks look at them.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.tables.columns import RELIABLE, whole

from .digests import SERVICE_BITS


def premises(good: DataFrame, sessions: DataFrame) -> DataFrame:
    """`good`: the stays of good views, with whether their run is `proven`."""
    found = _of_stays(good).union(_of_sessions(good, sessions)).groupBy("guarantee", "run")
    premises = found.agg(F.sum("premises").alias("premises")).where(F.col("premises") > 0)
    return premises.select("guarantee", "run", F.lit("S").alias("level"), "premises")


def _of_stays(good: DataFrame) -> DataFrame:
    sent, got, ordered, reliable = (F.col(name) for name in ("sent", "got", "ordered", "reliable"))
    proven = F.col("proven").cast("bigint")
    lives_on = ~F.col("is_last") | F.col("witness")
    # A message before which its sender had sent and delivered nothing does not put M4 to the test.
    is_very_first = (F.col("first") == F.col("first_asking")) & (
        F.col("first") == F.min("first").over(whole(["run_id", "pid"]))
    )
    # All but the first of each process are ordered above another.
    with_order = F.when(ordered > 0, F.col("stay"))
    is_growth = with_order > F.min(with_order).over(whole(["run_id", "pid"]))
    # Of what is ordered and comes before the signal, all but the first of the view come after something.
    early = ordered - F.col("ordered_late")
    is_first_ordered = (early > 0) & (F.col("lowest").bitwiseAND(1) == 0)
    # Those who leave a view together are one cohort: it is counted once.
    counts = {
        "S1": sent + got + proven * F.col("signals"),
        "S2": proven,
        "S3": _if(F.col("came"), proven),
        # All but the first who was told of a view.
        "S4": _if(~F.col("heads"), proven),
        "S5": proven,
        "S6": got,
        "S7": got,
        "S8": _if(F.col("leads"), got),
        # All but the first who delivered a message.
        "S9": got - sent,
        "S10": got,
        "S11": _if(F.col("leads"), ordered) + _if(F.col("signals") > 0, proven),
        "S12": _if(lives_on, sent),
        "S13": _if(F.col("is_last") & F.col("witness"), sent),
        "S14": _if(F.col("is_final"), proven),
        "S15": _if(F.col("is_final"), proven),
        "M2": reliable + _if(lives_on, F.col("sent_reliable")) + _if(F.col("leads"), reliable),
        "M3": F.col("fifo") + ordered,
        "M4": ordered - _if(is_very_first, F.col("stays")),
        "M5": sent + got + _if(is_growth, F.lit(1)) + early - _if(is_first_ordered, F.lit(1)),
        # Before the signal for all who lived on, after it for all who moved on.
        "M6": _if(lives_on, F.col("safe") - F.col("safe_late")) + _if(~F.col("is_last"), F.col("safe_late")),
    }
    return _by_guarantee(good.select("run", *(count.alias(name) for name, count in counts.items())))


def _of_sessions(good: DataFrame, sessions: DataFrame) -> DataFrame:
    """M7: sessions in a view with a fifo message after an ordered one, at all who were there.

    M3 is not put to the test by the first message of a session.
    """
    is_first = F.col("begins") == F.min("begins").over(whole(["run", "session"]))
    is_strong = F.col("begins").bitwiseAND((1 << SERVICE_BITS) - 1) > RELIABLE
    rows = sessions.join(good.select("stay_id", "run", "stays"), "stay_id").select(
        "run",
        _if(F.col("mixed"), F.col("stays")).alias("M7"),
        (-_if(is_first & is_strong, F.col("stays"))).alias("M3"),
    )
    return _by_guarantee(rows)


def _if(condition: Column, count: Column) -> Column:
    return F.when(condition, count).otherwise(F.lit(0))


def _by_guarantee(rows: DataFrame) -> DataFrame:
    """The sums of all columns for each run, one row a guarantee."""
    names = tuple(name for name in rows.columns if name != "run")
    sums = rows.groupBy("run").agg(*(F.sum(name).alias(name) for name in names))
    return sums.unpivot("run", names, "guarantee", "premises")
