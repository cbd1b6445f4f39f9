"""What must have been delivered when a process moved on or came to rest: S12 and S13, with M2, M8, M9.

In:        Tables.
Out:       findings.
Not here:  those who rest together (cohorts.py).

  S12  a sender delivers its own message in the view it sent it in (C: to groups it stays in), unless it crashes
  S13  a message is delivered by all members, or its sender moves on; at level C, what a daemon passed while its client
       was a member the client has delivered
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from covey.analysis.checks.delivery import sent_in_stays
from covey.analysis.findings import broken, tested, union
from covey.analysis.tables.build import Tables
from covey.analysis.tables.columns import CAUSAL, MESSAGE, PROCESS, RELIABLE, STAY, is_client
from covey.analysis.tables.traffic import ATTRIBUTES


def check(tables: Tables) -> DataFrame:
    return union([self_delivery(tables), termination(tables), client_termination(tables), handed_out(tables)])


def _sends(tables: Tables) -> DataFrame:
    """Level S: each message of some reliability, with the sender's stay."""
    sends = tables.messages.where(~is_client() & F.col("send").isNotNull() & (F.col("strength") >= RELIABLE))
    sends = sends.withColumn("process", F.col("origin")).withColumn("index", F.col("send.index"))
    placed = tables.inside.where(~is_client() & F.col("stay").isNotNull()).drop("named")
    return sends.join(placed, [*PROCESS, "index"]).join(tables.stays.select(*STAY, "view", "members", "is_last"), STAY)


def self_delivery(tables: Tables) -> DataFrame:
    """S12."""
    lives = tables.lives.select(*PROCESS, "witness")
    at_daemons = _sends(tables).join(lives, PROCESS).where(~F.col("is_last") | F.col("witness"))
    kept = tables.held.where(~is_client()).select(*STAY, "message").distinct()
    columns = [*PROCESS, "grp", "message", "index", "strength", "view"]
    lacking_there = at_daemons.join(kept, [*STAY, "message"], "left_anti").select(*columns)
    sent = (
        sent_in_stays(tables)
        .where((F.col("strength") >= RELIABLE) & F.col("open"))
        .join(lives.where("witness"), PROCESS)
    )
    at_clients = sent.groupBy(*PROCESS, "message", "index", "strength").agg(
        F.min("grp").alias("grp"), F.min("view").alias("view")
    )
    has = tables.delivered.select(*PROCESS, "message")
    lacking_here = at_clients.join(has, [*PROCESS, "message"], "left_anti").select(*columns)
    labels = {"S12": F.lit(True), "M2": F.col("strength") == RELIABLE}
    violations = broken(
        lacking_there.unionByName(lacking_here),
        labels,
        [F.col("process"), " sent ", F.col("message"), " in ", F.col("view"), " and never delivered it there"],
        view="view",
        message="message",
        evidence=[("process", "index")],
    )
    return union([violations, tested(at_daemons, labels), tested(at_clients, labels)])


def termination(tables: Tables) -> DataFrame:
    """S13 between daemons: sender and members have come to rest."""
    witnesses = tables.lives.where("witness").select(*PROCESS)
    resting = _sends(tables).where("is_last").join(witnesses, PROCESS)
    asked = resting.select(*MESSAGE, "origin", "send", "view", F.explode("members").alias("process")).join(
        witnesses, PROCESS
    )
    lacking = asked.join(tables.delivered.select(*PROCESS, "message"), [*PROCESS, "message"], "left_anti")
    return union([_never(lacking), tested(resting, "S13")])


def client_termination(tables: Tables) -> DataFrame:
    """S13 between clients: the sender rests in the view of the send, and so do members that never left since."""
    rest = tables.memberships.where(F.col("open") & F.col("witness"))
    sent = sent_in_stays(tables).where((F.col("strength") >= RELIABLE) & F.col("is_last") & F.col("open"))
    sent = sent.join(rest.select(*PROCESS, "grp", "membership"), [*PROCESS, "grp", "membership"])
    sent = sent.select(*MESSAGE, "grp", "view", "rank", "members")
    asked = sent.withColumn("process", F.explode("members")).drop("members")
    asked = asked.join(memberships_at(tables), ["run", "level", "process", "grp"]).where(
        F.col("begun") <= F.col("rank")
    )
    keys = [*PROCESS, "grp", "message", "view"]
    asked = asked.groupBy(*keys).agg(F.max_by(F.struct("membership", "open", "first"), "membership").alias("at"))
    asked = asked.where("at.open").select(*keys, "at.membership", "at.first")
    asked = asked.join(tables.messages.select(*MESSAGE, *ATTRIBUTES), MESSAGE)
    lacking = asked.join(tables.delivered.select(*PROCESS, "message"), [*PROCESS, "message"], "left_anti")
    # An early message that passed before the join is not owed to who joined in that daemon view.
    early = (
        (F.col("strength") < CAUSAL)
        & F.col("first.change").isNotNull()
        & (F.col("order_view") == F.col("first.daemon_view"))
    )
    owed = tables.owed.select(*PROCESS, "grp", "membership", "message")
    excused = lacking.where(F.coalesce(early, F.lit(False))).join(
        owed, [*PROCESS, "grp", "membership", "message"], "left_anti"
    )
    lacking = lacking.join(excused.select(*PROCESS, "grp", "message"), [*PROCESS, "grp", "message"], "left_anti")
    return union([_never(lacking), tested(sent, "S13")])


def memberships_at(tables: Tables) -> DataFrame:
    """Memberships of witnesses, with the rank at which they began."""
    found = tables.memberships.where("witness")
    return found.select(*PROCESS, "grp", "membership", "open", "first", F.col("first.rank").alias("begun"))


def _never(lacking: DataFrame) -> DataFrame:
    return broken(
        lacking,
        "S13",
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
        view="view",
        message="message",
        evidence=[("origin", F.col("send.index"))],
    )


def handed_out(tables: Tables) -> DataFrame:
    """S13, M8, M9: what passed the daemon of a client at rest while it was in the group, the client has delivered."""
    rest = tables.memberships.where(F.col("open") & F.col("witness")).select(*PROCESS, "grp", "membership", "daemon")
    due = rest.join(tables.owed, [*PROCESS, "grp", "membership"])
    due = due.join(tables.messages.select(*MESSAGE, *ATTRIBUTES), MESSAGE)
    due = due.join(tables.passed.select("run", "daemon", "place", "passed"), ["run", "daemon", "place"])
    labels = {"S13": F.lit(True), "M8": F.col("from_outside"), "M9": F.col("to_several")}
    lacking = due.join(tables.delivered.select(*PROCESS, "message"), [*PROCESS, "message"], "left_anti")
    violations = broken(
        lacking,
        labels,
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
        evidence=[("origin", F.col("send.index")), ("daemon", "passed")],
    )
    return union([violations, tested(due, labels)])
