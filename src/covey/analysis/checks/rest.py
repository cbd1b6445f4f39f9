"""What must have been delivered when a process moved on or came to rest: S12 and S13, with M2, M8, M9.

In:        Tables.
Out:       findings.
Not here:  those who rest together (cohorts.py).

  S12  a sender delivers its own message in the view it sent it in (C: to groups it stays in), unless it crashes
  S13  a message is delivered by all members, or its sender moves on; at level C, what a daemon passed while its client
       was a member the client has delivered
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.findings import each, marked, tested, union, weighed
from covey.analysis.tables.build import Tables
from covey.analysis.tables.columns import CAUSAL, MESSAGE, PROCESS, RELIABLE, STAY, is_client
from covey.analysis.tables.traffic import ATTRIBUTES


def check(tables: Tables) -> DataFrame:
    return union([self_delivery(tables), termination(tables), client_termination(tables), handed_out(tables)])


def self_delivery(tables: Tables) -> DataFrame:
    """S12."""
    sends = tables.sent.where(F.col("strength") >= RELIABLE)
    at_daemons = sends.where(~is_client() & (~F.col("is_last") | F.col("witness")))
    kept = tables.held.where(~is_client()).select(*STAY, "message").distinct()
    columns = [*PROCESS, "grp", "message", "index", "strength", "view", "found"]
    sent_there = marked(at_daemons, kept, [*STAY, "message"]).select(*columns)
    at_clients = (
        sends.where(is_client() & F.col("open") & F.col("witness"))
        .groupBy(*PROCESS, "message", "index", "strength")
        .agg(F.min("grp").alias("grp"), F.min("view").alias("view"))
    )
    has = tables.delivered.select(*PROCESS, "message")
    sent_here = marked(at_clients, has, [*PROCESS, "message"]).select(*columns)
    labels = {"S12": F.lit(True), "M2": F.col("strength") == RELIABLE}
    return weighed(
        sent_there.unionByName(sent_here),
        labels,
        ~F.col("found"),
        [F.col("process"), " sent ", F.col("message"), " in ", F.col("view"), " and never delivered it there"],
        view="view",
        message="message",
        evidence=[("process", "index")],
    )


def termination(tables: Tables) -> DataFrame:
    """S13 between daemons: sender and members have come to rest."""
    resting = tables.sent.where(~is_client() & (F.col("strength") >= RELIABLE) & F.col("is_last") & F.col("witness"))
    asked = each(
        resting.select(*MESSAGE, F.col("process").alias("origin"), "index", "view", "members"), "members", "process"
    )
    asked = marked(asked, tables.lives.where("witness"), PROCESS, "rests")
    asked = marked(asked, tables.delivered, [*PROCESS, "message"])
    return _never(asked, F.col("rests") & ~F.col("found"), F.col("is_first"))


def client_termination(tables: Tables) -> DataFrame:
    """S13 between clients: the sender rests in the view of the send, and so do members that never left since."""
    rest = tables.memberships.where(F.col("open") & F.col("witness"))
    sent = tables.sent.where(is_client() & (F.col("strength") >= RELIABLE) & F.col("is_last") & F.col("open"))
    sent = sent.join(rest.select(*PROCESS, "grp", "membership"), [*PROCESS, "grp", "membership"])
    asked = sent.select(*MESSAGE, "grp", "view", "rank", F.explode("members").alias("process"))
    asked = asked.join(memberships_at(tables), ["run", "level", "process", "grp"]).where(
        F.col("begun") <= F.col("rank")
    )
    keys = [*PROCESS, "grp", "message", "view"]
    asked = asked.groupBy(*keys).agg(F.max_by(F.struct("membership", "open", "first"), "membership").alias("at"))
    asked = asked.where("at.open").select(*keys, "at.membership", "at.first")
    asked = asked.join(tables.messages.select(*MESSAGE, *ATTRIBUTES), MESSAGE)
    asked = asked.withColumn("index", F.col("send.index"))
    asked = marked(asked, tables.delivered, [*PROCESS, "message"])
    asked = marked(asked, tables.owed, [*PROCESS, "grp", "membership", "message"], "is_owed")
    # An early message that passed before the join is not owed to who joined in that daemon view.
    early = (
        (F.col("strength") < CAUSAL)
        & F.col("first.change").isNotNull()
        & (F.col("order_view") == F.col("first.daemon_view"))
    )
    excused = F.coalesce(early, F.lit(False)) & ~F.col("is_owed")
    return union([_never(asked, ~F.col("found") & ~excused, F.lit(False)), tested(sent, "S13")])


def memberships_at(tables: Tables) -> DataFrame:
    """Memberships of witnesses, with the rank at which they began."""
    found = tables.memberships.where("witness")
    return found.select(*PROCESS, "grp", "membership", "open", "first", F.col("first.rank").alias("begun"))


def _never(asked: DataFrame, wrong: Column, premises: Column) -> DataFrame:
    return weighed(
        asked,
        "S13",
        wrong,
        [
            F.col("origin"),
            " sent ",
            F.col("message"),
            " in ",
            F.col("view"),
            " and rests there, but ",
            F.col("process"),
            " never delivered that",
        ],
        premises=premises,
        view="view",
        message="message",
        evidence=[("origin", "index")],
    )


def handed_out(tables: Tables) -> DataFrame:
    """S13, M8, M9: what passed the daemon of a client at rest while it was in the group, the client has delivered."""
    rest = tables.memberships.where(F.col("open") & F.col("witness")).select(*PROCESS, "grp", "membership", "daemon")
    due = rest.join(tables.owed, [*PROCESS, "grp", "membership"])
    due = due.join(tables.passed.select("run", "daemon", "place", "passed"), ["run", "daemon", "place"])
    labels = {"S13": F.lit(True), "M8": F.col("from_outside"), "M9": F.col("to_several")}
    return weighed(
        marked(due, tables.delivered, [*PROCESS, "message"]),
        labels,
        ~F.col("found"),
        [
            F.col("daemon"),
            " passed ",
            F.col("message"),
            " while ",
            F.col("process"),
            " was in ",
            F.col("grp"),
            ", but ",
            F.col("process"),
            " never delivered that",
        ],
        message="message",
        evidence=[("origin", "sent_at"), ("daemon", "passed")],
    )
