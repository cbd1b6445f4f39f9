"""Messages inside the payload of a bundle: the name of the sending process, then one record a message.

The same bytes travel from a program to its daemon, between daemons, and to every receiver.
"""

from __future__ import annotations

import struct
from typing import Final

from covey.errors import FrameError
from covey.protocol.values import Payload

SELF_DISCARD: Final = 1
"""Flag of a bundle: its sender does not want its messages back."""

_LENGTH = struct.Struct("<H")
_RECORD = struct.Struct("<IH")
SENDER_LENGTH_BYTES: Final = _LENGTH.size
"""Before the name of the sender."""
RECORD_BYTES: Final = _RECORD.size


def sender_prefix(process: str) -> bytes:
    """What every body of a process begins with; its daemon compares it, so nobody sends in another's name."""
    name = process.encode()
    return _LENGTH.pack(len(name)) + name


def record_parts(kind: int, payload: Payload) -> tuple[bytes, Payload]:
    """One message of a body."""
    return _RECORD.pack(len(payload), kind), payload


def read_sender(body: Payload) -> str:
    """The process that wrote a body."""
    try:
        (size,) = _LENGTH.unpack_from(body)
        if _LENGTH.size + size > len(body):
            raise FrameError("malformed body", "the sender is longer than the body")
        return str(body[_LENGTH.size : _LENGTH.size + size], "utf-8")
    except (struct.error, ValueError) as error:
        raise FrameError("malformed body", str(error)) from None
