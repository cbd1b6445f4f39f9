"""Cohorts: who moves or rests together, and so has delivered the same.

In:        stays and memberships.
Out:       one row for each stay in a cohort of two or more.
Not here:  what they delivered (checks/cohorts.py).

A *cohort* is a set of stays in one view that the promise of virtual synchrony joins: their processes install the same
view next, and one has the other in its transitional set; or, at level C, they have come to rest there together.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .columns import is_client

COHORT = ["run", "level", "grp", "occasion", "cohort"]


def cohorts_of(stays: DataFrame, memberships: DataFrame) -> DataFrame:
    """One row for each stay in a cohort of two or more: the cohort's number and size, and the view it leaves."""
    found = _movers(stays).unionByName(_resting(memberships))
    sizes = found.groupBy(*COHORT).agg(
        F.countDistinct("process").alias("size"),
        F.max("anchored").alias("anchored"),
        F.array_sort(F.collect_set("process")).alias("processes"),
    )
    return found.drop("anchored").join(sizes.where((F.col("size") > 1) & F.col("anchored")).drop("anchored"), COHORT)


def _movers(stays: DataFrame) -> DataFrame:
    """Those who came to one view from one view: each transitional set among them makes a cohort of those it joins."""
    arrival = ["run", "level", "grp", "view", "from_view"]
    comers = stays.where(F.col("previous").isNotNull()).withColumn("from_view", F.col("previous.view"))
    sets = comers.select(*arrival, F.col("transitional").alias("joined")).distinct()
    pairs = comers.join(sets, arrival)
    in_set = F.array_contains("joined", F.col("process"))
    pairs = pairs.where(in_set | (F.col("transitional") == F.col("joined")))
    return pairs.select(
        "run",
        "level",
        "grp",
        F.lit("move").alias("occasion"),
        F.xxhash64("view", "from_view", "joined").alias("cohort"),
        "process",
        F.col("previous.stay").alias("stay"),
        F.col("from_view").alias("left_view"),
        F.col("view").alias("next_view"),
        in_set.alias("anchored"),
        (is_client() & ~F.col("light")).alias("spanned"),
    )


def _resting(memberships: DataFrame) -> DataFrame:
    """Level C: the last stays of those who came to rest as members, by view."""
    last = memberships.where(F.col("open") & F.col("witness"))
    return last.select(
        "run",
        "level",
        "grp",
        F.lit("rest").alias("occasion"),
        F.xxhash64("view").alias("cohort"),
        "process",
        "stay",
        F.col("view").alias("left_view"),
        F.lit("rest").alias("next_view"),
        F.lit(True).alias("anchored"),
        F.lit(True).alias("spanned"),
    )
