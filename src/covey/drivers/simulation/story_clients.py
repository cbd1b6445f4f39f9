"""Programs in a story: they connect, join, say, stall, leave and come back, each when it is told to.

In:        the commands of a story that are about programs.
Out:       requests to the library, whose bytes travel by streams; rows of level C.
Not here:  programs that act by themselves (clients.py), the other commands (story.py).
"""

from __future__ import annotations

from random import Random
from typing import cast

from covey.client.options import SendOptions
from covey.client.protocol import ClientProtocol
from covey.client.recording import Recording
from covey.protocol.values import Policy, Service
from covey.trace.client import ClientRecorder
from covey.trace.daemon import Sink

from .clients import Seat
from .fairness import Fairness
from .streams import Streams
from .world import World

RUN = "story"


class StoryClients:
    """All programs of a story, by name. A command is a method: `do_join` plays `join alice room`."""

    def __init__(self, world: World, sink: Sink) -> None:
        self._world = world
        self._sink = sink
        self._streams = Streams(world, Random(1))
        self._fairness = Fairness(world, RUN)
        self._seats: dict[str, Seat] = {}
        self._recorders: dict[str, ClientRecorder] = {}

    def do_client(self, name: str, daemon: str, policy: str = "disconnect") -> None:
        recorder = ClientRecorder(RUN, self._sink)
        observer = Recording(recorder, lambda: (self._world.time_ns, None))
        protocol = ClientProtocol(name, policy=cast("Policy", policy), observer=observer)
        seat = Seat(self._world, self._streams, self._fairness, recorder, protocol)
        seat.stream = self._streams.connect(self._world.cluster.rank_of(daemon), seat)
        if seat.stream is None:
            raise ValueError(f"nobody listens at {daemon}")
        self._seats[name], self._recorders[name] = seat, recorder
        seat.write()

    def do_join(self, name: str, group: str) -> None:
        self._seats[name].protocol.join(group)
        self._seats[name].write()

    def do_leave(self, name: str, group: str) -> None:
        self._seats[name].protocol.leave(group)
        self._seats[name].write()

    def do_say(self, name: str, to: str, service: str, text: str, size: str = "0", times: str = "1") -> None:
        """Each message in a bundle of its own: what is said together would travel together."""
        seat, options = self._seats[name], SendOptions(Service[service.upper()])
        for _ in range(int(times)):
            seat.protocol.send(to.split(","), text.encode().ljust(int(size), b"."), options)
            seat.write()

    def do_stall(self, name: str) -> None:
        self._seats[name].is_reading = False

    def do_read(self, name: str) -> None:
        self._seats[name].read_again()

    def do_bye(self, name: str) -> None:
        self._seats[name].protocol.bye()
        self._seats[name].write()

    def do_kill(self, name: str) -> None:
        self._recorders[name].event("crash", self._world.time_ns, cause="killed")
        self._seats[name].vanish()

    def show(self, name: str) -> str | None:
        """How a program is, if there is one of this name."""
        seat = self._seats.get(name)
        if seat is None:
            return None
        protocol = seat.protocol
        if protocol.is_over or seat.is_over:
            return f"{name} is gone: {protocol.end or protocol.refusal or 'killed'}"
        waits = seat.stream.up_bytes + protocol.waiting_bytes if seat.stream is not None else 0
        said = f"{name} is in {{{' '.join(sorted(protocol.groups))}}}"
        return said + (", and its daemon does not read what it says" if waits else "")
