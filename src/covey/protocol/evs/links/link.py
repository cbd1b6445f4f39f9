"""What joins two sites: a link that carries packets to one daemon, in any order, or fails with a reason.

In:        packets to send, by queue class; packets that arrived.
Out:       effects; pieces of bundles that are new; how much more may be written; why it failed.
Not here:  what a packet means (operation.py), the token ring inside a site (ring.py).

A link sets and clears its deadlines in the one table, like everybody.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Protocol

from covey.protocol.counters import Dropped
from covey.protocol.effects import Effect, LinkSend
from covey.protocol.evs.frames import Chunk, Data

ROOM_MAX: Final = 1 << 30


class QueueClass(IntEnum):
    """What goes first where a link cannot carry everything."""

    CONTROL = 0
    DATA = 1


class Link(Protocol):
    @property
    def failed(self) -> str:
        """Why it carries nothing any more; empty while it works."""

    def room(self, queue_class: QueueClass) -> int:
        """Bytes that may be written now."""

    def send(self, queue_class: QueueClass, data: bytes) -> list[Effect]: ...

    def arrived(self, frame: Data, datagram: bytes) -> tuple[Chunk, ...] | Dropped:
        """The pieces of a packet not seen before."""


class IdealLink:
    """The reliable link that the simulator plays: it loses nothing, may reorder, and always has room."""

    def __init__(self, peer: int) -> None:
        self._to = (peer,)

    @property
    def failed(self) -> str:
        return ""

    def room(self, queue_class: QueueClass) -> int:
        return ROOM_MAX

    def send(self, queue_class: QueueClass, data: bytes) -> list[Effect]:
        return [LinkSend(self._to, data)]

    def arrived(self, frame: Data, datagram: bytes) -> tuple[Chunk, ...]:
        return frame.chunks
