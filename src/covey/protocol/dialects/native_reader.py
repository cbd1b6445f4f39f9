"""What a client of the native dialect has said: bytes, cut into frames one by one as their turn comes.

In:        what arrived on its stream.  Out: requests, in order; one that has to wait can be put back.
Not here:  doing it (requests.py), how messages that came one by one become one run (joining.py).

Bounded: one read for each that the driver makes before it is told to stop, and one unfinished frame.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from covey.config import FRAME_SLACK
from covey.errors import FrameError
from covey.protocol.asked import CannotOpen, Depart, JoinRequest, LeaveRequest, Open, Request, Sending, StillHere
from covey.protocol.wire.session import HELLO_BYTES_MAX, Splitter, read_from_client
from covey.protocol.wire.words import MAGIC, VERSION, Bye, ClientAlive, Hello, JoinGroup, LeaveGroup

from .dialect import Wording
from .joining import Joining

Frame = tuple[int, memoryview]

WORDING: Final = Wording(
    silent="it said nothing for too long: send HELLO first",
    not_open="say HELLO first",
    open_twice="it said HELLO twice",
    unreadable="it sent something that is no frame of ours",
)


class NativeReader:
    def __init__(self) -> None:
        self._splitter = Splitter(HELLO_BYTES_MAX)
        self._reads: deque[tuple[Iterator[Frame], int]] = deque()
        self._waits: Request | None = None
        self._waits_bytes = 0  # Of what waits, where the read it came in is counted no more.
        self._is_alone = False  # The last request was the end of its read.
        self._ahead: Frame | None = None
        """Of the first read: looked at, and not for the run before it."""
        self._joining = Joining()
        self._read_bytes = 0
        self.joined = 0

    def __bool__(self) -> bool:
        return self._waits is not None or bool(self._reads)

    @property
    def size(self) -> int:
        return self._read_bytes + self._waits_bytes + len(self._splitter.kept)

    @property
    def problem(self) -> FrameError | None:
        return self._splitter.problem

    def open(self, process: str, message_bytes_max: int, bundle_bytes: int) -> None:
        self._splitter.frame_bytes_max = message_bytes_max + FRAME_SLACK
        self._joining = Joining(process, bundle_bytes)

    def put(self, data: bytes) -> None:
        self._reads.append((self._splitter.frames(data), len(data)))
        self._read_bytes += len(data)

    def next(self) -> Request | None:
        if self._waits is not None:
            request, self._waits, self._waits_bytes = self._waits, None, 0
            return request
        while self._reads:
            frames = self._reads[0][0]
            frame, self._ahead = self._ahead or next(frames, None), None
            if frame is not None:
                word = read_from_client(*frame)
                return self._with_those_behind(word, frame, frames) if isinstance(word, Sending) else _request(word)
            self._drop_read()
        return None

    def _with_those_behind(self, first: Sending, frame: Frame, frames: Iterator[Frame]) -> Sending:
        """What came in the same read and goes the same way joins the first."""
        self._ahead = next(frames, None)
        self._is_alone = self._ahead is None
        if self._is_alone:
            self._drop_read()
            return first
        if not self._joining.begin(first, *frame):
            return first
        while self._ahead is not None and self._joining.take(*self._ahead):
            self._ahead = next(frames, None)
            self.joined += 1
        return self._joining.run()

    def _drop_read(self) -> None:
        """Nothing is left of it, but perhaps the beginning of a frame."""
        self._read_bytes -= self._reads.popleft()[1]

    def put_back(self, request: Request) -> None:
        self._waits = request
        self._waits_bytes = len(request.body) if self._is_alone and isinstance(request, Sending) else 0

    def clear(self) -> None:
        self._splitter = Splitter(HELLO_BYTES_MAX)
        self._reads.clear()
        self._waits = self._ahead = None
        self._read_bytes = self._waits_bytes = 0


def _request(word: Hello | JoinGroup | LeaveGroup | Bye | ClientAlive) -> Request:
    if isinstance(word, JoinGroup):
        return JoinRequest(word.group)
    if isinstance(word, LeaveGroup):
        return LeaveRequest(word.group)
    if isinstance(word, Hello):
        return _opening(word)
    return Depart() if isinstance(word, Bye) else StillHere()


def _opening(word: Hello) -> Open | CannotOpen:
    if problem := _hello_problem(word):
        return CannotOpen(problem)
    return Open(word.name, word.priority, word.policy, word.daemon_timeout_ms, word.alive_timeout_ms, word.lag_max_ms)


def _hello_problem(word: Hello) -> str:
    if word.magic != MAGIC:
        return WORDING.not_open
    if word.version != VERSION:
        version = word.version
        return f"this daemon speaks version {VERSION}, not {version}: use a client library of the same version"
    return ""
