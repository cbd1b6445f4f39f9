"""Messages inside a bundle: the fast readers agree with the plain ones of the wire, on every body."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from covey.client.records import MIXED, check_records, payloads_of, record_head, records_in, records_of
from covey.errors import FrameError
from covey.protocol.wire.bodies import record_parts, sender_prefix
from tests.unit.client.fake_daemon import body_of
from tests.unit.client.reading import read_records

PROCESS = "alice@a:7.3"
START = len(sender_prefix(PROCESS))
KIND = st.integers(0, 65_535)
RECORDS = st.lists(st.tuples(KIND, st.binary(max_size=12)), min_size=1, max_size=8)


def fast(body: bytes, count: int) -> list[tuple[int, bytes]] | None:
    try:
        size = check_records(body, START, count)
    except FrameError:
        return None
    records = list(records_in(body, START, size))
    assert payloads_of(body, START, size) == [payload for _, payload in records]
    return records


def plain(body: bytes, count: int) -> list[tuple[int, bytes]] | None:
    try:
        return [(kind, bytes(payload)) for kind, payload in read_records(memoryview(body), count)]
    except FrameError:
        return None


@given(RECORDS)
def test_what_was_written_is_read(records: list[tuple[int, bytes]]) -> None:
    assert fast(body_of(PROCESS, *records), len(records)) == records


@given(st.lists(st.binary(max_size=12), max_size=8), KIND)
def test_many_are_written_as_one_by_one(payloads: list[bytes], kind: int) -> None:
    one_by_one = [part for payload in payloads for part in record_parts(kind, payload)]
    assert b"".join(records_of(payloads, kind)) == b"".join(one_by_one)
    assert all(record_head(len(payload), kind) == record_parts(kind, payload)[0] for payload in payloads)


@given(RECORDS, st.integers(0, 10), st.binary(max_size=3), st.integers(0, 200), st.binary(max_size=1))
@example([(0, b"")], 0, b"", 0, b"")
def test_a_body_is_malformed_for_both_or_for_none(
    records: list[tuple[int, bytes]], count: int, tail: bytes, at: int, change: bytes
) -> None:
    whole = body_of(PROCESS, *records) + tail
    body = whole[: START + at] + change + whole[START + at + len(change) :]
    assert fast(body, count) == (plain(body, count) if count else None)


@pytest.mark.parametrize(("sizes", "expected"), [((3, 3, 3), 3), ((0, 0), 0), ((5,), 5), ((1, 2, 3), MIXED)])
def test_one_size_is_noticed(sizes: tuple[int, ...], expected: int) -> None:
    body = body_of(PROCESS, *((1, bytes(size)) for size in sizes))
    assert check_records(body, START, len(sizes)) == expected


def test_sizes_that_only_add_up_are_mixed() -> None:
    assert check_records(body_of(PROCESS, (0, b"ab"), (0, b"abcd")), START, 2) == MIXED


def test_a_large_message_is_read() -> None:
    large = bytes(range(256)) * 300
    assert fast(body_of(PROCESS, (9, large)), 1) == [(9, large)]


@pytest.mark.parametrize("count", [2, 1_000_000, 2**32 - 1])
def test_more_messages_than_bytes_are_refused_at_once(count: int) -> None:
    with pytest.raises(FrameError, match="cannot hold"):
        check_records(body_of(PROCESS, (0, b"")), START, count)
