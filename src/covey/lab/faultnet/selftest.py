"""How much the bench can carry on this machine, and how fast: to know what a result obtained on it is worth.

In:        nothing.  Out: numbers, after about three seconds.
Not here:  whether the bench is correct (the tests).

For the rates the sender never pauses and nobody reads: the router is always behind, and what it carries is all it can
carry next to a sender that takes another core. Daemons that compete for the same cores leave it less.
"""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from typing import Final

import msgspec

from .net import FaultNet
from .path import Path

PORT: Final = 4803
PAYLOAD_BYTES: Final = 1_000
SECONDS: Final = 1.0
TRIPS: Final = 1_000
TRIP_WITHIN_S: Final = 10.0
SENT_PER_LOOK: Final = 64
"""Datagrams between two looks at the clock."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """From one host to another, with datagrams of `payload_bytes`."""

    payload_bytes: int
    packets_per_s: int
    """With nothing on the path."""
    packets_per_s_delayed: int
    """With a delay and some jitter: each packet passes through the heap."""
    late_us_max: int
    """How much later than it should the most belated of these arrived, under this overload."""
    one_way_us_median: int
    """From send to receive, one datagram at a time, with nothing on the path."""
    one_way_us_p99: int


def measure() -> Measured:
    with FaultNet(hosts=2, seed=1) as net, ExitStack() as stack:
        sender, receiver = (stack.enter_context(_bound(net, host)) for host in net.hosts)
        trips = sorted(_trip_us(net, sender, receiver) for _ in range(TRIPS))
        plain = _packets_per_s(net, sender)
        net.set_all(Path(delay_ms=5, jitter_ms=1))
        delayed = _packets_per_s(net, sender)
        return Measured(
            payload_bytes=PAYLOAD_BYTES,
            packets_per_s=plain,
            packets_per_s_delayed=delayed,
            late_us_max=net.report().late_us_max,
            one_way_us_median=trips[len(trips) // 2],
            one_way_us_p99=trips[len(trips) * 99 // 100],
        )


def _bound(net: FaultNet, host: int) -> socket.socket:
    with net.inside(host):
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((net.address(host), PORT))
    made.settimeout(TRIP_WITHIN_S)
    return made


def _trip_us(net: FaultNet, sender: socket.socket, receiver: socket.socket) -> int:
    begun_ns = time.monotonic_ns()
    sender.sendto(bytes(PAYLOAD_BYTES), (net.address(2), PORT))
    receiver.recv(PAYLOAD_BYTES)
    return (time.monotonic_ns() - begun_ns) // 1_000


def _packets_per_s(net: FaultNet, sender: socket.socket) -> int:
    """What the router carried while we sent all we could. What its host could not queue was never sent."""
    payload, address = bytes(PAYLOAD_BYTES), (net.address(2), PORT)
    before, begun_ns = net.counters()[1, 2].carried, time.monotonic_ns()
    while time.monotonic_ns() - begun_ns < SECONDS * 1e9:
        for _ in range(SENT_PER_LOOK):
            sender.sendto(payload, address)
    carried = net.counters()[1, 2].carried - before
    return int(carried * 1e9 / (time.monotonic_ns() - begun_ns))
