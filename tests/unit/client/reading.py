"""The messages of a body, read in the slow and obvious way: what the library's fast reading is compared with."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from covey.errors import FrameError

LENGTH = struct.Struct("<H")
RECORD = struct.Struct("<IH")


def read_records(body: memoryview, count: int) -> Sequence[tuple[int, memoryview]]:
    """(kind, payload) of each message; FrameError unless there are exactly so many, and nothing else."""
    try:
        at = LENGTH.size + LENGTH.unpack_from(body)[0]
        records = []
        for _ in range(count):
            size, kind = RECORD.unpack_from(body, at)
            at += RECORD.size
            records.append((kind, body[at : at + size]))
            at += size
    except struct.error as error:
        raise FrameError("malformed body", str(error)) from None
    if at != len(body):
        raise FrameError("malformed body", f"{count} messages end at {at} of {len(body)} bytes")
    return records
