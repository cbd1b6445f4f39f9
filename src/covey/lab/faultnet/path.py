"""What may happen to the packets that go from one host to another, and the count of what did.

In:        options.  Out: values, checked when they are made.
Not here:  how it happens (lane.py).
"""

from __future__ import annotations

from typing import Final

import msgspec

from covey.errors import ConfigError, CoveyError

DELAY_MS_MAX: Final = 60_000.0
"""What is under way is held in memory: nobody needs more than a minute."""


class FaultNetError(CoveyError):
    """The bench cannot work here, or its router is gone; the text says why."""


class Path(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What happens to packets from one host to another. The default is nothing: they arrive at once."""

    delay_ms: float = 0.0
    """Each packet takes at least this long."""
    jitter_ms: float = 0.0
    """And up to this much longer, evenly spread and drawn anew for each packet: so packets overtake one another."""
    rate_bytes_per_s: int = 0
    """How fast packets leave, one after the other; 0 is unlimited. Headers count."""
    queue_bytes: int = 65_536
    """With a rate: how much may wait or be leaving. What comes on top is lost; an idle path takes any packet."""
    loss: float = 0.0
    """The share of packets that are lost, each by its own draw."""
    duplication: float = 0.0
    """The share of packets that arrive twice. The copy has a jitter of its own, and is not subject to the rate."""
    cut: bool = False
    """Nothing passes. What is under way when a path is cut still arrives."""

    def __post_init__(self) -> None:
        for name in ("loss", "duplication"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise ConfigError(f"{name} is a share of packets, and {share} is none: write a number from 0 to 1")
        for name in ("delay_ms", "jitter_ms"):
            delay_ms = getattr(self, name)
            if not 0 <= delay_ms <= DELAY_MS_MAX:
                raise ConfigError(f"{name} is {delay_ms}: write milliseconds, from 0 to {DELAY_MS_MAX:g}")
        for name in ("rate_bytes_per_s", "queue_bytes"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name)}: write a number of bytes, 0 or more")


class Counters(msgspec.Struct, array_like=True):
    """What became of the packets from one host to another, since the bench began.

    Once nothing is under way, all that was sent is `carried - duplicated + lost + cut + queue_full + refused`.
    """

    carried: int = 0
    """Given to the receiving host, copies included."""
    lost: int = 0
    cut: int = 0
    queue_full: int = 0
    duplicated: int = 0
    """How many copies were made."""
    refused: int = 0
    """Not taken by the receiving host: its device is down."""
