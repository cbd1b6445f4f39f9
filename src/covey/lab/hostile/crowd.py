"""Many sessions in one process of lower priority, which holds their streams and makes no events of what comes.

In:        its task, as one JSON argument; on standard input `go` (join), `how` (tell how you are), `leave` (close all).
Out:       "ready" when all are let in; a CrowdTally for each `how` and `leave`; each one JSON line on standard output.
Not here:  which crowd does what when (crowds.py, messages.py).

Everything a session says is made beforehand: what is measured is what a daemon does with it, not the library.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import time

import msgspec

from covey.errors import CoveyError
from covey.lab.cluster import LiveError
from covey.lab.helper_process import PATIENCE_S
from covey.lab.helper_streams import say, told
from covey.protocol.wire.session import HEAD_BYTES, HELLO_BYTES_MAX, Splitter, encode_word, read_from_daemon
from covey.protocol.wire.words import MAGIC, VERSION, ClientAlive, DaemonAlive, Hello, JoinGroup, Rejected, Welcome

from .task import NICE, CrowdTally, CrowdTask, own_group

AT_A_TIME = 256
"""Sessions that come in together: fewer than a daemon lets wait."""
READ_BYTES = 256 * 1024
ALIVE_CODE = encode_word(DaemonAlive())[HEAD_BYTES - 1]
ANSWER = encode_word(ClientAlive())


def main() -> int:
    task = msgspec.json.decode(sys.argv[1], type=CrowdTask)
    os.nice(NICE)
    try:
        crowd = Crowd(task)
        say("ready")
        crowd.serve()
    except (CoveyError, OSError) as error:
        say(f"{type(error).__name__}: {error}")
        return 1
    return 0


class FrameHeads:
    """Finds where frames begin in a stream, and makes nothing of what is in them.

    >>> heads = FrameHeads()
    >>> data = encode_word(DaemonAlive()) * 3
    >>> [len(heads.feed(part)) for part in (data[:2], data[2:7], data[7:])]
    [0, 1, 2]
    """

    def __init__(self) -> None:
        self._head = b""
        self._left = 0

    def feed(self, data: bytes) -> list[int]:
        """The codes of the frames whose head is complete with this."""
        codes, at = [], 0
        while at < len(data):
            if self._left:
                step = min(self._left, len(data) - at)
                self._left -= step
            else:
                step = min(HEAD_BYTES - len(self._head), len(data) - at)
                self._head += data[at : at + step]
            if len(self._head) == HEAD_BYTES:
                self._left = int.from_bytes(self._head[:-1], "little")
                codes.append(self._head[-1])
                self._head = b""
            at += step
        return codes


class Connection:
    """One session: its stream, what it has to write, and whether its frames are counted."""

    __slots__ = ("answers", "heads", "joins", "stream", "unsent")

    def __init__(self, path: str, hello: bytes, joins: bytes) -> None:
        self.stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.stream.settimeout(PATIENCE_S)
        self.stream.connect(path)
        self.stream.sendall(hello)
        self.joins = joins
        self.unsent = memoryview(b"")
        self.heads: FrameHeads | None = None
        self.answers = False

    def welcomed(self) -> None:
        """Wait for the welcome, and do what it asks for."""
        splitter = Splitter(HELLO_BYTES_MAX)
        frames: list[tuple[int, memoryview]] = []
        while not frames:
            data = self.stream.recv(READ_BYTES)
            if not data:
                raise LiveError("the daemon closed the connection without a word")
            frames = splitter.feed(data)
        word = read_from_daemon(*frames[0])
        if not isinstance(word, Welcome):
            raise LiveError(f"not let in: {word.reason if isinstance(word, Rejected) else word}")
        self.answers = word.alive_timeout_ms > 0
        self.heads = FrameHeads() if self.answers else None
        self.stream.setblocking(False)


class Crowd:
    def __init__(self, task: CrowdTask) -> None:
        self._task = task
        self._epoll = select.epoll()
        self._connections: dict[int, Connection] = {}
        self._bytes = self._frames = 0
        self._busy_at = time.monotonic()
        for first in range(0, task.sessions, AT_A_TIME):
            self._enter(range(first, min(first + AT_A_TIME, task.sessions)))
        self._epoll.register(sys.stdin.fileno(), select.EPOLLIN)

    def _enter(self, numbers: range) -> None:
        coming = [Connection(self._task.path, self._hello(number), self._joins(number)) for number in numbers]
        for one in coming:
            one.welcomed()
            if not self._task.group:
                one.heads = one.heads or FrameHeads()
            self._connections[one.stream.fileno()] = one
            self._epoll.register(one.stream.fileno(), self._mask(one))

    def _hello(self, number: int) -> bytes:
        return encode_word(Hello(MAGIC, VERSION, f"{self._task.name}{number}", 1, self._task.policy))

    def _joins(self, number: int) -> bytes:
        task = self._task
        if task.group:
            return encode_word(JoinGroup(task.group))
        names = (own_group(task.name, number, at, task.group_characters) for at in range(task.groups_each))
        return b"".join(encode_word(JoinGroup(name)) for name in names)

    def _mask(self, one: Connection) -> int:
        return (select.EPOLLIN if self._task.reads else 0) | (select.EPOLLOUT if one.unsent else 0)

    # --- the loop

    def serve(self) -> None:
        while True:
            for descriptor, mask in self._epoll.poll():
                if descriptor == sys.stdin.fileno():
                    for word in told().split():
                        if not self._obey(word):
                            return
                elif (one := self._connections.get(descriptor)) is not None:
                    self._go_on(one, mask)

    def _obey(self, word: str) -> bool:
        """False when it is over."""
        if word == "go":
            for one in list(self._connections.values()):
                self._write(one, one.joins)
        elif word == "how":
            say(self._tally())
        elif word == "leave":
            tally = self._tally()
            for one in list(self._connections.values()):
                self._drop(one)
            say(tally)
        else:
            return False
        return True

    def _tally(self) -> CrowdTally:
        return CrowdTally(
            open=len(self._connections),
            bytes_read=self._bytes,
            frames_read=self._frames,
            idle_s=round(time.monotonic() - self._busy_at, 3),
        )

    def _go_on(self, one: Connection, mask: int) -> None:
        self._busy_at = time.monotonic()
        if mask & select.EPOLLOUT:
            self._write(one)
        if mask & ~select.EPOLLOUT:
            self._read(one)

    def _read(self, one: Connection) -> None:
        """Who does not read is called here only when its stream is over."""
        try:
            data = one.stream.recv(READ_BYTES) if self._task.reads else b""
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(one)
            return
        self._bytes += len(data)
        if one.heads is not None:
            codes = one.heads.feed(data)
            self._frames += len(codes)
            if one.answers and ALIVE_CODE in codes:
                self._write(one, ANSWER)

    def _write(self, one: Connection, more: bytes = b"") -> None:
        if more:
            one.unsent = memoryview(bytes(one.unsent) + more)
        try:
            one.unsent = one.unsent[one.stream.send(one.unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(one)
            return
        self._epoll.modify(one.stream.fileno(), self._mask(one))

    def _drop(self, one: Connection) -> None:
        if self._connections.pop(one.stream.fileno(), None) is not None:
            one.stream.close()


if __name__ == "__main__":
    sys.exit(main())
