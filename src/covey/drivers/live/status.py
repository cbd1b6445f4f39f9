"""How a running daemon is asked how it is: a Unix socket that answers a question, one line, with one JSON object.

In:        connections of the same user; a `Question` in JSON, or an empty line: how are you?
Out:       the answer, then the end of the stream.
Not here:  what is in an answer (the engine), how it is shown (cli/).

Invariant: A1 whoever asks and does not read, or connects and does not ask, holds up nobody: at most ASKERS_MAX are
kept, and the oldest makes room for the next.
"""

from __future__ import annotations

import os
import select
import socket
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from covey.client.address import socket_directory
from covey.config import Cluster
from covey.errors import ConfigError, CoveyError

ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024
QUESTION_BYTES_MAX: Final = 4_096
ASKERS_MAX: Final = 16
TIMEOUT_S: Final = 2.0


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a daemon can be asked."""

    ask: Literal["status", "groups"] = "status"
    group: str = ""
    """Only this group, or with a `*` at its end those that begin like this; empty: all."""


class NotRunningError(CoveyError):
    """Nobody answers for this daemon."""


def socket_path(cluster: Cluster, name: str) -> Path:
    """Where a daemon of this cluster answers: short, private to the user, the same for everyone who has the file."""
    return socket_directory() / f"{cluster.digest():016x}-{name}"


def own_directory() -> None:
    """Make the directory of this user's sockets. ConfigError: it cannot be made, or others can get at it."""
    directory = socket_directory()
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        found = directory.lstat()
    except OSError as error:
        raise ConfigError(
            f"{directory} cannot be made ({error.strerror}): set TMPDIR to a directory of yours"
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise ConfigError(
            f"{directory} is for this user's sockets, and others can get at it: remove it, or set TMPDIR to a "
            "directory of yours"
        )


class _Asker:
    """One connection: first its question is read, then its answer written."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.question = b""
        self.unsent: memoryview | None = None


class StatusSocket:
    """The daemon's end. Never waits; `fileno` is readable whenever there is something to do."""

    def __init__(self, path: Path, answer_to: Callable[[Question], dict[str, Any]]) -> None:
        self._path = path
        self._answer_to = answer_to
        self._askers: dict[int, _Asker] = {}
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._socket.bind(str(path))
        self._socket.listen(16)
        self._epoll = select.epoll()
        self._epoll.register(self._socket.fileno(), select.EPOLLIN)

    def fileno(self) -> int:
        return self._epoll.fileno()

    def answer(self) -> None:
        for descriptor, _ in self._epoll.poll(0):
            if descriptor == self._socket.fileno():
                self._accept()
            elif (asker := self._askers.get(descriptor)) is not None:
                self._go_on(asker)

    def close(self) -> None:
        for asker in list(self._askers.values()):
            self._drop(asker)
        self._epoll.close()
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except OSError:
            return
        if len(self._askers) >= ASKERS_MAX:
            self._drop(next(iter(self._askers.values())))
        asker = self._askers[connection.fileno()] = _Asker(connection)
        self._epoll.register(connection.fileno(), select.EPOLLIN)
        self._go_on(asker)

    def _go_on(self, asker: _Asker) -> None:
        try:
            if asker.unsent is None:
                self._read(asker)
            if asker.unsent is not None:
                self._write(asker)
        except BlockingIOError:
            return
        except OSError:
            self._drop(asker)

    def _read(self, asker: _Asker) -> None:
        data = asker.connection.recv(QUESTION_BYTES_MAX)
        asker.question += data
        if data and b"\n" not in asker.question and len(asker.question) <= QUESTION_BYTES_MAX:
            return
        asker.unsent = memoryview(msgspec.json.encode(self._answer(asker.question.partition(b"\n")[0].strip())))
        self._epoll.modify(asker.connection.fileno(), select.EPOLLOUT)

    def _answer(self, question: bytes) -> dict[str, Any]:
        try:
            return self._answer_to(msgspec.json.decode(question or b"{}", type=Question))
        except msgspec.DecodeError as error:
            return {"error": f"this is no question ({error}): ask {{}} for the status"}

    def _write(self, asker: _Asker) -> None:
        assert asker.unsent is not None
        while asker.unsent:
            asker.unsent = asker.unsent[asker.connection.send(asker.unsent) :]
        self._drop(asker)

    def _drop(self, asker: _Asker) -> None:
        del self._askers[asker.connection.fileno()]
        with suppress(OSError):
            self._epoll.unregister(asker.connection.fileno())
        asker.connection.close()


def ask(path: Path, question: Question | None = None, timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    """What a running daemon answers; NotRunningError if nobody does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        try:
            connection.connect(str(path))
            connection.sendall(msgspec.json.encode(question or Question()) + b"\n")
            return _decode(_read_all(connection))
        except (OSError, msgspec.DecodeError) as error:
            raise NotRunningError(str(error)) from None


def _read_all(connection: socket.socket) -> bytes:
    parts: list[bytes] = []
    while sum(map(len, parts)) < ANSWER_BYTES_MAX and (part := connection.recv(65_536)):
        parts.append(part)
    return b"".join(parts)


def _decode(data: bytes) -> dict[str, Any]:
    return msgspec.json.decode(data, type=dict[str, Any])
