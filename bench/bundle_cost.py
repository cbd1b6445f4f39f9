"""What a message costs a daemon, by how many travel in one bundle.

    python bench/bundle_cost.py

Three daemons in this process, joined by hand: no sockets, no waiting. One session at the first daemon sends agreed
messages of 100 bytes to a group with a member at each daemon. Processor time of each daemon, from a client's bytes to
the bytes for the clients, over the number of messages; medians of interleaved rounds.
"""

from __future__ import annotations

import time
from statistics import median

from covey.cluster import one_site
from covey.config import loopback
from covey.ids import Instant, Life
from covey.protocol.asked import Sending
from covey.protocol.building import build_daemon
from covey.protocol.effects import ClientReady, Effect, Send
from covey.protocol.inputs import ClientBytes, ClientConnected, Datagram, Input
from covey.protocol.values import Service
from covey.protocol.wire.bodies import record_parts, sender_prefix
from covey.protocol.wire.session import Splitter, encode_word, read_from_daemon, sending_parts
from covey.protocol.wire.words import MAGIC, VERSION, Hello, JoinGroup, Welcome

SIZE = 100
IN_BUNDLE = (1, 10, 50, 400)
ROUNDS = 5
MESSAGES = 8_000
MEMBER, SENDER = 1, 2


class House:
    """Three daemons in one view, each with a member; the first with a sender too."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000
        at = Instant(self.now, self.now)
        self.daemons = [build_daemon(one_site(3), Life(rank, 1), loopback(3), at, rank) for rank in range(3)]
        self.cpu = [0.0, 0.0, 0.0]
        self.is_ready = False
        self._arrived: list[list[Input]] = [[], [], []]
        for daemon in self.daemons:
            self._perform(daemon.start(at))
        self.run(1_000_000)
        for rank in range(3):
            self._greet(rank, MEMBER, f"member{rank}")
            self.give(rank, ClientBytes(MEMBER, encode_word(JoinGroup("room"))))
        self.prefix = sender_prefix(self._greet(0, SENDER, "sender"))
        self.seq = 1
        self.run(500_000)
        for daemon in self.daemons:
            daemon.pull(MEMBER, 1 << 20)
        self.is_ready = True

    def _greet(self, rank: int, connection: int, name: str) -> str:
        hello = encode_word(Hello(MAGIC, VERSION, name, 1, "disconnect"))
        self.give(rank, ClientConnected(connection), ClientBytes(connection, hello))
        data = b"".join(self.daemons[rank].pull(connection, 1 << 20))
        word = read_from_daemon(*Splitter(1 << 20).feed(data)[0])
        assert isinstance(word, Welcome)
        return word.process

    def give(self, rank: int, *inputs: Input) -> None:
        began = time.process_time()
        effects = self.daemons[rank].step(Instant(self.now, self.now), list(inputs))
        for effect in effects:
            if isinstance(effect, ClientReady) and self.is_ready:
                self.daemons[rank].pull(MEMBER, 1 << 30)
        self.cpu[rank] += time.process_time() - began
        self._perform(effects)

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                for to in effect.to:
                    self._arrived[to].append(Datagram(effect.data))

    def run(self, duration_us: int) -> None:
        end = self.now + duration_us
        while self.now < end:
            self.now += 100
            for rank, daemon in enumerate(self.daemons):
                inputs, self._arrived[rank] = self._arrived[rank], []
                deadline = daemon.next_deadline_us()
                if inputs or (deadline is not None and deadline <= self.now):
                    self.give(rank, *inputs)

    def send(self, in_bundle: int) -> None:
        """All messages, some bundles at a time, and until everybody has them."""
        records = b"".join(record_parts(0, bytes(SIZE))) * in_bundle
        for _ in range(0, MESSAGES, in_bundle):
            sending = Sending(Service.AGREED, 0, in_bundle, self.seq, ("room",), self.prefix + records)
            self.seq += in_bundle
            self.give(0, ClientBytes(SENDER, b"".join(sending_parts(sending))))
            if self.seq // in_bundle % 10 == 0:
                self.run(400)
        self.run(20_000)


def main() -> None:
    house = House()
    costs: dict[int, list[tuple[float, float]]] = {count: [] for count in IN_BUNDLE}
    for _ in range(ROUNDS):
        for count in IN_BUNDLE:
            house.cpu = [0.0, 0.0, 0.0]
            house.send(count)
            costs[count].append((house.cpu[0] / MESSAGES * 1e6, (house.cpu[1] + house.cpu[2]) / 2 / MESSAGES * 1e6))
    print("messages in a bundle   µs a message: sender's daemon   another daemon")
    for count, pairs in costs.items():
        print(f"{count:>20}   {median(a for a, _ in pairs):>28.2f} {median(b for _, b in pairs):>16.2f}")


if __name__ == "__main__":
    main()
