"""Virtual time, one seed, many daemons: runs a whole cluster in one thread, the same way every time.

In:   a cluster, settings, network options, a generator.  Out: trace rows, counters.
Not here: which faults happen (faults.py), what is sent (workload.py), how a run is composed (run.py).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from heapq import heappop, heappush
from random import Random
from typing import Final

from covey.cluster import Cluster
from covey.config import Settings
from covey.ids import Life
from covey.protocol.counters import Count
from covey.protocol.deadlines import Deadline
from covey.protocol.effects import (
    ClientReading,
    ClientReady,
    Effect,
    Entered,
    Installed,
    LinkSend,
    Refused,
    Send,
    Stamped,
    Stopped,
)
from covey.protocol.evs.codec import frame_name
from covey.protocol.evs.states import State
from covey.protocol.inputs import Datagram, Input, PeerRefused
from covey.protocol.portions import PORTIONS
from covey.trace.daemon import DaemonRecorder, Sink

from .network import Network, NetworkOptions
from .node import Clocks, Death, Node, make_node

Script = Generator[int, None, None]
"""A sequence of actions in virtual time: yields how long to wait, in microseconds."""

STEP_US = 30
"""A daemon that has more to do for its clients does it a little later: a step takes time."""

Watch = Callable[[Node, Effect], None]


STEPS_MAX: Final = 1_000_000
"""Of all daemons of a run: far more than any needs that comes to rest."""


class World:
    def __init__(
        self, cluster: Cluster, settings: Settings, options: NetworkOptions, random: Random, run: str, sink: Sink
    ) -> None:
        self.cluster = cluster
        self.settings = settings
        self.random = random
        self.now = 0
        self.count = Count()
        self.counts: list[tuple[str, Count]] = []
        """The same of each life that is over, and of the network."""
        self.network = Network(options, random, self._arrive, Count())
        self.send = self.network.send
        self.nodes: dict[int, Node] = {}
        self.watchers: list[Watch] = []
        """They see membership change."""
        self.observers: list[Watch] = []
        """They see all that daemons do, but for what they send to one another."""
        self.mourners: list[Callable[[Node, bool], None]] = []
        """They see each life end, and whether it ended in good order."""
        self.repeated_by: str | None = None  # The command that plays this run again, for who reads its trace.
        self.check_invariants = True
        self.ports_refuse = False
        self.deaf: dict[int, int] = {}
        """Ranks that no data of their site reaches, and how much was kept from each."""
        self.portions = PORTIONS
        self.changed_at = 0
        self._run = run
        self._sink = sink
        self._lives: dict[int, int] = {}
        self._belated: dict[int, list[tuple[int, bytes]]] = {}
        self.steps = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0

    # --- time

    def at(self, time: int, action: Callable[[], None]) -> None:
        self._sequence += 1
        heappush(self._events, (max(time, self.now), self._sequence, action))

    def run_until(self, time: int) -> None:
        while self._events and self._events[0][0] <= time:
            self.now, _, action = heappop(self._events)
            action()
        self.now = time

    def play(self, script: Script) -> None:
        """Run a script beside everything else."""

        def advance() -> None:
            wait = next(script, None)
            if wait is not None:
                self.at(self.now + wait, advance)

        self.at(self.now, advance)

    @property
    def time_ns(self) -> int:
        return self.now * 1_000

    # --- daemons

    def living(self) -> list[Node]:
        return [node for _, node in sorted(self.nodes.items()) if node.alive]

    def start(self, rank: int, clocks: Clocks) -> None:
        life = Life(rank, self._lives.get(rank, 0) + 1)
        self._lives[rank] = life.boot
        recorder = DaemonRecorder(self._run, self.cluster, life, self._sink)
        seed = self.random.getrandbits(62)
        node = make_node(self.cluster, self.settings, life, clocks, recorder, self.now, seed, self.portions)
        self.nodes[rank] = node
        recorder.event("recover", self.time_ns, self.steps, detail=self.repeated_by)
        self._perform(node, node.core.start(clocks.at(self.now)))

    def crash(self, rank: int, why: str = "killed") -> None:
        node = self.nodes[rank]
        if not node.alive:
            return
        node.recorder.event("crash", self.time_ns, self.steps, cause=why)
        self._end(node, orderly=False)

    def _end(self, node: Node, *, orderly: bool) -> None:
        node.alive = False
        for mourner in self.mourners:
            mourner(node, orderly)
        self.network.forget(node.rank)
        self._collect(node.recorder.process, node.core.kit.count)
        self.changed_at = self.now

    def pause(self, rank: int) -> None:
        self.nodes[rank].paused = True

    def resume(self, rank: int) -> None:
        node = self.nodes[rank]
        node.paused = False
        self._wake(node, self.now)

    def give(self, rank: int, one: Input) -> None:
        """An input that does not come from the network."""
        node = self.nodes.get(rank)
        if node is not None:
            self.give_to(node, one)

    def give_to(self, node: Node, one: Input) -> None:
        """To this life of a daemon, if it lives."""
        if node.alive and node.take(one):
            self._wake(node, self.now + 1)

    def look_at_deadline(self, node: Node) -> None:
        """Pulling may have moved a deadline."""
        if node.alive:
            self._schedule_deadline(node)

    # --- stepping

    def _arrive(self, time: int, rank: int, data: bytes, reliable: bool) -> None:
        self.at(time, lambda: self._on_arrival(rank, data, reliable))

    def _on_arrival(self, rank: int, data: bytes, reliable: bool) -> None:
        node = self.nodes.get(rank)
        if node is None or not node.alive or not node.take(Datagram(data), reliable) or node.paused:
            return
        # A daemon wakes a little later than its first datagram arrives, and finds what came meanwhile.
        self._wake(node, self.now + self.random.randrange(10, 60))

    def _wake(self, node: Node, time: int) -> None:
        if node.step_at is not None and node.step_at <= time:
            return
        node.step_at = time
        self.at(time, lambda: self._step(node, time))

    def _step(self, node: Node, time: int) -> None:
        if node.step_at != time or not node.alive:
            return
        node.step_at = None
        if node.paused:
            return
        self.steps += 1
        assert self.steps <= STEPS_MAX, "the daemons of this run never come to an end"
        inputs, node.inbox = node.inbox, []
        effects = node.core.step(node.clocks.at(self.now), inputs)
        self._perform(node, effects)
        if self.check_invariants and node.alive:
            node.core.check(full=any(isinstance(effect, Entered) for effect in effects))

    def _perform(self, node: Node, effects: list[Effect]) -> None:
        node.recorder.effects(effects, self.time_ns, self.steps)
        sends = [(send, rank) for send in effects if isinstance(send, Send | LinkSend) for rank in send.to]
        if node.dying and any(_is_data(send) for send, _ in sends):
            self._die(node, sends)
            return
        for send, rank in sends:
            if rank in self.deaf and isinstance(send, Send) and _is_data(send):
                self.deaf[rank] += 1
                continue
            self.send(self.now, node.rank, rank, send.data, isinstance(send, LinkSend))
            if self.ports_refuse:
                self._maybe_refuse(node, rank)
        for effect in effects:
            self._observe(node, effect)
        if node.alive:
            self._schedule_deadline(node)

    def _die(self, node: Node, sends: list[tuple[Send | LinkSend, int]]) -> None:
        """A crash in the middle of sending. Some of it comes when its sender has already been given up."""
        for send, rank in sends:
            arrives = not _is_data(send) if node.dying is Death.NO_DATA_ARRIVES else self.random.random() < 0.5
            if arrives and isinstance(send, Send) and self.random.random() < 0.3:
                self._belated.setdefault(rank, []).append((node.rank, send.data))
            elif arrives:
                self.send(self.now, node.rank, rank, send.data, isinstance(send, LinkSend))
        self.crash(node.rank, "killed while sending")

    def _release_belated(self, to: int) -> None:
        """In the middle of the change that the crash has caused: the worst moment there is."""
        for source, data in self._belated.pop(to, ()):
            wait = self.random.randrange(3_000)
            self.at(self.now + wait, partial(self.send, self.now + wait, source, to, data, False))

    def _maybe_refuse(self, node: Node, rank: int) -> None:
        """The host of a crashed daemon answers that nobody listens: perhaps late, when the next life is there."""
        dead = self.nodes.get(rank)
        if dead is not None and not dead.alive and self.connected(node.rank, rank) and self.random.random() < 0.2:
            self.at(self.now + self.network.delay(rank, node.rank), partial(self.give, node.rank, PeerRefused(rank)))

    def _observe(self, node: Node, effect: Effect) -> None:
        if isinstance(effect, Refused):
            node.owed.discard((effect.session, effect.session_seq))
        if isinstance(effect, Send | LinkSend | Refused):
            return
        if isinstance(effect, Stamped):
            node.owed.discard((effect.bundle.session, effect.bundle.session_seq))
        if not isinstance(effect, ClientReady | ClientReading):  # What is said changes something when it is heard.
            self.changed_at = self.now
        for observe in self.observers:
            observe(node, effect)
        if isinstance(effect, Stopped):
            self._end(node, orderly=True)
        if isinstance(effect, Entered) and effect.state in (State.STATETRANS, State.EVS):
            self._release_belated(node.rank)
        if isinstance(effect, Entered | Installed):
            for watch in self.watchers:
                watch(node, effect)

    def _schedule_deadline(self, node: Node) -> None:
        deadline = node.core.next_deadline_us()
        if deadline is not None:
            has_more = node.core.kit.deadlines.is_set(Deadline.CLIENT_WORK)
            self._wake(node, max(self.now + (STEP_US if has_more else 1), node.clocks.world_time(deadline)))

    # --- what the world knows

    def connected(self, one: int, other: int) -> bool:
        """Whether datagrams pass both ways."""
        return (one, other) not in self.network.cuts and (other, one) not in self.network.cuts

    def close(self) -> None:
        """Collect the counters of the daemons still alive, and of the network."""
        for node in self.living():
            self._collect(node.recorder.process, node.core.kit.count)
        self._collect("the network", self.network.count)

    def _collect(self, process: str, count: Count) -> None:
        self.counts.append((process, count))
        for name, amount in count.items():
            self.count.add(name, amount)


def _is_data(send: Send | LinkSend) -> bool:
    return isinstance(send, LinkSend) or frame_name(send.data) == "data"
