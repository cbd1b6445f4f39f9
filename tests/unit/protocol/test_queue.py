"""What waits to be stamped: bounded in bytes, cut into fragments, begun again when the view ends."""

from __future__ import annotations

import pytest

from covey.config import AROUND_BYTES, DATAGRAM_BYTES_MAX
from covey.protocol.evs.codec import Codec
from covey.protocol.evs.frames import Resend
from covey.protocol.transport.queue import PASSED_OVER_MAX, SubmitQueue, Waiting, cost
from covey.protocol.values import Bundle, Kind, Service
from covey.protocol.wire.bundles import BUNDLE_OVERHEAD, encode_bundle
from covey.protocol.wire.group_names import groups_bytes
from tests.unit.protocol.builders import VIEW, B

BUNDLE_BYTES = 4


def make_queue(*payloads: bytes, bytes_max: int = 10_000, session: int = 1) -> SubmitQueue:
    queue = SubmitQueue(B, bytes_max=bytes_max, bundle_bytes=BUNDLE_BYTES)
    for seq, payload in enumerate(payloads, start=1):
        put(queue, payload, seq=seq, session=session)
    return queue


def put(
    queue: SubmitQueue, payload: bytes, *, seq: int = 1, session: int = 1, count: int = 1, priority: int = 1
) -> None:
    queue.put(Waiting(session, seq, count, Service.AGREED, ("room",), payload, priority=priority))


def take_all(queue: SubmitQueue) -> list[Bundle]:
    taken: list[Bundle] = []
    while len(queue):
        taken.append(queue.take(2, len(taken) + 1, 10 * len(taken) + 10)[0])
        queue.check()
    return taken


def test_a_small_message_is_one_bundle_with_all_that_was_said() -> None:
    queue = make_queue()
    put(queue, b"abc", seq=70, session=3, count=5)
    taken, whole = queue.take(2, 9, 1_000)
    assert taken == Bundle(2, 9, 1_000, B, 3, 70, 5, 1, Service.AGREED, 0, 1, ("room",), b"abc")
    assert whole == b"abc"
    assert len(queue) == 0


def test_a_large_message_is_cut_and_completed_by_its_last_fragment() -> None:
    queue = make_queue(b"abcdefghi")
    taken = [queue.take(2, number, number) for number in (1, 2, 3)]
    assert [(one.fragment, one.fragments, one.fifo_number, one.payload) for one, _ in taken] == [
        (0, 3, 1, b"abcd"),
        (1, 3, 2, b"efgh"),
        (2, 3, 3, b"i"),
    ]
    assert [whole for _, whole in taken] == [None, None, b"abcdefghi"]


@pytest.mark.parametrize(("size", "fragments"), [(0, 1), (1, 1), (4, 1), (5, 2), (8, 2), (9, 3)])
def test_a_message_has_as_many_fragments_as_it_needs(size: int, fragments: int) -> None:
    assert len(take_all(make_queue(bytes(size)))) == fragments


@pytest.mark.parametrize("groups", [("room",), tuple(f"{number:0500}" for number in range(16))], ids=["short", "long"])
def test_a_part_with_the_names_of_its_groups_fits_one_datagram(groups: tuple[str, ...]) -> None:
    most = DATAGRAM_BYTES_MAX - AROUND_BYTES
    queue = SubmitQueue(B, bytes_max=1_000_000, bundle_bytes=most)
    payload = bytes(range(256)) * 800
    queue.put(Waiting(1, 1, 1, Service.AGREED, groups, payload))
    assert queue.next_bytes() == BUNDLE_OVERHEAD + most
    taken = take_all(queue)
    assert b"".join(one.payload for one in taken) == payload
    longest_name = Codec("c" * 255, 1, B)
    assert all(len(longest_name.encode(Resend(VIEW, (one,)))) <= DATAGRAM_BYTES_MAX for one in taken)


def test_fifo_numbers_count_within_each_session() -> None:
    queue = make_queue()
    for session in (1, 2, 1, 1, 2):
        put(queue, b"x", session=session)
    assert [(one.session, one.fifo_number) for one in take_all(queue)] == [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3)]


def test_sessions_take_turns() -> None:
    queue = make_queue(b"a", b"b", b"c", session=1)
    put(queue, b"x", session=2)
    assert [bytes(one.payload) for one in take_all(queue)] == [b"a", b"x", b"b", b"c"]


def test_a_higher_priority_goes_first() -> None:
    queue = make_queue(b"a", b"b", session=1)
    assert queue.next_bytes() == BUNDLE_OVERHEAD + groups_bytes(("room",)) + 1
    put(queue, b"x", session=2, priority=0)
    assert [bytes(one.payload) for one in take_all(queue)] == [b"x", b"a", b"b"]


def test_a_message_is_finished_before_a_higher_priority_goes() -> None:
    queue = make_queue(b"abcde", session=1)
    queue.take(2, 1, 1)
    put(queue, b"x", session=2, priority=0)
    assert [bytes(one.payload) for one in take_all(queue)] == [b"e", b"x"]


def test_nobody_is_passed_over_for_ever() -> None:
    queue = make_queue()
    for number in range(40):
        put(queue, b"h", session=1, seq=number, priority=0)
    put(queue, b"m", session=2, priority=1)
    put(queue, b"l", session=3, priority=2)
    order = b"".join(bytes(one.payload) for one in take_all(queue))
    assert order.index(b"m") == PASSED_OVER_MAX
    assert order.index(b"l") == PASSED_OVER_MAX + 1


def test_a_session_that_has_left_leaves_nothing() -> None:
    queue = make_queue(b"a", session=1)
    queue.put(Waiting(1, 2, 1, Service.AGREED, (), b"", Kind.DISCONNECT))
    assert [one.fifo_number for one in take_all(queue)] == [1, 2]
    assert not queue._fifo_numbers


def test_bytes_are_counted_for_each_session() -> None:
    queue = make_queue(b"abc", session=1)
    put(queue, b"defg", session=2)
    assert queue.bytes_of(1) + queue.bytes_of(2) == queue.bytes_waiting
    take_all(queue)
    assert queue.bytes_of(1) == queue.bytes_of(2) == 0


@pytest.mark.parametrize("groups", [(), ("room",), tuple(f"{number:078}" for number in range(90))])
def test_the_size_of_the_next_bundle_is_known_beforehand(groups: tuple[str, ...]) -> None:
    queue = make_queue()
    for payload in (b"abcde", b"", bytes(range(100))):
        queue.put(Waiting(1, 1, 1, Service.AGREED, groups, payload))
    while len(queue):
        size = queue.next_bytes()
        assert size == len(encode_bundle(queue.take(2, 1, 1)[0]))
    assert queue.next_bytes() == 0


def test_the_service_of_the_next_bundle_is_known_beforehand() -> None:
    queue = make_queue(b"x")
    assert queue.next_service() is Service.AGREED
    queue.take(2, 1, 1)
    assert queue.next_service() is None


# --- the bound


def test_there_is_room_up_to_the_bound_and_no_more() -> None:
    queue = make_queue(bytes(6_000), bytes_max=10_000)
    assert queue.has_room(cost(3_000, 0))
    assert not queue.has_room(cost(4_001, 0))


def test_taking_a_message_makes_room() -> None:
    queue = make_queue(b"xxxx", bytes(9_000), bytes_max=9_500)
    assert not queue.has_room(cost(9_000, 0))
    take_all(queue)
    assert queue.bytes_waiting == 0
    assert queue.has_room(cost(9_000, 0))


def test_room_is_made_only_when_the_whole_message_is_stamped() -> None:
    queue = make_queue(bytes(2 * BUNDLE_BYTES))
    waiting = queue.bytes_waiting
    queue.take(2, 1, 1)
    assert queue.bytes_waiting == waiting


def test_an_empty_queue_has_room_for_one_message_of_any_size() -> None:
    queue = make_queue(bytes_max=8)
    assert queue.has_room(cost(1_000, 0))
    put(queue, bytes(1_000))
    queue.check()
    assert not queue.has_room(cost(1, 0))


def test_messages_without_bytes_fill_the_queue_too() -> None:
    queue = make_queue(bytes_max=1_000)
    for _ in range(10_000):
        if not queue.has_room(cost(0, 5)):
            break
        put(queue, b"")
    assert not queue.has_room(cost(0, 5))


# --- a new view


def test_a_message_begun_in_one_view_starts_again_in_the_next() -> None:
    queue = make_queue(b"abcdefghi")
    queue.take(2, 1, 1)
    queue.take(2, 2, 2)
    queue.begin_again()
    assert [(one.fragment, one.payload) for one in take_all(queue)] == [(0, b"abcd"), (1, b"efgh"), (2, b"i")]


def test_what_was_only_looked_at_is_not_begun_again() -> None:
    queue = make_queue(b"abcdefghi")
    assert queue.next_bytes() > 0
    assert not queue.begin_again()


def test_fifo_numbers_count_anew_when_the_engine_says_so() -> None:
    queue = make_queue(b"a", b"b")
    queue.take(2, 1, 1)
    queue.count_anew()
    assert [one.fifo_number for one in take_all(queue)] == [1]


def test_fifo_numbers_go_on_where_an_engine_counts_for_a_whole_life() -> None:
    queue = make_queue(b"a", b"bcdef")
    queue.take(7, 1, 1)
    queue.take(7, 2, 2)
    assert queue.begin_again()
    assert [(one.fragment, one.fifo_number) for one in take_all(queue)] == [(0, 3), (1, 4)]


def test_what_waits_stays_in_order_across_views() -> None:
    queue = make_queue(b"abcde", b"f")
    queue.take(2, 1, 1)
    queue.begin_again()
    assert [one.payload for one in take_all(queue)] == [b"abcd", b"e", b"f"]


def test_more_than_the_bound_is_noticed_also_beside_what_the_daemon_itself_must_say() -> None:
    queue = make_queue(b"x" * 800, b"y" * 800, bytes_max=1_000)
    queue.put(Waiting(1, 3, 1, Service.AGREED, ("room",), b"z" * 90, Kind.JOIN))
    with pytest.raises(AssertionError, match="Q1"):
        queue.check()
