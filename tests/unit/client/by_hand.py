"""Sessions over a pair of sockets: the test is the daemon, byte by byte, and time passes when it says so."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from covey.client import blocking, session
from covey.client.dial import Dialled
from covey.client.plan import Bounds, ConnectPlan, make_plan
from covey.client.stream import Stream
from covey.protocol.wire.session import Splitter, encode_word, read_from_client
from covey.protocol.wire.words import FromClient, Word
from tests.unit.client.fake_daemon import welcome

INTERVAL_MS = 1_000
TIMEOUT_S = 5.0


class Daemon:
    """The other end."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._splitter = Splitter(1 << 24)

    def say(self, *words: Word) -> None:
        self.socket.sendall(b"".join(map(encode_word, words)))

    def hear(self) -> list[FromClient]:
        """At least one word, and all that came with it."""
        words: list[FromClient] = []
        while not words and (data := self.socket.recv(1 << 20)):
            words += [read_from_client(kind, body) for kind, body in self._splitter.feed(data)]
        return words


@contextmanager
def pair(small: bool = False) -> Iterator[tuple[socket.socket, Daemon]]:
    ours, theirs = socket.socketpair()
    theirs.settimeout(30)
    with ours, theirs:
        for one in (ours, theirs):
            if small:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        yield ours, Daemon(theirs)


def _opened(ours: socket.socket, interval_ms: int, alive_ms: int) -> tuple[ConnectPlan, Stream]:
    bounds = Bounds(TIMEOUT_S, alive_ms / 1_000 or None)
    plan = make_plan("alice", None, False, 1, "disconnect", 1.0, bounds, None)
    protocol = plan.protocol()
    protocol.take(1)
    protocol.feed(encode_word(welcome(interval_ms=interval_ms, alive_ms=alive_ms)))
    return plan, Stream(ours, protocol)


def blocking_session(
    ours: socket.socket, interval_ms: int = INTERVAL_MS, alive_ms: int = 0, alive_thread: bool = False
) -> blocking.Session:
    plan, stream = _opened(ours, interval_ms, alive_ms)
    return blocking.Session(plan, (stream, [], 0), alive_thread)


def asyncio_session(ours: socket.socket, interval_ms: int = INTERVAL_MS, alive_ms: int = 0) -> session.Session:
    plan, stream = _opened(ours, interval_ms, alive_ms)
    return session.Session(plan, Dialled(stream, [], 0))


def age(one: blocking.Session | session.Session, seconds: float) -> None:
    """So much time passes without a word."""
    one._watch.heard_at -= seconds
