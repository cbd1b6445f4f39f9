"""The streams of a daemon's clients, in the daemon's own loop: accept, read, write as there is room, close.

In:        listening sockets; the daemon's effects about clients; what the loop says is ready.
Out:       inputs for the daemon; bytes pulled from it and written.
Not here:  what the bytes mean (protocol/clients.py).

Invariants:
  T1  a stream whose client does not read holds at most one pull of bytes here, the rest waits in the daemon
  T2  a stream that the daemon gave up is closed within LINGER_S of having no room, read or not; LINGERING_MAX of them
      wait at most
  T3  one turn of the loop reads and writes a bounded portion, whatever clients do; who was not reached stands in a
      queue, and comes first in the next turn
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from covey.protocol.boundary import OrderingEngine
from covey.protocol.counters import Family
from covey.protocol.daemon import Daemon
from covey.protocol.effects import ClientClosed, ClientReading, ClientReady, Effect
from covey.protocol.inputs import ClientBytes, ClientConnected, ClientGone, Identity, Input
from covey.protocol.values import Payload

READ_BYTES: Final = 256 * 1024
READS_PER_TURN_MAX: Final = 2
"""Of one client that has much to say: the others, and the token, wait no longer than that."""
READ_STREAMS_MAX: Final = 256
READ_TURN_BYTES_MAX: Final = 2 * 1024 * 1024
PULL_BYTES: Final = 256 * 1024
"""Of one client, at a time: then it is the next one's turn to be written to."""
LITTLE_BYTES: Final = 4_096
"""Those for whom no more waits are written first, before those for whom much does."""
WRITE_STREAMS_MAX: Final = 256
WRITE_TURN_BYTES_MAX: Final = 4 * 1024 * 1024
BUFFER_BYTES: Final = 512 * 1024
ACCEPTED_PER_TURN_MAX: Final = 64
DEAF_S: Final = 1.0
"""How long newcomers are not looked at when the system has no room for them."""
LINGER_S: Final = 60.0
"""So long a program that does not run can still learn, when it runs again, why its session ended."""
LINGERING_MAX: Final = 64
KEEPALIVE: Final = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
"""A program whose host has vanished is noticed after half a minute, though nobody says anything."""
IOV_MAX: Final = os.sysconf("SC_IOV_MAX") if "SC_IOV_MAX" in os.sysconf_names else 1_024

_CREDENTIALS: Final = struct.Struct("3i")
"""Process, user and group of a peer, as the kernel gives them."""


class ProgramStream:
    """One client's socket."""

    def __init__(self, connection: int, sock: socket.socket) -> None:
        self.connection = connection
        self.sock = sock
        self.unsent: list[Payload] = []
        self.reading = True
        self.writing = False
        """It had no room: the loop says when it has."""
        self.hung_up = False
        """Its end is to be read, whether the daemon wants to read or not."""
        self.in_read_queue = self.in_write_queue = False
        self.close_at: float | None = None

    def is_open(self) -> bool:
        return self.sock.fileno() >= 0

    def mask(self) -> int:
        return (select.EPOLLIN if self.reading else 0) | (select.EPOLLOUT if self.writing else 0)


class ClientStreams:
    def __init__(self, epoll: select.epoll, core: Daemon[OrderingEngine], give: Callable[[Input], None]) -> None:
        self._epoll = epoll
        self._core = core
        self._give = give
        self._listeners: dict[int, socket.socket] = {}
        self._paths: list[Path] = []
        self._by_descriptor: dict[int, ProgramStream] = {}
        self._by_connection: dict[int, ProgramStream] = {}
        self._closing: dict[int, ProgramStream] = {}
        """Those given up who had no room for their last words."""
        self.to_read: deque[ProgramStream] = deque()
        self._to_write: deque[ProgramStream] = deque()
        self._little_to_write: deque[ProgramStream] = deque()
        self._numbers = 0
        self._deaf: dict[int, float] = {}
        """Listeners that are not looked at, and until when."""

    # --- listening

    def listen_unix(self, path: Path) -> None:
        """Only programs of the same user get in: the directory is theirs."""
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        listener.bind(str(path))
        self._paths.append(path)
        self._listen(listener)

    def listen_tcp(self, host: str, port: int) -> None:
        listener = socket.create_server((host, port))
        listener.setblocking(False)
        self._listen(listener)

    def _listen(self, listener: socket.socket) -> None:
        listener.listen(1_024)
        self._listeners[listener.fileno()] = listener
        self._epoll.register(listener.fileno(), select.EPOLLIN)

    def close(self) -> None:
        for stream in list(self._by_connection.values()):
            stream.sock.close()
        for listener in self._listeners.values():
            listener.close()
        for path in self._paths:
            path.unlink(missing_ok=True)

    # --- in the loop

    def on_event(self, descriptor: int, mask: int) -> None:
        """Something can be done with this stream: it is, when its turn comes."""
        if descriptor in self._listeners:
            self._accept(self._listeners[descriptor])
            return
        stream = self._by_descriptor.get(descriptor)
        if stream is None:
            return
        if mask & select.EPOLLOUT:
            self._queue_to_write(stream)
        if mask & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
            stream.hung_up |= bool(mask & (select.EPOLLHUP | select.EPOLLERR))
            if not stream.in_read_queue:
                stream.in_read_queue = True
                self.to_read.append(stream)

    def read(self) -> None:
        """One turn's portion of what clients have said."""
        queue, room = self.to_read, READ_TURN_BYTES_MAX
        for _ in range(min(len(queue), READ_STREAMS_MAX)):
            if room <= 0:
                return
            stream = queue.popleft()
            stream.in_read_queue = False
            if stream.is_open() and (stream.reading or stream.hung_up):
                room -= self._read(stream)

    def perform(self, effects: list[Effect]) -> None:
        """Writing is left for `write`: in this turn, or in a later one if many wait."""
        for effect in effects:
            if isinstance(effect, ClientReady):
                stream = self._by_connection.get(effect.connection)
                if stream is not None and not stream.writing:
                    self._queue_to_write(stream, effect.waiting)
            elif isinstance(effect, ClientReading):
                self._set_reading(effect.connection, effect.read)
            elif isinstance(effect, ClientClosed):
                self._close_later(effect.connection)

    def write(self) -> None:
        """One turn's portion of what waits for clients, each in its turn."""
        streams, room = WRITE_STREAMS_MAX, WRITE_TURN_BYTES_MAX
        while room > 0 and streams > 0 and (queue := self._next_to_write(streams)):
            stream = queue.popleft()
            stream.in_write_queue = False
            streams -= 1
            if stream.is_open():
                room -= self._write(stream)

    def _next_to_write(self, streams_left: int) -> deque[ProgramStream]:
        """Those for whom little waits come first, but have no more than half of a turn where others wait too."""
        little_first = streams_left > WRITE_STREAMS_MAX // 2 or not self._to_write
        return self._little_to_write if self._little_to_write and little_first else self._to_write

    def write_all(self) -> None:
        """There is no next turn: whoever has room gets what waits."""
        while self._to_write or self._little_to_write:
            self.write()

    def has_to_write(self) -> bool:
        return bool(self._to_write or self._little_to_write)

    def unwritten(self) -> int:
        """How many streams wait for their turn to be written to."""
        return len(self._to_write) + len(self._little_to_write)

    def is_behind(self) -> bool:
        """Whether something is left for the next turn, which must not wait then."""
        return bool(self.to_read or self._to_write or self._little_to_write)

    def next_us(self) -> int | None:
        """When somebody who was given up is to be closed, or newcomers are looked at again."""
        moments = [stream.close_at for stream in self._closing.values() if stream.close_at is not None]
        moments += self._deaf.values()
        return int(min(moments) * 1_000_000) if moments else None

    def close_overdue(self) -> None:
        if not self._closing and not self._deaf:
            return
        now = time.monotonic()
        for descriptor in [descriptor for descriptor, until in self._deaf.items() if until <= now]:
            del self._deaf[descriptor]
            self._epoll.register(descriptor, select.EPOLLIN)
        for stream in list(self._closing.values()):
            if stream.close_at is not None and stream.close_at <= now:
                self._drop(stream)

    # --- one stream

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(ACCEPTED_PER_TURN_MAX):
            try:
                sock, _ = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                # Out of descriptors, most likely. Who wants in waits, and we do not look again and again.
                name = errno.errorcode.get(error.errno or 0, "error")
                self._core.kit.count.add(Family.CONNECTION_NOT_ACCEPTED.of(name))
                self._epoll.unregister(listener.fileno())
                self._deaf[listener.fileno()] = time.monotonic() + DEAF_S
                return
            self._welcome(sock)

    def _welcome(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in KEEPALIVE:
                sock.setsockopt(socket.IPPROTO_TCP, option, value)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
        self._numbers += 1
        stream = ProgramStream(self._numbers, sock)
        self._by_descriptor[sock.fileno()] = stream
        self._by_connection[stream.connection] = stream
        self._epoll.register(sock.fileno(), stream.mask())
        self._give(ClientConnected(stream.connection, _identity(sock)))

    def _read(self, stream: ProgramStream) -> int:
        """How many bytes came."""
        size = 0
        for _ in range(READS_PER_TURN_MAX):
            try:
                data = stream.sock.recv(READ_BYTES)
            except BlockingIOError:
                return size
            except OSError:
                data = b""
            if not data:
                self._drop(stream)
                return size
            size += len(data)
            self._give(ClientBytes(stream.connection, data))
            if len(data) < READ_BYTES // 2:
                return size  # That was all, most likely.
        return size

    def _set_reading(self, connection: int, read: bool) -> None:
        stream = self._by_connection.get(connection)
        if stream is not None and stream.reading != read and stream.close_at is None:
            stream.reading = read
            self._epoll.modify(stream.sock.fileno(), stream.mask())

    def _queue_to_write(self, stream: ProgramStream, waiting: int = LITTLE_BYTES + 1) -> None:
        if not stream.in_write_queue:
            stream.in_write_queue = True
            (self._to_write if waiting > LITTLE_BYTES else self._little_to_write).append(stream)

    def _write(self, stream: ProgramStream) -> int:
        """As much as the socket takes, but not much more than a pull; how many bytes. The rest is for the next time."""
        size = 0
        try:
            while stream.unsent or self._pull(stream):
                sent = stream.sock.sendmsg(stream.unsent[:IOV_MAX])
                stream.unsent = _after(stream.unsent, sent)
                size += sent
                if size >= PULL_BYTES:
                    self._queue_to_write(stream)
                    return size
        except BlockingIOError:
            self._set_writing(stream, True)
            if stream.close_at is not None:
                self._linger(stream)
        except OSError:
            self._drop(stream)
        else:
            self._set_writing(stream, False)
            if stream.close_at is not None:
                self._drop(stream)
        return size

    def _pull(self, stream: ProgramStream) -> bool:
        stream.unsent = self._core.pull(stream.connection, PULL_BYTES)
        return bool(stream.unsent)

    def _set_writing(self, stream: ProgramStream, writing: bool) -> None:
        if stream.writing != writing:
            stream.writing = writing
            self._epoll.modify(stream.sock.fileno(), stream.mask())

    def _close_later(self, connection: int) -> None:
        stream = self._by_connection.get(connection)
        if stream is None:
            return
        self._stop_reading(stream)
        stream.close_at = time.monotonic() + LINGER_S
        if stream.writing:
            self._linger(stream)
        else:
            self._queue_to_write(stream)

    def _linger(self, stream: ProgramStream) -> None:
        self._closing[stream.connection] = stream
        if len(self._closing) > LINGERING_MAX:
            self._drop(next(iter(self._closing.values())))

    def _stop_reading(self, stream: ProgramStream) -> None:
        """What it says from now on is not taken: its writes fail, or wait, so that it does not take it for sent."""
        self._set_reading(stream.connection, False)
        with suppress(OSError):
            stream.sock.shutdown(socket.SHUT_RD)

    def _drop(self, stream: ProgramStream) -> None:
        if self._by_connection.pop(stream.connection, None) is None:
            return
        self._closing.pop(stream.connection, None)
        del self._by_descriptor[stream.sock.fileno()]
        self._epoll.unregister(stream.sock.fileno())
        stream.sock.close()
        self._give(ClientGone(stream.connection))


def _identity(sock: socket.socket) -> Identity | None:
    """Who opened a stream, where the kernel tells: over a socket of this host."""
    if sock.family != socket.AF_UNIX or not hasattr(socket, "SO_PEERCRED"):
        return None
    return Identity(*_CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)))


def _after(parts: list[Payload], sent: int) -> list[Payload]:
    """What is left of the parts after so many bytes.

    >>> [bytes(part) for part in _after([b"abc", b"def"], 4)]
    [b'ef']
    """
    for index, part in enumerate(parts):
        if sent < len(part):
            return [memoryview(part)[sent:], *parts[index + 1 :]] if sent else parts[index:]
        sent -= len(part)
    return []
