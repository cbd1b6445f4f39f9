"""The messages inside a bundle, many at once: the layout of `wire/session.py`, without a call for each message.

In:        payloads, or the body of a bundle with the number of messages its frame promises.
Out:       the parts of a body, or the payloads again; FrameError unless a body holds exactly what was promised.
Not here:  frames and the name of the sender (wire/session.py).

A body whose messages all have one size is the common one: checking it takes four slices, whatever their number.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, repeat
from struct import Struct
from typing import Final

from covey.errors import FrameError
from covey.protocol.wire.bodies import RECORD_BYTES

Body = bytes | bytearray

MIXED: Final = -1
"""Instead of the size that all messages of a body have."""

_RECORD: Final = Struct("<IH")
_SIZE: Final = Struct("<I")

record_head: Final[Callable[[int, int], bytes]] = _RECORD.pack
"""What stands before a payload, from its size and kind. No function of ours: it is called for every message."""


def records_of(payloads: Sequence[bytes], kind: int) -> Iterable[bytes]:
    """Heads and payloads, in turn."""
    return chain.from_iterable(zip(map(record_head, map(len, payloads), repeat(kind)), payloads, strict=True))


def check_records(body: Body, start: int, count: int) -> int:
    """The size that all `count` messages have, or MIXED; FrameError unless the body holds them and nothing else."""
    total = len(body) - start
    if count < 1 or total < count * RECORD_BYTES:
        raise FrameError("malformed body", f"{total} bytes cannot hold {count} messages")
    if count == 1:
        if _SIZE.unpack_from(body, start)[0] != total - RECORD_BYTES:
            raise FrameError("malformed body", f"1 message does not fit {total} bytes")
        return total - RECORD_BYTES
    stride = total // count
    if stride * count == total and _all_have(stride - RECORD_BYTES, body, start, stride, count):
        return stride - RECORD_BYTES
    _walk(body, start, count)
    return MIXED


def payloads_of(body: Body, start: int, size: int) -> list[bytes]:
    """Of a checked body."""
    if size == MIXED:
        return [payload for _, payload in _mixed(body, start)]
    count = (len(body) - start) // (RECORD_BYTES + size)
    return list(_payloads_of_size(size, count).unpack_from(body, start))


def records_in(body: Body, start: int, size: int) -> Iterator[tuple[int, bytes]]:
    """(kind, payload) of each message of a checked body."""
    if size == MIXED:
        return _mixed(body, start)
    return _records_of_size(size).iter_unpack(memoryview(body)[start:])


def only_record(body: Body, start: int) -> tuple[int, bytes]:
    """(kind, payload) of the one message of a checked body."""
    return _RECORD.unpack_from(body, start)[1], bytes(memoryview(body)[start + RECORD_BYTES :])


def _all_have(size: int, body: Body, start: int, stride: int, count: int) -> bool:
    """Whether this size stands wherever a message would begin if they all had it."""
    wanted = _SIZE.pack(size)
    return (
        body[start::stride] == wanted[:1] * count
        and body[start + 1 :: stride] == wanted[1:2] * count
        and body[start + 2 :: stride] == wanted[2:3] * count
        and body[start + 3 :: stride] == wanted[3:] * count
    )


def _walk(body: Body, start: int, count: int) -> None:
    size_at, at, end = _SIZE.unpack_from, start, len(body)
    try:
        for _ in range(count):
            at += RECORD_BYTES + size_at(body, at)[0]
    except struct.error:
        raise FrameError("malformed body", f"{count} messages do not fit {end - start} bytes") from None
    if at != end:
        raise FrameError("malformed body", f"{count} messages end at {at - start} of {end - start} bytes")


def _mixed(body: Body, at: int) -> Iterator[tuple[int, bytes]]:
    record_at, end, view = _RECORD.unpack_from, len(body), memoryview(body)
    while at < end:
        size, kind = record_at(body, at)
        at += RECORD_BYTES
        yield kind, bytes(view[at : at + size])
        at += size


@lru_cache(maxsize=256)
def _payloads_of_size(size: int, count: int) -> Struct:
    return Struct("<" + f"{RECORD_BYTES}x{size}s" * count)


@lru_cache(maxsize=256)
def _records_of_size(size: int) -> Struct:
    return Struct(f"<4xH{size}s")
