"""What sessions have joined, cut into parts that fit datagrams, and put together again.

Each daemon tells those from other views what its own sessions have joined, before it is done with an attempt; so no
client is blocked for an extra round when views merge (PROTOCOL §4). The first part travels
with STATETRANS; who misses others asks.
"""

from __future__ import annotations

import msgspec

from covey.errors import FrameError
from covey.protocol.values import SessionGroups

GROUP_PARTS_BATCH = 32
"""Parts asked for, and sent, at a time."""

PART_OVERHEAD = 64

_encode = msgspec.msgpack.Encoder().encode
_DECODER = msgspec.msgpack.Decoder(tuple[SessionGroups, ...])


def cut(joined: tuple[SessionGroups, ...], size: int) -> list[bytes]:
    """No parts at all if nobody has joined anything.

    >>> cut((), 100)
    []
    """
    if not joined:
        return []
    data = _encode(joined)
    return [data[at : at + size] for at in range(0, len(data), size)]


class Collected:
    """The parts of one daemon, as they come."""

    def __init__(self, parts: int, first: bytes) -> None:
        self._parts: dict[int, bytes] = {0: first} if parts else {}
        self._total = parts
        self._asked: tuple[int, ...] = ()

    def add(self, part: int, data: bytes) -> bool:
        if part >= self._total or part in self._parts:
            return False
        self._parts[part] = data
        return True

    def ask(self) -> tuple[int, ...]:
        """The next parts to ask for."""
        if len(self._parts) == self._total:
            return ()
        missing = [part for part in range(self._total) if part not in self._parts]
        self._asked = tuple(missing[:GROUP_PARTS_BATCH])
        return self._asked

    def is_answered(self) -> bool:
        """Whether everything asked for last has come."""
        return all(part in self._parts for part in self._asked)

    def read(self) -> tuple[SessionGroups, ...]:
        if not self._total:
            return ()
        try:
            return _DECODER.decode(b"".join(self._parts[part] for part in range(self._total)))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise FrameError("malformed groups", str(error)) from None
