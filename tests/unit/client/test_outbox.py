"""Bundling: what may travel together does, what may not does not, and everything keeps its order."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.client.options import PLAIN, SendOptions
from covey.client.outbox import Outbox, Route
from covey.protocol.asked import Sending
from covey.protocol.values import Service
from covey.protocol.wire.bodies import sender_prefix
from covey.protocol.wire.session import encode_word
from covey.protocol.wire.words import JoinGroup
from tests.unit.client.fake_daemon import words_of
from tests.unit.client.reading import read_records

PREFIX = sender_prefix("alice@a:7.3")
LIMIT = 100
ROUTES = [
    Route(("room",), Service.AGREED, 0, 1_000, LIMIT),
    Route(("room",), Service.SAFE, 0, 1_000, LIMIT),
    Route(("room", "hall"), Service.AGREED, 0, 1_000, LIMIT),
    Route(("room",), Service.AGREED, 1, 1_000, LIMIT),
]
REQUEST = encode_word(JoinGroup("hall"))


class Said(NamedTuple):
    """One message as its daemon got it."""

    seq: int
    route: tuple[tuple[str, ...], Service, int]
    kind: int
    payload: bytes


def shared(route: Route) -> tuple[tuple[str, ...], Service, int]:
    """What its daemon sees of it."""
    return route.groups, route.service, route.flags


def outbox() -> Outbox:
    made = Outbox()
    made.open(PREFIX)
    return made


def said_in(bundle: Sending) -> list[Said]:
    assert bytes(bundle.body).startswith(PREFIX)
    records = read_records(memoryview(bundle.body), bundle.messages)
    route = (bundle.groups, bundle.service, bundle.flags)
    return [Said(bundle.session_seq + at, route, kind, bytes(data)) for at, (kind, data) in enumerate(records)]


def taken(box: Outbox, room: int = 1 << 20) -> list[Sending | JoinGroup]:
    words = words_of(box.take(room))
    box.check()
    assert all(isinstance(word, Sending | JoinGroup) for word in words)
    return [word for word in words if isinstance(word, Sending | JoinGroup)]


PUT = st.tuples(st.just("put"), st.sampled_from(ROUTES), st.integers(0, 65_535), st.binary(max_size=150))
MANY = st.tuples(
    st.just("many"), st.sampled_from(ROUTES), st.integers(0, 65_535), st.lists(st.binary(max_size=60), max_size=6)
)
ACTS = st.lists(st.one_of(PUT, MANY, st.just(("request",)), st.tuples(st.just("take"), st.integers(1, 300))))


@given(ACTS)
def test_everything_comes_out_once_in_order_and_in_bundles_of_one_route(acts: list[tuple[object, ...]]) -> None:
    box, expected, words = outbox(), list[Said | str](), list[Sending | JoinGroup]()
    for act in acts:
        match act:
            case ("put", Route() as route, int(kind), bytes(payload)):
                expected.append(Said(box.put(route, SendOptions(kind=kind), payload), shared(route), kind, payload))
            case ("many", Route() as route, int(kind), list(payloads)):
                first = box.put_many(route, SendOptions(kind=kind), payloads)
                expected += [Said(first + at, shared(route), kind, one) for at, one in enumerate(payloads)]
            case ("take", int(room)):
                words += taken(box, room)
            case _:
                box.put_request(REQUEST)
                expected.append("request")
        box.check()
    words += taken(box)
    got: list[Said | str] = []
    for word in words:
        got += said_in(word) if isinstance(word, Sending) else ["request"]
    assert got == expected
    assert [one.seq for one in got if isinstance(one, Said)] == list(range(1, box.next_seq))
    for word in words:
        if isinstance(word, Sending):
            assert len(word.body) <= LIMIT or word.messages == 1
    assert box.size == 0


def test_what_waits_together_travels_together() -> None:
    box = outbox()
    for payload in (b"one", b"two", b"three"):
        box.put(ROUTES[0], PLAIN, payload)
    (bundle,) = taken(box)
    assert isinstance(bundle, Sending)
    assert bundle.messages == 3


@pytest.mark.parametrize("other", ROUTES[1:])
def test_another_service_destination_or_flag_cuts(other: Route) -> None:
    box = outbox()
    for route in (ROUTES[0], other, ROUTES[0]):
        box.put(route, PLAIN, b"x")
    assert [word.session_seq for word in taken(box) if isinstance(word, Sending)] == [1, 2, 3]


def test_a_request_cuts_and_keeps_its_place() -> None:
    box = outbox()
    box.put(ROUTES[0], PLAIN, b"before")
    box.put_request(REQUEST)
    box.put(ROUTES[0], PLAIN, b"after")
    assert [type(word) for word in taken(box)] == [Sending, JoinGroup, Sending]


def test_a_bundle_is_filled_to_its_last_byte() -> None:
    box = outbox()
    room = LIMIT - len(PREFIX) - 6
    box.put(ROUTES[0], PLAIN, bytes(room - 6))
    box.put(ROUTES[0], PLAIN, b"")
    box.put(ROUTES[0], PLAIN, b"")
    sizes = [(len(word.body), word.messages) for word in taken(box) if isinstance(word, Sending)]
    assert sizes == [(LIMIT, 2), (len(PREFIX) + 6, 1)]


def test_many_are_cut_where_one_by_one_are() -> None:
    payloads = [bytes(size) for size in (10, 20, 30, 40, 50, 200, 10, 10)]
    one_by_one, together = outbox(), outbox()
    for payload in payloads:
        one_by_one.put(ROUTES[0], SendOptions(kind=5), payload)
    together.put_many(ROUTES[0], SendOptions(kind=5), payloads)
    assert b"".join(together.take(1 << 20)) == b"".join(one_by_one.take(1 << 20))


def test_a_bundle_that_was_taken_grows_no_more() -> None:
    box = outbox()
    box.put(ROUTES[0], PLAIN, b"one")
    assert len(taken(box)) == 1
    box.put(ROUTES[0], PLAIN, b"two")
    (bundle,) = taken(box)
    assert isinstance(bundle, Sending)
    assert (bundle.session_seq, bundle.messages) == (2, 1)


def test_about_the_room_is_taken_and_at_least_one_frame() -> None:
    box = outbox()
    for _ in range(5):
        box.put(ROUTES[0], PLAIN, bytes(70))
    assert len(taken(box, 1)) == 1
    assert len(taken(box, 150)) == 2
    assert taken(box, 0) == []
    assert len(taken(box)) == 2


def test_clearing_forgets_what_waits() -> None:
    box = outbox()
    box.put(ROUTES[0], PLAIN, b"x")
    box.clear()
    box.check()
    assert (box.size, taken(box)) == (0, [])
