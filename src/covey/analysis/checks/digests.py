"""One pass over the messages of daemons, which leaves of a large trace what the screen looks at.

In:        a trace, and the stays of its daemons.
Out:       digests: of each process and view, what it sent and delivered, as counts and sums of hashes, before and after
           the signal; of each session what was sent, in blocks; and where order is broken.
Not here:  what that proves (screen.py), how order is found without sorting (blocks.py).

To read the rows takes longer than to add them up. So each row is read once and counts twice: in its place in the
history of its process, and in its place in its session.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.checks import blocks
from covey.analysis.tables.columns import CAUSAL, FIFO, RELIABLE, SAFE, strength

STAMP_BITS: Final = 52
SITE_BITS: Final = 9
INDEX_BITS: Final = 60

# In what a block stands: the history of a process, before and after the signal; what one hears of a session; its sends.
HISTORY, HISTORY_LATE, HEARD, SESSION = range(4)
# Kinds of rows, as to what they must stand above; sends of a session stand above all there anyway, so theirs say more.
SILENT, EARLY, ORDERED, ABOVE_ALL = range(4)
LOOSE, IN_SEQUENCE, IN_ORDER = SILENT, EARLY, ORDERED
# What is counted in a tally, with eight bits for each: who sent, and who got, what.
TALLY_BITS: Final = 8
TALLIED: Final = ("sent_reliable", "sent_fifo", "sent_ordered", "reliable", "fifo", "agreed", "safe")


def is_message() -> Column:
    return (F.col("level") == "S") & F.col("event").isin("send", "deliver")


def narrow(trace: DataFrame) -> DataFrame:
    """Level S: the messages, with hashes for names, and the order as one number."""
    rows = trace.where(is_message()).select(
        "*",
        _key().alias("key"),
        strength().alias("strength"),
        (F.col("event") == "send").alias("sent"),
        run_id().alias("run_id"),
    )
    rows = rows.select("*", pid().alias("pid"), F.xxhash64("run_id", "sender").alias("session"))
    strange = (
        ~holds(F.col("order_view") == F.col("view"))
        | (F.col("strength") < RELIABLE)
        | F.col("key").isNull()
        | F.col("message").isNull()
        | ~holds(F.col("index").between(0, (1 << INDEX_BITS) - 1))
    )
    # The view is not part of the content: each row names its own, and its key is of that one.
    content = ("message", "session", "key", "strength", "digest", "size", "session_seq", "count")
    return rows.select(
        "run_id",
        "pid",
        place().alias("place"),
        "session",
        "index",
        "sent",
        F.col("session_seq").alias("seq"),
        "strength",
        "key",
        strange.alias("strange"),
        F.xxhash64(*content).alias("one"),
    )


def run_id() -> Column:
    return F.xxhash64("run")


def pid() -> Column:
    """A process, by the hash of its run and its name."""
    return F.xxhash64("run_id", "process")


def place() -> Column:
    """A process in a view."""
    return F.xxhash64("pid", "view")


def _key() -> Column:
    """The born order as one number; null for what does not fit, and for all but the first of a bundle."""
    stamp, site = F.col("order_stamp"), F.col("order_site").cast("bigint")
    fits = (
        stamp.between(0, (1 << STAMP_BITS) - 1)
        & site.between(0, (1 << SITE_BITS) - 1)
        & (F.coalesce("order_index", F.lit(0)) == 0)
    )
    return F.when(fits, F.shiftleft(stamp, SITE_BITS).bitwiseOR(site))


def digests(messages: DataFrame, stays: DataFrame) -> DataFrame:
    """One row for each process and view, on each side of the signal, and for each block of sends of a session.

    `disorder`: something does not stand above what it must; of what was heard of sessions nothing else is left.
    """
    rows = messages.join(F.broadcast(stays.select("place", "signal")), "place", "left")
    late = holds(F.col("index") > F.col("signal"))
    rows = _twice(rows.withColumn("late", late))
    keys = ("run_id", "scope", "place", "what")
    found = rows.groupBy(*keys, blocks.block("number").alias("block")).agg(
        *blocks.slots("number", F.col("value"), F.col("kind")), *_sums()
    )
    pairs = list(zip(blocks.kinds(), blocks.values(), strict=True))
    of_sends = F.col("what") == SESSION
    above_all = [F.when((kind == ABOVE_ALL) | of_sends, value) for kind, value in pairs]
    above_ordered = [F.when(kind.isin(EARLY, ORDERED), value) for kind, value in pairs]
    ordered = [F.when(kind == ORDERED, value) for kind, value in pairs]
    carried: list[str | Column] = [
        *keys,
        *("rows", "wrong", "sent_one", "got_one", "first_asking", "tally"),
        F.when(of_sends, F.array(*blocks.names())).alias("slots"),
        F.greatest("what", F.lit(HISTORY_LATE)).alias("side"),
    ]
    rules = {"all": (above_all, blocks.values()), "ordered": (above_ordered, ordered)}
    return _reduced(blocks.with_disorder(found, ["side", "scope"], rules, carried))


def _twice(rows: DataFrame) -> DataFrame:
    """Each row in its place in the history of its process, and in its place in its session."""
    sent, ordered, fifo = F.col("sent"), F.col("strength") >= CAUSAL, F.col("strength") == FIFO
    in_history = F.when(sent, ABOVE_ALL).when(ordered, ORDERED).otherwise(EARLY)
    sent_kind = F.when(ordered, IN_ORDER).when(fifo, IN_SEQUENCE).otherwise(LOOSE)
    in_session = F.when(sent, sent_kind).otherwise(F.when(fifo, ABOVE_ALL).otherwise(SILENT))
    none = F.lit(None).cast("bigint")
    both = {
        "what": (F.col("late").cast("int"), F.when(sent, SESSION).otherwise(HEARD)),
        "scope": (F.col("pid"), F.when(sent, F.col("session")).otherwise(F.xxhash64("pid", "session"))),
        "number": (F.col("index"), F.col("seq")),
        "value": (F.col("key"), F.when(sent, F.col("key")).otherwise(F.col("index"))),
        "kind": (in_history, in_session),
        "strange": (F.col("strange"), F.lit(False)),
        "sent_one": (F.when(sent, F.col("one")).otherwise(F.lit(0)), F.lit(0).cast("bigint")),
        "got_one": (F.when(sent, F.lit(0)).otherwise(F.col("one")), F.lit(0).cast("bigint")),
        "asking": (F.when(sent & ordered, F.col("index")), none),
        "tally": (_tally(), F.lit(0).cast("bigint")),
    }
    named = [part.alias(f"{name}_{nth}") for name, parts in both.items() for nth, part in enumerate(parts)]
    rows = rows.select("run_id", "place", *named)
    sides = ", ".join(f"({', '.join(f'{name}_{nth}' for name in both)})" for nth in range(2))
    # The only way of making two rows of one that does not make objects of them.
    return rows.sparkSession.sql(
        f"select * from {{rows}} unpivot include nulls (({', '.join(both)}) for nth in ({sides}))", rows=rows
    )


def _tally() -> Column:
    """One in the bits of what this row is."""
    at = (
        F.when(F.col("sent"), F.least(F.col("strength"), F.lit(CAUSAL)) - RELIABLE)
        .when(F.col("strength") < CAUSAL, F.col("strength") - RELIABLE + TALLIED.index("reliable"))
        .when(F.col("strength") == SAFE, TALLIED.index("safe"))
        .otherwise(TALLIED.index("agreed"))
    )
    return F.when(F.col("strength") < RELIABLE, F.lit(0).cast("bigint")).otherwise(
        F.call_function("shiftleft", F.lit(1).cast("bigint"), at * TALLY_BITS)
    )


def _sums() -> list[Column]:
    return [
        F.max("strange").alias("wrong"),
        F.bit_xor("sent_one").alias("sent_one"),
        F.bit_xor("got_one").alias("got_one"),
        F.min("asking").alias("first_asking"),
        # Too many rows for a block are found out otherwise, but must not stop us.
        F.try_sum("tally").alias("tally"),
    ]


def _reduced(found: DataFrame) -> DataFrame:
    """Blocks of histories become one row for each process and view; of what was heard only the wrong is left."""
    found = found.where((F.col("what") != HEARD) | F.col("disorder"))
    start = F.when(F.col("what") == SESSION, F.col("first")).alias("start")
    counts = [
        F.sum(F.shiftright("tally", nth * TALLY_BITS).bitwiseAND((1 << TALLY_BITS) - 1)).alias(name)
        for nth, name in enumerate(TALLIED)
    ]
    return found.groupBy("run_id", "scope", "place", "what", start, "slots").agg(
        *_added_up(), *counts, F.max("disorder").alias("disorder"), F.max("high_ordered").alias("top")
    )


def _added_up() -> list[Column]:
    """What is added up alike, from blocks to sides of the signal to views."""
    return [
        F.max("wrong").alias("wrong"),
        F.sum("rows").alias("rows"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
        F.bit_xor("sent_one").alias("sent_one"),
        F.bit_xor("got_one").alias("got_one"),
        F.min("first_asking").alias("first_asking"),
    ]


def per_stay(digests: DataFrame) -> DataFrame:
    """For each process and view: what it sent and delivered, as counts and sums of hashes; and of it what came late."""
    rows = digests.where(F.col("what").isin(HISTORY, HISTORY_LATE)).withColumn("after", F.col("what") == HISTORY_LATE)
    delivered = F.col("reliable") + F.col("fifo") + F.col("agreed") + F.col("safe")
    after = F.col("after")
    counts = {
        "sent": F.col("sent_reliable") + F.col("sent_fifo") + F.col("sent_ordered"),
        "sent_reliable": F.col("sent_reliable"),
        "got": delivered,
        "late": F.when(after, delivered).otherwise(0),
        "reliable": F.col("reliable"),
        "fifo": F.col("fifo"),
        "ordered": F.col("agreed") + F.col("safe"),
        "safe": F.col("safe"),
        "safe_late": F.when(after, F.col("safe")).otherwise(0),
    }
    return rows.groupBy("run_id", F.col("scope").alias("pid"), "place").agg(
        *_added_up(),
        *(F.sum(count).alias(name) for name, count in counts.items()),
        F.bit_xor(F.when(after, F.col("got_one")).otherwise(F.lit(0))).alias("late_one"),
        F.max(F.when(~after, F.col("top"))).alias("top"),
        F.max(F.when(after, F.col("top"))).alias("top_late"),
    )


def sends(digests: DataFrame) -> DataFrame:
    """Of each session what was sent, in blocks."""
    slots = [F.col("slots")[slot].alias(name) for slot, name in enumerate(blocks.names())]
    return digests.where(F.col("what") == SESSION).select("place", F.col("scope").alias("session"), "first", *slots)


def holds(condition: Column) -> Column:
    return F.coalesce(condition, F.lit(False))
