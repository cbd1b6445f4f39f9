"""Order without sorting: rows are put into blocks of a few consecutive numbers, and whole blocks are compared.

In:        rows with a number of their own in some scope, and a value of 61 bits and two bits of kind.
Out:       one row a block, with a slot for each number in it; and where what must grow does not.
Not here:  what must grow with what (screen.py).

To sort all rows of a large trace takes longer than all else. A hash aggregation brings the rows of a block together
instead; within a block the slots stand in order, and only blocks are sorted. More slots would make the code that Spark
generates too long for Java to compile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from covey.analysis.tables.columns import before

SLOT_BITS: Final = 3
SLOTS: Final = 1 << SLOT_BITS
KIND_BITS: Final = 2

Rule = tuple[list[Column], list[Column]]


def block(number: str) -> Column:
    return F.shiftright(number, SLOT_BITS)


def slots(number: str, value: Column, kind: Column) -> list[Column]:
    """Aggregates: the value and kind at each place of a block, null where there is none; and how many rows it has."""
    packed = F.shiftleft(value, KIND_BITS).bitwiseOR(kind.cast("bigint"))
    at = F.col(number).bitwiseAND(SLOTS - 1)
    return [
        F.count("*").alias("rows"),
        F.min(number).alias("first"),
        F.max(number).alias("last"),
        *(F.max(F.when(at == slot, packed)).alias(_name(slot)) for slot in range(SLOTS)),
    ]


def names() -> list[str]:
    return [_name(slot) for slot in range(SLOTS)]


def values() -> list[Column]:
    return [F.shiftright(_name(slot), KIND_BITS) for slot in range(SLOTS)]


def kinds() -> list[Column]:
    return [F.col(_name(slot)).bitwiseAND((1 << KIND_BITS) - 1) for slot in range(SLOTS)]


def numbers(first: str = "first") -> list[Column]:
    """The number that each slot stands for."""
    base = F.shiftleft(block(first), SLOT_BITS)
    return [base + slot for slot in range(SLOTS)]


def first_kind() -> Column:
    """The kind of the lowest number in the block."""
    return F.coalesce(*kinds())


def crowded() -> Column:
    """Whether two rows have the same number, or one has none."""
    filled = reduce(Column.__add__, (F.col(_name(slot)).isNotNull().cast("int") for slot in range(SLOTS)))
    return F.col("rows") != filled


def with_disorder(
    blocks: DataFrame, scope: Sequence[str], rules: Mapping[str, Rule], carried: Sequence[str | Column]
) -> DataFrame:
    """Blocks with `disorder`: a number is there twice, or something does not stand above all that it must.

    Of the two lists of a rule, what is in the first must stand above all of the second that is before it in the scope.
    Of a block only `first`, `last`, what is to be carried along, and the highest of each rule's second list are left.
    """
    lows, highs = ([f"{side}_{rule}" for rule in rules] for side in ("low", "high"))
    spread = [
        column.alias(f"{name}_{slot}")
        for rule, (ones, tops) in rules.items()
        for name, columns in ((f"low_{rule}", ones), (f"high_{rule}", tops))
        for slot, column in enumerate(columns)
    ]
    wide = blocks.select("first", "last", *carried, crowded().alias("crowded"), *spread)
    kept = wide.columns[: -len(spread) - 1]
    inside = [_overtaken(low, high) for low, high in zip(lows, highs, strict=True)]
    found = wide.select(
        *kept,
        reduce(or_, inside, F.col("crowded")).alias("inside"),
        *(F.least(*_each(low)).alias(low) for low in lows),
        *(F.greatest(*_each(high)).alias(high) for high in highs),
    )
    earlier = before(scope, "first")
    above = [_holds(F.col(low) <= F.max(high).over(earlier)) for low, high in zip(lows, highs, strict=True)]
    mixed = _holds(F.col("first") <= F.max("last").over(earlier))
    return found.select(*kept, *highs, reduce(or_, above, F.col("inside") | mixed).alias("disorder"))


def _overtaken(low: str, high: str) -> Column:
    """Whether something in a block is not above all that is before it in the block."""
    highs = _each(high)
    tops = [highs[0], *(F.greatest(*highs[:slot]) for slot in range(2, SLOTS))]
    return reduce(or_, (_holds(one <= top) for one, top in zip(_each(low)[1:], tops, strict=True)))


def _each(name: str) -> list[Column]:
    return [F.col(f"{name}_{slot}") for slot in range(SLOTS)]


def _holds(condition: Column) -> Column:
    return F.coalesce(condition, F.lit(False))


def _name(slot: int) -> str:
    return f"slot_{slot}"
