"""Programs in the simulation: they connect, join, leave, send, stall, crash and come back, all from one generator.

In:        the style of the seed, what a storm demands.
Out:       requests to the library, whose bytes travel by streams; rows of level C.
Not here:  what all programs do at once (storms.py), how they are called (style.py).
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from covey.client.events import Disconnected, Event, Failure
from covey.client.options import SendOptions
from covey.client.protocol import ClientProtocol
from covey.client.recording import Recording
from covey.protocol.values import Payload, Service
from covey.trace.client import ClientRecorder
from covey.trace.daemon import Sink

from .fairness import Fairness
from .streams import SimulatedStream, Streams
from .style import Style
from .world import Script, World

MS = 1_000
_SIZES = (0, 20, 100, 400, 2_000)
_LARGE = 20_000
_LARGEST = 23_900
"""Bytes of a message that every simulated daemon still takes."""


_BOTH = 0.04
"""The share of messages to few groups that are for one program, too."""
_FEW = 4


class Stage(NamedTuple):
    """What all programs of a run share."""

    world: World
    streams: Streams
    style: Style
    fairness: Fairness
    run: str
    sink: Sink


class Seat:
    """One session of a program, as its stream sees it. What comes late for an old one concerns no other."""

    def __init__(
        self, world: World, streams: Streams, fairness: Fairness, recorder: ClientRecorder, protocol: ClientProtocol
    ) -> None:
        self._world = world
        self._streams = streams
        self._fairness = fairness
        self._recorder = recorder
        self.protocol = protocol
        self.stream: SimulatedStream | None = None
        self._read_bytes = 0
        self.is_reading = True
        self.is_over = False

    def take(self, room: int) -> list[Payload]:
        return self.protocol.take(room)

    def was_read(self, size: int) -> None:
        self._read_bytes += size
        if self.stream is not None and self.protocol.process is not None:
            self._fairness.was_read(self.stream.node.life, self.protocol.process, self._read_bytes - size)

    def arrived(self, data: bytes) -> None:
        if self.is_over:
            return
        self._see(self.protocol.feed(data))
        self.write()

    def broke(self, reason: str) -> None:
        if not self.is_over:
            self._see(self.protocol.lost(reason))
        self.is_over = True
        self.says_no_more()

    def write(self) -> None:
        if self.stream is not None:
            self._streams.write(self.stream)

    def read_again(self) -> None:
        self.is_reading = True
        if self.stream is not None:
            self._streams.read(self.stream)

    def handed(self, seq: int) -> None:
        """The library has this message, reliable or stronger."""
        if self.stream is not None and self.protocol.process is not None:
            under_way = self._read_bytes + self.stream.up_bytes + self.protocol.waiting_bytes
            self._fairness.handed(self.stream.node.life, self.stream.connection, self.protocol.process, seq, under_way)

    def says_no_more(self) -> None:
        if self.stream is not None and self.protocol.process is not None:
            self._fairness.over(self.stream.node.life, self.protocol.process)

    def vanish(self) -> None:
        self.is_over = True
        self.says_no_more()
        if self.stream is not None:
            self._streams.drop(self.stream)

    def _see(self, events: list[Event]) -> None:
        if events:  # A daemon that only says that it is there changes nothing.
            self._world.changed_at = self._world.now
        for event in events:
            if isinstance(event, Failure):
                self._see_failure(event)
        self.is_over = any(isinstance(event, Disconnected) for event in events)
        if self.is_over:
            self.says_no_more()

    def _see_failure(self, failure: Failure) -> None:
        """A request without effect: the trace says so, since nobody may wait for it any more."""
        asked, _, what = failure.asked.partition(" ")
        if asked in ("join", "leave"):
            self._recorder.event(asked, self._world.time_ns, group=what, cause=failure.reason)
        elif asked == "send" and self.stream is not None and self.protocol.process is not None:
            self._fairness.answered(self.stream.node.life, self.protocol.process, int(what))


class Program:
    """One program: a name, at most one session at a time, and what it does with it."""

    def __init__(self, stage: Stage, random: Random, name: str, pause_ms: float) -> None:
        self._stage = stage
        self._world = stage.world
        self._style = stage.style
        self._pause_ms = pause_ms
        self._random = random
        self._name = name
        self._recorder = ClientRecorder(stage.run, stage.sink)
        self._frozen_until = 0
        """It does nothing at all before that."""
        self._seat: Seat | None = None
        self._daemons = tuple(daemon.name for daemon in self._world.cluster.daemons)
        self.running = True

    @property
    def is_connected(self) -> bool:
        return self._seat is not None and not self._seat.is_over and self._seat.protocol.is_open

    @property
    def rank(self) -> int | None:
        """Of the daemon where it is, if it is connected."""
        return self._seat.stream.node.rank if self.is_connected and self._seat and self._seat.stream else None

    # --- what it does

    def script(self) -> Script:
        """Until it is told to stop."""
        yield self._random.randrange(500 * MS)
        while self.running:
            self.act()
            yield 1 + int(self._random.expovariate(1.0) * self._pause_ms * MS)

    def act(self) -> None:
        if self._world.now < self._frozen_until:
            return
        if self._seat is None or self._seat.is_over:
            self._connect()
        elif self.is_connected:
            action = self._random.choices(
                (self._join, self._leave, self.send, self._stall, self._bye, self._crash),
                (18, 7, 68, 2, 2, 3),
            )[0]
            action()
        if self._seat is not None:
            self._seat.write()

    def _connect(self) -> None:
        self._recorder = ClientRecorder(self._stage.run, self._stage.sink)
        protocol = ClientProtocol(
            self._name,
            *self._style.session_options(self._random),
            **self._style.session_bounds()._asdict(),
            observer=Recording(self._recorder, lambda: (self._world.time_ns, None)),
        )
        stage = self._stage
        seat = Seat(stage.world, stage.streams, stage.fairness, self._recorder, protocol)
        rank = self._style.daemon(self._random, len(self._world.cluster.daemons))
        seat.stream = self._stage.streams.connect(rank, seat)
        self._seat = seat if seat.stream is not None else None

    def _join(self) -> None:
        protocol, group = self._open(), self._random.choice(self._style.groups)
        if group not in protocol.groups:
            protocol.join(group)

    def _leave(self) -> None:
        protocol = self._open()
        if protocol.groups:
            protocol.leave(self._random.choice(protocol.groups))

    def send(self, services: tuple[Service, ...] = tuple(Service)) -> None:
        random = self._random
        to = self._style.destinations(random)
        if random.random() < 0.05:
            to = [self._style.address(random, self._daemons)]
        elif len(to) < _FEW and self._style.random.random() < _BOTH:
            to = [*to, self._style.address(self._style.random, self._daemons)]
        service = random.choice(services)
        size = _LARGE if random.random() < 0.02 and service is not Service.UNRELIABLE else random.choice(_SIZES)
        if service is Service.UNRELIABLE:
            size = min(size, 200)
        count = random.choice((1, 1, 1, 5))
        one_by_one = count > 1 and random.random() < 0.5
        for _ in range(count):
            self._say(to, random.randbytes(size), service, random.random() < 0.1)
            if one_by_one:
                self._write()

    def _say(self, to: list[str], payload: bytes, service: Service, self_discard: bool = False) -> None:
        seq = self._open().send(to, payload, SendOptions(service, self_discard=self_discard))
        if service is not Service.UNRELIABLE and self._seat is not None:
            self._seat.handed(seq)

    def _stall(self) -> None:
        """Stop reading for a while."""
        if self._seat is not None and self._seat.is_reading:
            self.stall(self._style.stall_ms(self._random) * MS)

    def stall(self, wait: int) -> None:
        seat = self._seat
        if seat is not None:
            seat.is_reading = False
            self._frozen_until = self._world.now + wait if self._style.watched else 0
            self._world.at(self._world.now + wait, seat.read_again)

    def _bye(self) -> None:
        self._open().bye()
        if self._seat is not None:
            self._seat.says_no_more()

    def _crash(self) -> None:
        self._recorder.event("crash", self._world.time_ns, cause="killed")
        if self._seat is not None:
            self._seat.vanish()

    # --- what it does with all others, if it can

    def come(self) -> None:
        if self.running and (self._seat is None or self._seat.is_over):
            self._connect()
            self._write()

    def join(self, *groups: str) -> None:
        if self.running and self.is_connected:
            for group in groups:
                if group not in self._open().views and group not in self._open().groups:
                    self._open().join(group)
            self._write()

    def leave(self, *groups: str) -> None:
        """These groups, or all."""
        if self.running and self.is_connected:
            for group in groups or self._open().groups:
                if group in self._open().groups:
                    self._open().leave(group)
            self._write()

    def hop(self) -> None:
        """Leave all groups, and join them again in the same breath."""
        if self.running and self.is_connected:
            for group in list(self._open().groups):
                self._open().leave(group)
                self._open().join(group)
            self._write()

    def bye(self) -> None:
        if self.running and self.is_connected:
            self._bye()
            self._write()

    def crash(self) -> None:
        if self.running and self.is_connected:
            self._crash()

    def send_small(self, count: int) -> int:
        """Many small messages, each in a bundle of its own; how many."""
        if not self.running or not self.is_connected:
            return 0
        random = self._style.random
        to = [random.choice(self._style.groups[:4])]
        for number in range(count):  # What goes the same way as the one before would travel with it.
            self._say(to, random.randbytes(60), Service.AGREED if number % 2 else Service.FIFO)
        self._write()
        return count

    def send_to(self, group: str, payload: bytes, service: Service) -> None:
        if self.running and self.is_connected:
            self._say([group], payload, service)
            self._write()

    def send_large(self) -> int:
        if not self.running or not self.is_connected:
            return 0
        random = self._style.random
        self._say([random.choice(self._style.groups[:4])], random.randbytes(_LARGEST), random.choice(list(Service)[1:]))
        self._write()
        return 1

    def _write(self) -> None:
        if self._seat is not None:
            self._seat.write()

    # --- the end of the run

    def read_again(self) -> None:
        if self._seat is not None:
            self._seat.read_again()

    def last_words(self) -> None:
        """At the end: everybody can still send everything."""
        if self._seat is not None and self.is_connected:
            for service in Service:
                self.send((service,))
            self._seat.write()

    def end(self) -> None:
        if self.is_connected:
            self._recorder.event("end", self._world.time_ns)

    def _open(self) -> ClientProtocol:
        assert self._seat is not None
        return self._seat.protocol
