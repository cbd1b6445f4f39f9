"""A connected socket and the protocol that speaks over it. Never waits.

In:        a socket that does not block; that it can be read, or written.
Out:       events; whether all that was to be written is written.
Not here:  waiting (session.py for asyncio, blocking.py without it), connecting (dial.py, blocking.py).
"""

from __future__ import annotations

import socket
from typing import Final

from covey.memory import keep_freed_memory
from covey.protocol.values import Payload

from .events import Disconnected, Event
from .protocol import ClientProtocol

READ_BYTES: Final = 256 * 1024
WRITE_BYTES: Final = 256 * 1024
BUSY_PAUSE_S: Final = 0.01
"""Before trying again to connect to a daemon that has too many connections to take."""
PARTS_MAX: Final = 512
"""The system takes at most 1024 in one call."""


class Stream:
    def __init__(self, connected: socket.socket, protocol: ClientProtocol) -> None:
        connected.setblocking(False)
        keep_freed_memory()
        self.protocol = protocol
        self.at_end = False
        """Nothing more will come."""
        self.is_broken = False
        """Nothing more can be written; what the daemon said last may still be read."""
        self._socket = connected
        self._unsent: list[Payload] = []
        self._unsent_bytes = 0

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def waiting_bytes(self) -> int:
        return self.protocol.waiting_bytes + self._unsent_bytes

    @property
    def is_over(self) -> bool:
        return self.at_end or self.is_broken

    @property
    def has_said_all(self) -> bool:
        """We said goodbye, and it was written with all that was asked before."""
        return self.protocol.has_left and not self._unsent

    def read(self) -> tuple[list[Event], int]:
        """What happened, and how many bytes said so; both are empty if nothing has come yet."""
        try:
            data = self._socket.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return [], 0
        except OSError as error:
            return self._ended(f"the connection to the daemon broke ({error.strerror})"), 0
        if not data:
            return self._ended("the daemon closed the connection"), 0
        events = self.protocol.feed(data)
        if events and isinstance(events[-1], Disconnected):
            self.at_end = True
        return events, len(data)

    def write(self) -> bool:
        """As much as the socket takes; False if it takes no more for now."""
        while not self.is_broken:
            if not self._unsent:
                self._unsent = self.protocol.take(WRITE_BYTES)
                self._unsent_bytes = sum(map(len, self._unsent))
            if not self._unsent:
                break
            try:
                sent = self._socket.sendmsg(self._unsent[:PARTS_MAX])
            except (BlockingIOError, InterruptedError):
                return False
            except OSError:
                self.is_broken = True  # Reading tells the reason: the daemon may have said it before it closed.
            else:
                self._unsent = unsent_after(self._unsent, sent)
                self._unsent_bytes -= sent
        return True

    def close(self) -> None:
        self.at_end = True
        self._socket.close()

    def _ended(self, reason: str) -> list[Event]:
        self.at_end = True
        return self.protocol.lost(reason)


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
