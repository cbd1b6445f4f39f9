"""The clock that stamps: whatever is seen and whatever the time does, the next stamp is above all of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from covey.ids import Instant
from covey.protocol.evs.clock import StampClock
from covey.protocol.evs.membership.jitter import Jitter

MOMENT = st.integers(0, 10**12)


@given(MOMENT, MOMENT, st.lists(st.tuples(MOMENT, MOMENT), max_size=20))
def test_the_clock_is_strictly_above_every_stamp_seen(mono: int, wall: int, seen: list[tuple[int, int]]) -> None:
    clock = StampClock(Instant(mono, wall), ahead_max_us=1)
    highest = 0
    for stamp, now in seen:
        clock.see(stamp)
        highest = max(highest, stamp)
        assert clock.now(now) > highest
        assert clock.high == highest


@given(st.integers(), st.lists(st.integers(1, 2**40), max_size=20))
def test_the_same_seed_gives_the_same_numbers_below_their_bounds(seed: int, bounds: list[int]) -> None:
    one, other = Jitter(seed), Jitter(seed)
    drawn = [one.below(bound) for bound in bounds]
    assert drawn == [other.below(bound) for bound in bounds]
    assert all(0 <= number < bound for number, bound in zip(drawn, bounds, strict=True))
