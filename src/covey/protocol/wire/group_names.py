"""The names of groups inside a frame: each behind its length.

In:        names, or the body of a frame.  Out: their encoding; the names again, and where they end.
Not here:  which names are allowed (names.py).

Most frames go where others went before, so both directions remember. Bounded: only so many, and none that is long, so
that whoever sends ever other names makes nobody grow.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

from covey.errors import FrameError

REMEMBERED_MAX: Final = 10_000
REMEMBERED_BYTES_MAX: Final = 512
"""Of the names of one frame."""
REMEMBERED_NAMES_MAX: Final = 4
_LENGTH: Final = struct.Struct("<H")


def pack_groups(groups: tuple[str, ...]) -> bytes:
    r"""
    >>> pack_groups(("a", "room"))
    b'\x01\x00a\x04\x00room'
    """
    return _packed(groups) if len(groups) <= REMEMBERED_NAMES_MAX else _pack(groups)


def groups_bytes(groups: tuple[str, ...]) -> int:
    """How much names take, also where they are too long to be packed.

    >>> groups_bytes(("a", "room"))
    9
    """
    if len(groups) == 1:
        return len(groups[0].encode()) + _LENGTH.size
    return sum(len(group.encode()) + _LENGTH.size for group in groups)


def read_groups(body: memoryview, at: int, count: int) -> tuple[tuple[str, ...], int]:
    """So many names, and where they end; FrameError, struct.error or ValueError if they are none."""
    start = at
    for _ in range(count):
        (size,) = _LENGTH.unpack_from(body, at)
        at += _LENGTH.size + size
        if at > len(body):
            raise FrameError("malformed frame", "a name is longer than its frame")
    packed = bytes(body[start:at])
    return (_unpacked(packed) if len(packed) <= REMEMBERED_BYTES_MAX else _unpack(packed)), at


def _pack(groups: tuple[str, ...]) -> bytes:
    return b"".join(_LENGTH.pack(len(name)) + name for name in (group.encode() for group in groups))


def _unpack(packed: bytes) -> tuple[str, ...]:
    names, at = [], 0
    while at < len(packed):
        (size,) = _LENGTH.unpack_from(packed, at)
        at += _LENGTH.size + size
        names.append(packed[at - size : at].decode())
    return tuple(names)


_packed = lru_cache(REMEMBERED_MAX)(_pack)
_unpacked = lru_cache(REMEMBERED_MAX)(_unpack)
