"""Small expressions that many tables and checks share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from covey.trace.record import SERVICES

UNRELIABLE, RELIABLE, FIFO, CAUSAL, AGREED, SAFE = range(len(SERVICES))

RUN: Final = ["run", "level"]
PROCESS: Final = [*RUN, "process"]
MESSAGE: Final = [*RUN, "message"]
STAY: Final = [*PROCESS, "grp", "stay"]
MEMBERSHIP: Final = [*PROCESS, "grp", "membership"]

DEPARTED: Final = ("disconnect", "crash", "stop", "expelled")
DELIVERED: Final = ("deliver", "discard")
ORDER: Final = ("order_view", "order_stamp", "order_site", "order_index")


def is_client() -> Column:
    return F.col("level") == "C"


def strength() -> Column:
    """The service as a number that grows with its promises; an unknown one promises nothing."""
    chain = F.lit(UNRELIABLE)
    for number, service in enumerate(SERVICES):
        chain = F.when(F.col("service") == service, number).otherwise(chain)
    return chain


def key() -> Column:
    """The born order of a row; null where it has none."""
    known = F.col("order_stamp").isNotNull() & F.col("order_site").isNotNull()
    parts = F.struct(
        F.col("order_stamp").alias("stamp"),
        F.col("order_site").alias("site"),
        F.coalesce("order_index", F.lit(0)).alias("index"),
    )
    return F.when(known, parts)


def place(prefix: str = "") -> Column:
    """Where a change or a bundle stands, as one value; null where the row does not say."""
    view, stamp, site = (F.col(f"{prefix}{name}") for name in ORDER[:3])
    known = view.isNotNull() & stamp.isNotNull() & site.isNotNull()
    return F.when(known, F.struct(view.alias("view"), stamp.alias("stamp"), site.alias("site")))


def as_set(column: str) -> Column:
    return F.array_sort(F.array_distinct(column))


def set_of(column: Column) -> Column:
    return F.array_sort(F.array_distinct(column))


def apart(one: Column, other: Column) -> Column:
    """The elements that are in one of two arrays only."""
    return F.array_sort(F.concat(F.array_except(one, other), F.array_except(other, one)))


def ordered(keys: Sequence[str], *order: str | Column) -> WindowSpec:
    return Window.partitionBy(*keys).orderBy(*order)


def before(keys: Sequence[str], *order: str | Column) -> WindowSpec:
    """The rows before this one."""
    return ordered(keys, *order).rowsBetween(Window.unboundedPreceding, -1)


def until(keys: Sequence[str], *order: str | Column) -> WindowSpec:
    """This row and those before it."""
    return ordered(keys, *order).rowsBetween(Window.unboundedPreceding, Window.currentRow)


def every(keys: Sequence[str], *order: str | Column) -> WindowSpec:
    """All rows with these keys, in an order, for `first` and `last`."""
    return ordered(keys, *order).rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)


def whole(keys: Sequence[str]) -> WindowSpec:
    return Window.partitionBy(*keys)


def life_name(process: Column) -> Column:
    """The name of a daemon or client, without the number of its life."""
    return F.when(_has_number(process), F.regexp_extract(process, r"^(.+):[^:]*$", 1)).otherwise(process)


def life_number(process: Column) -> Column:
    """Which life this is, as numbers to compare; empty where the name does not tell."""
    digits = F.split(F.regexp_extract(process, r":([0-9.]+)$", 1), r"\.")
    return F.when(_has_number(process), F.transform(digits, lambda part: part.try_cast("bigint"))).otherwise(
        F.array().cast("array<bigint>")
    )


def _has_number(process: Column) -> Column:
    return process.rlike(r"^.+:[0-9]+(\.[0-9]+)*$")


def rename(frame: DataFrame, **names: str) -> DataFrame:
    """Only these columns, under new names: rename(df, new="old")."""
    return frame.select(*(F.col(old).alias(new) for new, old in names.items()))
