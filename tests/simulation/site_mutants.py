"""Planted bugs of several sites, switched on by name in tests only. Each must be caught by the guarantee it names."""

from __future__ import annotations

from typing import Any

import msgspec

from covey.ids import Ballot, Life
from covey.protocol.counters import Dropped
from covey.protocol.effects import Effect
from covey.protocol.evs.announcing import Announcer
from covey.protocol.evs.decisions import FrameOutcome
from covey.protocol.evs.exchange import Exchange
from covey.protocol.evs.frames import PassedOn
from covey.protocol.evs.links.links import Links
from covey.protocol.evs.links.relay import Relay
from covey.protocol.evs.links.ring import Ring
from covey.protocol.evs.stamping import token
from covey.protocol.evs.ways import Handed, Ways
from covey.protocol.values import Announcement

from .mutants import Mutant


def _nothing(right: Any) -> Any:
    return lambda self, chunks: None


def _announce_at_once(right: Any) -> Any:
    def announce(self: token.TokenStamper, now_us: int) -> list[Effect]:
        if self.ring.holding is not None:
            return right(self, now_us)  # type: ignore[no-any-return]
        own = Announcement(self.site_seq, max(self.stamp, self._kit.clock.now(now_us)))
        line, received = self.ring.line_everywhere.usable, self._received_here()
        return self._announcer.announce(own, line, received, False, False, now_us)

    return announce


def _received_is_line(right: Any) -> Any:
    def standing(self: token.TokenStamper) -> Any:
        return right(self)._replace(line=max(self._flow.order.line(), self._flow.order._highest))

    return standing


def _lowest_of_all_begins(right: Any) -> Any:
    def start(self: token.TokenStamper, now_us: int) -> list[Effect]:
        self.ring.is_first = self.ring.is_first and self._kit.me == self._flow.members[0]
        return right(self, now_us)  # type: ignore[no-any-return]

    return start


def _own_costs(right: Any) -> Any:
    def take_trees(self: Relay, links: Any, speaks: dict[int, int]) -> None:
        right(self, [link._replace(cost=link.cost + 9 * ((link.one + self.site) % 2)) for link in links], speaks)

    return take_trees


def _told_nobody(right: Any) -> Any:
    def on_announce(self: Announcer, frame: Any, now_us: int) -> list[Effect]:
        mates, self._relay.mates = self._relay.mates, ()
        try:
            return right(self, frame, now_us)  # type: ignore[no-any-return]
        finally:
            self._relay.mates = mates

    return on_announce


def _passes_nothing_on(right: Any) -> Any:
    """What another daemon of our site, or another site, has said goes no further."""

    def passed(self: Ways, sender: Life, frame: PassedOn, now_us: int) -> Handed | Dropped:
        handed = right(self, sender, frame, now_us)
        return handed if isinstance(handed, Dropped) else handed._replace(effects=[])

    return passed


def _all_but_one(right: Any) -> Any:
    """A daemon plans when it has heard all but one: the last is thought to hold nothing."""

    def look(self: Exchange, now_us: int) -> list[FrameOutcome]:
        if self.plan is None and len(self._declared) == len(self.attempt.members) - 1 > 1:
            for life in self.undeclared():
                self._declared[life] = msgspec.structs.replace(self._declaration, view=Ballot(0, 0, 0))
        return right(self, now_us)  # type: ignore[no-any-return]

    return look


def _own_top(right: Any) -> Any:
    return lambda self, site, mine: mine.site_seq


SITE_MUTANTS: dict[str, Mutant] = {
    "passed on to nobody": Mutant(
        "S15", "what members of an attempt say ends on its way", Ways, "passed", _passes_nothing_on
    ),
    "planned before all have declared": Mutant(
        "S5", "a plan does not wait for the last declaration", Exchange, "_look", _all_but_one
    ),
    "announced without the token": Mutant(
        "M5", "a site's promise does not bind who stamps", token.TokenStamper, "announce", _announce_at_once
    ),
    "received is held in a ring": Mutant(
        "M6", "a site's line is what its daemons have got", token.TokenStamper, "_standing", _received_is_line
    ),
    "one token for all rings": Mutant(
        "S15", "only the lowest of the view makes a token", token.TokenStamper, "start", _lowest_of_all_begins
    ),
    "its own ring is forgotten": Mutant(
        "S13",
        "what comes from elsewhere stays with who speaks",
        token.TokenStamper,
        "relay",
        lambda right: lambda self, chunks: None,
    ),
    "one child is forgotten": Mutant(
        "S13",
        "a site is left out where ways part",
        Links,
        "_by_way",
        lambda right: lambda self, source, chunks: [(to[:1], some) for to, some in right(self, source, chunks)],
    ),
    "trees of one's own": Mutant("blame", "daemons weigh links differently", Relay, "_take_trees", _own_costs),
    "announcements end at the representative": Mutant(
        "S13", "ring-mates never hear how far other sites are", Announcer, "on_announce", _told_nobody
    ),
}

SITE_STORY_MUTANTS: dict[str, tuple[Mutant, str]] = {
    "nobody misses what our site has not sent": (
        Mutant("S15", "floors of another site's bundles have our own top", Ring, "_top", _own_top),
        "ring_mate_of_a_lost_representative",
    ),
}
