"""The cheap way first, carried out: which runs or views of a large trace are proven good, and what is found in them.

In:        a trace, and where to work.
Out:       Screened: what is proven, findings on it, and what is left to look at.
Not here:  what is a proof (checks/screen.py), what its findings count (checks/screened.py).

Stays are few even in a large trace: what is concluded from them is worked out as in a small one. A plan costs more than
the rows that it is for, so there are few, and each is kept for the next. Of a run with bad views, they are left to the
exact checks, which need them beside the messages.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from covey.analysis.checks.screen_stays import control, stays

from .checks import digests, links, screen, screened
from .claims import CLAIMS
from .findings import added_up, counted, union
from .workshop import ROWS_SMALL, Workshop


@dataclass(frozen=True)
class Screened:
    proven: DataFrame
    """Runs of which nothing is left to look at: `run`."""
    partly: DataFrame
    """Runs of which only some views are: `run`."""
    good: DataFrame
    """The views of these that are proven: `run`, `view`."""
    found: DataFrame
    """Findings on the proven runs, and on the messages of good views."""
    is_all: bool
    """There are no other runs than proven ones."""
    is_whole: bool
    """No row is missing, of whatever run."""

    def left_of(self, trace: DataFrame) -> DataFrame:
        """All rows that are to be judged exactly."""
        views = self.good.select(F.col("run").alias("good_run"), F.col("view").alias("good_view"))
        rest = trace.join(F.broadcast(self.proven), "run", "left_anti")
        is_good = [F.col("run") == F.col("good_run"), F.col("view") == F.col("good_view"), digests.is_message()]
        return rest.join(F.broadcast(views), is_good, "left_anti")


def screened_runs(trace: DataFrame, rows: int, shop: Workshop) -> Screened:
    trace = trace.withColumns({name: F.lit(None).cast("bigint") for name in CLAIMS if name not in trace.columns})
    with shop.small(True):
        each_stay = shop.keep("screen-stays", stays(control(trace)))
        control_rows, unclaimed = each_stay.agg(F.sum("rows"), F.sum("unclaimed")).collect()[0]
    is_small, is_claimed = (control_rows or 0) <= ROWS_SMALL, not unclaimed
    messages = digests.narrow(trace)
    found = digests.digests(messages if is_claimed else links.found(messages), each_stay)
    found = shop.keep_few("screen-digests", found) if is_small else shop.keep("screen-digests", found)
    with shop.small(is_small):
        seen = shop.keep("screen-seen", screen.seen(each_stay, digests.per_stay(found)))
        doubts = shop.keep("screen-doubts", screen.doubts(seen, found, is_claimed))
        (rows_of_daemons,) = seen.agg(F.sum("rows")).collect()[0]
        subjects = _subjects(doubts)
    more = {}
    if rows_of_daemons != rows:
        more["screen-others"] = screen.others(trace)
    if screen.OF_SITE in subjects:
        more["screen-shared"] = screen.shared_places(doubts, seen, digests.sends(trace))
    if more:
        looked_up = [shop.keep_few(name, table) for name, table in more.items()]
        doubts = union([doubts.where(F.col("subject") != screen.OF_SITE), *looked_up])
        subjects = _subjects(doubts)
    with shop.small(is_small):
        return _concluded(seen, digests.per_session(found), doubts, subjects, shop)


def _subjects(doubts: DataFrame) -> set[str]:
    return {row["subject"] for row in doubts.select("subject").distinct().collect()}


def _concluded(seen: DataFrame, sessions: DataFrame, doubts: DataFrame, subjects: set[str], shop: Workshop) -> Screened:
    doubts = doubts.where(F.col("subject") != screen.OF_ROWS)
    is_all = subjects <= {screen.OF_ROWS}
    runs = seen.where(F.col("run").isNotNull()).select("run", "run_id").distinct()
    good = seen.where(F.col("view").isNotNull())
    if is_all:
        good, proven, partly = good.withColumn("proven", F.lit(True)), runs, runs.limit(0)
    else:
        vetoed = doubts.where(F.col("subject") == screen.OF_RUN)
        bad = doubts.where(F.col("subject") == screen.OF_VIEW)
        proven = runs.join(doubts, "run_id", "left_anti")
        partly = runs.join(doubts, "run_id", "left_semi").join(vetoed, "run_id", "left_anti")
        good = good.join(vetoed, "run_id", "left_anti").join(bad, ["run_id", "view"], "left_anti")
        marks = proven.select("run_id", F.lit(True).alias("proven"))
        good = shop.keep("screen-good", good.join(marks, "run_id", "left").fillna(False, ["proven"]))
    return Screened(
        proven=proven.select("run"),
        partly=partly.select("run"),
        good=good.where(~F.col("proven")).select("run", "view").distinct(),
        found=added_up(counted(screened.premises(good, sessions))),
        is_all=is_all,
        is_whole=screen.OF_ROWS not in subjects,
    )
