"""What a session has said and the stream has not taken yet: requests, and runs of messages that grow while they wait.

In:        encoded requests and checked messages, in the order in which the program gave them.
Out:       frames, in that order; what waits together for the same destinations travels in one frame.
Not here:  whether a message may be sent (protocol.py), the layout (wire/session.py, records.py).

Invariants:
  B1  a run holds messages of one route, and never more than the route's limit unless it is a single message
  B2  messages leave in the order of their numbers 1, 2, 3 …, and requests where they were made
  B3  `size` is the sum of what waits
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from covey.protocol.values import Payload, Service
from covey.protocol.wire.session import RECORD_BYTES, sending_head

from .records import record_head, records_of

PARTS_FEW = 16
"""So many parts of a run are handed to the system as they are: joining more takes less time than that."""


class Route(NamedTuple):
    """Where and how a message travels. Messages of one run share one."""

    groups: tuple[str, ...]
    service: Service
    flags: int
    payload_bytes_max: int
    run_bytes: int
    """So much travels together."""


class _Run:
    """A frame in the making."""

    __slots__ = ("count", "parts", "route", "seq", "size")

    def __init__(self, route: Route, seq: int, prefix: bytes) -> None:
        self.route = route
        self.seq = seq
        self.count = 0
        self.size = len(prefix)
        self.parts = [prefix]

    def frame(self) -> list[Payload]:
        route = self.route
        head = sending_head(route.service, route.flags, self.count, self.seq, route.groups, self.size)
        return [head, *self.parts] if len(self.parts) <= PARTS_FEW else [head, b"".join(self.parts)]


class Outbox:
    def __init__(self) -> None:
        self.size = 0
        self.next_seq = 1
        self._waiting: deque[bytes | _Run] = deque()
        self._growing: _Run | None = None
        """The last of those that wait, if messages may still be added to it."""
        self._prefix = b""

    def open(self, prefix: bytes) -> None:
        """What every body begins with."""
        self._prefix = prefix

    def put_request(self, data: bytes) -> None:
        self._growing = None
        self._waiting.append(data)
        self.size += len(data)

    def put(self, route: Route, kind: int, payload: bytes) -> int:
        """The number of the message."""
        size = len(payload)
        run = self._run_for(route, size + RECORD_BYTES)
        run.parts += record_head(size, kind), payload
        return self._count(run, 1, size + RECORD_BYTES)

    def put_many(self, route: Route, kind: int, payloads: Sequence[bytes]) -> int:
        """The number of the first message."""
        first = self.next_seq
        ends = list(accumulate(map(RECORD_BYTES.__add__, map(len, payloads)), initial=0))
        at, end = 0, len(payloads)
        while at < end:
            run = self._run_for(route, ends[at + 1] - ends[at])
            fitting = bisect_right(ends, ends[at] + route.run_bytes - run.size) - 1
            upto = max(at + 1, min(fitting, end))
            run.parts += records_of(payloads[at:upto], kind)
            self._count(run, upto - at, ends[upto] - ends[at])
            at = upto
        return first

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
        for run in self._waiting:
            if not isinstance(run, bytes):
                assert run.size == sum(map(len, run.parts)), "B3"
                assert run.size <= run.route.run_bytes or run.count == 1, "B1"

    def _run_for(self, route: Route, size: int) -> _Run:
        run = self._growing
        if run is None or run.route is not route or run.size + size > route.run_bytes:
            run = self._growing = _Run(route, self.next_seq, self._prefix)
            self._waiting.append(run)
            self.size += run.size
        return run

    def _count(self, run: _Run, messages: int, size: int) -> int:
        first = self.next_seq
        self.next_seq = first + messages
        run.count += messages
        run.size += size
        self.size += size
        return first
