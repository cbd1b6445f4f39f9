"""What membership and the exchange decide, for the engine to carry out: returned among effects, in their place.

Only what a frame leads to can hold that something of it was dropped.
"""

from __future__ import annotations

from typing import NamedTuple

from covey.cluster import SiteLink
from covey.ids import Ballot, Life
from covey.protocol.counters import Dropped
from covey.protocol.effects import Effect


class Attempt(NamedTuple):
    """A membership being formed; its ballot becomes the view id."""

    ballot: Ballot
    members: tuple[Life, ...]
    links: tuple[SiteLink, ...] = ()
    """Between the sites of the members."""


class Begin(NamedTuple):
    """Membership has promised an attempt: the view ends, and its exchange begins."""

    attempt: Attempt


class Abandon(NamedTuple):
    """The view, or the attempt, is lost."""


class Contradicted(NamedTuple):
    """A member of the attempt has declared two things."""

    sender: Life


class Planned(NamedTuple):
    """Every member of the attempt has declared what it holds."""


class SaidDone(NamedTuple):
    """We have everything, and have said so: from now on this binds us, whatever becomes of the attempt."""

    commit: frozenset[Life]


class Completed(NamedTuple):
    """Every member of the attempt is done: the view can be installed."""


Decision = Begin | Abandon | Contradicted | Planned | SaidDone | Completed
Outcome = Effect | Decision
FrameOutcome = Outcome | Dropped
