"""Wrong datagrams for a live cluster: noise, truncations, and frames of its own lives and views with bytes changed.

In:        what is known of a running cluster (from its status), chance.  Out: datagrams that must change nothing.
Not here:  well-formed frames that nobody sent (forgery.py), who sends what when (the tests).

Datagrams are not authenticated yet, so a daemon cannot refuse everything: a token, a packet or a proposal with the
numbers that come next is indistinguishable from a real one, and would break guarantees. `is_refusable` says which
frames a daemon can tell, or may follow without harm. Changed bytes that make a frame which it would have to believe are
sent as if by a life that never was: that, it can refuse. So whatever comes from a Fuzzer must leave views, order and
deliveries as they are; and still most of it passes the codec, or comes close to it.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from covey.cluster import Cluster
from covey.drivers.live.told import ring_of
from covey.errors import FrameError
from covey.ids import Ballot, Life
from covey.protocol.evs.codec import Codec
from covey.protocol.evs.frames import (
    Ack,
    Alive,
    Announce,
    AttemptFrame,
    Data,
    Frame,
    Goodbye,
    Hurry,
    Join,
    NewMemb,
    Parked,
    PassedOn,
    Refuse,
    Token,
    Unreliable,
)
from covey.protocol.status import DaemonStatus
from covey.protocol.values import Service

from .forgery import Facts, Forger

FAR: Final = 1 << 20
"""No token or packet number grows by this much while facts are fresh."""
COUNTER_FAR: Final = 1 << 33
GOOD_MAX, GOOD_NEW = 400, 40
"""Frames from which wrong datagrams are made: how many there are, and how many are new with each lesson."""
NOISE_BYTES: Final = (0, 1, 12, 40, 200, 1_400)
NOBODY: Final = struct.Struct("<Q")
"""The boot id in a head. No life has the number 0."""


def facts_of(cluster: Cluster, digest: int, status: DaemonStatus, clock_us: int) -> Facts:
    """What a daemon's status tells about it and its view."""
    boots = {peer["name"]: peer["boot"] for peer in status["peers"]} | {status["name"]: status["boot"]}
    lives = tuple(Life(cluster.rank_of(name), boots[name]) for name in status["members"])
    target = Life(cluster.rank_of(status["name"]), status["boot"])
    view = Ballot(*map(int, status["view"].split(".")))
    ring = ring_of(status["link"])
    token, packets = (ring["token"], ring["packets_received"]) if ring is not None else (0, 0)
    return Facts(cluster, digest, lives, view, target, token, packets, clock_us)


class Fuzzer:
    """Makes datagrams for one daemon. Tell it what has changed: frames of old facts are refused too soon."""

    def __init__(self, facts: Facts, random: Random) -> None:
        self._random = random
        self._good: deque[bytes] = deque(maxlen=GOOD_MAX)
        self.learn(facts)
        self._codec = Codec(facts.cluster.name, facts.digest, facts.target)
        self._head_bytes = self._codec.overhead
        self._makers: tuple[tuple[float, Callable[[], bytes]], ...] = (
            (0.06, self._noise),
            (0.12, self._noise_behind_a_head),
            (0.25, self._truncated),
            (0.50, self._unsaid),
            (1.00, self._changed),
        )

    def learn(self, facts: Facts) -> None:
        self._facts = facts
        forger = Forger(facts, self._random)
        for _ in range(GOOD_NEW):
            sender, frame = forger.frame()
            self._good.append(Codec(facts.cluster.name, facts.digest, sender).encode(frame))

    def datagram(self) -> bytes:
        drawn = self._random.random()
        return next(make for bound, make in self._makers if drawn < bound)()

    def _noise(self) -> bytes:
        return self._random.randbytes(self._random.choice(NOISE_BYTES))

    def _noise_behind_a_head(self) -> bytes:
        """As much of a good head as chance wants, then noise."""
        head = self._random.choice(self._good)[
            : self._random.choice((2, 3, 12, self._head_bytes, self._head_bytes, self._head_bytes + 2))
        ]
        return self._refusable(head + self._noise())

    def _truncated(self) -> bytes:
        data = self._random.choice(self._good)
        return self._refusable(data[: self._random.randrange(len(data))])

    def _unsaid(self) -> bytes:
        """Not a byte wrong, but nobody said it."""
        return self._refusable(self._random.choice(self._good))

    def _changed(self) -> bytes:
        """Bytes changed, left out or put in; more often behind the head than in it."""
        random, data = self._random, bytearray(self._random.choice(self._good))
        first = self._head_bytes if random.random() < 0.8 and len(data) > self._head_bytes else 0
        for _ in range(random.choice((1, 1, 1, 2, 8))):
            at = random.randrange(first, max(len(data), first + 1))
            how = random.random()
            if how < 0.7:
                data[at : at + 1] = random.randbytes(1)
            elif how < 0.85:
                del data[at : at + random.choice((1, 4))]
            else:
                data[at:at] = random.randbytes(random.choice((1, 4)))
        return self._refusable(bytes(data))

    def _refusable(self, data: bytes) -> bytes:
        """The same bytes if they may be sent; else as if another life had sent them; else without a body."""
        if self._may_be_sent(data):
            return data
        head = data[: self._head_bytes - NOBODY.size] + NOBODY.pack(0)
        other = head + data[self._head_bytes :]
        return other if self._may_be_sent(other) else head

    def _may_be_sent(self, data: bytes) -> bool:
        try:
            sender, frame = self._codec.decode(data)
        except FrameError:
            return True
        return is_refusable(sender, frame, self._facts)


def is_refusable(sender: Life, frame: Frame, facts: Facts) -> bool:
    """Whether the target can tell that this is wrong, or may follow it without harm."""
    if sender.rank == facts.target.rank or sender.rank >= len(facts.cluster.daemons):
        return True
    if isinstance(frame, Alive | Join):
        return _is_refusable_alive(sender, frame.alive if isinstance(frame, Join) else frame, facts)
    if isinstance(frame, NewMemb):
        return _is_refusable_proposal(sender, frame, facts)
    if isinstance(frame, AttemptFrame | PassedOn | Refuse):
        return frame.attempt.counter <= facts.view.counter
    if isinstance(frame, Goodbye):
        return sender not in facts.lives
    if frame.view != facts.view or sender not in facts.lives:
        return frame.view.counter <= facts.view.counter
    return _is_refusable_in_view(sender, frame, facts)


def _is_refusable_alive(sender: Life, alive: Alive, facts: Facts) -> bool:
    """A number that was said long ago; or a life that is over, or that does not show that it hears us."""
    real = next((life for life in facts.lives if life.rank == sender.rank), None)
    if real is None or sender.boot == real.boot:
        return real is not None and alive.number == 0
    return sender.boot < real.boot or not any(heard[:2] == facts.target for heard in alive.heard)


def _is_refusable_proposal(sender: Life, frame: NewMemb, facts: Facts) -> bool:
    counter = frame.attempt.counter
    if counter <= facts.view.counter or counter > facts.view.counter + COUNTER_FAR:
        return True
    return frame.attempt[1:] != sender or facts.target not in frame.members


def _is_refusable_in_view(
    sender: Life, frame: Token | Parked | Hurry | Ack | Announce | Data | Unreliable, facts: Facts
) -> bool:
    if isinstance(frame, Token):
        return not facts.token < frame.number <= facts.token + FAR
    if isinstance(frame, Parked):
        return frame.number < facts.token
    if isinstance(frame, Data):
        return not facts.packets < frame.packet_seq <= facts.packets + FAR
    if isinstance(frame, Ack):
        return False  # Nobody can tell that it is not true.
    if isinstance(frame, Unreliable):
        bundle = frame.bundle
        return bundle.origin != sender or bundle.service is not Service.UNRELIABLE or bool(bundle.number)
    return True


def lost_by_the_system(port: int) -> int:
    """Datagrams for this UDP port that found the socket's buffer full."""
    lines = Path("/proc/net/udp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return sum(int(one[-1]) for one in fields if int(one[1].rpartition(":")[2], 16) == port)
