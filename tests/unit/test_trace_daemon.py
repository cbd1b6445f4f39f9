"""From effects to rows: whatever a bundle holds, its delivery is a row."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from covey.cluster import one_site
from covey.config import COUNT_MAX
from covey.errors import FrameError
from covey.ids import INFINITE
from covey.protocol.effects import Deliver
from covey.protocol.values import Bundle, Kind
from covey.protocol.wire.bodies import sender_prefix
from covey.protocol.wire.bundles import encode_bundle, read_bundle
from covey.trace.daemon import DaemonRecorder
from covey.trace.reading import read_rows
from covey.trace.segments import SegmentWriter
from tests.unit.protocol.builders import VIEW, A, B, bundle

HUGE = 2**64 - 1


def row_of(directory: Path, delivered: Bundle) -> str:
    """The sender in the row that the delivery of this bundle makes."""
    with SegmentWriter(directory, "a") as writer:
        recorder = DaemonRecorder("run", one_site(3), A, writer.append)
        recorder.effects([Deliver(VIEW, delivered, (delivered.payload,))], 1)
    (row,) = read_rows(directory)
    assert row.event == "deliver"
    return row.sender or ""


@pytest.mark.parametrize("payload", [b"", b"\x09", b"\xff\xff", b"\x02\x00\xff\xfe", sender_prefix("x" * 60_000)])
def test_a_message_whose_sender_cannot_be_read_is_a_row(tmp_path: Path, payload: bytes) -> None:
    assert row_of(tmp_path, replace(bundle(1, origin=B, payload=payload), kind=Kind.MESSAGES))


def test_a_message_with_a_sender_is_a_row_of_that_sender(tmp_path: Path) -> None:
    body = sender_prefix("p1@b:1.4")
    assert row_of(tmp_path, replace(bundle(1, origin=B, payload=body), kind=Kind.MESSAGES)) == "p1@b:1.4"


@pytest.mark.parametrize(
    "numbers",
    [
        {"session_seq": INFINITE - 2},
        {"count": COUNT_MAX},
        {"session": 2**32 - 1},
        {"number": HUGE, "stamp": INFINITE - 1},
        {"fifo_number": HUGE, "fragments": 2**32 - 1, "flags": 63},
    ],
)
def test_the_largest_numbers_that_the_wire_takes_are_a_row(tmp_path: Path, numbers: dict[str, int]) -> None:
    largest = replace(bundle(1, origin=B), **numbers)
    assert read_bundle(memoryview(encode_bundle(largest))) == largest
    assert row_of(tmp_path, largest)


@pytest.mark.parametrize("numbers", [{"session_seq": INFINITE - 1}, {"count": COUNT_MAX + 1}, {"count": 0}])
def test_larger_ones_are_no_bundle(numbers: dict[str, int]) -> None:
    with pytest.raises(FrameError):
        read_bundle(memoryview(encode_bundle(replace(bundle(1, origin=B), **numbers))))
