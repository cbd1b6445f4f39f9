"""The rows that prove a violation, as sentences, and how to see a simulated run again.

In:        violations, and the trace they were found in.
Out:       rows, and text for people who know nothing of Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from covey.guarantees import HELD
from covey.trace.record import COLUMNS, REPLAY

from .judging import TracedViolation

RowKey = tuple[str, str, int]


def rows_of(trace: DataFrame, violations: Iterable[TracedViolation]) -> dict[RowKey, dict[str, object]]:
    """The rows that the evidence of these violations names, by run, process and index."""
    wanted = sorted({(one.run, row.process, row.index) for one in violations for row in one.evidence})
    if not wanted:
        return {}
    keys = trace.sparkSession.createDataFrame(wanted, "run string, process string, `index` bigint")
    found = trace.join(F.broadcast(keys), ["run", "process", "index"], "left_semi").collect()
    return {(row["run"], row["process"], row["index"]): {name: row[name] for name in COLUMNS} for row in found}


def heading(violation: TracedViolation) -> str:
    """Which promise, between whom, in which run."""
    between = "clients" if violation.level == "C" else "daemons"
    return f"{violation.guarantee} {HELD[violation.guarantee].name}, between {between}, run {violation.run}"


def sentence(row: dict[str, object]) -> str:
    """One row for people: who, where in its history, what, and the columns that say something."""
    told = [f"{row['process']} row {row['index']}: {row['event']}"]
    for column in (
        "message",
        "service",
        "group",
        "view",
        "view_new",
        "members",
        "transitional",
        "cause",
        "order_stamp",
        "order_view",
    ):
        value = row.get(column)
        if value not in (None, [], ""):
            told.append(f"{column} {_shown(value)}")
    return ", ".join(told)


def _shown(value: object) -> str:
    return "{" + ", ".join(map(str, value)) + "}" if isinstance(value, list) else str(value)


def commands_of(trace: DataFrame, runs: Iterable[str]) -> dict[str, str]:
    """For simulated runs the command that plays them again, with the options that their daemons wrote down."""
    wanted = sorted(set(runs))
    if not wanted:
        return {}
    starts = (F.col("event") == "recover") & F.col("detail").startswith(REPLAY)
    found = trace.where(F.col("run").isin(wanted) & starts).groupBy("run").agg(F.min("detail").alias("command"))
    return {row["run"]: row["command"] for row in found.collect()}


def how_to_repeat(run: str, commands: dict[str, str]) -> str | None:
    """For people; also where only the name of the run tells of its seed.

    >>> how_to_repeat("seed-5", {"seed-5": "covey sim run --seed 5 --clients 4"}), how_to_repeat("demo", {})
    ('covey sim run --seed 5 --clients 4', None)
    >>> how_to_repeat("seed-17", {})
    'covey sim run --seed 17, with the options that it was recorded with'
    """
    seed = re.fullmatch(r"seed-(\d+)", run)
    unsure = f"{REPLAY}--seed {seed[1]}, with the options that it was recorded with" if seed else None
    return commands.get(run, unsure)
