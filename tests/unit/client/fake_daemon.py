"""A daemon of one client at a time, without order and without others: it lets in, echoes, and shows views of one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from covey.client.protocol import ClientProtocol
from covey.ids import Ballot, Life
from covey.protocol.asked import Sending
from covey.protocol.values import Bundle, Kind, Payload, Service
from covey.protocol.wire.bodies import SELF_DISCARD, record_parts, sender_prefix
from covey.protocol.wire.session import Splitter, arrived_head, encode_word, read_from_client
from covey.protocol.wire.words import (
    VERSION,
    Bye,
    ClientAlive,
    Ended,
    FromClient,
    GroupLeft,
    GroupView,
    Hello,
    JoinGroup,
    LeaveGroup,
    Rejected,
    Welcome,
    Word,
)

BALLOT = Ballot(7, 0, 3)
BUNDLE_BYTES = 600
MESSAGE_BYTES_MAX = 100_000


class FakeSession:
    """One client's stream, seen from its daemon."""

    def __init__(self, daemon: str = "a", number: int = 3, refusal: str = "", interval_ms: int = 0) -> None:
        self.words: list[FromClient] = []
        self.process = ""
        self.is_over = False
        self._refusal = refusal
        self._interval_ms = interval_ms
        self._identity = f"{daemon}:7.{number}"
        self._splitter = Splitter(MESSAGE_BYTES_MAX + 16_384)
        self._stamp = 1_000

    def feed(self, data: bytes) -> bytes:
        words = [read_from_client(kind, body) for kind, body in self._splitter.feed(data)]
        self.words += words
        return b"".join(self.answer(word) for word in words if not self.is_over)

    def answer(self, word: FromClient) -> bytes:
        self._stamp += 1
        if isinstance(word, Sending):
            return b"" if word.flags & SELF_DISCARD else self._echo(word)
        return b"".join(map(encode_word, self._answers(word)))

    def _answers(self, word: Word) -> list[Word]:
        if isinstance(word, Hello):
            return self._greet(word)
        if isinstance(word, JoinGroup):
            return [GroupView(word.group, BALLOT, self._stamp, 0, (self.process,), (self.process,), "join", "")]
        if isinstance(word, LeaveGroup):
            return [GroupLeft(word.group, BALLOT, self._stamp, 0)]
        if isinstance(word, ClientAlive):
            return []
        assert isinstance(word, Bye)
        self.is_over = True
        return [Ended("goodbye", 0, 0)]

    def _greet(self, word: Hello) -> list[Word]:
        if self._refusal:
            self.is_over = True
            return [Rejected(self._refusal)]
        self.process = f"{word.name}@{self._identity}"
        return [welcome(self.process, interval_ms=self._interval_ms)]

    def _echo(self, word: Sending) -> bytes:
        stamp = 0 if word.service is Service.UNRELIABLE else self._stamp
        bundle = _bundle(word.service, word.flags, word.messages, word.session_seq, stamp, 0, word.groups)
        return arrived_head(bundle, BALLOT, len(word.body)) + bytes(word.body)


def welcome(
    process: str = "alice@a:7.3", bundle_bytes: int = BUNDLE_BYTES, interval_ms: int = 0, alive_ms: int = 0
) -> Welcome:
    return Welcome(VERSION, process, bundle_bytes, MESSAGE_BYTES_MAX, interval_ms, alive_ms)


def welcomed(bundle_bytes: int = BUNDLE_BYTES) -> ClientProtocol:
    """A client that has said HELLO and was let in."""
    client = ClientProtocol("alice")
    client.take(1)
    assert client.feed(encode_word(welcome(bundle_bytes=bundle_bytes))) == []
    return client


def words_of(parts: list[Payload]) -> list[FromClient]:
    """What a client wrote, as its daemon reads it."""
    return [read_from_client(kind, body) for kind, body in Splitter(1 << 30).feed(b"".join(parts))]


def body_of(process: str, *records: tuple[int, bytes]) -> bytes:
    parts = [part for kind, payload in records for part in record_parts(kind, payload)]
    return b"".join([sender_prefix(process), *parts])


def data_frame(body: bytes, messages: int, service: Service = Service.AGREED, stamp: int = 1_200) -> bytes:
    return arrived_head(_bundle(service, 0, messages, 10, stamp, 1, ("room",)), BALLOT, len(body)) + body


def _bundle(
    service: Service, flags: int, messages: int, seq: int, stamp: int, site: int, groups: tuple[str, ...]
) -> Bundle:
    return Bundle(
        site, 1, stamp, Life(0, 7), 100, seq, messages, 1, service, 0, 1, groups, b"", Kind.MESSAGES, flags
    )  # fmt: skip


# --- behind a real socket

Serve = Callable[[socket.socket], None]


@contextmanager
def listening(path: Path, *connections: Serve) -> Iterator[str]:
    """An address at which each connection, in turn, is served by one of the given functions, in a thread."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=_serve, args=(listener, connections))
        thread.start()
        try:
            yield f"unix:{path}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(listener: socket.socket, connections: tuple[Serve, ...]) -> None:
    for serve in connections:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            serve(connection)


def echoing(session: FakeSession) -> Serve:
    """Until the client has said goodbye or is gone."""

    def serve(connection: socket.socket) -> None:
        while not session.is_over and (data := connection.recv(65_536)):
            connection.sendall(session.feed(data))

    return serve


def greeting_then(session: FakeSession, act: Serve) -> Serve:
    """Lets the client in, and does something else."""

    def serve(connection: socket.socket) -> None:
        while not session.process:
            connection.sendall(session.feed(connection.recv(65_536)))
        act(connection)

    return serve
