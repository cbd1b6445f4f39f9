"""Who moves or rests together has delivered the same: S8, S11, S9 between co-movers, S13 at rest, with M2, M8, C2.

In:        Tables.
Out:       findings.
Not here:  what a sender or a daemon promises alone (rest.py), safe messages (safe.py).

For each cohort (tables/cohorts.py) and message it is counted how many delivered it: all or none, on the same side of
the signal. Reliable and fifo messages of clients are compared over the span between two network views, as far as they
were owed.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from covey.analysis.findings import broken, listed, marked, text, union, weighed
from covey.analysis.tables.build import Tables
from covey.analysis.tables.cohorts import COHORT
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


def check(tables: Tables) -> DataFrame:
    return union([*_same_messages(tables), _same_spans(tables), _signals(tables)])


def _same_messages(tables: Tables) -> list[DataFrame]:
    concerned = tables.held.where(F.col("strength") >= F.when(is_client(), CAUSAL).otherwise(RELIABLE))
    sides = concerned.groupBy(*STAY, "message").agg(F.max(~F.col("after")).alias("early"), F.max("after").alias("late"))
    counted = (
        sides.join(tables.cohorts, STAY)
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
    return [_judge_counts(counted), _elsewhere(tables, counted)]


def _judge_counts(counted: DataFrame) -> DataFrame:
    """Two questions about each row: whether all have it, and whether on the same side of the signal."""
    asked = F.explode(F.array(F.lit("all"), F.lit("sides")))
    counted = counted.withColumn("process", F.array_min("holders")).withColumn("asked", asked)
    of_all, of_sides = F.col("asked") == "all", F.col("asked") == "sides"
    moved, strength = F.col("occasion") == "move", F.col("strength")
    labels = {
        "S8": of_all & moved,
        "M2": of_all & moved & (strength == RELIABLE) & ~is_client(),
        "S13": of_all & ~moved,
        "M8": of_all & F.col("from_outside"),
        "S11": of_sides & moved & (strength >= CAUSAL),
    }
    sides = [(F.col(side) > 0) & (F.col(side) < F.col("size")) for side in ("have_before", "have_after")]
    lacking = F.array_except("processes", "holders")
    unequal = F.concat(
        F.lit("only "),
        listed("holders"),
        F.lit(" delivered "),
        F.col("message"),
        F.lit(" in "),
        F.col("left_view"),
        F.lit(", not "),
        listed(lacking),
        F.lit(", who went with them to "),
    )
    apart = F.concat(
        F.col("message"),
        F.lit(" came before the signal in "),
        F.col("left_view"),
        F.lit(" at "),
        text("have_before"),
        F.lit(" and after it at "),
        text("have_after"),
        F.lit(" of "),
        listed("processes"),
        F.lit(", who went together to "),
    )
    return weighed(
        counted,
        labels,
        F.when(of_all, F.col("have") < F.col("size")).otherwise(sides[0] | sides[1]),
        [F.when(of_all, unequal).otherwise(apart), F.col("next_view")],
        view="left_view",
        message="message",
        evidence=[("origin", F.col("send.index"))],
    )


def _elsewhere(tables: Tables, counted: DataFrame) -> DataFrame:
    """S9, C2: a co-mover that delivered a message, but not in the view in which the others did."""
    partly = counted.where(is_client() & (F.col("occasion") == "move") & (F.col("have") < F.col("size")))
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


def _same_spans(tables: Tables) -> DataFrame:
    """Level C: between two network views, what one of a cohort delivered early, all deliver that were owed it."""
    early = tables.held.where(is_client() & (F.col("strength") >= RELIABLE) & (F.col("strength") < CAUSAL))
    own = early.select(*MEMBERSHIP, F.col("span.stay").alias("span"), "message").distinct()
    stays = tables.stays.select(*STAY, "membership", F.col("span.stay").alias("span"))
    spans = tables.cohorts.where(is_client() & F.col("spanned")).join(stays, STAY)
    heard = spans.join(own, [*MEMBERSHIP, "span"]).select(*COHORT, "message").distinct()
    due = spans.join(heard, COHORT).join(tables.owed, [*MEMBERSHIP, "message"])
    moved = F.col("occasion") == "move"
    labels = {
        "S8": moved,
        "C2": moved,
        "M2": moved & (F.col("strength") == RELIABLE),
        "S13": ~moved,
        "M8": F.col("from_outside"),
    }
    return weighed(
        marked(due, own, [*MEMBERSHIP, "span", "message"]),
        labels,
        ~F.col("found"),
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
        evidence=[("origin", "sent_at"), ("process", "stay")],
    )


def _signals(tables: Tables) -> DataFrame:
    """S11: at most one signal a view."""
    signalled = tables.stays.where(F.col("signals") > 0)
    return weighed(
        signalled,
        "S11",
        F.col("signals") > 1,
        [F.col("process"), " had ", text("signals"), " signals in ", F.col("view")],
        view="view",
        evidence=[("process", "signal")],
    )
