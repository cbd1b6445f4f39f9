"""The stays of daemons as the screen sees them: views, signals and ends, and whether all is as it must be.

In:        the rows of daemons that are no messages.
Out:       one row for each view that a process installed; and one, with no view, for what it wrote before the first.
Not here:  messages (digests.py), what all who were in a view have in common (screen.py).

A stay is `odd` if it may break a promise about views, or is so rare that the exact checks had better look at it:
  S1   its view and its signal name the view that they happen in
  S2   its process is a member
  S3   its rank is above that of the view before
  S5   who leaves it for the same view are the transitional set of that, and who comes from nowhere is so alone
  S11  it has one signal at most
  S14  who ends in it, connected to others and alive, is connected to exactly its members
A run with a row that stands for nothing here is left to the exact checks: its stays are `alien`.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.checks import links
from covey.analysis.claims import MESSAGES
from covey.analysis.tables.columns import as_set, ordered, until, whole

from .digests import holds, pid, run_id, stay_id

OF_DAEMONS: Final = (
    *("recover", "crash", "stop", "view", "transitional", "link_up", "link_down", "state", "calm", "gap", "end"),
)
"""What a daemon writes besides messages. Of a part of them nothing is concluded."""
LIFE: Final = ["run", "process"]


def control(trace: DataFrame) -> DataFrame:
    """All rows of daemons but the messages. Written so that row groups with nothing else are passed over."""
    event = F.col("event")
    return trace.where((F.col("level") == "S") & (event.isNull() | ~event.isin(*MESSAGES)))


def stays(control: DataFrame) -> DataFrame:
    nth = F.count(F.when(F.col("event") == "view", 1)).over(until(LIFE, "index"))
    found = _chained(_gathered(control.withColumn("nth", nth)))
    together = F.array_sort(F.collect_set("process").over(whole(["run", "view", "next_view"])))
    company = F.when(F.col("next_view").isNotNull(), together)
    visit = F.row_number().over(ordered([*LIFE, "view"], "nth"))
    found = found.withColumns({"company": company, "visit": visit})
    return found.select(
        *LIFE,
        run_id().alias("run_id"),
        pid().alias("pid"),
        # No message belongs where there is no view, nor to a second stay in one: no two stays have the same id.
        F.when(F.col("view").isNotNull() & (F.col("visit") == 1), stay_id()).alias("stay_id"),
        *("view", "stay", "end", "signal", "signals", "rank", "members", "witness"),
        *("rows", "unclaimed", "low", "high", "told", "history"),
        F.col("previous").isNotNull().alias("came"),
        F.col("next_view").isNull().alias("is_last"),
        # Whether this is the first of several who leave for the same view.
        holds((F.size("company") > 1) & (F.col("company")[0] == F.col("process"))).alias("leads"),
        (_is_final() & (F.col("nth") > 0)).alias("is_final"),
        _is_alien().alias("alien"),
        _is_odd().alias("odd"),
    )


def _gathered(control: DataFrame) -> DataFrame:
    """One row for each stay, with what is in it."""
    event, index = F.col("event"), F.col("index")
    is_view, is_signal = event == "view", event == "transitional"
    installed = F.struct(
        index.alias("stay"),
        F.col("view").alias("before"),
        F.col("view_new").alias("view"),
        F.col("view_rank").alias("rank"),
        as_set("members").alias("members"),
        as_set("transitional").alias("transitional"),
    )
    signalled = F.struct(index.alias("signal"), "view")
    return control.groupBy(*LIFE, "nth").agg(
        F.max(F.when(is_view, installed)).alias("installed"),
        F.count_if(is_signal).alias("signals"),
        F.min(F.when(is_signal, signalled)).alias("signalled"),
        F.max(F.when(event == "calm", F.struct("index", as_set("members").alias("set")))).alias("calm"),
        F.max(event == "end").alias("ended"),
        F.max(event.isin("crash", "stop")).alias("departed"),
        F.max(event == "gap").alias("told"),
        F.max(~holds(event.isin(*OF_DAEMONS))).alias("unknown"),
        F.count("*").alias("rows"),
        F.count_if(F.col("claim_top").isNull()).alias("unclaimed"),
        F.min("index").alias("low"),
        F.max("index").alias("high"),
        F.bit_xor(links.in_history(F.col("claim_top"), F.col("claim_ordered"))).alias("history"),
    )


def _chained(gathered: DataFrame) -> DataFrame:
    """With the stays before and after, and what is known of the whole life."""
    order, life = ordered(LIFE, "nth"), whole(LIFE)
    found = gathered.select(
        *(*LIFE, "nth", "signals", "signalled", "told", "unknown", "rows", "unclaimed", "low", "high", "history"),
        "installed.*",
        F.lag("installed").over(order).alias("previous"),
        F.lead("installed").over(order).alias("next"),
        F.max("calm").over(life)["set"].alias("calm"),
        F.max("ended").over(life).alias("ended"),
        F.max("departed").over(life).alias("departed"),
    )
    return found.withColumns(
        {
            "witness": F.col("ended") & ~F.col("departed"),
            "signal": F.col("signalled.signal"),
            "next_view": F.col("next.view"),
            "end": F.col("next.stay"),
        }
    )


def _is_final() -> Column:
    """The last that is known of a process which was told whom it is connected with, and did not end by itself."""
    return F.col("next").isNull() & F.col("calm").isNotNull() & ~F.col("departed")


def _is_alien() -> Column:
    is_named = F.col("view").isNotNull() & F.col("rank").isNotNull() & F.col("members").isNotNull()
    return F.col("unknown") | ((F.col("nth") > 0) & ~is_named)


def _is_odd() -> Column:
    came, first = F.col("previous").isNotNull(), F.col("nth") == 0
    is_right = (
        F.col("before").eqNullSafe(F.col("previous.view"))
        & ((F.col("signals") == 0) | (F.col("signalled.view") == F.col("view")))
        & (F.col("signals") <= 1)
        & F.array_contains("members", F.col("process"))
        & (~came | (F.col("rank") > F.col("previous.rank")))
        & (came | (F.col("transitional") == F.array("process")))
        & (F.col("next").isNull() | (F.col("next.transitional") == F.col("company")))
        & (~_is_final() | (F.col("ended") & (F.col("calm") == F.col("members"))))
    )
    return F.when(first, (F.col("signals") > 0) | _is_final()).otherwise(~holds(is_right))
