"""How long messages take between sites, in virtual time, without loss: within rule W8 for every message of a stream.

D is the longest way between two sites, h the interval of announcements, T a rotation of a ring and the hop that brings
a packet. What is sent before the others have heard of the first message after a silence takes up to D more, like it.
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
from covey.protocol.values import Service

pytestmark = pytest.mark.slow

MS = 1_000
HOP_US = 1 * MS
STEP_US = 100
"""More than a daemon takes to wake."""
CHAIN = (SiteLink(0, 1), SiteLink(1, 2))
D_US = 2 * (FAR * HOP_US + STEP_US)
ROTATION_US = (3 + 1) * (HOP_US + STEP_US)
PAUSE_US = 7 * MS
MESSAGES = 120


class Stream:
    """Three sites of three daemons in a chain; each message goes from the next daemon."""

    def __init__(self, service: Service) -> None:
        self.service = service
        cluster = many_sites([3, 3, 3], CHAIN)
        sites = tuple(daemon.site for daemon in cluster.daemons)
        self.settings = msgspec.structs.replace(wan(9), token_rest_ms=0)
        network = NetworkOptions(sites=sites, delay_min_us=HOP_US, delay_mean_us=0)
        self.world = World(cluster, self.settings, network, Random(1), "sites", lambda _row: None)
        self.sent_us: dict[int, int] = {}
        self.took_us: dict[tuple[int, int], int] = {}
        self.world.observers.append(self._observe)
        for rank in range(9):
            self.world.start(rank, Clocks(0, 0, 0))
        self.world.run_until(3_000 * MS)

    def _observe(self, node: Node, effect: Effect) -> None:
        if isinstance(effect, Deliver) and effect.bundle.payload:
            number = int(bytes(effect.bundle.payload))
            self.took_us[number, node.rank] = self.world.now - self.sent_us[number]

    def send(self, number: int) -> None:
        self.sent_us[number] = self.world.now
        rank = number % 9
        self.world.give(rank, Submit(1, 1 + number // 9, self.service, str(number).encode()))
        self.world.run_until(self.world.now + PAUSE_US)

    def play(self) -> tuple[int, int]:
        """The longest time of the first messages, which follow a silence, and of the others."""
        for number in range(MESSAGES):
            self.send(number)
        self.world.run_until(self.world.now + 1_000 * MS)
        assert len(self.took_us) == 9 * MESSAGES
        heard = D_US // PAUSE_US
        first = max(took for (number, _), took in self.took_us.items() if number <= heard)
        return first, max(took for (number, _), took in self.took_us.items() if number > heard)


def bound_us(service: Service, settings_interval_ms: int) -> int:
    h = settings_interval_ms * MS
    if service is Service.RELIABLE:
        return D_US + 2 * ROTATION_US
    return D_US + h + 3 * ROTATION_US if service is Service.AGREED else 2 * D_US + 2 * h + 5 * ROTATION_US


@pytest.mark.parametrize("service", [Service.RELIABLE, Service.AGREED, Service.SAFE])
def test_every_message_of_a_stream_is_delivered_in_time(service: Service) -> None:
    stream = Stream(service)
    first, others = stream.play()
    bound = bound_us(service, stream.settings.announce_interval_ms)
    assert others <= bound
    assert first <= bound + D_US
