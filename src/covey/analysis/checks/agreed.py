"""The agreed order: M5, with M8 and M9.

In:        Tables.
Out:       findings.
Not here:  sessions (order.py), happened-before (causal.py).

  keys      each message has one place, the same everywhere, and shares it with no other of its view
  growth    what a process delivers as agreed, and the light changes it is shown, stand at growing places
  complete  before the signal, everything ordered earlier that anyone delivered in this view comes first; after it, of
            that, what was sent by members of the next transitional set

No pairs are formed: in each stay the messages are gone through from the last place to the first, with the earliest
moment at which something of a later place was delivered.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.findings import Guarantee, broken, text, union, weighed
from covey.analysis.tables.build import Tables
from covey.analysis.tables.columns import (
    CAUSAL,
    DELIVERED,
    MESSAGE,
    PROCESS,
    RELIABLE,
    STAY,
    before,
    is_client,
    ordered,
    strength,
    whole,
)
from covey.analysis.tables.traffic import ATTRIBUTES


def check(tables: Tables) -> DataFrame:
    return union(
        [keys(tables), places(tables), growth(tables), client_growth(tables), daemon_views(tables), *complete(tables)]
    )


def keys(tables: Tables) -> DataFrame:
    known = tables.messages.where(F.col("key").isNotNull() & F.col("order_view").isNotNull())
    shared = known.groupBy("run", "level", "order_view", "key").agg(
        F.count("*").alias("messages"),
        F.array_sort(F.collect_list("message")).alias("names"),
        F.array_sort(F.collect_list(F.struct("message", "row"))).alias("rows"),
        F.min(F.coalesce("origin", "sender")).alias("process"),
    )
    return weighed(
        shared,
        "M5",
        F.col("messages") > 1,
        [F.array_join("names", " and "), " have the same place ", text("key"), " in ", F.col("order_view")],
        premises=F.col("messages"),
        view="order_view",
        evidence=[
            (F.get("rows", F.lit(at))["row"]["process"], F.get("rows", F.lit(at))["row"]["index"]) for at in (0, 1)
        ],
    )


def places(tables: Tables) -> DataFrame:
    """Who delivers a message delivers it at the place where all others do."""
    same_key = F.col("row_key").eqNullSafe(F.col("key"))
    same_view = F.col("row_order_view").eqNullSafe(F.col("order_view"))
    silent = (F.col("event") == "discard") & F.col("order_stamp").isNull()
    at_clients = (
        is_client() & (F.col("strength") >= RELIABLE) & ~silent & (F.col("row_key").isNull() | ~same_key | ~same_view)
    )
    unplaced = F.col("row_key").isNull() & (F.col("strength") >= CAUSAL)
    at_daemons = ~is_client() & (unplaced | F.coalesce(F.col("row_key") != F.col("key"), F.lit(False)))
    judged = tables.deliveries.where(~is_client() | ((F.col("strength") >= RELIABLE) & ~silent))
    labels: Guarantee = {"M5": F.lit(True), "M9": F.col("to_several")}
    return weighed(
        judged,
        labels,
        at_clients | at_daemons,
        [
            F.col("process"),
            " delivered ",
            F.col("message"),
            " at ",
            text("row_key"),
            " of ",
            text("row_order_view"),
            ", elsewhere it is at ",
            text("key"),
            " of ",
            text("order_view"),
        ],
        message="message",
        evidence=[("process", "index")],
    )


def growth(tables: Tables) -> DataFrame:
    """Level S: across views the places grow over the whole life."""
    moments = tables.deliveries.where(~is_client() & (F.col("strength") >= CAUSAL) & F.col("row_key").isNotNull())
    moments = moments.join(tables.inside.select(*PROCESS, "index", "stay"), [*PROCESS, "index"], "left")
    earlier = F.lag(F.struct("index", "message", F.coalesce("stay", F.lit(-1)).alias("stay"), "row_key"))
    pairs = moments.withColumn("earlier", earlier.over(ordered(PROCESS, "index")))
    pairs = pairs.where(F.col("earlier.stay") != F.coalesce("stay", F.lit(-1)))
    return _not_above(pairs, F.col("row_key") <= F.col("earlier.row_key"))


def _not_above(pairs: DataFrame, wrong: Column) -> DataFrame:
    return weighed(
        pairs,
        "M5",
        wrong,
        [
            F.col("process"),
            " delivered ",
            text("message"),
            " at ",
            text("row_key"),
            ", not above ",
            text("earlier.row_key"),
            " of what it had before",
        ],
        message="message",
        evidence=[("process", F.col("earlier.index")), ("process", "index")],
    )


def client_growth(tables: Tables) -> DataFrame:
    """Level C: one order over the whole life, of messages of the agreed class and of light changes, in all groups."""
    delivered = F.col("event").isin(*DELIVERED)
    known = F.col("order_stamp").isNotNull() & F.col("order_site").isNotNull()
    rows = tables.rows.where(is_client() & known & ~(delivered & (strength() < CAUSAL)))
    # A change stands before the messages of its place, and one disconnect may change several groups.
    index = F.when(delivered, F.coalesce("order_index", F.lit(0))).otherwise(F.lit(-1))
    rows = rows.withColumn("row_key", F.struct("order_stamp", "order_site", index.alias("index")))
    earlier = F.lag(F.struct("index", "row_key")).over(ordered(PROCESS, "index"))
    pairs = rows.withColumn("earlier", earlier).where(F.col("earlier").isNotNull())
    equal = (F.col("row_key") == F.col("earlier.row_key")) & delivered
    return _not_above(pairs, (F.col("row_key") < F.col("earlier.row_key")) | equal)


def daemon_views(tables: Tables) -> DataFrame:
    """Level C: nothing of a daemon view comes after something of a later one."""
    by_clients = tables.stays.where(is_client()).select(
        "run",
        F.col("daemon_view").alias("order_view"),
        F.slice("rank", 1, F.size("rank") - 2).alias("told"),
        F.lit(1).alias("by"),
    )
    by_daemons = tables.daemon_views.select(
        "run", F.col("view").alias("order_view"), F.col("rank").alias("told"), F.lit(0).alias("by")
    )
    ranks = by_clients.unionByName(by_daemons).groupBy("run", "order_view").agg(F.min_by("told", "by").alias("told"))
    network = (F.col("event") == "view") & F.col("view_new").endswith("/net")
    rows = tables.rows.where(is_client()).join(ranks, ["run", "order_view"], "left")
    own = F.when(
        network, F.struct(F.slice("view_rank", 1, F.size("view_rank") - 2).alias("rank"), F.lit(0).alias("part"))
    )
    other = F.when(F.col("told").isNotNull(), F.struct(F.col("told").alias("rank"), F.lit(1).alias("part")))
    rows = rows.withColumn("reached", F.coalesce(own, other)).where(F.col("reached").isNotNull())
    earlier = F.lag(F.struct("index", "reached")).over(ordered(PROCESS, "index"))
    wrong = rows.withColumn("earlier", earlier).where(F.col("reached") < F.col("earlier.reached"))
    return broken(
        wrong,
        "M5",
        [
            F.col("event"),
            " of ",
            F.coalesce("message", "grp"),
            " at ",
            F.col("process"),
            " comes after a later daemon view",
        ],
        message="message",
        evidence=[("process", F.col("earlier.index")), ("process", "index")],
    )


def complete(tables: Tables) -> list[DataFrame]:
    """M5 and M8 for what is missing or late; for daemons also what was overtaken within a view."""
    rows = _in_stays(tables)
    here = F.col("at").isNotNull() & (F.col("strength") >= CAUSAL)
    scope = [*STAY, "order_view"]
    later = before(scope, F.col("key").desc(), F.col("message").desc())
    moment = F.struct("at", "message")

    def first(condition: Column) -> Column:
        return F.min(F.when(here & condition, moment)).over(later)

    outside = F.col("from_outside")
    rows = rows.select(
        "*",
        first(~F.col("after")).alias("before_any"),
        first(F.col("after")).alias("after_any"),
        first(~F.col("after") & outside).alias("before_outside"),
        first(F.col("after") & outside).alias("after_outside"),
        F.min(F.when(F.col("owed"), F.col("key"))).over(whole(scope)).alias("lowest"),
    )
    moves_along = F.coalesce(F.array_contains("movers", F.col("origin")), F.lit(False))
    rows = rows.where(F.col("owed")).withColumn("moves_along", moves_along)
    limit = F.least("before_any", F.when(F.col("moves_along"), F.col("after_any")))
    limit_outside = F.when(outside, limit).otherwise(
        F.least("before_outside", F.when(F.col("moves_along"), F.col("after_outside")))
    )
    # What is ordered, and has something before it in the order, puts M5 to the test; after the signal it need not.
    above_some = here & ~F.col("after") & (F.col("key") > F.col("lowest"))
    outsiders = F.when(is_client(), limit_outside)
    limits = {"M5": (limit, above_some), "M8": (outsiders, outsiders.isNotNull())}
    return [_holes(rows, limits), overtaken(tables)]


def _holes(rows: DataFrame, limits: dict[str, tuple[Column, Column]]) -> DataFrame:
    """`limits`: for each guarantee, what a message must not come after, and whether it is put to the test."""
    each = [
        F.struct(F.lit(label).alias("label"), limit.alias("limit"), tests.alias("tests"))
        for label, (limit, tests) in limits.items()
    ]
    rows = rows.withColumn("each", F.explode(F.array(*each))).select("*", "each.limit", "each.tests")
    late = F.col("index").isNull() | (F.col("index") > F.col("limit.at"))
    return weighed(
        rows.where(F.col("limit").isNotNull() | F.col("tests")),
        {label: F.col("each.label") == label for label in limits},
        F.col("limit").isNotNull() & late,
        [
            F.col("process"),
            " delivered ",
            F.col("limit.message"),
            " in ",
            F.col("view"),
            " without, before it, ",
            F.col("message"),
            ", ordered earlier",
        ],
        premises=F.coalesce("tests", F.lit(False)),
        view="view",
        message="message",
        evidence=[("origin", F.col("send.index")), ("process", F.col("limit.at")), ("process", "index")],
    )


def overtaken(tables: Tables) -> DataFrame:
    """Level S: within a view, what is causal or stronger comes in the order of its places, also if it comes again."""
    scope = [*PROCESS, "order_view"]
    rows = tables.shares.where(~is_client() & (F.col("strength") >= CAUSAL) & F.col("key").isNotNull())
    later = before(scope, F.col("key").desc(), F.col("message").desc())
    rows = rows.withColumn("first", F.min(F.when(F.col("index").isNotNull(), F.struct("index", "message"))).over(later))
    own = tables.held.where(~is_client() & (F.col("order_view") == F.col("view")))
    own = own.groupBy(*PROCESS, "message").agg(F.max("index").alias("last"))
    wrong = rows.join(own, [*PROCESS, "message"]).where(F.col("last") > F.col("first.index"))
    return broken(
        wrong,
        "M5",
        [
            F.col("process"),
            " delivered ",
            F.col("message"),
            " in ",
            F.col("order_view"),
            " after ",
            F.col("first.message"),
            ", ordered later",
        ],
        view="order_view",
        message="message",
        evidence=[("process", F.col("first.index")), ("process", "last")],
    )


def _in_stays(tables: Tables) -> DataFrame:
    """Each stay with each stamped message that anyone delivered in its view: when this process did, there or at all."""
    held = tables.held.where((F.col("strength") >= RELIABLE) & F.col("key").isNotNull())
    # Keys compare within one view only; at S a delivery in another view than that of its key is S9's matter.
    fitting = is_client() | (F.col("order_view") == F.col("view"))
    by_anyone = held.where(fitting).select("run", "level", "grp", "view", "message").distinct()
    stays = tables.stays.select(*STAY, "view", F.col("next.transitional").alias("movers"))
    rows = stays.join(by_anyone, ["run", "level", "grp", "view"])
    rows = rows.join(tables.messages.select(*MESSAGE, *ATTRIBUTES), MESSAGE)
    own = (
        held.where(fitting)
        .groupBy(*STAY, "message")
        .agg(F.min(F.struct(F.col("index").alias("at"), "after")).alias("own"))
    )
    rows = rows.join(own, [*STAY, "message"], "left").withColumn("at", F.col("own.at"))
    rows = rows.withColumn("after", F.coalesce("own.after", F.lit(False))).drop("own")
    shares = tables.shares.select(*PROCESS, "message", "index", "owed")
    rows = rows.join(shares, [*PROCESS, "message"], "left")
    return rows.withColumn("owed", ~is_client() | F.coalesce("owed", F.lit(False)))
