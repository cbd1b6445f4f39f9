"""What a stamper is: it gives what waits its number and stamp when it is its turn, and sends it."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from covey.protocol.counters import Dropped
from covey.protocol.effects import Effect
from covey.protocol.evs.frames import Ack, Chunk, Data, Hurry, Parked, Token

SiteFrame = Token | Parked | Hurry | Ack
"""What the daemons of one site say to one another besides data."""


class Stamper(Protocol):
    site_seq: int
    """The number of our site's last bundle, as far as this daemon knows."""
    stamp: int
    """No bundle of our site will be stamped at or below this, as far as this daemon may say so."""

    withdrawn_seq: int
    """The number of our site's last UNINTEREST, likewise."""

    def start(self, now_us: int) -> list[Effect]: ...

    def submitted(self, now_us: int) -> list[Effect]:
        """Something waits in the queue."""

    def progress(self, now_us: int) -> list[Effect]:
        """Deliver what may be delivered, and send on where a window has opened."""

    def hasten(self, now_us: int) -> list[Effect]:
        """We stop as soon as we are settled: let nothing wait that helps."""

    def announce(self, now_us: int) -> list[Effect]:
        """Tell the other sites how far ours is, as soon as we may."""

    def relay(self, chunks: tuple[Chunk, ...]) -> Dropped | None:
        """What has come from another site goes to all of ours."""

    def arrived(self, sender: int, frame: Data, datagram: bytes, now_us: int) -> tuple[Chunk, ...] | Dropped:
        """The pieces of a packet from our own site that are new."""

    def on_site_frame(self, sender: int, frame: SiteFrame, now_us: int) -> list[Effect | Dropped]: ...

    def on_deadline(self, deadline: Enum, now_us: int) -> list[Effect]: ...

    def snapshot(self) -> dict[str, object]: ...

    def check(self) -> None: ...
