"""A live cluster under random trouble for as long as asked; then it must converge, and its trace is checked.

In:        minutes, daemons, a seed.  Out: what was done, what the checkers say.
Not here:  the daemons (daemon.py), the network they run on (faultnet/), judgement (simulation/checkers).

With root and TUN devices the daemons run on hosts of a test network that loses, cuts and parts; without, on loopback,
where only processes can be troubled, and the report says so.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from covey.drivers.simulation.checkers import Verdict, check

from .cluster import LocalCluster, Place, here
from .faultnet import FaultNet
from .faultnet import Path as NetPath

PORT = 4_801
CONVERGE_S = 60.0
LOAD_PER_S = 4.0


class SoakReport(msgspec.Struct):
    seconds: float
    network: str
    done: dict[str, int]
    views: int
    rows: int
    came_to_rest: bool
    resident_kb: dict[str, int]
    verdicts: list[Verdict]

    @property
    def violations(self) -> int:
        return sum(verdict.violation_count for verdict in self.verdicts)


class Soak:
    def __init__(self, cluster: LocalCluster, net: FaultNet | None, random: Random) -> None:
        self.cluster = cluster
        self.net = net
        self.random = random
        self.done: Counter[str] = Counter()
        self._names = [daemon.name for daemon in cluster.cluster.daemons]
        self._paused: set[str] = set()

    def run(self, seconds: float, say: Callable[[str], None]) -> None:
        self.cluster.start(*self._names)
        self.cluster.wait_for_view(*self._names)
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            action = self.random.choice(self._actions())
            what = action()
            self.done[what.split()[0]] += 1
            say(f"{left:6.0f} s left: {what}")
            time.sleep(min(left, self.random.uniform(0.3, 5.0)))

    def settle(self) -> bool:
        """All trouble ends; everyone is up. Then they must agree and come to rest."""
        self._heal()
        self._set_loss(0.0)
        for name in sorted(self._paused):
            self._resume(name)
        for name in self._dead():
            self.cluster.start(name)
        self.cluster.wait_for_view(*self._names, within_s=CONVERGE_S)
        self.cluster.calm()
        return self.cluster.finish(CONVERGE_S)

    # --- trouble

    def _actions(self) -> list[Callable[[], str]]:
        actions = [self._kill, self._stop, self._pause, *[self._recover] * 5]
        if self.net is not None:
            lose = partial(self._set_loss, self.random.choice((0.0, 0.01, 0.05, 0.1)))
            actions += [self._partition, self._partition, self._cut, *[self._heal] * 3, lose]
        return actions

    def _living(self) -> list[str]:
        return [child.name for child in self.cluster.living() if child.name not in self._paused]

    def _dead(self) -> list[str]:
        alive = {child.name for child in self.cluster.living()}
        return [name for name in self._names if name not in alive]

    def _victim(self) -> str | None:
        living = self._living()
        return self.random.choice(living) if len(living) > 1 else None

    def _kill(self) -> str:
        victim = self._victim()
        if victim is None:
            return self._recover()
        self.cluster.kill(victim)
        return f"kill {victim}"

    def _stop(self) -> str:
        victim = self._victim()
        if victim is None:
            return self._recover()
        self.cluster.stop(victim)
        return f"stop {victim}"

    def _pause(self) -> str:
        victim = self._victim()
        if victim is None:
            return self._recover()
        self.cluster.pause(victim)
        self._paused.add(victim)
        return f"pause {victim}"

    def _resume(self, name: str) -> str:
        self._paused.discard(name)
        self.cluster.resume(name)
        return f"resume {name}"

    def _recover(self) -> str:
        """Bring back somebody who is away."""
        if self._paused:
            return self._resume(self.random.choice(sorted(self._paused)))
        dead = self._dead()
        if not dead:
            return "nothing to recover"
        name = self.random.choice(dead)
        self.cluster.start(name)
        return f"restart {name}"

    def _partition(self) -> str:
        assert self.net is not None
        hosts = list(range(1, len(self._names) + 1))
        self.random.shuffle(hosts)
        at = self.random.randrange(1, len(hosts))
        self.net.partition([hosts[:at], hosts[at:]])
        return f"partition {sorted(hosts[:at])} from {sorted(hosts[at:])}"

    def _cut(self) -> str:
        assert self.net is not None
        one, other = self.random.sample(range(1, len(self._names) + 1), 2)
        self.net.cut(one, other)
        return f"cut {one} to {other}"

    def _heal(self) -> str:
        if self.net is not None:
            self.net.heal()
        return "heal"

    def _set_loss(self, loss: float) -> str:
        if self.net is not None:
            self.net.set_all(NetPath(loss=loss, delay_ms=1.0, jitter_ms=1.0))
        return f"loss {loss:.0%}"


def run_soak(seconds: float, daemons: int, seed: int, directory: Path, say: Callable[[str], None]) -> SoakReport:
    random, started = Random(seed), time.monotonic()
    with ExitStack() as stack:
        unavailable = FaultNet.unavailable()
        net = None if unavailable else stack.enter_context(FaultNet(daemons, seed))
        places = _places(net, daemons)
        made = LocalCluster(directory, run=f"soak-{seed}", load=LOAD_PER_S, seed=seed, places=places)
        cluster = stack.enter_context(made)
        soak = Soak(cluster, net, random)
        soak.run(seconds, say)
        say("all trouble ends")
        resident = {child.name: child.resident_kb() for child in cluster.living()}
        came_to_rest = soak.settle()
        rows = cluster.rows()
        say(f"checking {len(rows):,} rows")
        return SoakReport(
            seconds=round(time.monotonic() - started, 1),
            network=unavailable or "hosts on a test network",
            done=dict(sorted(soak.done.items())),
            views=sum(row.event == "view" for row in rows),
            rows=len(rows),
            came_to_rest=came_to_rest,
            resident_kb=resident,
            verdicts=check(rows),
        )


def _places(net: FaultNet | None, daemons: int) -> list[Place]:
    if net is None:
        return here(daemons)
    return [Place(net.address(host), PORT, partial(net.popen, host)) for host in range(1, daemons + 1)]


def main(arguments: Sequence[str] | None = None) -> int:
    made = argparse.ArgumentParser(prog="python -m covey.drivers.live.soak", description=__doc__)
    made.add_argument("--minutes", type=float, default=20.0, help="how long there is trouble")
    made.add_argument("--daemons", type=int, default=5, help="how many daemons")
    made.add_argument("--seed", type=int, default=1, help="decides what happens when, as far as processes allow")
    made.add_argument("--keep", type=Path, help="a new directory for configuration, logs and trace")
    made.add_argument("--json", action="store_true", help="standard output holds one JSON object")
    options = made.parse_args(arguments)

    def say(text: str) -> None:
        sys.stderr.write(text + "\n")

    with tempfile.TemporaryDirectory(prefix="covey-soak-") as scratch:
        directory = options.keep or Path(scratch)
        report = run_soak(options.minutes * 60, options.daemons, options.seed, directory, say)
    _show(report, options.json, say)
    return 0 if report.came_to_rest and not report.violations else 1


def _show(report: SoakReport, as_json: bool, say: Callable[[str], None]) -> None:
    for verdict in report.verdicts:
        say(f"{verdict.guarantee:<4} {verdict.premises:>9,} cases  {verdict.violation_count} violations")
        for one in verdict.violations[:5]:
            say(f"     {one.process}: {one.detail}")
    facts: dict[str, Any] = {name: getattr(report, name) for name in report.__struct_fields__ if name != "verdicts"} | {
        "violations": report.violations
    }
    if as_json:
        sys.stdout.write(json.dumps(facts) + "\n")
    else:
        say(" ".join(f"{name}={value}" for name, value in facts.items()))


if __name__ == "__main__":
    sys.exit(main())
