"""All that can happen to a daemon."""

from __future__ import annotations

import msgspec

from .values import Payload, Service


class Datagram(msgspec.Struct, frozen=True, gc=False):
    """Bytes from the network. The input owns them."""

    data: bytes


class Submit(msgspec.Struct, frozen=True, gc=False):
    """A session hands over a run of messages of one service and destination, or one large message (count 1)."""

    session: int
    session_seq: int
    service: Service
    payload: Payload
    count: int = 1
    groups: tuple[str, ...] = ()


class Stop(msgspec.Struct, frozen=True, gc=False):
    """The operator wants an orderly end: finish what is unstable, say goodbye, stop."""


class PeerRefused(msgspec.Struct, frozen=True, gc=False):
    """The host of this peer says that nobody listens on its port: a hint that this life is over."""

    rank: int


Input = Datagram | Submit | Stop | PeerRefused
