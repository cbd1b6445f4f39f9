"""Clients that stay within every limit, and what they must not do to a daemon or to each other."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import msgspec
import pytest

from covey.config import DATAGRAM_BYTES_MAX, Settings, lan, loopback
from covey.errors import ConfigError
from covey.protocol.asked import Sending
from covey.protocol.boundary import Header
from covey.protocol.effects import ClientReading, Send
from covey.protocol.evs.frames import Data, Token
from covey.protocol.evs.states import State
from covey.protocol.values import Service
from covey.protocol.wire.bodies import record_parts, sender_prefix
from covey.protocol.wire.session import sending_parts
from covey.protocol.wire.words import MAGIC, VERSION, Hello, JoinGroup
from tests.unit.protocol.network import TinyNetwork
from tests.unit.protocol.peers import Peer, network


def frames(peer: Peer, groups: tuple[str, ...], sizes: list[int]) -> bytes:
    """A message of each size, each in a frame of its own."""
    found = []
    for size in sizes:
        peer.seq += 1
        body = b"".join([sender_prefix(peer.process), *record_parts(0, bytes(size))])
        found += sending_parts(Sending(Service.AGREED, 0, 1, peer.seq, groups, body))
    return b"".join(found)


def settled(house: TinyNetwork) -> None:
    house.run_until(house.all_settled)


def named(count: int, characters: int) -> tuple[str, ...]:
    return tuple(f"{number}".ljust(characters, "n") for number in range(count))


# --- names are part of a bundle


@pytest.mark.parametrize(
    ("settings", "names", "sizes"),
    [
        (lan(3), named(3, 41), (20, 250)),
        (loopback(3), named(90, 78), (1_000, 56_000)),
        (lan(3), named(60, 128), (1, 400)),
    ],
    ids=["three names", "ninety names", "more names than bytes"],
)
def test_the_names_of_groups_count_where_packets_are_planned(
    settings: Settings, names: tuple[str, ...], sizes: tuple[int, int]
) -> None:
    house = network(3, settings)
    house.checks = False
    random = Random(1)
    peer = Peer(house)
    peer.hello()
    for _ in range(20):
        count = 400 if sizes[1] < 1_000 else 40
        peer.write(frames(peer, names, [random.randint(*sizes) for _ in range(count)]))
        house.run(2_000)
    settled(house)
    assert sum(effect.bundle.count for effect in house.delivered(2)) == peer.seq


def test_a_bundle_with_all_its_names_keeps_within_what_a_ring_stores() -> None:
    """The narrowest ring that settings allow carries the longest names that a message may have."""
    house = network(2, narrowest(packet_bytes=512, bundle_bytes=1_000))
    peer = Peer(house)
    peer.hello()
    for _ in range(5):
        peer.write(frames(peer, named(63, 128), [1_000] * 3))
        house.run(20_000)
    settled(house)
    assert len(house.payloads(1)) == peer.seq


def narrowest(packet_bytes: int, bundle_bytes: int) -> Settings:
    for packets in range(1, 1_000):
        with suppress(ConfigError):
            return Settings(
                packet_bytes=packet_bytes,
                bundle_bytes=bundle_bytes,
                ring_packets_per_visit=1,
                ring_packets_unstable=packets,
            )
    raise AssertionError("no ring is wide enough")


def test_whatever_is_sent_fits_a_datagram() -> None:
    """A view change at a daemon with many memberships, which lacks one packet of many."""
    house = network(3, loopback(3))
    house.checks = False
    peer = Peer(house, rank=2)
    peer.hello()
    peer.say(*(JoinGroup(f"{number}".ljust(90, "g")) for number in range(930)))
    house.run_until(lambda: len(house.daemons[0].clients.groups.roster) == 930)
    sender = Peer(house)
    sender.hello("bob")
    arrived: list[int] = []

    def loses(source: int, to: int, header: Header) -> bool:
        """The first packet to c, each time it is sent; and, once it has another, the token."""
        frame = header.frame
        if to == 2 and isinstance(frame, Data):
            arrived.append(frame.packet_seq)
            return frame.packet_seq == arrived[0]
        return len(set(arrived)) > 1 and isinstance(frame, Token)

    house.loses = loses
    sender.send("room")
    house.run_until(lambda: bool(arrived))
    sender.write(frames(sender, ("room",), [1] * 250))
    house.run_until(lambda: house.daemons[2].engine.machine.state is not State.OP)
    house.loses = lambda source, to, header: False
    house.form_view()
    longest = max(len(effect.data) for rank in range(3) for effect in house.effects[rank] if isinstance(effect, Send))
    assert longest <= DATAGRAM_BYTES_MAX


# --- many who come at once


def test_what_a_storm_of_joins_is_told_grows_with_its_views_and_not_with_their_members() -> None:
    sessions = 120
    house = network(1)
    house.checks = False
    peers = [Peer(house, connection=number + 1) for number in range(sessions)]
    for number, peer in enumerate(peers):
        peer.say(Hello(MAGIC, VERSION, f"s{number}", 1, "disconnect"))
    for peer in peers:
        peer.say(JoinGroup("room"))
    settled(house)
    house.run(200_000)
    told = sum(len(part) for peer in peers for part in house.daemons[0].pull(peer.connection, 1 << 30))
    a_view, a_member = 200, 2 * len("s119@a:1.119")
    assert told <= sessions * (sessions * (a_view + a_member))


# --- large beside small


def test_a_large_message_gets_its_room_beside_small_ones_that_never_end() -> None:
    house = network(3, msgspec.structs.replace(lan(3), submit_queue_bytes=220_000))
    house.checks = False
    small, large = [Peer(house, connection=number) for number in (1, 2, 3)], Peer(house, connection=4)
    for number, peer in enumerate([*small, large]):
        peer.hello(f"s{number}")
    is_read = Reading(house)
    for number in range(200):
        for peer in small:
            if is_read(peer):
                peer.write(frames(peer, ("small",), [1_000] * 60))
        if number == 20:
            large.write(frames(large, ("large",), [200_000]))
        house.run(1_000)
    assert ("large",) in {one.bundle.groups for one in house.delivered(0)}


class Reading:
    """Whether daemon a reads what a client sends."""

    def __init__(self, house: TinyNetwork) -> None:
        self._house = house
        self._seen = 0
        self._unread: set[int] = set()

    def __call__(self, peer: Peer) -> bool:
        effects = self._house.effects[0]
        for effect in effects[self._seen :]:
            if isinstance(effect, ClientReading):
                (self._unread.discard if effect.read else self._unread.add)(effect.connection)
        self._seen = len(effects)
        return peer.connection not in self._unread


# --- who does not read


def test_what_waits_for_all_clients_together_is_bounded() -> None:
    budget, members = 1_000_000, 8
    settings = Settings(clients_bytes_max=budget, message_bytes_max=20_000, session_receive_bytes=400_000)
    house = network(1, settings)
    silent = [Peer(house, connection=number + 1) for number in range(members)]
    for number, peer in enumerate(silent):
        peer.hello(f"s{number}")
        peer.say(JoinGroup(f"g{number}"))
    sender = Peer(house, connection=100)
    sender.hello("sender")
    for _ in range(30):
        for number in range(members):
            sender.write(frames(sender, (f"g{number}",), [10_000]))
        house.run(10_000)
    waiting = sum(sum(map(len, house.daemons[0].pull(peer.connection, 1 << 30))) for peer in silent)
    assert waiting <= budget + members * 20_000
    assert any(peer.is_closed for peer in silent)


@pytest.mark.parametrize(("percent", "share"), [(0, 0.9), (25, 0.5)])
def test_members_that_make_senders_wait_do_so_for_their_share_of_time(percent: int, share: float) -> None:
    settings = Settings(
        block_percent=percent, block_max_ms=1_000, message_bytes_max=20_000, session_receive_bytes=100_000
    )
    house = network(1, settings)
    house.checks = False
    sender = Peer(house, connection=1)
    sender.hello("sender")
    rounds, is_read = 800, Reading(house)
    for number in range(rounds):
        if number % 100 == 0:  # A new one every second, and none of them ever reads.
            blocker = Peer(house, connection=2 + number)
            blocker.say(Hello(MAGIC, VERSION, f"b{number}", 1, "block"), JoinGroup("room"))
        if is_read(sender):
            sender.write(frames(sender, ("room",), [2_000]))
        house.run(10_000)
    assert sender.seq >= share * rounds
