"""What groups have to do with daemons and with names: the sides of C2, and C4, C7, C8.

In:        Tables.
Out:       findings.
Not here:  the same view and the same messages of C2 (delivery.py, cohorts.py).

  C2  causal, agreed and safe messages are on the side of the group's signal on which they are of the daemon's
  C4  a daemon change that touches no member of a group, and after whose signal nothing agreed or safe of the group
      comes, gives it no signal and no view; one that takes members away gives it both
  C7  when a client departs, it alone leaves its groups, and it does leave them
  C8  a private name belongs to one session at a time, and who is refused is told why
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from covey.analysis.findings import broken, each, listed, marked, union, weighed
from covey.analysis.tables.build import Tables
from covey.analysis.tables.columns import (
    CAUSAL,
    PROCESS,
    STAY,
    before,
    is_client,
    life_name,
    life_number,
    ordered,
)

from .changes import changed_by


def check(tables: Tables) -> DataFrame:
    stays = tables.stays.where(is_client())
    return union(
        [
            sides(tables),
            *network_views(tables, stays),
            stayed(tables, stays),
            *departures(tables, stays),
            *names(tables),
        ]
    )


def sides(tables: Tables) -> DataFrame:
    """C2."""
    held = tables.held.where(is_client() & (F.col("strength") >= CAUSAL))
    return weighed(
        held.join(tables.passed, ["run", "daemon", "place"]),
        "C2",
        F.col("after") != F.col("after_signal"),
        [
            F.col("process"),
            " and its daemon ",
            F.col("daemon"),
            " delivered ",
            F.col("message"),
            " on different sides of their signals in ",
            F.col("view"),
        ],
        view="view",
        message="message",
        evidence=[("process", "index"), ("daemon", "passed")],
    )


def network_views(tables: Tables, stays: DataFrame) -> list[DataFrame]:
    """C4: a network view came after a signal, and something touched the group."""
    came = stays.where(~F.col("light") & F.col("previous").isNotNull())
    signalled = weighed(
        came,
        "C4",
        F.col("signals_before") == 0,
        [F.col("process"), " got network view ", F.col("view"), " of ", F.col("grp"), " without a signal"],
        view="view",
        evidence=[("process", "stay")],
    )
    idle = broken(
        _untouched(tables, came),
        "C4",
        [
            F.col("process"),
            " got network view ",
            F.col("view"),
            " of ",
            F.col("grp"),
            ", but nothing touched the group",
        ],
        view="view",
        evidence=[("process", "stay")],
    )
    return [signalled, idle]


def _untouched(tables: Tables, came: DataFrame) -> DataFrame:
    """Certainly: the same members, all at daemons that moved along, and nothing of the group after the signal."""
    same = (F.col("members") == F.col("previous.members")) & (F.col("members") == F.col("transitional"))
    change = tables.daemon_views.where(F.col("previous").isNotNull()).select(
        "run",
        "daemon",
        F.col("view").alias("daemon_view"),
        F.col("transitional").alias("moved"),
        F.col("previous.stay").alias("daemon_stay"),
    )
    found = came.where(same).join(change, ["run", "daemon", "daemon_view"])
    homes = tables.lives.where(is_client()).select(
        "run", F.col("process").alias("member"), F.col("daemon").alias("home")
    )
    at_homes = found.select("run", "process", "grp", "stay", "moved", F.explode("members").alias("member")).join(
        homes, ["run", "member"], "left"
    )
    elsewhere = at_homes.where(F.col("home").isNull() | ~F.array_contains("moved", F.col("home")))
    found = found.join(
        elsewhere.select("run", "process", "grp", "stay"), ["run", "process", "grp", "stay"], "left_anti"
    )
    busy, somewhere = _busy(tables)
    found = found.join(somewhere, ["run", "daemon", "daemon_stay"], "left_anti")
    return found.join(busy, ["run", "daemon", "daemon_stay", "grp"], "left_anti")


def _busy(tables: Tables) -> tuple[DataFrame, DataFrame]:
    """Daemon stays with something agreed or safe after the signal: of which group, or of a group that nobody knows."""
    groups = (
        tables.messages.where(is_client() & F.col("place").isNotNull())
        .groupBy("run", "place")
        .agg(F.max_by("groups", "message").alias("to_groups"))
    )
    after = tables.held.where(~is_client() & F.col("after") & (F.col("strength") >= CAUSAL))
    place = F.struct(
        F.col("row_order_view").alias("view"),
        F.col("row_key.stamp").alias("stamp"),
        F.col("row_key.site").alias("site"),
    )
    known = F.col("row_order_view").isNotNull() & F.col("row_key").isNotNull()
    after = after.select(
        "run", F.col("process").alias("daemon"), F.col("stay").alias("daemon_stay"), F.when(known, place).alias("place")
    )
    after = after.join(groups, ["run", "place"], "left")
    keys = ["run", "daemon", "daemon_stay"]
    of_groups = (
        after.where(F.col("to_groups").isNotNull()).select(*keys, F.explode("to_groups").alias("grp")).distinct()
    )
    return of_groups, after.where(F.col("to_groups").isNull()).select(*keys).distinct()


def stayed(tables: Tables, stays: DataFrame) -> DataFrame:
    """C4: no daemon change that took members away passed a client by while it stayed in one view."""
    ended = tables.lives.where(~is_client() & F.col("witness")).select(
        "run", F.col("process").alias("daemon"), F.lit(True).alias("daemon_rests")
    )
    views = tables.daemon_views.select("run", "daemon", "view", "nth", F.col("transitional").alias("moved"))
    last_of_all = views.groupBy("run", "daemon").agg(F.max("nth").alias("last_nth"))
    stays = stays.join(ended, ["run", "daemon"], "left").join(last_of_all, ["run", "daemon"])
    next_view = F.split("next.view", "/", 2)[0]
    stays = stays.withColumn("to_view", F.coalesce(next_view, F.col("left.view")))
    begins = views.select("run", "daemon", F.col("view").alias("daemon_view"), F.col("nth").alias("from_nth"))
    ends = views.select("run", "daemon", F.col("view").alias("to_view"), F.col("nth").alias("to_nth"))
    stays = stays.join(begins, ["run", "daemon", "daemon_view"]).join(ends, ["run", "daemon", "to_view"], "left")
    at_rest = (
        F.col("to_view").isNull() & F.col("witness") & F.coalesce("daemon_rests", F.lit(False)) & F.col("next").isNull()
    )
    stays = stays.withColumn("to_nth", F.coalesce("to_nth", F.when(at_rest, F.col("last_nth"))))
    network_next = F.when(F.col("next.view").endswith("/net"), next_view)
    changes = stays.withColumn("network_next", network_next).join(
        views.select("run", "daemon", F.col("view").alias("change_view"), F.col("nth").alias("change_nth"), "moved"),
        ["run", "daemon"],
    )
    changes = changes.where((F.col("change_nth") > F.col("from_nth")) & (F.col("change_nth") <= F.col("to_nth")))
    changes = changes.where(F.col("network_next").isNull() | (F.col("network_next") != F.col("change_view")))
    homes = tables.lives.where(is_client()).select(
        "run", F.col("process").alias("member"), F.col("daemon").alias("home")
    )
    asked = each(changes, "members", "member").join(homes, ["run", "member"], "left")
    return weighed(
        asked,
        "C4",
        ~F.array_contains("moved", F.col("home")),
        [
            F.col("process"),
            " stayed in ",
            F.col("view"),
            " of ",
            F.col("grp"),
            " when its daemon came to ",
            F.col("change_view"),
            " without that of ",
            F.col("member"),
        ],
        premises=F.col("is_first"),
        view="view",
        evidence=[("process", "stay")],
    )


def departures(tables: Tables, stays: DataFrame) -> list[DataFrame]:
    """C7."""
    gone = changed_by(stays.where(F.col("light") & (F.col("cause") == "disconnect")))
    witnesses = tables.lives.where(is_client() & F.col("witness")).select("run", F.col("process").alias("mover"))
    gone = gone.withColumn("mover", F.when(F.size("who") == 1, F.array_min("who")))
    took = weighed(
        marked(gone, witnesses, ["run", "mover"]),
        "C7",
        F.col("found") | (F.size("who") != 1),
        [
            "view ",
            F.col("view"),
            " of ",
            F.col("grp"),
            " at ",
            F.col("process"),
            ": a departure took away ",
            listed("who"),
            ", who did not depart alone",
        ],
        view="view",
        evidence=[("process", "stay")],
    )
    resting = tables.memberships.where(F.col("open") & F.col("witness"))
    departed = tables.lives.where(is_client() & F.col("departed")).select(
        "run", F.col("process").alias("member"), F.col("departed_at")
    )
    some = resting.join(departed.select("run").distinct(), ["run"], "left_semi")
    lingers = weighed(
        each(some, "members", "member").join(departed, ["run", "member"], "left"),
        "C7",
        F.col("departed_at").isNotNull(),
        [
            F.col("process"),
            " rests in ",
            F.col("view"),
            " of ",
            F.col("grp"),
            " with ",
            F.col("member"),
            ", who departed",
        ],
        premises=F.col("is_first"),
        view="view",
        evidence=[("process", "stay"), ("member", "departed_at")],
    )
    return [took, lingers]


def names(tables: Tables) -> list[DataFrame]:
    """C8."""
    lives = tables.lives.where(is_client())
    refused = lives.where("refused")
    told = weighed(
        refused,
        "C8",
        (F.col("rows") > 1) | (F.coalesce("first_cause", F.lit("")) == ""),
        [F.col("process"), " was refused without a reason, or went on nevertheless"],
        evidence=[("process", F.lit(0))],
    )
    number = life_number(F.col("process"))
    earlier = F.lag(F.struct("process", "witness")).over(ordered(["run", "level", "name", "daemon"], number))
    pairs = lives.where(~F.col("refused")).withColumn("earlier", earlier).where(F.col("earlier").isNotNull())
    twice = weighed(
        pairs,
        "C8",
        F.col("earlier.witness"),
        [F.col("process"), " was let in, but ", F.col("earlier.process"), " of the same name never departed"],
        evidence=[("process", F.lit(0)), (F.col("earlier.process"), F.lit(0))],
    )
    return [told, twice, _names_seen(tables)]


def _names_seen(tables: Tables) -> DataFrame:
    """No view holds two sessions of a name, and none comes back after a later one was seen."""
    seen = tables.stays.where(is_client()).select(*STAY, "view", F.explode("members").alias("member"))
    seen = seen.withColumn("life", life_name(F.col("member"))).withColumn("number", life_number(F.col("member")))
    once = seen.groupBy(*STAY, "view", "life").agg(
        F.count("*").alias("sessions"), F.min("number").alias("number"), F.max("number").alias("highest")
    )
    newest = F.max("highest").over(before([*PROCESS, "life"], "stay"))
    once = once.withColumn("newest", newest)
    several = (F.col("newest") != F.col("highest")) | (F.col("sessions") > 1)
    return weighed(
        once,
        "C8",
        (F.col("sessions") > 1) | (F.col("number") < F.col("newest")),
        [
            F.col("process"),
            " saw a second session of ",
            F.col("life"),
            ", or an earlier one again, in ",
            F.col("view"),
            " of ",
            F.col("grp"),
        ],
        premises=several,
        view="view",
        evidence=[("process", "stay")],
    )
