"""Programs in the simulation: they connect, join, leave, send, stall, crash and come back, all from one generator."""

from __future__ import annotations

from random import Random

from covey.client.events import Disconnected, Event
from covey.client.recording import RecordingProtocol
from covey.protocol.values import Payload, Service
from covey.protocol.wire.session import Policy
from covey.trace.client import ClientRecorder
from covey.trace.daemon import Sink

from .streams import Stream, Streams
from .world import Script, World

MS = 1_000
GROUPS = ("red", "green", "blue", "black")
_SIZES = (0, 20, 100, 400, 2_000)
_LARGE = 20_000
POLICIES: tuple[Policy, ...] = ("disconnect", "block")


class Seat:
    """One session of a program, as its stream sees it. What comes late for an old one concerns no other."""

    def __init__(self, world: World, streams: Streams, protocol: RecordingProtocol) -> None:
        self._world = world
        self._streams = streams
        self.protocol = protocol
        self.stream: Stream | None = None
        self.is_reading = True
        self.is_over = False

    def take(self, room: int) -> list[Payload]:
        return self.protocol.take(room)

    def arrived(self, data: bytes) -> None:
        if self.is_over:
            return
        self._see(self.protocol.feed(data))
        self.write()

    def broke(self, reason: str) -> None:
        if not self.is_over:
            self._see(self.protocol.lost(reason))
        self.is_over = True

    def write(self) -> None:
        if self.stream is not None:
            self._streams.write(self.stream)

    def read_again(self) -> None:
        self.is_reading = True
        if self.stream is not None:
            self._streams.read(self.stream)

    def vanish(self) -> None:
        self.is_over = True
        if self.stream is not None:
            self._streams.drop(self.stream)

    def _see(self, events: list[Event]) -> None:
        self._world.changed_at = self._world.now
        self.is_over = any(isinstance(event, Disconnected) for event in events)


class Program:
    """One program: a name, at most one session at a time, and what it does with it."""

    def __init__(
        self, world: World, streams: Streams, random: Random, name: str, pause_ms: float, run: str, sink: Sink
    ) -> None:
        self._world = world
        self._pause_ms = pause_ms
        self._streams = streams
        self._random = random
        self._name = name
        self._run = run
        self._sink = sink
        self._recorder = ClientRecorder(run, sink)
        self._seat: Seat | None = None
        self.running = True

    @property
    def is_connected(self) -> bool:
        return self._seat is not None and not self._seat.is_over and self._seat.protocol.is_open

    # --- what it does

    def script(self) -> Script:
        """Until it is told to stop."""
        yield self._random.randrange(500 * MS)
        while self.running:
            self.act()
            yield 1 + int(self._random.expovariate(1.0) * self._pause_ms * MS)

    def act(self) -> None:
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
        self._recorder = ClientRecorder(self._run, self._sink)
        protocol = RecordingProtocol(
            self._name,
            self._recorder,
            self._random.randrange(3),
            self._random.choice(POLICIES),
            lambda: (self._world.time_ns, None),
        )
        seat = Seat(self._world, self._streams, protocol)
        seat.stream = self._streams.connect(self._random.randrange(len(self._world.cluster.daemons)), seat)
        self._seat = seat if seat.stream is not None else None

    def _join(self) -> None:
        protocol, group = self._open(), self._random.choice(GROUPS)
        if group not in protocol.groups:
            protocol.join(group)

    def _leave(self) -> None:
        protocol = self._open()
        if protocol.groups:
            protocol.leave(self._random.choice(protocol.groups))

    def send(self, services: tuple[Service, ...] = tuple(Service)) -> None:
        protocol, random = self._open(), self._random
        to = random.sample(GROUPS, random.choice((1, 1, 1, 2, 3)))
        if random.random() < 0.05:
            to = [f"p{random.randrange(8)}@{random.choice(self._world.cluster.daemons).name}"]
        service = random.choice(services)
        size = _LARGE if random.random() < 0.02 and service is not Service.UNRELIABLE else random.choice(_SIZES)
        if service is Service.UNRELIABLE:
            size = min(size, 200)
        for _ in range(random.choice((1, 1, 1, 5))):
            protocol.send(to, random.randbytes(size), service, self_discard=random.random() < 0.1)

    def _stall(self) -> None:
        """Stop reading for a while."""
        seat = self._seat
        if seat is not None and seat.is_reading:
            seat.is_reading = False
            wait = self._random.choice((50, 400, 1_500)) * MS
            self._world.at(self._world.now + wait, seat.read_again)

    def _bye(self) -> None:
        self._open().bye()

    def _crash(self) -> None:
        self._recorder.event("crash", self._world.time_ns, cause="killed")
        if self._seat is not None:
            self._seat.vanish()

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

    def _open(self) -> RecordingProtocol:
        assert self._seat is not None
        return self._seat.protocol
