"""What has been read and the program has not taken: bounded, so that a slow program is noticed where it can be helped.

In:        the events of one read at a time, with the bytes that they came in.
Out:       the same events, one by one or in whole batches; whether more should be read.
Not here:  reading and waiting (session.py, blocking.py).

Invariant: Q1 every event comes out once, in the order in which it went in, however iterations are begun and given up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from .events import Batch, Event, Message, Single, only_message

RECEIVE_BYTES_MAX: Final = 1024 * 1024
"""No more is read while so much waits here; the rest waits in the socket, and then at the daemon, which sees it."""


class Inbox:
    def __init__(self) -> None:
        self.size = 0
        """Bytes of the reads that are not finished."""
        self._reads: deque[tuple[list[Event], int]] = deque()
        self._read: deque[Event] = deque()
        """The rest of the read that is being taken."""
        self._read_bytes = 0
        self._batch: deque[Message] = deque()
        """The rest of a batch that is being taken message by message."""

    @property
    def is_full(self) -> bool:
        return self.size >= RECEIVE_BYTES_MAX

    @property
    def is_low(self) -> bool:
        return self.size <= RECEIVE_BYTES_MAX // 2

    def put(self, events: list[Event], size: int) -> None:
        if events:
            self._reads.append((events, size))
            self.size += size

    def advance(self) -> bool:
        """Whether there is something to take: the rest of a read that another iteration began, or the next read."""
        if self._batch or self._read:
            return True
        self.size -= self._read_bytes
        self._read_bytes = 0
        if not self._reads:
            return False
        events, self._read_bytes = self._reads.popleft()
        self._read.extend(events)
        return True

    # All iterations take from the same queues, so that none has a place of its own to lose. Each step is one that two
    # threads cannot do halfway: an event that one has taken, the other does not find.

    def singles(self) -> Iterator[Single]:
        """The rest of this read, message by message."""
        batch, read = self._batch, self._read
        while batch or read:
            try:
                while batch:
                    yield batch.popleft()
                event = read.popleft()
            except IndexError:  # Another thread was faster, or the batch was the last.
                continue
            if not isinstance(event, Batch):
                yield event
            elif event.count == 1:
                yield only_message(event)
            else:
                batch.extend(event)

    def wholes(self) -> Iterator[Event]:
        """The rest of this read. Of a batch that was begun message by message, the rest comes so too."""
        while True:
            try:
                event: Event = self._batch.popleft() if self._batch else self._read.popleft()
            except IndexError:
                return
            yield event
