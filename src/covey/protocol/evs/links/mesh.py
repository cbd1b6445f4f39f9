"""Sites of one daemon each, every one linked with every other by a reliable link that may reorder.

The only daemon of a site stamps by itself; announcements tell the other sites how far it is (rules R1, R2, R6).

In:        the view's other daemons; progress of our own order; announcements.
Out:       numbers and stamps, data and announcement frames to send, when to announce next.
Not here:  delivery and stability themselves (ordering/).

Invariant: M1 no stamp is at or below one used or promised before.
"""

from __future__ import annotations

from covey.config import Settings
from covey.ids import Ballot
from covey.protocol.deadlines import DeadlineTable
from covey.protocol.evs.deadlines import EvsDeadline
from covey.protocol.evs.frames import Announce


class Mesh:
    def __init__(self, view: Ballot, site: int, others: tuple[int, ...], stamp: int, settings: Settings) -> None:
        self.view = view
        self.site = site
        self.others = others
        self.site_seq = 0
        self.stamp = stamp
        self._settings = settings
        self._checked = (0, stamp)
        self._announced_us = 0
        self._active_us = 0

    def next_stamp(self, clock: int) -> tuple[int, int]:
        """The number and stamp of our next bundle."""
        self.site_seq += 1
        self.stamp = max(self.stamp + 1, clock)
        return self.site_seq, self.stamp

    def promise(self, clock: int) -> int:
        """Announcing is a stamping act: we shall never stamp at or below this again."""
        self.stamp = max(self.stamp, clock)
        return self.stamp

    def window(self, stable: int) -> int:
        """How many more bundles may be under way."""
        return self._settings.source_bundles_unstable - (self.site_seq - stable)

    def want_announcement(self, now_us: int, deadlines: DeadlineTable) -> None:
        """Something happened that the others wait to hear of: announce as soon as the gap allows."""
        if not self.others:
            return
        self._active_us = now_us
        at = max(now_us, self._announced_us + self._settings.announce_gap_ms * 1_000)
        current = deadlines.at(EvsDeadline.ANNOUNCE)
        if current is None or current > at:
            deadlines.set(EvsDeadline.ANNOUNCE, at)

    def announcement(self, line: int, received: dict[int, int], quiet: bool) -> Announce:
        return Announce(self.view, self.site, self.site_seq, self.stamp, line, tuple(sorted(received.items())), quiet)

    def announced(self, now_us: int, quiet: bool, deadlines: DeadlineTable) -> None:
        """Go on announcing while anything is unstable, or was recently; then fall silent."""
        interval = self._settings.announce_interval_ms * 1_000
        self._announced_us = now_us
        if not quiet or now_us < self._active_us + 5 * interval:
            deadlines.set(EvsDeadline.ANNOUNCE, now_us + interval)

    def check(self) -> None:
        number, stamp = self._checked
        assert self.stamp > stamp if self.site_seq > number else self.stamp >= stamp, "M1"
        self._checked = (self.site_seq, self.stamp)
