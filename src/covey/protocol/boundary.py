"""What an ordering engine is to the daemon around it: it orders what waits in the queue, and agrees on views.

In:        frames of its own kind, deadlines of its own kind, that something waits in the queue.
Out:       effects, in the order to perform them.
Not here:  any engine (evs/), clients and groups (clients.py, groups/), datagrams that are not frames (datagrams.py).

An engine shares with its daemon the context, the queue of submissions, and the book of what local sessions have joined,
which it shows to daemons from other views. All else passes through these methods.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple, Protocol

from covey.ids import Ballot, Life
from covey.protocol.status import LinkStatus, PeerStatus

from .counters import Dropped
from .effects import Effect
from .inputs import Submit
from .values import GroupNews


class Header(NamedTuple):
    """A datagram that was understood: who sent it, and what it says to the engine."""

    sender: Life
    frame: Any


class EngineReport(NamedTuple):
    """Where an engine stands."""

    state: str
    reason: str
    view: Ballot
    members: tuple[Life, ...]
    working: bool
    link: LinkStatus
    peers: list[PeerStatus]
    strangers: list[str]
    undelivered: int
    """Bundles that are ordered, or may be, and were not delivered here."""
    joining: tuple[Life, ...] = ()
    """The members of the next view, once it is known what everybody has of the last."""
    held_down_us: int = 0
    """How long until nobody is kept waiting to be merged: it will happen without anything being heard."""


class OrderingEngine(Protocol):
    @property
    def is_working(self) -> bool:
        """Whether there is a view in which messages are ordered now."""

    @property
    def is_changing(self) -> bool:
        """Whether another view is being sought: this one has ended, or somebody may be taken in."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing of this daemon waits, and everybody has what was sent."""

    def start(self, now_us: int) -> list[Effect]: ...

    def decode(self, data: bytes) -> Header:
        """FrameError if it is no frame, or not one of this cluster."""

    def comes_last(self, frame: Any) -> bool:
        """Whether a frame is looked at only after all others that came with it."""

    def on_frame(self, sender: Life, frame: Any, data: bytes, now_us: int) -> list[Effect | Dropped]:
        """What follows from it; and if something of it was not taken, why, each time."""

    def on_deadline(self, deadline: Enum, now_us: int) -> list[Effect]: ...

    def on_peer_refused(self, rank: int, now_us: int) -> list[Effect]: ...

    def submitted(self, now_us: int) -> list[Effect]:
        """Something waits in the queue."""

    def send_unreliable(self, submit: Submit) -> list[Effect]: ...

    def on_group_news(self, news: GroupNews, now_us: int) -> None:
        """Who was in which group when a view of several sites began, and where nobody of our site is any more."""

    def hold_back(self, behind: bool) -> None:
        """While clients of this daemon are behind, it sends nothing and asks the others to send less."""

    def hasten(self, now_us: int) -> list[Effect]:
        """The daemon stops when it is settled: nothing that helps it to be so is put off from now on."""

    def progress(self, now_us: int) -> list[Effect]:
        """All frames of a step but the last ones were taken: deliver what may be delivered."""

    def last_words(self) -> list[Effect]:
        """What to send when the daemon stops in good order."""

    def report(self, now_us: int) -> EngineReport: ...

    def check(self, full: bool) -> None:
        """Assert the invariants: cheap ones, or all."""
