"""Many seeds, in several processes, each reported as it ends."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import msgspec

from .options import Asked
from .probes import seen
from .run import run_seed


class Violated(msgspec.Struct, frozen=True):
    guarantee: str
    process: str
    detail: str


class SeedReport(msgspec.Struct, frozen=True):
    """One seed: what a swarm keeps of it."""

    seed: int
    events: int
    violations: list[Violated]
    premises: dict[str, int]
    probes: frozenset[str]
    cpu_s: float = 0.0
    """What it cost, the checks included."""


def report_seed(seed: int, asked: Asked, trace: Path | None = None) -> SeedReport:
    """Run a seed. A broken invariant or any other exception is a failure of the run, reported like a violation."""
    began = time.process_time()
    try:
        result = run_seed(seed, asked, trace)
    except Exception as error:  # noqa: BLE001 - whatever a run dies of is what the report is for
        where = traceback.extract_tb(error.__traceback__)[-1]
        detail = f"{type(error).__name__}: {error} at {Path(where.filename).name}:{where.lineno} {where.line}"
        return SeedReport(seed, 0, [Violated("invariant", "", detail)], {}, frozenset())
    violations = [
        Violated(one.guarantee, one.process, one.detail) for verdict in result.verdicts for one in verdict.violations
    ]
    premises = {verdict.guarantee: verdict.premises for verdict in result.verdicts}
    return SeedReport(seed, result.events, violations, premises, seen(result), time.process_time() - began)


def run_swarm(seeds: range, asked: Asked, jobs: int) -> Iterator[SeedReport]:
    """Reports in the order of the seeds."""
    work = partial(report_seed, asked=asked)
    if jobs <= 1:
        yield from map(work, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(work, seeds, chunksize=max(1, min(8, len(seeds) // (4 * jobs))))
