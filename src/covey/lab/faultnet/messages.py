"""What a bench and its router say to one another: one request, one reply, one message each on a pair of sockets.

In:        values.  Out: bytes and descriptors that travel together, and values again.
Not here:  what a request does (router.py), who asks (client.py).

The router's first message is HostsReady, in reply to Start, with the namespaces of all hosts in their order.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from .path import Counters, Path

HOSTS_MAX: Final = 32
"""So that what is said about all pairs of hosts fits into one message."""
MESSAGE_BYTES_MAX: Final = 131_072

Pair = tuple[int, int]
"""Source and destination, as numbers of hosts."""


class RouterMessage(msgspec.Struct, frozen=True, tag=True):
    """Anything said, in either direction."""


class Start(RouterMessage, frozen=True):
    """The first request."""

    hosts: int
    seed: int
    mtu: int
    path: Path
    """Of every pair, until it gets another."""


class SetPaths(RouterMessage, frozen=True):
    """From now on these pairs have these paths; all of them change at the same moment."""

    paths: list[tuple[Pair, Path]]


class Adopt(RouterMessage, frozen=True):
    """With the descriptor of a process: kill it when the router ends, and the bench cannot."""


class Ask(RouterMessage, frozen=True):
    """How are things? The reply is a Report."""


class HostsReady(RouterMessage, frozen=True):
    """The hosts exist; their namespaces come with this."""


class RequestDone(RouterMessage, frozen=True):
    """The request has been carried out."""


class Report(RouterMessage, frozen=True):
    """What has happened so far. All that hosts sent before the request is counted or under way."""

    pairs: list[tuple[Pair, Counters]]
    nowhere: int
    """Packets to an address that is no host's. A new device sends a few of these by itself."""
    under_way: int
    """Packets that have yet to arrive."""
    late_us_max: int
    """How much later than it should a packet arrived: how far the bench itself can be trusted."""


Request = Start | SetPaths | Adopt | Ask
Reply = HostsReady | RequestDone | Report

REQUEST: Final[msgspec.msgpack.Decoder[Request]] = msgspec.msgpack.Decoder(Request)
REPLY: Final[msgspec.msgpack.Decoder[Reply]] = msgspec.msgpack.Decoder(Reply)

Said = TypeVar("Said")


def channel() -> tuple[socket.socket, socket.socket]:
    """Two ends that keep messages apart, carry descriptors, and notice when the other one is gone."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def say(to: socket.socket, message: RouterMessage, descriptors: Sequence[int] = ()) -> None:
    socket.send_fds(to, [msgspec.msgpack.encode(message)], list(descriptors))


def hear(at: socket.socket, decoder: msgspec.msgpack.Decoder[Said]) -> tuple[Said, list[int]] | None:
    """The next message and the descriptors that came with it; None if the other side is gone."""
    data, descriptors, _, _ = socket.recv_fds(at, MESSAGE_BYTES_MAX, HOSTS_MAX)
    return (decoder.decode(data), list(descriptors)) if data else None
