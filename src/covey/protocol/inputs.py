"""All that can happen to a daemon."""

from __future__ import annotations

import msgspec

from covey.cluster import Address

from .values import Kind, Payload, Service


class Datagram(msgspec.Struct, frozen=True, gc=False):
    """Bytes from the network. The input owns them."""

    data: bytes
    source: Address | None = None
    """Where they came from, if the driver can tell."""
    unlisted: bool = False
    """No daemon of the cluster has that address."""


class Submit(msgspec.Struct, frozen=True, gc=False):
    """A session hands over a run of messages of one service and destination, or one large message (count 1)."""

    session: int
    session_seq: int
    service: Service
    payload: Payload
    count: int = 1
    groups: tuple[str, ...] = ()
    kind: Kind = Kind.RAW
    flags: int = 0
    priority: int = 1


class Identity(msgspec.Struct, frozen=True, gc=False):
    """Who opened a stream, as the kernel says: the process and its user. 0 is also the user root."""

    process: int
    user: int
    group: int


class ClientConnected(msgspec.Struct, frozen=True, gc=False):
    """Somebody opened a stream to this daemon. The driver numbers its streams."""

    connection: int
    identity: Identity | None = None
    """Where the kernel tells: of programs on this host, over a socket of this host."""
    dialect: str = "native"
    """What is spoken on it, by its name among the dialects that the daemon was given."""


class ClientBytes(msgspec.Struct, frozen=True, gc=False):
    """Bytes from a client's stream. The input owns them."""

    connection: int
    data: bytes


class ClientGone(msgspec.Struct, frozen=True, gc=False):
    """A client's stream ended, or broke."""

    connection: int


class Stop(msgspec.Struct, frozen=True, gc=False):
    """The operator wants an orderly end: finish what is unstable, say goodbye, stop."""


class PeerRefused(msgspec.Struct, frozen=True, gc=False):
    """The host of this peer says that nobody listens on its port: a hint that this life is over."""

    rank: int


Input = Datagram | Submit | Stop | PeerRefused | ClientConnected | ClientBytes | ClientGone
