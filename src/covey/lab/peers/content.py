"""What senders beside others send, whatever the system: numbered, checkable messages, and an end that counts them.

In:        a sender's task.
Out:       its messages, in chunks or one by one, until its time is over; how many they were.
Not here:  the calls that send them (systems/), checking them (audit.py).

A message begins with the number of its sender in the highest byte of eight, and its own number below. As fast as can
be, contents come from a table and return after its length (traffic/pattern.py); with a rate, numbers do not return, and
the moment at which the message was made follows. The rest is filler. A sender's last message says how many were before.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from covey.lab.traffic.pattern import NUMBER_BYTES, SENDER_SHIFT, Pattern

from .task import PeerTask

FILLER: Final = b"."
SENDER_AT: Final = NUMBER_BYTES - 1
STAMPED_BYTES: Final = 2 * NUMBER_BYTES
CHUNK_BYTES: Final = 400_000
"""What a sender hands over at a time when it sends as fast as it can."""
END_BIT: Final = 1 << (SENDER_SHIFT - 1)
NUMBER_MASK: Final = END_BIT - 1


def head(sender: int, number: int) -> bytes:
    return (sender << SENDER_SHIFT | number).to_bytes(NUMBER_BYTES, "little")


def number_in(payload: bytes) -> int:
    """The number of a message, or what an end counts."""
    return int.from_bytes(payload[:NUMBER_BYTES], "little") & NUMBER_MASK


def end_message(sender: int, total: int, size: int) -> bytes:
    """After `total` messages of this sender.

    >>> end_message(2, 5, 10).hex()
    '05000000000080022e2e'
    """
    return head(sender, END_BIT | total).ljust(size, FILLER)


def stamped_message(sender: int, number: int, size: int) -> bytes:
    return (head(sender, number) + time.monotonic_ns().to_bytes(NUMBER_BYTES, "little")).ljust(size, FILLER)


class Source:
    """The messages of one sender, as it has to send them; the last one is its end."""

    def __init__(self, task: PeerTask) -> None:
        self._task = task
        self._together = max(1, CHUNK_BYTES // task.size)
        self._pattern = Pattern(task.size, self._together, task.number)
        self.sent = 0

    def chunks(self) -> Iterator[list[bytes]]:
        """As fast as they are taken."""
        end, together = time.monotonic() + self._task.seconds, self._together
        while time.monotonic() < end:
            yield self._pattern.payloads(self.sent + 1, together)
            self.sent += together
        yield [self._end()]

    def singles(self) -> Iterator[bytes]:
        """One by one: as fast as they are taken, or when they are due."""
        yield from self._due() if self._task.rate else self._free()
        yield self._end()

    def _free(self) -> Iterator[bytes]:
        end, payload = time.monotonic() + self._task.seconds, self._pattern.payload
        while time.monotonic() < end:
            yield payload(self.sent + 1)
            self.sent += 1

    def _due(self) -> Iterator[bytes]:
        task, start = self._task, time.monotonic()
        while (now := time.monotonic()) < start + task.seconds:
            due = start + self.sent / task.rate
            if now < due:
                time.sleep(due - now)
            yield stamped_message(task.number, self.sent + 1, task.size)
            self.sent += 1

    def _end(self) -> bytes:
        return end_message(self._task.number, self.sent, self._task.size)
