"""Announcements between sites (rules R6, W6): when to tell the others how far our site is, and what theirs change here.

In:        that something happened which they wait to hear of; announcements of other sites.
Out:       announcement frames; when to announce next.
Not here:  how far a site is, and who may say so (stamping/), what follows from it (ordering/).

Representatives announce, along the tree of their site. Each passes on what it hears, to its children and to its ring.
"""

from __future__ import annotations

from covey.protocol.counters import Counter, Dropped
from covey.protocol.effects import Effect
from covey.protocol.evs.links.relay import Relay
from covey.protocol.values import Announcement

from .deadlines import EvsDeadline
from .flow import Flow
from .frames import Announce


class Announcer:
    """It falls silent where nothing is unstable; where we do not speak for our site, it never speaks."""

    def __init__(self, flow: Flow, relay: Relay) -> None:
        self._flow = flow
        self._kit = flow.kit
        self._relay = relay
        self._announced_us = 0
        self._active_us = 0

    def want(self, now_us: int) -> None:
        """Something happened that the others wait to hear of: announce as soon as the gap allows."""
        if not self._relay.speaks:
            return
        self._active_us = now_us
        at = max(now_us, self._announced_us + self._kit.settings.announce_gap_ms * 1_000)
        current = self._kit.deadlines.at(EvsDeadline.ANNOUNCE)
        if current is None or current > at:
            self._kit.deadlines.set(EvsDeadline.ANNOUNCE, at)

    def want_in_time(self, now_us: int) -> None:
        """Our line has risen, and something is unstable: the others learn of it within an interval."""
        if self._relay.speaks:
            self._kit.deadlines.set_if_clear(EvsDeadline.ANNOUNCE, now_us + self._interval_us)

    def announce(
        self, own: Announcement, line: int, received: dict[int, int], quiet: bool, behind: bool, now_us: int
    ) -> list[Effect]:
        """Tell the others how far our site is, and go on while anything is unstable, or was recently."""
        known = tuple(sorted(received.items()))
        frame = Announce(self._flow.view, self._kit.site, own.number, own.last, line, known, quiet, behind)
        self._announced_us = now_us
        if not quiet or now_us < self._active_us + 5 * self._interval_us:
            self._kit.deadlines.set(EvsDeadline.ANNOUNCE, now_us + self._interval_us)
        return [self._kit.send(self._relay.children(self._kit.site), frame)]

    def why_not(self, sender: int, frame: Announce) -> Dropped | None:
        """Why it is not taken: of our own site, or from somebody through whom it does not come."""
        if frame.site == self._kit.site or self._relay.comes_from(frame.site) != sender:
            return Dropped(Counter.FRAME_WRONG_WAY)
        return None

    def on_announce(self, frame: Announce, now_us: int) -> list[Effect]:
        order = self._flow.order
        order.announce(frame.site, Announcement(frame.number, frame.last))
        if self._flow.interest is not None:
            self._flow.interest.heard_promise(frame.last)
        order.stability.raise_line(frame.site, frame.line)
        order.stability.note_behind(frame.site, frame.behind, self._kit.site)
        for source, number in frame.received:
            if source in order.logs:
                order.raise_received(frame.site, source, number)
        if not frame.quiet:
            self.want(now_us)
        if not self._relay.speaks:
            return []
        to = self._relay.children(frame.site) + self._relay.mates
        return [self._kit.send(to, frame)] if to else []

    @property
    def _interval_us(self) -> int:
        return self._kit.settings.announce_interval_ms * 1_000
