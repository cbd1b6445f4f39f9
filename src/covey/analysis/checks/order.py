"""The order within sessions: M3 and M7.

In:        Tables; `shares` has, for each process, what it delivered and what it should have.
Out:       findings.
Not here:  the agreed order (agreed.py), happened-before (causal.py).

  M3  a fifo or stronger message does not come before or without an earlier reliable or stronger one of its session
  M7  a fifo message does not come before or without an earlier causal or stronger one of its session and view

No pairs are formed. The messages of a session are gone through from the last to the first, with the earliest moment at
which a later fifo message was delivered: an earlier message that came after that moment came too late, and one that
never came is missing, if receiver and sender went together through the views from this message to that one.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.findings import Text, union, weighed
from covey.analysis.tables.build import Tables
from covey.analysis.tables.columns import CAUSAL, FIFO, PROCESS, RELIABLE, before, is_client, until, whole

SESSION = [*PROCESS, "sender"]


def check(tables: Tables) -> DataFrame:
    shares = tables.shares.where(F.col("strength") >= RELIABLE)
    return union([fifo(tables, shares), mixing(shares)])


def fifo(tables: Tables, shares: DataFrame) -> DataFrame:
    """M3."""
    rows = _with_epochs(tables, shares)
    mark = F.col("index").isNotNull() & (F.col("strength") >= FIFO)
    later = before(SESSION, F.col("seq").desc(), F.col("message").desc())
    first_later = F.min(F.when(mark, F.struct("index", "message"))).over(later)
    rows = rows.withColumn("first_later", first_later)
    in_epoch = before([*SESSION, "epoch"], F.col("seq").desc(), F.col("message").desc())
    reach = F.max(F.when(mark & F.col("origin").isNotNull(), F.struct("nth", "message", "index"))).over(in_epoch)
    rows = rows.withColumn("reach", reach)
    late = F.coalesce(F.col("index") > F.col("first_later.index"), F.lit(False))
    missing = F.col("owed") & F.col("index").isNull() & (F.col("reach.nth") >= F.col("nth"))
    later_one = F.when(late, F.col("first_later")).otherwise(F.struct("reach.index", "reach.message"))
    tests = mark & (F.col("seq") > F.col("first_seq"))
    return _report(
        _with_first(tables, rows.withColumn("later", later_one)),
        "M3",
        late | missing,
        F.when(late, F.lit(" before ")).otherwise(F.lit(" without ")),
        F.coalesce(tests, F.lit(False)).cast("int"),
    )


def _report(rows: DataFrame, guarantee: str, wrong: Column, what: Text, premises: Column | None = None) -> DataFrame:
    """`later`: the message that came before or without an earlier one, and where."""
    return weighed(
        rows,
        guarantee,
        wrong,
        [
            F.col("process"),
            " delivered ",
            F.col("later.message"),
            what,
            F.col("message"),
            ", sent earlier in the same session",
        ],
        premises=premises,
        message="message",
        evidence=[("origin", F.col("send.index")), ("process", F.col("later.index")), ("process", "index")],
    )


def _with_first(tables: Tables, shares: DataFrame) -> DataFrame:
    """With the first number of the session, whether that message was delivered here or not."""
    first = (
        tables.messages.where(F.col("strength") >= RELIABLE)
        .groupBy("run", "level", "sender")
        .agg(F.min("seq").alias("first_seq"))
    )
    return shares.join(first, ["run", "level", "sender"], "left")


def _with_epochs(tables: Tables, shares: DataFrame) -> DataFrame:
    """The stretch of views, and the place in it, that this process or its daemon went through with the sender's.

    A message of a view that one of the two was not in stands alone, with the others of that view.
    """
    daemons = tables.lives.select(
        *PROCESS, F.when(is_client(), F.col("daemon")).otherwise(F.col("process")).alias("daemon")
    )
    there = daemons.select("run", "level", F.col("process").alias("origin"), F.col("daemon").alias("origin_daemon"))
    rows = shares.join(daemons, PROCESS).join(there, ["run", "level", "origin"], "left")
    pairs = rows.where(F.col("origin_daemon").isNotNull()).select("run", "daemon", "origin_daemon").distinct()
    epochs = _epochs(tables, pairs)
    rows = rows.join(epochs, ["run", "daemon", "origin_daemon", "order_view"], "left")
    alone = F.concat(F.lit("alone in "), F.coalesce("order_view", F.lit("")))
    return rows.withColumn("epoch", F.coalesce("epoch", alone)).withColumn("nth", F.coalesce("nth", F.lit(0)))


def _epochs(tables: Tables, pairs: DataFrame) -> DataFrame:
    views = tables.daemon_views.select(
        "run", "daemon", "view", "nth", "transitional", F.col("previous.view").alias("from_view")
    )
    other = views.select(
        "run",
        F.col("daemon").alias("origin_daemon"),
        "view",
        F.col("transitional").alias("their_set"),
        F.col("from_view").alias("their_from"),
    )
    both = pairs.join(views, ["run", "daemon"]).join(other, ["run", "origin_daemon", "view"], "left")
    together = (
        (F.col("from_view") == F.col("their_from"))
        & F.array_contains("transitional", F.col("origin_daemon"))
        & F.array_contains("their_set", F.col("daemon"))
    )
    both = both.withColumn("together", F.coalesce(together, F.lit(False)))
    number = F.sum(F.when(~F.col("together"), 1).otherwise(0)).over(until(["run", "daemon", "origin_daemon"], "nth"))
    epoch = F.concat(F.lit("epoch "), number.cast("string"))
    return both.withColumn("epoch", epoch).select(
        "run", "daemon", "origin_daemon", F.col("view").alias("order_view"), "epoch", "nth"
    )


def mixing(shares: DataFrame) -> DataFrame:
    """M7."""
    rows = shares.where(F.col("order_view").isNotNull())
    mark = F.col("index").isNotNull() & (F.col("strength") == FIFO)
    scope = [*SESSION, "order_view"]
    later = before(scope, F.col("seq").desc(), F.col("message").desc())
    is_ordered = F.col("strength") >= CAUSAL
    rows = rows.withColumns(
        {
            "later": F.min(F.when(mark, F.struct("index", "message"))).over(later),
            "first_ordered": F.min(F.when(is_ordered, F.struct("seq", "message"))).over(whole(scope)),
        }
    )
    required = rows.where(is_ordered & F.col("later").isNotNull())
    wrong = F.col("index").isNull() | (F.col("index") > F.col("later.index"))
    # A session is counted once in each view.
    is_first = F.struct("seq", "message") == F.col("first_ordered")
    return _report(required, "M7", wrong, " without, before it, ", is_first)
