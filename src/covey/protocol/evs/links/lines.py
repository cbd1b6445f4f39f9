"""How far each daemon of a ring holds the order, as it has said itself: safe messages without a rotation (rule R5).

In:        lines, told by an ACK or by a packet of who keeps the token.  Out: the least of them.
Not here:  when a daemon says so (stamping/token.py), what the token tells of all of them (floors.py).

A line never falls while a view works, so what was said once stays true, in whatever order it comes.
"""

from __future__ import annotations

from typing import Final

DIRECT_RING_MAX: Final = 5
"""In larger rings the token tells of lines: everybody would have to tell everybody."""


class Lines:
    def __init__(self, others: tuple[int, ...]) -> None:
        self._lines = dict.fromkeys(others, 0)
        self.are_told = len(others) < DIRECT_RING_MAX
        """Whether the ring is small enough for that."""
        self._told = 0

    def knows(self, rank: int) -> bool:
        return rank in self._lines

    def hear(self, rank: int, line: int) -> None:
        self._lines[rank] = max(self._lines[rank], line)

    def least(self, mine: int) -> int:
        """Every daemon of the ring holds the order up to here."""
        return min(mine, *self._lines.values())

    def is_news(self, mine: int) -> bool:
        """Whether we have not told our line yet; from now on we have."""
        is_higher = mine > self._told
        self._told = max(self._told, mine)
        return is_higher
