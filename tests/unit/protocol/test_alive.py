"""When sessions are due, and a clock that stands still while its daemon does."""

from __future__ import annotations

import pytest

from covey.protocol.dialects.native import NATIVE
from covey.protocol.inputs import ClientConnected
from covey.protocol.session.alive import INTERVAL_LEAST_MS, SLOT_US, AwakeClock, Due, interval_ms
from covey.protocol.session.outbox import Total
from covey.protocol.session.session import ClientSession


def sessions(count: int) -> list[ClientSession]:
    return [ClientSession(ClientConnected(number), 100 + number, NATIVE, 0, Total()) for number in range(count)]


# --- how often to speak


@pytest.mark.parametrize(
    ("timeouts", "interval"),
    [
        ((0, 0), 0),
        ((9_000, 0), 2_000),
        ((3_000, 0), 1_500),
        ((0, 3_000), 1_500),
        ((3_000, 1_500), 750),
        ((1, 0), INTERVAL_LEAST_MS),
    ],
)
def test_twice_within_the_shortest_timeout_that_anybody_has(timeouts: tuple[int, int], interval: int) -> None:
    assert interval_ms(2_000, *timeouts) == interval


# --- who is due


def test_nobody_is_due_before_its_time_and_everybody_soon_after() -> None:
    due, (one, other) = Due(), sessions(2)
    due.add(one, 1_000_000)
    due.add(other, 5_000_000)
    assert due.next_us() is not None
    assert list(due.take(999_999, 9)) == []
    assert list(due.take(1_000_000 + SLOT_US, 9)) == [one]
    assert list(due.take(1_000_000 + SLOT_US, 9)) == []
    assert 5_000_000 <= (due.next_us() or 0) <= 5_000_000 + SLOT_US
    assert list(due.take(9_000_000, 9)) == [other]
    assert due.next_us() is None


def test_many_who_are_due_at_once_take_several_turns() -> None:
    due, many = Due(), sessions(25)
    for at, one in enumerate(many):
        due.add(one, at % 3 * SLOT_US)
    taken: list[ClientSession] = []
    for turn in range(3):
        assert due.next_us() is not None
        found = list(due.take(SLOT_US * 10, 10))
        assert len(found) == (10, 10, 5)[turn]
        taken += found
    assert sorted(one.connection for one in taken) == list(range(25))
    assert due.next_us() is None


def test_who_is_due_again_while_others_are_taken_is_not_taken_twice() -> None:
    due, (one, other) = Due(), sessions(2)
    due.add(one, 0)
    due.add(other, 0)
    seen = 0
    for session in due.take(SLOT_US, 9):
        due.add(session, 10 * SLOT_US)
        seen += 1
    assert seen == 2


# --- a clock that stands still


def test_the_clock_of_silence_counts_the_time_of_steps() -> None:
    clock = AwakeClock(200_000)
    for now_us in (7_000_000, 7_100_000, 7_300_000):
        clock.step(now_us)
    assert clock.now_us == 300_000


def test_a_pause_counts_no_more_than_a_long_step() -> None:
    clock = AwakeClock(200_000)
    clock.step(0)
    clock.step(60_000_000)
    assert clock.now_us == 200_000
