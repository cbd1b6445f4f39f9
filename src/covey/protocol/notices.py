"""What clients are told, whatever dialect they speak: messages, views, signals, the end of a session.

In:        what the groups and the desk have to tell.  Out: values that a dialect turns into bytes (dialects/).
Not here:  whom it is told (groups/), what waits for whom (session/).

A message is the delivery itself (`effects.Deliver`). Views come as differences where the receiver has the view before,
and can give the full list too, for dialects that know only lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, NamedTuple, Protocol

from msgspec import Meta

from covey.ids import INFINITE, Ballot, Natural

from .values import Service

Text = Annotated[str, Meta(max_length=600)]
Texts = Annotated[tuple[Text, ...], Meta(max_length=100_000)]

NET: Final = (0, 0)
"""Instead of a stamp and a site: the view came with a daemon view, not with an ordered change."""


class Difference(NamedTuple):
    """A view, as its difference from the one before it in the same group.

    Members: those before, without who went, with who came. The transitional set: those before who did not go and are
    not apart. An empty detail names who came or went.
    """

    view: Ballot
    stamp: Annotated[int, Meta(ge=0, le=INFINITE)]
    site: Natural
    came: Texts
    gone: Texts
    apart: Texts
    """They stayed, but did not move with us from our previous view."""
    cause: Text
    detail: Text


# --- views


class Named(Protocol):
    @property
    def process(self) -> str: ...


class Run:
    """Views of one group that follow one another, each as its difference from the one before."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.differences: list[Difference] = []
        self.members: Mapping[Any, Named] = {}
        """After the last of them: as the roster has it, so look before anything else changes."""
        self.kept: dict[object, Any] = {}
        """What dialects keep with it, so that bytes are made once."""

    def __len__(self) -> int:
        return len(self.differences)

    def add(self, difference: Difference, members: Mapping[Any, Named]) -> None:
        self.differences.append(difference)
        self.members = members


class Views(NamedTuple):
    """The views `start` to `stop` of a run."""

    run: Run
    start: int
    stop: int

    @property
    def differences(self) -> list[Difference]:
        return self.run.differences[self.start : self.stop]

    def lists(self) -> list[tuple[str, ...]]:
        """The members of each view, in no order: for dialects that know only lists."""
        present = dict.fromkeys(member.process for member in self.run.members.values())
        found = []
        for at in range(len(self.run) - 1, self.start - 1, -1):
            if at < self.stop:
                found.append(tuple(present))
            difference = self.run.differences[at]
            for name in difference.came:
                present.pop(name, None)
            present.update(dict.fromkeys(difference.gone))
        return found[::-1]


class GrowingRoll:
    """The members of a group that grows, listed once: each who joins is shown all that are there."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(names)
        self.kept: dict[object, Any] = {}
        """What dialects keep with it."""


class Listed(NamedTuple):
    """The members of a roll when there were so many."""

    roll: GrowingRoll
    upto: int

    def names(self) -> tuple[str, ...]:
        return tuple(self.roll.names[: self.upto])


class WholeView(NamedTuple):
    """A view with all its members: the first one of a stay, and where that is shorter than what changed."""

    group: str
    view: Ballot
    stamp: int
    site: int
    members: tuple[str, ...] | Listed
    transitional: tuple[str, ...]
    cause: str
    detail: str

    def names(self) -> tuple[str, ...]:
        return self.members.names() if isinstance(self.members, Listed) else self.members


# --- other things about groups


class GroupSignalled(NamedTuple):
    """The transitional signal of a group."""

    group: str


class LeftGroup(NamedTuple):
    """A leave of the session took effect here in the stream."""

    group: str
    view: Ballot
    stamp: int
    site: int


class OwnDiscarded(NamedTuple):
    """Messages of the session's own, which it did not want back, took their place here."""

    service: Service
    messages: int
    session_seq: int
    view: Ballot
    stamp: int
    site: int
    groups: tuple[str, ...]


# --- about the session itself


class SessionOpened(NamedTuple):
    process: str
    bundle_bytes: int
    message_bytes_max: int
    alive_interval_ms: int
    alive_timeout_ms: int


class SessionRejected(NamedTuple):
    reason: str


class RequestFailed(NamedTuple):
    """Something the session asked for cannot be; it goes on."""

    asked: str
    reason: str


class SessionEnded(NamedTuple):
    reason: str
    lag_bytes: int
    lag_us: int


class DaemonSpoke(NamedTuple):
    """The daemon is there: told when nothing else was for some time."""


GroupNotice = Views | WholeView | GroupSignalled | LeftGroup | OwnDiscarded
SessionNotice = SessionOpened | SessionRejected | RequestFailed | SessionEnded | DaemonSpoke
