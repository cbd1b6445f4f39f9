"""What waits to be stamped at this daemon, bounded in bytes, cut into bundles as it is taken.

A message stays in the queue until its last fragment is stamped: if the view ends before, it starts again from its first
fragment in the next view (PROTOCOL §5.3), and the others drop the incomplete one.

Invariant: Q1 the bytes waiting never exceed the bound.
"""

from __future__ import annotations

from collections import deque

from covey.ids import Life
from covey.protocol.values import Bundle, Payload, Service


class Waiting:
    """One submission in the queue."""

    def __init__(
        self, session: int, session_seq: int, count: int, service: Service, groups: tuple[str, ...], payload: Payload
    ) -> None:
        self.session = session
        self.session_seq = session_seq
        self.count = count
        self.service = service
        self.groups = groups
        self.payload = payload
        self.taken = 0  # Fragments already stamped in this view.


MESSAGE_BYTES = 64
"""What a waiting message counts for besides its payload: empty ones fill a queue too."""


class SubmitQueue:
    def __init__(self, me: Life, site: int, bytes_max: int, bundle_bytes: int) -> None:
        self._me = me
        self._site = site
        self._bytes_max = bytes_max
        self._bundle_bytes = bundle_bytes
        self._waiting: deque[Waiting] = deque()
        self._places: dict[int, int] = {}
        self.bytes_waiting = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def has_room(self, payload: Payload) -> bool:
        return self.bytes_waiting + _cost(payload) <= self._bytes_max or not self._waiting

    def put(self, waiting: Waiting) -> None:
        self._waiting.append(waiting)
        self.bytes_waiting += _cost(waiting.payload)

    def peek_size(self) -> int:
        """Payload bytes of the next bundle, or 0 if nothing waits."""
        if not self._waiting:
            return 0
        waiting = self._waiting[0]
        return max(1, min(self._bundle_bytes, len(waiting.payload) - waiting.taken * self._bundle_bytes))

    def next_service(self) -> Service | None:
        """What the next bundle asks for, or None if nothing waits."""
        return self._waiting[0].service if self._waiting else None

    def take(self, number: int, stamp: int) -> tuple[Bundle, Payload | None]:
        """The next bundle, stamped; with the whole payload when it completes its message."""
        waiting = self._waiting[0]
        size = self._bundle_bytes
        fragments = max(1, -(-len(waiting.payload) // size))
        part = waiting.payload[waiting.taken * size : (waiting.taken + 1) * size]
        place = self._places[waiting.session] = self._places.get(waiting.session, 0) + 1
        bundle = Bundle(
            self._site, number, stamp, self._me, waiting.session, waiting.session_seq, waiting.count, place,
            waiting.service, waiting.taken, fragments, waiting.groups, part,
        )  # fmt: skip
        waiting.taken += 1
        if waiting.taken < fragments:
            return bundle, None
        self._waiting.popleft()
        self.bytes_waiting -= _cost(waiting.payload)
        return bundle, waiting.payload

    def start_view(self) -> None:
        """Places count anew, and a message of which only some fragments were stamped starts again."""
        self._places.clear()
        if self._waiting:
            self._waiting[0].taken = 0

    def check(self) -> None:
        assert self.bytes_waiting == sum(_cost(waiting.payload) for waiting in self._waiting)
        assert self.bytes_waiting <= self._bytes_max or len(self._waiting) == 1, "Q1"
        assert all(waiting.taken == 0 for waiting in list(self._waiting)[1:])


def _cost(payload: Payload) -> int:
    return len(payload) + MESSAGE_BYTES
