"""One client program of a soak, as a process of its own: it joins, leaves, sends, stalls, disconnects and comes back.

In:        its task, as one JSON argument; commands on standard input: `status`, `quiet`, `end`; its end ends it.
Out:       its history in segments of the trace, row by row, so that a kill loses none; a line for each answer.
Not here:  who starts and kills it (programs.py), the library that it uses (covey.blocking).

It moves from daemon to daemon: when its own dies, when the network takes others from it, or at a whim.
"""

from __future__ import annotations

import os
import select
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from covey.client import blocking
from covey.client.events import Single, View
from covey.drivers.live.control import CommandLines
from covey.drivers.live.events import Event, LifeEnded, Ready, Status, to_line
from covey.errors import ConnectError, SessionOverError
from covey.protocol.values import Policy, Service
from covey.trace.client import ClientRecorder
from covey.trace.segments import SegmentWriter

MODULE: Final = "covey.lab.soak.program"
STDIN, STDOUT = 0, 1
READ_BYTES: Final = 65_536

GROUPS: Final = ("red", "green", "blue", "black")
POLICIES: Final[tuple[Policy, ...]] = ("disconnect", "block")
SIZES: Final = (0, 20, 100, 400, 2_000)
LARGE_BYTES: Final = (20_000, 100_000, 250_000)
LARGE_SHARE: Final = 0.04
UNRELIABLE_BYTES_MAX: Final = 200
COUNTS: Final = (1,) * 12 + (5,) * 4 + (60,)
LARGE_COUNTS: Final = (1, 1, 1, 6)
PRIVATE_SHARE: Final = 0.05
DISCARD_SHARE: Final = 0.1
MOVE_SHARE: Final = 0.03
"""So many network views make the program look for another daemon."""
STALLS: Final = (0.3, 3, 10, 40)
"""As multiples of the pause between two acts."""

TIMEOUT_S: Final = 1.0
"""Daemons are paused now and then: nobody waits long for one."""
LISTEN_S: Final = 0.05
"""How long a command may wait."""


class SoakTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a program is told."""

    name: str
    names: tuple[str, ...]
    """Of all programs: private messages go to them."""
    daemons: tuple[str, ...]
    addresses: tuple[str, ...]
    """Where these daemons take clients."""
    trace: str
    stem: str
    run: str
    seed: int
    pause_s: float
    """Between two acts, on average."""


def command(task: SoakTask) -> list[str]:
    return [sys.executable, "-m", MODULE, msgspec.json.encode(task).decode()]


class SoakProgram:
    """At most one session at a time, and what is done with it."""

    def __init__(self, task: SoakTask, writer: SegmentWriter) -> None:
        self._task = task
        self._writer = writer
        self._random = Random(task.seed)
        self._recorder = ClientRecorder(task.run, writer.append)
        self._session: blocking.Session | None = None
        self._is_running = True
        self._is_quiet = False
        self._wants_to_move = False
        self._seen = 0
        self._commands = CommandLines(
            {
                "status": lambda _: self._say_status(),
                "quiet": lambda _: self._become_quiet(),
                "end": lambda _: self._end(),
            },
            unknown=_unknown,
        )

    def run(self) -> None:
        self._say(Ready(time_ns=time.time_ns(), process=self._task.name, address=""))
        while self._is_running:
            self._obey(0.0)
            if self._session is None:
                self._connect()
            elif not self._is_quiet:
                self._act(self._session)
            self._listen(LISTEN_S if self._is_quiet else self._random.expovariate(1.0 / self._task.pause_s))

    # --- a session

    def _connect(self) -> None:
        addresses = list(self._task.addresses)
        self._random.shuffle(addresses)
        self._recorder = ClientRecorder(self._task.run, self._writer.append)
        with suppress(ConnectError):
            self._session = blocking.connect(
                self._task.name,
                addresses,
                priority=self._random.randrange(3),
                policy=self._random.choice(POLICIES),
                timeout=TIMEOUT_S,
                trace=self._recorder,
            )
            self._last_words_if_quiet()

    def _disconnect(self) -> None:
        if self._session is not None:
            self._session.disconnect()
        self._session = None
        self._wants_to_move = False

    def _listen(self, seconds: float) -> None:
        """Take what happens for a while; commands come in between."""
        until = time.monotonic() + seconds
        while self._is_running and (left := until - time.monotonic()) > 0:
            if self._session is None:
                self._obey(min(left, LISTEN_S))
                continue
            self._take(self._session, min(left, LISTEN_S))
            self._obey(0.0)
        if self._wants_to_move and not self._is_quiet:
            self._disconnect()

    def _take(self, session: blocking.Session, seconds: float) -> bool:
        """The next event, if one comes in time."""
        try:
            event = session.receive(seconds)
        except TimeoutError:
            return False
        except SessionOverError:
            self._session = None
            return False
        self._see(event)
        return True

    def _see(self, event: Single) -> None:
        self._seen += 1
        if isinstance(event, View) and event.cause == "network":
            self._wants_to_move |= self._random.random() < MOVE_SHARE

    # --- what it does

    def _act(self, session: blocking.Session) -> None:
        acts = (self._join, self._leave, self._send, self._stall, self._leave_for_good)
        act = self._random.choices(acts, (18, 5, 74, 2.5, 0.5))[0]
        with suppress(SessionOverError):  # Listening tells why, and finds another daemon.
            act(session)

    def _join(self, session: blocking.Session) -> None:
        group = self._random.choice(GROUPS)
        if group not in session.groups:
            session.join(group)

    def _leave(self, session: blocking.Session) -> None:
        if session.groups:
            session.leave(self._random.choice(session.groups))

    def _send(self, session: blocking.Session, services: tuple[Service, ...] = tuple(Service)) -> None:
        random, service = self._random, self._random.choice(services)
        large = random.random() < LARGE_SHARE
        count = random.choice(LARGE_COUNTS if large else COUNTS)
        size = random.choice(LARGE_BYTES if large else SIZES)
        if service is Service.UNRELIABLE:
            size = min(size, UNRELIABLE_BYTES_MAX)
        payloads = [random.randbytes(size) for _ in range(count)]
        discard = random.random() < DISCARD_SHARE
        session.send_many(self._destinations(), payloads, service, self_discard=discard)

    def _destinations(self) -> list[str]:
        random = self._random
        if random.random() < PRIVATE_SHARE:
            return [f"{random.choice(self._task.names)}@{random.choice(self._task.daemons)}"]
        return random.sample(GROUPS, random.choice((1, 1, 1, 2, 3)))

    def _stall(self, _: blocking.Session) -> None:
        """Stop reading for a moment."""
        time.sleep(self._random.choice(STALLS) * self._task.pause_s)

    def _leave_for_good(self, _: blocking.Session) -> None:
        self._disconnect()

    # --- the end of the run

    def _become_quiet(self) -> None:
        self._is_quiet = True
        self._last_words_if_quiet()

    def _last_words_if_quiet(self) -> None:
        """After all the trouble, everybody can still join and send everything."""
        session = self._session
        if not self._is_quiet or session is None:
            return
        with suppress(SessionOverError):
            self._join(session)
            for service in Service:
                self._send(session, (service,))

    def _end(self) -> None:
        """The last row, once all that came is read. The connection stays: others have not written theirs."""
        while self._session is not None and self._take(self._session, LISTEN_S):
            pass
        if self._session is not None and self._session.is_open:
            self._recorder.event("end", time.time_ns())
        self._say(LifeEnded(time_ns=time.time_ns(), process=self._task.name))
        self._is_running = False
        while os.read(STDIN, READ_BYTES):
            pass

    # --- its supervisor

    def _obey(self, seconds: float) -> None:
        """Commands, if any come in this time."""
        if not select.select([STDIN], [], [], seconds)[0]:
            return
        if data := os.read(STDIN, READ_BYTES):
            self._commands.feed(data)
        else:
            self._is_running = False

    def _say_status(self) -> None:
        session = self._session
        self._say(
            Status(
                time_ns=time.time_ns(),
                process=self._task.name,
                settled=self._is_quiet and session is not None and session.is_open,
                changes=self._seen,
                delivered=self._seen,
                snapshot={"session": "" if session is None else session.process},
            )
        )

    def _say(self, event: Event) -> None:
        os.write(STDOUT, to_line(event))


def _unknown(words: list[str]) -> None:
    sys.stderr.write(f"unknown command: {' '.join(words)}\n")


def main(arguments: list[str]) -> int:
    task = msgspec.json.decode(arguments[0], type=SoakTask)
    with SegmentWriter(Path(task.trace), task.stem) as writer:
        SoakProgram(task, writer).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
