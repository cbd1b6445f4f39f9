"""What a dialect is: it reads what a program asks for, and turns what it is told into bytes and texts of its own."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from covey.errors import FrameError
from covey.protocol.asked import Request

from .entries import ClientNotice, Entry


class Reader(Protocol):
    """What a client has said and was not done yet, as requests, one by one when their turn comes."""

    def __bool__(self) -> bool: ...

    @property
    def size(self) -> int:
        """Bytes that are kept for it."""

    @property
    def problem(self) -> FrameError | None:
        """Why nothing more can be read from this stream."""

    joined: int
    """Messages that came one by one and were joined to the one before; whoever counts them sets it back."""

    def open(self, process: str, message_bytes_max: int, bundle_bytes: int) -> None:
        """The program is let in: it speaks for this process, and its messages, and bundles of them, may be so large."""

    def put(self, data: bytes) -> None: ...

    def next(self) -> Request | None:
        """The next request, or the one that had to wait; None if there is none. FrameError if it is no request."""

    def put_back(self, request: Request) -> None:
        """It has to wait."""

    def clear(self) -> None:
        """The session is over: nothing that it said is done any more."""


class Wording(NamedTuple):
    """What programs are told of their mistakes, where that takes words of their dialect."""

    silent: str
    """It has not asked to be let in, for too long."""
    not_open: str
    """It asks for something else first."""
    open_twice: str
    unreadable: str
    """What it wrote is no request; the details follow in brackets."""


class Dialect(Protocol):
    @property
    def wording(self) -> Wording: ...

    def reader(self) -> Reader: ...

    def entry(self, notice: ClientNotice) -> Entry:
        """Made once for all sessions of this dialect that are told the same."""


class Shared:
    """Something told to several sessions: an entry for each dialect that they speak."""

    __slots__ = ("_dialect", "_entry", "_others", "notice")

    def __init__(self, notice: ClientNotice) -> None:
        self.notice = notice
        self._dialect: Dialect | None = None
        self._entry: Entry | None = None
        """Of the first dialect that was asked for: mostly there is one."""
        self._others: dict[Dialect, Entry] | None = None

    def entry(self, dialect: Dialect) -> Entry:
        if dialect is self._dialect and self._entry is not None:
            return self._entry
        if self._entry is None:
            self._dialect, self._entry = dialect, dialect.entry(self.notice)
            return self._entry
        if self._others is None:
            self._others = {}
        if dialect not in self._others:
            self._others[dialect] = dialect.entry(self.notice)
        return self._others[dialect]
