"""Who moves or rests together has delivered the same: S8, S11, S9 between co-movers, S13 at rest, with M2, M8, C2.

In:        Tables.
Out:       findings.
Not here:  what a sender or a daemon promises alone (rest.py), safe messages (safe.py).

A *cohort* is a set of stays in one view that the promise of virtual synchrony joins: their processes install the same
view next, and one has the other in its transitional set; or, at level C, they have come to rest there together.
For each cohort and message it is counted how many delivered it: all or none, on the same side of the signal.
Reliable and fifo messages of clients are compared over the span between two network views, as far as they were owed.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from covey.analysis.findings import broken, listed, tested, text, union
from covey.analysis.tables.build import Tables, ViewTables
from covey.analysis.tables.columns import (
    CAUSAL,
    MEMBERSHIP,
    MESSAGE,
    PROCESS,
    RELIABLE,
    STAY,
    is_client,
)
from covey.analysis.tables.traffic import ATTRIBUTES

COHORT = ["run", "level", "grp", "kind", "cohort"]


def check(tables: Tables) -> DataFrame:
    members = members_of(tables)
    return union([*_same_messages(tables, members), *_same_spans(tables, members), signals(tables)])


def members_of(tables: Tables) -> DataFrame:
    """One row for each stay in a cohort of two or more: the cohort's number and size, and the view it leaves."""
    found = _movers(tables).unionByName(_resting(tables))
    sizes = found.groupBy(*COHORT).agg(
        F.countDistinct("process").alias("size"),
        F.max("anchored").alias("anchored"),
        F.array_sort(F.collect_set("process")).alias("processes"),
    )
    return found.drop("anchored").join(sizes.where((F.col("size") > 1) & F.col("anchored")).drop("anchored"), COHORT)


def _movers(tables: Tables) -> DataFrame:
    """Those who came to one view from one view: each transitional set among them makes a cohort of those it joins."""
    arrival = ["run", "level", "grp", "view", "from_view"]
    comers = tables.stays.where(F.col("previous").isNotNull()).withColumn("from_view", F.col("previous.view"))
    sets = comers.select(*arrival, F.col("transitional").alias("joined")).distinct()
    pairs = comers.join(sets, arrival)
    in_set = F.array_contains("joined", F.col("process"))
    pairs = pairs.where(in_set | (F.col("transitional") == F.col("joined")))
    return pairs.select(
        "run",
        "level",
        "grp",
        F.lit("move").alias("kind"),
        F.xxhash64("view", "from_view", "joined").alias("cohort"),
        "process",
        F.col("previous.stay").alias("stay"),
        F.col("from_view").alias("left_view"),
        F.col("view").alias("next_view"),
        in_set.alias("anchored"),
        (is_client() & ~F.col("light")).alias("spanned"),
    )


def _resting(tables: Tables) -> DataFrame:
    """Level C: the last stays of those who came to rest as members, by view."""
    last = tables.memberships.where(F.col("open") & F.col("witness"))
    return last.select(
        "run",
        "level",
        "grp",
        F.lit("rest").alias("kind"),
        F.xxhash64("view").alias("cohort"),
        "process",
        "stay",
        F.col("view").alias("left_view"),
        F.lit("rest").alias("next_view"),
        F.lit(True).alias("anchored"),
        F.lit(True).alias("spanned"),
    )


def _same_messages(tables: Tables, members: DataFrame) -> list[DataFrame]:
    concerned = tables.held.where(F.col("strength") >= F.when(is_client(), CAUSAL).otherwise(RELIABLE))
    sides = concerned.groupBy(*STAY, "message").agg(F.max(~F.col("after")).alias("early"), F.max("after").alias("late"))
    counted = (
        sides.join(members, STAY)
        .groupBy(*COHORT, "message")
        .agg(
            F.count("*").alias("have"),
            F.count_if("early").alias("have_before"),
            F.count_if("late").alias("have_after"),
            F.first("size").alias("size"),
            F.first("processes").alias("processes"),
            F.min("left_view").alias("left_view"),
            F.min("next_view").alias("next_view"),
            F.array_sort(F.collect_set("process")).alias("holders"),
        )
    )
    counted = counted.join(tables.messages.select(*MESSAGE, *ATTRIBUTES), MESSAGE)
    return [*_judge_counts(counted), _elsewhere(tables, counted)]


def _judge_counts(counted: DataFrame) -> list[DataFrame]:
    moved, strength = F.col("kind") == "move", F.col("strength")
    labels = {
        "S8": moved,
        "M2": moved & (strength == RELIABLE) & ~is_client(),
        "S13": ~moved,
        "M8": F.col("from_outside"),
    }
    partly = counted.where(F.col("have") < F.col("size")).withColumn("process", F.array_min("holders"))
    lacking = F.array_except("processes", "holders")
    unequal = broken(
        partly,
        labels,
        [
            "only ",
            listed("holders"),
            " delivered ",
            F.col("message"),
            " in ",
            F.col("left_view"),
            ", not ",
            listed(lacking),
            ", who went with them to ",
            F.col("next_view"),
        ],
        view="left_view",
        message="message",
        evidence=[("origin", F.col("send.index"))],
    )
    ordered_class = counted.where(moved & (strength >= CAUSAL))
    sides = [(F.col(side) > 0) & (F.col(side) < F.col("size")) for side in ("have_before", "have_after")]
    split = ordered_class.where(sides[0] | sides[1]).withColumn("process", F.array_min("holders"))
    apart = broken(
        split,
        "S11",
        [
            F.col("message"),
            " came before the signal in ",
            F.col("left_view"),
            " at ",
            text("have_before"),
            " and after it at ",
            text("have_after"),
            " of ",
            listed("processes"),
            ", who went together to ",
            F.col("next_view"),
        ],
        view="left_view",
        message="message",
        evidence=[("origin", F.col("send.index"))],
    )
    return [unequal, apart, tested(counted, labels), tested(ordered_class, "S11")]


def _elsewhere(tables: Tables, counted: DataFrame) -> DataFrame:
    """S9, C2: a co-mover that delivered a message, but not in the view in which the others did."""
    partly = counted.where(is_client() & (F.col("kind") == "move") & (F.col("have") < F.col("size")))
    partly = partly.withColumn("process", F.explode(F.array_except("processes", "holders")))
    partly = partly.join(tables.delivered.select(*PROCESS, "message", "index"), [*PROCESS, "message"])
    labels = {"S9": F.lit(True), "C2": F.lit(True), "M8": F.col("from_outside")}
    return broken(
        partly,
        labels,
        [
            F.col("process"),
            " delivered ",
            F.col("message"),
            " outside ",
            F.col("left_view"),
            ", but ",
            listed("holders"),
            ", who left that view with it, in it",
        ],
        view="left_view",
        message="message",
        evidence=[("process", "index")],
    )


def _same_spans(tables: Tables, members: DataFrame) -> list[DataFrame]:
    """Level C: between two network views, what one of a cohort delivered early, all deliver that were owed it."""
    early = tables.held.where(is_client() & (F.col("strength") >= RELIABLE) & (F.col("strength") < CAUSAL))
    own = early.select(*MEMBERSHIP, F.col("span.stay").alias("span"), "message").distinct()
    stays = tables.stays.select(*STAY, "membership", F.col("span.stay").alias("span"))
    spans = members.where(is_client() & F.col("spanned")).join(stays, STAY)
    heard = spans.join(own, [*MEMBERSHIP, "span"]).select(*COHORT, "message").distinct()
    due = spans.join(heard, COHORT).join(tables.owed, [*MEMBERSHIP, "message"])
    due = due.join(tables.messages.select(*MESSAGE, *ATTRIBUTES), MESSAGE)
    moved = F.col("kind") == "move"
    labels = {
        "S8": moved,
        "C2": moved,
        "M2": moved & (F.col("strength") == RELIABLE),
        "S13": ~moved,
        "M8": F.col("from_outside"),
    }
    lacking = due.join(own, [*MEMBERSHIP, "span", "message"], "left_anti")
    violations = broken(
        lacking,
        labels,
        [
            F.col("process"),
            " was with ",
            listed("processes"),
            " up to ",
            F.col("left_view"),
            ", but only others delivered ",
            F.col("message"),
            " since the last network view",
        ],
        view="left_view",
        message="message",
        evidence=[("origin", F.col("send.index")), ("process", "stay")],
    )
    return [violations, tested(due, labels)]


def signals(tables: ViewTables) -> DataFrame:
    """S11: at most one signal a view."""
    signalled = tables.stays.where(F.col("signals") > 0)
    violations = broken(
        signalled.where(F.col("signals") > 1),
        "S11",
        [F.col("process"), " had ", text("signals"), " signals in ", F.col("view")],
        view="view",
        evidence=[("process", "signal")],
    )
    return union([violations, tested(signalled, "S11")])
