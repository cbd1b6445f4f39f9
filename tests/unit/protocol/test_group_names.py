"""Names of groups in a frame: what was written is read, and nobody grows by names that never come back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.errors import FrameError
from covey.protocol.wire import group_names
from covey.protocol.wire.group_names import REMEMBERED_BYTES_MAX, pack_groups, read_groups

GROUPS = st.lists(st.text(max_size=200), max_size=9).map(tuple)


@given(GROUPS, st.binary(max_size=9), st.binary(max_size=9))
def test_what_was_written_is_read(groups: tuple[str, ...], before: bytes, after: bytes) -> None:
    packed = pack_groups(groups)
    body = memoryview(before + packed + after)
    assert read_groups(body, len(before), len(groups)) == (groups, len(before) + len(packed))


def test_a_name_that_is_cut_off_is_no_name() -> None:
    with pytest.raises(FrameError, match="longer than its frame"):
        read_groups(memoryview(pack_groups(("room",))[:-1]), 0, 1)


def test_what_is_long_is_not_remembered() -> None:
    known = group_names._unpacked.cache_info().currsize
    for number in range(20):
        groups = (f"{number}".rjust(REMEMBERED_BYTES_MAX, "x"),)
        assert read_groups(memoryview(pack_groups(groups)), 0, 1)[0] == groups
    assert group_names._unpacked.cache_info().currsize == known
    many = tuple(f"group {number}" for number in range(1_000))
    known = group_names._packed.cache_info().currsize
    assert read_groups(memoryview(pack_groups(many)), 0, len(many))[0] == many
    assert group_names._packed.cache_info().currsize == known
