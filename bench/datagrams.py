"""What a datagram of one network frame costs a daemon's sockets, in trains and one by one, to one peer and to several.

    python bench/datagrams.py

Sender and receivers are in this process and take turns, so nothing is lost and no time passes in waiting. What is told
is the CPU time of sending one datagram and of receiving it at every peer: medians of interleaved rounds.
"""

from __future__ import annotations

from statistics import median
from time import process_time

from covey.cluster import Cluster, DaemonConfig
from covey.drivers.live.endpoint import Endpoint
from covey.drivers.live.sockets import free_ports
from covey.protocol.effects import Send

FRAME_BYTES = 1_400
VISIT = 20
"""Datagrams handed over at once: what a visit of the token may send."""
ROUNDS, TIMES = 41, 25


class Case:
    """One sender and so many receivers."""

    def __init__(self, peers: int, trains: bool, multicast: bool) -> None:
        ports = free_ports(peers + 2)
        daemons = tuple(DaemonConfig(f"d{rank}", 0, port=port) for rank, port in enumerate(ports[:-1]))
        cluster = Cluster("bench", daemons, f"239.192.77.1:{ports[-1]}" if multicast else None)
        self.sender, *self.receivers = (Endpoint(cluster, rank) for rank in range(peers + 1))
        self.name = f"{peers} | {'yes' if multicast else 'no'} | {'trains' if trains else 'one by one'}"
        to = tuple(range(1, peers + 1))
        # Each one byte longer than the one before: such neighbours share no train.
        self._sends = [Send(to, bytes(FRAME_BYTES + (0 if trains else index))) for index in range(VISIT)]
        self.costs_us: list[float] = []

    def measure(self) -> None:
        start = process_time()
        for _ in range(TIMES):
            self.sender.send(self._sends)
            self.sender.receive(1_000)  # With multicast, the sender's own datagrams come back to be thrown away.
            for receiver in self.receivers:
                if len(receiver.receive(1_000)) != VISIT:
                    raise SystemExit(f"{self.name}: datagrams were lost; is the socket buffer very small?")
        self.costs_us.append((process_time() - start) * 1_000_000 / (TIMES * VISIT))


if __name__ == "__main__":
    kinds = [(1, False), (2, False), (2, True), (8, False), (8, True)]
    cases = [Case(peers, trains, multicast) for peers, multicast in kinds for trains in (False, True)]
    for _ in range(ROUNDS):
        for case in cases:
            case.measure()
    print("| peers | multicast | datagrams | µs each | each second |\n|---|---|---|---|---|")
    for case in cases:
        cost = median(case.costs_us)
        print(f"| {case.name} | {cost:.1f} | {1_000_000 / cost:,.0f} |")
