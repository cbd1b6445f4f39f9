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

from covey.analysis.findings import WHAT, broken, each, listed, marked, text, union, weighed
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
            light_changes(tables, stays),
            requests(tables),
            ids(tables, stays),
            away(tables, stays),
            quiet(tables),
            rest(tables),
            cause(tables, stays),
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


def light_changes(tables: Tables, stays: DataFrame) -> DataFrame:
    """C1."""
    light = changed_by(stays.where("light"))
    taken = (
        tables.messages.where(is_client() & F.col("place").isNotNull())
        .select("run", F.col("place").alias("change"))
        .distinct()
    )
    judged = marked(light, taken, ["run", "change"], "taken").join(_said(stays, light), ["run", "change"], "left")
    other_group = (F.col("grp") != F.col("said.grp")) & ~F.col("cause").eqNullSafe(F.lit("disconnect"))
    unlike = ~F.col("cause").eqNullSafe(F.col("said.cause")) | (F.col("who") != F.col("said.who")) | other_group
    return weighed(
        judged,
        "C1",
        {
            "came after a signal": F.col("signals_before") > 0,
            "is no single change": F.size("who") != 1,
            "stands at the place of a message": F.col("taken"),
            "shows another change than others show at its place": F.col("said").isNotNull() & unlike,
        },
        [
            "light view ",
            F.col("view"),
            " of ",
            F.col("grp"),
            " at ",
            F.col("process"),
            " ",
            F.col(WHAT),
            ": ",
            text("cause"),
            " of ",
            listed("who"),
        ],
        view="view",
        evidence=[("process", "stay")],
    )


def _said(stays: DataFrame, light: DataFrame) -> DataFrame:
    """A place has one change: that of the member that left there, or what the first to show it says."""
    left = stays.where(F.col("is_last") & F.col("left").isNotNull()).select(
        "run",
        F.col("left").alias("change"),
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
    return left.unionByName(shown).groupBy("run", "change").agg(F.min_by("said", "nth").alias("said"))


def requests(tables: Tables) -> DataFrame:
    """C1, C6 at rest: whoever last asked to join is a member, and whoever last asked to leave is not."""
    asked = tables.rows.where(is_client() & F.col("event").isin("join", "leave") & F.col("cause").isNull())
    last = asked.groupBy(*PROCESS, "grp").agg(F.max_by("event", "index").alias("asked"), F.max("index").alias("index"))
    last = last.join(tables.lives.where("witness").select(*PROCESS), PROCESS)
    member = tables.memberships.where("open").select(*PROCESS, "grp", F.lit(True).alias("member")).distinct()
    last = last.join(member, [*PROCESS, "grp"], "left").withColumn("member", F.coalesce("member", F.lit(False)))
    labels: dict[str, Column] = {"C1": F.col("asked") == "join", "C6": F.col("asked") == "leave"}
    return weighed(
        last,
        labels,
        (F.col("asked") == "join") != F.col("member"),
        [F.col("process"), " last asked to ", F.col("asked"), " ", F.col("grp"), ", which had no effect"],
        evidence=[("process", "index")],
    )


def ids(tables: Tables, stays: DataFrame) -> DataFrame:
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
    known = tables.daemon_views.select("run", "daemon").distinct()
    there = tables.daemon_views.select(
        "run",
        "daemon",
        F.col("view").alias("daemon_view"),
        F.col("rank").alias("daemon_rank"),
        F.lit(True).alias("there"),
    )
    late = tables.passed.where("after_signal").select("run", "daemon", F.col("place").alias("change"))
    judged = marked(stays, known, ["run", "daemon"], "known").join(there, ["run", "daemon", "daemon_view"], "left")
    judged = marked(judged, late, ["run", "daemon", "change"], "late")
    head = F.slice("rank", 1, F.greatest(F.size("rank") - 2, F.lit(0)))
    return weighed(
        judged,
        "C3",
        {
            "is not made of its daemon view and the order of its cause": (F.col("view") != made_of) | (tail != numbers),
            "names a daemon view that its daemon never installed": F.col("known") & F.col("there").isNull(),
            "shows a change that came after the signal of its daemon": F.col("there") & F.col("late"),
            "has not the rank of its daemon view": F.col("there") & (head != F.col("daemon_rank")),
        },
        [*_of_rank(), F.col(WHAT)],
        view="view",
        evidence=[("process", "stay")],
    )


def _of_rank() -> list[str | Column]:
    return ["view ", F.col("view"), " of ", F.col("grp"), ", rank ", text("rank"), ", at ", F.col("process"), " "]


def away(tables: Tables, stays: DataFrame) -> DataFrame:
    """C3: the daemons of the members are in the daemon view."""
    there = tables.daemon_views.select(
        "run", "daemon", F.col("view").alias("daemon_view"), F.col("members").alias("daemons")
    )
    homes = tables.lives.where(is_client()).select(
        "run", F.col("process").alias("member"), F.col("daemon").alias("home")
    )
    shown = stays.join(there, ["run", "daemon", "daemon_view"])
    at_home = shown.withColumn("member", F.explode("members")).join(homes, ["run", "member"])
    wrong = at_home.where(~F.array_contains("daemons", F.col("home"))).dropDuplicates([*PROCESS, "grp", "stay"])
    return broken(
        wrong,
        "C3",
        [*_of_rank(), "holds members whose daemons are not in it"],
        view="view",
        evidence=[("process", "stay")],
    )


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
    asked = each(views, F.array_except("first.members", "here"), "process")
    return weighed(
        marked(asked, tables.lives.where("witness"), PROCESS),
        "C3",
        F.col("found"),
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
        premises=F.col("is_first"),
        view="view",
        evidence=[(F.col("first.process"), F.col("first.stay"))],
    )


def cause(tables: Tables, stays: DataFrame) -> DataFrame:
    """C5."""
    first = F.first(F.struct("process", "cause")).over(ordered(VIEW, "process", "stay"))
    judged = stays.withColumn("first_said", first)
    fitting = F.when(F.col("light"), F.col("cause").isin("join", "leave", "disconnect")).otherwise(
        F.col("cause") == "network"
    )
    unfit = ~F.col("cause").eqNullSafe(F.col("first_said.cause")) | ~F.coalesce(fitting, F.lit(False))
    before_it = F.coalesce("previous.members", F.array_except("members", F.array("process")))
    judged = judged.withColumn("unfit", unfit).withColumn("before_it", before_it)
    judged = judged.withColumn("who", apart(F.col("members"), F.col("before_it")))
    grows = F.size(F.array_except("who", "members")) == 0
    single = (F.size("who") == 1) & (grows == (F.col("cause") == "join"))
    plain = ~F.col("unfit") & F.col("light")
    judged = judged.withColumn("single", plain & single)
    stayed = F.array_sort(F.array_intersect("members", "before_it"))
    lost = F.col("previous").isNotNull() & (F.col("transitional") != stayed)
    return weighed(
        _with_mover(tables, judged.withColumn("mover", F.when(F.col("single"), F.array_min("who")))),
        "C5",
        {
            "or others do not say so": F.col("unfit"),
            "but something else changed": plain & ~F.col("single"),
            "but not all who stayed are in its transitional set": F.col("single") & lost,
            "which never happened": F.col("single") & F.col("ended").isNotNull() & ~_possible(),
        },
        [
            "view ",
            F.col("view"),
            " of ",
            F.col("grp"),
            " at ",
            F.col("process"),
            " says that it came by ",
            text("cause"),
            ", ",
            F.col(WHAT),
        ],
        view="view",
        evidence=[("process", "stay")],
    )


def _with_mover(tables: Tables, judged: DataFrame) -> DataFrame:
    """With what is known of the one by whom a view changed, and whether it asked for that."""
    lives = tables.lives.where(is_client()).select(
        "run", F.col("process").alias("mover"), "departed", "ended", "expelled"
    )
    asked = tables.rows.where(is_client() & F.col("event").isin("join", "leave"))
    asked = asked.select("run", F.col("process").alias("mover"), "grp", F.col("event").alias("cause")).distinct()
    moved = judged.join(lives, ["run", "mover"], "left")
    return marked(moved, asked, ["run", "mover", "grp", "cause"], "asked")


def _possible() -> Column:
    by_request = F.col("asked") | ((F.col("cause") == "leave") & F.col("expelled"))
    return F.when(F.col("cause") == "disconnect", F.col("departed") | ~F.col("ended")).otherwise(by_request)


def self_leave(tables: Tables) -> list[DataFrame]:
    """C6: a leaver is told where, and has what anyone delivered in its last view and is ordered before the leave."""
    left = tables.memberships.where(F.col("closed_by.event") == "self_leave")
    told = weighed(
        left,
        "C6",
        F.col("left").isNull(),
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
    return [told, missing]


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
    return weighed(
        marked(seen, told, [*PROCESS, "grp", "change"]),
        "C6",
        ~F.col("found"),
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
