"""Admission to the submit queue: who waits for room, and that nobody passes who came later."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.protocol.transport.queue import MESSAGE_BYTES, SubmitQueue, Waiting, cost
from covey.protocol.values import Kind, Service
from covey.protocol.wire.group_names import groups_bytes
from tests.unit.protocol.builders import B

MOST = 10_000
SHARE = 6_000
LARGE, SMALL = 5_000, 1_000


def make_queue(share_bytes: int = SHARE) -> SubmitQueue:
    return SubmitQueue(B, bytes_max=MOST, bundle_bytes=100_000, share_bytes=share_bytes)


def put(queue: SubmitQueue, session: int, needed: int) -> None:
    queue.put(Waiting(session, 1, 1, Service.AGREED, (), bytes(needed - MESSAGE_BYTES), Kind.MESSAGES))
    queue.check()


def ask(queue: SubmitQueue, session: int, needed: int) -> bool:
    """Try to put a message that counts so much; whether it went in."""
    admitted = queue.admits(session, needed)
    queue.check()
    if admitted:
        put(queue, session, needed)
    return admitted


def take(queue: SubmitQueue) -> None:
    queue.take(2, 1, 1)
    queue.check()


def full(*sessions: int) -> SubmitQueue:
    """A queue that small messages of these sessions fill."""
    queue = make_queue()
    for number in range(MOST // SMALL):
        assert ask(queue, sessions[number % len(sessions)], SMALL)
    return queue


def test_who_finds_no_room_is_named_when_there_is_some() -> None:
    queue = full(1, 2)
    assert not ask(queue, 3, SMALL)
    assert queue.knows(3)
    assert queue.to_try() == []
    take(queue)
    assert queue.to_try() == [3]
    assert ask(queue, 3, SMALL)
    assert not queue.knows(3)


def test_a_large_message_keeps_what_becomes_free_and_nobody_passes() -> None:
    queue = full(1, 2)
    assert not ask(queue, 9, LARGE)
    for _ in range(LARGE // SMALL - 1):
        take(queue)
        assert queue.to_try() == []
        for small in (1, 2, 3):
            assert not ask(queue, small, SMALL)
        assert not queue.has_room(SMALL)
    take(queue)
    assert queue.to_try() == [9]
    assert ask(queue, 9, LARGE)
    assert not ask(queue, 1, SMALL)
    take(queue)
    assert queue.to_try() == [1]


def test_who_is_on_the_wait_list_stays_where_it_is_however_often_somebody_asks() -> None:
    queue = full(1, 2)
    for session in (3, 4, 3):
        assert not ask(queue, session, SMALL)
    take(queue)
    assert not ask(queue, 4, SMALL)
    assert ask(queue, 3, SMALL)
    take(queue)
    assert queue.to_try() == [4]


def test_who_is_over_its_share_does_not_hold_up_the_wait_list() -> None:
    queue = make_queue()
    assert ask(queue, 1, LARGE)
    assert not ask(queue, 1, LARGE)
    assert queue.knows(1)
    assert queue.to_try() == []
    assert ask(queue, 2, SMALL)
    take(queue)
    assert queue.to_try() == [1]
    assert ask(queue, 1, LARGE)


def test_a_share_has_room_for_one_message_of_any_size() -> None:
    queue = make_queue()
    assert ask(queue, 1, 2 * MOST)
    assert not ask(queue, 1, SMALL)


def test_who_is_first_and_then_over_its_share_makes_way() -> None:
    queue = make_queue()
    assert ask(queue, 1, SHARE - SMALL)
    assert ask(queue, 2, MOST - SHARE + SMALL)
    assert not ask(queue, 1, SMALL)
    assert not ask(queue, 1, LARGE)
    assert not ask(queue, 3, SMALL)
    take(queue)
    assert queue.to_try() == [1, 3]
    assert ask(queue, 3, SMALL)


def test_who_gives_up_keeps_nobody_waiting() -> None:
    queue = full(1, 2)
    assert not ask(queue, 9, LARGE)
    assert not ask(queue, 3, SMALL)
    take(queue)
    assert queue.to_try() == []
    queue.give_up(9)
    assert not queue.knows(9)
    assert queue.to_try() == [3]


def test_who_gives_up_over_its_share_is_named_no_more() -> None:
    queue = make_queue()
    assert ask(queue, 1, LARGE)
    assert not ask(queue, 1, LARGE)
    queue.give_up(1)
    take(queue)
    assert queue.to_try() == []


def test_names_count() -> None:
    groups = tuple(f"{number:078}" for number in range(90))
    waiting = Waiting(1, 1, 1, Service.AGREED, groups, b"abc")
    assert waiting.cost == cost(3, groups_bytes(groups)) > 7_000


def test_waiting_in_both_places_breaks_a_rule() -> None:
    queue = make_queue()
    queue._wait_list[1] = SMALL
    queue._over_share.add(1)
    with pytest.raises(AssertionError, match="Q2"):
        queue.check()


@given(st.lists(st.integers(MESSAGE_BYTES, 12_000), min_size=2, max_size=8), st.integers(1_000, 12_000))
def test_everybody_is_admitted_while_all_ask_for_ever(sizes: list[int], share: int) -> None:
    """Each session asks for the next message as soon as it may; every one is served again and again."""
    queue = make_queue(share)
    served = [0] * len(sizes)
    for session, size in enumerate(sizes):
        while ask(queue, session, size):
            served[session] += 1
    for _ in range(40 * len(sizes)):
        if len(queue):
            take(queue)
        while tried := queue.to_try():
            for session in tried:
                while ask(queue, session, sizes[session]):
                    served[session] += 1
    assert min(served) >= 3
