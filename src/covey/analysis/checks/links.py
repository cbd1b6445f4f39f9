"""Order without sorting: each row claims what was before it, and the claims are proven by sums of hashes.

In:        messages with the columns of claims.py.
Out:       what a row adds to the sums; what the sums must be; and the same columns found by sorting, where nobody wrote
           them down.
Not here:  what must stand above what (digests.py), which runs are proven (screen.py).

History: row i of a process claims to follow the tops t, and hands on t', which are t raised by what it delivers itself.
It adds hash(i, t) and hash(i + 1, t') to the sum of its process, a sum without carries (xor). What one row hands on is
what the next one claims, so all but the first and the last term cancel out. In turn, if nothing but these two is left,
an odd number of rows has index 0, and so an odd number has index 1, and so on: as there are as many rows as indexes,
each index is there once, and claims what the one before hands on. So every claim is true.

Thread: what a process sends in a session, or delivers of it, claims its predecessor by index, which is smaller, and the
floor that it must exceed. Indexes being unique, nothing is left but the last term if and only if each row but one is
the predecessor of exactly one other; with one first row that is a single line through all of them.

That other terms cancel out by chance is less likely than a broken disk.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.claims import CLAIMS, NONE
from covey.analysis.tables.columns import CAUSAL, FIFO, before, ordered

INDEX_BITS: Final = 60


def in_history(top: Column, top_ordered: Column) -> Column:
    """What a row adds to the sum of its history; given is what it hands on."""
    claimed = F.xxhash64("index", "claim_top", "claim_ordered")
    return claimed.bitwiseXOR(F.xxhash64(next_index(), top, top_ordered))


def next_index() -> Column:
    """None after an index that is beyond all bounds; then no sum comes out."""
    return F.when(F.col("index") < (1 << INDEX_BITS), F.col("index") + 1)


def whole_history(rows: Column, top: Column, top_ordered: Column) -> Column:
    """What all rows of a history must add up to."""
    nothing = F.lit(NONE).cast("bigint")
    start = F.xxhash64(F.lit(0).cast("bigint"), nothing, nothing)
    return start.bitwiseXOR(F.xxhash64(rows, top, top_ordered))


def whole_count(rows: Column) -> Column:
    """The same where nothing is claimed: only that each index is there once."""
    return F.xxhash64(F.lit(0).cast("bigint")).bitwiseXOR(F.xxhash64(rows))


def in_thread(floor: Column) -> Column:
    """What a message adds to the sum of its thread; given is the floor that it hands on."""
    claimed = F.when(is_first(), F.lit(0).cast("bigint")).otherwise(F.xxhash64("claim_last", "claim_floor"))
    return claimed.bitwiseXOR(F.xxhash64(F.col("index"), floor))


def whole_thread(last: Column, floor: Column) -> Column:
    return F.xxhash64(last, floor)


def is_first() -> Column:
    return F.col("claim_last") == NONE


def raised(top: str, value: Column) -> Column:
    """A top or floor as a row hands it on; `value` is null if it does not count."""
    return F.greatest(F.col(top), value)


def ordered_key() -> Column:
    return F.when(~F.col("sent") & (F.col("strength") >= CAUSAL), F.col("key"))


def floor() -> Column:
    return F.when(F.col("sent") | (F.col("strength") == FIFO), F.col("seq"))


def found(messages: DataFrame) -> DataFrame:
    """Messages with their claims found out, and `wrong` where two have the same index: all rows are sorted, twice."""
    history, thread = ["run_id", "pid"], ["run_id", "pid", "session", "sent"]
    last = F.lag("index").over(ordered(thread, "index"))
    values = [
        F.max("key").over(before(history, "index")),
        F.max(ordered_key()).over(before(history, "index")),
        last,
        F.max(floor()).over(before(thread, "index")),
    ]
    named = {name: F.coalesce(value, F.lit(NONE)) for name, value in zip(CLAIMS, values, strict=True)}
    again = F.coalesce(F.col("index") <= F.lag("index").over(ordered(history, "index")), F.lit(False))
    return messages.withColumns(named | {"wrong": F.col("wrong") | again})
