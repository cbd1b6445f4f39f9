"""How the views of a group follow one another: C1, C3, C5 and C6.

In:        Tables.
Out:       findings.
Not here:  agreement on equal ids (views.py), daemon changes and names (groups.py).

  C1  a light view is made by one join, leave or disconnect at one place of the order, without a signal
  C3  ids are made as promised; no light view between a signal and the network view; at rest, the members of a view are
      in it
  C5  each view says why it came, alike at all members, and that was indeed what happened
  C6  a leaving member is told where its leave took effect, and had until there what all others had
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.findings import broken, listed, tested, text, union
from covey.analysis.tables.build import Tables
from covey.analysis.tables.columns import (
    CAUSAL,
    PROCESS,
    apart,
    before,
    is_client,
    ordered,
    place,
    until,
)

VIEW = ["run", "level", "grp", "view"]


def check(tables: Tables) -> DataFrame:
    stays = tables.stays.where(is_client())
    return union(
        [
            *light_changes(tables, stays),
            *requests(tables),
            *ids(tables, stays),
            quiet(tables),
            rest(tables),
            *cause(tables, stays),
            *self_leave(tables),
            leaves_shown(tables, stays),
        ]
    )


def changed_by(stays: DataFrame) -> DataFrame:
    """With `who`: the members by which a view differs from the one before it; for a joiner, itself."""
    return stays.withColumn(
        "who",
        F.when(F.col("previous").isNotNull(), apart(F.col("members"), F.col("previous.members"))).otherwise(
            F.array("process")
        ),
    )


def light_changes(tables: Tables, stays: DataFrame) -> list[DataFrame]:
    """C1."""
    light = changed_by(stays.where("light"))
    signals = stays.select(*PROCESS, "grp", F.col("stay").alias("from_stay"), F.col("signals").alias("signals_before"))
    after_signal = light.withColumn("from_stay", F.col("previous.stay")).join(signals, [*PROCESS, "grp", "from_stay"])
    return [
        _light(after_signal.where(F.col("signals_before") > 0), "came after a signal"),
        _light(light.where(F.size("who") != 1), "is no single change"),
        _light(_at_message(tables, light), "stands at the place of a message"),
        _light(_unlike_others(stays, light), "shows another change than others show at its place"),
        tested(light, "C1"),
    ]


def _light(wrong: DataFrame, what: str) -> DataFrame:
    return broken(
        wrong,
        "C1",
        [
            "light view ",
            F.col("view"),
            " of ",
            F.col("grp"),
            " at ",
            F.col("process"),
            f" {what}: ",
            text("cause"),
            " of ",
            listed("who"),
        ],
        view="view",
        evidence=[("process", "stay")],
    )


def _at_message(tables: Tables, light: DataFrame) -> DataFrame:
    taken = (
        tables.messages.where(is_client() & F.col("place").isNotNull())
        .select("run", F.col("place").alias("change"))
        .distinct()
    )
    return light.join(taken, ["run", "change"], "left_semi")


def _unlike_others(stays: DataFrame, light: DataFrame) -> DataFrame:
    """A place has one change: that of the member that left there, or what the first to show it says."""
    left = stays.where(F.col("is_last") & F.col("left").isNotNull()).select(
        "run",
        F.col("left").alias("change"),
        F.lit(0).alias("nth"),
        "process",
        "stay",
        F.struct(F.lit("leave").alias("cause"), F.array("process").alias("who"), "grp").alias("said"),
    )
    # Of several who left there, the last one counts.
    left = left.groupBy("run", "change").agg(
        F.max_by("said", F.struct("process", "stay")).alias("said"), F.lit(0).alias("nth")
    )
    shown = (
        light.where(F.col("change").isNotNull())
        .groupBy("run", "change")
        .agg(
            F.min_by(F.struct("cause", "who", "grp"), F.struct("process", "membership", "stay")).alias("said"),
            F.lit(1).alias("nth"),
        )
    )
    known = left.unionByName(shown).groupBy("run", "change").agg(F.min_by("said", "nth").alias("said"))
    pairs = light.join(known, ["run", "change"])
    other_group = (F.col("grp") != F.col("said.grp")) & (~F.col("cause").eqNullSafe(F.lit("disconnect")))
    return pairs.where(
        ~F.col("cause").eqNullSafe(F.col("said.cause")) | (F.col("who") != F.col("said.who")) | other_group
    )


def requests(tables: Tables) -> list[DataFrame]:
    """C1, C6 at rest: whoever last asked to join is a member, and whoever last asked to leave is not."""
    asked = tables.rows.where(is_client() & F.col("event").isin("join", "leave") & F.col("cause").isNull())
    last = asked.groupBy(*PROCESS, "grp").agg(F.max_by("event", "index").alias("asked"), F.max("index").alias("index"))
    last = last.join(tables.lives.where("witness").select(*PROCESS), PROCESS)
    member = tables.memberships.where("open").select(*PROCESS, "grp", F.lit(True).alias("member")).distinct()
    last = last.join(member, [*PROCESS, "grp"], "left").withColumn("member", F.coalesce("member", F.lit(False)))
    wrong = last.where((F.col("asked") == "join") != F.col("member"))
    labels: dict[str, Column] = {"C1": F.col("asked") == "join", "C6": F.col("asked") == "leave"}
    violations = broken(
        wrong,
        labels,
        [F.col("process"), " last asked to ", F.col("asked"), " ", F.col("grp"), ", which had no effect"],
        evidence=[("process", "index")],
    )
    return [violations, tested(last, labels)]


def ids(tables: Tables, stays: DataFrame) -> list[DataFrame]:
    """C3. The daemon view in an id is compared with the daemon's own rows where these exist."""
    change, rank = F.col("change"), F.col("rank")
    light_id = F.concat(
        F.col("change.view"),
        F.lit("/"),
        F.col("change.stamp").cast("string"),
        F.lit("."),
        F.col("change.site").cast("string"),
    )
    made_of = F.when(change.isNotNull(), light_id).otherwise(F.concat("daemon_view", F.lit("/net")))
    numbers = F.array(F.coalesce("change.stamp", F.lit(0)), F.coalesce("change.site", F.lit(0)).cast("bigint"))
    tail = F.slice(rank, F.greatest(F.size(rank) - 1, F.lit(1)), 2)
    misnamed = stays.where((F.col("view") != made_of) | (tail != numbers))
    return [
        _wrong_id(misnamed, "is not made of its daemon view and the order of its cause"),
        *_daemon_views(tables, stays),
        tested(stays, "C3"),
    ]


def _wrong_id(wrong: DataFrame, what: str) -> DataFrame:
    return broken(
        wrong,
        "C3",
        ["view ", F.col("view"), " of ", F.col("grp"), ", rank ", text("rank"), ", at ", F.col("process"), f" {what}"],
        view="view",
        evidence=[("process", "stay")],
    )


def _daemon_views(tables: Tables, stays: DataFrame) -> list[DataFrame]:
    daemons = tables.lives.select(*PROCESS, "daemon")
    known = tables.daemon_views.select("run", "daemon").distinct()
    there = tables.daemon_views.select(
        "run",
        "daemon",
        F.col("view").alias("daemon_view"),
        F.col("rank").alias("daemon_rank"),
        F.col("members").alias("daemons"),
        F.lit(True).alias("found"),
    )
    shown = (
        stays.join(daemons, PROCESS)
        .join(known, ["run", "daemon"], "left_semi")
        .join(there, ["run", "daemon", "daemon_view"], "left")
    )
    late = tables.passed.where("after_signal").select("run", "daemon", F.col("place").alias("change"))
    found = shown.where("found")
    homes = tables.lives.where(is_client()).select(
        "run", F.col("process").alias("member"), F.col("daemon").alias("home")
    )
    at_home = found.withColumn("member", F.explode("members")).join(homes, ["run", "member"])
    away = at_home.where(~F.array_contains("daemons", F.col("home"))).dropDuplicates([*PROCESS, "grp", "stay"])
    return [
        _wrong_id(shown.where(F.col("found").isNull()), "names a daemon view that its daemon never installed"),
        _wrong_id(
            found.join(late, ["run", "daemon", "change"], "left_semi"),
            "shows a change that came after the signal of its daemon",
        ),
        _wrong_id(
            found.where(F.slice("rank", 1, F.greatest(F.size("rank") - 2, F.lit(0))) != F.col("daemon_rank")),
            "has not the rank of its daemon view",
        ),
        _wrong_id(away, "holds members whose daemons are not in it"),
    ]


def quiet(tables: Tables) -> DataFrame:
    """C3: from the signal of any group up to its network view, no light view of any group is shown."""
    rows = tables.rows.where(is_client() & F.col("event").isin("transitional", "self_leave", "view"))
    network = (F.col("event") == "view") & F.coalesce(F.col("view_new").endswith("/net"), F.lit(False))
    clears = network | (F.col("event") == "self_leave")
    sets = F.col("event") == "transitional"
    state = F.when(sets, 1).when(clears, 0)
    rows = rows.withColumn("state", state)
    was = F.coalesce(F.last("state", ignorenulls=True).over(before([*PROCESS, "grp"], "index")), F.lit(0))
    rows = rows.withColumn("step_up", F.when(F.col("state").isNotNull(), F.col("state") - was).otherwise(F.lit(0)))
    rows = rows.withColumn("signalled", F.sum("step_up").over(until(PROCESS, "index")))
    wrong = rows.where((F.col("event") == "view") & ~network & (F.col("signalled") > 0))
    return broken(
        wrong,
        "C3",
        [
            F.col("process"),
            " got light view ",
            text("view_new"),
            " of ",
            F.col("grp"),
            " between a signal and the network view",
        ],
        view="view_new",
        evidence=[("process", "index")],
    )


def rest(tables: Tables) -> DataFrame:
    """C3: whoever rests in a view rests there with all its members that rest."""
    resting = tables.memberships.where(F.col("open") & F.col("witness"))
    views = resting.groupBy(*VIEW).agg(
        F.min_by(F.struct("process", "stay", "members"), F.struct("process", "stay")).alias("first"),
        F.collect_set("process").alias("here"),
    )
    absent = views.withColumn("process", F.explode(F.array_except("first.members", "here")))
    absent = absent.join(tables.lives.where("witness").select(*PROCESS), PROCESS)
    violations = broken(
        absent,
        "C3",
        [
            F.col("first.process"),
            " rests in ",
            F.col("view"),
            " of ",
            F.col("grp"),
            " with ",
            F.col("process"),
            ", who does not",
        ],
        view="view",
        evidence=[(F.col("first.process"), F.col("first.stay"))],
    )
    return union([violations, tested(views, "C3")])


def cause(tables: Tables, stays: DataFrame) -> list[DataFrame]:
    """C5."""
    first = F.first(F.struct("process", "cause")).over(ordered(VIEW, "process", "stay"))
    judged = stays.withColumn("first_said", first)
    differs = ~F.col("cause").eqNullSafe(F.col("first_said.cause"))
    fitting = F.when(F.col("light"), F.col("cause").isin("join", "leave", "disconnect")).otherwise(
        F.col("cause") == "network"
    )
    unfit = ~F.coalesce(fitting, F.lit(False))
    plain = judged.where(~differs & ~unfit & F.col("light"))
    before_it = F.coalesce("previous.members", F.array_except("members", F.array("process")))
    plain = plain.withColumn("before_it", before_it).withColumn("who", apart(F.col("members"), F.col("before_it")))
    grows = F.size(F.array_except("who", "members")) == 0
    single = (F.size("who") == 1) & (grows == (F.col("cause") == "join"))
    stayed = F.array_sort(F.array_intersect("members", "before_it"))
    lost = F.col("previous").isNotNull() & (F.col("transitional") != stayed)
    return [
        _untrue(judged.where(differs | unfit), "or others do not say so"),
        _untrue(plain.where(~single), "but something else changed"),
        _untrue(plain.where(single & lost), "but not all who stayed are in its transitional set"),
        _untrue(_uncaused(tables, plain.where(single)), "which never happened"),
        tested(stays, "C5"),
    ]


def _untrue(wrong: DataFrame, what: str) -> DataFrame:
    return broken(
        wrong,
        "C5",
        [
            "view ",
            F.col("view"),
            " of ",
            F.col("grp"),
            " at ",
            F.col("process"),
            " says that it came by ",
            text("cause"),
            f", {what}",
        ],
        view="view",
        evidence=[("process", "stay")],
    )


def _uncaused(tables: Tables, plain: DataFrame) -> DataFrame:
    lives = tables.lives.where(is_client()).select(
        "run", F.col("process").alias("mover"), "departed", "ended", "expelled"
    )
    asked = tables.rows.where(is_client() & F.col("event").isin("join", "leave"))
    asked = asked.select("run", F.col("process").alias("mover"), "grp", F.col("event").alias("cause")).distinct()
    moved = plain.withColumn("mover", F.array_min("who")).join(lives, ["run", "mover"])
    moved = moved.join(asked.withColumn("asked", F.lit(True)), ["run", "mover", "grp", "cause"], "left")
    by_request = F.coalesce("asked", F.lit(False)) | ((F.col("cause") == "leave") & F.col("expelled"))
    possible = F.when(F.col("cause") == "disconnect", F.col("departed") | ~F.col("ended")).otherwise(by_request)
    return moved.where(~possible)


def self_leave(tables: Tables) -> list[DataFrame]:
    """C6: a leaver is told where, and has what anyone delivered in its last view and is ordered before the leave."""
    left = tables.memberships.where(F.col("closed_by.event") == "self_leave")
    untold = broken(
        left.where(F.col("left").isNull()),
        "C6",
        [F.col("process"), " left ", F.col("grp"), ", but was not told where"],
        view="view",
        evidence=[("process", F.col("closed_by.stay"))],
    )
    judged = left.where(F.col("left").isNotNull() & (F.col("signals") == 0))
    heard = (
        tables.held.where(is_client() & (F.col("strength") >= CAUSAL))
        .select(*VIEW, "message", "order_view", "origin", "send")
        .dropDuplicates([*VIEW, "message"])
    )
    due = judged.withColumn("order_view", F.col("left.view")).join(heard, [*VIEW, "order_view"])
    due = due.join(tables.owed, [*PROCESS, "grp", "membership", "message"], "left_semi")
    lacking = due.join(tables.delivered.select(*PROCESS, "message"), [*PROCESS, "message"], "left_anti")
    missing = broken(
        lacking,
        "C6",
        [F.col("process"), " left ", F.col("grp"), " without ", F.col("message"), ", ordered before its leave"],
        view="view",
        message="message",
        evidence=[("process", F.col("closed_by.stay")), ("origin", F.col("send.index"))],
    )
    return [untold, missing, tested(left, "C6")]


def leaves_shown(tables: Tables, stays: DataFrame) -> DataFrame:
    """C6: whoever was seen leaving, and lived on, was told the same place."""
    seen = stays.where((F.col("cause") == "leave") & F.col("change").isNotNull() & F.col("previous").isNotNull())
    seen = seen.withColumn("witness", F.col("process")).withColumn(
        "process", F.explode(F.array_except("previous.members", "members"))
    )
    lives = tables.lives.select(*PROCESS, F.col("witness").alias("at_rest"), "reached")
    seen = seen.join(lives, PROCESS).where(F.col("at_rest") | (F.coalesce("reached", F.lit(0)) > F.col("change.stamp")))
    told = (
        tables.rows.where(is_client() & (F.col("event") == "self_leave"))
        .select(*PROCESS, "grp", place().alias("change"))
        .distinct()
    )
    untold = seen.join(told, [*PROCESS, "grp", "change"], "left_anti")
    violations = broken(
        untold,
        "C6",
        [
            F.col("witness"),
            " saw ",
            F.col("process"),
            " leave ",
            F.col("grp"),
            " in ",
            F.col("view"),
            ", but that one was not told",
        ],
        view="view",
        evidence=[("witness", "stay")],
    )
    return union([violations, tested(seen, "C6")])
