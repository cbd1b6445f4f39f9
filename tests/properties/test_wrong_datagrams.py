"""What the fuzzer makes is wrong, and a daemon can tell: nothing of it changes a view, an order or a delivery."""

from __future__ import annotations

from random import Random

import pytest

from covey.cluster import one_site
from covey.config import Settings, digest
from covey.errors import FrameError
from covey.lab.forgery import Facts
from covey.lab.fuzz import Fuzzer, facts_of
from covey.protocol.counters import Count, Counter
from covey.protocol.inputs import Datagram
from covey.protocol.values import Service
from tests.unit.protocol.network import SECOND_US, TinyNetwork

DATAGRAMS = 4_000
BATCH = 20
CLUSTER = one_site(3)
DIGEST = digest(CLUSTER, Settings())


def facts(network: TinyNetwork, rank: int) -> Facts:
    daemon = network.daemons[rank]
    return facts_of(CLUSTER, DIGEST, daemon.snapshot(network.now), daemon.engine.kit.clock.now(network.now))


@pytest.mark.parametrize("seed", range(2))
def test_a_view_at_work_takes_no_notice_of_wrong_datagrams(seed: int) -> None:
    """Invariants are checked after every step."""
    network, random = TinyNetwork(CLUSTER), Random(seed)
    network.form_view()
    network.run(SECOND_US)
    view, outcomes = network.daemons[0].engine.machine.view, Count()
    fuzzers = {rank: Fuzzer(facts(network, rank), random) for rank in network.daemons}
    for seq in range(1, DATAGRAMS // BATCH + 1):
        rank = seq % 3
        network.submit(rank, seq, b"%d" % seq, random.choice(list(Service)[1:]), session=rank)
        network.run(random.choice((100, 300, 5_000)))
        fuzzers[rank].learn(facts(network, rank))
        network.give(rank, *(Datagram(fuzzers[rank].datagram(), ("192.0.2.7", 9), unlisted=True) for _ in range(BATCH)))
    network.run(SECOND_US)
    for daemon in network.daemons.values():
        assert daemon.engine.machine.view == view
        for outcome, amount in daemon.datagrams.outcomes_unlisted.items():
            outcomes.add(outcome, amount)
    sent = [b"%d" % seq for seq in range(1, DATAGRAMS // BATCH + 1)]
    assert all(sorted(network.payloads(rank)) == sorted(sent) for rank in network.daemons)
    assert sum(outcomes.values()) == DATAGRAMS
    assert outcomes[Counter.ACCEPTED] < DATAGRAMS / 5
    assert len(outcomes) > 20, "reasons of every kind, not only of the codec"


def test_what_passes_the_codec_can_be_sent_on() -> None:
    network = TinyNetwork(CLUSTER)
    network.form_view()
    codec, fuzzer = network.daemons[1].engine.kit.codec, Fuzzer(facts(network, 1), Random(9))
    passed = 0
    for _ in range(10_000):
        try:
            frame = codec.decode(fuzzer.datagram()).frame
        except FrameError:
            continue
        passed += 1
        assert codec.decode(codec.encode(frame)).frame == frame
    assert passed > 1_000
