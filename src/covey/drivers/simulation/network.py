"""The simulated network: loses, repeats, delays, reorders, clogs and cuts, all from one generator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import msgspec

from covey.config import DATAGRAM_BYTES_MAX
from covey.protocol.counters import Count, Counter
from covey.protocol.evs.codec import frame_name

NEAR_THE_LIMIT = 60_000
"""Bytes of a datagram that is nearly as large as there are any."""

FAR = 20
"""So many times as long takes what goes from site to site."""

Arrive = Callable[[int, int, bytes, bool], None]
"""At this time, at this rank, these bytes; over a reliable link or not."""


class NetworkOptions(msgspec.Struct, kw_only=True):
    """What the network does to datagrams. Delays in microseconds."""

    sites: tuple[int, ...] = ()
    """By rank: between sites everything takes so much longer; empty: there is one."""
    delay_min_us: int = 100
    delay_mean_us: int = 400
    """Mean of the random part: exponential, so datagrams overtake one another."""
    delay_tail: float = 0.0
    """Share of datagrams that take twenty times the random delay, a third of them up to 0.3 s more."""
    loss: float = 0.0
    duplication: float = 0.0
    late: float = 0.0
    """Share of datagrams of which a copy comes very late, when what it is about is over."""
    bytes_per_second: int = 0
    """How fast a daemon can send; 0 is unlimited. What waits longer than `queue_max_us` is lost."""
    queue_max_us: int = 200_000


@dataclass(slots=True)
class Network:
    options: NetworkOptions
    random: Random
    arrive: Arrive
    count: Count
    cuts: set[tuple[int, int]] = field(default_factory=set)
    lost_within: set[str] = field(default_factory=set)
    """Kinds of frames that were lost between two daemons of one site."""
    _busy_until: dict[int, int] = field(default_factory=dict)
    _held: dict[tuple[int, int], list[bytes]] = field(default_factory=dict)

    def send(self, now: int, source: int, to: int, data: bytes, reliable: bool) -> None:
        if (source, to) in self.cuts:
            if reliable:
                self._held.setdefault((source, to), []).append(data)
            return
        if reliable:
            self.arrive(now + self.delay(source, to), to, data, True)
            return
        if len(data) > NEAR_THE_LIMIT and self._exceeds(len(data)):
            return
        options, random = self.options, self.random
        if options.loss and random.random() < options.loss:
            if options.sites and options.sites[source] == options.sites[to]:
                self.lost_within.add(frame_name(data))
            return
        start = self._start(now, source, len(data))
        if start is None:
            return
        self.arrive(start + self.delay(source, to), to, data, False)
        if options.duplication and random.random() < options.duplication:
            self.arrive(start + self.delay(source, to) * 3, to, data, False)
        if options.late and random.random() < options.late:
            self.arrive(start + random.randrange(50_000, 900_000), to, data, False)

    def _exceeds(self, size: int) -> bool:
        """No network carries a datagram above the limit: who sends it learns nothing that a loss would not tell."""
        too_large = size > DATAGRAM_BYTES_MAX
        self.count.add(Counter.DATAGRAM_TOO_LARGE if too_large else Counter.DATAGRAM_NEAR_THE_LIMIT)
        return too_large

    def cut(self, source: int, to: int) -> None:
        self.cuts.add((source, to))

    def partition(self, sides: list[list[int]]) -> None:
        """Nothing crosses between the sides."""
        side_of = {rank: index for index, side in enumerate(sides) for rank in side}
        for one, one_side in side_of.items():
            for other, other_side in side_of.items():
                if one_side != other_side:
                    self.cuts.add((one, other))

    def heal(self, now: int) -> None:
        """All cuts end."""
        for source, to in sorted(self.cuts):
            self.mend(now, source, to)

    def mend(self, now: int, source: int, to: int) -> None:
        """One cut ends. What a reliable link held arrives now, in any order."""
        self.cuts.discard((source, to))
        for data in self._held.pop((source, to), []):
            self.arrive(now + self.delay(source, to), to, data, True)

    def forget(self, rank: int) -> None:
        """A daemon crashed: its reliable links end, with what they held."""
        for pair in [pair for pair in self._held if rank in pair]:
            del self._held[pair]

    def delay(self, source: int, to: int) -> int:
        options = self.options
        sites = options.sites
        scale = FAR if sites and sites[source] != sites[to] else 1
        spread = self.random.expovariate(1.0) * options.delay_mean_us * scale
        if options.delay_tail and self.random.random() < options.delay_tail:
            spread = spread * 20 + self.random.choice((0, 0, self.random.randrange(300_000)))
        return options.delay_min_us * scale + int(spread)

    def _start(self, now: int, source: int, size: int) -> int | None:
        """When the datagram leaves a sender of limited speed; None if its queue is full."""
        if not self.options.bytes_per_second:
            return now
        start = max(now, self._busy_until.get(source, 0))
        if start - now > self.options.queue_max_us:
            return None
        self._busy_until[source] = start + size * 1_000_000 // self.options.bytes_per_second
        return start
