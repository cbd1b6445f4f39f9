"""A connected socket and the protocol that speaks over it. Nothing here waits but `hear`, and that not for long.

In:        a socket; that it can be read, or written; that it is given up.
Out:       events; whether all that was to be written is written.
Not here:  waiting for longer (session.py for asyncio, blocking.py without it), connecting (dial.py, blocking.py).

The socket has a timeout, which makes its descriptor one that does not block: what asks the descriptor never waits, and
what asks the socket waits for HEAR_S at most, however many signals come meanwhile.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Final

from covey.memory import keep_freed_memory
from covey.protocol.values import Payload

from .events import Disconnected, Event
from .protocol import ClientProtocol

READ_BYTES: Final = 256 * 1024
WRITE_BYTES: Final = 256 * 1024
HEAR_S: Final = 0.5
"""Whoever only listens looks so often whether there is something else to do."""
BUSY_PAUSE_S: Final = 0.01
"""Before trying again to connect to a daemon that has too many connections to take."""
PARTS_MAX: Final = 512
"""The system takes at most 1024 in one call."""
KEEPALIVE: Final = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""Seconds without a word until the system asks, seconds between two questions, questions without an answer."""


class Stream:
    def __init__(self, connected: socket.socket, protocol: ClientProtocol) -> None:
        connected.settimeout(HEAR_S)
        keep_freed_memory()
        self.protocol = protocol
        self.at_end = False
        """Nothing more will come."""
        self.is_broken = False
        """Nothing more can be written; what the daemon said last may still be read."""
        self.emptied = 0
        """How often all that was asked for was written."""
        self._socket = connected
        self._outbox = protocol.outbox
        self._is_closed = False
        self._waiting = 0
        """Threads that wait for the socket, which must not be another one when they look."""
        self.unsent: list[Payload] = []
        """What the socket did not take. Where each request is followed by a `write`, nothing else waits either."""
        self._unsent_bytes = 0
        self._early: list[bytes] = []
        """Read by `hear`, and not shown to the protocol yet: a handler of signals may come in between."""

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def waiting_bytes(self) -> int:
        return self._outbox.size + self._unsent_bytes

    @property
    def is_over(self) -> bool:
        return self.at_end or self.is_broken

    @property
    def has_said_all(self) -> bool:
        """We said goodbye, and it was written with all that was asked before."""
        return self.protocol.has_left and not self.unsent

    @property
    def has_to_write(self) -> bool:
        """Something was asked for and is not written, as far as the protocol may say it now."""
        return bool(self.unsent or self._outbox.size) or self.protocol.has_more_to_say

    @property
    def has_early(self) -> bool:
        return bool(self._early)

    def read(self) -> tuple[list[Event], int]:
        """What happened, and how many bytes said so; both are empty if nothing has come yet, or nothing will."""
        if self.at_end:
            return [], 0
        if self._early:
            data = self._early.pop(0)
            return self.heard(data), len(data)
        try:
            data = os.read(self._socket.fileno(), READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return [], 0
        except OSError as error:
            return self.heard(error), 0
        return self.heard(data), len(data)

    def hear(self) -> OSError | None:
        """Keep what comes within HEAR_S for `read`; why nothing more will come. The thread has begun to wait."""
        try:
            if not self._early:  # In one call: no handler of signals runs between the read and where it is kept.
                self._early.extend(map(self._socket.recv, (READ_BYTES,)))
        except OSError as error:
            is_over = error.errno is not None  # It has none when our own time is up.
            return error if is_over else None
        return None

    def heard(self, data: bytes | OSError) -> list[Event]:
        """What happened, from what a read gave."""
        if self.at_end:
            return []
        if isinstance(data, OSError):
            return self._ended(f"the connection to the daemon broke ({data.strerror})")
        if not data:
            return self._ended("the daemon closed the connection")
        events = self.protocol.feed(data)
        if events and isinstance(events[-1], Disconnected):
            self.at_end = True
        return events

    def write(self) -> bool:
        """As much as the socket takes; False if it takes no more for now."""
        while not self.is_broken:
            if not self.unsent:
                self.unsent = self.protocol.take(WRITE_BYTES)
                self._unsent_bytes = sum(map(len, self.unsent))
            if not self.unsent:
                break
            try:
                sent = os.writev(self._socket.fileno(), self.unsent[:PARTS_MAX])
            except (BlockingIOError, InterruptedError):
                return False
            except OSError:
                self.is_broken = True  # Reading tells the reason: the daemon may have said it before it closed.
            else:
                self.unsent = unsent_after(self.unsent, sent) if sent < self._unsent_bytes else []
                self._unsent_bytes -= sent
                if not self.unsent and not self._outbox.size and not self.protocol.owes_life:
                    break  # Not `waiting_bytes`: this is done for every message.
        else:
            return True  # Nothing is written any more: there is no room to wait for.
        self.emptied += 1
        return True

    def give_up(self, reason: str) -> list[Event]:
        """The daemon is not worth waiting for. Nothing more is read or written."""
        return [] if self.at_end else self._ended(reason)

    # A system reuses the number of a socket that is closed: while a thread waits for it, it is only shut.

    def begin_wait(self) -> None:
        self._waiting += 1

    def end_wait(self) -> None:
        self._waiting -= 1
        if self._is_closed and not self._waiting:
            self._socket.close()

    def close(self) -> None:
        self.at_end = self._is_closed = True
        if not self._waiting:
            self._socket.close()
            return
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _ended(self, reason: str) -> list[Event]:
        self.at_end = True
        return self.protocol.lost(reason)


def prepare_tcp(connected: socket.socket) -> None:
    """Small messages go at once, and a host that has vanished is noticed after half a minute of silence.

    There is no TCP_USER_TIMEOUT: it would also end a connection whose daemon answers, and takes nothing for a while.
    """
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE.items():
        with suppress(AttributeError, OSError):  # Systems differ in what they let us choose.
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def unsent_after(parts: list[Payload], sent: int) -> list[Payload]:
    """What is left when the first `sent` bytes are gone.

    >>> unsent_after([b"ab", b"cd", b"ef"], 3) == [b"d", b"ef"]
    True
    """
    for at, part in enumerate(parts):
        if sent < len(part):
            return [memoryview(part)[sent:], *parts[at + 1 :]]
        sent -= len(part)
    return []
