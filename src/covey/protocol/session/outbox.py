"""What waits for one client, in bytes and in time, until its stream has room.

Invariants: X1 `size` is the sum of what waits; X2 what waits at the daemon is the sum of what waits for anybody, and of
what anybody has said that was not done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from covey.protocol.dialects.entries import Entry
from covey.protocol.values import Payload

USER_BYTES: Final = 80
"""What an entry costs for each session that it waits for."""


class Total:
    """What waits at this daemon takes in memory, about: what waits for several sessions counts once."""

    def __init__(self) -> None:
        self.size = 0


class SessionOutbox:
    def __init__(self, total: Total) -> None:
        self._waiting: deque[tuple[Entry, int]] = deque()
        self._total = total
        self.size = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, entry: Entry, now_us: int) -> None:
        self._waiting.append((entry, now_us))
        self.size += entry.size
        self._total.size += USER_BYTES if entry.users else USER_BYTES + entry.weight
        entry.users += 1

    def pull(self, room: int) -> list[Payload]:
        """Whole frames of about so many bytes together; at least one, if any waits."""
        taken: list[Payload] = []
        while self._waiting and (not taken or room > 0):
            entry = self._waiting.popleft()[0]
            taken += entry.parts()
            room -= entry.size
            self._let_go(entry)
        return taken

    def _let_go(self, entry: Entry) -> None:
        self.size -= entry.size
        entry.users -= 1
        self._total.size -= USER_BYTES if entry.users else USER_BYTES + entry.weight

    def lag_us(self, now_us: int) -> int:
        """How long the oldest frame has waited."""
        return now_us - self._waiting[0][1] if self._waiting else 0

    def span_us(self) -> int:
        """How much later than the oldest frame the newest came."""
        return self._waiting[-1][1] - self._waiting[0][1] if self._waiting else 0

    def clear(self, most: int = 1 << 62) -> int:
        """Let go of so many entries at most; of how many it was."""
        count = min(most, len(self._waiting))
        for _ in range(count):
            self._let_go(self._waiting.popleft()[0])
        return count

    def entries(self) -> Iterable[Entry]:
        return (entry for entry, _ in self._waiting)

    def check(self) -> None:
        assert self.size == sum(entry.size for entry in self.entries()), "X1"
