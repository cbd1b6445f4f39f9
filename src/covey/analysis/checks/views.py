"""The views that processes install: S1 to S5, and the agreement on them that is also C3.

In:        Tables.
Out:       findings.
Not here:  why a view of a group came (changes.py), whether views stop (liveness.py).

  S1  every delivery, send and signal happens in the view that its row names, and in one at all
  S2  a process is a member of every view it installs
  S3  the rank of the views grows at each process; at level C in each group
  S4  equal ids, equal members and equal rank
  S5  the transitional set holds exactly those who came along from the same view; at level C only those, and, if their
      daemons came along too, all of them
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.findings import broken, listed, text, union, weighed
from covey.analysis.tables.build import Tables
from covey.analysis.tables.columns import PROCESS, is_client, ordered, whole

VIEW = ["run", "level", "grp", "view"]


def check(tables: Tables) -> DataFrame:
    return union(
        [
            signals_in_view(tables),
            messages_in_view(tables),
            self_inclusion(tables),
            monotonicity(tables),
            agreement(tables),
            transitional_set(tables),
        ]
    )


def signals_in_view(tables: Tables) -> DataFrame:
    """S1."""
    departed = tables.lives.select(*PROCESS, "departed_at")
    marks = tables.marks.where(F.col("event").isin("view", "transitional", "self_leave")).join(departed, PROCESS)
    gone = is_client() & F.coalesce(F.col("index") > F.col("departed_at"), F.lit(False))
    lost = (F.col("event") == "transitional") & F.col("current").isNull()
    # At level S a leave is nothing, and whether a signal is in a view is asked of its row's view too.
    return weighed(
        marks,
        "S1",
        ~F.col("view").eqNullSafe(F.col("current")) | lost | gone,
        [F.col("event"), " names view ", _name("view"), ", but happened in ", _name("current")],
        premises=F.col("event") == "transitional",
        view="current",
        evidence=[("process", "index")],
    )


def _name(view: str) -> Column:
    """A view for people; rows have an empty name where they have none."""
    return text(F.nullif(F.col(view), F.lit("")))


def messages_in_view(tables: Tables) -> DataFrame:
    """S1 for sends and deliveries."""
    stays = tables.stays.select(*PROCESS, "grp", "stay", F.col("view").alias("current"))
    placed = tables.inside.join(stays, [*PROCESS, "grp", "stay"], "left")
    here = F.when(is_client(), F.coalesce("current", F.lit(""))).otherwise(F.col("current"))
    placed = placed.withColumn("matches", F.col("named").eqNullSafe(here))
    found = placed.groupBy(*PROCESS, "index").agg(
        F.min("matches").alias("matches"),
        F.count("current").alias("in_views"),
        F.count("*").alias("in_groups"),
        F.array_join(F.collect_list(_name("named")), ", ").alias("named"),
        F.array_join(F.collect_list(_name("current")), ", ").alias("currents"),
    )
    traffic = tables.traffic.select(
        *PROCESS, "index", "event", "message", "is_delivery", "is_written_to", "groups", "views"
    )
    found = traffic.join(found, [*PROCESS, "index"], "left").join(tables.lives.select(*PROCESS, "departed_at"), PROCESS)
    gone = is_client() & F.coalesce(F.col("index") > F.col("departed_at"), F.lit(False))
    addressed = ~is_client() | (F.size("groups") > 0)
    nowhere = (~is_client() | F.col("is_delivery")) & (F.coalesce("in_views", F.lit(0)) == 0)
    nowhere &= ~F.col("is_written_to")
    uneven = is_client() & (F.size("groups") != F.size("views"))
    wrong = addressed & (~F.coalesce("matches", F.lit(False)) | nowhere | uneven)
    return weighed(
        found,
        "S1",
        gone | wrong,
        [
            F.col("event"),
            " of ",
            F.col("message"),
            " names view ",
            text("named"),
            ", but happened in ",
            text("currents"),
        ],
        premises=addressed,
        message="message",
        evidence=[("process", "index")],
    )


def self_inclusion(tables: Tables) -> DataFrame:
    """S2."""
    return weighed(
        tables.stays,
        "S2",
        ~F.array_contains("members", F.col("process")),
        [F.col("process"), " installed ", F.col("view"), " of ", listed("members"), " without itself"],
        view="view",
        evidence=[("process", "stay")],
    )


def monotonicity(tables: Tables) -> DataFrame:
    """S3."""
    order = ordered([*PROCESS, "grp"], "stay")
    earlier = F.lag(F.struct("stay", "view", "rank")).over(order)
    pairs = tables.stays.withColumn("earlier", earlier).where(F.col("earlier").isNotNull())
    return weighed(
        pairs,
        "S3",
        F.col("rank") <= F.col("earlier.rank"),
        [
            F.col("process"),
            " installed ",
            F.col("view"),
            " of rank ",
            text("rank"),
            " after ",
            F.col("earlier.view"),
            " of rank ",
            text("earlier.rank"),
        ],
        view="view",
        evidence=[("process", F.col("earlier.stay")), ("process", "stay")],
    )


def agreement(tables: Tables) -> DataFrame:
    """S4, and at level C the same as C3."""
    first = F.first(F.struct("process", "stay", "members", "rank")).over(ordered(VIEW, "process", "stay"))
    pairs = tables.stays.withColumn("first", first)
    pairs = pairs.where(F.struct("process", "stay") != F.struct("first.process", "first.stay"))
    labels = {"S4": F.lit(True), "C3": is_client()}
    return weighed(
        pairs,
        labels,
        (F.col("members") != F.col("first.members")) | (F.col("rank") != F.col("first.rank")),
        [
            "view ",
            F.col("view"),
            " has members ",
            listed("members"),
            " and rank ",
            text("rank"),
            " at ",
            F.col("process"),
            ", but ",
            listed("first.members"),
            " and ",
            text("first.rank"),
            " at ",
            F.col("first.process"),
        ],
        view="view",
        evidence=[("process", "stay"), (F.col("first.process"), F.col("first.stay"))],
    )


def transitional_set(tables: Tables) -> DataFrame:
    """S5."""
    alone = weighed(
        tables.stays,
        "S5",
        F.col("previous").isNull() & (F.col("transitional") != F.array("process")),
        [
            F.col("process"),
            " came to ",
            F.col("view"),
            " from no view with transitional set ",
            listed("transitional"),
            " instead of itself alone",
        ],
        view="view",
        evidence=[("process", "stay")],
    )
    return union([alone, _wrong_sets(_with_company(tables).where(F.col("previous").isNotNull()))])


def _wrong_sets(comers: DataFrame) -> DataFrame:
    of_both = F.array_intersect("members", F.col("previous.members"))
    comers = comers.withColumn("strangers", _strangers())
    cases = {
        "holds, but not in the members of both views,": F.array_except("transitional", of_both),
        "is wrong about": F.col("strangers"),
        "is not the set of the others who came along:": F.when(F.size("strangers") == 0, _unlike_first()),
    }
    each_case = F.array(*(F.struct(F.lit(what).alias("what"), who.alias("who")) for what, who in cases.items()))
    wrong = comers.withColumn("case", F.explode(each_case)).where(F.size("case.who") > 0)
    return broken(
        wrong,
        "S5",
        [
            "the transitional set ",
            listed("transitional"),
            " of ",
            F.col("view"),
            " at ",
            F.col("process"),
            ", coming from ",
            F.col("previous.view"),
            ", ",
            F.col("case.what"),
            " ",
            listed("case.who"),
        ],
        view="view",
        evidence=[("process", "stay")],
    )


def _with_company(tables: Tables) -> DataFrame:
    """With who else installed the view, who came from the same one, and whose daemons did so too."""
    daemons = tables.daemon_views.select(
        "run", "daemon", F.col("view").alias("daemon_view"), F.col("previous.view").alias("came_from")
    )
    stays = tables.stays.join(daemons, ["run", "daemon", "daemon_view"], "left")
    unknown = F.concat(F.lit("unknown at "), F.col("process"))
    stays = stays.withColumn(
        "together",
        F.when(~is_client(), F.lit(""))
        .when(F.col("light"), F.col("daemon_view"))
        .otherwise(F.coalesce("came_from", unknown)),
    )
    stays = stays.withColumn("from_view", F.col("previous.view"))
    stays = stays.withColumn("installers", F.collect_set("process").over(whole(VIEW)))
    stays = stays.withColumn("comers", F.collect_set("process").over(whole([*VIEW, "from_view"])))
    movers = [*VIEW, "from_view", "together"]
    stays = stays.withColumn("movers", F.collect_set("process").over(whole(movers)))
    return stays.withColumn("first_set", F.first("transitional").over(ordered(movers, "process", "stay")))


def _strangers() -> Column:
    """Those about whom a set is wrong: at S whoever installed the view, at C whoever came from elsewhere or along."""
    known = F.array_intersect("transitional", "installers")
    at_daemons = F.concat(F.array_except(known, F.col("comers")), F.array_except(F.col("comers"), known))
    elsewhere = F.array_except(known, F.col("comers"))
    at_clients = F.concat(elsewhere, F.array_except("movers", F.col("transitional")))
    return F.when(is_client(), at_clients).otherwise(at_daemons)


def _unlike_first() -> Column:
    differs = F.col("transitional") != F.col("first_set")
    return F.when(differs, F.col("first_set")).otherwise(F.array().cast("array<string>"))
