"""Identifiers shared by every part: small tuples that compare, hash and travel as arrays."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

from msgspec import Meta

INFINITE: Final = 1 << 62
"""A stamp above every stamp: the frontier of a site from which nothing more can come."""

Natural = Annotated[int, Meta(ge=0, lt=1 << 62)]
"""What a number of the protocol can be; anything else on the wire is malformed."""

Rank = Annotated[int, Meta(ge=0, lt=1_024)]
"""A daemon's number in the cluster's list."""


class Life(NamedTuple):
    """One life of one daemon: its configured rank, and the boot id of this incarnation."""

    rank: Rank
    boot: Natural


class Ballot(NamedTuple):
    """The id of an attempt to form a view, and of the view if the attempt succeeds.

    The counter is larger than any its proposer has seen, so ids never collide and grow at each daemon (S3).

    >>> Ballot(7, 0, 3) < Ballot(8, 0, 1)
    True
    >>> str(Ballot(7, 0, 3))
    '7.0.3'
    """

    counter: Natural
    proposer: Rank
    boot: Natural

    @property
    def proposer_life(self) -> Life:
        return Life(self.proposer, self.boot)

    def __str__(self) -> str:
        return f"{self.counter}.{self.proposer}.{self.boot}"


class Instant(NamedTuple):
    """What time it is, in microseconds: a monotonic time for waiting, a wall time for people."""

    mono_us: int
    wall_us: int
