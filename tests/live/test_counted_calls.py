"""What a message costs the daemons on loopback, counted and not timed: system calls on their sockets, and waits.

Three live daemons in this process take turns, whenever something has arrived for one or its time has come. Time is what
the test says it is, so every run makes the same calls. A bound is what is reached today and a little more; who raises
one says why in the commit. Streams of programs are not counted here.
"""

from __future__ import annotations

import select
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from covey.cluster import Cluster, DaemonConfig
from covey.config import loopback
from covey.config_file import Configuration
from covey.drivers.live import driver as module
from covey.drivers.live.driver import LiveDaemon
from covey.drivers.live.sockets import free_ports
from covey.ids import Instant, Life
from covey.protocol.effects import Deliver, Effect
from covey.protocol.inputs import Submit
from covey.protocol.values import Service

NAMES = "abc"
MS = 1_000
MESSAGES = 100
COUNTED = frozenset({"recvmsg", "recvmsg_into", "recv", "sendto", "sendmsg", "poll"})


class Counted:
    """A socket, a poll or an epoll whose system calls are counted."""

    def __init__(self, inner: Any, calls: Counter[str]) -> None:
        self._inner, self._calls = inner, calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in COUNTED:
            return found

        def call(*arguments: Any) -> Any:
            self._calls[f"{type(self._inner).__name__}.{name}"] += 1
            return found(*arguments)

        return call


class House:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_us = 1_000 * MS
        self.calls: Counter[str] = Counter()
        self.delivered: Counter[str] = Counter()
        monkeypatch.setattr(module, "clock", self._clock)
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: self.now_us * 1_000))
        ports = free_ports(len(NAMES))
        cluster = Cluster(
            "counted", tuple(DaemonConfig(name, 0, "127.0.0.1", port) for name, port in zip(NAMES, ports, strict=True))
        )
        configuration = Configuration(Path("covey.toml"), cluster, loopback(3), allow_unsealed=False)
        self.daemons = [self._start(configuration, rank) for rank in range(len(NAMES))]
        self.run_until(lambda: all(daemon.core.is_at_rest and self._members(daemon) == 3 for daemon in self.daemons))

    def _start(self, configuration: Configuration, rank: int) -> LiveDaemon:
        daemon = LiveDaemon(configuration, Life(rank, 1), 1, "test", None, self._observing(NAMES[rank]))
        endpoint: Any = daemon.endpoint
        endpoint._socket = Counted(endpoint._socket, self.calls)
        endpoint._sockets = [endpoint._socket]
        endpoint._more = Counted(endpoint._more, self.calls)
        daemon._epoll = Counted(daemon._epoll, self.calls)  # type: ignore[assignment]
        effects = daemon.core.start(self._clock())
        daemon._send_out(effects, self._clock())
        return daemon

    def _observing(self, name: str) -> Callable[[int, Effect], None]:
        def observe(_time_ns: int, effect: Effect) -> None:
            self.delivered[name] += isinstance(effect, Deliver)

        return observe

    def _clock(self) -> Instant:
        return Instant(self.now_us, self.now_us)

    def _members(self, daemon: LiveDaemon) -> int:
        return len(daemon.core.engine.machine.members)  # type: ignore[attr-defined]

    def run_until(self, holds: Callable[[], bool]) -> None:
        """Turns of whoever has something to do; where nobody has, time passes until somebody has."""
        for _ in range(100_000):
            if holds():
                return
            busy = [daemon for daemon in self.daemons if self._has_arrived(daemon) or self._is_due(daemon)]
            for daemon in busy:
                self.turn(daemon)
            if not busy:
                self.now_us = min(daemon.core.next_deadline_us() or self.now_us for daemon in self.daemons)
        pytest.fail("it never came to hold")

    def run(self, duration_us: int) -> None:
        """The same for so long."""
        until_us = self.now_us + duration_us
        self.run_until(lambda: self._next_us() > until_us)
        self.now_us = until_us

    def turn(self, daemon: LiveDaemon) -> None:
        daemon._wait()
        daemon._step()

    def _next_us(self) -> int:
        if any(map(self._has_arrived, self.daemons)):
            return self.now_us
        return min(daemon.core.next_deadline_us() or self.now_us for daemon in self.daemons)

    def _has_arrived(self, daemon: LiveDaemon) -> bool:
        poll = select.poll()
        poll.register(daemon.endpoint.descriptors()[0], select.POLLIN)
        return bool(poll.poll(0))

    def _is_due(self, daemon: LiveDaemon) -> bool:
        return (daemon.core.next_deadline_us() or 0) <= self.now_us

    def close(self) -> None:
        for daemon in self.daemons:
            daemon.close()


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    made = House(monkeypatch)
    yield made
    made.close()


def calls_a_message(house: House, service: Service, pause_us: int) -> float:
    """Of all daemons together, where a sends one after the other, and a pause follows each."""
    numbers = count(1)

    def say(messages: int) -> None:
        for _ in range(messages):
            house.daemons[0].give(Submit(1, next(numbers), service, b"x" * 100))
            house.turn(house.daemons[0])
            house.run(pause_us)

    say(10)  # Until it is known who sends.
    house.calls.clear()
    say(MESSAGES)
    return house.calls.total() / MESSAGES


@pytest.mark.parametrize(
    ("service", "pause_us", "bound"),
    [
        pytest.param(Service.AGREED, 2 * MS, 13.3, id="agreed, five hundred a second"),
        pytest.param(Service.SAFE, 2 * MS, 25.4, id="safe, five hundred a second"),
        pytest.param(Service.AGREED, 50, 11.6, id="agreed, twenty thousand a second"),
    ],
)
def test_a_message_costs_no_more_calls(house: House, service: Service, pause_us: int, bound: float) -> None:
    found = calls_a_message(house, service, pause_us)
    assert set(house.delivered.values()) == {MESSAGES + 10}, house.delivered
    assert found <= bound, (found, house.calls)


def test_an_idle_daemon_makes_few_calls(house: House) -> None:
    house.run(1_000 * MS)
    house.calls.clear()
    house.run(1_000 * MS)
    assert house.calls.total() / len(NAMES) <= 84, house.calls
