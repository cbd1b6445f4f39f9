"""One program of the demonstration, a process of its own: it keeps a ledger for each of its groups, and books entries.

In:        its task, as one JSON argument; commands on standard input: `status`, `quiet`, `speak`, `leave G`, `end`.
Out:       views and merges as they come, answers, one line each; its history in segments of the trace.
Not here:  the ledger (ledger.py), who starts and kills it (troupe.py), the library that it uses (covey.blocking).

When its daemon dies it goes to another one. What it knew may be incomplete then, so it begins with an empty ledger.
"""

from __future__ import annotations

import os
import select
import sys
import time
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from covey.client import blocking
from covey.client.events import Disconnected, Message, Reconnected, Single, View
from covey.drivers.live.control import CommandLines
from covey.drivers.live.events import Event, GroupViewed, LedgersMerged, LifeEnded, Ready, Status, to_line
from covey.errors import SessionOverError
from covey.protocol.values import Service
from covey.trace.client import ClientRecorder
from covey.trace.segments import SegmentWriter

from .ledger import Ledger, LedgerEntry, LedgerState, Merged

MODULE: Final = "covey.lab.demo.program"
STDIN, STDOUT = 0, 1
READ_BYTES: Final = 65_536

ENTRY, STATE, NOTE = 0, 1, 2
"""Kinds of messages. A note is booked nowhere: it is there so that every service is used."""
NOTE_SHARE: Final = 0.4
BOTH_SHARE: Final = 0.2
"""So many entries go to both groups at once."""
LISTEN_S: Final = 0.02


class DemoTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a program is told."""

    name: str
    groups: tuple[str, ...]
    to: tuple[str, ...]
    """Groups to which it sends, member or not."""
    addresses: tuple[str, ...]
    trace: str
    stem: str
    run: str
    seed: int
    pause_s: float


def command(task: DemoTask) -> list[str]:
    boot = f"import sys; sys.path[:] = {sys.path!r}; from {MODULE} import main; sys.exit(main(sys.argv[1:]))"
    return [sys.executable, "-S", "-c", boot, msgspec.json.encode(task).decode()]


class DemoProgram:
    def __init__(self, task: DemoTask, writer: SegmentWriter) -> None:
        self._task = task
        self._random = Random(task.seed)
        self._recorder = ClientRecorder(task.run, writer.append)
        self._session = blocking.connect(task.name, list(task.addresses), trace=self._recorder)
        self._ledgers: dict[str, Ledger] = {}
        self._booked = 0
        self._seen = 0
        self._is_running = True
        self._is_quiet = False
        self._commands = CommandLines(
            {
                "status": lambda _: self._say_status(),
                "quiet": lambda _: self._set_quiet(True),
                "speak": lambda _: self._set_quiet(False),
                "leave": lambda words: self._leave(words[0]),
                "end": lambda _: self._end(),
            },
            unknown=lambda words: self._complain(f"unknown command: {' '.join(words)}"),
        )

    def run(self) -> None:
        self._say(Ready(time_ns=time.time_ns(), process=self._task.name, address=self._session.name))
        self._join()
        due = time.monotonic()
        while self._is_running:
            self._obey()
            self._take(LISTEN_S)
            if not self._is_quiet and time.monotonic() >= due and self._session.is_open:
                due = time.monotonic() + self._task.pause_s
                self._speak()

    def _join(self) -> None:
        self._ledgers = {group: Ledger(self._session.process) for group in self._task.groups}
        for group in self._task.groups:
            self._session.join(group)

    # --- what happens

    def _take(self, seconds: float) -> bool:
        """Whether an event came in time."""
        try:
            event = self._session.receive(seconds)
        except TimeoutError:
            return False
        except SessionOverError:
            self._is_running = False
            return False
        self._see(event)
        return True

    def _see(self, event: Single) -> None:
        self._seen += 1
        if isinstance(event, View):
            self._on_view(event)
        elif isinstance(event, Message):
            self._on_message(event)
        elif isinstance(event, Reconnected):
            self._join()
        elif isinstance(event, Disconnected):
            self._ledgers = {}

    def _on_view(self, view: View) -> None:
        self._say(
            GroupViewed(
                time_ns=time.time_ns(), process=self._task.name, group=view.group, view=view.id, members=view.members,
                transitional=view.transitional, cause=view.cause, detail=view.detail,
            )
        )  # fmt: skip
        ledger = self._ledgers.get(view.group)
        state = ledger.on_view(view.id, view.processes, view.transitional_processes) if ledger else None
        if state is not None:
            self._session.send(view.group, msgspec.json.encode(state), Service.AGREED, STATE)

    def _on_message(self, message: Message) -> None:
        for ledger in [self._ledgers[group] for group in message.groups if group in self._ledgers]:
            if message.kind == ENTRY:
                ledger.on_entry(msgspec.json.decode(message.payload, type=LedgerEntry))
            elif message.kind == STATE:
                merged = ledger.on_state(msgspec.json.decode(message.payload, type=LedgerState))
                if merged is not None:
                    self._say_merged(message.groups[0], merged)

    def _say_merged(self, group: str, merged: Merged) -> None:
        sides = tuple((tuple(_name(one) for one in equals), count) for equals, count in merged.sides)
        said = LedgersMerged(
            time_ns=time.time_ns(), process=self._task.name, group=group, view=self._session.views.get(group, ""),
            sides=sides, entries=merged.entries,
        )  # fmt: skip
        self._say(said)

    # --- what it does

    def _speak(self) -> None:
        random, groups = self._random, list(self._task.to)
        try:
            if random.random() < NOTE_SHARE:
                service = random.choice(list(Service))
                self._session.send(random.choice(groups), random.randbytes(20), service, NOTE)
                return
            self._booked += 1
            entry = LedgerEntry(f"{self._session.process}#{self._booked}", random.randint(-50, 100))
            to = groups if random.random() < BOTH_SHARE else random.choice(groups)
            self._session.send(to, msgspec.json.encode(entry), random.choice((Service.AGREED, Service.SAFE)), ENTRY)
        except SessionOverError:
            return  # The next event tells why.

    def _set_quiet(self, quiet: bool) -> None:
        self._is_quiet = quiet

    def _leave(self, group: str) -> None:
        self._ledgers.pop(group, None)
        self._session.leave(group)

    def _end(self) -> None:
        """The last row, once all that came is read. The connection stays: others have not written theirs."""
        while self._take(LISTEN_S):
            pass
        if self._session.is_open:
            self._recorder.event("end", time.time_ns())
        self._say(LifeEnded(time_ns=time.time_ns(), process=self._task.name))
        self._is_running = False
        while os.read(STDIN, READ_BYTES):
            pass

    # --- its supervisor

    def _obey(self) -> None:
        if not select.select([STDIN], [], [], 0)[0]:
            return
        if data := os.read(STDIN, READ_BYTES):
            self._commands.feed(data)
        else:
            self._is_running = False

    def _say_status(self) -> None:
        ledgers = {
            group: {"entries": len(one.entries), "state": one.digest(), "whole": one.is_whole}
            for group, one in self._ledgers.items()
        }
        self._say(
            Status(
                time_ns=time.time_ns(), process=self._task.name, settled=self._is_quiet and self._session.is_open,
                changes=self._seen, delivered=self._seen, snapshot={"ledgers": ledgers, "name": self._session.name},
            )
        )  # fmt: skip

    def _complain(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")

    def _say(self, event: Event) -> None:
        os.write(STDOUT, to_line(event))


def _name(process: str) -> str:
    return process.rpartition(":")[0]


def main(arguments: list[str]) -> int:
    task = msgspec.json.decode(arguments[0], type=DemoTask)
    with SegmentWriter(Path(task.trace), task.stem) as writer:
        DemoProgram(task, writer).run()
    return 0
