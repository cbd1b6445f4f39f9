"""`python -m covey.drivers.live.daemon`: one daemon as a process of its own.

In:        a configuration file and a name; SIGTERM and SIGINT; with --control, commands on standard input (control.py).
Out:       one JSON object a line on standard output (events.py); with --trace, segments of the trace.
Not here:  the loop (driver.py). Nothing of the command line's libraries is imported: a daemon starts fast.

Whoever starts a daemon reads its lines: they are few, one for each state and view, and written at once.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from covey.config_file import load
from covey.errors import CoveyError
from covey.protocol.effects import Deliver, Effect, Stopped
from covey.protocol.inputs import Stop
from covey.protocol.states import State
from covey.trace.daemon import process_name
from covey.trace.errors import TraceError
from covey.trace.segments import SegmentWriter

from .control import CommandLines
from .driver import LiveDaemon, clock, new_life
from .events import Ended, Event, Gone, Noticed, Ready, Status, event_of, to_line
from .load import Load
from .log import to_text
from .status import StatusSocket, socket_path

UNSEALED = "whoever can reach these hosts can read and forge them; see allow_unsealed in docs/configuration.md"
STDIN, STDOUT = 0, 1
READ_BYTES = 65_536


class Rate:
    """How fast a count grows: between the last two questions that were at least a second apart."""

    def __init__(self, now_us: int) -> None:
        self._then_us, self._before, self._last = now_us, 0, 0.0

    def per_second(self, count: int, now_us: int) -> float:
        passed = now_us - self._then_us
        if passed >= 1_000_000:
            self._last = (count - self._before) * 1_000_000 / passed
            self._then_us, self._before = now_us, count
        return self._last


class DaemonProcess:
    """A LiveDaemon with everything a process has: signals, standard streams, files."""

    def __init__(self, options: argparse.Namespace) -> None:
        configuration = load(options.config)
        self._cluster = configuration.cluster
        life = new_life(self._cluster, options.name)
        self.process = process_name(self._cluster, life)
        self._heard = True
        self._json = options.json
        self._configuration = configuration
        self._ended = False
        self._delivered = 0
        self._changes = 0
        self._started_us = clock().mono_us
        self._rate = Rate(self._started_us)
        seed = options.seed if options.seed is not None else life.boot
        self._writer = SegmentWriter(options.trace, self.process.replace(":", "-")) if options.trace else None
        sink = self._writer.append if self._writer is not None else None
        self._daemon = LiveDaemon(configuration, life, seed, options.run, sink, self._observe)
        if options.load > 0:
            self._daemon.load = Load(options.load, seed, clock().mono_us)
        if options.control:
            self._take_commands()

    def run(self) -> None:
        self._catch_signals()
        status = StatusSocket(socket_path(self._cluster, self.process.partition(":")[0]), self._snapshot)
        self._daemon.watch(status.fileno(), status.answer)
        if self._configuration.unsealed_hosts:
            self._notice(f"datagrams to {' '.join(self._configuration.unsealed_hosts)} are not sealed: {UNSEALED}")
        host, port = self._daemon.endpoint.address
        self._say(Ready(time_ns=time.time_ns(), process=self.process, address=f"{host}:{port}"))
        try:
            self._daemon.run()
            if self._ended:
                self._outwait_the_others()
        finally:
            status.close()
            self._daemon.close()
            if self._writer is not None:
                self._writer.close()

    # --- what the daemon did

    def _observe(self, time_ns: int, effect: Effect) -> None:
        self._changes += 1
        if isinstance(effect, Deliver):
            self._delivered += 1
        elif isinstance(effect, Stopped):
            self._say(Gone(time_ns=time_ns, process=self.process))
        else:
            event = event_of(effect, time_ns, self.process, self._cluster)
            if event is not None:
                self._say(event)

    def _say(self, event: Event) -> None:
        """Nobody has to listen: a daemon does not die of a closed pipe."""
        if not self._heard:
            return
        line = to_line(event) if self._json else to_text(event).encode() + b"\n"
        try:
            os.write(STDOUT, line)
        except OSError:
            self._heard = False

    # --- signals

    def _catch_signals(self) -> None:
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

        def on_ready() -> None:
            os.read(reader, READ_BYTES)
            self._daemon.give(Stop())

        self._daemon.watch(reader, on_ready)

    def _on_signal(self, *_: object) -> None:
        # The byte that wakes the loop is on its way. A second signal is the system's own: it ends us wherever we are.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    # --- commands

    def _take_commands(self) -> None:
        commands = CommandLines(
            {
                "status": lambda _: self._say_status(),
                "calm": lambda words: self._daemon.record("calm", time.time_ns(), tuple(sorted(words))),
                "quiet": lambda _: self._stop_load(),
                "end": lambda _: self._end(),
                "stop": lambda _: self._daemon.give(Stop()),
            },
            unknown=lambda words: self._notice(f"unknown command: {' '.join(words)}"),
        )

        def on_ready() -> None:
            data = os.read(STDIN, READ_BYTES)
            if data:
                commands.feed(data)
            else:
                self._daemon.unwatch(STDIN)
                self._daemon.give(Stop())

        self._daemon.watch(STDIN, on_ready)

    def _notice(self, text: str) -> None:
        self._say(Noticed(time_ns=time.time_ns(), process=self.process, text=text))

    def _snapshot(self) -> dict[str, Any]:
        """What the engine knows, and what only the process knows."""
        snapshot = self._daemon.engine.snapshot(clock().mono_us)
        snapshot["count"] |= self._daemon.endpoint.count
        snapshot["process"] = self.process
        snapshot["uptime_s"] = round((clock().mono_us - self._started_us) / 1_000_000, 1)
        snapshot["delivered"] = self._delivered
        snapshot["delivered_per_s"] = round(self._rate.per_second(self._delivered, clock().mono_us), 1)
        snapshot["unsealed"] = self._configuration.unsealed_hosts
        return snapshot

    def _say_status(self) -> None:
        engine = self._daemon.engine
        snapshot = self._snapshot()
        self._say(
            Status(
                time_ns=time.time_ns(),
                process=self.process,
                settled=engine.machine.state is State.OP and engine.operation.is_settled(),
                changes=self._changes,
                delivered=self._delivered,
                snapshot=snapshot,
            )
        )

    def _stop_load(self) -> None:
        if self._daemon.load is not None:
            self._daemon.load.stop()

    def _end(self) -> None:
        self._daemon.record("end", time.time_ns())
        self._daemon.running = False
        self._ended = True
        self._say(Ended(time_ns=time.time_ns(), process=self.process))

    def _outwait_the_others(self) -> None:
        """A closed socket would be noticed by daemons that have not read their `end` yet."""
        while os.read(STDIN, READ_BYTES):
            pass


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m covey.drivers.live.daemon", description="Run one Covey daemon.")
    made.add_argument("--config", type=Path, default=Path("covey.toml"), metavar="FILE", help="the configuration file")
    made.add_argument("--name", required=True, help="which of its daemons this is")
    made.add_argument("--trace", type=Path, metavar="DIR", help="write the event trace into this directory")
    made.add_argument("--run", default="live", metavar="ID", help="the name of this run in the trace")
    made.add_argument("--load", type=float, default=0, metavar="RATE", help="submit this many messages a second")
    made.add_argument("--seed", type=int, metavar="N", help="makes the load the same every time")
    made.add_argument("--json", action="store_true", help="say events as JSON objects, one a line")
    made.add_argument("--control", action="store_true", help="take commands from standard input; its end stops us")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        process = DaemonProcess(options)
    except (CoveyError, TraceError) as error:
        sys.stderr.write(f"covey daemon {options.name}: {error}\n")
        return 2
    process.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
