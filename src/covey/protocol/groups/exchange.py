"""What the sessions of strangers have joined, as its parts arrive.

Each daemon tells those from other views what its own sessions have joined, before it is done with an attempt; so no
client is blocked for an extra round when views merge. A single small part travels with STATETRANS; who misses others
asks for a few at a time, and keeps what has come if the attempt fails: a view that is frozen joins nothing any more, so
the parts of one life and version are the same in every attempt.

In:        what a STATETRANS says of the parts; the parts, in any order.
Out:       which to ask for next; the stays, page by page.
Not here:  cutting (declared.py), sending (change.py).

Bounded: one table for each daemon of the attempt; what is decoded is a page at a time.
"""

from __future__ import annotations

from typing import Final

import msgspec

from covey.errors import FrameError
from covey.ids import Life
from covey.protocol.values import Stay

PARTS_BATCH_MAX: Final = 32
BATCH_BYTES: Final = 96 * 1024
"""Parts asked for, and sent, at a time: no more than that of either, but at least one."""

PAGE_BYTES: Final = 32 * 1024
"""The encoding of a page has at most so many bytes."""

PART_OVERHEAD: Final = 64
"""More than a frame has besides the data of its part."""

_DECODER: Final = msgspec.msgpack.Decoder(tuple[Stay, ...])


def batch_parts(part_bytes: int) -> int:
    """
    >>> batch_parts(1_300), batch_parts(65_000)
    (32, 1)
    """
    return max(1, min(PARTS_BATCH_MAX, BATCH_BYTES // part_bytes))


class Collected:
    """The parts of one daemon, as they come."""

    def __init__(self, version: int, parts: int) -> None:
        self.version = version
        self.total = parts
        self.pages: list[tuple[Stay, ...]] = []
        """What has been understood, in order."""
        self.problem: FrameError | None = None
        self._next = 0
        """The first part that is not understood yet."""
        self._parts: dict[int, tuple[bytes, bool]] = {}
        self._asked: tuple[int, ...] = ()

    @property
    def is_complete(self) -> bool:
        return self._next == self.total

    @property
    def has_some(self) -> bool:
        return self._next > 0 or bool(self._parts)

    def add(self, part: int, data: bytes, ends_page: bool) -> bool:
        """Whether it was wanted."""
        if not self._next <= part < self.total or part in self._parts:
            return False
        self._parts[part] = data, ends_page
        self._understand()
        return True

    def _understand(self) -> None:
        """Decode every page whose parts are all here."""
        end, size = self._next, 0
        while end in self._parts and size <= PAGE_BYTES:
            data, ends_page = self._parts[end]
            end, size = end + 1, size + len(data)
            if ends_page:
                self._decode(b"".join(self._parts.pop(part)[0] for part in range(self._next, end)))
                self._next, size = end, 0
        if size > PAGE_BYTES:
            self.problem = FrameError("malformed groups", "a page has no end")

    def _decode(self, data: bytes) -> None:
        try:
            self.pages.append(_DECODER.decode(data))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            self.problem = FrameError("malformed groups", str(error))

    def ask(self, most: int) -> tuple[int, ...]:
        """The next parts to ask for."""
        missing = (part for part in range(self._next, self.total) if part not in self._parts)
        self._asked = tuple(part for _, part in zip(range(most), missing, strict=False))
        return self._asked

    def is_answered(self) -> bool:
        """Whether everything asked for last has come."""
        return all(part < self._next or part in self._parts for part in self._asked)


class StayTables:
    """What is known of the stays at other daemons; kept from one attempt to the next."""

    def __init__(self) -> None:
        self._by_rank: dict[int, tuple[Life, Collected]] = {}

    def of(self, life: Life, version: int, parts: int) -> Collected:
        """What has come of this life's parts, or a new beginning if they are others now."""
        whose, known = self._by_rank.get(life.rank, (None, Collected(version, parts)))
        if whose != life or (known.version, known.total) != (version, parts) or known.problem is not None:
            known = Collected(version, parts)
            self._by_rank[life.rank] = life, known
        return known

    def clear(self) -> None:
        """A view is installed: what was collected is in it."""
        self._by_rank.clear()
