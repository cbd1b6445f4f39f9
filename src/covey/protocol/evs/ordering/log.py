"""The bundles of one site in one view: what is held, what is gap-free, how far the site's stamps are known.

In:        bundles and announcements, in any order.
Out:       `gap_free` (numbers 1 … gap_free are held, or were), `frontier` (rule R2: no bundle of this site that we have
           not got has a stamp up to here).
Not here:  delivery (order.py), what others hold (stability.py).

Invariants: J1 every number in low+1 … gap_free is held; J2 gap_free + 1 is not held; J3 the frontier never falls.
"""

from __future__ import annotations

import itertools

from covey.ids import INFINITE
from covey.protocol.values import Announcement, Bundle, SiteDeclaration


class SiteLog:
    def __init__(self, site: int) -> None:
        self.site = site
        self.bundles: dict[int, Bundle] = {}
        self.low = 0
        self.gap_free = 0
        self.frontier = 0
        # The newest two announcements whose bundles are not all here yet.
        self._waiting: list[Announcement] = []
        self._checked_frontier = 0

    def add(self, bundle: Bundle) -> bool:
        """Take a bundle; False if it was here already."""
        number = bundle.number
        if number <= self.gap_free or number in self.bundles:
            return False
        self.bundles[number] = bundle
        if number == self.gap_free + 1:
            self._advance()
        return True

    def announce(self, announcement: Announcement) -> None:
        if announcement.last <= self.frontier:
            return
        if announcement.number <= self.gap_free:
            self.frontier = announcement.last
            return
        self._waiting = sorted({*self._waiting, announcement})[-2:]

    def raise_frontier(self, frontier: int) -> None:
        self.frontier = max(self.frontier, frontier)

    def discard(self, number: int) -> None:
        """Let go of bundles up to `number` (everyone has them) that have left the order here."""
        upto, bundles = min(number, self.gap_free), self.bundles
        while self.low < upto and bundles[self.low + 1].passed:
            self.low += 1
            del bundles[self.low]

    def declaration(self) -> SiteDeclaration:
        extras = tuple(sorted((n, b.stamp) for n, b in self.bundles.items() if n > self.gap_free))
        return SiteDeclaration(self.site, self.low, self.gap_free, self.frontier, extras, tuple(self._waiting))

    def check(self) -> None:
        assert all(number in self.bundles for number in range(self.low + 1, self.gap_free + 1)), "J1"
        assert self.gap_free + 1 not in self.bundles, "J2"
        assert self._checked_frontier <= self.frontier <= INFINITE, "J3"
        self._checked_frontier = self.frontier
        stamps = [self.bundles[number].stamp for number in sorted(self.bundles)]
        assert all(a < b for a, b in itertools.pairwise(stamps)), "stamps grow with numbers"

    def _advance(self) -> None:
        while (bundle := self.bundles.get(self.gap_free + 1)) is not None:
            self.gap_free += 1
            self.frontier = max(self.frontier, bundle.stamp)
        if self._waiting:
            for announcement in [one for one in self._waiting if one.number <= self.gap_free]:
                self._waiting.remove(announcement)
                self.frontier = max(self.frontier, announcement.last)
