"""What a stamper tells the ring when it uses the token: how far this daemon is, and what the turn is for."""

from __future__ import annotations

from typing import NamedTuple

from covey.protocol.evs.frames import Chunk


class Standing(NamedTuple):
    """How far the engine is: what the token's minima are taken of."""

    line: int
    received: dict[int, int]
    site_seq: int
    stamp: int
    withdrawn_seq: int = 0
    """The number of the site's last UNINTEREST."""


class Turn(NamedTuple):
    """What the engine does with the token: packets to send, and whether others wait for anything."""

    packets: list[list[Chunk]]
    busy: bool
    """Something is undelivered or unstable here, or waits to be sent."""
    may_rest: bool = False
    """Nothing waits for the token but stability: it may stay here for a while, if nobody else sends."""
    behind: bool = False
    """This daemon's clients are told too slowly: nobody on the ring shall stamp anything."""
    parks: bool | None = None
    """Whether it is parked here if there is nothing to send; None: where the last sender is, once all is quiet."""
