"""Messages and deliveries: what was sent, and who delivered it where.

In:        the rows of a trace, and the stays.
Out:       traffic (send, deliver and discard rows), inside (which row falls into which stay), messages (one row each),
           deliveries (one row each, with what the message is), delivered (one row a process and message).
Not here:  what should have been delivered (owed.py).

A message is what its send row says; one that nobody sent is what its first delivery says. At level C the sender does
not know its place in the order: that comes from the first delivery that has one.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.trace.record import PRIVATE

from .columns import (
    CAUSAL,
    DELIVERED,
    FIFO,
    MESSAGE,
    ORDER,
    PROCESS,
    RELIABLE,
    STAY,
    is_client,
    key,
    ordered,
    strength,
    until,
)

SEND = ("process", "index", "view", "step", "time_ns")
"""What is remembered of a send, wherever its message goes."""
CONTENT = ("digest", "size", "service", "sender", "session_seq", "count")


def traffic_of(rows: DataFrame) -> DataFrame:
    event = F.col("event")
    found = rows.where(event.isin("send", "deliver") | (is_client() & (event == "discard")))
    # What a daemon refused has no effect, and says so in its cause.
    sends = (event == "send") & (~is_client() | F.col("cause").isNull())
    return found.select(
        *PROCESS,
        "index",
        "event",
        "step",
        "time_ns",
        "view",
        "groups",
        "views",
        *CONTENT,
        *ORDER,
        F.coalesce("message", F.lit("")).alias("message"),
        strength().alias("strength"),
        key().alias("key"),
        sends.alias("is_send"),
        event.isin(*DELIVERED).alias("is_delivery"),
        _is_written_to().alias("is_written_to"),
    )


def _is_written_to() -> Column:
    """A client's message that is for this program, whatever groups it is for."""
    names = F.split(F.substring(F.col("detail"), len(PRIVATE) + 1, 1 << 20), ", ")
    return F.coalesce(F.col("detail").startswith(PRIVATE) & F.array_contains(names, F.col("name")), F.lit(False))


def inside_of(traffic: DataFrame, marks: DataFrame) -> DataFrame:
    """Each row of the traffic in each of its groups, with the stay it falls into, if any, and the view it names."""
    at_daemons = traffic.where(~is_client()).select(
        *PROCESS, "index", F.lit("").alias("grp"), F.col("view").alias("named")
    )
    zipped = F.explode(F.arrays_zip("groups", "views"))
    at_clients = traffic.where(is_client()).select(*PROCESS, "index", zipped.alias("at"))
    at_clients = at_clients.select(*PROCESS, "index", F.col("at.groups").alias("grp"), F.col("at.views").alias("named"))
    rows = at_daemons.unionByName(at_clients).withColumn("mark", F.lit(None).cast("bigint"))
    bounds = marks.where(F.col("which") != "signal").select(
        *PROCESS,
        "index",
        "grp",
        F.lit(None).cast("string").alias("named"),
        F.when(F.col("which") == "view", F.col("index")).otherwise(F.lit(-1)).alias("mark"),
    )
    both = rows.withColumn("bound", F.lit(False)).unionByName(bounds.withColumn("bound", F.lit(True)))
    mark = F.last("mark", ignorenulls=True).over(until([*PROCESS, "grp"], "index"))
    placed = both.withColumn("stay", mark).where(~F.col("bound") & F.col("grp").isNotNull())
    return placed.select(*PROCESS, "index", "grp", "named", F.when(F.col("stay") >= 0, F.col("stay")).alias("stay"))


def messages_of(traffic: DataFrame, inside: DataFrame) -> DataFrame:
    order = F.struct("process", "index")
    sent, delivered = F.col("is_send"), F.col("is_delivery")
    said = F.struct(*SEND, "groups", "strength", "key", *CONTENT, *ORDER)
    found = (
        traffic.where(sent | delivered)
        .groupBy(*MESSAGE)
        .agg(
            F.min_by(F.when(sent, said), F.when(sent, order)).alias("said"),
            F.min_by(F.when(delivered, said), F.when(delivered, order)).alias("told"),
            _placed(delivered & F.col("key").isNotNull(), order).alias("placed"),
            F.count_if(sent).alias("sends"),
        )
    )
    found = found.withColumn("base", F.coalesce("said", "told"))
    ordered_by = F.when(is_client() & F.col("base.key").isNull(), F.col("placed")).otherwise(
        F.struct(F.col("base.order_view").alias("order_view"), F.col("base.key").alias("key"))
    )
    messages = found.withColumn("by", ordered_by).select(
        *MESSAGE,
        "said",
        F.when(F.col("said").isNotNull(), F.struct(*(f"said.{name}" for name in SEND))).alias("send"),
        "sends",
        F.coalesce("base.sender", F.lit("")).alias("sender"),
        F.coalesce("base.session_seq", F.lit(0)).alias("seq"),
        F.col("base.strength").alias("strength"),
        F.col("by.order_view").alias("order_view"),
        F.col("by.key").alias("key"),
        F.col("base.groups").alias("groups"),
        F.col("said.process").alias("origin"),
        # The row that says what it is: its send, or its first delivery.
        F.struct("base.process", "base.index").alias("row"),
    )
    return _classified(messages, inside)


def _placed(condition: Column, order: Column) -> Column:
    return F.min_by(F.when(condition, F.struct("order_view", "key")), F.when(condition, order))


def _classified(messages: DataFrame, inside: DataFrame) -> DataFrame:
    """Whether it went to a group that its sender was not in, and whether to several."""
    here = F.col("stay").isNotNull()
    known = inside.where(is_client() & here).groupBy(*PROCESS, "index").agg(F.countDistinct("grp").alias("in_groups"))
    keys = messages.select(*MESSAGE, F.col("send.process").alias("process"), F.col("send.index").alias("index"))
    known = keys.where(is_client()).join(known, [*PROCESS, "index"]).select(*MESSAGE, "in_groups")
    messages = messages.join(known, MESSAGE, "left")
    outside = is_client() & F.col("send").isNotNull() & (F.coalesce("in_groups", F.lit(0)) < F.size("groups"))
    several = is_client() & (F.size("groups") > 1)
    place = F.struct(
        F.col("order_view").alias("view"), F.col("key.stamp").alias("stamp"), F.col("key.site").alias("site")
    )
    known_place = F.col("order_view").isNotNull() & F.col("key").isNotNull()
    return messages.select(
        "*", outside.alias("from_outside"), several.alias("to_several"), F.when(known_place, place).alias("place")
    ).drop("in_groups")


ATTRIBUTES = (
    "sender",
    "seq",
    "strength",
    "order_view",
    "key",
    "groups",
    "origin",
    "from_outside",
    "to_several",
    "place",
    "send",
)


DELIVERY = (
    "event",
    "step",
    "time_ns",
    "order_stamp",
    "row_strength",
    "row_key",
    "row_order_view",
    "row_sender",
    "differing",
    "nth",
)
"""What is remembered of a delivery beside its message: what its row says, and in what that differs from the send."""


def deliveries_of(traffic: DataFrame, messages: DataFrame) -> DataFrame:
    """Each delivery with what its message is, and the how-manieth delivery of it this is at this process."""
    rows = traffic.where(F.col("is_delivery")).withColumnsRenamed(
        {
            "strength": "row_strength",
            "key": "row_key",
            "order_view": "row_order_view",
            "sender": "row_sender",
            "groups": "row_groups",
            "view": "row_view",
        }
    )
    found = rows.join(messages.select(*MESSAGE, *ATTRIBUTES, "said"), MESSAGE)
    differing = F.array_compact(
        F.array(*(F.when(_differs(name), F.lit(name)) for name in (*CONTENT, *ORDER, "groups")))
    )
    found = found.withColumn("differing", differing)
    found = found.withColumn("nth", F.row_number().over(ordered([*MESSAGE, "process"], "index")))
    return found.select(*PROCESS, "message", "index", *ATTRIBUTES, *DELIVERY)


def _differs(column: str) -> Column:
    """At S a null on either side says nothing; at C only a discard, which does not know the content, may have one."""
    here = F.col({"sender": "row_sender", "groups": "row_groups", "order_view": "row_order_view"}.get(column, column))
    there = F.col(f"said.{column}")
    at_clients = ~here.eqNullSafe(there) & ~(here.isNull() & (F.col("event") == "discard"))
    at_daemons = F.coalesce(here != there, F.lit(False))
    if column in ORDER:
        return ~is_client() & at_daemons
    return is_client() & at_clients if column == "groups" else F.when(is_client(), at_clients).otherwise(at_daemons)


def delivered_of(deliveries: DataFrame) -> DataFrame:
    """The first delivery of each message at each process."""
    return deliveries.where(F.col("nth") == 1).select(*PROCESS, "message", "index", *ATTRIBUTES)


def sent_of(messages: DataFrame, inside: DataFrame, stays: DataFrame) -> DataFrame:
    """Each message that was sent, in each stay of its sender that the send falls into: at level C one a group."""
    sends = messages.where(F.col("send").isNotNull()).select(
        *MESSAGE, F.col("origin").alias("process"), F.col("send.index").alias("index"), "strength"
    )
    placed = inside.where(F.col("stay").isNotNull()).drop("named")
    there = stays.select(*STAY, "view", "rank", "members", "span", "membership", "open", "is_last", "witness")
    return sends.join(placed, [*PROCESS, "index"]).join(there, STAY)


def held_of(deliveries: DataFrame, inside: DataFrame, stays: DataFrame) -> DataFrame:
    """What was delivered in each stay: each message once, with the side or sides of the signal."""
    rows = deliveries.select(*PROCESS, "message", "index", *ATTRIBUTES, "row_key", "row_order_view")
    rows = rows.join(inside.where(F.col("stay").isNotNull()).drop("named"), [*PROCESS, "index"])
    rows = rows.join(stays.select(*STAY, "signal", "view", "rank", "span", "membership", "daemon"), STAY)
    after = F.coalesce(F.col("signal") < F.col("index"), F.lit(False))
    return rows.withColumn("after", after)


__all__ = ["ATTRIBUTES", "CAUSAL", "FIFO", "RELIABLE"]
