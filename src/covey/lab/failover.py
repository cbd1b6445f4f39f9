"""How fast a live cluster notices and heals: each trouble is timed to the common view at the last daemon it concerns.

In:        how many daemons, how often, a seed.  Out: milliseconds by what the trouble was, and what broke a guarantee.
Not here:  judgement of the trace (guarantees/checkers), how it is shown (cli/bench.py).

Victims are the representative, the holder of the token and anybody, in turn; the seed decides the rest.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

import msgspec

from covey.drivers.live.events import DaemonView
from covey.guarantees.checkers import check
from covey.guarantees.checkers.verdict import Violation

from .cluster import LiveError, LocalCluster

TROUBLES: Final = {
    "start": "start of all, from before the first process is made",
    "kill": "kill -9 of one",
    "stop": "SIGTERM of one",
    "merge": "restart of one and merge, from before the process is made",
    "resume": "one goes on after a pause, from before the SIGCONT",
}
LOAD_PER_S: Final = 50.0


class FailoverPlan(msgspec.Struct, frozen=True):
    """What is measured, and how often."""

    daemons: int = 3
    trials: int = 10
    pause_trials: int = 3
    """How many of the trials have a pause too: each takes its time."""
    pause_seconds: float = 5.0
    seed: int = 0


class Failover(msgspec.Struct):
    """Milliseconds of each trial, by trouble; and what the checkers found in the traces."""

    times: dict[str, list[float]] = msgspec.field(default_factory=lambda: {trouble: [] for trouble in TROUBLES})
    events: int = 0
    violations: list[Violation] = []
    kept: list[Path] = []
    """Directories of trials that broke a guarantee."""

    def add(self, trouble: str, since_ns: int, views: list[DaemonView]) -> None:
        self.times[trouble].append(max(view.time_ns - since_ns for view in views) / 1_000_000)

    def summary(self) -> dict[str, float]:
        """Medians and worst cases of whatever was measured."""
        found: dict[str, float] = {"trials": len(self.times["start"]), "resume_trials": len(self.times["resume"])}
        for trouble, times in self.times.items():
            if times:
                found[f"{trouble}_ms"] = round(median(times), 1)
                found[f"{trouble}_worst_ms"] = round(max(times), 1)
        return found | {"events": self.events, "violations": len(self.violations)}


def measure_failover(plan: FailoverPlan) -> Iterator[Failover]:
    """What is known after each trial. LiveError: the daemons did not do what a trial waits for."""
    random, result = Random(plan.seed), Failover()
    for number in range(plan.trials):
        directory = Path(tempfile.mkdtemp(prefix="covey-bench-"))
        seed, broken = plan.seed + number, len(result.violations)
        with LocalCluster(directory, plan.daemons, run="bench", load=LOAD_PER_S, seed=seed) as cluster:
            trial = _Trial(cluster, number, random, result)
            try:
                trial.run(plan.pause_seconds if number < plan.pause_trials else None)
            except LiveError as error:
                raise LiveError(f"{error}; logs and trace are in {directory}") from None
        if len(result.violations) == broken:
            shutil.rmtree(directory)
        else:
            result.kept.append(directory)
        yield result


class _Trial:
    """Every trouble, once, on a cluster of its own; then its trace is checked."""

    def __init__(self, cluster: LocalCluster, number: int, random: Random, result: Failover) -> None:
        self._cluster = cluster
        self._number = number
        self._random = random
        self._result = result
        self._names = [daemon.name for daemon in cluster.cluster.daemons]

    def run(self, pause_seconds: float | None) -> None:
        before = time.time_ns()
        self._cluster.start(*self._names)
        self._result.add("start", before, self._cluster.wait_for_view(*self._names))
        for trouble in ("kill", "stop"):
            self._lose_and_merge(trouble)
        if pause_seconds is not None:
            self._pause(pause_seconds)
        self._check()

    def _lose_and_merge(self, trouble: str) -> None:
        """One daemon goes and comes back."""
        cluster = self._cluster
        cluster.wait_for_traffic(20)
        victim = self._victim()
        since = cluster.kill(victim) if trouble == "kill" else cluster.stop(victim)
        self._result.add(trouble, since, cluster.wait_for_view(*self._without(victim)))
        cluster.wait_for_traffic(20)
        since = time.time_ns()
        cluster.start(victim)
        self._result.add("merge", since, cluster.wait_for_view(*self._names))

    def _pause(self, seconds: float) -> None:
        """The others must have gone on without it before it wakes: a shorter pause may change no view."""
        cluster, victim = self._cluster, self._random.choice(self._names)
        cluster.wait_for_traffic(20)
        paused = cluster.pause(victim)
        cluster.wait_for_view(*self._without(victim))
        time.sleep(max(0.0, seconds - (time.time_ns() - paused) / 1_000_000_000))
        since = cluster.resume(victim)
        self._result.add("resume", since, cluster.wait_for_view(*self._names))

    def _check(self) -> None:
        self._cluster.calm()
        self._cluster.wait_for_traffic(20)
        if not self._cluster.finish():
            raise LiveError("the daemons did not come to rest at the end of a trial")
        rows = self._cluster.rows()
        self._result.events += len(rows)
        for verdict in check(rows):
            self._result.violations += verdict.violations

    def _without(self, victim: str) -> list[str]:
        return [name for name in self._names if name != victim]

    def _victim(self) -> str:
        if self._number % 3 == 0:
            return self._names[0]
        if self._number % 3 == 1:
            return self._last_holder()
        return self._random.choice(self._names)

    def _last_holder(self) -> str:
        """Who has the token parked; else who had it last, as far as can be told: it moves on faster than we ask."""
        links = {status.name: status.snapshot["link"] for status in self._cluster.statuses()}
        return max(links, key=lambda name: (bool(links[name].get("token_is_here")), links[name].get("token", 0)))
