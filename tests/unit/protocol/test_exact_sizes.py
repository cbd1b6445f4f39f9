"""Sizes are known, not guessed: whatever legal names and lists a program uses, what is planned fits."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import msgspec
import pytest

from covey.cluster import one_site
from covey.config import DATAGRAM_BYTES_MAX, HEADS_BYTES_MAX, Settings, lan, loopback
from covey.errors import ConfigError
from covey.ids import Life
from covey.protocol.effects import Send
from covey.protocol.evs.codec import CHUNK_OVERHEAD, PACKET_OVERHEAD, PRUNED_OVERHEAD, Codec
from covey.protocol.evs.frames import Data, Stated, StateTrans
from covey.protocol.inputs import ClientBytes, ClientConnected, Submit
from covey.protocol.values import Service
from covey.protocol.wire.bundles import bundle_parts
from covey.protocol.wire.session import encode_word
from covey.protocol.wire.words import MAGIC, VERSION, Hello, JoinGroup
from tests.unit.protocol.builders import bundle, frames_in
from tests.unit.protocol.network import SECOND_US, TinyNetwork

Sizes = tuple[int, int]

AT_THE_EDGE = 97
"""Ten groups with names of this length fill a part that fits a datagram, but not beside a declaration."""


def names(count: int, length: int) -> tuple[str, ...]:
    return tuple(f"{number:0{length}}" for number in range(count))


@pytest.mark.parametrize(
    ("settings", "groups", "sizes"),
    [
        (lan(3), names(3, 41), (20, 250)),
        (lan(3), names(100, 79), (0, 9_000)),
        (loopback(3), names(90, 78), (0, 57_000)),
    ],
    ids=["three groups", "most names", "ninety groups"],
)
def test_a_visit_keeps_to_its_allowance_whatever_groups_are_called(
    settings: Settings, groups: tuple[str, ...], sizes: Sizes
) -> None:
    """The ring asserts it (R3); a daemon that guessed the size of its next bundle died of this."""
    network, random = TinyNetwork(one_site(3), settings), Random(7)
    network.form_view()
    network.checks = False
    bytes_each = 1_000_000 if sizes[1] > 10_000 else 150_000
    for rank in range(3):
        seq = sent = 0
        while sent < bytes_each:
            seq += 1
            payload = bytes(random.randint(*sizes))
            sent += len(payload) + sum(map(len, groups))
            network.give(rank, Submit(1, seq, Service.AGREED, payload, groups=groups))
    network.run_until(network.all_settled)
    assert len(network.payloads(0)) == len(network.payloads(2)) > 0


# --- the largest bundle and its packets


def test_the_heads_of_a_packet_are_as_long_as_the_settings_reckon() -> None:
    longest = Codec("c" * 255, 1, Life(0, 1))
    assert longest.overhead + PACKET_OVERHEAD + CHUNK_OVERHEAD + PRUNED_OVERHEAD == HEADS_BYTES_MAX


@pytest.mark.parametrize("settings", [lan(), loopback(), Settings(bundle_bytes=1_000, packet_bytes=512)])
def test_a_window_has_room_for_the_largest_bundle(settings: Settings) -> None:
    room = settings.packet_bytes - HEADS_BYTES_MAX
    longest = bundle(1, groups=names(16, 500), payload=bytes(settings.bundle_bytes))
    assert -(-sum(map(len, bundle_parts(longest))) // room) <= settings.pieces_max <= settings.ring_packets_unstable


@pytest.mark.parametrize(("packets", "is_right"), [(16, False), (17, True)])
def test_a_window_without_that_room_is_refused(packets: int, is_right: bool) -> None:
    small: dict[str, Any] = {"ring_packets_per_visit": 1, "ring_packets_unstable": packets}
    if is_right:
        assert Settings(**small).pieces_max == packets
    else:
        with pytest.raises(ConfigError, match="ring_packets_unstable >= 17"):
            Settings(**small)


# --- declarations


def on_their_own(settings: Settings, groups: Iterable[str]) -> TinyNetwork:
    """Two daemons that do not hear each other, with a session in these groups each."""
    network = TinyNetwork(one_site(2), settings)
    network.checks = False
    network.loses = lambda source, to, header: True
    network.run(2 * SECOND_US)
    hello = encode_word(Hello(MAGIC, VERSION, "p", 1, "disconnect"))
    joins = b"".join(encode_word(JoinGroup(group)) for group in groups)
    for rank in range(2):
        network.give(rank, ClientConnected(1), ClientBytes(1, hello + joins))
    network.run(3 * SECOND_US)
    return network


def lose_what_is_too_long(network: TinyNetwork) -> None:
    """As the system does: what does not fit is lost, however often it is said."""
    codec, settings = network.daemons[0].engine.kit.codec, network.daemons[0].kit.settings
    network.loses = lambda source, to, header: len(codec.encode(header.frame)) > settings.packet_bytes


def declarations(network: TinyNetwork) -> list[Stated]:
    codec = network.daemons[0].engine.kit.codec
    frames = frames_in(network.effects[0], codec)
    whole = [frame for frame in frames if isinstance(frame, StateTrans) and frame.parts == 1]
    return [msgspec.msgpack.decode(frame.data, type=Stated) for frame in whole]


@pytest.mark.parametrize("count", [1, 300, 620, 640, 930, 2_500])
def test_daemons_with_any_number_of_memberships_merge_and_every_datagram_fits(count: int) -> None:
    network = on_their_own(loopback(2), (f"{number:040}" for number in range(count)))
    lose_what_is_too_long(network)
    network.run_until(lambda: network.in_one_view((0, 1)))
    for rank, daemon in network.daemons.items():
        assert len(daemon.clients._declared) == count
        datagrams = [effect.data for effect in network.effects[rank] if isinstance(effect, Send)]
        assert max(map(len, datagrams)) <= loopback(2).packet_bytes <= DATAGRAM_BYTES_MAX
        daemon.check(full=True)
        assert daemon.clients.groups.roster.largest(1) == {f"{0:040}": 2}


def merged(length: int) -> tuple[int, bool]:
    """How two daemons told of ten groups with names of that length: in how many parts, and whether at once."""
    network = on_their_own(lan(2), (f"{number:0{length}}" for number in range(10)))
    lose_what_is_too_long(network)
    network.run_until(lambda: network.in_one_view((0, 1)), 3 * SECOND_US)
    [how] = {(stated.group_parts, bool(stated.first_part)) for stated in declarations(network)[-1:]}
    assert network.daemons[1].clients.groups.roster.largest(1) == {f"{0:0{length}}": 2}
    return how


def test_a_first_part_that_does_not_fit_beside_the_declaration_is_asked_for() -> None:
    assert [merged(length) for length in (40, AT_THE_EDGE, 120)] == [(1, True), (1, False), (2, False)]


def test_a_declaration_that_does_not_fit_a_packet_is_told_in_parts_that_do() -> None:
    """One daemon misses the first packet, and the others go on until their window is full."""
    network = TinyNetwork(one_site(3, name="c" * 250), Settings(packet_bytes=512, bundle_bytes=600))
    network.form_view()
    network.loses = lambda source, to, header: (
        to == 2 and isinstance(header.frame, Data) and header.frame.packet_seq == 1
    )
    network.checks = False
    network.give(0, *(Submit(1, seq, Service.FIFO, b"x") for seq in range(1, 4_000)))
    network.run(SECOND_US // 10)
    network.loses = lambda source, to, header: 0 in (source, to)
    network.run_until(lambda: network.in_one_view((1, 2)))
    codec = network.daemons[2].engine.kit.codec
    frames = [frame for frame in frames_in(network.effects[2], codec) if isinstance(frame, StateTrans)]
    assert max(frame.parts for frame in frames) > 1
    assert max(len(codec.encode(frame)) for frame in frames) <= 512
    assert network.payloads(1) == network.payloads(2) != []
