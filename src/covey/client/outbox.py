"""What a session has said and the stream has not taken yet: requests, and batches that grow while they wait.

In:        encoded requests and checked messages, in the order in which the program gave them.
Out:       frames, in that order; what waits together for the same destinations travels in one frame.
Not here:  whether a message may be sent (protocol.py), the layout (wire/session.py, records.py).

Invariants:
  B1  a batch holds messages of one route, and never more than the route's limit unless it is a single message
  B2  messages leave in the order of their numbers 1, 2, 3 …, and requests where they were made
  B3  `size` is the sum of what waits
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from covey.protocol.values import Payload, Service
from covey.protocol.wire.bodies import RECORD_BYTES
from covey.protocol.wire.session import sending_head

from .options import SendOptions
from .records import record_head, records_of

PARTS_FEW = 16
"""So many parts of a batch are handed to the system as they are: joining more takes less time than that."""


class Route(msgspec.Struct, frozen=True, gc=False):
    """Where and how a message travels. Messages of one batch share one."""

    groups: tuple[str, ...]
    service: Service
    flags: int
    payload_bytes_max: int
    batch_bytes: int
    """So much travels together."""


class _Batch(msgspec.Struct, gc=False):
    """A frame in the making."""

    route: Route
    seq: int
    count: int
    size: int
    parts: list[bytes]

    def frame(self) -> list[Payload]:
        route = self.route
        head = sending_head(route.service, route.flags, self.count, self.seq, route.groups, self.size)
        return [head, *self.parts] if len(self.parts) <= PARTS_FEW else [head, b"".join(self.parts)]


class Outbox:
    def __init__(self) -> None:
        self.size = 0
        self.next_seq = 1
        self._waiting: deque[bytes | _Batch] = deque()
        self._growing: _Batch | None = None
        """The last of those that wait, if messages may still be added to it."""
        self._prefix = b""

    def open(self, prefix: bytes) -> None:
        """What every body begins with."""
        self._prefix = prefix

    def put_request(self, data: bytes) -> None:
        self._growing = None
        self._waiting.append(data)
        self.size += len(data)

    def put(self, route: Route, options: SendOptions, payload: bytes) -> int:
        """The number of the message."""
        head = record_head(len(payload), options.kind)
        size = len(payload) + RECORD_BYTES
        batch = self._batch_for(route, size)
        batch.parts += head, payload
        batch.count += 1  # As `_count` does: a call for each message costs.
        batch.size += size
        self.size += size
        seq = self.next_seq
        self.next_seq = seq + 1
        return seq

    def put_many(self, route: Route, options: SendOptions, payloads: Sequence[bytes]) -> int:
        """The number of the first message."""
        first = self.next_seq
        sizes = set(map(len, payloads))
        if len(sizes) == 1:
            self._put_alike(route, options.kind, payloads, sizes.pop())
        else:
            self._put_mixed(route, options.kind, payloads)
        return first

    def _put_alike(self, route: Route, kind: int, payloads: Sequence[bytes], size: int) -> None:
        """All have one size, and so one head."""
        head, stride = record_head(size, kind), size + RECORD_BYTES
        at, end = 0, len(payloads)
        while at < end:
            batch = self._batch_for(route, stride)
            upto = min(at + max(1, (route.batch_bytes - batch.size) // stride), end)
            batch.parts += head, head.join(payloads[at:upto])
            self._count(batch, upto - at, (upto - at) * stride)
            at = upto

    def _put_mixed(self, route: Route, kind: int, payloads: Sequence[bytes]) -> None:
        ends = list(accumulate(map(RECORD_BYTES.__add__, map(len, payloads)), initial=0))
        at, end = 0, len(payloads)
        while at < end:
            batch = self._batch_for(route, ends[at + 1] - ends[at])
            fitting = bisect_right(ends, ends[at] + route.batch_bytes - batch.size) - 1
            upto = max(at + 1, min(fitting, end))
            batch.parts += records_of(payloads[at:upto], kind)
            self._count(batch, upto - at, ends[upto] - ends[at])
            at = upto

    def take(self, room: int) -> list[Payload]:
        """Whole frames of about so many bytes together; at least one, if any waits."""
        taken: list[Payload] = []
        while self._waiting and room > 0:
            item = self._waiting.popleft()
            if isinstance(item, bytes):
                size = len(item)
                taken.append(item)
            else:
                size = item.size
                taken += item.frame()
            self.size -= size
            room -= size
        if not self._waiting:
            self._growing = None
        return taken

    def clear(self) -> None:
        self._waiting.clear()
        self._growing = None
        self.size = 0

    def check(self) -> None:
        sizes = [len(item) if isinstance(item, bytes) else item.size for item in self._waiting]
        assert self.size == sum(sizes), "B3"
        for batch in self._waiting:
            if not isinstance(batch, bytes):
                assert batch.size == sum(map(len, batch.parts)), "B3"
                assert batch.size <= batch.route.batch_bytes or batch.count == 1, "B1"

    def _batch_for(self, route: Route, size: int) -> _Batch:
        batch = self._growing
        if batch is None or batch.route is not route or batch.size + size > route.batch_bytes:
            batch = self._growing = _Batch(route, self.next_seq, 0, len(self._prefix), [self._prefix])
            self._waiting.append(batch)
            self.size += batch.size
        return batch

    def _count(self, batch: _Batch, messages: int, size: int) -> None:
        self.next_seq += messages
        batch.count += messages
        batch.size += size
        self.size += size
