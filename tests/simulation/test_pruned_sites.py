"""What pruning saves and costs, in virtual time, without loss: three sites of three daemons, members in two of them.

Bundles of eight messages of 1 KB. Little of it goes to the third site, and what is ordered behind a head waits there no
longer than rule W8 says: until the sites that need the content have announced it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

    def __init__(
        self,
        service: Service,
        prune: bool,
        daemons: Sequence[int] = (3, 3, 3),
        members: tuple[int, int] = MEMBERS,
        linger_ms: int = 10_000,
    ) -> None:
        self.service = service
        cluster = many_sites(daemons, tuple(SiteLink(site, site + 1) for site in range(len(daemons) - 1)))
        sites = tuple(daemon.site for daemon in cluster.daemons)
        settings = {"token_rest_ms": 0, "prune": prune, "interest_linger_ms": linger_ms}
        self.settings = msgspec.structs.replace(wan(9), **settings)
        network = NetworkOptions(sites=sites, delay_min_us=HOP_US, delay_mean_us=0)
        self.world = World(cluster, self.settings, network, Random(1), "pruned", lambda _row: None)
        self.sent_us: list[int] = []
        self.took_us: dict[tuple[int, int], int] = {}
        self.world.observers.append(self._observe)
        for rank in range(sum(daemons)):
            self.world.start(rank, Clocks(0, 0, 0))
        self.world.run_until(3_000 * MS)
        for rank in members:
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


# --- who waits for heads, and for interest


def _raw_took(stream: Stream, rounds: int, pause_us: int, pruned: int, other: int) -> list[tuple[int, int]]:
    """From one daemon a message that is pruned, from another one for everybody: by rank, how long these took."""
    world, sent, took = stream.world, dict[int, int](), list[tuple[int, int]]()

    def observe(node: Node, effect: Effect) -> None:
        if isinstance(effect, Deliver) and effect.bundle.kind is Kind.RAW and effect.bundle.payload:
            took.append((node.rank, world.now - sent[int(bytes(effect.bundle.payload))]))

    world.observers[:] = [observe]
    body = sender_prefix("p@1:1.5") + b"".join(part for _ in range(8) for part in record_parts(0, bytes(1_000)))
    for number in range(rounds):
        end = world.now + pause_us
        room = Submit(7, 1 + 8 * number, Service.AGREED, body, 8, ("room",), Kind.MESSAGES)
        world.give(pruned, room)
        world.run_until(world.now + 3 * MS)
        sent[number] = world.now
        world.give(other, Submit(1, 1 + number, Service.AGREED, str(number).encode()))
        world.run_until(end)
    world.run_until(world.now + 3_000 * MS)
    return took


@pytest.mark.parametrize("pause_ms", [40, 70, 100])
def test_heads_that_come_seldom_hold_up_nobody_for_longer_than_a_round_trip(pause_ms: int) -> None:
    """Where a head is much sooner than its content: announcements wait for it, and all of them count then."""
    stream = Stream(Service.AGREED, prune=True, daemons=[1] * 5, members=(0, 3))
    far_us = 4 * (FAR * HOP_US + STEP_US)
    took = [took for rank, took in _raw_took(stream, 30, pause_ms * MS, pruned=3, other=4) if rank == 4]
    assert max(took) <= 2 * far_us + stream.settings.announce_interval_ms * MS + 5 * 2 * (HOP_US + STEP_US)


def _hold_back(stream: Stream, rank: int) -> Callable[[], None]:
    """A daemon tells its clients too slowly, until this is called."""
    engine = stream.world.nodes[rank].core.engine
    right = engine.hold_back
    engine.hold_back = lambda behind: right(True)  # type: ignore[method-assign]

    def catch_up() -> None:
        engine.hold_back = right  # type: ignore[method-assign]

    return catch_up


def test_a_daemon_that_is_behind_where_content_goes_does_not_hold_up_the_others() -> None:
    stream = Stream(Service.AGREED, prune=True)
    _hold_back(stream, 4)
    took = [took for rank, took in _raw_took(stream, 20, 50 * MS, pruned=1, other=7) if rank >= 6]
    assert len(took) == 60
    assert max(took) <= 2 * D_US + stream.settings.announce_interval_ms * MS + 5 * ROTATION_US


def test_while_a_daemon_is_behind_less_is_sent_to_its_site_and_then_all() -> None:
    stream = Stream(Service.AGREED, prune=False)
    world, window = stream.world, stream.settings.source_bundles_unstable
    catch_up = _hold_back(stream, 4)
    body = sender_prefix("p@1:1.5") + b"".join(record_parts(0, bytes(100)))
    stream.sent_us = [world.now] * 10_000
    for number in range(4 * window):
        world.give(1, Submit(7, 1 + number, Service.AGREED, body, 1, ("room",), Kind.MESSAGES))
    world.run_until(world.now + 3_000 * MS)
    log = world.nodes[0].core.engine.operation.order.logs[0]  # type: ignore[attr-defined]
    under_way = log.received
    assert under_way <= 2 * window + 10
    catch_up()
    world.run_until(world.now + 5_000 * MS)
    assert log.received >= 4 * window


def test_groups_that_are_left_and_joined_again_as_interest_is_given_up_are_asked_for_together() -> None:
    stream = Stream(Service.AGREED, prune=True, linger_ms=1)
    world, joined = stream.world, list[int]()

    def observe(node: Node, effect: Effect) -> None:
        if isinstance(effect, Deliver) and effect.bundle.kind is Kind.JOIN and node.rank == 7:
            joined.append(world.now)

    world.observers[:] = [observe]
    groups, name, seq, began = [f"g{number}" for number in range(300)], sender_prefix("q@7:1.6"), 0, 0
    for kinds in ([Kind.JOIN], [Kind.LEAVE, Kind.JOIN]):
        for kind in kinds:
            for group in groups:
                seq += 1
                world.give(7, Submit(6, seq, Service.AGREED, name, groups=(group,), kind=kind))
        began = world.now
        world.run_until(world.now + 5_000 * MS)
    assert len(joined) == 600
    assert joined[-1] - began < 1_000 * MS
