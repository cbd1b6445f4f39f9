"""A cluster of real daemons on this host, under a supervisor: for the demonstration, for tests and benchmarks.

In:        a directory for the cluster file, the logs and the trace; what is to be done to which daemon.
Out:       events as they are said; a trace that can be judged.
Not here:  one process (child.py), judgement (guarantees/checkers).

Nothing sleeps: every wait is for something that is said, has a deadline, and fails with what was last said instead.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from covey.cluster import Cluster, DaemonConfig, daemon_name, is_loopback
from covey.config_file import Preset, render
from covey.drivers.live.events import DaemonView, LifeEnded, Ready, Status
from covey.drivers.live.launch import command
from covey.drivers.live.sockets import free_ports
from covey.drivers.live.status import socket_path
from covey.errors import CoveyError
from covey.trace.reading import read_whole
from covey.trace.record import Row
from covey.trace.segments import SegmentWriter

from .child import Child, Children, Popen
from .daemon import MODULE, LabOptions

HOST: Final = "127.0.0.1"
WITHIN_S: Final = 15.0

Wanted = TypeVar("Wanted")


class LiveError(CoveyError):
    """Live daemons did not do what was waited for; the text says what, and what they said last."""


class Host(NamedTuple):
    """Where a daemon runs."""

    host: str
    port: int
    popen: Popen = subprocess.Popen


def hosts_here(count: int) -> list[Host]:
    """On loopback, at ports that are free now."""
    return [Host(HOST, port) for port in free_ports(count)]


class LocalCluster(Children):
    def __init__(
        self,
        directory: Path,
        count: int = 3,
        *,
        run: str = "live",
        load: float = 0,
        bursts: bool = False,
        seed: int = 0,
        hosts: Sequence[Host] | None = None,
        preset: Preset | None = None,
        multicast: str | None = None,
        traced: bool = True,
    ) -> None:
        self._traced = traced
        self.directory = directory
        self._hosts = list(hosts) if hosts is not None else hosts_here(count)
        self.trace = directory / "trace"
        self.run = run
        self._load = load
        self._bursts = bursts
        self._seed = seed
        super().__init__()
        self.trace.mkdir(parents=True, exist_ok=True)
        self.cluster = Cluster(
            run,
            tuple(DaemonConfig(daemon_name(rank), 0, one.host, one.port) for rank, one in enumerate(self._hosts)),
            multicast,
        )
        self.file = directory / "covey.toml"
        fitting: Preset = "loopback" if all(is_loopback(one.host) for one in self._hosts) else "lan"
        self.file.write_text(render(self.cluster, preset or fitting))

    def close(self) -> None:
        super().close()
        for child in self._lives:
            path = socket_path(self.cluster, child.name)
            path.unlink(missing_ok=True)
            path.with_name(f"{path.name}.client").unlink(missing_ok=True)

    # --- who there is

    def address(self, name: str) -> tuple[str, int]:
        daemon = self.cluster.daemons[self.cluster.rank_of(name)]
        return daemon.host, daemon.port

    def views_since(self, time_ns: int) -> list[DaemonView]:
        """All views said at or after this time, in the order of their times."""
        with self._changed:
            said = [event for child in self._lives for event in child.events if isinstance(event, DaemonView)]
        return sorted((view for view in said if view.time_ns >= time_ns), key=lambda view: view.time_ns)

    # --- what is done to them

    def start(self, *names: str) -> int:
        """Start daemons; the wall clock at which the last of them was ready, in nanoseconds."""
        started = [self._start(name) for name in names]
        ready = [self._wait_for_event(child, Ready, 0) for child in started]
        return max(event.time_ns for event in ready)

    def _start(self, name: str) -> Child:
        assert all(child.name != name for child in self.living()), f"{name} is running"
        options = LabOptions(
            config=str(self.file),
            name=name,
            trace=str(self.trace) if self._traced else None,
            run=self.run,
            load=self._load,
            bursts=self._bursts,
            seed=self._seed * 1_000 + len(self._lives),
            json=True,
            control=True,
        )
        popen = self._hosts[self.cluster.rank_of(name)].popen
        child = Child(name, command(options, MODULE), self.directory / f"{name}.log", self._changed, popen)
        self._lives.append(child)
        return child

    def kill(self, name: str) -> int:
        """kill -9; the wall clock just before."""
        return self.child(name).kill()

    def stop(self, name: str) -> int:
        """SIGTERM, and wait for the orderly end; the wall clock just before."""
        child = self.child(name)
        at = child.terminate()
        try:
            code = child.wait_for_end()
        except subprocess.TimeoutExpired:
            raise LiveError(f"{name} was asked to stop and did not: {child.situation()}") from None
        if code != 0:
            raise LiveError(f"{name} was asked to stop and ended with code {code}: {child.last_words()}")
        return at

    def pause(self, name: str) -> int:
        return self.child(name).signal(signal.SIGSTOP)

    def resume(self, name: str) -> int:
        return self.child(name).signal(signal.SIGCONT)

    def part(self, *sides: Sequence[str]) -> int:
        """Cut the network: daemons hear only those of their own side. Needs no rights. The wall clock just before."""
        at = time.time_ns()
        for side in sides:
            others = [name for other in sides if other is not side for name in other]
            for name in side:
                self.child(name).command(f"cut {' '.join(others)}")
        return at

    def heal(self) -> int:
        """Everybody can hear everybody again; the wall clock just before."""
        at = time.time_ns()
        for child in self.living():
            child.command("cut")
        return at

    # --- waiting

    def wait_until(self, holds: Callable[[], bool], what: str, within_s: float = WITHIN_S) -> None:
        """Until it holds; LiveError at the deadline, or as soon as a daemon has died that should live."""
        deadline = time.monotonic() + within_s
        with self._changed:
            while not holds():
                self._refuse_deaths(what)
                left = deadline - time.monotonic()
                if left <= 0:
                    raise LiveError(f"waited {within_s:g} s for {what}; {self._last_said()}")
                # A death is said by nobody but the end of its output, which may come a moment before the exit code.
                self._changed.wait(min(left, 0.5))

    def wait_for_view(self, *names: str, within_s: float = WITHIN_S) -> list[DaemonView]:
        """Until each of these is in one and the same view of exactly their present lives; its installations."""
        children = [self.child(name) for name in names]
        wanted = sorted(names)

        def in_one_view() -> bool:
            lives = {child.process for child in children}
            views = [child.view for child in children]
            return len({view.view if view else None for view in views}) == 1 and all(
                view is not None and set(view.processes) == lives for view in views
            )

        self.wait_until(in_one_view, f"one view of {' '.join(wanted)}", within_s)
        return [view for child in children if (view := child.view) is not None]

    def wait_for_traffic(self, messages: int, within_s: float = WITHIN_S) -> None:
        """Until each living daemon has delivered this many messages from now on."""
        before = {status.process: status.delivered for status in self.statuses()}

        def enough() -> bool:
            return all(status.delivered - before[status.process] >= messages for status in self.statuses())

        self.poll(enough, f"{messages} messages delivered everywhere", within_s)

    def statuses(self) -> list[Status]:
        """Ask each living daemon how it is."""
        children = self.living()
        said = [len(child.events) for child in children]
        for child in children:
            child.command("status")
        return [self._wait_for_event(child, Status, at) for child, at in zip(children, said, strict=True)]

    def poll(self, holds: Callable[[], bool], what: str, within_s: float = WITHIN_S) -> None:
        """For what daemons do not say unasked: ask, and ask again when something was said or a moment has passed."""
        deadline = time.monotonic() + within_s
        while not holds():
            if time.monotonic() > deadline:
                raise LiveError(f"waited {within_s:g} s for {what}; {self._last_said()}")
            with self._changed:
                self._changed.wait(0.02)

    def _wait_for_event(self, child: Child, wanted: type[Wanted], after: int) -> Wanted:
        def found() -> Wanted | None:
            return next((event for event in child.events[after:] if isinstance(event, wanted)), None)

        self.wait_until(lambda: found() is not None, f"{wanted.__name__} from {child.name}")
        event = found()
        assert event is not None
        return event

    def _refuse_deaths(self, what: str) -> None:
        for child in self.living():
            if child.exit_code is not None:
                words = child.last_words() or "it left no word"
                raise LiveError(f"{child.name} ended with code {child.exit_code} in the wait for {what}: {words}")

    def _last_said(self) -> str:
        return "; ".join(child.situation() for child in self.living()) or "no daemon runs"

    # --- the end of a run

    def calm(self) -> None:
        """No more faults from here on: all living daemons are connected with one another."""
        processes = [child.process for child in self.living()]
        for child in self.living():
            child.command("calm " + " ".join(process for process in processes if process))

    def finish(self, within_s: float = WITHIN_S) -> bool:
        """Let the load stop and the daemons come to rest; then end the run with all of them alive.

        False: they did not come to rest. Then no `end` is written, and the checkers will say so of every life.
        """
        for child in self.living():
            child.command("quiet")
        at_rest = self._come_to_rest(self.statuses, within_s)
        if at_rest:
            self._end()
        self.close()
        self._record_crashes()
        return at_rest

    def _end(self) -> None:
        children = self.living()
        for child in children:
            child.command("end")
        for child in children:
            self._wait_for_event(child, LifeEnded, 0)
        for child in children:
            child.close_input()
            child.wait_for_end()

    def rows(self) -> list[Row]:
        """The trace so far. TraceError: rows were lost, and half a trace must not be judged as if it were all."""
        return read_whole(self.trace)

    def _record_crashes(self) -> None:
        """A killed daemon cannot write its last row. We know when it was killed, and its trace says how far it came."""
        killed = {child.process: child for child in self._lives if child.killed_ns is not None and child.process}
        if not killed:
            return
        last: dict[str, Row] = {}
        for row in self.rows():
            if row.process in killed and (row.process not in last or row.index > last[row.process].index):
                last[row.process] = row
        with SegmentWriter(self.trace, "supervisor") as writer:
            for process, row in sorted(last.items()):
                writer.append(crash_row(row, killed[process].killed_ns or 0))


def crash_row(last: Row, time_ns: int) -> Row:
    """The row that a killed process could not write, after its last one."""
    return Row(
        run=last.run,
        level=last.level,
        process=last.process,
        name=last.name,
        daemon=last.daemon,
        index=last.index + 1,
        time_ns=time_ns,
        event="crash",
        cause="killed",
    )
