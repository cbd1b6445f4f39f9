"""What was read comes out once and in order, whichever way it is taken, and says when it is enough."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from covey.client.events import Batch, Event, Message, Transitional
from covey.client.inbox import RECEIVE_BYTES_MAX, Inbox
from tests.unit.client.fake_daemon import body_of, data_frame, welcomed


def batch(*payloads: bytes) -> Event:
    (event,) = welcomed().feed(data_frame(body_of("bob@b:2.9", *((0, one) for one in payloads)), len(payloads)))
    return event


def payloads_of(event: Event) -> list[bytes]:
    if isinstance(event, Batch):
        return event.payloads()
    return [event.payload if isinstance(event, Message) else b"-"]


READS = st.lists(st.lists(st.lists(st.binary(max_size=3), max_size=4), max_size=4), max_size=4)
TAKES = st.lists(st.tuples(st.sampled_from(["singles", "wholes"]), st.integers(0, 3)), max_size=20)


def filled(reads: list[list[list[bytes]]]) -> tuple[Inbox, list[bytes]]:
    """With all payloads, in their order."""
    inbox, payloads = Inbox(), list[bytes]()
    for read in reads:
        events = [batch(*some) if some else Transitional("room") for some in read]
        inbox.put(events, 10)
        payloads += [payload for event in events for payload in payloads_of(event)]
    return inbox, payloads


@given(READS, TAKES)
def test_nothing_is_lost_or_doubled_by_an_iteration_that_is_given_up(
    reads: list[list[list[bytes]]], takes: list[tuple[str, int]]
) -> None:
    (inbox, expected), got = filled(reads), list[bytes]()
    while inbox.advance():
        for way, count in takes:
            iteration = inbox.singles() if way == "singles" else inbox.wholes()
            got += [payload for event in islice(iteration, count) for payload in payloads_of(event)]
        got += [payload for event in inbox.singles() for payload in payloads_of(event)]
    assert got == expected
    assert inbox.size == 0


def test_messages_come_one_by_one_or_in_whole_batches() -> None:
    inbox = Inbox()
    inbox.put([batch(b"a", b"b"), Transitional("room")], 10)
    inbox.put([batch(b"c")], 10)
    assert inbox.advance()
    assert [type(event) for event in inbox.singles()] == [Message, Message, Transitional]
    assert inbox.advance()
    assert [type(event) for event in inbox.wholes()] == [Batch]
    assert not inbox.advance()


def test_the_rest_of_a_batch_that_was_begun_comes_message_by_message() -> None:
    inbox = Inbox()
    inbox.put([batch(b"a", b"b", b"c"), batch(b"d", b"e")], 10)
    inbox.advance()
    assert payloads_of(next(inbox.singles())) == [b"a"]
    assert [payloads_of(event) for event in inbox.wholes()] == [[b"b"], [b"c"], [b"d", b"e"]]


def test_it_is_full_until_reads_are_finished() -> None:
    inbox = Inbox()
    for _ in range(4):
        inbox.put([Transitional("room")], RECEIVE_BYTES_MAX // 4)
    assert (inbox.is_full, inbox.is_low) == (True, False)
    inbox.advance()
    assert inbox.is_full
    finish(inbox)
    assert (inbox.is_full, inbox.is_low) == (False, False)
    finish(inbox)
    assert inbox.is_low


def finish(inbox: Inbox) -> None:
    """Take the rest of this read, and go on to the next."""
    list(inbox.wholes())
    inbox.advance()


@given(READS, st.lists(st.integers(0, 2), max_size=30))
def test_nothing_is_lost_when_events_are_taken_inside_an_iteration(
    reads: list[list[list[bytes]]], whose: list[int]
) -> None:
    """Three iterations over the same inbox, in any turn, each going on to the next read by itself."""
    (inbox, expected), got = filled(reads), list[bytes]()

    def endless() -> Iterator[Event]:
        while inbox.advance():
            yield from inbox.singles()

    iterations = [endless() for _ in range(3)]
    for number in whose:
        got += [payload for event in islice(iterations[number], 1) for payload in payloads_of(event)]
    got += [payload for event in endless() for payload in payloads_of(event)]
    assert got == expected
    assert inbox.size == 0


def test_a_read_without_events_is_nothing() -> None:
    inbox = Inbox()
    inbox.put([], 500)
    assert (inbox.size, inbox.advance()) == (0, False)
