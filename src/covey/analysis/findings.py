"""What a check finds: one schema for all guarantees.

In:        rows that break a promise, or rows that put one to the test.
Out:       findings: guarantee, run, level, group, view, process, message, detail, evidence, premises.
Not here:  what is a breach (checks/).

A finding is either a violation (it has a detail) or a count of premises (it has none). The evidence names the rows
that prove a violation, by process and index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

COLUMNS: Final = (
    "guarantee",
    "run",
    "level",
    "group",
    "view",
    "process",
    "message",
    "detail",
    "evidence",
    "premises",
)
EVIDENCE_TYPE: Final = "array<struct<process:string,index:bigint>>"

Guarantee = str | Mapping[str, Column]
"""One number, or several, each with the condition under which a row speaks of it."""

Text = str | Column


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
    """One violation a row. `detail` is a sentence in parts: text, and columns to put into it."""
    parts = [part if isinstance(part, Column) else F.lit(part) for part in detail]
    group = F.col("grp") if "grp" in rows.columns else F.lit(None)
    labelled = rows.withColumn("guarantee", F.explode(_labels(guarantee)))
    return labelled.select(
        "guarantee",
        "run",
        "level",
        F.nullif(group.cast("string"), F.lit("")).alias("group"),
        _optional(view).alias("view"),
        F.col(process).alias("process"),
        _optional(message).alias("message"),
        F.concat_ws("", *parts).alias("detail"),
        _evidence(evidence).alias("evidence"),
        F.lit(0).cast("bigint").alias("premises"),
    )


def tested(rows: DataFrame, guarantee: Guarantee) -> DataFrame:
    """How often these promises were put to the test: once a row."""
    conditions = {guarantee: F.lit(True)} if isinstance(guarantee, str) else guarantee
    counts = [
        F.struct(F.lit(label).alias("guarantee"), F.count_if(condition).alias("premises"))
        for label, condition in conditions.items()
    ]
    found = rows.groupBy("run", "level").agg(F.array(*counts).alias("counts"))
    found = found.select("run", "level", F.explode("counts").alias("one")).where(F.col("one.premises") > 0)
    return counted(found.select("one.guarantee", "run", "level", "one.premises"))


def counted(premises: DataFrame) -> DataFrame:
    """Premises that were counted otherwise, as findings: from guarantee, run, level, premises."""
    nothing = [F.lit(None).cast("string").alias(name) for name in ("group", "view", "process", "message", "detail")]
    evidence = F.array().cast(EVIDENCE_TYPE).alias("evidence")
    return premises.select("guarantee", "run", "level", *nothing, evidence, "premises")


def union(findings: Sequence[DataFrame]) -> DataFrame:
    """All of them. Halves are put together, since Spark looks at a whole union again each time it grows."""
    if len(findings) == 1:
        return findings[0]
    middle = len(findings) // 2
    return union(findings[:middle]).union(union(findings[middle:]))


def listed(values: str | Column) -> Column:
    """An array for people: {a, b}."""
    column = F.col(values) if isinstance(values, str) else values
    return F.concat(F.lit("{"), F.array_join(F.array_sort(column), ", "), F.lit("}"))


def text(column: str | Column) -> Column:
    """Any value for people, also where it is none."""
    value = F.col(column) if isinstance(column, str) else column
    return F.coalesce(value.cast("string"), F.lit("none"))


def _labels(guarantee: Guarantee) -> Column:
    if isinstance(guarantee, str):
        return F.array(F.lit(guarantee))
    return F.array_compact(F.array(*(F.when(condition, F.lit(label)) for label, condition in guarantee.items())))


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
