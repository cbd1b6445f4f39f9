"""What clients ask, whatever dialect they speak: to be let in, to join, leave and send, to go.

In:        what a dialect has read from a stream (dialects/).  Out: values for those who do it (requests.py).
Not here:  bytes; what is wrong with what is asked (session/problems.py).
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from .values import Payload, Policy, Service


class Open(msgspec.Struct, frozen=True, gc=False):
    """Let me in under this name."""

    name: str
    priority: int = 1
    """0 is served first, 2 last."""
    policy: Policy = "disconnect"
    daemon_timeout_ms: int = 0
    """The daemon shall speak often enough for somebody who gives it up after so long a silence; 0: nobody does."""
    alive_timeout_ms: int = 0
    """Give me up after so long a silence of mine; 0: only if the daemon's configuration says so."""
    lag_max_ms: int = 0
    """End me when the oldest of what waits for me has waited so long; 0: only the configuration's bounds hold."""


class CannotOpen(msgspec.Struct, frozen=True, gc=False):
    """Let me in, asked in a way that the dialect does not take."""

    reason: str


class JoinRequest(msgspec.Struct, frozen=True, gc=False):
    group: str


class LeaveRequest(msgspec.Struct, frozen=True, gc=False):
    group: str


class Sending(NamedTuple):
    """A run of messages for the same destinations."""

    service: Service
    flags: int
    messages: int
    session_seq: int
    """Of the first: sessions count their messages, 1, 2, 3 …"""
    groups: tuple[str, ...]
    body: Payload
    """As every receiver gets it (wire/bodies.py)."""


class Depart(msgspec.Struct, frozen=True, gc=False):
    """I leave in good order."""


class StillHere(msgspec.Struct, frozen=True, gc=False):
    """I am here, and ask for nothing."""


Request = Open | CannotOpen | JoinRequest | LeaveRequest | Sending | Depart | StillHere
