"""Single messages in few rows: what was sent in a session stands in blocks of a few consecutive numbers.

In:        rows with a number of their own in some scope, and a value of 61 bits and two bits of kind.
Out:       aggregates: a slot for each number of a block; and what a slot holds.
Not here:  what is asked of them (screened.py).

A hash aggregation over all rows goes on, and keeps what must not be added up. More slots would make the code that Spark
generates too long for Java to compile.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

SLOT_BITS: Final = 3
SLOTS: Final = 1 << SLOT_BITS
KIND_BITS: Final = 2


def block(number: str) -> Column:
    return F.shiftright(number, SLOT_BITS)


def slots(number: str, value: Column, kind: Column) -> list[Column]:
    """Aggregates: the value and kind at each place of a block, null where there is none."""
    packed = F.shiftleft(value, KIND_BITS).bitwiseOR(kind.cast("bigint"))
    at = F.col(number).bitwiseAND(SLOTS - 1)
    return [F.max(F.when(at == slot, packed)).alias(_name(slot)) for slot in range(SLOTS)]


def names() -> list[str]:
    return [_name(slot) for slot in range(SLOTS)]


def values() -> list[Column]:
    return [F.shiftright(name, KIND_BITS) for name in names()]


def kinds() -> list[Column]:
    return [F.col(name).bitwiseAND((1 << KIND_BITS) - 1) for name in names()]


def numbers(first: str = "first") -> list[Column]:
    """The number that each slot stands for."""
    base = F.shiftleft(block(first), SLOT_BITS)
    return [base + slot for slot in range(SLOTS)]


def first_kind() -> Column:
    """The kind of the lowest number in the block."""
    return F.coalesce(*kinds())


def _name(slot: int) -> str:
    return f"slot_{slot}"
