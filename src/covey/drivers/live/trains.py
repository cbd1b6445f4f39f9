"""Trains: datagrams of one size for the same receivers, which the system takes and gives in one call each.

In:        datagrams to send, in their order; what one read of the socket gave.
Out:       trains, in the same order; single datagrams.
Not here:  the socket (endpoint.py).

Linux cuts one large write into datagrams of a given size (UDP_SEGMENT), and gives back in one read datagrams that came
one behind the other (UDP_GRO). With datagrams as large as a network frame, that saves most of the cost of each.

Invariants:
  T1  trains keep the order of what is sent: no datagram overtakes another for the same receiver
  T2  all datagrams of a train have one size, except the last, which may be shorter; none is empty
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from typing import Final

from covey.config import DATAGRAM_BYTES_MAX
from covey.protocol.effects import Send

DATAGRAMS_MAX: Final = 64
"""What every kernel that knows UDP_SEGMENT takes at a time."""

# Linux names that the socket module lacks.
_UDP_SEGMENT: Final = 103
UDP_GRO: Final = 104
_SIZE_TO_SEND: Final = struct.Struct("=H")
_SIZE_RECEIVED: Final = struct.Struct("=i")

Ancillary = tuple[int, int, bytes]


Train = tuple[tuple[int, ...], list[bytes]]
"""Ranks, and datagrams for each of them. One alone is a train too."""


def trains(sends: Iterable[Send]) -> Iterator[Train]:
    """Neighbours share a train as long as T2 and the bounds of the system allow."""
    to: tuple[int, ...] = ()
    datagrams: list[bytes] = []
    size = room = 0
    for send in sends:
        length = len(send.data)
        if 0 < length <= size and length <= room and send.to == to and len(datagrams) < DATAGRAMS_MAX:
            datagrams.append(send.data)
            if length < size:
                size = 0  # A shorter one is the last.
        else:
            if datagrams:
                yield to, datagrams
            to, datagrams, size, room = send.to, [send.data], length, DATAGRAM_BYTES_MAX
        room -= length
    if datagrams:
        yield to, datagrams


def to_be_cut(size: int) -> list[Ancillary]:
    """For sendmsg: have the bytes leave as datagrams of this size."""
    return [(socket.IPPROTO_UDP, _UDP_SEGMENT, _SIZE_TO_SEND.pack(size))]


def cut(data: bytes, ancillary: list[Ancillary]) -> list[bytes]:
    """What one recvmsg gave, as datagrams. Each is a copy of its own: to keep one does not keep the others."""
    for level, kind, value in ancillary:
        if (level, kind) == (socket.IPPROTO_UDP, UDP_GRO) and len(value) >= _SIZE_RECEIVED.size:
            (size,) = _SIZE_RECEIVED.unpack_from(value)
            if 0 < size < len(data):
                return [data[at : at + size] for at in range(0, len(data), size)]
    return [data]
