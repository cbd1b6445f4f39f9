"""How a running daemon is asked how it is: a Unix socket that answers a question, one line, with one JSON object.

In:        connections of the same user; a `Question` in JSON, or an empty line: how are you?
Out:       the answer, then the end of the stream.
Not here:  what is in an answer (the daemon), how it is shown (cli/).

Invariants:
  A1  whoever asks and does not read, or connects and does not ask, holds up nobody: at most ASKERS_MAX are kept, and
      the oldest makes room for the next
  A2  a question is answered though the process may open no more files, which is when an operator asks: one descriptor
      is kept in reserve. Without it nobody is listened to until something changes: it is not tried again and again
  A3  a long answer is made a portion a turn, and the loop does not wait until it is done
"""

from __future__ import annotations

import errno
import os
import select
import socket
import stat
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from covey.client.address import socket_directory
from covey.cluster import Cluster
from covey.drivers.live.told import LiveStatus, Misunderstood
from covey.errors import ConfigError, CoveyError
from covey.protocol.counters import Count, Family
from covey.protocol.status import GroupsStatus

ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024
QUESTION_BYTES_MAX: Final = 4_096
ASKERS_MAX: Final = 16
TIMEOUT_S: Final = 2.0


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a daemon can be asked."""

    ask: Literal["status", "groups"] = "status"
    group: str = ""
    """Only this group, or with a `*` at its end those that begin like this; empty: all."""


Answer = LiveStatus | GroupsStatus | Misunderstood
InPortions = Iterator[GroupsStatus | None]
"""None for as long as the answer is not done."""


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
        self.in_the_making: InPortions | None = None
        self.unsent: memoryview | None = None


class StatusSocket:
    """The daemon's end. Never waits; `fileno` is readable whenever there is something to do."""

    def __init__(self, path: Path, answer_to: Callable[[Question], Answer | InPortions]) -> None:
        self._path = path
        self._answer_to = answer_to
        self._askers: dict[int, _Asker] = {}
        self._making: deque[_Asker] = deque()
        """Those whose answers are in the making: each is writable, so the loop comes back at once."""
        self.count = Count()
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._socket.bind(str(path))
        self._socket.listen(16)
        self._epoll = select.epoll()
        self._epoll.register(self._socket.fileno(), select.EPOLLIN)
        self._deaf = False
        self._spare = _spare()

    def fileno(self) -> int:
        return self._epoll.fileno()

    def answer(self) -> None:
        for descriptor, _ in self._epoll.poll(0):
            if descriptor == self._socket.fileno():
                self._accept()
            elif (asker := self._askers.get(descriptor)) is not None:
                self._go_on(asker)
        if self._making:
            self._make(self._making.popleft())

    def close(self) -> None:
        for asker in list(self._askers.values()):
            self._drop(asker)
        self._give_spare()
        self._epoll.close()
        self._socket.close()
        self._path.unlink(missing_ok=True)

    # --- newcomers

    def _accept(self) -> None:
        connection = self._accepted()
        if connection is None:
            return
        if len(self._askers) >= ASKERS_MAX:
            self._drop(next(iter(self._askers.values())))
        asker = self._askers[connection.fileno()] = _Asker(connection)
        self._epoll.register(connection.fileno(), select.EPOLLIN)
        self._go_on(asker)

    def _accepted(self) -> socket.socket | None:
        try:
            connection, _ = self._socket.accept()
        except BlockingIOError:
            return None
        except OSError as error:
            self.count.add(Family.NO_DESCRIPTOR.of(errno.errorcode.get(error.errno or 0, "error")))
            return self._accepted_with_the_last()
        self._listen()
        return connection

    def _accepted_with_the_last(self) -> socket.socket | None:
        if self._spare is None and self._askers:
            self._drop(next(iter(self._askers.values())))  # What it held is in reserve now.
        self._give_spare()
        try:
            return self._socket.accept()[0]
        except OSError:
            self._spare = _spare()
            self._be_deaf()
            return None

    def _give_spare(self) -> None:
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    def _be_deaf(self) -> None:
        """Who waits is not seen again; whoever comes next is, and then all of them."""
        if not self._deaf:
            self._deaf = True
            self._epoll.modify(self._socket.fileno(), select.EPOLLIN | select.EPOLLET)

    def _listen(self) -> None:
        if self._deaf:
            self._deaf = False
            self._epoll.modify(self._socket.fileno(), select.EPOLLIN)

    # --- one asker

    def _go_on(self, asker: _Asker) -> None:
        try:
            if asker.unsent is None and asker.in_the_making is None:
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
        self._epoll.modify(asker.connection.fileno(), select.EPOLLOUT)
        answer = self._answer(asker.question.partition(b"\n")[0].strip())
        if isinstance(answer, dict):
            asker.unsent = memoryview(msgspec.json.encode(answer))
        else:
            asker.in_the_making = answer
            self._making.append(asker)

    def _answer(self, question: bytes) -> Answer | InPortions:
        try:
            return self._answer_to(msgspec.json.decode(question or b"{}", type=Question))
        except msgspec.DecodeError as error:
            return {"error": f"this is no question ({error}): ask {{}} for the status"}

    def _make(self, asker: _Asker) -> None:
        """One portion for one of them: however many ask, a turn is as short."""
        if asker.in_the_making is None:
            return  # It was dropped.
        answer = next(asker.in_the_making)
        if answer is None:
            self._making.append(asker)
            return
        asker.in_the_making = None
        asker.unsent = memoryview(msgspec.json.encode(answer))
        self._go_on(asker)

    def _write(self, asker: _Asker) -> None:
        assert asker.unsent is not None
        while asker.unsent:
            asker.unsent = asker.unsent[asker.connection.send(asker.unsent) :]
        self._drop(asker)

    def _drop(self, asker: _Asker) -> None:
        asker.in_the_making = None
        del self._askers[asker.connection.fileno()]
        with suppress(OSError):
            self._epoll.unregister(asker.connection.fileno())
        asker.connection.close()
        if self._spare is None:
            self._spare = _spare()
        self._listen()


def _spare() -> int | None:
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def ask(path: Path, question: Question | None = None, timeout_s: float = TIMEOUT_S) -> Any:
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
