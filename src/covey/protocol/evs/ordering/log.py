"""The bundles of one site in one view: what was received, what is held, how far the site's stamps are known.

In:        bundles and announcements, in any order; what each site is known to have received.
Out:       `received` (numbers 1 … received are here, or were, some perhaps as heads), `gap_free` (the same of what is
           held), `frontier` (rule R2: no bundle of this site that is not held has a stamp up to here).
Not here:  delivery (order.py), what others hold (stability.py).

A bundle is *held* with its content; or as a head, once every site that needs the content is known to have received it
(rule W10). Two gap-free numbers, never mixed: order and recovery go by what is held; windows and discarding by what
was received.

Invariants: J1 every number in low+1 … received is here; J2 received + 1 is not here; J3 the frontier never falls;
J4 gap_free + 1 is not held, and gap_free is at most received.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from covey.ids import INFINITE
from covey.protocol.bits import to_bits
from covey.protocol.values import ANNOUNCEMENTS_MAX, Announcement, Bundle, SiteDeclaration


class SiteLog:
    def __init__(self, site: int) -> None:
        self.site = site
        self.bundles: dict[int, Bundle] = {}
        self.heads: dict[int, Bundle] = {}
        """Those of them that do not count yet: the content is not known to be where it is needed."""
        self.low = 0
        self.received = 0
        self.gap_free = 0
        self.frontier = 0
        # Announcements whose bundles are not all held yet: the newest of each number.
        self._waiting: list[Announcement] = []
        self._checked_frontier = 0

    def add(self, bundle: Bundle, counts: bool = True) -> bool:
        """Take a bundle; False if it was here already. One that does not count is received, and not held."""
        number = bundle.number
        if number <= self.received or number in self.bundles:
            return False
        self.bundles[number] = bundle
        if not counts:
            self.heads[number] = bundle
        if number == self.received + 1:
            self._receive()
            self._advance()
        return True

    def count(self, is_held: Callable[[Bundle], bool]) -> list[Bundle]:
        """Of the heads, those that are held from now on, in their order."""
        counted = [self.heads[number] for number in sorted(self.heads) if is_held(self.heads[number])]
        for bundle in counted:
            del self.heads[bundle.number]
        if counted:
            self._advance()
        return counted

    def recover(self, bundle: Bundle) -> bool:
        """Take one that was resent, also in place of a head that did not count; False if it was held already."""
        if self.heads.pop(bundle.number, None) is None:
            return self.add(bundle)
        self.bundles[bundle.number] = bundle
        self._advance()
        return True

    def announce(self, announcement: Announcement) -> None:
        if announcement.last <= self.frontier:
            return
        if announcement.number <= self.gap_free:
            self.frontier = announcement.last
            return
        others = [one for one in self._waiting if one.number != announcement.number]
        newest = max([announcement, *(one for one in self._waiting if one.number == announcement.number)])
        waiting = sorted([*others, newest])
        self._waiting = (
            [*waiting[: ANNOUNCEMENTS_MAX - 1], waiting[-1]] if len(waiting) > ANNOUNCEMENTS_MAX else waiting
        )

    def raise_frontier(self, frontier: int) -> None:
        self.frontier = max(self.frontier, frontier)

    def discard(self, number: int) -> None:
        """Let go of bundles up to `number` (everyone has them) that have left the order here."""
        upto, bundles = min(number, self.gap_free), self.bundles
        while self.low < upto and bundles[self.low + 1].passed:
            self.low += 1
            del bundles[self.low]

    def declaration(self) -> SiteDeclaration:
        """Of what is held: a head that does not count does not exist when the view ends (rule W11)."""
        held = [number for number in self.bundles if number > self.gap_free and number not in self.heads]
        extras = to_bits(held, self.gap_free + 1)
        return SiteDeclaration(self.site, self.low, self.gap_free, self.frontier, extras, tuple(self._waiting))

    def check(self) -> None:
        assert all(number in self.bundles for number in range(self.low + 1, self.received + 1)), "J1"
        assert self.received + 1 not in self.bundles, "J2"
        assert self._checked_frontier <= self.frontier <= INFINITE, "J3"
        assert self.low <= self.gap_free <= self.received, "J4"
        assert self.gap_free == self.received or self.gap_free + 1 in self.heads, "J4"
        self._checked_frontier = self.frontier
        stamps = [self.bundles[number].stamp for number in sorted(self.bundles)]
        assert all(a < b for a, b in itertools.pairwise(stamps)), "stamps grow with numbers"

    def _receive(self) -> None:
        while self.received + 1 in self.bundles:
            self.received += 1

    def _advance(self) -> None:
        before, at, heads, upto = self.gap_free, self.gap_free, self.heads, self.received
        while at < upto and at + 1 not in heads:
            at += 1
        if at > before:
            self.gap_free = at
            self.frontier = max(self.frontier, self.bundles[at].stamp)
        if self._waiting:
            for announcement in [one for one in self._waiting if one.number <= at]:
                self._waiting.remove(announcement)
                self.frontier = max(self.frontier, announcement.last)
