"""What the programs of a measurement are told, and what they tell; and what both ends know of a message."""

from __future__ import annotations

import time
from typing import Final, Literal

import msgspec

GROUP: Final = "traffic"
LAST: Final = 1
"""The kind of a sender's last message."""
STAMP_BYTES: Final = 8


class TrafficTask(msgspec.Struct, frozen=True, kw_only=True):
    role: Literal["send", "receive"]
    name: str
    address: str
    size: int
    service: str
    seconds: float
    rate: float
    """Messages a second; 0 is as fast as the daemons take them."""
    senders: int
    receivers: int
    one_by_one: bool = False
    """Without a rate: one call and one write for each message."""


class TrafficResult(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    messages: int
    seconds: float
    """From the first to the last message."""
    cpu_seconds: float
    order: str = ""
    """Digest of the order of all bundles."""
    problem: str = ""
    latencies_us: list[int] = []


def stamped(size: int) -> bytes:
    """A payload that says when it was made."""
    return time.monotonic_ns().to_bytes(STAMP_BYTES, "little").ljust(size, b".")
