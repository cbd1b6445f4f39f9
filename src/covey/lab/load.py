"""A small load for demonstrations and tests: all services, mixed sizes, a few sessions, the same from the same seed.

In:        a rate, a seed, the time.  Out: submissions that are due, and when the next one is.
Not here:  clients; this stands in for them.
"""

from __future__ import annotations

from random import Random
from typing import Final

from covey.protocol.inputs import Submit
from covey.protocol.values import Service

SESSIONS: Final = 3
SIZES: Final = (0, 20, 20, 100, 100, 400, 1_500, 6_000)
LARGE_BUNDLES: Final = 2.5
"""A large message travels in fragments."""
LARGE_SHARE: Final = 0.01
UNRELIABLE_BYTES_MAX: Final = 400
BURSTS: Final = (1, 1, 1, 1, 1, 3, 3, 10, 10, 40)
"""How many are submitted at once, where bursts are asked for."""
DUE_MAX: Final = 50
"""After a pause, no more than about this is made up for."""


class Load:
    """Submissions at a steady average rate, until `stop`."""

    def __init__(
        self, rate_per_second: float, seed: int, start_us: int, bundle_bytes: int, bursts: bool = False
    ) -> None:
        self._large_bytes = int(LARGE_BUNDLES * bundle_bytes)
        self._random = Random(seed)
        self._bursts = BURSTS if bursts else (1,)
        self._mean_us = 1_000_000 / rate_per_second
        self._next_seq = [1] * SESSIONS
        self._next_us: int | None = start_us

    def next_us(self) -> int | None:
        return self._next_us

    def stop(self) -> None:
        self._next_us = None

    def due(self, now_us: int) -> list[Submit]:
        submissions: list[Submit] = []
        while self._next_us is not None and self._next_us <= now_us:
            if len(submissions) >= DUE_MAX:
                self._next_us = now_us
                break
            size = self._random.choice(self._bursts)
            submissions += [self._submission() for _ in range(size)]
            self._next_us += 1 + int(self._random.expovariate(1 / (size * self._mean_us)))
        return submissions

    def _submission(self) -> Submit:
        random = self._random
        service = random.choice(list(Service))
        large = random.random() < LARGE_SHARE
        size = self._large_bytes if large else random.choice(SIZES)
        if service is Service.UNRELIABLE:
            size = min(size, UNRELIABLE_BYTES_MAX)
        session, count = random.randrange(SESSIONS), 1 if large else random.choice((1, 1, 1, 5))
        seq = self._next_seq[session]
        self._next_seq[session] += count
        return Submit(session, seq, service, random.randbytes(size), count)
