"""One pass over the messages of daemons, which leaves of a large trace what the screen looks at.

In:        a trace, and the stays of its daemons.
Out:       digests: of each process, view and session, what was sent and delivered, as counts and sums of hashes, before
           and after the signal; and where order is broken.
Not here:  what that proves (screen.py), how order is found without sorting (links.py).

To read the rows takes longer than to add them up. So each row is read once.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.checks import links
from covey.analysis.claims import CLAIMS, MESSAGES, NONE, SITE_BITS, STAMP_BITS
from covey.analysis.tables.columns import CAUSAL, FIFO, RELIABLE, SAFE, UNRELIABLE, strength
from covey.trace.record import SERVICES

SERVICE_BITS: Final = 3
COUNTED: Final = {"reliable": RELIABLE, "fifo": FIFO, "safe": SAFE}


def is_message() -> Column:
    return (F.col("level") == "S") & F.col("event").isin(*MESSAGES)


def narrow(trace: DataFrame) -> DataFrame:
    """Level S: the messages, with hashes for names, and the order as one number."""
    rows = trace.where(is_message()).select(
        "*",
        _key().alias("key"),
        strength().alias("strength"),
        (F.col("event") == "send").alias("sent"),
        run_id().alias("run_id"),
        F.xxhash64("sender").alias("session"),
        F.col("session_seq").alias("seq"),
    )
    # The view is not part of the content: each row names its own, and its key is of that one.
    content = ("message", "session", "key", "strength", "digest", "size", "seq", "count")
    return rows.select(
        *("run_id", "session", "index", "sent", "seq", "strength", "key", *CLAIMS),
        pid().alias("pid"),
        stay_id().alias("stay_id"),
        F.xxhash64(*content).alias("one"),
        _is_loose().alias("loose"),
        _strange().alias("wrong"),
    )


def run_id() -> Column:
    return F.xxhash64("run")


def pid() -> Column:
    return F.xxhash64("run", "process")


def stay_id() -> Column:
    """A process in a view, by the hash of their names."""
    return F.xxhash64(pid(), "view")


def _key() -> Column:
    """The born order as one number; null for what does not fit, and for all but the first of a bundle."""
    stamp, site = F.col("order_stamp"), F.col("order_site").cast("bigint")
    fits = (
        stamp.between(0, (1 << STAMP_BITS) - 1)
        & site.between(0, (1 << SITE_BITS) - 1)
        & (F.coalesce("order_index", F.lit(0)) == 0)
    )
    return F.when(fits, F.shiftleft(stamp, SITE_BITS).bitwiseOR(site))


def _is_loose() -> Column:
    return F.col("strength") < RELIABLE


def _strange() -> Column:
    """What is not as it must be, whatever comes before.

    The id of what is sent is made of session and sequence: so it is unique. Of what is delivered it need not be asked:
    if the same is delivered as was sent, that has the same ids.
    """
    bound = (1 << links.INDEX_BITS) - 1
    stamped_in = F.when(_is_loose(), F.coalesce("order_view", "view")).otherwise(F.col("order_view"))
    return (
        ~holds(stamped_in == F.col("view"))
        | (_is_loose() & ~holds(F.col("service") == SERVICES[UNRELIABLE]))
        | (~_is_loose() & F.col("key").isNull())
        | (F.col("sent") & ~holds(F.col("message") == F.concat("sender", F.lit("#"), "session_seq")))
        # If one of them is out of bounds, so are their bits together.
        | ~holds(F.col("index").bitwiseOR(F.col("seq")).between(0, bound))
    )


def _misplaced() -> Column:
    """What does not stand above all that it must, if what it claims to be before it is true.

    An unreliable message has no place in the order, and may overtake; but no send repeats the id of another.
    """
    top = F.when(F.col("sent"), F.col("claim_top")).otherwise(F.col("claim_ordered"))
    is_above = (F.col("loose") | (F.col("key") > top)) & (_may_overtake() | (F.col("seq") > F.col("claim_floor")))
    is_after = (F.col("claim_last") < F.col("index")) & (F.col("claim_last") >= NONE)
    return ~holds(is_above & is_after & (~links.is_first() | (F.col("claim_floor") == NONE)))


def _may_overtake() -> Column:
    return F.col("loose") & ~F.col("sent")


def digests(messages: DataFrame, stays: DataFrame) -> DataFrame:
    """One row for each process, view and session, on each side of the signal, for what was sent and what delivered."""
    rows = messages.join(
        F.broadcast(stays.where(F.col("stay_id").isNotNull()).select("stay_id", "signal")), "stay_id", "left"
    )
    late = holds(F.col("index") > F.col("signal")).alias("late")
    asking = F.when(F.col("sent") & (F.col("strength") >= CAUSAL), F.col("index"))
    tops = links.raised("claim_top", F.col("key")), links.raised("claim_ordered", links.ordered_key())
    return rows.groupBy("stay_id", late, "session", "sent").agg(
        F.max("run_id").alias("run_id"),
        F.max("pid").alias("pid"),
        F.count("*").alias("rows"),
        F.max(F.col("wrong") | _misplaced()).alias("wrong"),
        F.max("loose").alias("loose"),
        F.min("index").alias("first"),
        F.max("index").alias("last"),
        F.bit_xor("one").alias("one"),
        *(_how_many(F.col("strength") == value).alias(name) for name, value in COUNTED.items()),
        F.min(asking).alias("first_asking"),
        F.max("key").alias("highest"),
        F.max(links.ordered_key()).alias("highest_ordered"),
        F.bit_xor(links.in_history(*tops)).alias("history"),
        *(F.max(F.when(F.col("sent"), value)).alias(name) for name, value in _last_of_sends().items()),
        *(F.min(F.when(F.col("sent"), value)).alias(name) for name, value in _first_of_sends().items()),
        F.max(links.floor()).alias("floor"),
        F.bit_xor(links.in_thread(links.raised("claim_floor", links.floor()))).alias("thread"),
        _how_many(links.is_first()).alias("starts"),
    )


def _last_of_sends() -> dict[str, Column]:
    return {"last_fifo": F.when(F.col("strength") == FIFO, F.col("seq")), "last_site": _site()}


def _first_of_sends() -> dict[str, Column]:
    is_weak = (F.col("strength") < CAUSAL).cast("bigint")
    return {
        "first_ordered": F.when(F.col("strength") >= CAUSAL, F.col("seq")),
        "first_site": _site(),
        # Two in one number: the lowest place, and whether its message is weak; the first message, and its service.
        "lowest": F.shiftleft("key", 1).bitwiseOR(is_weak),
        "begins": F.shiftleft("seq", SERVICE_BITS).bitwiseOR(F.col("strength")),
    }


def _site() -> Column:
    return F.col("key").bitwiseAND((1 << SITE_BITS) - 1)


def _how_many(condition: Column) -> Column:
    return F.sum(F.when(condition, F.lit(1)).otherwise(F.lit(0)).cast("bigint"))


def per_stay(digests: DataFrame) -> DataFrame:
    """For each process and view: what it sent and delivered, as counts and sums of hashes; and of it what came late."""
    sent, late, got = F.col("sent"), F.col("late"), ~F.col("sent")
    counts = {
        "sent": (sent, F.col("rows")),
        "sent_reliable": (sent, F.col("reliable")),
        "got": (got, F.col("rows")),
        "late": (got & late, F.col("rows")),
        "reliable": (got, F.col("reliable")),
        "fifo": (got, F.col("fifo")),
        "ordered": (got, F.col("rows") - F.col("reliable") - F.col("fifo")),
        "ordered_late": (got & late, F.col("rows") - F.col("reliable") - F.col("fifo")),
        "safe": (got, F.col("safe")),
        "safe_late": (got & late, F.col("safe")),
    }
    ones = {"sent_one": sent, "got_one": got, "late_one": got & late}
    nothing = F.lit(0).cast("bigint")
    return digests.groupBy("run_id", "pid", "stay_id").agg(
        F.max("wrong").alias("wrong"),
        F.max("loose").alias("loose"),
        F.sum("rows").alias("rows"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
        *(F.sum(F.when(where, count).otherwise(nothing)).alias(name) for name, (where, count) in counts.items()),
        *(F.bit_xor(F.when(where, F.col("one")).otherwise(nothing)).alias(name) for name, where in ones.items()),
        F.min("lowest").alias("lowest"),
        F.min("first_site").alias("first_site"),
        F.max("last_site").alias("last_site"),
        F.max("highest").alias("highest"),
        F.max("highest_ordered").alias("highest_ordered"),
        F.bit_xor("history").alias("history"),
        F.min("first_asking").alias("first_asking"),
    )


def per_session(digests: DataFrame) -> DataFrame:
    """For each process, view and session in which it sent something: its first message, and how services were mixed."""
    sent = digests.where("sent").groupBy("stay_id", "session")
    return sent.agg(
        F.min("begins").alias("begins"),
        F.coalesce(F.min("first_ordered") < F.max("last_fifo"), F.lit(False)).alias("mixed"),
    )


def sends(trace: DataFrame) -> DataFrame:
    """The sends alone; where they stand apart from the deliveries, no others are read."""
    return narrow(trace.where(F.col("event") == "send")).select("stay_id", "key")


def holds(condition: Column) -> Column:
    return F.coalesce(condition, F.lit(False))
