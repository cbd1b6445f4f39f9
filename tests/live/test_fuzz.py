"""A live cluster among wrong datagrams: no crash, no growth, every one counted, and the traffic goes on.

In the first test everything is such that a daemon can refuse it, or follow it without harm (fuzz.py): no view changes,
and the trace is checked. In the second, frames are well-formed and about what comes next (forgery.py). Without
authentication a daemon has to believe those, so no guarantee is asked for; but it must not crash, nor grow, nor lose
count, and the cluster must find together again.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

import pytest

from covey.config import digest
from covey.config_file import load
from covey.drivers.live.status import ask, socket_path
from covey.drivers.live.told import LiveStatus
from covey.guarantees.checkers import check
from covey.lab.cluster import WITHIN_S, LocalCluster
from covey.lab.forgery import Facts, Forger
from covey.lab.fuzz import Fuzzer, facts_of, lost_by_the_system
from covey.protocol.counters import Counter
from covey.protocol.evs.codec import Codec
from covey.protocol.evs.frames import Goodbye

pytestmark = pytest.mark.live

DATAGRAMS = int(os.environ.get("COVEY_FUZZ_DATAGRAMS", "100000"))
FORGED = DATAGRAMS // 20
NAMES = ("a", "b", "c")
BATCH = 250
"""For each daemon at a time: what a socket buffer of the usual size cannot hold would be lost before it was counted."""
GROWTH_KB_MAX = 8_000
PATIENT = """
[settings]
peer_timeout_ms = 4_000
token_lost_ms = 2_500
"""
"""So that a busy machine is no reason for a view change, and only what was said can be one."""

Make = Callable[[], bytes]


class Attacker:
    """Sends a batch to each daemon, and the next when all of that has been counted."""

    def __init__(self, cluster: LocalCluster, seed: int) -> None:
        self.cluster = cluster
        self.random = Random(seed)
        self.digest = digest(cluster.cluster, load(cluster.file).settings)
        self.sent = dict.fromkeys(NAMES, 0)
        self._ports = {name: cluster.address(name)[1] for name in NAMES}
        self._lost_before = {name: lost_by_the_system(port) for name, port in self._ports.items()}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def close(self) -> None:
        self._socket.close()

    def status(self, name: str) -> LiveStatus:
        found: LiveStatus = ask(socket_path(self.cluster.cluster, name))
        return found

    def facts(self, name: str) -> Facts:
        return facts_of(self.cluster.cluster, self.digest, self.status(name), time.time_ns() // 1_000)

    def attack(self, makers: dict[str, Make]) -> None:
        for name, make in makers.items():
            for _ in range(BATCH):
                self._socket.sendto(make(), self.cluster.address(name))
            self.sent[name] += BATCH
        for name in makers:
            self.cluster.poll(partial(self.is_all_counted, name), f"{self.sent[name]} outcomes at {name}")

    def is_all_counted(self, name: str) -> bool:
        """Each has one outcome, but for those that the system lost before the daemon could see them."""
        outcomes: dict[str, int] = self.status(name)["outcomes_unlisted"]
        counted = sum(outcomes.values())
        assert counted <= self.sent[name]
        return counted >= self.sent[name] - self.lost(name)

    def lost(self, name: str) -> int:
        return lost_by_the_system(self._ports[name]) - self._lost_before[name]


@contextmanager
def attacked(directory: Path, seed: int, settings: str = "") -> Iterator[tuple[LocalCluster, Attacker]]:
    with LocalCluster(directory, 3, load=40, seed=seed) as cluster:
        cluster.file.write_text(cluster.file.read_text() + settings)
        cluster.start(*NAMES)
        cluster.wait_for_view(*NAMES)
        cluster.wait_for_traffic(20)
        attacker = Attacker(cluster, seed)
        try:
            yield cluster, attacker
        finally:
            attacker.close()


def assert_every_datagram_is_counted(attacker: Attacker) -> None:
    """Received is accepted and dropped by reason, no more and no less: of all, and of what the attacker sent.

    What a full buffer lost never came; batches are small enough that this is nothing, unless the machine stalls.
    """
    for name in NAMES:
        status = attacker.status(name)
        ours, theirs = status["outcomes"], status["outcomes_unlisted"]
        assert status["datagrams_received"] == sum(ours.values()) + sum(theirs.values())
        counted, lost = sum(theirs.values()), attacker.lost(name)  # Which may have been ours or theirs.
        assert attacker.sent[name] - lost <= counted <= attacker.sent[name]
        assert all(what == Counter.ACCEPTED.value or "dropped" in what or "rejected" in what for what in theirs)


def kill_and_restart(cluster: LocalCluster, name: str) -> None:
    cluster.kill(name)
    cluster.wait_for_view(*(other for other in NAMES if other != name))
    cluster.start(name)
    cluster.wait_for_view(*NAMES)
    cluster.wait_for_traffic(20)


def forge_a_goodbye(attacker: Attacker, name: str) -> None:
    """A hint that is not true costs a view: who was thought to be gone is merged again."""
    cluster, facts = attacker.cluster, attacker.facts(name)
    now_ns = time.time_ns()
    farewell = Codec(cluster.cluster.name, attacker.digest, facts.target).encode(Goodbye(facts.view, facts.view))
    others = [other for other in NAMES if other != name]
    attacker.attack({other: lambda: farewell for other in others})
    cluster.wait_until(lambda: any(view.cause == "merge" for view in cluster.views_since(now_ns)), "a merge")
    cluster.wait_for_view(*NAMES)
    assert {view.cause for view in cluster.views_since(now_ns) if view.name in others} >= {"goodbye", "merge"}


def with_company(attacker: Attacker) -> dict[str, Facts]:
    """About those who are not alone in their view: to others one can speak in nobody's name."""
    facts = {name: attacker.facts(name) for name in NAMES}
    return {name: known for name, known in facts.items() if len(known.lives) > 1}


def resident_kb(cluster: LocalCluster) -> dict[str, int]:
    return {name: cluster.child(name).resident_kb() for name in NAMES}


def assert_no_growth(cluster: LocalCluster, before: dict[str, int]) -> None:
    growth = {name: now - before[name] for name, now in resident_kb(cluster).items()}
    assert max(growth.values()) < GROWTH_KB_MAX, growth


def test_wrong_datagrams_are_counted_and_change_nothing(tmp_path: Path) -> None:
    with attacked(tmp_path, 5, PATIENT) as (cluster, attacker):
        views = [cluster.child(name).view for name in NAMES]
        fuzzers = {name: Fuzzer(attacker.facts(name), attacker.random) for name in NAMES}
        before: dict[str, int] = {}
        while sum(attacker.sent.values()) < DATAGRAMS:
            for name, fuzzer in fuzzers.items():
                fuzzer.learn(attacker.facts(name))
            attacker.attack({name: fuzzer.datagram for name, fuzzer in fuzzers.items()})
            before = before or resident_kb(cluster)
        assert_no_growth(cluster, before)
        cluster.wait_for_traffic(20)
        assert_every_datagram_is_counted(attacker)
        reasons = {what for name in NAMES for what in attacker.status(name)["outcomes_unlisted"]}
        assert len(reasons) > 20, "of every layer, not only of the codec"
        assert [cluster.child(name).view for name in NAMES] == views
        forge_a_goodbye(attacker, "c")
        kill_and_restart(cluster, "b")
        cluster.calm()
        cluster.wait_for_traffic(20)
        assert cluster.finish()
        assert [one for verdict in check(cluster.rows()) for one in verdict.violations] == []


def test_a_cluster_outlives_forged_frames(tmp_path: Path) -> None:
    with attacked(tmp_path, 6) as (cluster, attacker):
        before = resident_kb(cluster)
        while sum(attacker.sent.values()) < FORGED:
            cluster.poll(lambda: bool(with_company(attacker)), "a view of more than one", 4 * WITHIN_S)
            forgers = {name: Forger(facts, attacker.random) for name, facts in with_company(attacker).items()}
            attacker.attack({name: partial(_forged, forger) for name, forger in forgers.items()})
        assert_every_datagram_is_counted(attacker)
        cluster.wait_for_view(*NAMES, within_s=4 * WITHIN_S)
        kill_and_restart(cluster, "b")
        assert_no_growth(cluster, before)


def _forged(forger: Forger) -> bytes:
    sender, frame = forger.frame()
    return Codec(forger.facts.cluster.name, forger.facts.digest, sender).encode(frame)
