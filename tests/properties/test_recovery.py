"""How a view ends among those who move on together: whatever each of them held, they deliver the same, split alike.

A small world without membership: daemons stamp, announce and receive at random, then some of them move on. They
declare, resend to one another what is missing, and finish.
One site of several daemons, or several sites of one daemon each.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.ids import Ballot, Life
from covey.protocol.counters import Count, Dropped
from covey.protocol.evs.ordering.log import SiteLog
from covey.protocol.evs.ordering.order import ViewOrder
from covey.protocol.evs.ordering.recovery import Holdings, RecoveryPlan, make_plan, missing
from covey.protocol.values import Announcement, Bundle, Delivery, Service
from tests.properties.streams import STRONG, Source, breaks_fifo, fresh, name

VIEW = Ballot(1, 0, 1)
SEED = st.integers(0, 2**32)


class Site:
    """What the holder of a site's token knows: the last number and the last stamp used or promised."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.sequence = 0
        self.stamp = 0


class Daemon:
    def __init__(self, rank: int, site: Site, sites: int, random: Random) -> None:
        self.life = Life(rank, 1)
        self.site = site
        self.source = Source(self.life, site.number, random)
        self.order = ViewOrder(VIEW, tuple(range(sites)), self.life, Count())
        self.clock = 0
        self.in_view: list[Delivery] = []
        self.before: list[Delivery] = []
        self.after: list[Delivery] = []
        self.commit = frozenset([self.life])

    @property
    def delivered(self) -> list[Delivery]:
        return self.in_view + self.before + self.after

    def strong_before_the_signal(self) -> list[tuple[int, int]]:
        return [name(one) for one in self.in_view + self.before if one.bundle.service in STRONG]

    def strong(self) -> list[tuple[int, int]]:
        return [name(one) for one in self.delivered if one.bundle.service in STRONG]

    def take(self, bundle: Bundle) -> None:
        self.clock = max(self.clock, bundle.stamp)
        early = self.order.add(fresh(bundle))
        self.in_view += [] if isinstance(early, Dropped) else early

    def hold_token(self) -> None:
        self.order.announce(self.site.number, Announcement(self.site.sequence, self.site.stamp))


class SmallWorld:
    def __init__(self, seed: int, *, sites: int, daemons_per_site: int) -> None:
        self.random = random = Random(seed)
        self.sites = [Site(number) for number in range(sites)]
        self.daemons = [
            Daemon(rank, self.sites[rank // daemons_per_site], sites, random)
            for rank in range(sites * daemons_per_site)
        ]
        self.under_way: list[tuple[Daemon, Bundle | Announcement, int]] = []
        for _ in range(random.randrange(60)):
            self._happen()
        self.movers = sorted(random.sample(self.daemons, random.randrange(1, len(self.daemons) + 1)), key=rank_of)

    # --- the view works

    def _happen(self) -> None:
        daemon = self.random.choice(self.daemons)
        happening = self.random.choice(
            [self._stamp, self._announce, self._arrive, self._arrive, self._arrive, self._hear]
        )
        happening(daemon)
        daemon.in_view += daemon.order.deliver()
        daemon.order.discard()
        daemon.order.check(full=True)

    def _stamp(self, daemon: Daemon) -> None:
        site = daemon.site
        daemon.hold_token()
        site.sequence += 1
        site.stamp = max(site.stamp, daemon.clock) + self.random.randrange(1, 4)
        bundle = daemon.source.next_bundle(site.sequence, site.stamp)
        daemon.take(bundle)
        self.under_way += [(other, bundle, site.number) for other in self.daemons if other is not daemon]

    def _announce(self, daemon: Daemon) -> None:
        """Announcing is a stamping act."""
        site = daemon.site
        site.stamp = max(site.stamp, daemon.clock)
        daemon.hold_token()
        announcement = Announcement(site.sequence, site.stamp)
        self.under_way += [(other, announcement, site.number) for other in self.daemons if other is not daemon]

    def _arrive(self, daemon: Daemon) -> None:
        coming = [entry for entry in self.under_way if entry[0] is daemon]
        if not coming:
            return
        entry = self.random.choice(coming)
        self.under_way.remove(entry)
        _, what, site = entry
        if isinstance(what, Bundle):
            daemon.take(what)
        else:
            daemon.order.announce(site, what)

    def _hear(self, daemon: Daemon) -> None:
        """How far the daemons of some site are now, and of our own site: the minimum over its daemons."""
        for site in {daemon.site.number, self.random.randrange(len(self.sites))}:
            there = [other.order for other in self.daemons if other.site.number == site]
            daemon.order.stability.raise_line(site, min(order.line() for order in there))
            for source in daemon.order.logs:
                received = min(order.logs[source].gap_free for order in there)
                daemon.order.stability.raise_received(site, source, received)

    # --- and ends

    def exchange(self, movers: list[Daemon], done: list[Daemon]) -> RecoveryPlan:
        """One attempt: declare and resend. Whoever is done has all of it; the others got only some."""
        declarations = {}
        for mover in movers:
            mover.order.freeze()
            declarations[mover.life] = mover.order.declare(mover.clock, mover.commit)
        left = {daemon.site.number for daemon in self.daemons if daemon not in movers}
        plan = make_plan(declarations, [site.number for site in self.sites if site.number not in left])
        for mover in movers:
            wanted = missing(plan, declarations[mover.life])
            self.random.shuffle(wanted)
            for site, number in wanted if mover in done else wanted[::2]:
                holder = self.daemons[Holdings(declarations).holders(site, number)[0].rank]
                assert mover.order.recover(resent(holder.order.logs[site].bundles[number])) is None
        for mover in done:
            mover.order.be_done(plan)
            mover.commit = plan.commit
        return plan

    def end(self, movers: list[Daemon] | None = None) -> RecoveryPlan:
        """An attempt that succeeds."""
        together = self.movers if movers is None else movers
        plan = self.exchange(together, together)
        for mover in together:
            mover.before, mover.after = mover.order.finish(plan)
        return plan

    def some(self, daemons: list[Daemon]) -> list[Daemon]:
        return [daemon for daemon in daemons if self.random.random() < 0.6]


def resent(bundle: Bundle) -> Bundle:
    """As it comes over the network: its receiver has not delivered it."""
    copy = fresh(bundle)
    copy.passed = False
    return copy


def holds(log: SiteLog, number: int) -> bool:
    """It is here, or was."""
    return number <= log.gap_free or number in log.bundles


def rank_of(daemon: Daemon) -> int:
    return daemon.life.rank


SHAPES = pytest.mark.parametrize(("sites", "daemons_per_site"), [(1, 2), (1, 4), (2, 1), (3, 1), (4, 1)])


def assert_same(movers: list[Daemon]) -> None:
    """Co-movers delivered the same, each of them once and in order, and split it alike."""
    first, *others = movers
    for other in others:
        assert {name(one) for one in other.delivered} == {name(one) for one in first.delivered}
        assert other.strong() == first.strong()
        assert other.strong_before_the_signal() == first.strong_before_the_signal()
    for mover in movers:
        names = [name(one) for one in mover.delivered]
        assert len(set(names)) == len(names)
        assert breaks_fifo(mover.delivered) == []
        positions = [one.bundle.position for one in mover.delivered if one.bundle.service in STRONG]
        assert positions == sorted(positions)


@SHAPES
@settings(max_examples=50)
@given(seed=SEED)
def test_those_who_move_together_deliver_the_same(seed: int, sites: int, daemons_per_site: int) -> None:
    world = SmallWorld(seed, sites=sites, daemons_per_site=daemons_per_site)
    world.end()
    assert_same(world.movers)


@SHAPES
@settings(max_examples=50)
@given(seed=SEED)
def test_those_who_move_together_deliver_the_same_after_attempts_that_failed(
    seed: int, sites: int, daemons_per_site: int
) -> None:
    world = SmallWorld(seed, sites=sites, daemons_per_site=daemons_per_site)
    for _ in range(2):
        world.exchange(world.movers, world.some(world.movers))
        world.movers = world.some(world.movers) or world.movers
    world.end()
    assert_same(world.movers)


@SHAPES
@settings(max_examples=50)
@given(seed=SEED)
def test_whoever_misses_the_view_still_delivers_what_was_safe_for_those_who_installed_it(
    seed: int, sites: int, daemons_per_site: int
) -> None:
    world = SmallWorld(seed, sites=sites, daemons_per_site=daemons_per_site)
    plan = world.exchange(world.movers, world.movers)
    installed = world.some(world.movers)
    late = [mover for mover in world.movers if mover not in installed] or world.movers
    for mover in installed:
        if mover not in late:
            mover.before, mover.after = mover.order.finish(plan)
    world.end(late)
    assert_same(late)
    for mover in installed:
        safe = {name(one) for one in mover.delivered if one.bundle.service is Service.SAFE}
        assert all(safe <= set(other.strong()) for other in late)


@SHAPES
@settings(max_examples=50)
@given(seed=SEED)
def test_a_sender_delivers_all_its_own_messages(seed: int, sites: int, daemons_per_site: int) -> None:
    world = SmallWorld(seed, sites=sites, daemons_per_site=daemons_per_site)
    own = {
        mover.life: {
            (bundle.site, bundle.number)
            for bundle in mover.order.logs[mover.site.number].bundles.values()
            if bundle.origin == mover.life and bundle.is_last_fragment
        }
        for mover in world.movers
    }
    world.end()
    for mover in world.movers:
        assert own[mover.life] <= {name(one) for one in mover.delivered}


@SHAPES
@settings(max_examples=50)
@given(seed=SEED)
def test_a_safe_message_before_the_signal_is_held_by_every_member(seed: int, sites: int, daemons_per_site: int) -> None:
    world = SmallWorld(seed, sites=sites, daemons_per_site=daemons_per_site)
    in_view = {mover.life: len(mover.in_view) for mover in world.movers}
    world.end()
    for mover in world.movers:
        for delivery in mover.in_view[: in_view[mover.life]] + mover.before:
            if delivery.bundle.service is Service.SAFE:
                site, number = name(delivery)
                assert all(holds(daemon.order.logs[site], number) for daemon in world.daemons)


@SHAPES
@settings(max_examples=50)
@given(seed=SEED)
def test_up_to_the_hole_line_nothing_is_missing(seed: int, sites: int, daemons_per_site: int) -> None:
    world = SmallWorld(seed, sites=sites, daemons_per_site=daemons_per_site)
    everything = [
        bundle for daemon in world.daemons for log in daemon.order.logs.values() for bundle in log.bundles.values()
    ]
    world.end()
    for mover in world.movers:
        for bundle in everything:
            assert bundle.stamp > mover.order._hole_line or holds(mover.order.logs[bundle.site], bundle.number)
