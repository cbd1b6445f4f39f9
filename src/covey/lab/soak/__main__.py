"""A live cluster under random trouble for as long as asked; then it must converge, and its trace is checked.

In:        minutes, daemons, programs, a seed.  Out: what was done, what the checkers say of daemons and of clients.
Not here:  the daemons (daemon.py), their clients (programs.py), the network they run on (faultnet/), judgement
           (guarantees/checkers).

With root and TUN devices the daemons run on hosts of a test network that loses, cuts and parts; without, on loopback,
where only processes can be troubled, and the report says so.
"""

from __future__ import annotations

import argparse
import json
import shutil
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

from covey.guarantees.checkers import Verdict, check
from covey.lab.cluster import Host, LiveError, LocalCluster, hosts_here
from covey.lab.faultnet import FaultNet
from covey.lab.faultnet import Path as NetPath

from .programs import Programs

PORT = 4_801
CONVERGE_S = 60.0
LOAD_PER_S = 50.0
"""Submissions of each daemon, in bursts of up to forty: enough that visits of the token are full and windows close."""
PATH = NetPath(delay_ms=1.0, jitter_ms=1.0)
TABLES = ("verdicts", "of_daemons")
SETTINGS = """
[settings]
message_bytes_max = 260_000
session_receive_bytes = 400_000
"""
"""So little room that a program which stalls is told to go, or makes the others wait."""


class SoakReport(msgspec.Struct):
    seconds: float
    network: str
    done: dict[str, int]
    views: int
    sessions: int
    """Of all programs."""
    rows: int
    came_to_rest: bool
    resident_kb: dict[str, int]
    verdicts: list[Verdict]
    of_daemons: list[Verdict]
    """The share of the daemons in the verdicts; what remains is that of the clients."""

    @property
    def violations(self) -> int:
        return sum(verdict.violation_count for verdict in self.verdicts)


class Soak:
    def __init__(self, cluster: LocalCluster, programs: Programs, net: FaultNet | None, random: Random) -> None:
        self.cluster = cluster
        self.programs = programs
        self.net = net
        self.random = random
        self.done: Counter[str] = Counter()
        self._names = [daemon.name for daemon in cluster.cluster.daemons]
        self._paused: set[str] = set()

    def run(self, seconds: float, say: Callable[[str], None]) -> None:
        self.cluster.start(*self._names)
        self.cluster.wait_for_view(*self._names)
        self.programs.start(*self.programs.names)
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            action = self.random.choice(self._actions())
            what = action()
            self.done[what.split()[0]] += 1
            say(f"{left:6.0f} s left: {what}")
            time.sleep(min(left, self.random.uniform(0.3, 5.0)))
            self.programs.refuse_deaths()

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
        programs_at_rest = self.programs.finish(CONVERGE_S)
        daemons_at_rest = self.cluster.finish(CONVERGE_S)
        self.programs.close()
        self.programs.record_crashes()
        return programs_at_rest and daemons_at_rest

    # --- trouble

    def _actions(self) -> list[Callable[[], str]]:
        actions = [self._kill, self._stop, self._pause, *[self._recover] * 5]
        actions += [self._kill_program] * bool(self.programs.living())
        actions += [self._restart_program] * 2 * bool(self.programs.dead())
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

    def _kill_program(self) -> str:
        victim = self.random.choice(self.programs.living()).name
        self.programs.kill(victim)
        return f"kill-program {victim}"

    def _restart_program(self) -> str:
        name = self.random.choice(self.programs.dead())
        self.programs.start(name)
        return f"restart-program {name}"

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
        """Who was parted stays parted."""
        if self.net is not None:
            self.net.vary(loss=loss)
        return f"loss {loss:.0%}"


def run_soak(
    seconds: float, daemons: int, programs: int, seed: int, directory: Path, say: Callable[[str], None]
) -> SoakReport:
    started = time.monotonic()
    with ExitStack() as stack:
        unavailable = FaultNet.unavailable()
        net = None if unavailable else stack.enter_context(FaultNet(daemons, seed, PATH))
        soak = _soak(stack, net, daemons, programs, seed, directory)
        soak.run(seconds, say)
        say("all trouble ends")
        resident = {child.name: child.resident_kb() for child in soak.cluster.living()}
        came_to_rest = soak.settle()
        rows = soak.cluster.rows()
        say(f"checking {len(rows):,} rows")
        return SoakReport(
            seconds=round(time.monotonic() - started, 1),
            network=unavailable or "hosts on a test network",
            done=dict(sorted(soak.done.items())),
            views=sum(row.event == "view" and row.level == "S" for row in rows),
            sessions=sum(row.event == "connect" for row in rows),
            rows=len(rows),
            came_to_rest=came_to_rest,
            resident_kb=resident,
            verdicts=check(rows),
            of_daemons=check(row for row in rows if row.level == "S"),
        )


def _soak(stack: ExitStack, net: FaultNet | None, daemons: int, programs: int, seed: int, directory: Path) -> Soak:
    hosts = _hosts(net, daemons)
    made = LocalCluster(directory, run=f"soak-{seed}", load=LOAD_PER_S, bursts=True, seed=seed, hosts=hosts)
    made.file.write_text(made.file.read_text() + SETTINGS)
    cluster = stack.enter_context(made)
    clients = stack.enter_context(Programs(cluster, programs, seed=seed))
    return Soak(cluster, clients, net, Random(seed))


def _hosts(net: FaultNet | None, daemons: int) -> list[Host]:
    if net is None:
        return hosts_here(daemons)
    return [Host(net.address(host), PORT, partial(net.popen, host)) for host in range(1, daemons + 1)]


def main(arguments: Sequence[str] | None = None) -> int:
    made = argparse.ArgumentParser(prog="python -m covey.lab.soak", description=__doc__)
    made.add_argument("--minutes", type=float, default=20.0, help="how long there is trouble")
    made.add_argument("--daemons", type=int, help="how many daemons; by default the seed says, three to five")
    made.add_argument("--programs", type=int, default=6, help="how many client programs")
    made.add_argument("--seed", type=int, default=1, help="decides what happens when, as far as processes allow")
    made.add_argument("--keep", type=Path, help="a new directory for configuration, logs and trace")
    made.add_argument("--json", action="store_true", help="standard output holds one JSON object")
    options = made.parse_args(arguments)

    def say(text: str) -> None:
        sys.stderr.write(text + "\n")

    directory = options.keep or Path(tempfile.mkdtemp(prefix="covey-soak-"))
    say(f"configuration, logs and trace: {directory}")
    daemons = options.daemons or Random(f"daemons {options.seed}").randint(3, 5)
    try:
        report = run_soak(options.minutes * 60, daemons, options.programs, options.seed, directory, say)
    except LiveError as error:
        say(f"{error}\nThe logs and the trace in {directory} say more; `covey trace cat` prints its rows.")
        return 1
    _show(report, options.json, say)
    is_good = report.came_to_rest and not report.violations
    if is_good and options.keep is None:  # What went wrong is kept to be read.
        shutil.rmtree(directory)
    return 0 if is_good else 1


def _show(report: SoakReport, as_json: bool, say: Callable[[str], None]) -> None:
    of_daemons = {verdict.guarantee: verdict.premises for verdict in report.of_daemons}
    say(f"     {'of daemons':>11} {'of clients':>11}")
    for verdict in report.verdicts:
        cases = of_daemons[verdict.guarantee]
        count = verdict.violation_count
        say(f"{verdict.guarantee:<4} {cases:>11,} {verdict.premises - cases:>11,} cases  {count} violations")
        for one in verdict.violations[:5]:
            say(f"     {one.process}: {one.detail}")
    facts: dict[str, Any] = {name: getattr(report, name) for name in report.__struct_fields__ if name not in TABLES}
    facts |= {"violations": report.violations}
    if as_json:
        sys.stdout.write(json.dumps(facts) + "\n")
    else:
        say(" ".join(f"{name}={value}" for name, value in facts.items()))


if __name__ == "__main__":
    sys.exit(main())
