"""Unreliable bundles: numbered per session, delivered at most once, remembered within a window."""

from __future__ import annotations

import pytest

from covey.protocol.evs.unreliable import WINDOW, UnreliableStreams
from covey.protocol.values import Bundle, Service
from tests.unit.protocol.builders import A, B, bundle


def sent(fifo_number: int, *, session: int = 1) -> Bundle:
    return bundle(0, 0, origin=B, session=session, fifo_number=fifo_number, service=Service.UNRELIABLE)


@pytest.fixture
def streams() -> UnreliableStreams:
    return UnreliableStreams(A)


def news(streams: UnreliableStreams, *fifo_numbers: int) -> list[bool]:
    return [streams.is_new(sent(fifo_number)) for fifo_number in fifo_numbers]


def test_what_we_send_is_numbered_per_session(streams: UnreliableStreams) -> None:
    made = [streams.make(session, 9, 1, ("room",), b"x") for session in (1, 1, 2, 1)]
    assert [(one.session, one.fifo_number) for one in made] == [(1, 1), (1, 2), (2, 1), (1, 3)]


def test_what_we_send_stays_outside_the_order(streams: UnreliableStreams) -> None:
    one = streams.make(3, 70, 2, ("room",), b"x")
    assert (one.number, one.stamp, one.service, one.fragments) == (0, 0, Service.UNRELIABLE, 1)
    assert (one.origin, one.session_seq, one.count, one.groups, one.payload) == (A, 70, 2, ("room",), b"x")


def test_a_repetition_is_not_new(streams: UnreliableStreams) -> None:
    assert news(streams, 1, 1, 2, 1, 2) == [True, False, True, False, False]


def test_a_late_bundle_is_new_once(streams: UnreliableStreams) -> None:
    assert news(streams, 5, 2, 2, 5, 3) == [True, True, False, False, True]


def test_a_bundle_older_than_the_window_counts_as_lost(streams: UnreliableStreams) -> None:
    assert news(streams, WINDOW + 1, 1, 2) == [True, False, True]


def test_a_session_does_not_know_of_another(streams: UnreliableStreams) -> None:
    assert streams.is_new(sent(1, session=1))
    assert streams.is_new(sent(1, session=2))


@pytest.mark.parametrize("jump", [WINDOW, 10_000, 2**62])
def test_a_jump_far_ahead_costs_nothing_and_forgets_the_past(streams: UnreliableStreams, jump: int) -> None:
    assert news(streams, 1, 1 + jump, 1 + jump, 1) == [True, True, False, False]
