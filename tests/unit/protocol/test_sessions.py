"""One session's stream: fifo numbers done in order or ahead, fragments held until their message is whole."""

from __future__ import annotations

import tracemalloc

from covey.protocol.evs.ordering.sessions import SessionOrder
from covey.protocol.values import Bundle, Delivery, Service
from tests.unit.protocol.builders import bundle, fragments_of


def holding(*bundles: Bundle) -> SessionOrder:
    session = SessionOrder()
    for one in bundles:
        session.hold(one)
    return session


def whole(session: SessionOrder, one: Bundle) -> Delivery:
    delivery = session.whole(one)
    assert delivery is not None
    return delivery


def finish(session: SessionOrder, one: Bundle) -> None:
    session.finish(whole(session, one))


def test_the_next_in_line_is_the_first_that_is_not_done() -> None:
    first, second = bundle(1), bundle(2)
    session = holding(second, first)
    assert session.next_held() is first
    finish(session, first)
    assert session.next_held() is second


def test_nothing_is_next_while_the_first_is_missing() -> None:
    assert holding(bundle(2)).next_held() is None


def test_a_fifo_number_done_ahead_counts_once_those_before_it_are_done() -> None:
    first, second, third = bundle(1), bundle(2), bundle(3)
    session = holding(first, second, third)
    finish(session, second)
    assert session.done_to == 0
    finish(session, first)
    assert session.done_to == 2
    assert session.has_prefix_of(third)


def test_a_bundle_without_its_past_has_no_prefix() -> None:
    session = holding(bundle(1), bundle(3))
    finish(session, bundle(1))
    assert not session.has_prefix_of(bundle(3))


def test_a_message_in_one_bundle_is_whole() -> None:
    one = bundle(1, payload=b"x")
    assert holding(one).whole(one) == Delivery(one, (b"x",))


def test_a_message_in_fragments_is_whole_when_all_are_here_whichever_came_last() -> None:
    parts = fragments_of(4, [b"a", b"b", b"c"], service=Service.AGREED)
    session = holding(parts[2], parts[0])
    assert session.whole(parts[0]) is None
    session.hold(parts[1])
    assert [session.whole(part) for part in parts] == [Delivery(parts[2], (b"a", b"b", b"c"))] * 3


def test_a_message_without_its_last_fragment_is_not_whole() -> None:
    parts = fragments_of(1, [b"a", b"b"], service=Service.AGREED)
    assert holding(parts[0]).whole(parts[0]) is None


def test_fragments_of_two_different_messages_make_no_whole() -> None:
    first, last = bundle(1, fragments=2), bundle(2, fragment=4, fragments=5)
    assert holding(first, last).whole(first) is None


def test_a_message_of_millions_of_fragments_is_not_looked_for_when_few_are_here() -> None:
    last = bundle(300_000, fragment=299_999, fragments=300_000)
    session = holding(last)
    tracemalloc.start()
    assert session.whole(last) is None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


def test_all_fragments_of_a_delivered_message_leave_the_order() -> None:
    parts = fragments_of(1, [b"a", b"b"], service=Service.AGREED)
    session = holding(*parts)
    finish(session, parts[0])
    assert [part.passed for part in parts] == [True, True]
    assert session.done_to == 2
    assert session.next_held() is None


def test_a_fragment_gone_past_stays_for_its_message() -> None:
    parts = fragments_of(1, [b"a", b"b"], service=Service.AGREED)
    session = holding(*parts)
    session.go_past(parts[0])
    assert parts[0].passed
    assert session.next_held() is parts[1]
    assert whole(session, parts[1]).payloads == (b"a", b"b")
