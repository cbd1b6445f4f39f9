"""What the programs of a hostile measurement are told, and what they tell."""

from __future__ import annotations

import struct
from typing import Final, Literal

import msgspec

from covey.protocol.values import Policy

NICE: Final = 10
"""By how much those who make trouble stand back: what is measured is the daemon, not the want of processors."""
BYSTANDERS: Final = "bystanders"
LAST: Final = 1
"""The kind of the bystander's last message."""
STAMPED: Final = struct.Struct("<QQ")
"""What each of its messages holds: its number, and when it was sent, in nanoseconds of the monotonic clock."""


class BystanderTask(msgspec.Struct, frozen=True, kw_only=True):
    """One small message every so often, or receiving them."""

    role: Literal["send", "receive"]
    name: str
    address: str
    interval_s: float = 0.005
    receivers: int = 2
    may_miss: bool = False
    """The network is cut now and then: order must hold, but not everything comes."""


class BystanderResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a bystander sent, or saw."""

    name: str
    messages: int = 0
    longest_wait_ms: float = 0.0
    """From the call of `send` to the receipt; at the sender: in one call."""
    problem: str = ""


class CrowdTask(msgspec.Struct, frozen=True, kw_only=True):
    """Many sessions in one process, all at one daemon."""

    name: str
    path: str
    """The daemon's socket."""
    sessions: int
    group: str = ""
    """What all join; empty: each joins groups of its own."""
    groups_each: int = 1
    group_characters: int = 105
    reads: bool = True
    policy: Policy = "disconnect"


def own_group(crowd: str, session: int, at: int, characters: int) -> str:
    """What a session calls a group of its own.

    >>> own_group("g", 3, 17, 10)
    'g-3-17xxxx'
    """
    return f"{crowd}-{session}-{at}".ljust(characters, "x")


class CrowdTally(msgspec.Struct, frozen=True, kw_only=True):
    """How a crowd is."""

    open: int
    """Sessions that the daemon has not ended."""
    bytes_read: int
    frames_read: int
    """Counted only where each session joins groups of its own."""
    idle_s: float
    """For so long nothing came, and nothing was to be written."""


class SenderTask(msgspec.Struct, frozen=True, kw_only=True):
    """A program that sends, or counts what others send, through the public library."""

    role: Literal["flood", "burst", "echo", "count"]
    name: str
    address: str
    groups: tuple[str, ...]
    size_min: int = 1_000
    size_max: int = 1_000
    in_turn: bool = False
    """Each call is for the next of the groups, instead of for all."""
    together: int = 1
    """Messages in one call."""
    rate: float = 0.0
    """Calls a second; 0 is as fast as the daemon takes them."""


class SenderResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it."""

    name: str
    messages: int = 0
    longest_wait_ms: float = 0.0
    """Of an echo: until its message was back, or until it was told to stop."""
    is_waiting: bool = False
    """An echo's last message never came back."""
    arrivals: dict[int, int] = {}
    """Messages counted in each tenth of a second of the monotonic clock."""
    problem: str = ""
