"""The client programs of a soak under their supervisor: started, killed, brought to rest together with the daemons.

In:        a cluster of real daemons; how many programs; which of them is to be killed.
Out:       programs at rest, with the last rows of their histories, those of the killed ones included.
Not here:  one program (program.py), its process (child.py), the daemons (cluster.py).
"""

from __future__ import annotations

import time
from typing import Final, TypeVar

from covey.client.address import socket_path
from covey.drivers.live.events import LifeEnded, Status
from covey.lab.child import Child, Children
from covey.lab.cluster import WITHIN_S, LiveError, LocalCluster, crash_row
from covey.trace.record import Row
from covey.trace.segments import SegmentWriter

from .program import SoakTask, command

PAUSE_S: Final = 0.15
CLOSED: Final = ("disconnect", "refused", "crash", "end")
"""With one of these rows a history of a client is at its end."""

Wanted = TypeVar("Wanted")


class Programs(Children):
    def __init__(self, cluster: LocalCluster, count: int, *, seed: int = 0, pause_s: float = PAUSE_S) -> None:
        super().__init__()
        self.names = tuple(f"p{number}" for number in range(count))
        self._cluster = cluster
        self._seed = seed
        self._pause_s = pause_s

    # --- what is done to them

    def start(self, *names: str) -> None:
        for name in names:
            assert all(child.name != name for child in self.living()), f"{name} is running"
            number = len(self._lives)
            log = self._cluster.directory / f"{name}.log"
            self._lives.append(Child(name, command(self._task(name, number)), log, self._changed))

    def kill(self, name: str) -> None:
        """kill -9, wherever it is."""
        self.child(name).kill()

    def dead(self) -> list[str]:
        alive = {child.name for child in self.living()}
        return [name for name in self.names if name not in alive]

    def _task(self, name: str, number: int) -> SoakTask:
        daemons = tuple(daemon.name for daemon in self._cluster.cluster.daemons)
        digest = self._cluster.cluster.digest()
        return SoakTask(
            name=name,
            names=self.names,
            daemons=daemons,
            addresses=tuple(f"unix:{socket_path(digest, daemon)}" for daemon in daemons),
            trace=str(self._cluster.trace),
            stem=f"program-{name}-{number}",
            run=self._cluster.run,
            seed=self._seed * 1_000 + number,
            pause_s=self._pause_s,
        )

    # --- waiting

    def wait_for_traffic(self, events: int, within_s: float = WITHIN_S) -> None:
        """Until each living program has seen this many events from now on."""
        before = {status.process: status.changes for status in self.statuses()}
        deadline = time.monotonic() + within_s
        while any(status.changes - before[status.process] < events for status in self.statuses()):
            if time.monotonic() > deadline:
                raise LiveError(f"waited {within_s:g} s for {events} events at every program")
            self._moment()

    def statuses(self) -> list[Status]:
        """Ask each living program how it is. One that stalls answers late."""
        children = self.living()
        said = [len(child.events) for child in children]
        for child in children:
            child.command("status")
        return [self._answer(child, Status, at) for child, at in zip(children, said, strict=True)]

    def refuse_deaths(self) -> None:
        """LiveError if one has ended that should live."""
        for child in self.living():
            if child.exit_code is not None:
                raise LiveError(f"{child.name} ended with code {child.exit_code}: {child.last_words()}")

    def _answer(self, child: Child, wanted: type[Wanted], after: int) -> Wanted:
        deadline = time.monotonic() + WITHIN_S
        while True:
            for event in child.events[after:]:
                if isinstance(event, wanted):
                    return event
            self.refuse_deaths()
            if time.monotonic() > deadline:
                raise LiveError(f"waited {WITHIN_S:g} s for {wanted.__name__} from {child.name}")
            self._moment()

    # --- the end of a run

    def finish(self, within_s: float = WITHIN_S) -> bool:
        """All daemons are in one view. Everyone says last words; when all is quiet, living programs end their rows.

        False: programs and daemons did not come to rest. The daemons are left as they are, for their own end.
        """
        self.start(*self.dead())
        for child in [*self.living(), *self._cluster.living()]:
            child.command("quiet")
        at_rest = self._come_to_rest(lambda: [*self.statuses(), *self._cluster.statuses()], within_s)
        if at_rest:
            for child in self.living():
                child.command("end")
            for child in self.living():
                self._answer(child, LifeEnded, 0)
        return at_rest

    def record_crashes(self) -> None:
        """A killed program cannot write its last row. We know when it was killed; its trace says how far it came."""
        last: dict[str, Row] = {}
        for row in self._cluster.rows():
            if row.level == "C" and (row.process not in last or row.index > last[row.process].index):
                last[row.process] = row
        with SegmentWriter(self._cluster.trace, "supervisor-of-programs") as writer:
            for _, row in sorted(last.items()):
                killed_ns = self._killed_ns(row)
                if row.event not in CLOSED and killed_ns is not None:
                    writer.append(crash_row(row, killed_ns))

    def _killed_ns(self, row: Row) -> int | None:
        """When the process was killed that wrote this row: the last of its name that was started before."""
        name = row.name.partition("@")[0]
        started = [child for child in self._lives if child.name == name and child.started_ns <= row.time_ns]
        return started[-1].killed_ns if started else None
