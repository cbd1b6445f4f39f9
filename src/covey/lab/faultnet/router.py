"""`python -m covey.lab.faultnet.router`: carries packets between hosts, in a process of its own.

In:        packets from the TUN device of each host; requests on standard input, a socket (messages.py).
Out:       packets to the TUN devices, at their time.
Not here:  what happens to a packet (lane.py), how devices are made (namespace.py).

Invariants:
  R1  all chance comes from one generator, made from the seed; which packet gets which draw depends on their order
  R2  a request takes effect between two packets: what a host sent before it was made is treated as before
  R3  what is under way is bounded, in bytes
  R4  whoever started the router is gone: so is the router, with all devices, and with all processes it was told of
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from heapq import heappop, heappush
from ipaddress import IPv4Address
from itertools import count
from random import Random
from typing import Final

from covey.lab.faultnet import namespace

from .lane import SECOND_NS, Lane
from .messages import REQUEST, Adopt, Ask, HostsReady, Reply, Report, Request, RequestDone, SetPaths, Start, hear, say

PACKETS_PER_READ: Final = 64
"""From one host, before the others and what is due have their turn."""
UNDER_WAY_BYTES_MAX: Final = 128 * 1024 * 1024

_IPV4: Final = 0x40
_VERSION: Final = 0xF0
_DESTINATION: Final = slice(16, 20)

_Arrival = tuple[int, int, Lane, int, bytes]
"""When it is due, a number that tells equal times apart, the lane it came by, the device it goes to, the packet."""


class Router:
    """All lanes, and a heap of the packets that are under way."""

    def __init__(self, control: socket.socket, start: Start, devices: list[int]) -> None:
        self._control = control
        self._devices = devices
        self._mtu = start.mtu
        self._random = Random(start.seed)
        self._lanes = _lanes(start)
        self._ways = [self._ways_from(source) for source in range(1, start.hosts + 1)]
        self._under_way: list[_Arrival] = []
        self._under_way_bytes = 0
        self._number = count()
        self._late_ns_max = 0
        self._nowhere = 0
        self._adopted: set[int] = set()
        self._running = True
        self._epoll = select.epoll()
        self._on_ready: dict[int, Callable[[], None]] = {}
        self._watch(control.fileno(), self._on_request)
        for index, device in enumerate(devices):
            self._watch(device, partial(self._read, index, PACKETS_PER_READ))

    def _ways_from(self, source: int) -> dict[bytes, tuple[Lane, int]]:
        """By the destination as it stands in a packet: the lane, and the device at its end."""
        return {
            IPv4Address(namespace.address_of(to)).packed: (self._lanes[source, to], device)
            for to, device in enumerate(self._devices, start=1)
            if to != source
        }

    def run(self) -> None:
        """Until the other end of the control socket is closed."""
        gc.collect()
        gc.freeze()  # What exists now stays: no collection shall look at it again.
        while self._running:
            for descriptor, _ in self._ready():
                if on_ready := self._on_ready.get(descriptor):
                    on_ready()
            self._deliver()

    def _ready(self) -> list[tuple[int, int]]:
        if not self._under_way:
            return self._epoll.poll()
        wait_ns = self._under_way[0][0] - time.monotonic_ns()
        if wait_ns > 0:
            # The timeout of epoll has milliseconds, that of select microseconds, and some delays are shorter than one.
            select.select([self._epoll], [], [], wait_ns / SECOND_NS)
        return self._epoll.poll(0)

    # --- packets

    def _read(self, index: int, packets_max: int) -> None:
        """What a host has sent."""
        device, ways, mtu = self._devices[index], self._ways[index], self._mtu
        for _ in range(packets_max):
            try:
                packet = os.read(device, mtu)
            except BlockingIOError:
                return
            way = ways.get(packet[_DESTINATION])
            if way is None or packet[0] & _VERSION != _IPV4:
                self._nowhere += 1
            elif way[0].plain:
                _write(packet, *way)
            else:
                self._admit(packet, *way)

    def _admit(self, packet: bytes, lane: Lane, to: int) -> None:
        if self._under_way_bytes > UNDER_WAY_BYTES_MAX:
            lane.counters.queue_full += 1
            return
        # Read now, and not once for all that is read together: no packet shall arrive before its delay is over.
        for due_ns in lane.admit(time.monotonic_ns(), len(packet), self._random):
            heappush(self._under_way, (due_ns, next(self._number), lane, to, packet))
            self._under_way_bytes += len(packet)

    def _deliver(self) -> None:
        """What has become due by now, and not what does so meanwhile: hosts shall be heard in between."""
        under_way, now_ns = self._under_way, time.monotonic_ns()
        while under_way and under_way[0][0] <= now_ns:
            due_ns, _, lane, to, packet = heappop(under_way)
            self._under_way_bytes -= len(packet)
            _write(packet, lane, to)
            self._late_ns_max = max(self._late_ns_max, time.monotonic_ns() - due_ns)

    # --- requests

    def _on_request(self) -> None:
        try:
            heard = hear(self._control, REQUEST)
        except ConnectionError:
            heard = None
        if heard is None:
            self._end()
            return
        for index in range(len(self._devices)):
            self._read(index, namespace.QUEUE_PACKETS)
        self._deliver()
        reply = self._obey(*heard)
        with suppress(ConnectionError):  # Whoever asked is gone; the next reading will tell.
            say(self._control, reply)

    def _obey(self, request: Request, descriptors: list[int]) -> Reply:
        match request:
            case SetPaths(paths):
                for pair, path in paths:
                    self._lanes[pair].path = path
            case Adopt():
                self._adopt(descriptors[0])
            case Ask():
                return self._report()
            case Start():
                raise AssertionError("a router starts once")
        return RequestDone()

    def _report(self) -> Report:
        pairs = [(pair, lane.counters) for pair, lane in self._lanes.items()]
        return Report(pairs, self._nowhere, len(self._under_way), self._late_ns_max // 1_000)

    def _adopt(self, process: int) -> None:
        self._adopted.add(process)
        self._watch(process, partial(self._forget, process))

    def _forget(self, process: int) -> None:
        """It has ended by itself."""
        self._epoll.unregister(process)
        del self._on_ready[process]
        self._adopted.discard(process)
        os.close(process)

    def _end(self) -> None:
        for process in sorted(self._adopted):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, signal.SIGKILL)
        self._running = False

    def _watch(self, descriptor: int, on_ready: Callable[[], None]) -> None:
        self._on_ready[descriptor] = on_ready
        self._epoll.register(descriptor, select.EPOLLIN)


def _lanes(start: Start) -> dict[tuple[int, int], Lane]:
    hosts = range(1, start.hosts + 1)
    return {(source, to): Lane(start.path) for source in hosts for to in hosts if source != to}


def _write(packet: bytes, lane: Lane, to: int) -> None:
    try:
        os.write(to, packet)
    except OSError:
        lane.counters.refused += 1
    else:
        lane.counters.carried += 1


def main() -> int:
    control = socket.socket(fileno=sys.stdin.fileno())
    heard = hear(control, REQUEST)
    if heard is None:
        return 0
    start = heard[0]
    assert isinstance(start, Start)
    own = namespace.own_namespace()
    hosts = [namespace.make_host(host, start.mtu) for host in range(1, start.hosts + 1)]
    namespace.enter(own)
    say(control, HostsReady(), [made for made, _ in hosts])
    for made in (own, *(made for made, _ in hosts)):
        os.close(made)  # Namespaces belong to those who use them: the bench, and the processes inside.
    Router(control, start, [device for _, device in hosts]).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
