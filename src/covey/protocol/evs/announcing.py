"""Announcements between sites (rule R6): when to tell the other sites how far ours is, and what theirs change here.

In:        that something happened which they wait to hear of; announcements of other sites.
Out:       announcement frames; when to announce next.
Not here:  how far a site is (stamping/), what follows from it (ordering/).
"""

from __future__ import annotations

from covey.protocol.effects import Effect
from covey.protocol.values import Announcement

from .deadlines import EvsDeadline
from .flow import Flow
from .frames import Announce


class Announcer:
    """It falls silent where nothing is unstable; in a view of one site it never speaks."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._kit = flow.kit
        self.others = tuple(life.rank for life in flow.members if flow.kit.site_of(life) != flow.kit.site)
        self._announced_us = 0
        self._active_us = 0

    def want(self, now_us: int) -> None:
        """Something happened that the others wait to hear of: announce as soon as the gap allows."""
        if not self.others:
            return
        self._active_us = now_us
        at = max(now_us, self._announced_us + self._kit.settings.announce_gap_ms * 1_000)
        current = self._kit.deadlines.at(EvsDeadline.ANNOUNCE)
        if current is None or current > at:
            self._kit.deadlines.set(EvsDeadline.ANNOUNCE, at)

    def want_in_time(self, now_us: int) -> None:
        """Our line has risen, and something is unstable: the others learn of it within an interval."""
        if self.others:
            self._kit.deadlines.set_if_clear(EvsDeadline.ANNOUNCE, now_us + self._interval_us)

    def announce(self, own: Announcement, received: dict[int, int], now_us: int) -> list[Effect]:
        """Tell the others how far our site is, and go on while anything is unstable, or was recently."""
        flow, quiet = self._flow, self._flow.is_settled
        known = tuple(sorted(received.items()))
        frame = Announce(flow.view, self._kit.site, own.number, own.last, flow.order.line(), known, quiet)
        self._announced_us = now_us
        if not quiet or now_us < self._active_us + 5 * self._interval_us:
            self._kit.deadlines.set(EvsDeadline.ANNOUNCE, now_us + self._interval_us)
        return [self._kit.send(self.others, frame)]

    def on_announce(self, frame: Announce, now_us: int) -> None:
        order = self._flow.order
        order.announce(frame.site, Announcement(frame.number, frame.last))
        order.stability.raise_line(frame.site, frame.line)
        for source, number in frame.received:
            if source in order.logs:
                order.stability.raise_received(frame.site, source, number)
        if not frame.quiet:
            self.want(now_us)

    @property
    def _interval_us(self) -> int:
        return self._kit.settings.announce_interval_ms * 1_000
