"""Safe messages: M6, and M8 for those from outside the group.

In:        Tables.
Out:       findings.

What one delivers as safe before the signal, every member of the view delivers, unless it crashes; after the signal,
every member of the next transitional set. At S that is asked of those who came to rest or left the view alive; at C of
members at rest that never left the group since.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.findings import marked, weighed
from covey.analysis.tables.build import Tables
from covey.analysis.tables.columns import MESSAGE, PROCESS, SAFE, STAY, is_client
from covey.analysis.tables.traffic import ATTRIBUTES

from .rest import memberships_at


def check(tables: Tables) -> DataFrame:
    stays = tables.stays.select(*STAY, "members", F.col("next.transitional").alias("movers"))
    held = tables.held.where(F.col("strength") == SAFE).join(stays, STAY)
    promised = F.when(F.col("after"), F.col("movers")).otherwise(F.col("members"))
    # All who deliver it in one view promise the same to the same members: once is enough to ask.
    told = held.withColumn("promised", promised).where(F.col("promised").isNotNull())
    once = told.groupBy(*MESSAGE, "grp", "view", "rank", "promised").agg(
        F.min(F.struct("process", "index")).alias("by"), F.count("*").alias("deliverers")
    )
    asked = once.withColumn("process", F.explode("promised")).drop("promised")
    due = _at_daemons(tables, asked).unionByName(_at_clients(tables, asked))
    due = due.join(tables.messages.select(*MESSAGE, *ATTRIBUTES), MESSAGE)
    labels: dict[str, Column] = {"M6": F.lit(True), "M8": F.col("from_outside")}
    return weighed(
        marked(due, tables.delivered, [*PROCESS, "message"]),
        labels,
        ~F.col("found"),
        [
            F.col("by.process"),
            " delivered safe ",
            F.col("message"),
            " in ",
            F.col("view"),
            ", but ",
            F.col("process"),
            " never did",
        ],
        view="view",
        message="message",
        evidence=[(F.col("by.process"), F.col("by.index"))],
    )


COLUMNS = [*PROCESS, "grp", "message", "view", "by", "deliverers"]


def _at_daemons(tables: Tables, asked: DataFrame) -> DataFrame:
    witnesses = tables.lives.where(~is_client() & F.col("witness")).select(*PROCESS)
    left_alive = tables.daemon_views.where(F.col("next").isNotNull()).select(
        "run", F.lit("S").alias("level"), F.col("daemon").alias("process"), "view"
    )
    of_daemons = asked.where(~is_client())
    rested = of_daemons.join(witnesses, PROCESS)
    moved = of_daemons.join(left_alive, [*PROCESS, "view"]).select(*rested.columns)
    return rested.unionByName(moved).select(*COLUMNS).distinct()


def _at_clients(tables: Tables, asked: DataFrame) -> DataFrame:
    begun = (
        asked.where(is_client()).join(memberships_at(tables), [*PROCESS, "grp"]).where(F.col("begun") <= F.col("rank"))
    )
    latest = begun.groupBy(*COLUMNS).agg(F.max_by("open", "membership").alias("open"))
    return latest.where("open").select(*COLUMNS)
