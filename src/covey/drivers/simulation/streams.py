"""Simulated streams between clients and their daemons: reliable, ordered, cut anywhere, with limited room.

In:        the effects of daemons that concern clients; what clients want to write.
Out:       inputs for daemons, bytes for clients, the end of a stream for both.
Not here:  what clients do (clients.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from covey.ids import Life
from covey.protocol.effects import ClientClosed, ClientReading, ClientReady, Effect
from covey.protocol.inputs import ClientBytes, ClientConnected, ClientGone
from covey.protocol.values import Payload

from .node import Node
from .world import World

ROOM = 20_000
"""Bytes under way in one direction; more waits with whoever wants to write it."""


PIECES_READ = 5
"""Pieces of what a client wrote that its daemon reads at once."""

PAUSED_US = 10_000
"""How often a paused daemon's streams are looked at."""

EVERYTHING = 1 << 30


class End(Protocol):
    """A client, as its stream sees it."""

    @property
    def is_reading(self) -> bool: ...
    def take(self, room: int) -> list[Payload]: ...
    def was_read(self, size: int) -> None: ...
    def arrived(self, data: bytes) -> None: ...
    def broke(self, reason: str) -> None: ...


@dataclass(slots=True, eq=False)
class SimulatedStream:
    node: Node
    connection: int
    client: End
    daemon_reads: bool = True
    closing: bool = False
    over: bool = False
    up: deque[bytes] = field(default_factory=deque)
    """Written by the client, and not read by the daemon yet."""
    up_bytes: int = 0
    up_at: int = 0
    down_at: int = 0
    pulling: bool = False


class Streams:
    def __init__(self, world: World, random: Random) -> None:
        self._world = world
        self._random = random
        self._streams: dict[Life, dict[int, SimulatedStream]] = {}
        self._numbers = 0
        world.observers.append(self._on_effect)
        world.mourners.append(self._on_daemon_end)

    # --- for clients

    def connect(self, rank: int, client: End) -> SimulatedStream | None:
        """None if nobody listens there."""
        node = self._world.nodes.get(rank)
        if node is None or not node.alive:
            return None
        self._numbers += 1
        stream = SimulatedStream(node, self._numbers, client)
        self._streams.setdefault(node.life, {})[stream.connection] = stream
        self._world.give_to(node, ClientConnected(stream.connection))
        return stream

    def write(self, stream: SimulatedStream) -> None:
        """The client has something to say."""
        room = ROOM - stream.up_bytes
        if stream.over or room <= 0:
            return
        data = b"".join(stream.client.take(room))
        stream.up_bytes += len(data)
        while data:
            size = self._random.choice((1, 7, 100, 3_000, len(data)))
            stream.up.append(data[:size])
            data = data[size:]
        self._move_up(stream)

    def drop(self, stream: SimulatedStream) -> None:
        """The client is gone; its daemon notices a little later."""
        if stream.over:
            return
        stream.over = True
        self._forget(stream)
        self._later(self._delay(), lambda: self._tell_gone(stream))

    def read(self, stream: SimulatedStream) -> None:
        """The client reads again."""
        self._pull(stream)

    # --- up

    def _move_up(self, stream: SimulatedStream) -> None:
        if not stream.up or not stream.daemon_reads or stream.over:
            return
        stream.up_at = max(stream.up_at, self._world.now + self._delay())
        self._world.at(stream.up_at, lambda: self._arrive_up(stream))

    def _arrive_up(self, stream: SimulatedStream) -> None:
        if stream.over or not stream.daemon_reads or not stream.up:
            return
        data = b"".join(stream.up.popleft() for _ in range(min(PIECES_READ, len(stream.up))))
        stream.up_bytes -= len(data)
        stream.client.was_read(len(data))
        self._world.give_to(stream.node, ClientBytes(stream.connection, data))
        self._move_up(stream)
        self.write(stream)

    def _tell_gone(self, stream: SimulatedStream) -> None:
        self._world.give_to(stream.node, ClientGone(stream.connection))

    # --- down

    def _on_effect(self, node: Node, effect: Effect) -> None:
        if not isinstance(effect, ClientReady | ClientReading | ClientClosed):
            return
        stream = self._streams.get(node.life, {}).get(effect.connection)
        if stream is None:
            return
        if isinstance(effect, ClientReading):
            stream.daemon_reads = effect.read
            self._move_up(stream)
        else:
            stream.closing = stream.closing or isinstance(effect, ClientClosed)
            self._pull(stream)

    def _pull(self, stream: SimulatedStream) -> None:
        if stream.pulling or stream.over or not stream.client.is_reading:
            return
        if stream.node.paused:
            self._later(PAUSED_US, lambda: self._pull(stream))
            return
        data = b"".join(stream.node.core.pull(stream.connection, self._random.choice((1, 500, ROOM))))
        if not data and not stream.closing:
            return
        stream.pulling = True
        self._later(self._delay(), lambda: self._arrive_down(stream, data))

    def _arrive_down(self, stream: SimulatedStream, data: bytes) -> None:
        stream.pulling = False
        if stream.over:
            return
        if not data:
            self._finish(stream, "the daemon closed the stream")
            self._tell_gone(stream)
            return
        while data and not stream.over:
            size = self._random.choice((3, 50, 2_000, len(data)))
            stream.client.arrived(data[:size])
            data = data[size:]
        self._world.look_at_deadline(stream.node)
        self._pull(stream)

    # --- the end

    def _on_daemon_end(self, node: Node, orderly: bool) -> None:
        """A dead daemon's streams break, with what was under way; one that stops writes its last words."""
        for stream in list(self._streams.get(node.life, {}).values()):
            if orderly and stream.client.is_reading and not stream.pulling:
                stream.client.arrived(b"".join(node.core.pull(stream.connection, EVERYTHING)))
            self._finish(stream, "the daemon is gone")

    def _finish(self, stream: SimulatedStream, reason: str) -> None:
        if stream.over:
            return
        stream.over = True
        self._forget(stream)
        stream.client.broke(reason)

    def _forget(self, stream: SimulatedStream) -> None:
        self._streams.get(stream.node.life, {}).pop(stream.connection, None)

    def _delay(self) -> int:
        return 20 + int(self._random.expovariate(1.0) * 150)

    def _later(self, delay: int, action: Callable[[], None]) -> None:
        self._world.at(self._world.now + delay, action)
