"""What pruning saves and costs, in virtual time, without loss: three sites of three daemons, members in two of them.

Bundles of eight messages of 1 KB. Little of it goes to the third site, and what is ordered behind a head waits there no
longer than rule W8 says: until the sites that need the content have announced it.
"""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from covey.cluster import SiteLink, many_sites
from covey.config import wan
from covey.drivers.simulation.network import FAR, NetworkOptions
from covey.drivers.simulation.node import Clocks, Node
from covey.drivers.simulation.world import World
from covey.protocol.effects import Deliver, Effect
from covey.protocol.inputs import Submit
from covey.protocol.values import Kind, Service
from covey.protocol.wire.bodies import record_parts, sender_prefix

pytestmark = pytest.mark.slow

MS = 1_000
HOP_US = 1 * MS
STEP_US = 100
D_US = 2 * (FAR * HOP_US + STEP_US)
ROTATION_US = (3 + 1) * (HOP_US + STEP_US)
PAUSE_US = 9 * MS
MESSAGES = 60
MEMBERS = (1, 4)
"""Daemons of the first and the second site."""


class Stream:
    """A chain of three sites; daemon after daemon of the first two sends to a group that has members there."""

    def __init__(self, service: Service, prune: bool) -> None:
        self.service = service
        cluster = many_sites([3, 3, 3], (SiteLink(0, 1), SiteLink(1, 2)))
        sites = tuple(daemon.site for daemon in cluster.daemons)
        self.settings = msgspec.structs.replace(wan(9), token_rest_ms=0, prune=prune)
        network = NetworkOptions(sites=sites, delay_min_us=HOP_US, delay_mean_us=0)
        self.world = World(cluster, self.settings, network, Random(1), "pruned", lambda _row: None)
        self.sent_us: list[int] = []
        self.took_us: dict[tuple[int, int], int] = {}
        self.world.observers.append(self._observe)
        for rank in range(9):
            self.world.start(rank, Clocks(0, 0, 0))
        self.world.run_until(3_000 * MS)
        for rank in MEMBERS:
            name = sender_prefix(f"p@{rank}:1.5")
            self.world.give(rank, Submit(5, 1, Service.AGREED, name, groups=("room",), kind=Kind.JOIN))
        self.world.run_until(6_000 * MS)

    def _observe(self, node: Node, effect: Effect) -> None:
        if isinstance(effect, Deliver) and effect.bundle.kind is Kind.MESSAGES:
            number = (effect.bundle.session_seq - 1) // 8
            self.took_us[number, node.rank] = self.world.now - self.sent_us[number]

    def play(self) -> None:
        records = b"".join(part for _ in range(8) for part in record_parts(0, bytes(1_000)))
        for number in range(MESSAGES):
            rank = number % 6
            self.sent_us.append(self.world.now)
            body = sender_prefix(f"p@{rank}:1.5") + records
            self.world.give(rank, Submit(5, 1 + 8 * number, self.service, body, 8, ("room",), Kind.MESSAGES))
            self.world.run_until(self.world.now + PAUSE_US)
        self.world.run_until(self.world.now + 2_000 * MS)
        assert len(self.took_us) == 9 * MESSAGES

    def carried(self, one: int, other: int) -> int:
        """Bytes from one representative to another."""
        link = self.world.nodes[one].core.engine.operation.links.carried[other]  # type: ignore[attr-defined]
        return int(link.bytes + link.head_bytes)

    def longest_us(self, *ranks: int) -> int:
        """Of those after the first, which follow a silence."""
        heard = D_US // PAUSE_US
        return max(took for (number, rank), took in self.took_us.items() if rank in ranks and number > heard)


def test_little_goes_where_nobody_is_a_member() -> None:
    pruned, whole = Stream(Service.AGREED, prune=True), Stream(Service.AGREED, prune=False)
    pruned.play()
    whole.play()
    assert pruned.carried(3, 6) < 0.05 * whole.carried(3, 6)


@pytest.mark.parametrize("service", [Service.AGREED, Service.SAFE])
def test_what_is_ordered_behind_a_head_is_delivered_in_time(service: Service) -> None:
    stream = Stream(service, prune=True)
    stream.play()
    h = stream.settings.announce_interval_ms * MS
    agreed, safe = 2 * D_US + h + 5 * ROTATION_US, 3 * D_US + 2 * h + 7 * ROTATION_US
    assert stream.longest_us(6, 7, 8) <= (agreed if service is Service.AGREED else safe)
