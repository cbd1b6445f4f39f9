"""Frames that nobody sent, well-formed and about real lives, views and attempts, at any moment of a cluster's life.

Without authentication they can harm what is delivered, so no guarantee is checked here. But no step raises, none makes
a daemon send without bound, each is counted once, all that is delivered can be written down; and when they end, the
cluster works again.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from covey.cluster import Cluster, many_sites, one_daemon_sites, one_site
from covey.config import Settings, digest
from covey.ids import Life
from covey.lab.forgery import Facts, Forger
from covey.protocol.effects import Send
from covey.protocol.evs.codec import Codec
from covey.protocol.evs.stamping.token import TokenStamper
from covey.protocol.inputs import ClientBytes, ClientConnected, Datagram
from covey.protocol.values import Service
from covey.protocol.wire.session import encode_word
from covey.protocol.wire.words import MAGIC, VERSION, Hello, JoinGroup
from covey.trace.daemon import DaemonRecorder
from covey.trace.segments import SegmentWriter
from tests.unit.protocol.network import SECOND_US, TinyNetwork

FRAMES = 50
VISIT_MAX = Settings().ring_packets_per_visit + Settings().retransmit_requests_max + 20
"""What a visit of the token lets a daemon send, with some control."""
QUIET_US = 30 * SECOND_US
CLUSTERS = {"ring": one_site(3), "alone": one_daemon_sites(3), "sites": many_sites([2, 1])}


class Victims:
    """Three daemons with clients, in a network that is cut now and then; what they deliver is written down."""

    def __init__(self, cluster: Cluster, directory: Path, seed: int) -> None:
        self.random = Random(seed)
        self.network = TinyNetwork(cluster)
        self.network.checks = False  # Lies may break what holds among honest daemons.
        self.network.form_view()
        self.recorders = {
            rank: DaemonRecorder("run", cluster, Life(rank, 1), SegmentWriter(directory, str(rank)).append)
            for rank in self.network.daemons
        }
        for rank in self.network.daemons:
            hello = encode_word(Hello(MAGIC, VERSION, f"p{rank}", 1, "disconnect"))
            join = encode_word(JoinGroup("room"))
            self.network.give(rank, ClientConnected(1), ClientBytes(1, hello), ClientBytes(1, join))
        self.seq = 0

    def live(self) -> None:
        """Time passes, messages are sent, the network is cut or healed."""
        random, network = self.random, self.network
        cut = random.choice((0, 1, 2, None, None, None))
        if random.random() < 0.1:
            network.loses = lambda source, to, header: cut in (source, to)
        network.run(random.choice((100, 1_000, 5_000, 40_000)))
        self.seq += 1
        for rank, daemon in network.daemons.items():
            network.submit(rank, self.seq, bytes(random.choice((10, 20_000))), random.choice(list(Service)))
            self.recorders[rank].effects(network.effects[rank], network.now)
            network.effects[rank].clear()
            daemon.pull(1, 1 << 30)

    def facts(self, rank: int) -> Facts:
        """About the attempt under way, if there is one."""
        daemon, cluster = self.network.daemons[rank], self.network.cluster
        attempt, stamper = daemon.engine.machine.attempt, daemon.engine.operation.stamper
        ring = stamper.ring if isinstance(stamper, TokenStamper) else None
        held = max(log.gap_free for log in daemon.engine.operation.order.logs.values())
        return Facts(
            cluster=cluster,
            digest=digest(cluster, Settings()),
            lives=attempt.members if attempt else daemon.engine.machine.members,
            view=attempt.ballot if attempt else daemon.engine.machine.view,
            target=Life(rank, 1),
            token=ring.number if ring else 0,
            packets=ring.have_to if ring else held,
            clock=daemon.engine.kit.clock.now(self.network.now),
        )

    def forge(self, rank: int) -> None:
        facts = self.facts(rank)
        if len(facts.lives) == 1:
            return
        sender, frame = Forger(facts, self.random).frame()
        data = Codec(facts.cluster.name, facts.digest, sender).encode(frame)
        outcomes = self.network.daemons[rank].datagrams.outcomes_unlisted
        before = sum(outcomes.values())
        effects = self.network.give(rank, Datagram(data, ("192.0.2.7", 9), unlisted=True))
        assert sum(outcomes.values()) == before + 1, frame
        if isinstance(self.network.daemons[rank].engine.operation.stamper, TokenStamper):
            assert sum(isinstance(effect, Send) for effect in effects) <= VISIT_MAX, frame


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", CLUSTERS)
def test_a_cluster_outlives_forged_frames(tmp_path: Path, shape: str, seed: int) -> None:
    victims = Victims(CLUSTERS[shape], tmp_path, seed)
    for _ in range(FRAMES):
        victims.live()
        for _ in range(victims.random.randrange(3)):
            victims.forge(victims.random.randrange(3))
    network = victims.network
    network.loses = lambda source, to, header: 2 in (source, to)  # What was forged in a view ends with it.
    network.run_until(lambda: network.in_one_view((0, 1)), QUIET_US)
    network.loses = lambda source, to, header: False
    network.run_until(lambda: network.in_one_view((0, 1, 2)), QUIET_US)
    network.submit(0, victims.seq + 1, b"after", Service.SAFE)
    network.run_until(lambda: all(b"after" in network.payloads(rank) for rank in range(3)), QUIET_US)
