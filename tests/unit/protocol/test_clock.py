"""The clock that stamps: it follows the time, and is strictly above every stamp seen."""

from __future__ import annotations

from covey.ids import Instant
from covey.protocol.evs.clock import StampClock


def make_clock(mono_us: int = 100, wall_us: int = 5_000_000) -> StampClock:
    return StampClock(Instant(mono_us, wall_us), ahead_max_us=1_000)


def test_it_starts_at_the_wall_time() -> None:
    assert make_clock().now(100) == 5_000_000


def test_it_advances_with_the_monotonic_time() -> None:
    assert make_clock().now(150) == 5_000_050


def test_a_step_of_the_wall_clock_does_not_matter() -> None:
    steady, stepped = make_clock(), make_clock()
    assert steady.now(Instant(200, 5_000_100).mono_us) == stepped.now(Instant(200, 1).mono_us)


def test_it_is_strictly_above_a_stamp_seen() -> None:
    clock = make_clock()
    clock.see(6_000_000)
    assert clock.now(100) == 6_000_001


def test_it_does_not_fall_back_for_a_lower_stamp() -> None:
    clock = make_clock()
    clock.see(6_000_000)
    clock.see(5)
    assert clock.now(100) == 6_000_001
    assert clock.high == 6_000_000


def test_time_overtakes_a_stamp_that_was_ahead() -> None:
    clock = make_clock()
    clock.see(5_000_010)
    assert (clock.now(105), clock.now(200)) == (5_000_011, 5_000_100)


def test_before_anything_was_seen_the_highest_stamp_is_zero() -> None:
    assert make_clock().high == 0


def test_a_clock_of_an_early_wall_time_still_stamps_above_zero() -> None:
    assert make_clock(mono_us=1_000, wall_us=0).now(500) == 1


def test_a_stamp_is_far_ahead_beyond_the_bound_only() -> None:
    clock = make_clock()
    assert not clock.is_far_ahead(5_001_000, 100)
    assert clock.is_far_ahead(5_001_001, 100)


def test_what_is_far_ahead_is_judged_by_a_clock_that_follows_what_it_saw() -> None:
    clock = make_clock()
    clock.see(9_000_000)
    assert not clock.is_far_ahead(9_001_001, 100)
    assert clock.is_far_ahead(9_001_002, 100)
