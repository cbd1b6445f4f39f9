"""Unreliable streams: nothing comes twice, and nothing recent is taken for old."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from covey.protocol.evs.unreliable import WINDOW, UnreliableStreams
from covey.protocol.values import Service
from tests.unit.protocol.builders import A, B, bundle

FIFO_NUMBERS = st.lists(st.integers(1, 3 * WINDOW), max_size=100)


@given(FIFO_NUMBERS)
def test_what_comes_is_new_exactly_if_it_is_within_the_window_and_was_not_here(fifo_numbers: list[int]) -> None:
    streams, seen = UnreliableStreams(A), set[int]()
    for fifo_number in fifo_numbers:
        expected = fifo_number not in seen and fifo_number > max(seen, default=0) - WINDOW
        assert streams.is_new(bundle(0, 0, origin=B, fifo_number=fifo_number, service=Service.UNRELIABLE)) == expected
        seen |= {fifo_number} if expected else set()
