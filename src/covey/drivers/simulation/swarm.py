"""Many seeds, in several processes, each reported as it ends."""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec

from covey.errors import CoveyError

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
    excused: dict[str, int] = {}
    """How often a promise was kept only by one of its excuses."""


def report_seed(seed: int, asked: Asked, trace: Path | None = None) -> SeedReport:
    """Run a seed. A broken invariant or any other exception is a failure of the run, reported like a violation."""
    began = time.process_time()
    try:
        result = run_seed(seed, asked, trace)
    except CoveyError:
        raise  # What was asked for cannot be, or the trace cannot be written: no finding about the protocol.
    except Exception as error:  # noqa: BLE001 - whatever a run dies of is what the report is for
        where = traceback.extract_tb(error.__traceback__)[-1]
        detail = f"{type(error).__name__}: {error} at {Path(where.filename).name}:{where.lineno} {where.line}"
        return SeedReport(seed, 0, [Violated("invariant", "", detail)], {}, frozenset())
    violations = [
        Violated(one.guarantee, one.process, one.detail) for verdict in result.verdicts for one in verdict.violations
    ]
    premises = {verdict.guarantee: verdict.premises for verdict in result.verdicts}
    excused = {verdict.guarantee: verdict.excused for verdict in result.verdicts if verdict.excused}
    return SeedReport(seed, result.events, violations, premises, seen(result), time.process_time() - began, excused)


def run_swarm(seeds: range, asked: Asked, jobs: int) -> Iterator[SeedReport]:
    """Reports in the order of the seeds."""
    if jobs <= 1:
        for seed in seeds:
            yield report_seed(seed, asked)
        return
    size = max(1, min(8, len(seeds) // (4 * jobs)))
    # Ctrl-C goes to all of us: it ends a worker at once and without a word, instead of after the seeds that it has.
    with ProcessPoolExecutor(jobs, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_DFL)) as pool:
        parts = [pool.submit(_report_seeds, seeds[at : at + size], asked) for at in range(0, len(seeds), size)]
        try:
            for part in parts:
                yield from part.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _report_seeds(seeds: range, asked: Asked) -> list[SeedReport]:
    return [report_seed(seed, asked) for seed in seeds]
