"""What a check finds: one schema for all guarantees.

In:        rows that break a promise, or rows that put one to the test.
Out:       findings: guarantee, run, level, told, premises; added up, with the fields of `told` as columns.
Not here:  what is a breach (checks/).

A finding says how often a promise was put to the test, and, if it was broken, what is `told` of that: group, view,
process, message, detail, and the rows that prove it, by process and index. Checks give one finding a row. They are
added up for a whole family at once: those that tell nothing become one for each guarantee of a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

TOLD: Final = ("group", "view", "process", "message", "detail", "evidence")
EVIDENCE_TYPE: Final = "array<struct<process:string,index:bigint>>"
TOLD_TYPE: Final = (
    f"struct<group:string,view:string,process:string,message:string,detail:string,evidence:{EVIDENCE_TYPE},nth:bigint>"
)

Guarantee = str | Mapping[str, Column]
"""One number, or several, each with the condition under which a row speaks of it."""

Text = str | Column

WHAT: Final = "what"
"""The column with the text of the condition that holds, where there are several."""


def weighed(
    rows: DataFrame,
    guarantee: Guarantee,
    wrong: Column | Mapping[str, Column],
    detail: Sequence[Text],
    *,
    premises: Column | None = None,
    process: str = "process",
    view: str | Column | None = None,
    message: str | None = None,
    evidence: Sequence[tuple[str | Column, str | Column]] = (),
) -> DataFrame:
    """Each row puts a promise to the test, or several, and may break it.

    `wrong`: when it does; of several conditions, each that holds is a violation, and its text is in the column `WHAT`.
    `detail`: a sentence in parts, text and columns. `premises`: how often a row does, if not
    once.
    """
    told = F.struct(
        _group(rows).alias("group"),
        _optional(view).alias("view"),
        F.col(process).alias("process"),
        _optional(message).alias("message"),
        F.concat_ws("", *(part if isinstance(part, Column) else F.lit(part) for part in detail)).alias("detail"),
        _evidence(evidence).alias("evidence"),
        # Violations are never added up, even if they read alike.
        F.monotonically_increasing_id().alias("nth"),
    )
    tests = (F.lit(True) if premises is None else premises).cast("bigint")
    if isinstance(wrong, Column):
        counted = tests.alias("premises")
        return rows.select(_labels(guarantee), "run", "level", F.when(wrong, told).alias("told"), counted)
    spread = _reasons(rows, wrong)
    once = F.when(F.coalesce("nth_reason", F.lit(0)) == 0, tests).otherwise(F.lit(0)).alias("premises")
    return spread.select(_labels(guarantee), "run", "level", F.when(F.col(WHAT).isNotNull(), told).alias("told"), once)


def broken(
    rows: DataFrame,
    guarantee: Guarantee,
    detail: Sequence[Text],
    *,
    process: str = "process",
    view: str | Column | None = None,
    message: str | None = None,
    evidence: Sequence[tuple[str | Column, str | Column]] = (),
) -> DataFrame:
    """Each row breaks a promise, and how often that was put to the test is counted elsewhere."""
    return weighed(
        rows,
        guarantee,
        F.lit(True),
        detail,
        premises=F.lit(False),
        process=process,
        view=view,
        message=message,
        evidence=evidence,
    )


def tested(rows: DataFrame, guarantee: Guarantee) -> DataFrame:
    """Each row puts these promises to the test."""
    return counted(rows.select(_labels(guarantee), "run", "level", F.lit(1).alias("premises")))


def counted(premises: DataFrame) -> DataFrame:
    """Premises that were counted otherwise, as findings: from guarantee, run, level, premises."""
    nothing = F.lit(None).cast(TOLD_TYPE).alias("told")
    return premises.select("guarantee", "run", "level", nothing, F.col("premises").cast("bigint").alias("premises"))


def marked(rows: DataFrame, others: DataFrame, keys: list[str], name: str = "found") -> DataFrame:
    """All rows, with whether the others, which are different from one another, have one with these keys."""
    known = others.select(*keys, F.lit(True).alias(name))
    return rows.join(known, keys, "left").withColumn(name, F.col(name).isNotNull())


def each(rows: DataFrame, values: str | Column, name: str) -> DataFrame:
    """One row for each value, `is_first` for the first of them; and one with none where there are no values."""
    spread = rows.select("*", F.posexplode_outer(values).alias("nth_value", name))
    return spread.withColumn("is_first", F.coalesce("nth_value", F.lit(0)) == 0).drop("nth_value")


def union(findings: Sequence[DataFrame]) -> DataFrame:
    """All of them. Halves are put together, since Spark looks at a whole union again each time it grows."""
    if len(findings) == 1:
        return findings[0]
    middle = len(findings) // 2
    return union(findings[:middle]).union(union(findings[middle:]))


def added_up(findings: DataFrame) -> DataFrame:
    """Violations as they are; of the rest, how often each promise was put to the test."""
    found = findings.groupBy("guarantee", "run", "level", "told").agg(F.sum("premises").alias("premises"))
    found = found.where(F.col("told").isNotNull() | (F.col("premises") > 0))
    return found.select("guarantee", "run", "level", *(f"told.{name}" for name in TOLD), "premises")


def listed(values: str | Column) -> Column:
    """An array for people: {a, b}."""
    column = F.col(values) if isinstance(values, str) else values
    return F.concat(F.lit("{"), F.array_join(F.array_sort(column), ", "), F.lit("}"))


def text(column: str | Column) -> Column:
    """Any value for people, also where it is none."""
    value = F.col(column) if isinstance(column, str) else column
    return F.coalesce(value.cast("string"), F.lit("none"))


def _reasons(rows: DataFrame, wrong: Mapping[str, Column]) -> DataFrame:
    """One row for each condition that holds, or one with none."""
    reasons = F.array_compact(F.array(*(F.when(condition, F.lit(what)) for what, condition in wrong.items())))
    return rows.select("*", F.posexplode_outer(reasons).alias("nth_reason", WHAT))


def _labels(guarantee: Guarantee) -> Column:
    if isinstance(guarantee, str):
        return F.lit(guarantee).alias("guarantee")
    labels = F.array_compact(F.array(*(F.when(condition, F.lit(label)) for label, condition in guarantee.items())))
    return F.explode(labels).alias("guarantee")


def _group(rows: DataFrame) -> Column:
    return F.nullif(F.col("grp"), F.lit("")) if "grp" in rows.columns else F.lit(None).cast("string")


def _optional(column: str | Column | None) -> Column:
    if column is None:
        return F.lit(None).cast("string")
    return F.col(column) if isinstance(column, str) else column


def _evidence(pairs: Sequence[tuple[str | Column, str | Column]]) -> Column:
    rows = [F.struct(_optional(p).alias("process"), _optional(i).cast("bigint").alias("index")) for p, i in pairs]
    known = (
        F.filter(F.array(*rows), lambda row: row["process"].isNotNull() & row["index"].isNotNull())
        if rows
        else F.array()
    )
    return known.cast(EVIDENCE_TYPE)
