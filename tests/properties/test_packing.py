"""Packing: whatever the sizes, bundles come back from their packets in any order, and no packet is too long."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from covey.protocol.counters import Counter, Dropped
from covey.protocol.evs.codec import CHUNK_OVERHEAD
from covey.protocol.evs.packing import Packer, Reassembly
from covey.protocol.values import Bundle
from covey.protocol.wire.bundles import encode_bundle
from tests.unit.protocol.builders import bundle

SIZES = st.lists(st.integers(0, 400), max_size=12)
LIMIT = st.integers(CHUNK_OVERHEAD + 1, 300)


def pack(sizes: list[int], limit: int) -> Packer:
    packer = Packer(limit)
    for number, size in enumerate(sizes, start=1):
        encoding = encode_bundle(bundle(number, payload=bytes([number]) * size))
        foretold = packer.packets_after(len(encoding))
        packer.add(0, number, (encoding,))
        assert len(packer.packets) == foretold
    return packer


@given(SIZES, LIMIT)
def test_no_packet_is_longer_than_the_limit(sizes: list[int], limit: int) -> None:
    lengths = [sum(CHUNK_OVERHEAD + len(chunk.data) for chunk in packet) for packet in pack(sizes, limit).packets]
    assert all(length <= limit for length in lengths)


@given(SIZES, LIMIT, st.integers(0, 2**32))
def test_bundles_come_back_in_any_order_of_packets(sizes: list[int], limit: int, seed: int) -> None:
    packets = pack(sizes, limit).packets
    Random(seed).shuffle(packets)
    reassembly = Reassembly(sum(map(len, packets)) + 1)
    added = [reassembly.add(chunk) for packet in packets for chunk in packet]
    whole = [one for one in added if isinstance(one, Bundle)]
    assert {one.number: bytes(one.payload) for one in whole} == {
        number: bytes([number]) * size for number, size in enumerate(sizes, start=1)
    }
    assert (len(whole), sum(isinstance(one, Dropped) for one in added)) == (len(sizes), 0)


@given(SIZES, LIMIT, st.integers(1, 20))
def test_what_is_incomplete_is_bounded_and_every_piece_too_many_is_dropped(
    sizes: list[int], limit: int, pieces_max: int
) -> None:
    reassembly = Reassembly(pieces_max)
    first_pieces = [
        chunk for packet in pack(sizes, limit).packets for chunk in packet if chunk.piece + 1 < chunk.pieces
    ]
    kept = min(len(first_pieces), pieces_max)
    too_many = [Dropped(Counter.PIECE_TOO_MANY)] * (len(first_pieces) - kept)
    assert [reassembly.add(chunk) for chunk in first_pieces] == [None] * kept + too_many
