"""The rows that prove a violation, as sentences, and how to see a simulated run again.

In:        violations, and the trace they were found in.
Out:       text for people who know nothing of Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from covey.analysis.guarantees import CHECKED
from covey.analysis.judging import Violation

RowKey = tuple[str, str, int]


def rows_of(trace: DataFrame, violations: Iterable[Violation]) -> dict[RowKey, dict[str, object]]:
    """The rows that the evidence of these violations names, by run, process and index."""
    wanted = sorted({(one.run, row.process, row.index) for one in violations for row in one.evidence})
    if not wanted:
        return {}
    keys = trace.sparkSession.createDataFrame(wanted, "run string, process string, `index` bigint")
    found = trace.join(F.broadcast(keys), ["run", "process", "index"], "left_semi").collect()
    return {(row["run"], row["process"], row["index"]): row.asDict() for row in found}


def heading(violation: Violation) -> str:
    """Which promise, between whom, in which run."""
    between = "clients" if violation.level == "C" else "daemons"
    return f"{violation.guarantee} {CHECKED[violation.guarantee]}, between {between}, run {violation.run}"


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


def replay_command(run: str) -> str | None:
    """The command for a simulated run; it needs the options again that the run was recorded with.

    >>> replay_command("seed-17"), replay_command("demo")
    ('covey sim run --seed 17', None)
    """
    seed = re.fullmatch(r"seed-(\d+)", run)
    return f"covey sim run --seed {seed[1]}" if seed else None
