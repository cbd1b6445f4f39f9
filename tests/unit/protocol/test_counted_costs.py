"""What a message costs, counted and not timed: steps of daemons and datagrams, on fixed workloads of single messages.

A bound is what is reached today and a little more. Who raises one says why in the commit.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from covey.cluster import one_site
from covey.config import loopback
from covey.protocol.effects import Send
from covey.protocol.values import Service

from .network import SECOND_US, TinyNetwork

MS = 1_000
MESSAGES = 200


class Costs(NamedTuple):
    steps: float
    datagrams: float


def costs(senders: tuple[int, ...], service: Service, pause_us: int, daemons: int = 3) -> Costs:
    """Of a message, where each sender in turn sends one, and a pause follows."""
    network = TinyNetwork(one_site(daemons), loopback(daemons))
    network.checks = False
    network.form_view()
    network.run(SECOND_US)
    for seq in range(1, 11):  # Until it is known who sends.
        _say(network, senders, seq, service, pause_us)
    before = _counted(network)
    for seq in range(11, 11 + MESSAGES):
        _say(network, senders, seq, service, pause_us)
    network.run(SECOND_US)
    after, messages = _counted(network), MESSAGES * len(senders)
    assert all(len(network.payloads(rank, service)) == messages + 10 * len(senders) for rank in range(daemons))
    heartbeats = _heartbeats(SECOND_US + MESSAGES * len(senders) * pause_us, daemons)
    return Costs((after[0] - before[0]) / messages, (after[1] - before[1] - heartbeats) / messages)


def _say(network: TinyNetwork, senders: tuple[int, ...], seq: int, service: Service, pause_us: int) -> None:
    for rank in senders:
        network.submit(rank, seq, b"x", service)
        network.run(pause_us)


def _counted(network: TinyNetwork) -> tuple[int, int]:
    """Steps, and datagrams sent."""
    steps = sum(map(len, network.steps.values()))
    sends = [effect for effects in network.effects.values() for effect in effects if isinstance(effect, Send)]
    return steps, sum(len(send.to) for send in sends)


def _heartbeats(duration_us: int, daemons: int) -> int:
    """Datagrams that an idle cluster sends in that time."""
    return daemons * (daemons - 1) * duration_us // (loopback(daemons).alive_interval_ms * MS)


@pytest.mark.parametrize(
    ("senders", "service", "pause_us", "steps", "datagrams"),
    [
        pytest.param((0,), Service.AGREED, 2 * MS, 5.2, 2.6, id="one sender, agreed"),
        pytest.param((0,), Service.SAFE, 2 * MS, 7.4, 6.8, id="one sender, safe"),
        pytest.param((0,), Service.AGREED, 50, 4.1, 2.1, id="one sender, as fast as twenty thousand a second"),
        pytest.param((0, 1, 2), Service.AGREED, 700, 10.9, 10.8, id="three senders, agreed"),
        pytest.param((0,), Service.AGREED, 100 * MS, 21.5, 10.7, id="one sender, seldom"),
    ],
)
def test_a_message_costs_no_more(
    senders: tuple[int, ...], service: Service, pause_us: int, steps: float, datagrams: float
) -> None:
    found = costs(senders, service, pause_us)
    assert found.steps <= steps, found
    assert found.datagrams <= datagrams, found
