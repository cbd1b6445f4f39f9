"""Processes as their supervisor sees them: started, heard line by line, signalled, and always cleaned up.

In:        the command to run.  Out: its events, in the order said; whether it still runs.
Not here:  which of them does what when (cluster.py, soak/programs.py, demo/troupe.py).
"""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from covey.drivers.live.events import DaemonView, Event, StateEntered, Status, from_line

EXIT_WITHIN_S: Final = 10.0
REST_S: Final = 0.4
"""How long nothing may happen before processes count as at rest: longer than any heartbeat or parked token."""
MOMENT_S: Final = REST_S / 8
"""After so long it is asked again, if nothing was said before."""

Popen = Callable[..., "subprocess.Popen[bytes]"]
"""Starts a process: here, or on a host of a test network."""


class Child:
    """A process and a thread that reads what it says. `changed` is notified of every event and of the end."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        changed: threading.Condition,
        popen: Popen = subprocess.Popen,
    ) -> None:
        self.name = name
        self.started_ns = time.time_ns()
        self.killed_ns: int | None = None
        self.expected_to_end = False
        self.events: list[Event] = []
        self._changed = changed
        self._log = log
        # Its own session: a Ctrl-C at the terminal is for the supervisor, which then ends its children itself.
        with log.open("ab") as errors:
            self._popen = popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
            )
        self._reader = threading.Thread(target=self._read, name=f"events of {name}", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            try:
                event = from_line(line)
            except msgspec.DecodeError:
                continue  # Something else printed; it is no event.
            with self._changed:
                self.events.append(event)
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    # --- what it said

    @property
    def process(self) -> str | None:
        """Its life, once it has said anything."""
        return self.events[0].process if self.events else None

    @property
    def view(self) -> DaemonView | None:
        """The last view it installed."""
        return next((event for event in reversed(self.events) if isinstance(event, DaemonView)), None)

    def situation(self) -> str:
        """Where it stands, in one clause."""
        view = f"in view {self.view.view} of {' '.join(self.view.members)}" if self.view else "in no view"
        state = next((event for event in reversed(self.events) if isinstance(event, StateEntered)), None)
        why = f", {state.state} because {state.reason}" + f" ({state.detail})" * bool(state.detail) if state else ""
        return f"{self.name} is {view}{why}"

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._popen.poll()

    @property
    def pid(self) -> int:
        return self._popen.pid

    def resident_kb(self) -> int:
        """Memory it holds now, as the system counts it."""
        fields = Path(f"/proc/{self.pid}/status").read_text().split()
        return int(fields[fields.index("VmRSS:") + 1])

    def last_words(self) -> str:
        return self._log.read_text(errors="replace").strip()[-2_000:]

    # --- what is done to it

    def command(self, line: str) -> None:
        """Write a command. A daemon that has just died is found out by whoever waits for its answer."""
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(line.encode() + b"\n")
            self._popen.stdin.flush()
        except OSError:
            return

    def signal(self, number: signal.Signals) -> int:
        """Send a signal; the wall clock just before, in nanoseconds."""
        at = time.time_ns()
        self._popen.send_signal(number)
        return at

    def kill(self) -> int:
        self.expected_to_end = True
        self.killed_ns = self.signal(signal.SIGKILL)
        self.wait_for_end()
        return self.killed_ns

    def terminate(self) -> int:
        self.expected_to_end = True
        return self.signal(signal.SIGTERM)

    def wait_for_end(self) -> int:
        """Its exit code. All it has said is in `events` afterwards."""
        code = self._popen.wait(EXIT_WITHIN_S)
        self._reader.join(EXIT_WITHIN_S)
        return code

    def close_input(self) -> None:
        assert self._popen.stdin is not None
        self.expected_to_end = True
        try:
            self._popen.stdin.close()
        except OSError:
            return

    def close(self) -> None:
        """Whatever state it is in, stopped by a signal or not: it is gone afterwards."""
        self.expected_to_end = True
        if self.exit_code is None:
            self._popen.kill()
        self.wait_for_end()
        self.close_input()
        assert self._popen.stdout is not None
        self._popen.stdout.close()


class Children:
    """Whoever starts processes ends them all, however it ends itself."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._lives: list[Child] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for child in self._lives:
            child.close()

    def living(self) -> list[Child]:
        return [child for child in self._lives if not child.expected_to_end]

    def child(self, name: str) -> Child:
        return next(child for child in self.living() if child.name == name)

    # --- waiting

    def _come_to_rest(self, statuses: Callable[[], list[Status]], within_s: float) -> bool:
        """Whether, within this time, all were settled and nothing happened for a while."""
        deadline = time.monotonic() + within_s
        still: dict[str, int] = {}
        since = time.monotonic()
        while time.monotonic() < deadline:
            told = statuses()
            changes = {status.process: status.changes for status in told}
            if changes != still or not all(status.settled for status in told):
                still, since = changes, time.monotonic()
            elif time.monotonic() - since >= REST_S:
                return True
            self._moment()
        return False

    def _moment(self) -> None:
        """Until something was said, but not for long."""
        with self._changed:
            self._changed.wait(MOMENT_S)
