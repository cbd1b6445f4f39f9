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


class Program:
    """One program: a name, at most one session at a time, and what it does with it."""

    def __init__(self, world: World, streams: Streams, random: Random, name: str, run: str, sink: Sink) -> None:
        self._world = world
        self._streams = streams
        self._random = random
        self._name = name
        self._stream: Stream | None = None
        self._protocol: RecordingProtocol | None = None
        self._recorder = ClientRecorder(run, sink)
        self._stalled = False
        self.running = True

    # --- as its stream sees it

    @property
    def is_reading(self) -> bool:
        return not self._stalled

    def take(self, room: int) -> list[Payload]:
        return self._protocol.take(room) if self._protocol is not None else []

    def arrived(self, data: bytes) -> None:
        if self._protocol is not None:
            self._see(self._protocol.feed(data))
        if self._stream is not None:
            self._streams.write(self._stream)

    def broke(self, reason: str) -> None:
        if self._protocol is not None:
            self._see(self._protocol.lost(reason))
        self._protocol = self._stream = None

    def _see(self, events: list[Event]) -> None:
        self._world.changed_at = self._world.now
        if any(isinstance(event, Disconnected) for event in events):
            self._protocol = None

    # --- what it does

    def script(self) -> Script:
        """Until it is told to stop."""
        yield self._random.randrange(500 * MS)
        while self.running:
            self.act()
            yield 1 + int(self._random.expovariate(1.0) * 60 * MS)

    def act(self) -> None:
        if self._protocol is None:
            self.connect()
        elif self._protocol.is_open:
            action = self._random.choices(
                (self._join, self._leave, self.send, self._stall, self._bye, self._crash),
                (18, 7, 68, 2, 2, 3),
            )[0]
            action()
        if self._stream is not None:
            self._streams.write(self._stream)

    def connect(self) -> None:
        self._stalled = False
        stream = self._streams.connect(self._random.randrange(len(self._world.cluster.daemons)), self)
        if stream is None:
            return
        policy: Policy = self._random.choice(POLICIES)
        self._protocol = RecordingProtocol(
            self._name, self._recorder, self._random.randrange(3), policy, lambda: (self._world.time_ns, None)
        )
        self._stream = stream

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
        if not self._stalled:
            self._stalled = True
            wait = self._random.choice((50, 400, 1_500)) * MS
            self._world.at(self._world.now + wait, self.read_again)

    def read_again(self) -> None:
        self._stalled = False
        if self._stream is not None:
            self._streams.read(self._stream)

    def _bye(self) -> None:
        self._open().bye()

    def _crash(self) -> None:
        self._recorder.event("crash", self._world.time_ns, cause="killed")
        stream, self._stream, self._protocol = self._stream, None, None
        if stream is not None:
            self._streams.drop(stream)

    # --- the end of the run

    def last_words(self) -> None:
        """At the end: everybody can still send everything."""
        if self.is_connected:
            for service in Service:
                self.send((service,))
            if self._stream is not None:
                self._streams.write(self._stream)

    def is_at_rest(self) -> bool:
        """Everything it asked for has left, and it is not in the middle of connecting."""
        return self._protocol is None or (self._protocol.is_open and not self._protocol.waiting_bytes)

    def end(self) -> None:
        if self._protocol is not None and self._protocol.is_open:
            self._recorder.event("end", self._world.time_ns)

    @property
    def is_connected(self) -> bool:
        return self._protocol is not None and self._protocol.is_open

    def _open(self) -> RecordingProtocol:
        assert self._protocol is not None
        return self._protocol
