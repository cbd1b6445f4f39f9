"""Values that travel between the layers. Layers do not import one another: what they share is here."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from covey.ids import INFINITE, Ballot, Life, Natural

from .bits import from_bits

Payload = bytes | memoryview

Policy = Literal["disconnect", "block"]
"""What happens when a session reads too slowly."""


class Service(IntEnum):
    """What a sender asks for, weakest first."""

    UNRELIABLE = 0
    RELIABLE = 1
    FIFO = 2
    CAUSAL = 3
    AGREED = 4
    SAFE = 5


class Kind(IntEnum):
    """What a bundle is for. Daemons look inside none but their own."""

    RAW = 0
    """A daemon's own traffic."""
    MESSAGES = 1
    """Messages of a client."""
    JOIN = 2
    LEAVE = 3
    DISCONNECT = 4
    BLOCK = 5
    """A slow receiver asks the senders of its groups to wait."""
    UNBLOCK = 6
    INTEREST = 7
    """A site asks for the messages of groups: somebody in it is about to join."""
    UNINTEREST = 8
    """It needs them no more: nobody in it has joined."""


Stamp = Annotated[int, Meta(ge=0, le=INFINITE)]


class Position(NamedTuple):
    """A place in the agreed order of one view."""

    stamp: Stamp
    site: Annotated[int, Meta(ge=-1, le=INFINITE)]


START = Position(0, -1)


class Place(NamedTuple):
    """A place in the agreed order, for ever."""

    view: Ballot
    stamp: Stamp
    site: Annotated[int, Meta(ge=0, le=INFINITE)]


class Stay(NamedTuple):
    """One session in one group, as its daemon declares it: a join whose place in the order is fixed."""

    session: Natural
    process: Annotated[str, Meta(max_length=600)]
    group: Annotated[str, Meta(max_length=600)]
    place: Place


class SessionKey(NamedTuple):
    """The source of a first-in first-out stream: one session of one daemon's life."""

    origin: Life
    session: int


class Bundle(msgspec.Struct, gc=False):
    """What daemons order, store and recover: a run of messages of one session, or one fragment of a large message.

    `number` counts 1, 2, 3 … per source, `stamp` grows with it; both are 0 for unreliable bundles, which stay outside
    order and recovery. `fifo_number` counts 1, 2, 3 … per session. Whether both begin again in each view, and what a
    source is, is the engine's matter: in the first one they do, and it is a site.
    """

    site: int
    number: int
    stamp: int
    origin: Life
    session: int
    session_seq: int
    count: int
    fifo_number: int
    service: Service
    fragment: int
    fragments: int
    groups: tuple[str, ...]
    payload: Payload
    kind: Kind = Kind.RAW
    flags: int = 0
    content: int = 0
    """Where its payload goes: a bit for each site of the view, in the order of their numbers; 0: everywhere."""
    is_meta: bool = False
    """Only the head is here, with the name of who sent it: nobody here needs the payload."""
    passed: bool = False
    """This daemon has taken it out of the order: delivered it, or, for an earlier fragment, gone past it."""

    @property
    def key(self) -> SessionKey:
        return SessionKey(self.origin, self.session)

    @property
    def position(self) -> Position:
        return Position(self.stamp, self.site)

    @property
    def is_last_fragment(self) -> bool:
        return self.fragment == self.fragments - 1


class Delivery(NamedTuple):
    """A message leaving the order: its last (or only) bundle, and all its payloads in order."""

    bundle: Bundle
    payloads: tuple[Payload, ...]


class GroupNews(NamedTuple):
    """What the client side tells the engine of who is in which group, in a view of several sites."""

    view: Ballot
    at_start: dict[str, int] | None
    """Once a view: the sites of each group's members when it began, a bit for each site in the order of numbers."""
    emptied: dict[str, int]
    """Groups that the last member in our site has left, and the stamp of its departure."""


class Announcement(NamedTuple):
    """Every bundle of the site numbered above `number` has a stamp above `last` (rule R2)."""

    number: Natural
    last: Natural


EXTRAS_BYTES_MAX = 1 << 16
"""More than any window needs."""

ANNOUNCEMENTS_MAX = 16
"""Of one site that wait for bundles: those that will apply first, and the newest."""


class SiteDeclaration(NamedTuple):
    """What a daemon holds of one site when it freezes its view."""

    site: Natural
    low: Natural
    """Numbers up to here were received by every member of the view, and may be gone from the store."""
    gap_free: Natural
    """Numbers up to here are held, or were."""
    frontier: Stamp
    extras: Annotated[bytes, Meta(max_length=EXTRAS_BYTES_MAX)]
    """A bit for each number beyond `gap_free`, from the first: whether that bundle is held."""
    announcements: Annotated[tuple[Announcement, ...], Meta(max_length=ANNOUNCEMENTS_MAX)]

    @property
    def held_beyond(self) -> list[int]:
        """The numbers of bundles held beyond `gap_free`."""
        return from_bits(self.extras, self.gap_free + 1)

    @property
    def highest(self) -> int:
        """The number of the last bundle that is held."""
        beyond = self.held_beyond
        return beyond[-1] if beyond else self.gap_free


class Declaration(msgspec.Struct, array_like=True, frozen=True):
    """What a daemon says of its old view in STATETRANS."""

    view: Ballot
    position: Position
    """The last place in the agreed order that this daemon has delivered."""
    aru: Stamp
    """Every member of the view had everything up to this stamp, as known when the view was first frozen."""
    high: Natural
    """The highest stamp seen, made or promised: the next view stamps above it."""
    commit: tuple[Life, ...]
    sites: tuple[SiteDeclaration, ...]
