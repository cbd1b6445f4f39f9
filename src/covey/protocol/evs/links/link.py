"""What joins two sites: a link that carries packets to one daemon, in any order, or fails with a reason.

In:        packets to send, by queue class; packets that arrived; the time.
Out:       effects; pieces of bundles that are new; how much more may be written; why it failed; when to look at it.
Not here:  all links of a daemon together (links.py), what a packet means (operation.py), the token ring inside a site
           (ring.py).
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
    def peer(self) -> int:
        """The rank of the daemon at its other end."""

    @property
    def failed(self) -> str:
        """Why it carries nothing any more; empty while it works. A link that fails is due at once."""

    @property
    def due_us(self) -> int | None:
        """When it wants to be looked at, if ever."""

    def room(self, queue_class: QueueClass) -> int:
        """Bytes that may be written now."""

    def send(self, queue_class: QueueClass, packet: bytes, now_us: int) -> list[Effect]: ...

    def arrived(self, frame: Data, datagram: bytes) -> tuple[Chunk, ...] | Dropped:
        """The pieces of a packet not seen before."""

    def on_deadline(self, now_us: int) -> list[Effect]: ...


class IdealLink:
    """The reliable link that the simulator plays: it loses nothing, may reorder, and always has room."""

    failed = ""
    due_us = None

    def __init__(self, peer: int) -> None:
        self.peer = peer
        self._to = (peer,)

    def room(self, queue_class: QueueClass) -> int:
        return ROOM_MAX

    def send(self, queue_class: QueueClass, packet: bytes, now_us: int) -> list[Effect]:
        return [LinkSend(self._to, packet)]

    def arrived(self, frame: Data, datagram: bytes) -> tuple[Chunk, ...]:
        return frame.chunks

    def on_deadline(self, now_us: int) -> list[Effect]:
        return []
