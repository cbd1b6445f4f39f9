"""The verdict on a trace: tables, checks, and a loop where a plan alone cannot tell when it is done.

In:        a trace as a DataFrame, and a directory to work in.
Out:       Judgement: one verdict a guarantee, with the first violations and how many there are; and missing rows.
Not here:  what is a breach (checks/), how a verdict is shown (covey.cli.trace_check).

A trace with missing rows is judged as far as it goes, but its verdict is never "nothing violated": `gaps` says so.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from covey.analysis.tables.build import Keep, Tables, build
from covey.analysis.tables.columns import RELIABLE, UNRELIABLE, ordered
from covey.analysis.tables.lives import gaps_in
from covey.trace.record import COLUMNS

from .checks import FAMILIES, arrivals, causal, circles
from .findings import added_up, union
from .screening import Screened, screened_runs
from .workshop import ROWS_SCREENED, ROWS_SMALL, Progress, Workshop, workshop

VIOLATIONS_KEPT: Final = 20
PLANNED_AT_ONCE: Final = 3


@dataclass(frozen=True)
class Evidence:
    process: str
    index: int


@dataclass(frozen=True)
class TracedViolation:
    guarantee: str
    run: str
    level: str
    group: str | None
    view: str | None
    process: str | None
    message: str | None
    detail: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class LevelVerdict:
    """The judgement on one guarantee at one level of one run."""

    guarantee: str
    run: str
    level: str
    rows_checked: int
    violations: int


@dataclass(frozen=True)
class TracedGap:
    run: str
    level: str
    process: str
    detail: str


@dataclass
class Judgement:
    verdicts: list[LevelVerdict] = field(default_factory=list)
    violations: list[TracedViolation] = field(default_factory=list)
    gaps: list[TracedGap] = field(default_factory=list)


def judge(
    trace: DataFrame, *, work: str | None = None, kept: int = VIOLATIONS_KEPT, progress: Progress = lambda _: None
) -> Judgement:
    """Every guarantee on every run of a trace. `work`: a directory, on a cluster one that all its nodes share."""
    spark = trace.sparkSession
    progress("counting rows")
    rows = trace.count()
    with workshop(spark, work, progress=progress) as shop:
        if rows >= ROWS_SCREENED:
            return judge_screened(trace, screened_runs(trace, rows, shop), shop, kept)
        small = rows <= ROWS_SMALL
        with shop.small(small):
            trace = trace.coalesce(1) if small else trace
            gaps = _gaps(trace)
            found = shop.keep("findings", find(build(trace, shop.keep), shop.keep))
            return _judgement([found], gaps, shop, kept)


def judge_screened(trace: DataFrame, screened: Screened, shop: Workshop, kept: int = VIOLATIONS_KEPT) -> Judgement:
    """What a few cheap passes have proven need not be looked at again.

    Where a part of a run breaks a promise, all of the run is judged, so that what is told is told of the whole.
    """
    gaps = [] if screened.is_whole else _gaps(trace)
    if screened.is_all:
        # One row for each guarantee of each run.
        with shop.small(True):
            return _judgement([screened.found], gaps, shop, kept)
    found = [screened.found, _found_in(screened.left_of(trace), shop, "rest")]
    wrong = found[1].where(F.col("detail").isNotNull()).select("run").distinct()
    wrong = shop.keep("broken-runs", wrong.join(screened.partly, "run", "left_semi"))
    if not wrong.isEmpty():
        found = [one.join(wrong, "run", "left_anti").select(*one.columns) for one in found]
        found.append(_found_in(trace.join(F.broadcast(wrong), "run", "left_semi"), shop, "again"))
    return _judgement(found, gaps, shop, kept)


def _found_in(rows: DataFrame, shop: Workshop, prefix: str) -> DataFrame:
    """All findings on these rows of a large trace. They are read often, so they are stored."""

    def keep(name: str, frame: DataFrame) -> DataFrame:
        return shop.keep(f"{prefix}-{name}", frame)

    rows = keep("rows", rows.select(*COLUMNS))
    small = rows.count() <= ROWS_SMALL
    with shop.small(small):
        rows = rows.coalesce(1) if small else rows
        return keep("found", find(build(rows, keep), keep))


def _gaps(trace: DataFrame) -> list[TracedGap]:
    return [_gap(row.asDict()) for row in gaps_in(trace.where(F.col("level").isin("S", "C"))).collect()]


def _judgement(found: list[DataFrame], gaps: list[TracedGap], shop: Workshop, kept: int) -> Judgement:
    findings = found[0] if len(found) == 1 else shop.keep("findings", union(found))
    verdicts = verdicts_of(findings)
    is_broken = any(one.violations for one in verdicts)
    return Judgement(verdicts, _violations(findings, kept) if is_broken else [], gaps)


def find(tables: Tables, keep: Keep) -> DataFrame:
    """All findings on these tables. Families know nothing of one another, so several may be worked on at once."""

    def family(name: str) -> DataFrame:
        return keep(f"found-{name}", added_up(FAMILIES[name](tables)))

    with ThreadPoolExecutor(PLANNED_AT_ONCE) as pool:
        # The longest chain of queries first.
        before = pool.submit(_causal, tables, keep)
        found = list(pool.map(family, FAMILIES))
        return union([*found, before.result()])


def _causal(tables: Tables, keep: Keep) -> DataFrame:
    return keep(
        "found-causal", added_up(union([causal.premises(tables), *_late(tables, keep), *_circles(tables, keep)]))
    )


def _late(tables: Tables, keep: Keep) -> list[DataFrame]:
    chosen = keep("causal", causal.candidates(tables))
    if chosen.isEmpty():
        return []
    first = arrivals.first_arrivals(tables, chosen, with_send=True)
    return [causal.causal(tables, chosen, _settled("arrivals", first, tables, RELIABLE, keep))]


def _circles(tables: Tables, keep: Keep) -> list[DataFrame]:
    doubtful = keep("unordered", circles.unordered(tables))
    if not doubtful.isEmpty():
        doubtful = keep("unraised", circles.unraised(tables, doubtful))
    if doubtful.isEmpty():
        return []
    first = arrivals.first_arrivals(tables, doubtful, with_send=False)
    return [circles.circles(tables, _settled("returns", first, tables, UNRELIABLE, keep))]


def _settled(name: str, first: DataFrame, tables: Tables, weakest: int, keep: Keep) -> DataFrame:
    """Rounds until nothing moves: as many as there are processes at most."""
    found = keep(f"{name}-0", first.withColumn("moved", F.lit(True)))
    edges = keep(
        f"{name}-links",
        arrivals.links(tables, weakest).join(found.select("run", "level").distinct(), ["run", "level"], "left_semi"),
    )
    ways = keep(f"{name}-ways", arrivals.ways(edges))
    for number in range(1, tables.lives.groupBy("run", "level").count().agg(F.max("count")).collect()[0][0] + 1):
        found = keep(f"{name}-{number}", arrivals.next_arrivals(found, edges, ways))
        if found.where("moved").isEmpty():
            break
    return found


def verdicts_of(findings: DataFrame) -> list[LevelVerdict]:
    rows = findings.groupBy("guarantee", "run", "level").agg(
        F.sum("premises").alias("rows_checked"), F.count("detail").alias("violations")
    )
    found = [LevelVerdict(**row.asDict()) for row in rows.collect()]
    return sorted(found, key=lambda one: (one.run, one.level, one.guarantee))


def _violations(findings: DataFrame, kept: int) -> list[TracedViolation]:
    nth = F.row_number().over(ordered(["guarantee", "run", "level"], "detail"))
    first = findings.where(F.col("detail").isNotNull()).withColumn("nth", nth).where(F.col("nth") <= kept)
    rows = [row.asDict() for row in first.drop("nth", "premises").collect()]
    found = [TracedViolation(**row | {"evidence": tuple(Evidence(*one) for one in row["evidence"])}) for row in rows]
    return sorted(found, key=lambda one: (one.run, one.level, one.guarantee, one.detail))


def _gap(row: dict[str, object]) -> TracedGap:
    told = row["detail"] or f"{row['rows']} rows with indexes {row['first']} to {row['last']}"
    return TracedGap(str(row["run"]), str(row["level"]), str(row["process"]), str(told))
