"""Where the messages of each group are wanted, in one view of several sites (rules W9, W12 to W14).

In:        who was where when the view began; INTEREST and UNINTEREST of all sites, and our own site's joins, in the
           order of their numbers as they are received.
Out:       the sites that a message goes to; whether a join may be stamped now; what our site asks for or gives up.
Not here:  stamping it (flow.py), who is in which group (groups/), heads (ordering/log.py).

A site hears of a group's messages before anybody there joins it: its INTEREST must have been received by every daemon
of the view, and the join is stamped above all that was announced since. So whatever was stamped in ignorance comes
before the join in the order. Until it is known who was where when the view began, everything goes everywhere.

Invariant: I1 what waits to be asked for is not asked for already.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from covey.cluster import Cluster
from covey.config import GROUPS_BYTES_MAX, GROUPS_MAX, Settings
from covey.names import is_private
from covey.protocol.counters import Count, Counter
from covey.protocol.values import Bundle, Kind
from covey.protocol.wire.group_names import groups_bytes

from .ordering.log import SiteLog

PRUNED_LEAST: Final = 128
"""Bytes of payload that are worth a head: less goes everywhere."""


class InterestWord(NamedTuple):
    """What our site is to say next of its interest."""

    kind: Kind
    groups: tuple[str, ...]


class Interest:
    def __init__(
        self, cluster: Cluster, settings: Settings, sites: tuple[int, ...], site: int, speaks: bool, count: Count
    ) -> None:
        self._site = site
        self._bits = {one: 1 << at for at, one in enumerate(sites)}
        self._ours = self._bits[site]
        self._all = (1 << len(sites)) - 1
        self._speaks = speaks
        self._count = count
        self._linger_us = settings.interest_linger_ms * 1_000
        self._interests_max = settings.interests_max
        self._of_daemon = {one.name: self._bits.get(one.site, 0) for one in cluster.daemons}
        self._private = lru_cache(10_000)(self._private_sites)
        self._wanted: dict[str, int] | None = None
        self._waiting: list[Bundle] = []
        """Words that were received before it was known who was where."""
        self._seen = dict.fromkeys(sites, 0)
        self._groups_of = dict.fromkeys(sites, 0)
        self.unpruned = 0
        """Sites that ask for too many groups, and so get everything."""
        self._asked_at: dict[str, int] = {}
        """Our site's INTERESTs that not everybody is known to have received, by group."""
        self._to_ask: dict[str, None] = {}
        self._given_up: dict[str, None] = {}
        """What our site gave up, since somebody asked."""
        self._everything_at = 0
        """The number of the INTEREST of ours that was too much: since then everything comes to us."""
        self.withdrawn_seq = 0
        """The number of our site's last UNINTEREST."""
        self.heard_last = 0
        """The highest stamp that another site has promised to stay above."""
        # Of the representative: when our site's groups were last joined, and since when nobody is in them.
        self._joined: dict[str, tuple[int, int]] = {}
        self._empty: dict[str, int] = {}

    @property
    def is_known(self) -> bool:
        """Whether it is known who was where when the view began."""
        return self._wanted is not None

    @property
    def unpruned_sites(self) -> list[int]:
        return [site for site, bit in self._bits.items() if self.unpruned & bit]

    # --- where messages go

    def content_sites(self, groups: tuple[str, ...], payload_bytes: int) -> int:
        """A bit for each site that needs the payload; 0 if all do, or if the head would save little."""
        wanted = self._wanted
        if wanted is None or payload_bytes < PRUNED_LEAST or payload_bytes < groups_bytes(groups):
            return 0
        sites = self._ours | self.unpruned
        for group in groups:
            sites |= self._private(group) if is_private(group) else wanted.get(group, 0)
        return 0 if sites == self._all else sites

    def _private_sites(self, address: str) -> int:
        return self._of_daemon.get(address.partition("@")[2], 0)

    # --- what is heard

    def begin(self, at_start: dict[str, int]) -> None:
        """It is known who was where when the view began; the table is ours from now on (rule W14)."""
        self._wanted = at_start
        alike = Tally(at_start.values())
        for site, bit in self._bits.items():
            self._groups_of[site] = sum(groups for sites, groups in alike.items() if sites & bit)
            if self._groups_of[site] > self._interests_max:
                self._give_everything(bit)
        waiting, self._waiting = self._waiting, []
        for bundle in waiting:
            self._hear(bundle)
        for group in [group for group in self._to_ask if self._is_ours(group)]:
            del self._to_ask[group]

    def follow(self, log: SiteLog) -> None:
        """Take what a site has said, as far as nothing before it is missing."""
        seen, upto = self._seen[log.site], log.received
        if seen == upto:
            return
        self._seen[log.site] = upto
        for number in range(seen + 1, upto + 1):
            bundle = log.bundles[number]
            if bundle.kind < Kind.JOIN:
                continue
            if bundle.kind in (Kind.INTEREST, Kind.UNINTEREST):
                self._hear(bundle) if self._wanted is not None else self._waiting.append(bundle)
            elif bundle.kind is Kind.JOIN and bundle.site == self._site and self._speaks and not self._all_is_ours:
                self._joined[bundle.groups[0]] = number, bundle.stamp
                self._empty.pop(bundle.groups[0], None)

    def _hear(self, bundle: Bundle) -> None:
        assert self._wanted is not None
        bit, is_asked = self._bits[bundle.site], bundle.kind is Kind.INTEREST
        for group in bundle.groups:
            before = self._wanted.get(group, 0)
            if is_asked and not before & bit and not self._may_grow(bundle):
                continue
            sites = before | bit if is_asked else before & ~bit
            self._groups_of[bundle.site] += ((sites & bit) > 0) - ((before & bit) > 0)
            if sites:
                self._wanted[group] = sites
            else:
                self._wanted.pop(group, None)
            if bundle.site == self._site:
                self._hear_our_own(bundle, group, is_asked)

    def _hear_our_own(self, bundle: Bundle, group: str, is_asked: bool) -> None:
        if not is_asked:
            self.withdrawn_seq = max(self.withdrawn_seq, bundle.number)
            self._asked_at.pop(group, None)
            self._joined.pop(group, None)
            self._given_up[group] = None
            return
        self._asked_at[group] = bundle.number
        self._to_ask.pop(group, None)

    def _may_grow(self, bundle: Bundle) -> bool:
        """Who asks for too much gets everything, and nobody keeps what else it asks for."""
        site, bit = bundle.site, self._bits[bundle.site]
        if self._groups_of[site] < self._interests_max and not self.unpruned & bit:
            return True
        if site == self._site:
            self._to_ask.clear()
            self._joined.clear()
            self._empty.clear()
            self._everything_at = self._everything_at or bundle.number
        self._give_everything(bit)
        return False

    def _give_everything(self, bit: int) -> None:
        if not self.unpruned & bit:
            self.unpruned |= bit
            self._count.add(Counter.INTERESTS_TOO_MANY)

    def heard_promise(self, last: int) -> None:
        self.heard_last = max(self.heard_last, last)

    # --- joins of our site

    @property
    def _all_is_ours(self) -> bool:
        return bool(self.unpruned & self._ours)

    def _is_ours(self, group: str) -> bool:
        """Whether our site has asked for it, or gets everything."""
        return self._wanted is not None and (self._all_is_ours or bool(self._wanted.get(group, 0) & self._ours))

    @property
    def heard(self) -> int:
        """How far we have heard what our own site said."""
        return self._seen[self._site]

    def take_given_up(self) -> list[str]:
        """What our site gave up since the last call."""
        if not self._given_up:
            return []
        given_up, self._given_up = list(self._given_up), {}
        return given_up

    def may_join(self, group: str, withdrawn_seq: int, received_by_all: int) -> bool:
        """Whether every daemon sends us what is for this group from now on (rule W12, a to c)."""
        if not self._is_ours(group) or self._seen[self._site] < withdrawn_seq:
            return False
        asked_at = self._asked_at.get(group, self._everything_at)
        if received_by_all < asked_at:
            return False
        if not self._speaks and group in self._asked_at:
            del self._asked_at[group]  # From now on as if it had been so when the view began.
        return True

    def want(self, group: str) -> None:
        """Somebody here is to join it."""
        if not self._is_ours(group):
            self._to_ask[group] = None

    # --- what our site says

    @property
    def has_word(self) -> bool:
        return self._wanted is not None and bool(self._to_ask)

    def next_word(self) -> InterestWord:
        """Ask for as many groups as one bundle names."""
        groups = _as_many_as_fit(self._to_ask)
        for group in groups:
            del self._to_ask[group]
        return InterestWord(Kind.INTEREST, groups)

    # --- giving up, by the representative (rule W13)

    def emptied(self, group: str, stamp: int, now_us: int) -> None:
        """The last member in our site has left, as told up to this stamp. Who joined after that is not told of yet."""
        if self._speaks and not self._all_is_ours and self._joined.get(group, (0, 0))[1] < stamp:
            self._empty[group] = now_us + self._linger_us

    def next_withdrawal_us(self) -> int | None:
        return next(iter(self._empty.values()), None)

    def withdrawal(self, site_seq: int, now_us: int) -> InterestWord | None:
        """Groups that nobody in our site has joined for so long; only where all that our site stamped is here."""
        if not self._empty or self._wanted is None or self._seen[self._site] < site_seq:
            return None
        due: list[str] = []
        for group, at in list(self._empty.items()):
            if at > now_us or len(due) == GROUPS_MAX:
                break
            del self._empty[group]
            if self._is_ours(group) and not self._is_awaited(group):
                due.append(group)
        if not due:
            return None
        groups = _as_many_as_fit(due)
        self._empty = dict.fromkeys(due[len(groups) :], now_us) | self._empty
        return InterestWord(Kind.UNINTEREST, groups)

    def keep(self, groups: tuple[str, ...], now_us: int) -> None:
        """They could not be given up in this turn."""
        self._empty = dict.fromkeys(groups, now_us) | self._empty

    def _is_awaited(self, group: str) -> bool:
        """Whether somebody has asked for it who has not joined yet."""
        asked_at = self._asked_at.get(group)
        return asked_at is not None and self._joined.get(group, (0, 0))[0] < asked_at

    def check(self) -> None:
        assert not any(map(self._is_ours, self._to_ask)), "I1"


def _as_many_as_fit(groups: Iterable[str]) -> tuple[str, ...]:
    chosen: list[str] = []
    size = 0
    for group in groups:
        size += groups_bytes((group,))
        if len(chosen) == GROUPS_MAX or size > GROUPS_BYTES_MAX:
            break
        chosen.append(group)
    return tuple(chosen)
