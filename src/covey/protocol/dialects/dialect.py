"""What a dialect is: it reads what a program asks for, and turns what it is told into bytes."""

from __future__ import annotations

from typing import Protocol

from covey.errors import FrameError
from covey.protocol.wire.words import FromClient

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

    def accept(self, frame_bytes_max: int) -> None:
        """From now on frames may be so large."""

    def put(self, data: bytes) -> None: ...

    def next(self) -> FromClient | None:
        """The next request, or the one that had to wait; None if there is none. FrameError if it is no request."""

    def put_back(self, request: FromClient) -> None:
        """It has to wait."""

    def clear(self) -> None:
        """The session is over: nothing that it said is done any more."""


class Dialect(Protocol):
    def reader(self) -> Reader: ...

    def entry(self, notice: ClientNotice) -> Entry:
        """Made once for all sessions of this dialect that are told the same."""

    def greeting_problem(self, request: FromClient) -> str:
        """What is wrong with the first request of a stream; empty if it may be looked at."""


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
