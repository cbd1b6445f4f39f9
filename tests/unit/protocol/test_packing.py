"""Bundles to packets and back: small ones share, large ones are cut, and what is incomplete is bounded."""

from __future__ import annotations

import pytest

from covey.errors import FrameError
from covey.protocol.counters import Counter, Dropped
from covey.protocol.evs.codec import CHUNK_OVERHEAD
from covey.protocol.evs.frames import Chunk
from covey.protocol.evs.packing import Packer, Reassembly
from covey.protocol.wire.bundles import encode_bundle
from tests.unit.protocol.builders import bundle

LIMIT = 100
ROOM = LIMIT - CHUNK_OVERHEAD


def pack(*sizes: int) -> list[list[Chunk]]:
    packer = Packer(LIMIT)
    for number, size in enumerate(sizes, start=1):
        packer.add(0, number, (bytes(size),))
    return packer.packets


def shape(packets: list[list[Chunk]]) -> list[list[tuple[int, int, int]]]:
    """(number, piece, pieces) of each chunk."""
    return [[(chunk.number, chunk.piece, chunk.pieces) for chunk in packet] for packet in packets]


def pieces_of(number: int, payload: bytes, size: int = 30) -> list[Chunk]:
    data = encode_bundle(bundle(number, payload=payload))
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return [Chunk(0, number, piece, len(parts), part) for piece, part in enumerate(parts)]


# --- packing


def test_small_bundles_share_a_packet() -> None:
    assert shape(pack(20, 20)) == [[(1, 0, 1), (2, 0, 1)]]


def test_a_bundle_that_does_not_fit_starts_a_packet() -> None:
    assert shape(pack(ROOM - 10, 20)) == [[(1, 0, 1)], [(2, 0, 1)]]


def test_a_large_bundle_is_cut_into_pieces() -> None:
    assert shape(pack(2 * ROOM + 1)) == [[(1, 0, 3)], [(1, 1, 3)], [(1, 2, 3)]]


def test_a_small_bundle_follows_the_last_piece_of_a_large_one() -> None:
    assert shape(pack(ROOM + 1, 10)) == [[(1, 0, 2)], [(1, 1, 2), (2, 0, 1)]]


@pytest.mark.parametrize("size", [0, 1, ROOM - 1, ROOM, ROOM + 1, 3 * ROOM])
def test_the_number_of_packets_is_foretold(size: int) -> None:
    packer = Packer(LIMIT)
    packer.add(0, 1, (bytes(30),))
    foretold = packer.packets_after(size)
    packer.add(0, 2, (bytes(size),))
    assert len(packer.packets) == foretold


# --- putting together again


def test_a_bundle_in_one_piece_comes_at_once() -> None:
    one = bundle(1, payload=b"x")
    assert Reassembly(4).add(Chunk(0, 1, 0, 1, encode_bundle(one))) == one


def test_a_bundle_comes_with_its_last_missing_piece() -> None:
    pieces = pieces_of(3, bytes(range(40)))
    reassembly = Reassembly(10)
    assert [reassembly.add(piece) for piece in (*pieces[2:], pieces[0])] == [None] * (len(pieces) - 1)
    assert reassembly.add(pieces[1]) == bundle(3, payload=bytes(range(40)))


def test_a_piece_that_comes_twice_counts_once() -> None:
    pieces = pieces_of(1, b"")
    reassembly = Reassembly(10)
    assert [reassembly.add(pieces[0]) for _ in range(5)] == [None] * 5
    assert [reassembly.add(piece) for piece in pieces[1:]][-1] == bundle(1)


def test_pieces_of_too_many_incomplete_bundles_are_dropped() -> None:
    reassembly = Reassembly(2)
    added = [reassembly.add(pieces_of(number, b"")[0]) for number in (1, 2, 3)]
    assert added == [None, None, Dropped(Counter.PIECE_TOO_MANY)]


def test_a_completed_bundle_makes_room() -> None:
    reassembly = Reassembly(4)
    for number in (1, 2, 3):
        assert [reassembly.add(piece) for piece in pieces_of(number, b"")][-1] == bundle(number)


def test_pieces_that_make_no_bundle_are_a_frame_error() -> None:
    reassembly = Reassembly(4)
    reassembly.add(Chunk(0, 1, 0, 2, b"not"))
    with pytest.raises(FrameError):
        reassembly.add(Chunk(0, 1, 1, 2, b"ours"))
