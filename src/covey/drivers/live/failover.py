"""How fast a live cluster notices and heals: kill, stop, restart, each timed to the view at the last survivor.

Victims are the representative, the holder of the token and anybody, in turn; the seed decides the rest.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

from .cluster import LocalCluster
from .events import View

KINDS: Final = {
    "start": "start of all, from before the first process is made",
    "kill": "kill -9 of one",
    "stop": "SIGTERM of one",
    "merge": "restart of one and merge, from before the process is made",
}


@dataclass(slots=True)
class Failover:
    """Milliseconds of each trial, by kind."""

    times: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    def add(self, kind: str, since_ns: int, views: list[View]) -> None:
        self.times[kind].append(max(view.time_ns - since_ns for view in views) / 1_000_000)

    def summary(self) -> dict[str, float]:
        found: dict[str, float] = {"trials": len(self.times["kill"])}
        for kind, times in self.times.items():
            found[f"{kind}_ms"] = round(median(times), 1)
            found[f"{kind}_worst_ms"] = round(max(times), 1)
        return found


def measure_failover(daemons: int, trials: int, seed: int) -> Iterator[Failover]:
    """What is known after each trial."""
    random, result = Random(seed), Failover()
    for trial in range(trials):
        with (
            tempfile.TemporaryDirectory(prefix="covey-bench-") as directory,
            LocalCluster(Path(directory), daemons, run="bench", load=50, seed=seed + trial) as cluster,
        ):
            names = [daemon.name for daemon in cluster.cluster.daemons]
            before = time.time_ns()
            cluster.start(*names)
            result.add("start", before, cluster.wait_for_view(*names))
            for kind in ("kill", "stop"):
                _trial(cluster, kind, _victim(cluster, names, trial, random), names, result)
        yield result


def _trial(cluster: LocalCluster, kind: str, victim: str, names: list[str], result: Failover) -> None:
    """One daemon goes and comes back."""
    cluster.wait_for_traffic(20)
    rest = [name for name in names if name != victim]
    since = cluster.kill(victim) if kind == "kill" else cluster.stop(victim)
    result.add(kind, since, cluster.wait_for_view(*rest))
    cluster.wait_for_traffic(20)
    since = time.time_ns()
    cluster.start(victim)
    result.add("merge", since, cluster.wait_for_view(*names))


def _victim(cluster: LocalCluster, names: list[str], trial: int, random: Random) -> str:
    if trial % 3 == 0:
        return names[0]
    if trial % 3 == 1:
        holders = [status.name for status in cluster.statuses() if status.snapshot["link"].get("token_is_here")]
        if holders:
            return holders[0]
    return random.choice(names)
