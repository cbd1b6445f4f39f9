"""The loop of the live driver, in this process: what it reads, gives and performs, and in which order."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from covey.cluster import Cluster, DaemonConfig
from covey.config import loopback
from covey.config_file import Configuration
from covey.drivers.live import driver as module
from covey.drivers.live.driver import LiveDaemon, clock, new_life
from covey.drivers.live.sockets import free_ports
from covey.ids import Instant
from covey.protocol.effects import ClientReady, Effect, Send
from covey.protocol.inputs import Datagram, Input, PeerRefused, Submit
from covey.protocol.values import Service

SUBMIT = Submit(1, 1, Service.AGREED, b"x")


class House:
    """One of two daemons; the other does not run. What its parts do is noted in their order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log: list[str] = []
        self.inputs: list[list[Input]] = []
        self.now = clock()
        """It stands still, unless a test moves it."""
        monkeypatch.setattr(module, "clock", self.clock)
        ports = free_ports(2)
        daemons = [DaemonConfig(name, 0, "127.0.0.1", port) for name, port in zip("ab", ports, strict=True)]
        cluster = Cluster("two", tuple(daemons))
        configuration = Configuration(Path("covey.toml"), cluster, loopback(2), allow_unsealed=False)
        life = new_life(cluster, "a")
        self.daemon = LiveDaemon(configuration, life, 1, "test", lambda row: self.log.append(row.event), self.observe)
        self.core = self.daemon.core
        self._step, self._finish = self.core.step_until_sent, self.core.finish_step
        self._receive = self.daemon.endpoint.receive
        self._send, self.daemon.send = self.daemon.send, self.send
        monkeypatch.setattr(self.core, "step_until_sent", self.step)
        monkeypatch.setattr(self.core, "finish_step", self.finish)
        monkeypatch.setattr(self.daemon.endpoint, "receive", self.receive)
        self.log.clear()

    def clock(self) -> Instant:
        self.log.append("clock")
        return self.now

    def wait(self, microseconds: int) -> None:
        self.now = Instant(self.now.mono_us + microseconds, self.now.wall_us + microseconds)

    def receive(self, limit: int) -> list[Datagram]:
        self.log.append("receive")
        return [*self._receive(limit), Datagram(b"noise")]

    def step(self, now: Instant, inputs: list[Input]) -> list[Effect]:
        self.log.append("step")
        self.inputs.append(inputs)
        assert now == self.now
        return self._step(now, inputs)

    def finish(self) -> list[Effect]:
        self.log.append("finish")
        return self._finish()

    def send(self, sends: list[Send]) -> None:
        self.log.append("send")
        self._send(sends)

    def observe(self, _time_ns: int, effect: Effect) -> None:
        self.log.append(f"observe {type(effect).__name__}")
        self.daemon.running = False


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    made = House(monkeypatch)
    yield made
    made.daemon.close()


def test_a_row_is_in_the_trace_before_the_datagrams_of_its_step_leave(house: House) -> None:
    house.daemon.run()
    assert house.log == ["clock", "recover", "state", "send", "observe Entered"]


def test_the_clock_is_read_before_the_sockets_and_a_deadline_is_judged_by_that_reading(house: House) -> None:
    house.daemon.run()
    house.log.clear()
    house.wait(10_000_000)  # A deadline has run out, and no socket was said to be ready.
    house.daemon._step()
    assert house.log[:3] == ["clock", "receive", "step"]


def test_datagrams_leave_before_the_clients_here_are_told(house: House) -> None:
    house.daemon.run()
    house.log.clear()
    house.wait(10_000_000)
    house.daemon._step()
    assert house.log.index("step") < house.log.index("send") < house.log.index("finish")


def test_sockets_are_not_read_where_nothing_came_and_nobody_can_be_judged(house: House) -> None:
    house.daemon.run()
    house.log.clear()
    house.daemon._step()
    assert "receive" not in house.log


def test_a_turn_is_one_step_with_everything_that_arrived_and_refusals_after_datagrams(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.daemon.run()
    monkeypatch.setattr(house.daemon.endpoint, "refused", lambda: [1])
    house.daemon.give(SUBMIT)
    house.daemon._may_drain = True
    house.daemon._step()
    assert house.inputs == [[Datagram(b"noise"), PeerRefused(1), SUBMIT]]


def test_whoever_keeps_up_is_called_at_its_time_and_the_step_that_follows_takes_what_it_gives(house: House) -> None:
    once: list[int] = []

    def give(now_us: int) -> int:
        house.daemon.give(SUBMIT)
        return now_us + 10_000_000

    house.daemon.run()
    house.daemon.keep_up(give)
    house.daemon.keep_up(once.append)
    for _ in range(2):
        house.daemon._wait()
        house.daemon._step()
    assert [inputs.count(SUBMIT) for inputs in house.inputs] == [1, 0]
    assert len(once) == 1


def test_a_refusal_that_may_be_of_an_earlier_life_is_not_passed_on(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.daemon.run()
    monkeypatch.setattr(house.daemon.endpoint, "refused", lambda: [1])
    house.wait(module.REFUSAL_FRESH_US + 1)
    house.daemon._step()
    assert PeerRefused(1) not in house.inputs[0]


def test_the_daemon_is_told_how_many_streams_wait_to_be_written(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    streams: Any = house.daemon.clients
    monkeypatch.setattr(streams, "unwritten", lambda: 7)
    house.daemon._do_rest([ClientReady(1)], house.clock())
    assert house.core.clients.streams_unwritten == 7


def test_each_life_has_a_larger_boot_id(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = house.core.kit.cluster
    monkeypatch.setattr(time, "time_ns", lambda: 5_000_000)
    earlier = new_life(cluster, "b")
    monkeypatch.setattr(time, "time_ns", lambda: 6_000_000)
    assert new_life(cluster, "b") > earlier
