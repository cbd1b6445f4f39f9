"""One daemon on one UDP socket: wait, drain, step, perform, for as long as the daemon lives.

In:        a configuration, a life; inputs from the program around it through `give`.
Out:       datagrams; rows of the trace; every effect, in its order, to `observe`.
Not here:  the process around it: arguments, signals, commands, printing (daemon.py).

Invariants, the first of those that every driver keeps (docs/driving.md):
  D1  one step a wake-up, with everything that arrived
  D2  the clock is read before the sockets are drained, and deadlines are judged by that reading: whatever was said
      while this process did not run is heard before anyone is declared silent
  D3  a row is in the trace before the datagrams of its step leave: what others see of a life, its trace explains
  D4  a turn is short: of what clients say and are told it takes a portion; datagrams are heard and sent in every turn
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import Final

from covey.cluster import Cluster
from covey.config_file import Configuration
from covey.ids import Instant, Life
from covey.memory import clients_budget
from covey.protocol.building import build_daemon
from covey.protocol.effects import ClientReady, Effect, Send, Stopped
from covey.protocol.inputs import Input, PeerRefused
from covey.trace.daemon import DaemonRecorder, Sink

from .clients import ClientStreams
from .endpoint import Endpoint
from .measures import Turns

DATAGRAMS_PER_STEP_MAX: Final = 4_000
"""More full datagrams than the socket buffer holds, so that D2 is true of a long pause too."""

POLLED_MAX: Final = 1_023
"""How many descriptors one poll tells of at most."""

REFUSAL_FRESH_US: Final = 20_000
"""A refusal comes within a round trip of the datagram that met a closed port. Later, a new life may have that port."""

Upkeep = Callable[[int], int | None]
"""Called with the monotonic time in microseconds when its time has come; tells when to call it next, if ever."""

Observe = Callable[[int, Effect], None]
"""Called with the wall clock in nanoseconds and each effect that is neither a datagram nor for a client's stream."""


def clock() -> Instant:
    return Instant(time.monotonic_ns() // 1_000, time.time_ns() // 1_000)


def new_life(cluster: Cluster, name: str) -> Life:
    """A life that begins now. Each start of a daemon is later than the one before, and so its boot id is larger."""
    return Life(cluster.rank_of(name), time.time_ns() // 1_000_000)


class LiveDaemon:
    """Runs one life of one daemon. Other descriptors may be waited for in the same loop: see `watch`."""

    def __init__(
        self, configuration: Configuration, me: Life, seed: int, run: str, sink: Sink | None, observe: Observe
    ) -> None:
        cluster = configuration.cluster
        self.endpoint = Endpoint(cluster, me.rank, configuration.allow_unsealed)
        self.core = build_daemon(cluster, me, configuration.settings, clock(), seed, clients_budget())
        self.recorder = DaemonRecorder(run, cluster, me, sink) if sink is not None else None
        self.send: Callable[[list[Send]], None] = self.endpoint.send
        """How datagrams leave. Who troubles a network puts something in between."""
        self.running = True
        self.turns = Turns()
        self._upkeeps: dict[Upkeep, int | None] = {}
        """And when the time of each has come."""
        self._woke_us = 0
        self._observe = observe
        self._given: list[Input] = []
        self._sent_us = 0
        self._may_drain = False
        """Something has arrived, or an error was reported."""
        self._watched: dict[int, Callable[[], None]] = {}
        self._epoll = select.epoll()
        self._endpoints = frozenset(self.endpoint.descriptors())
        for descriptor in self._endpoints:
            self._epoll.register(descriptor, select.EPOLLIN)
        self.clients = ClientStreams(self._epoll, self.core, self.give)

    # --- what the program around may do

    def watch(self, descriptor: int, on_ready: Callable[[], None]) -> None:
        """Call `on_ready` whenever there is something to read, or an end."""
        self._watched[descriptor] = on_ready
        self._epoll.register(descriptor, select.EPOLLIN)

    def unwatch(self, descriptor: int) -> None:
        del self._watched[descriptor]
        self._epoll.unregister(descriptor)

    def keep_up(self, upkeep: Upkeep) -> None:
        """Call this too between turns, whenever it wants to be called. What it gives, the step that follows takes."""
        self._upkeeps[upkeep] = clock().mono_us

    def give(self, one: Input) -> None:
        """An input that does not come from the network; the next step takes it."""
        self._given.append(one)

    def record(self, event: str, time_ns: int, members: tuple[str, ...] = ()) -> None:
        """A row that comes from no effect."""
        if self.recorder is not None:
            self.recorder.event(event, time_ns, members=members)

    def run(self) -> None:
        """Until the daemon has stopped, or `running` is taken away: then without a goodbye."""
        now = clock()
        self._woke_us = now.mono_us
        self.record("recover", now.wall_us * 1_000)
        effects = self.core.start(now)
        self._send_out(effects, now)
        self._do_rest(effects, now)
        while self.running:
            self._wait()
            if self.running:
                self._step()
        self.clients.write_all()

    def close(self) -> None:
        self.clients.close()
        self._epoll.close()
        self.endpoint.close()

    # --- the loop

    def _wait(self) -> None:
        now_us = time.monotonic_ns() // 1_000
        self.turns.add(self._woke_us, now_us)
        events = self._epoll.poll(self._timeout_s(now_us), POLLED_MAX)
        self._woke_us = time.monotonic_ns() // 1_000
        for upkeep, due_us in self._upkeeps.items():
            if due_us is not None and self._woke_us >= due_us:
                self._upkeeps[upkeep] = upkeep(self._woke_us)
        for descriptor, mask in events:
            on_ready = self._watched.get(descriptor)
            if on_ready is not None:
                on_ready()
            elif descriptor in self._endpoints:
                self._may_drain = True
                if mask & select.EPOLLERR:
                    self.endpoint.on_errors()
            else:
                self.clients.on_event(descriptor, mask)
        # Of more descriptors than one poll tells, ours may be missing.
        self._may_drain = self._may_drain or len(events) >= POLLED_MAX
        if self.clients.to_read:
            self.clients.read()

    def _timeout_s(self, now_us: int) -> float:
        """Until the next deadline; epoll rounds it up to its milliseconds. Not at all if something is left to do."""
        if self._given or self.clients.is_behind():
            return 0
        moments = [self.core.next_deadline_us(), self.clients.next_us(), *self._upkeeps.values()]
        waits = [moment for moment in moments if moment is not None]
        return max(0, min(waits) - now_us) / 1_000_000 if waits else -1

    def _step(self) -> None:
        now = clock()
        refused = self.endpoint.refused()
        inputs: list[Input] = []
        if self._may_drain or self._is_due(now):
            inputs += self.endpoint.receive(DATAGRAMS_PER_STEP_MAX)
            self._may_drain = False
        # After the datagrams: the last words of whoever closed the port, perhaps a goodbye, come before the news of it.
        # After a pause, though, the words may be those of the next life; a refusal that still holds will come again.
        if now.mono_us - self._sent_us < REFUSAL_FRESH_US:
            inputs += [PeerRefused(rank) for rank in refused]
        inputs += self._given
        self._given = []
        effects = self.core.step_until_sent(now, inputs)
        self._send_out(effects, now)
        rest = self.core.finish_step()
        self._send_out(rest, now)
        self._do_rest(effects + rest, now)

    def _is_due(self, now: Instant) -> bool:
        """Whether somebody may be declared silent in this step: then the sockets are drained first (D2)."""
        deadline = self.core.next_deadline_us()
        return deadline is not None and deadline <= now.mono_us

    def _send_out(self, effects: list[Effect], now: Instant) -> None:
        """Record what was done, then send (D3)."""
        if self.recorder is not None:
            self.recorder.effects(effects, now.wall_us * 1_000)
        # All datagrams together: many of one size cost little more than one. And first: others wait for them.
        sends = [effect for effect in effects if isinstance(effect, Send)]
        if sends:
            self._sent_us = now.mono_us
            self.send(sends)

    def _do_rest(self, effects: list[Effect], now: Instant) -> None:
        self.clients.perform(effects)
        if self.clients.has_to_write():
            self.clients.write()
        self.clients.close_overdue()
        self.core.clients.streams_unwritten = self.clients.unwritten()
        for effect in effects:
            if isinstance(effect, Send | ClientReady):
                continue  # What comes of it is seen by others.
            self._observe(now.wall_us * 1_000, effect)
            if isinstance(effect, Stopped):
                self.running = False
