"""The cheap way first, carried out: which runs of a large trace are proven good, and what is found in them.

In:        a trace, and where to work.
Out:       Screened: the proven runs, findings on them, and whether anything is left to look at.
Not here:  what is a proof (checks/screen.py), what its findings count (checks/screened.py).

Views and ends are few even in a large trace: what is concluded from them is worked out as in a small one.
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
    """Their names, `run`."""
    found: DataFrame
    """Findings on the proven runs."""
    is_all: bool
    """There are no other runs."""
    is_whole: bool
    """No row is missing, of whatever run."""


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
        is_claimed = screen.claims_are_there(control)
    messages = digests.narrow(trace)
    found = shop.keep("screen-digests", digests.digests(messages if is_claimed else links.found(messages), stays))
    with shop.small(is_small):
        seen = shop.keep("screen-seen", screen.located(digests.per_stay(found), stays))
        histories = shop.keep("screen-histories", screen.histories(control, seen))
        threads = shop.keep("screen-threads", screen.threads(found, stays))
        runs = control.select("run", "level").distinct().withColumn("run_id", F.xxhash64("run"))
        doubtful = screen.unproven(seen, threads, stays, views.lives).unionByName(
            runs.where(F.col("level") != "S").select("run_id")
        )
        if is_claimed:
            doubtful = doubtful.unionByName(screen.unlinked(histories, threads))
        proven = shop.keep(
            "screen-proven", runs.select("run", "run_id").distinct().join(doubtful, "run_id", "left_anti")
        )
        mine = shop.keep("screen-mine", seen.join(proven.select("run"), "run", "left_semi"))
    of_proven = ViewTables(
        **{name: one.join(proven.select("run"), "run", "left_semi") for name, one in vars(views).items()}
    )
    with ThreadPoolExecutor(1) as pool:
        counting = pool.submit(shop.keep, "screen-sends", screened.by_sends(mine, found, digests.sends(trace)))
        # To write these plans down takes as long, and needs no core of Spark's.
        of_views = [check_views(of_proven), check_liveness(of_proven), check_signals(of_proven)]
        by_sends = counting.result()
    with shop.small(is_small):
        every = runs.select("run_id").unionByName(seen.select("run_id"))
        tested = counted(screened.premises(mine, by_sends, of_proven))
        return Screened(
            proven=proven.select("run"),
            found=shop.keep("screen-found", added_up(union([tested, *of_views]))),
            is_all=every.join(proven, "run_id", "left_anti").isEmpty(),
            is_whole=screen.torn(histories).isEmpty(),
        )
