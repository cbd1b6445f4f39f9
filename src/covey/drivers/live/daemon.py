"""One daemon as a process of its own.

In:        its options (launch.py); SIGTERM and SIGINT; where asked for, commands on standard input (control.py).
Out:       one line an event on standard output (events.py); where asked for, segments of the trace.
Not here:  the loop (driver.py). Nothing of the command line's libraries is imported: a daemon starts fast.

Whoever starts a daemon reads its lines: they are few, one for each state and view, and written at once.
"""

from __future__ import annotations

import errno
import gc
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec

from covey.client.address import SUFFIX
from covey.config_file import load
from covey.errors import ConfigError, CoveyError
from covey.memory import keep_freed_memory
from covey.protocol.effects import Effect, Stopped
from covey.protocol.inputs import Stop
from covey.trace.daemon import process_name
from covey.trace.segments import SegmentWriter

from .control import Command, CommandLines
from .driver import LiveDaemon, clock, new_life
from .events import Event, Gone, LifeEnded, Noticed, Ready, StateEntered, Status, event_of, to_line
from .freed_memory import FreedMemory, freed_memory
from .launch import DaemonOptions, Options, from_arguments
from .log import to_text
from .measures import Measures
from .sending import SendingWatch
from .sockets import path_problem
from .status import Answer, InPortions, Question, StatusSocket, own_directory, socket_path
from .told import LiveStatus, ring_of

UNSEALED = "whoever can reach these hosts can read and forge them; see allow_unsealed in docs/configuration.md"
STDIN, STDOUT = 0, 1
READ_BYTES = 65_536
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

UPKEEP_US = 1_000_000

GC_THRESHOLDS = (10_000, 4, 1_000_000_000)
"""Nothing in the loop makes rings of objects, so collections find nothing and shall be short. Those of the first
generation take below 1 ms, of the second, up to 50,000 objects, 2 to 5 ms. One of all objects takes 65 ms with 100,000
memberships of groups, and longer with more: it is never due."""

GROUPS_TOLD_MAX, MEMBERS_TOLD_MAX = 1_000, 5_000
"""How much of all groups one answer tells."""


class DaemonProcess:
    """A LiveDaemon with everything a process has: signals, standard streams, files."""

    def __init__(self, options: DaemonOptions) -> None:
        configuration = load(Path(options.config))
        self._cluster = configuration.cluster
        life = new_life(self._cluster, options.name)
        self.process = process_name(self._cluster, life)
        self._heard = True
        self._unread = 0
        self._stdout = select.poll()
        self._stdout.register(STDOUT, select.POLLOUT)
        self._json = options.json
        self._views_only = options.views_only
        self._configuration = configuration
        self._ended = False
        self._status: StatusSocket | None = None
        self._started_us = clock().mono_us
        self._measures = Measures(self._started_us)
        self._sending = SendingWatch()
        self._freed: FreedMemory | None = None
        self._looked_us = 0
        self.seed = options.seed if options.seed is not None else life.boot
        stem = self.process.replace(":", "-")
        self._writer = SegmentWriter(Path(options.trace), stem) if options.trace is not None else None
        sink = self._writer.append if self._writer is not None else None
        self.daemon = LiveDaemon(configuration, life, self.seed, options.run, sink, self._observe)
        self.daemon.keep_up(self._keep_up)
        self.commands: dict[str, Command] = {
            "status": lambda _: self._say_status(),
            "calm": lambda words: self.daemon.record("calm", time.time_ns(), tuple(sorted(words))),
            "end": lambda _: self._end(),
            "stop": lambda _: self.daemon.give(Stop()),
        }
        """What standard input may ask for. Who wraps this process may add to them."""
        if options.control:
            self._take_commands()
        self._open_sockets(options.name)

    def _open_sockets(self, name: str) -> None:
        """Where it is asked, and where clients come in. ConfigError: not here."""
        own_directory()
        path, address = socket_path(self._cluster, name), self._cluster.daemons[self._cluster.rank_of(name)].clients
        clients, where = path.with_name(f"{path.name}{SUFFIX}"), str(path)
        if problem := path_problem(clients):
            self._close()
            raise ConfigError(problem)
        try:
            self._status = StatusSocket(path, self._answer)
            self.daemon.watch(self._status.fileno(), self._status.answer)
            self.daemon.clients.listen_unix(clients)
            if address is not None:
                where = address
                host, _, port = address.rpartition(":")
                self.daemon.clients.listen_tcp(host, int(port))
        except OSError as error:
            self._close()
            raise ConfigError(
                f"it cannot listen at {where} ({error.strerror or error}): is something else there? Stop that, or "
                "give this daemon another place"
            ) from error

    def _close(self) -> None:
        if self._status is not None:
            self._status.close()
        self.daemon.close()
        if self._writer is not None:
            self._writer.close()

    def run(self) -> None:
        self._catch_signals()
        if self._configuration.unsealed_hosts:
            self.notice(f"datagrams to {' '.join(self._configuration.unsealed_hosts)} are not sealed: {UNSEALED}")
        host, port = self.daemon.endpoint.address
        self._say(Ready(time_ns=time.time_ns(), process=self.process, address=f"{host}:{port}"))
        keep_freed_memory()
        self._freed = freed_memory()
        gc.freeze()  # What exists now stays: no collection shall look at it again.
        gc.set_threshold(*GC_THRESHOLDS)
        gc.enable()  # It is off while a daemon starts (launch.py).
        try:
            self.daemon.run()
            if self._ended:
                self._outwait_the_others()
        finally:
            self._close()

    # --- what the daemon did

    def _observe(self, time_ns: int, effect: Effect) -> None:
        self._measures.observe(effect, time_ns)
        if isinstance(effect, Stopped):
            self._say(Gone(time_ns=time_ns, process=self.process))
        else:
            event = event_of(effect, time_ns, self.process, self._cluster)
            if event is not None and not (self._views_only and isinstance(event, StateEntered)):
                self._say(event)

    def _say(self, event: Event) -> None:
        """Nobody has to listen: a daemon does not die of a closed pipe."""
        if not self._heard:
            return
        if not self._may_write():
            self._unread += 1
            return
        lines = self._line(event)
        if self._unread:
            lost = f"{self._unread} lines before this one are lost: nobody read them in time, or there was no room"
            lines = self._line(Noticed(time_ns=event.time_ns, process=self.process, text=lost)) + lines
        try:
            os.write(STDOUT, lines)
        except OSError as error:
            self._unread += 1
            self._heard = error.errno not in (errno.EPIPE, errno.EBADF)
        else:
            self._unread = 0

    def _line(self, event: Event) -> bytes:
        return to_line(event) if self._json else to_text(event).encode() + b"\n"

    def _may_write(self) -> bool:
        """A pipe or terminal that nobody reads must not stop us: what it has no room for is counted."""
        return bool(self._stdout.poll(0))

    # --- signals

    def _catch_signals(self) -> None:
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in ENDING:
            signal.signal(number, self._on_signal)

        def on_ready() -> None:
            os.read(reader, READ_BYTES)
            self.daemon.give(Stop())

        self.daemon.watch(reader, on_ready)

    def _on_signal(self, *_: object) -> None:
        # The byte that wakes the loop is on its way. A second signal is the system's own: it ends us wherever we are.
        for number in ENDING:
            signal.signal(number, signal.SIG_DFL)

    # --- between turns

    def _keep_up(self, now_us: int) -> int:
        """What is done now and then; when next."""
        if now_us >= self._looked_us + UPKEEP_US:
            self._looked_us = now_us
            endpoint = self.daemon.endpoint
            host, port = endpoint.lost_to
            for text in self._sending.look(endpoint.lost, endpoint.traffic.datagrams_sent, f"{host}:{port}", now_us):
                self.notice(text)
        return now_us + UPKEEP_US if self._freed is None else self._freed.look(now_us)

    # --- commands

    def _take_commands(self) -> None:
        commands = CommandLines(self.commands, lambda words: self.notice(f"unknown command: {' '.join(words)}"))

        def on_ready() -> None:
            data = os.read(STDIN, READ_BYTES)
            if data:
                commands.feed(data)
            else:
                self.daemon.unwatch(STDIN)
                self.daemon.give(Stop())

        self.daemon.watch(STDIN, on_ready)

    def notice(self, text: str) -> None:
        self._say(Noticed(time_ns=time.time_ns(), process=self.process, text=text))

    def _answer(self, question: Question) -> Answer | InPortions:
        if question.ask == "groups":
            return self.daemon.core.groups_snapshot(question.group, GROUPS_TOLD_MAX, MEMBERS_TOLD_MAX)
        return self._snapshot()

    def _snapshot(self) -> LiveStatus:
        """What the core knows, and what only the process knows."""
        now_us = clock().mono_us
        endpoint, cluster = self.daemon.endpoint, self._cluster
        core, measured = self.daemon.core.snapshot(now_us), self._measures.snapshot(endpoint.traffic, now_us)
        snapshot = cast("LiveStatus", {**core, **measured, **self.daemon.turns.snapshot(now_us)})
        ring, members = ring_of(snapshot["link"]), len(snapshot["members"])
        if ring is not None:
            ring["rotations_per_s"] = self._measures.rotations_per_s(snapshot["view"], ring["token"], members, now_us)
        snapshot["count"] |= endpoint.count.in_words()
        if self._status is not None:
            snapshot["count"] |= self._status.count.in_words()
        snapshot["sending_problem"] = self._sending.problem or None
        snapshot["process"] = self.process
        snapshot["cluster"] = cluster.name
        snapshot["config"] = str(self._configuration.path.absolute())
        snapshot["daemons_here"] = cluster.on_host_of(snapshot["name"])
        snapshot["recent_views"] = self._measures.recent_views(cluster)
        snapshot["uptime_s"] = round((now_us - self._started_us) / 1_000_000, 1)
        snapshot["unsealed"] = self._configuration.unsealed_hosts
        snapshot["multicast"] = cluster.multicast
        return snapshot

    def _say_status(self) -> None:
        self._say(
            Status(
                time_ns=time.time_ns(),
                process=self.process,
                settled=self.daemon.core.is_at_rest,
                changes=self._measures.changes,
                delivered=self._measures.delivered,
                snapshot=cast("dict[str, Any]", self._snapshot()),
            )
        )

    def _end(self) -> None:
        self.daemon.record("end", time.time_ns())
        self.daemon.running = False
        self._ended = True
        self._say(LifeEnded(time_ns=time.time_ns(), process=self.process))

    def _outwait_the_others(self) -> None:
        """A closed socket would be noticed by daemons that have not read their `end` yet."""
        while os.read(STDIN, READ_BYTES):
            pass


def run_daemon(kind: type[Options], make_process: Callable[[Options], DaemonProcess]) -> int:
    """From our one argument to the end of the process; its exit code."""
    try:
        options = from_arguments(sys.argv[1:], kind)
    except msgspec.DecodeError as error:
        sys.stderr.write(f"a daemon cannot read its options ({error}): start it with `covey daemon NAME`\n")
        return 2
    try:
        process = make_process(options)
    except CoveyError as error:
        sys.stderr.write(f"covey daemon {options.name}: {error}\n")
        return 2
    process.run()
    return 0


def main() -> int:
    return run_daemon(DaemonOptions, DaemonProcess)


if __name__ == "__main__":
    sys.exit(main())
