"""Messages that a program sent one by one become one run, where a batch of them would have looked the same.

In:        SEND frames of one read, in their order.  Out: one Sending for all that may travel together.
Not here:  reading frames (native_reader.py).

Joined are messages of one service, with the same flags, for the same destinations, whose numbers follow one another, as
long as all of them fit one bundle. The sender's name stands in front once; records stay as they are.
"""

from __future__ import annotations

import struct
from typing import Final

from covey.config import COUNT_MAX, part_bytes
from covey.protocol.asked import Sending
from covey.protocol.values import Payload
from covey.protocol.wire.bodies import sender_prefix
from covey.protocol.wire.session import SENDING

_HEAD: Final = slice(0, 2)
"""Service and flags, in the body of a SEND frame."""
_NUMBERS: Final = struct.Struct("<IQ")
_NUMBERS_AT: Final = 2
_NAMES_AT: Final = 14
"""Behind the numbers: how many destinations, and their names; then the sender's."""


class Joining:
    def __init__(self, process: str = "", bundle_bytes: int = 0) -> None:
        self._prefix_bytes = len(sender_prefix(process))
        self._bundle_bytes = bundle_bytes
        self._first: Sending | None = None
        self._parts: list[Payload] = []
        self._head: Payload = b""
        self._names: Payload = b""
        self._records_at = 0
        self._messages = 0
        self._room = 0

    def begin(self, first: Sending, code: int, body: memoryview) -> bool:
        """Whether others may join it."""
        assert code == SENDING
        names_at = len(body) - len(first.body)
        self._room = part_bytes(self._bundle_bytes, names_at - _NAMES_AT - 1) - len(first.body)
        if self._room <= 0 or len(first.body) < self._prefix_bytes:
            return False
        self._records_at = names_at + self._prefix_bytes
        self._head, self._names = body[_HEAD], body[_NAMES_AT : self._records_at]
        self._first, self._messages, self._parts = first, first.messages, [first.body]
        return True

    def take(self, code: int, body: memoryview) -> bool:
        """Whether this one is of the run too."""
        assert self._first is not None
        at, size = self._records_at, len(body) - self._records_at
        if code != SENDING or not 0 < size <= self._room:
            return False
        if body[_HEAD] != self._head or body[_NAMES_AT:at] != self._names:
            return False
        messages, number = _NUMBERS.unpack_from(body, _NUMBERS_AT)
        if number != self._first.session_seq + self._messages or not 0 < messages <= COUNT_MAX - self._messages:
            return False
        self._parts.append(body[at:])
        self._messages += messages
        self._room -= size
        return True

    def run(self) -> Sending:
        first = self._first
        assert first is not None
        if len(self._parts) == 1:
            return first
        return first._replace(messages=self._messages, body=b"".join(self._parts))
