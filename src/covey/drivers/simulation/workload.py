"""What the daemons are given to send: all services, all sizes, several sessions, in bursts."""

from __future__ import annotations

from random import Random

from covey.protocol.inputs import Submit
from covey.protocol.values import Service

from .style import Style
from .world import Script, World

SESSIONS = 3
FLOOD = 250
_SIZES = (0, 20, 20, 100, 100, 400, 400, 1_500, 6_000)
_LARGE = 20_000


class Workload:
    def __init__(self, world: World, random: Random, rate_per_second: float, style: Style) -> None:
        self._world = world
        self._random = random
        self._style = style
        self._mean_us = 1_000_000 / rate_per_second
        self._next_seq: dict[tuple[str, int], int] = {}
        self.running = True

    def script(self, rank: int) -> Script:
        """Submit at one daemon until told to stop; now and then a burst."""
        while self.running:
            burst = self._random.choice((1, 1, 1, 1, 6)) if self._random.random() < 0.5 else 1
            for _ in range(burst):
                self.submit(rank, self._random.choice(list(Service)), self._size())
            yield 1 + int(self._random.expovariate(1 / self._mean_us) * burst)

    def flood(self, rank: int) -> None:
        """More at once than any window holds."""
        for _ in range(FLOOD):
            self.submit(rank, self._random.choice(list(Service)[1:]), 10)

    def submit(self, rank: int, service: Service, size: int) -> None:
        node = self._world.nodes.get(rank)
        if node is None or not node.alive:
            return
        session, count = self._random.randrange(SESSIONS), self._random.choice((1, 1, 1, 5))
        if service is Service.UNRELIABLE:
            size = min(size, 300)
        if size >= _LARGE:
            count = 1
        key = (node.recorder.process, session)
        seq = self._next_seq.get(key, 1)
        self._next_seq[key] = seq + count
        if service is not Service.UNRELIABLE:
            node.owed.add((session, seq))
        payload = self._random.randbytes(size)
        if larger := self._style.submitted_bytes(service, size):
            payload = self._style.random.randbytes(larger)
        self._world.give(rank, Submit(session, seq, service, payload, count, self._style.submitted_to()))

    def one_of_each(self) -> None:
        """At the end: everybody can still send everything."""
        for node in self._world.living():
            for service in Service:
                self.submit(node.rank, service, 50)

    def _size(self) -> int:
        return _LARGE if self._random.random() < 0.01 else self._random.choice(_SIZES)
