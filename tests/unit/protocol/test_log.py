"""The bundles of one site: what is gap-free, how far its stamps are known, what is let go."""

from __future__ import annotations

import pytest

from covey.ids import INFINITE
from covey.protocol.evs.ordering.log import SiteLog
from covey.protocol.values import ANNOUNCEMENTS_MAX, Announcement
from tests.unit.protocol.builders import bundle, held


@pytest.fixture
def log() -> SiteLog:
    return SiteLog(0)


def add(log: SiteLog, *numbers: int, passed: bool = False) -> None:
    for number in numbers:
        one = bundle(number)
        one.passed = passed
        assert log.add(one)
        log.check()


def test_bundles_in_order_raise_the_frontier(log: SiteLog) -> None:
    add(log, 1, 2, 3)
    assert (log.gap_free, log.frontier) == (3, 30)


def test_a_bundle_beyond_a_gap_raises_nothing_until_the_gap_is_filled(log: SiteLog) -> None:
    add(log, 1, 3, 4)
    assert (log.gap_free, log.frontier) == (1, 10)
    add(log, 2)
    assert (log.gap_free, log.frontier) == (4, 40)


def test_a_bundle_is_taken_once(log: SiteLog) -> None:
    add(log, 1, 3)
    assert not log.add(bundle(1))
    assert not log.add(bundle(3))


def test_a_bundle_that_was_let_go_is_not_taken_again(log: SiteLog) -> None:
    add(log, 1, 2, passed=True)
    log.discard(2)
    assert not log.add(bundle(1))


def test_an_announcement_counts_when_its_bundles_are_here(log: SiteLog) -> None:
    add(log, 1, 2)
    log.announce(Announcement(2, 25))
    assert log.frontier == 25


def test_an_announcement_waits_for_its_bundles(log: SiteLog) -> None:
    add(log, 1)
    log.announce(Announcement(2, 25))
    assert log.frontier == 10
    add(log, 2)
    assert log.frontier == 25


def test_a_bundle_above_an_announcement_does_not_lower_the_frontier(log: SiteLog) -> None:
    log.announce(Announcement(0, 9))
    add(log, 1)
    log.announce(Announcement(1, 8))
    assert log.frontier == 10


def test_of_each_number_the_newest_announcement_is_kept_waiting(log: SiteLog) -> None:
    for number, last in ((3, 35), (5, 55), (3, 37), (2, 25), (3, 36)):
        log.announce(Announcement(number, last))
    assert log.declaration().announcements == (Announcement(2, 25), Announcement(3, 37), Announcement(5, 55))


def test_those_that_will_apply_first_are_kept_and_the_newest(log: SiteLog) -> None:
    for number in range(2, 2 + 2 * ANNOUNCEMENTS_MAX):
        log.announce(Announcement(number, 10 * number + 5))
    numbers = [one.number for one in log.declaration().announcements]
    assert numbers == [*range(2, ANNOUNCEMENTS_MAX + 1), 1 + 2 * ANNOUNCEMENTS_MAX]


def test_announcements_that_came_into_force_are_no_longer_declared(log: SiteLog) -> None:
    log.announce(Announcement(1, 15))
    log.announce(Announcement(3, 35))
    add(log, 1)
    assert log.declaration().announcements == (Announcement(3, 35),)


def test_a_declaration_lists_what_is_held_beyond_the_gap(log: SiteLog) -> None:
    add(log, 1, 2, passed=True)
    add(log, 6, 4)
    log.discard(1)
    assert log.declaration() == held(
        low=1,
        gap_free=2,
        frontier=20,
        extras=(
            4,
            6,
        ),
    )


def test_only_what_left_the_order_is_let_go(log: SiteLog) -> None:
    add(log, 1, passed=True)
    add(log, 2)
    add(log, 3, passed=True)
    log.discard(3)
    assert (log.low, sorted(log.bundles)) == (1, [2, 3])


def test_only_what_everyone_has_is_let_go(log: SiteLog) -> None:
    add(log, 1, 2, 3, passed=True)
    log.discard(2)
    assert (log.low, sorted(log.bundles)) == (2, [3])


def test_nothing_beyond_a_gap_is_let_go(log: SiteLog) -> None:
    add(log, 1, 3, passed=True)
    log.discard(3)
    assert sorted(log.bundles) == [3]


def test_a_raised_frontier_never_falls(log: SiteLog) -> None:
    log.raise_frontier(INFINITE)
    log.raise_frontier(5)
    add(log, 1)
    log.announce(Announcement(1, 15))
    assert log.frontier == INFINITE
