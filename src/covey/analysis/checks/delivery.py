"""What is delivered at all: no duplicates, nothing unsent, in the right view. S6, S7, S9, S10, M1, with M2, M8, M9.

In:        Tables.
Out:       findings.
Not here:  circles in time (circles.py), who lacks what (cohorts.py, rest.py), order (order.py).

  S6   no message is delivered twice (unreliable ones: M1)
  S7   every delivery has a send of the same content
  S9   all who deliver a message do so in the same view; at level C before the signal, and causal or stronger
  S10  no delivery in a view before that of the send, nor beside a later life of the sender
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from covey.analysis.findings import broken, tested, text, union, weighed
from covey.analysis.tables.build import Tables
from covey.analysis.tables.columns import (
    CAUSAL,
    MESSAGE,
    PROCESS,
    RELIABLE,
    UNRELIABLE,
    is_client,
    life_name,
    life_number,
    ordered,
)
from covey.analysis.tables.stays import GROUP, first_of


def check(tables: Tables) -> DataFrame:
    return union([duplicates(tables), integrity(tables), same_view(tables), sending_view(tables), sending_life(tables)])


def duplicates(tables: Tables) -> DataFrame:
    """S6, M1, M2, M8, M9: once to each receiver."""
    strength = F.col("strength")
    labels = {
        "S6": strength >= RELIABLE,
        "M1": strength == UNRELIABLE,
        "M2": strength == RELIABLE,
        "M8": F.col("from_outside") & (strength >= RELIABLE),
        "M9": F.col("to_several"),
    }
    again = tables.deliveries.where(F.col("nth") > 1)
    firsts = tables.delivered.select(*PROCESS, "message", F.col("index").alias("first_index"))
    violations = broken(
        again.join(firsts, [*PROCESS, "message"]),
        labels,
        [F.col("process"), " delivered ", F.col("message"), " twice"],
        message="message",
        evidence=[("process", "first_index"), ("process", "index")],
    )
    return union([violations, tested(tables.deliveries, labels)])


def integrity(tables: Tables) -> DataFrame:
    """S7, but for circles in time."""
    nth = F.row_number().over(ordered(MESSAGE, "process", "index"))
    sends = tables.traffic.where(F.col("is_send")).withColumn("nth", nth)
    repeated = broken(
        sends.where(F.col("nth") > 1),
        "S7",
        [F.col("process"), " sent ", F.col("message"), ", which had been sent before"],
        message="message",
        evidence=[("process", "index")],
    )
    sent = tables.messages.where(~is_client() & F.col("send").isNotNull() & F.col("order_view").isNotNull())
    elsewhere = sent.where(~F.col("order_view").eqNullSafe(F.col("send.view")))
    misplaced = broken(
        elsewhere,
        "S7",
        [F.col("message"), " was sent in ", text("send.view"), " but stamped in ", F.col("order_view")],
        process="origin",
        message="message",
        evidence=[("origin", F.col("send.index"))],
    )
    return union([repeated, misplaced, _contents(tables)])


def _contents(tables: Tables) -> DataFrame:
    what = F.when(F.col("send").isNull(), F.lit(", which nobody sent")).otherwise(
        F.concat(F.lit(" with another "), F.array_join("differing", ", "), F.lit(" than it was sent with"))
    )
    return weighed(
        tables.deliveries,
        "S7",
        F.col("send").isNull() | (F.size("differing") > 0),
        [F.col("process"), " delivered ", F.col("message"), what],
        message="message",
        evidence=[("origin", F.col("send.index")), ("process", "index")],
    )


def same_view(tables: Tables) -> DataFrame:
    """S9; at level C also C2 and M8, and M1: an unreliable message comes in the view of its send."""
    concerned = tables.held.where(~is_client() | (~F.col("after") & (F.col("strength") >= CAUSAL)))
    order = ordered([*MESSAGE, "grp"], "process", "index")
    pairs = concerned.withColumn("first", F.first(F.struct("process", "stay", "index", "view")).over(order))
    pairs = pairs.where(F.struct("process", "stay") != F.struct("first.process", "first.stay"))
    labels = {"S9": F.lit(True), "C2": is_client(), "M8": F.col("from_outside")}
    compared = weighed(
        pairs,
        labels,
        F.col("view") != F.col("first.view"),
        [
            F.col("process"),
            " delivered ",
            F.col("message"),
            " in ",
            F.col("view"),
            ", but ",
            F.col("first.process"),
            " in ",
            F.col("first.view"),
        ],
        view="view",
        message="message",
        evidence=[("process", "index"), (F.col("first.process"), F.col("first.index"))],
    )
    unreliable = tables.held.where(~is_client() & (F.col("strength") == UNRELIABLE) & F.col("send").isNotNull())
    late = broken(
        unreliable.where(~F.col("view").eqNullSafe(F.col("send.view"))),
        "M1",
        [
            F.col("process"),
            " delivered unreliable ",
            F.col("message"),
            " in ",
            F.col("view"),
            ", sent in ",
            text("send.view"),
        ],
        view="view",
        message="message",
        evidence=[("origin", F.col("send.index")), ("process", "index")],
    )
    return union([compared, late])


def sending_view(tables: Tables) -> DataFrame:
    """S10, first half. At level C, after a signal, only network views count, since light ones are not shown there."""
    ranks = first_of(tables.stays.where(~is_client()), "run", "level", "view")
    ranks = ranks.select("run", "level", F.col("view").alias("sent_in"), F.col("rank").alias("sent_rank"))
    at_daemons = (
        tables.held.where(~is_client())
        .withColumn("sent_in", F.col("send.view"))
        .join(ranks, ["run", "level", "sent_in"])
    )
    at_daemons = at_daemons.withColumn("wrong", F.col("rank") < F.col("sent_rank"))
    sent = _from_inside(tables.sent.where(is_client()), tables.rows).select(
        *MESSAGE,
        "grp",
        F.col("view").alias("sent_in"),
        F.col("rank").alias("sent_rank"),
        F.col("span").alias("sent_span"),
    )
    at_clients = tables.held.where(is_client() & (F.col("strength") >= RELIABLE)).join(sent, [*MESSAGE, "grp"])
    in_view = (F.col("strength") >= CAUSAL) & ~F.col("after")
    by_span = ~F.col("sent_span.light")
    at_clients = at_clients.where(in_view | by_span).withColumn(
        "wrong",
        (in_view & (F.col("rank") < F.col("sent_rank"))) | (by_span & (F.col("span.rank") < F.col("sent_span.rank"))),
    )
    columns = [*PROCESS, "grp", "message", "index", "view", "sent_in", "send", "origin", "wrong"]
    judged = at_daemons.select(*columns).unionByName(at_clients.select(*columns))
    return weighed(
        judged,
        "S10",
        F.col("wrong"),
        [
            F.col("process"),
            " delivered ",
            F.col("message"),
            " in ",
            F.col("view"),
            ", before the view ",
            F.col("sent_in"),
            " it was sent in",
        ],
        view="view",
        message="message",
        evidence=[("origin", F.col("send.index")), ("process", "index")],
    )


def _from_inside(sent: DataFrame, rows: DataFrame) -> DataFrame:
    """Without what was sent to a group after asking to leave it: the leave may hide a merge from the others."""
    asked, told = (F.col("event") == "leave") & F.col("cause").isNull(), F.col("event") == "self_leave"
    until_told = F.min(F.when(told, F.col("index"))).over(
        ordered(GROUP, "index").rowsBetween(1, Window.unboundedFollowing)
    )
    leaves = rows.where(is_client() & (asked | told)).withColumn("told", until_told).where(asked)
    leaves = leaves.select(
        *(F.col(key).alias(f"leaving_{key}") for key in GROUP), F.col("index").alias("asked"), "told"
    )
    same = [F.col(key) == F.col(f"leaving_{key}") for key in GROUP]
    outside = (F.col("asked") < F.col("index")) & (F.col("told").isNull() | (F.col("index") < F.col("told")))
    return sent.join(leaves, [*same, outside], "left_anti")


def sending_life(tables: Tables) -> DataFrame:
    """S10, second half: once a view with a later life of a process was installed, nothing of an earlier one comes."""
    seen = tables.stays.select(*PROCESS, "stay", F.explode("members").alias("member"))
    seen = seen.withColumn("life", life_name(F.col("member"))).withColumn("number", life_number(F.col("member")))
    seen = seen.groupBy(*PROCESS, "life", "number").agg(F.min("stay").alias("since"))
    seen = seen.join(_names_of_several(tables, seen), ["run", "level", "life"])
    sender = F.when(is_client(), F.coalesce("row_sender", F.lit(""))).otherwise(F.col("origin"))
    concerned = F.when(is_client(), F.col("row_strength") >= RELIABLE).otherwise(F.col("origin").isNotNull())
    rows = (
        tables.deliveries.where(concerned).withColumn("life", life_name(sender)).withColumn("mine", life_number(sender))
    )
    rows = rows.select(*PROCESS, "message", "index", "life", "mine", "send", "origin")
    pairs = rows.join(seen, [*PROCESS, "life"]).where(
        (F.col("since") < F.col("index")) & (F.col("number") > F.col("mine"))
    )
    first = pairs.groupBy(*PROCESS, "message", "index", "life").agg(F.min("since").alias("since"))
    return broken(
        first,
        "S10",
        [F.col("process"), " delivered ", F.col("message"), " after a view with a later life of ", F.col("life")],
        message="message",
        evidence=[("process", "since"), ("process", "index")],
    )


def _names_of_several(tables: Tables, seen: DataFrame) -> DataFrame:
    """The names that several lives have had, as views and rows tell: only they can be wrong."""
    process = F.col("process")
    known = tables.lives.select("run", "level", life_name(process).alias("life"), life_number(process).alias("number"))
    known = known.unionByName(seen.select("run", "level", "life", "number")).distinct()
    return known.groupBy("run", "level", "life").count().where(F.col("count") > 1).drop("count")
