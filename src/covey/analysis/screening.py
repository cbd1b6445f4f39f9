"""The cheap way first, carried out: which runs or views of a large trace are proven good, and what is found in them.

In:        a trace, and where to work.
Out:       Screened: what is proven, findings on it, and what is left to look at.
Not here:  what is a proof (checks/screen.py), what its findings count (checks/screened.py).

Views and ends are few even in a large trace: what is concluded from them is worked out as in a small one. Of a run with
bad views, they are left to the exact checks, which need them beside the messages: so they are counted once.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from covey.analysis.checks import digests, links, screen, screened
from covey.analysis.checks.cohorts import signals as check_signals
from covey.analysis.checks.liveness import check as check_liveness
from covey.analysis.checks.views import of_views as check_views
from covey.analysis.claims import CLAIMS
from covey.analysis.findings import added_up, counted, union
from covey.analysis.tables.build import ViewTables, build_views
from covey.analysis.workshop import ROWS_SMALL, Workshop


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


def screened_runs(trace: DataFrame, shop: Workshop) -> Screened:
    trace = trace.withColumns({name: F.lit(None).cast("bigint") for name in CLAIMS if name not in trace.columns})
    control = shop.keep("screen-control", screen.control(trace))
    is_small = control.count() <= ROWS_SMALL
    with shop.small(is_small):
        control = control.coalesce(1) if is_small else control
        views = build_views(
            control.where(F.col("level") == "S"), lambda name, frame: shop.keep(f"screen-{name}", frame)
        )
        stays = shop.keep("screen-compared", screen.stays_to_compare(views.stays))
        is_claimed = screen.unclaimed(control).isEmpty()
    messages, sends = digests.narrow(trace), digests.sends(trace)
    found = shop.keep("screen-digests", digests.digests(messages if is_claimed else links.found(messages), stays))
    shared = shop.keep("screen-shared", screen.shared_places(stays, sends))
    with shop.small(is_small):
        seen = shop.keep("screen-seen", screen.located(digests.per_stay(found), stays))
        histories = shop.keep("screen-histories", screen.histories(control, seen))
        threads = shop.keep("screen-threads", screen.threads(found, stays))
        vetoed = screen.vetoed(seen, threads, stays, control)
        if is_claimed:
            vetoed = vetoed.unionByName(screen.unlinked(histories, threads))
        bad = screen.bad_views(seen, stays, views.lives, shared)
        doubts = shop.keep("screen-doubts", vetoed.withColumn("view", F.lit(None).cast("string")).unionByName(bad))
        vetoed = doubts.where(F.col("view").isNull())
        runs = control.select("run").distinct().withColumn("run_id", F.xxhash64("run"))
        proven = shop.keep("screen-proven", runs.join(doubts, "run_id", "left_anti"))
        partly = runs.join(doubts, "run_id", "left_semi").join(vetoed, "run_id", "left_anti").select("run")
        good = seen.join(vetoed, "run_id", "left_anti").join(doubts, ["run_id", "view"], "left_anti")
        good = shop.keep("screen-good", good)
    with ThreadPoolExecutor(1) as pool:
        counting = pool.submit(shop.keep, "screen-sends", screened.by_sends(good, found, sends))
        # To write these plans down takes as long, and needs no core of Spark's. Of other runs they are judged exactly.
        of_proven = _only(views, proven)
        of_views = [check_views(of_proven), check_liveness(of_proven), check_signals(of_proven)]
        by_sends = counting.result()
    with shop.small(is_small):
        every = runs.select("run_id").unionByName(seen.select("run_id"))
        tested = counted(screened.premises(good, by_sends, views))
        return Screened(
            proven=proven.select("run"),
            partly=partly,
            good=good.join(partly, "run", "left_semi").select("run", "view").distinct(),
            found=shop.keep("screen-found", added_up(union([tested, *of_views]))),
            is_all=every.join(proven, "run_id", "left_anti").isEmpty(),
            is_whole=screen.torn(histories).isEmpty(),
        )


def _only(views: ViewTables, runs: DataFrame) -> ViewTables:
    return ViewTables(**{name: one.join(runs.select("run"), "run", "left_semi") for name, one in vars(views).items()})
