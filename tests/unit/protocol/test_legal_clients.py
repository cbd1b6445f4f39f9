"""Clients that stay within every limit, and what they must not do to a daemon or to each other."""

from __future__ import annotations

from random import Random

import pytest

from covey.config import Settings, lan, loopback
from covey.protocol.values import Service
from covey.protocol.wire.session import (
    Sending,
    record_parts,
    sender_prefix,
    sending_parts,
)
from tests.unit.protocol.network import TinyNetwork
from tests.unit.protocol.test_clients import Peer, network


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
    assert len(house.payloads(2)) == peer.seq
