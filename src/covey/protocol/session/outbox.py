"""What waits for one client, in bytes and in time, until its stream has room.

Invariant: X1 `size` is the sum of what waits.
"""

from __future__ import annotations

from collections import deque

from covey.protocol.values import Payload

SMALL = 2_048
"""A slice below this is copied: kept as it is, it would keep its whole datagram."""


class Outbox:
    def __init__(self) -> None:
        self._waiting: deque[tuple[tuple[Payload, ...], int, int]] = deque()
        self.size = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, parts: tuple[Payload, ...], size: int, now_us: int) -> None:
        self._waiting.append((parts, size, now_us))
        self.size += size

    def pull(self, room: int) -> list[Payload]:
        """Whole frames of about so many bytes together; at least one, if any waits."""
        taken: list[Payload] = []
        while self._waiting and (not taken or room > 0):
            parts, size, _ = self._waiting.popleft()
            taken += parts
            room -= size
            self.size -= size
        return taken

    def lag_us(self, now_us: int) -> int:
        """How long the oldest frame has waited."""
        return now_us - self._waiting[0][2] if self._waiting else 0

    def span_us(self) -> int:
        """How much later than the oldest frame the newest came."""
        return self._waiting[-1][2] - self._waiting[0][2] if self._waiting else 0

    def clear(self) -> None:
        self._waiting.clear()
        self.size = 0

    def check(self) -> None:
        assert self.size == sum(size for _, size, _ in self._waiting), "X1"


def small_copied(payload: Payload) -> Payload:
    return bytes(payload) if len(payload) < SMALL else payload
