"""Bundles to packets and back: small ones share a packet, large ones are cut into pieces."""

from __future__ import annotations

from covey.protocol.counters import Counter, Dropped
from covey.protocol.values import Bundle, Payload
from covey.protocol.wire.bundles import read_bundle

from .codec import CHUNK_OVERHEAD
from .frames import Chunk


class Packer:
    """Fills packets of at most `limit` body bytes, in the order given."""

    def __init__(self, limit: int, overhead: int = CHUNK_OVERHEAD) -> None:
        self._limit = limit
        self._overhead = overhead  # Of each piece: more where pieces may say which sites they are for.
        self._room = 0
        self.packets: list[list[Chunk]] = []

    def packets_after(self, size: int) -> int:
        """How many packets there would be after adding an encoding of this size."""
        if size + self._overhead <= self._room:
            return len(self.packets)
        return len(self.packets) + self._pieces(size)

    def add(self, site: int, number: int, parts: tuple[Payload, ...], content: int = 0) -> None:
        """The encoding of a bundle, in parts: copied only when it must be cut."""
        length, size = sum(map(len, parts)), self._limit - self._overhead
        if length <= size:
            if length + self._overhead > self._room:
                self.packets.append([])
                self._room = self._limit
            self.packets[-1].append(Chunk(site, number, 0, 1, parts, content))
            self._room -= length + self._overhead
            return
        pieces, view = self._pieces(length), memoryview(b"".join(parts))
        for piece in range(pieces):
            part = view[piece * size : (piece + 1) * size]
            self.packets.append([Chunk(site, number, piece, pieces, part, content)])
            self._room = self._limit - self._overhead - len(part)

    def _pieces(self, size: int) -> int:
        return max(1, -(-size // (self._limit - self._overhead)))


class Reassembly:
    """Puts pieces together again. Bounded: links hand up each packet once, and bound the packets of a view.

    Invariant: B1 what is kept is incomplete, and no more than its bound.
    """

    def __init__(self, pieces_max: int) -> None:
        self._parts: dict[tuple[int, int], dict[int, Chunk]] = {}
        self._pieces_max = pieces_max
        self._pieces = 0

    def add(self, chunk: Chunk) -> Bundle | Dropped | None:
        """The bundle, if this piece completes it. FrameError: what it completes is none."""
        if chunk.pieces == 1:
            return read_bundle(_joined(chunk))
        if self._pieces >= self._pieces_max:
            return Dropped(Counter.PIECE_TOO_MANY)
        parts = self._parts.setdefault((chunk.site, chunk.number), {})
        self._pieces += chunk.piece not in parts
        parts[chunk.piece] = chunk
        if len(parts) < chunk.pieces:
            return None
        del self._parts[chunk.site, chunk.number]
        self._pieces -= len(parts)
        return read_bundle(memoryview(b"".join(_joined(parts[piece]) for piece in sorted(parts))))

    def check(self) -> None:
        assert self._pieces == sum(map(len, self._parts.values())) <= self._pieces_max, "B1"
        assert all(len(parts) < next(iter(parts.values())).pieces for parts in self._parts.values()), "B1"


def _joined(chunk: Chunk) -> memoryview:
    data = chunk.data
    return data if isinstance(data, memoryview) else memoryview(b"".join(data) if isinstance(data, tuple) else data)
