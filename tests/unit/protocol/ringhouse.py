"""Rings on a table: a few Ring objects of one view, and a network that loses what it is told to lose.

Each member sends numbered chunks; what a member has of them without a gap is its line and its received number.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from covey.cluster import one_site
from covey.config import Settings
from covey.ids import Life
from covey.protocol.counters import Count, Dropped
from covey.protocol.deadlines import DeadlineTable
from covey.protocol.effects import Send
from covey.protocol.evs.codec import Codec
from covey.protocol.evs.deadlines import EvsDeadline
from covey.protocol.evs.frames import Chunk, Data, Frame, Hurry, Parked, Token
from covey.protocol.evs.growth import Growth
from covey.protocol.evs.links.ring import Ring
from covey.protocol.evs.links.turn import Standing, Turn
from tests.unit.protocol.builders import VIEW

SMALL = Settings(
    packet_bytes=2_000,
    bundle_bytes=1_000,
    ring_packets_per_visit=3,
    ring_packets_per_rotation=5,
    ring_packets_unstable=8,
    ring_packets_after_token=2,
)


class Member:
    """One ring, what waits to be sent by it, and what it has received."""

    def __init__(self, ranks: tuple[int, ...], me: int, settings: Settings) -> None:
        cluster = one_site(len(ranks))
        self.codec = Codec(cluster.name, cluster.digest(), Life(me, 1))
        self.count = Count()
        self.deadlines = DeadlineTable()
        self.patience = Growth(settings.token_lost_growth_max, settings.suspicion_decay_ms * 1_000)
        self.ring = Ring(VIEW, ranks, me, settings, self.codec, self.count, self.patience, 0)
        self.waiting = 0
        self.numbers: list[int] = []
        self.accepted: list[int] = []
        self.line_at_visit = 0
        self.may_rest = False

    @property
    def line(self) -> int:
        have = set(self.numbers)
        return next(number for number in range(len(have) + 1) if number + 1 not in have)

    def visit(self, now_us: int) -> list[Send]:
        """Use the token: send as much as waits and is allowed, one chunk a packet."""
        assert self.ring.holding is not None
        if self.ring.is_new:
            self.ring.arrive(
                Standing(self.line, {0: self.line}, self.ring.holding.site_seq, self.ring.holding.site_seq)
            )
        token = self.ring.holding
        fresh = range(token.site_seq + 1, token.site_seq + 1 + min(self.waiting, self.ring.allowance(token)))
        self.waiting -= len(fresh)
        self.numbers += fresh
        self.line_at_visit = self.line
        last = token.site_seq + len(fresh)
        busy = self.waiting > 0 or self.ring.line_everywhere.usable < last
        packets = [[Chunk(0, number, 0, 1, b"")] for number in fresh]
        turn = Turn(packets, busy, may_rest=self.may_rest and not self.waiting)
        return self.ring.turn(Standing(self.line, {0: self.line}, last, last), turn, now_us, self.deadlines)

    def take(self, frame: Frame, data: bytes, now_us: int) -> list[Send]:
        """What the daemon does with a frame of the ring."""
        if isinstance(frame, Data):
            chunks = self.ring.on_data(frame, data, now_us, self.deadlines)
            self.numbers += [] if isinstance(chunks, Dropped) else [chunk.number for chunk in chunks]
        elif isinstance(frame, Token):
            if self.ring.why_not(frame) is not None:
                return self.ring.on_duplicate(frame)
            self.ring.hold(frame, now_us, self.deadlines)
            self.accepted.append(frame.number)
            return self.visit(now_us)
        elif isinstance(frame, Parked):
            self.ring.on_parked(frame, self.deadlines)
            return self.send(0, now_us) if self.waiting else []
        elif isinstance(frame, Hurry) and self.ring.resume() is not None:
            return self.visit(now_us)
        return []

    def send(self, amount: int, now_us: int) -> list[Send]:
        """Something waits now: take up the token if it is parked here, ask for it if it is parked elsewhere."""
        self.waiting += amount
        if self.ring.resume() is not None:
            return self.visit(now_us)
        return [] if self.deadlines.is_set(EvsDeadline.TOKEN_LOST) else self.ring.hurry(now_us, self.deadlines)

    def on_deadline(self, deadline: Enum, now_us: int) -> list[Send]:
        if deadline is EvsDeadline.TOKEN_RESEND:
            return self.ring.resend_token(now_us, self.deadlines)
        if deadline is EvsDeadline.REST:
            self.may_rest = False
            sends = self.visit(now_us)
            self.may_rest = True
            return sends
        assert deadline is EvsDeadline.HURRY, f"rank {self.ring.me}: {deadline}"
        return self.ring.hurry(now_us, self.deadlines)


class RingHouse:
    def __init__(self, members: int, settings: Settings = SMALL) -> None:
        ranks = tuple(range(members))
        self.members = [Member(ranks, me, settings) for me in ranks]
        self.now = 0
        self.loses: Callable[[int, Frame], bool] = lambda to, frame: False
        self.under_way: list[tuple[int, bytes]] = []
        self.sent: list[tuple[int, Frame]] = []
        first = self.members[0]
        self._perform(0, first.take(first.ring.first_token((0,), 0), b"", self.now))

    def submit(self, rank: int, amount: int) -> None:
        self._perform(rank, self.members[rank].send(amount, self.now))

    def hop(self, at: int = 0) -> None:
        """One datagram arrives, the oldest unless another is named; when none is under way, a deadline runs out."""
        if self.under_way:
            to, data = self.under_way.pop(at)
            member = self.members[to]
            self._perform(to, member.take(member.codec.decode(data).frame, data, self.now))
        else:
            self._run_out()
        for member in self.members:
            member.ring.check()

    def is_at_rest(self) -> bool:
        """Whether the token is parked and everyone knows."""
        return not self.under_way and all(member.deadlines.next_us() is None for member in self.members)

    def run(self, hops_max: int = 5_000) -> None:
        for _ in range(hops_max):
            if self.is_at_rest():
                return
            self.hop()
        raise AssertionError("the ring does not come to rest")

    def frames(self, kind: type[Frame]) -> list[Frame]:
        return [frame for _, frame in self.sent if isinstance(frame, kind)]

    def holders(self) -> list[int]:
        return [member.ring.me for member in self.members if member.ring.holding is not None]

    def _run_out(self) -> None:
        self.now = min(at for member in self.members if (at := member.deadlines.next_us()) is not None)
        for rank, member in enumerate(self.members):
            for deadline in member.deadlines.due(self.now):
                if member.deadlines.take(deadline, self.now):
                    self._perform(rank, member.on_deadline(deadline, self.now))

    def _perform(self, rank: int, sends: list[Send]) -> None:
        for send in sends:
            frame = self.members[rank].codec.decode(send.data).frame
            self.sent.append((rank, frame))
            self.under_way.extend((to, send.data) for to in send.to if not self.loses(to, frame))
