"""The wire: every frame comes back as it was, and bytes that are no frame are a FrameError and nothing else."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from covey.errors import FrameError
from covey.ids import Ballot, Life
from covey.protocol.evs.codec import Codec
from covey.protocol.evs.frames import Frame, Hurry
from covey.protocol.values import Bundle
from covey.protocol.wire.bundles import encode_bundle, read_bundle
from tests.properties.strategies import FRAME, KINDS, LIFE, bundles

ME = Life(3, 9)
CODEC = Codec("covey", 42, ME)
HEAD = CODEC.encode(Hurry(Ballot(0, 0, 0)))[: CODEC.overhead]
KIND_AT = len(HEAD) - 11
CHANGE = st.tuples(st.integers(0, 10_000), st.integers(1, 255))


def is_rejected(data: bytes) -> bool:
    """Whether the codec says FrameError; anything else that it raises fails the test."""
    try:
        CODEC.decode(data)
    except FrameError:
        return True
    return False


def comes_back(data: bytes) -> bool:
    """Whether what these bytes hold could be sent on."""
    frame = CODEC.decode(data).frame
    return bool(CODEC.decode(CODEC.encode(frame)).frame == frame)


def changed(data: bytes, change: tuple[int, int]) -> bytes:
    """The same bytes, one of them different."""
    at, by = change
    altered = bytearray(data)
    altered[at % len(data)] ^= by
    return bytes(altered)


def test_every_frame_has_a_strategy() -> None:
    assert set(KINDS) == set(get_args(Frame))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50)
@given(data=st.data())
def test_every_frame_comes_back_as_it_was(kind: type[Frame], data: st.DataObject) -> None:
    frame = data.draw(KINDS[kind])
    assert CODEC.decode(CODEC.encode(frame)) == (ME, frame)


@given(LIFE, FRAME)
def test_the_sender_comes_back_as_it_was(sender: Life, frame: Frame) -> None:
    assert CODEC.decode(Codec("covey", 42, sender).encode(frame)).sender == sender


@given(bundles())
def test_a_bundle_comes_back_as_it_was(bundle: Bundle) -> None:
    assert read_bundle(memoryview(encode_bundle(bundle))) == bundle


@given(st.binary(max_size=200))
@example(b"")
@example(b"Cv\x01")
def test_random_bytes_are_no_frame(data: bytes) -> None:
    assert is_rejected(data)


@given(st.sampled_from([*range(16), 32, 33, 34, 255]), st.binary(max_size=200))
def test_random_bytes_under_a_good_head_are_rejected_or_a_whole_frame(kind: int, body: bytes) -> None:
    data = HEAD[:KIND_AT] + bytes([kind]) + HEAD[KIND_AT + 1 :] + body
    assert is_rejected(data) or comes_back(data)


@given(FRAME, st.integers(0, 10_000))
def test_a_truncated_frame_is_rejected(frame: Frame, length: int) -> None:
    data = CODEC.encode(frame)
    assert is_rejected(data[: length % len(data)])


@given(FRAME, st.binary(min_size=1, max_size=3))
def test_a_frame_with_bytes_left_over_is_rejected(frame: Frame, more: bytes) -> None:
    assert is_rejected(CODEC.encode(frame) + more)


@given(FRAME, CHANGE)
def test_a_frame_with_one_byte_changed_is_rejected_or_a_whole_frame(frame: Frame, change: tuple[int, int]) -> None:
    data = changed(CODEC.encode(frame), change)
    assert is_rejected(data) or comes_back(data)


@given(st.binary(max_size=120))
def test_random_bytes_are_no_bundle_or_a_whole_one(data: bytes) -> None:
    try:
        bundle = read_bundle(memoryview(data))
    except FrameError:
        return
    assert encode_bundle(bundle) == data


@given(bundles(), CHANGE)
def test_a_bundle_with_one_byte_changed_is_rejected_or_a_whole_one(bundle: Bundle, change: tuple[int, int]) -> None:
    data = changed(encode_bundle(bundle), change)
    try:
        again = read_bundle(memoryview(data))
    except FrameError:
        return
    assert encode_bundle(again) == data
