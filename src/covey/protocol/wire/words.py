"""What a client and its daemon say to each other, as values: the words of the native dialect."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from covey.ids import INFINITE, Ballot, Natural
from covey.protocol.asked import Sending
from covey.protocol.notices import Difference, Text, Texts
from covey.protocol.values import Policy, Service

VERSION: Final = 2
MAGIC: Final = "covey"


class Word(msgspec.Struct, array_like=True, frozen=True):
    """Base of the frames that are encoded as one array."""


# --- from the client


class Hello(Word, frozen=True):
    """Let me in under this name."""

    magic: Text
    version: Natural
    name: Text
    priority: Annotated[int, Meta(ge=0, le=2)]
    """0 is served first."""
    policy: Policy
    """What happens when this session reads too slowly."""
    daemon_timeout_ms: Natural = 0
    """The daemon shall speak often enough for somebody who gives it up after so long a silence; 0: nobody does."""
    alive_timeout_ms: Natural = 0
    """Give me up after so long a silence of mine; 0: only if the daemon's configuration says so."""
    lag_max_ms: Natural = 0
    """End me when the oldest of what waits for me has waited so long; 0: only the configuration's bounds hold."""


class JoinGroup(Word, frozen=True):
    group: Text


class LeaveGroup(Word, frozen=True):
    group: Text


class Bye(Word, frozen=True):
    """I leave in good order."""


class ClientAlive(Word, frozen=True):
    """I am here: the answer to each `DaemonAlive` where the welcome says that silence is judged."""


# --- from the daemon


class Welcome(Word, frozen=True):
    """You are in: this is what you are called, and how large things may be."""

    version: Natural
    process: Text
    """Unique for ever: `name@daemon:boot.session`."""
    bundle_bytes: Natural
    message_bytes_max: Natural
    alive_interval_ms: Natural = 0
    """The daemon says something at least this often; 0: only when there is something to say."""
    alive_timeout_ms: Natural = 0
    """After so long a silence of yours the daemon gives you up: answer each `DaemonAlive`. 0: it does not."""


class Rejected(Word, frozen=True):
    """You are not let in. The stream ends."""

    reason: Text


class DaemonAlive(Word, frozen=True):
    """I am here: said when nothing else was for `alive_interval_ms`."""


class GroupView(Word, frozen=True):
    """A view with all its members: the first one of a stay, and where that is shorter than what changed."""

    group: Text
    view: Ballot
    stamp: Annotated[int, Meta(ge=0, le=INFINITE)]
    site: Natural
    members: Texts
    transitional: Texts
    cause: Text
    detail: Text


class GroupDifferences(Word, frozen=True):
    """The next views of a group, in their order; each is a view of its own."""

    group: Text
    differences: Annotated[tuple[Difference, ...], Meta(max_length=100_000)]


class GroupSignal(Word, frozen=True):
    """The transitional signal of a group."""

    group: Text


class GroupLeft(Word, frozen=True):
    """Your leave took effect here in the stream."""

    group: Text
    view: Ballot
    stamp: Annotated[int, Meta(ge=0, le=INFINITE)]
    site: Natural


class Discarded(Word, frozen=True):
    """Messages of your own that you did not want back took their place here."""

    service: Service
    messages: Natural
    session_seq: Natural
    view: Ballot
    stamp: Annotated[int, Meta(ge=0, le=INFINITE)]
    site: Natural
    groups: Texts


class Failed(Word, frozen=True):
    """Something you asked for cannot be; the session goes on."""

    asked: Text
    reason: Text


class Ended(Word, frozen=True):
    """The daemon ends the session, and says why. The stream ends."""

    reason: Text
    lag_bytes: Natural
    lag_us: Natural


class Arrived(msgspec.Struct, frozen=True, gc=False):
    """A run of messages, at its place in the order."""

    service: Service
    flags: int
    messages: int
    session_seq: int
    view: Ballot
    stamp: int
    site: int
    groups: tuple[str, ...]
    body: memoryview


FromClient = Hello | JoinGroup | LeaveGroup | Bye | ClientAlive | Sending
FromDaemon = (
    Welcome
    | Rejected
    | GroupView
    | GroupSignal
    | GroupLeft
    | Failed
    | Ended
    | Discarded
    | GroupDifferences
    | DaemonAlive
    | Arrived
)
