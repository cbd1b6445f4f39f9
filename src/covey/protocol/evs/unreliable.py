"""At most once for unreliable bundles: they are counted per session, and a short memory of it suffices."""

from __future__ import annotations

from covey.ids import Life
from covey.protocol.values import Bundle, Kind, Payload, Service, SessionKey

WINDOW = 64
SESSIONS_MAX = 100_000
"""Sessions remembered in one view; the bundles of more count as lost."""


class UnreliableStreams:
    """Numbers what we send, remembers what we got. A bundle older than the window counts as lost.

    Invariant: U1 of each session the highest fifo number is marked, and marks do not outgrow the window.
    """

    def __init__(self, me: Life) -> None:
        self._me = me
        self._sent: dict[int, int] = {}
        self._seen: dict[SessionKey, tuple[int, int]] = {}

    def make(
        self,
        session: int,
        session_seq: int,
        count: int,
        groups: tuple[str, ...],
        payload: Payload,
        kind: Kind = Kind.RAW,
        flags: int = 0,
    ) -> Bundle:
        fifo_number = self._sent[session] = self._sent.get(session, 0) + 1
        return Bundle(
            0, 0, 0, self._me, session, session_seq, count, fifo_number, Service.UNRELIABLE, 0, 1, groups, payload,
            kind, flags,
        )  # fmt: skip

    def ended(self, session: int) -> None:
        """One of ours has said its last word: its number is not used again."""
        self._sent.pop(session, None)

    def knows(self, key: SessionKey) -> bool:
        return key in self._seen

    def is_new(self, bundle: Bundle) -> bool:
        highest, mask = self._seen.get(bundle.key, (0, 0))
        if not highest and len(self._seen) >= SESSIONS_MAX:
            return False
        if bundle.fifo_number > highest:
            shift = min(bundle.fifo_number - highest, WINDOW)
            mask = (mask << shift | 1) & ((1 << WINDOW) - 1)
            self._seen[bundle.key] = (bundle.fifo_number, mask)
            return True
        distance = highest - bundle.fifo_number
        if distance >= WINDOW or mask >> distance & 1:
            return False
        self._seen[bundle.key] = (highest, mask | 1 << distance)
        return True

    def check(self) -> None:
        assert len(self._seen) <= SESSIONS_MAX
        assert all(highest and mask & 1 and mask >> WINDOW == 0 for highest, mask in self._seen.values()), "U1"
