"""One direction between two hosts: what happens to each packet that enters it.

In:        the time, a packet's size, the generator.  Out: when the packet arrives, and when its copy does.
Not here:  clocks, descriptors, the packets themselves (router.py).

Invariants:
  F1  the same times, sizes and generator give the same arrivals
  F2  a packet that does not arrive is counted under exactly one name
  F3  what waits for a slow path is at most `queue_bytes`, or one packet
"""

from __future__ import annotations

from random import Random
from typing import Final

from .path import Counters, Path

SECOND_NS: Final = 1_000_000_000
MS_NS: Final = 1_000_000

_PLAIN: Final = Path()


class Lane:
    r"""The packets of one ordered pair of hosts.

    >>> lane = Lane(Path(delay_ms=5, rate_bytes_per_s=1_000_000, queue_bytes=1_500))
    >>> [lane.admit(0, 1_000, Random(1)) for _ in range(3)]
    [(6000000,), (), ()]
    >>> lane.counters.queue_full
    2
    """

    __slots__ = ("_busy_until_ns", "_path", "counters", "plain")

    def __init__(self, path: Path) -> None:
        self.counters = Counters()
        self._busy_until_ns = 0
        self.path = path

    @property
    def path(self) -> Path:
        return self._path

    @path.setter
    def path(self, path: Path) -> None:
        self._path = path
        # Asked for each packet: nothing happens on this path, so there is nothing to work out.
        self.plain = path == _PLAIN

    def admit(self, now_ns: int, size: int, random: Random) -> tuple[int, ...]:
        """When the packet arrives, and its copy if there is one. Empty: it does not, and has been counted."""
        path, counters = self._path, self.counters
        if path.cut:
            counters.cut += 1
            return ()
        if path.loss and random.random() < path.loss:
            counters.lost += 1
            return ()
        left_ns = self._left_ns(now_ns, size)
        if left_ns is None:
            counters.queue_full += 1
            return ()
        arrival_ns = left_ns + self._delay_ns(random)
        if path.duplication and random.random() < path.duplication:
            counters.duplicated += 1
            return (arrival_ns, left_ns + self._delay_ns(random))
        return (arrival_ns,)

    def _left_ns(self, now_ns: int, size: int) -> int | None:
        """When the last byte of the packet has left, behind all that came before it; None if the queue is full."""
        rate = self._path.rate_bytes_per_s
        if not rate:
            return now_ns
        wait_ns = max(0, self._busy_until_ns - now_ns)
        if wait_ns and wait_ns * rate // SECOND_NS + size > self._path.queue_bytes:
            return None
        self._busy_until_ns = now_ns + wait_ns + size * SECOND_NS // rate
        return self._busy_until_ns

    def _delay_ns(self, random: Random) -> int:
        path = self._path
        jitter_ms = random.random() * path.jitter_ms if path.jitter_ms else 0.0
        return int((path.delay_ms + jitter_ms) * MS_NS)
