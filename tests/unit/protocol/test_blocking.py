"""Which groups' senders wait, and for which share of the time receivers may make them."""

from __future__ import annotations

import msgspec
import pytest

from covey.ids import Life
from covey.protocol.session.blocking import Blocked
from covey.protocol.values import Bundle, Kind
from tests.unit.protocol.builders import A, B, bundle

SECOND_US = 1_000_000
LOOK_US = 200_000
BLOCK_MAX_MS = 10_000
SENDER = 7


def change(kind: Kind, *groups: str, origin: Life = A, session: int = 101) -> Bundle:
    return msgspec.structs.replace(bundle(1, origin=origin, session=session, groups=groups), kind=kind)


def blocked_us(blocked: Blocked, seconds: int, asks: bool = True, start_us: int = 0) -> int:
    """For how long senders wait while somebody asks all the time, each receiver for a second."""
    waited = 0
    for now_us in range(start_us, start_us + seconds * SECOND_US, LOOK_US):
        if asks:
            asker = now_us // SECOND_US
            blocked.on_ordered(change(Kind.BLOCK, "room", session=asker), now_us)
            blocked.on_ordered(change(Kind.UNBLOCK, session=asker - 1), now_us)
        blocked.look(now_us)
        blocked.check()
        waited += LOOK_US * blocked.must_wait(SENDER, ("room",), now_us)
    return waited


# --- who waits


@pytest.mark.parametrize("kind", [Kind.UNBLOCK, Kind.DISCONNECT])
def test_senders_wait_for_the_last_of_those_who_asked(kind: Kind) -> None:
    blocked = Blocked(25, BLOCK_MAX_MS)
    blocked.on_ordered(change(Kind.BLOCK, "room", "hall"), 0)
    blocked.on_ordered(change(Kind.BLOCK, "room", origin=B), 0)
    blocked.on_ordered(change(kind), 0)
    blocked.check()
    assert blocked.has_news
    assert blocked.groups() == ["room"]
    assert blocked.must_wait(SENDER, ("hall", "room"), 0)
    assert not blocked.must_wait(SENDER, ("hall",), 0)
    blocked.on_ordered(change(kind, origin=B), 0)
    assert blocked.groups() == []


def test_requests_end_with_their_view() -> None:
    blocked = Blocked(25, BLOCK_MAX_MS)
    blocked.on_ordered(change(Kind.BLOCK, "room"), 0)
    blocked.on_view(1)
    blocked.check()
    assert blocked.has_news
    assert not blocked.must_wait(SENDER, ("room",), 1)
    blocked.on_ordered(change(Kind.UNBLOCK), 2)
    blocked.check()


def test_a_request_of_nobody_breaks_a_rule() -> None:
    blocked = Blocked(25, BLOCK_MAX_MS)
    blocked.on_ordered(change(Kind.BLOCK, "room"), 0)
    blocked._askers["room"].clear()
    with pytest.raises(AssertionError, match="W2"):
        blocked.check()


# --- for which share of the time


@pytest.mark.parametrize("percent", [1, 25, 60])
def test_receivers_that_always_ask_hold_up_a_group_for_that_share_of_the_time(percent: int) -> None:
    blocked = Blocked(percent, BLOCK_MAX_MS)
    seconds = 1_000
    share = blocked_us(blocked, seconds) / (seconds * SECOND_US)
    burst = percent / 100 * BLOCK_MAX_MS / 1_000 / seconds
    assert percent / 100 - 0.02 <= share <= percent / 100 + burst + 0.02


def test_the_whole_time_is_never_used_up() -> None:
    assert blocked_us(Blocked(100, BLOCK_MAX_MS), 500) == 500 * SECOND_US


def test_who_asks_for_the_first_time_gets_its_share_of_the_longest_block() -> None:
    blocked = Blocked(50, BLOCK_MAX_MS)
    blocked.on_ordered(change(Kind.BLOCK, "room"), 0)
    assert blocked.must_wait(SENDER, ("room",), 9_900_000)
    assert not blocked.must_wait(SENDER, ("room",), 10_100_000)
    assert blocked.groups() == []


def test_a_new_view_gives_no_new_allowance() -> None:
    blocked = Blocked(25, BLOCK_MAX_MS)
    waited = sum(_a_view(blocked, 2 * at) for at in range(200))
    assert waited <= 0.25 * 400 * SECOND_US + 3 * SECOND_US


def _a_view(blocked: Blocked, second: int) -> int:
    waited = blocked_us(blocked, 2, start_us=second * SECOND_US)
    blocked.on_view((second + 2) * SECOND_US)
    return waited


def test_one_group_does_not_pay_for_another() -> None:
    blocked = Blocked(25, BLOCK_MAX_MS)
    blocked_us(blocked, 100)
    blocked.on_ordered(change(Kind.BLOCK, "hall", session=7_000), 100 * SECOND_US)
    assert blocked.must_wait(SENDER + 1, ("hall",), 100 * SECOND_US)


def test_who_sends_to_several_groups_waits_no_longer_than_for_one() -> None:
    """Each group has somebody who asks, and they take turns: while one allowance comes back, another is used."""
    blocked, groups, seconds = Blocked(25, BLOCK_MAX_MS), ("g0", "g1", "g2", "g3"), 400
    waited = [0] * 2
    for now_us in range(0, seconds * SECOND_US, LOOK_US):
        turn = now_us // (2 * SECOND_US)
        blocked.on_ordered(change(Kind.BLOCK, groups[turn % 4], session=turn), now_us)
        blocked.on_ordered(change(Kind.UNBLOCK, session=turn - 1), now_us)
        blocked.look(now_us)
        waited[0] += LOOK_US * blocked.must_wait(SENDER, groups, now_us)
        waited[1] += LOOK_US * blocked.must_wait(SENDER + 1, groups[:1], now_us)
    assert waited[0] <= (0.25 * seconds + 0.25 * BLOCK_MAX_MS / 1_000 + 5) * SECOND_US
    assert waited[1] > 0.15 * seconds * SECOND_US


def test_time_in_which_nobody_asked_is_no_time_that_a_sender_waited() -> None:
    blocked = Blocked(25, BLOCK_MAX_MS)
    blocked.on_ordered(change(Kind.BLOCK, "room"), 0)
    assert blocked.must_wait(SENDER, ("room",), 0)
    blocked.on_ordered(change(Kind.UNBLOCK), SECOND_US)
    assert not blocked.must_wait(SENDER, ("room",), SECOND_US)
    blocked.on_ordered(change(Kind.BLOCK, "room"), 60 * SECOND_US)
    assert blocked.must_wait(SENDER, ("room",), 60 * SECOND_US)


def test_an_allowance_that_is_whole_again_is_forgotten() -> None:
    blocked = Blocked(25, BLOCK_MAX_MS)
    idle = [blocked.is_idle]
    blocked_us(blocked, 100)
    blocked.on_view(100 * SECOND_US)
    idle.append(blocked.is_idle)
    blocked_us(blocked, 100, asks=False, start_us=100 * SECOND_US)
    assert [*idle, blocked.is_idle] == [True, False, True]
