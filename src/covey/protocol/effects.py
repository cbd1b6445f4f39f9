"""All that a daemon can ask its driver for, in the order to perform it."""

from __future__ import annotations

from enum import Enum

import msgspec

from covey.cluster import SiteLink
from covey.ids import Ballot, Life

from .values import Bundle, Payload, Stay


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send these bytes to these ranks, as a datagram: it may be lost, repeated or late."""

    to: tuple[int, ...]
    data: bytes


class LinkSend(msgspec.Struct, frozen=True, gc=False):
    """Send these bytes over an ideal link between sites, which loses nothing and may reorder: simulators have one."""

    to: tuple[int, ...]
    data: bytes


class Stamped(msgspec.Struct, frozen=True, gc=False):
    """A message of ours has taken its place in the order (for unreliable: was first transmitted)."""

    view: Ballot
    bundle: Bundle
    payloads: tuple[Payload, ...]


class InterestSaid(msgspec.Struct, frozen=True, gc=False):
    """Our site has asked the others for the messages of a group, or has given them up."""

    view: Ballot
    group: str
    is_asked: bool


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """Hand this message up."""

    view: Ballot
    bundle: Bundle
    payloads: tuple[Payload, ...]


class Signal(msgspec.Struct, frozen=True, gc=False):
    """The transitional signal: what follows, up to the view, holds among the transitional set only."""

    view: Ballot


class Installed(msgspec.Struct, frozen=True, gc=False):
    """A view: it follows the signal and the rest of the old view in the same step."""

    previous: Ballot | None
    view: Ballot
    members: tuple[Life, ...]
    transitional: tuple[Life, ...]
    cause: str
    reason: Enum
    detail: str
    """Whom the reason is about."""
    joined: tuple[tuple[Life, tuple[tuple[Stay, ...], ...]], ...] = ()
    """What the sessions of those from other views have joined, in portions."""
    links: tuple[SiteLink, ...] = ()
    """Between the sites of the members, where there are several."""


class Entered(msgspec.Struct, frozen=True, gc=False):
    """The ordering engine entered one of its states, and why. Their values are words for people."""

    state: Enum
    reason: Enum
    detail: str


class Refused(msgspec.Struct, frozen=True, gc=False):
    """A submission was not taken; nothing of it was sent. Submit it again when there is room."""

    session: int
    session_seq: int
    reason: str


class Notice(msgspec.Struct, frozen=True, gc=False):
    """Something an operator should read."""

    text: str


class ClientReady(msgspec.Struct, frozen=True, gc=False):
    """There is something for this client: pull it as its stream has room."""

    connection: int
    waiting: int = 0
    """Bytes. Those for whom little waits need not stand behind those for whom much does."""


class ClientReading(msgspec.Struct, frozen=True, gc=False):
    """Read this client's stream, or leave what it sends waiting in it: its share of the send queue is full."""

    connection: int
    read: bool


class ClientClosed(msgspec.Struct, frozen=True, gc=False):
    """Close this client's stream once what can be pulled is written."""

    connection: int


class Stopped(msgspec.Struct, frozen=True, gc=False):
    """The orderly end is done: the driver may close."""


Effect = (
    Send
    | LinkSend
    | Stamped
    | InterestSaid
    | Deliver
    | Signal
    | Installed
    | Entered
    | Refused
    | Notice
    | ClientReady
    | ClientReading
    | ClientClosed
    | Stopped
)
