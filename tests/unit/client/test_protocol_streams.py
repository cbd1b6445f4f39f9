"""However a stream is cut, the same happens; and no bytes at all make a client raise, or keep much."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from covey.client.events import Batch, Disconnected, Event
from covey.client.protocol import ClientProtocol
from covey.protocol.values import Service
from covey.protocol.wire.session import encode_word
from covey.protocol.wire.words import Ended, Failed, GroupLeft, GroupSignal, GroupView, Rejected
from tests.unit.client.fake_daemon import BALLOT, body_of, data_frame, welcome, welcomed

TEXT = st.text(max_size=8)
GROUP = st.sampled_from(["room", "hall"])
PROCESSES = st.lists(st.sampled_from(["alice@a:7.3", "bob@b:2.9", "zoe@c:1.1"]), max_size=3).map(tuple)
WORD = st.one_of(
    st.builds(
        GroupView, GROUP, st.just(BALLOT), st.integers(0, 9), st.integers(0, 9), PROCESSES, PROCESSES, TEXT, TEXT
    ),
    st.builds(GroupSignal, GROUP),
    st.builds(GroupLeft, GROUP, st.just(BALLOT), st.integers(0, 9), st.integers(0, 9)),
    st.builds(Failed, TEXT, TEXT),
).map(encode_word)
LAST = st.one_of(st.builds(Ended, TEXT, st.integers(0, 9), st.integers(0, 9)), st.just(welcome())).map(encode_word)
RECORDS = st.lists(st.tuples(st.integers(0, 65_535), st.binary(max_size=20)), min_size=1, max_size=5)
DATA = st.builds(
    lambda records, service, extra: data_frame(body_of("bob@b:2.9", *records) + extra, len(records), service),
    RECORDS,
    st.sampled_from(Service),
    st.sampled_from([b"", b"", b"?"]),
)
FRAMES = st.lists(WORD | DATA, max_size=8)
GREETING = st.sampled_from([encode_word(welcome()), encode_word(Rejected("no"))])
CUTS = st.lists(st.integers(0, 2_000), max_size=12)


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(place for place in cuts if place < len(data)), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


def fed(client: ClientProtocol, pieces: list[bytes]) -> list[Event]:
    return [event for piece in pieces for event in client.feed(piece)]


def check_ends(client: ClientProtocol, events: list[Event]) -> None:
    """It ends with Disconnected, once and last, or not at all."""
    ends = [at for at, event in enumerate(events) if isinstance(event, Disconnected)]
    assert ends == ([len(events) - 1] if client.is_over else [])
    for event in events:
        if isinstance(event, Batch):
            assert len(list(event)) == len(event.payloads()) == len(event)


@given(GREETING, FRAMES, LAST, FRAMES, CUTS)
def test_any_cut_of_the_stream_gives_the_same_events(
    greeting: bytes, frames: list[bytes], last: bytes, after: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join([greeting, *frames, last, *after])
    whole, pieces = ClientProtocol("alice"), ClientProtocol("alice")
    events = fed(whole, [stream])
    assert fed(pieces, cut(stream, cuts)) == events
    assert (pieces.views, pieces.is_over, pieces.process) == (whole.views, True, whole.process)
    check_ends(whole, events)


@given(FRAMES)
def test_a_buffer_that_is_used_again_gives_the_same_events(frames: list[bytes]) -> None:
    greeting, stream = encode_word(welcome()), b"".join(frames)
    once, again = ClientProtocol("alice"), ClientProtocol("alice")
    events = fed(once, [greeting, stream])
    again.feed(greeting)
    buffer = bytearray(stream)
    seen = again.feed(buffer)
    buffer[:] = bytes(len(buffer))
    assert seen == events


@given(FRAMES)
def test_byte_by_byte_gives_the_same_events(frames: list[bytes]) -> None:
    stream = encode_word(welcome()) + b"".join(frames)
    events = fed(ClientProtocol("alice"), [stream])
    assert fed(ClientProtocol("alice"), [stream[at : at + 1] for at in range(len(stream))]) == events
    assert len(events) == len(frames)


@given(st.binary(max_size=200), CUTS)
def test_a_stranger_cannot_make_it_raise(data: bytes, cuts: list[int]) -> None:
    client = ClientProtocol("alice")
    check_ends(client, fed(client, cut(data, cuts)))


@given(st.binary(max_size=200), CUTS)
def test_garbage_in_an_open_session_cannot_make_it_raise(data: bytes, cuts: list[int]) -> None:
    client = welcomed()
    check_ends(client, fed(client, cut(data, cuts)))


@given(FRAMES, st.lists(st.tuples(st.integers(0, 1_000), st.integers(0, 255)), min_size=1, max_size=4), CUTS)
def test_a_damaged_stream_cannot_make_it_raise(
    frames: list[bytes], damages: list[tuple[int, int]], cuts: list[int]
) -> None:
    stream = bytearray(b"".join(frames))
    for place, value in damages:
        if stream:
            stream[place % len(stream)] = value
    client = welcomed()
    check_ends(client, fed(client, cut(bytes(stream), cuts)))
