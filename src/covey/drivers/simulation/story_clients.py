"""Programs in a story: they connect, join, say, stall, leave and come back, each when it is told to.

In:        the commands of a story that are about programs.
Out:       requests to the library, whose bytes travel by streams; rows of level C. A StoryError for who is not there.
Not here:  programs that act by themselves (clients.py), the other commands (story.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import cast

from covey.client.options import SendOptions
from covey.client.protocol import ClientProtocol
from covey.client.recording import Recording
from covey.protocol.values import Policy
from covey.trace.client import ClientRecorder
from covey.trace.daemon import Sink

from .clients import Seat
from .fairness import Fairness
from .story_words import StoryError, number, service_of, times
from .streams import Streams
from .world import World

RUN = "story"


@dataclass(slots=True)
class Guest:
    """A program, and where it is or was."""

    daemon: str
    seat: Seat
    recorder: ClientRecorder
    has_left: bool = False
    """It said goodbye; what it said before may still be on its way."""

    @property
    def is_gone(self) -> bool:
        return self.has_left or self.seat.is_over or self.seat.protocol.is_over


class StoryClients:
    """All programs of a story, by name. A command is a method: `do_join` plays `join alice room`."""

    def __init__(self, world: World, sink: Sink) -> None:
        self._world = world
        self._sink = sink
        self._streams = Streams(world, Random(1))
        self._fairness = Fairness(world, RUN)
        self._guests: dict[str, Guest] = {}

    def do_client(self, name: str, daemon: str, policy: str = "disconnect") -> None:
        rank = self._free_seat(name, daemon)
        recorder = ClientRecorder(RUN, self._sink)
        observer = Recording(recorder, lambda: (self._world.time_ns, None))
        protocol = ClientProtocol(name, policy=cast("Policy", policy), observer=observer)
        seat = Seat(self._world, self._streams, self._fairness, recorder, protocol)
        seat.stream = self._streams.connect(rank, seat)
        if seat.stream is None:
            raise StoryError(f"nobody listens at {daemon}, which does not run: `start {daemon}` starts it")
        self._guests[name] = Guest(daemon, seat, recorder)
        seat.write()

    def _free_seat(self, name: str, daemon: str) -> int:
        """The rank of the daemon, if the program can go there."""
        daemons = [one.name for one in self._world.cluster.daemons]
        if name in daemons:
            raise StoryError(f"{name} is a daemon: call the program something else")
        if daemon not in daemons:
            raise StoryError(f"no daemon is called {daemon!r}: there are {' '.join(daemons)}")
        guest = self._guests.get(name)
        if guest is not None and not guest.is_gone:
            raise StoryError(f"{name} is there already, at {guest.daemon}: `bye {name}` or `kill {name}` ends it first")
        return daemons.index(daemon)

    def do_join(self, name: str, group: str) -> None:
        seat = self._here(name).seat
        seat.protocol.join(group)
        seat.write()

    def do_leave(self, name: str, group: str) -> None:
        seat = self._here(name).seat
        seat.protocol.leave(group)
        seat.write()

    def do_say(self, name: str, to: str, service: str, text: str, size: str = "0", count: str = "1") -> None:
        """Each message in a bundle of its own: what is said together would travel together."""
        seat, options = self._here(name).seat, SendOptions(service_of(service))
        payload = text.encode().ljust(number(size, "size", 0, self._world.settings.message_bytes_max), b".")
        for _ in range(times(count, "number of messages")):
            seat.protocol.send(to.split(","), payload, options)
            seat.write()

    def do_stall(self, name: str) -> None:
        self._here(name).seat.is_reading = False

    def do_read(self, name: str) -> None:
        self._here(name).seat.read_again()

    def do_bye(self, name: str) -> None:
        guest = self._here(name)
        guest.has_left = True
        guest.seat.protocol.bye()
        guest.seat.write()

    def do_kill(self, name: str) -> None:
        guest = self._here(name)
        if guest.seat.protocol.process is not None:  # Who was not let in yet has no history.
            guest.recorder.event("crash", self._world.time_ns, cause="killed")
        guest.seat.vanish()

    def _here(self, name: str) -> Guest:
        """A program that is there."""
        guest = self._guests.get(name)
        if guest is None:
            known = f"there are {' '.join(sorted(self._guests))}" if self._guests else f"`client {name} a` connects one"
            raise StoryError(f"no program is called {name!r}: {known}")
        if guest.is_gone:
            raise StoryError(f"{name} is gone: `client {name} {guest.daemon}` connects it again")
        return guest

    def show(self, name: str) -> str | None:
        """How a program is, if there is one of this name."""
        guest = self._guests.get(name)
        if guest is None:
            return None
        seat, protocol = guest.seat, guest.seat.protocol
        if guest.is_gone:
            return f"{name} is gone: {protocol.end or protocol.refusal or ('it left' if guest.has_left else 'killed')}"
        waits = seat.stream.up_bytes + protocol.waiting_bytes if seat.stream is not None else 0
        said = f"{name} is in {{{' '.join(sorted(protocol.groups))}}}"
        return said + (", and its daemon does not read what it says" if waits else "")
