"""All tables of a trace, in the order in which they depend on one another.

In:        a trace.
Out:       Tables. Each table is handed to `keep` when it is made, which stores it: a plan that went back to the trace
           each time would grow beyond what Spark can plan.
Not here:  how a table is made (its own file), what is concluded from it (checks/).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from covey.analysis.tables import cohorts, lives, owed, stays, traffic

from .columns import is_client

Keep = Callable[[str, DataFrame], DataFrame]
"""Stores a table under a name, and gives it back as stored."""


@dataclass(frozen=True)
class Tables:
    """What the checks look at. Every table has `run` and `level`, unless it is of one level alone."""

    rows: DataFrame
    lives: DataFrame
    marks: DataFrame
    stays: DataFrame
    # Of daemons, for the questions of clients.
    daemon_views: DataFrame
    traffic: DataFrame
    inside: DataFrame
    messages: DataFrame
    deliveries: DataFrame
    delivered: DataFrame
    held: DataFrame
    # Of daemons, for the questions of clients.
    passed: DataFrame
    # Of clients.
    memberships: DataFrame
    owed: DataFrame
    # Of both: each message in each stay of its sender that its send falls into.
    sent: DataFrame
    # Of both: who moves or rests together.
    cohorts: DataFrame
    # Of both: each process with what it delivered and what concerns it.
    shares: DataFrame


def build(trace: DataFrame, keep: Keep) -> Tables:
    # Daemons know of no groups: whatever their rows say.
    group = F.when(is_client(), F.coalesce("group", F.lit(""))).otherwise(F.lit(""))
    rows = trace.where(F.col("level").isin("S", "C")).withColumn("grp", group)
    each_life = keep("lives", lives.lives_of(rows))
    marks = keep("marks", stays.marks_of(rows))
    each_stay = keep("stays", stays.stays_of(marks, each_life))
    daemon_views = keep("daemon_views", owed.daemon_views_of(each_stay))
    messages_rows = traffic.traffic_of(rows)
    inside = keep("inside", traffic.inside_of(messages_rows, marks))
    messages = keep("messages", traffic.messages_of(messages_rows, inside))
    deliveries = keep("deliveries", traffic.deliveries_of(messages_rows, messages))
    delivered = traffic.delivered_of(deliveries)
    held = keep("held", traffic.held_of(deliveries, inside, each_stay))
    passed = keep("passed", owed.passed_of(deliveries, held))
    itineraries = keep("itineraries", owed.itineraries_of(rows, each_life, daemon_views))
    sent = keep("sent", traffic.sent_of(messages, inside, each_stay))
    memberships = keep("memberships", owed.memberships_of(each_stay, itineraries))
    each_cohort = keep("cohorts", cohorts.cohorts_of(each_stay, memberships))
    each_owed = keep("owed", owed.owed_of(memberships, itineraries, messages, passed))
    shares = keep("shares", owed.shares_of(messages, delivered, each_stay, each_owed))
    return Tables(
        rows=rows,
        lives=each_life,
        marks=marks,
        stays=each_stay,
        daemon_views=daemon_views,
        traffic=messages_rows,
        inside=inside,
        messages=messages,
        deliveries=deliveries,
        delivered=delivered,
        held=held,
        passed=passed,
        memberships=memberships,
        sent=sent,
        cohorts=each_cohort,
        owed=each_owed,
        shares=shares,
    )
