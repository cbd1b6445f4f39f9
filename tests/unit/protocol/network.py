"""A tiny network: daemons joined by hand, every datagram under way for the same short time, nothing lost unless asked.

In:   a cluster, inputs for its daemons, which datagrams to lose.  Out: each daemon's effects, and all it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count

from covey.cluster import Cluster
from covey.config import Settings
from covey.ids import Instant, Life
from covey.protocol.boundary import Header
from covey.protocol.daemon import Daemon
from covey.protocol.effects import Deliver, Effect, Installed, LinkSend, Send, Signal
from covey.protocol.evs.engine import EvsEngine
from covey.protocol.evs.states import State
from covey.protocol.groups.declared import Declared
from covey.protocol.inputs import Datagram, Input, Submit
from covey.protocol.kit import Kit
from covey.protocol.portions import PORTIONS, Portions
from covey.protocol.transport.queue import SubmitQueue
from covey.protocol.values import Payload, Service

DELAY_US = 100
START_US = 1_700_000_000_000_000
"""A wall time of our days, so that stamps have the length they have in life."""
SECOND_US = 1_000_000

Loses = Callable[[int, int, Header], bool]
"""Whether this frame from one rank to another is lost."""

Step = tuple[int, list[Input]]


def instant(now_us: int) -> Instant:
    return Instant(now_us, now_us)


def make_daemon(
    cluster: Cluster,
    rank: int,
    settings: Settings | None = None,
    now_us: int = START_US,
    portions: Portions = PORTIONS,
) -> Daemon[EvsEngine]:
    """With the first engine, into which tests look."""
    start = instant(now_us)

    def make_engine(kit: Kit, queue: SubmitQueue, declared: Declared) -> EvsEngine:
        return EvsEngine(kit, queue, declared, start, seed=rank)

    return Daemon(cluster, Life(rank, 1), settings or Settings(), start, make_engine, portions=portions)


class TinyNetwork:
    def __init__(self, cluster: Cluster, settings: Settings | None = None, portions: Portions = PORTIONS) -> None:
        self.cluster = cluster
        self.now = START_US
        ranks = range(len(cluster.daemons))
        self.daemons = {rank: make_daemon(cluster, rank, settings, portions=portions) for rank in ranks}
        self.effects: dict[int, list[Effect]] = {rank: [] for rank in self.daemons}
        self.steps: dict[int, list[Step]] = {rank: [] for rank in self.daemons}
        self.loses: Loses = lambda source, to, header: False
        self.checks = True
        self._under_way: list[tuple[int, int, int, bytes]] = []
        self._sequence = count()
        for rank, daemon in self.daemons.items():
            self._perform(rank, daemon.start(instant(self.now)))

    # --- driving

    def give(self, rank: int, *inputs: Input) -> list[Effect]:
        self.steps[rank].append((self.now, list(inputs)))
        effects = self.daemons[rank].step(instant(self.now), list(inputs))
        if self.checks:
            self.daemons[rank].check(full=True)
        self._perform(rank, effects)
        return effects

    def submit(self, rank: int, seq: int, payload: Payload, service: Service, session: int = 1) -> list[Effect]:
        return self.give(rank, Submit(session, seq, service, payload))

    def run(self, duration_us: int) -> None:
        """Let time pass: datagrams arrive and deadlines run out, each at its moment."""
        end = self.now + duration_us
        while (moment := self._next()) is not None and moment <= end:
            self.now = max(self.now, moment)
            for rank, datagrams in self._arrivals().items():
                deadline = self.daemons[rank].next_deadline_us()
                if datagrams or (deadline is not None and deadline <= self.now):
                    self.give(rank, *datagrams)
        self.now = end

    def run_until(self, holds: Callable[[], bool], limit_us: int = 10 * SECOND_US) -> None:
        """Let time pass until the condition holds; it must within the limit."""
        end = self.now + limit_us
        while not holds():
            assert self.now < end, "the condition never came to hold"
            self.run(1_000)

    def form_view(self) -> None:
        self.run_until(lambda: self.in_one_view(self.daemons))

    # --- looking

    def in_one_view(self, ranks: Iterable[int]) -> bool:
        """Whether these daemons, and nobody else, work in one view."""
        machines = [self.daemons[rank].engine.machine for rank in ranks]
        together = tuple(Life(rank, 1) for rank in sorted(ranks))
        return all(m.state is State.OP and m.members == together and m.view == machines[0].view for m in machines)

    def all_settled(self) -> bool:
        return all(daemon.engine.operation.is_settled() for daemon in self.daemons.values())

    def delivered(self, rank: int) -> list[Deliver]:
        return [effect for effect in self.effects[rank] if isinstance(effect, Deliver)]

    def payloads(self, rank: int, service: Service | None = None) -> list[bytes]:
        """What was delivered, each message as the bytes that its sender handed over."""
        return [
            b"".join(one.payloads)
            for one in self.delivered(rank)
            if service is None or one.bundle.service is service
        ]  # fmt: skip

    def views(self, rank: int) -> list[Installed]:
        return [effect for effect in self.effects[rank] if isinstance(effect, Installed)]

    def story(self, rank: int) -> list[str]:
        """Messages, signals and views as one readable list."""
        told = {Deliver: "message", Signal: "signal", Installed: "view"}
        return [told[type(effect)] for effect in self.effects[rank] if type(effect) in told]

    # --- helpers

    def _perform(self, rank: int, effects: list[Effect]) -> None:
        self.effects[rank] += effects
        for effect in effects:
            if isinstance(effect, Send | LinkSend):
                header = self.daemons[rank].engine.kit.codec.decode(effect.data)
                for to in effect.to:
                    if not self.loses(rank, to, header):
                        heappush(self._under_way, (self.now + DELAY_US, next(self._sequence), to, effect.data))

    def _next(self) -> int | None:
        moments = [at for daemon in self.daemons.values() if (at := daemon.next_deadline_us()) is not None]
        if self._under_way:
            moments.append(self._under_way[0][0])
        return min(moments, default=None)

    def _arrivals(self) -> dict[int, list[Input]]:
        arrived: dict[int, list[Input]] = {rank: [] for rank in self.daemons}
        while self._under_way and self._under_way[0][0] <= self.now:
            _, _, to, data = heappop(self._under_way)
            arrived[to].append(Datagram(data))
        return arrived
