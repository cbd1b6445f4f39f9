"""What has come from other sites and waits for the representative's next visit of the token (rule W4).

In:        pieces of bundles, as they arrive.  Out: packets for the ring, as many as a visit leaves room for.
Not here:  numbering and sending them (ring.py).

Bounded: no site has more under way than its window, so more pieces than that are no site's.
"""

from __future__ import annotations

from collections import deque

from covey.protocol.counters import Counter, Dropped
from covey.protocol.evs.codec import CHUNK_OVERHEAD, PRUNED_OVERHEAD
from covey.protocol.evs.frames import Chunk


class Foreign:
    def __init__(self, pieces_max: int) -> None:
        self._waiting: deque[Chunk] = deque()
        self._pieces_max = pieces_max

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, chunks: tuple[Chunk, ...]) -> Dropped | None:
        if len(self._waiting) + len(chunks) > self._pieces_max:
            return Dropped(Counter.FOREIGN_TOO_MUCH)
        self._waiting.extend(chunks)
        return None

    def packets(self, most: int, packet_bytes: int) -> list[list[Chunk]]:
        """As they came, so many to a packet as fit."""
        packets: list[list[Chunk]] = []
        room = 0
        while self._waiting:
            first = self._waiting[0]
            size = len(first.data) + CHUNK_OVERHEAD + (PRUNED_OVERHEAD if first.content else 0)
            if size > room:
                if len(packets) == most:
                    break
                packets.append([])
                room = packet_bytes
            packets[-1].append(self._waiting.popleft())
            room -= size
        return packets
