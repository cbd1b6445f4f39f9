"""The programs of the demonstration under their supervisor: started, hushed, compared, killed, brought to rest.

In:        a cluster of real daemons; who is at which daemon and in which groups.
Out:       views and merges as programs saw them; which ledgers are equal; the last rows of their histories.
Not here:  one program (program.py), its process (child.py), the daemons (cluster.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from covey.client.address import socket_path
from covey.drivers.live.events import GroupViewed, LedgersMerged, LifeEnded, Ready, Status
from covey.lab.child import MOMENT_S, Child, Children
from covey.lab.cluster import WITHIN_S, LiveError, LocalCluster, crash_row
from covey.trace.record import Row
from covey.trace.segments import SegmentWriter

from .program import DemoTask, command

PAUSE_S: Final = 0.06
CLOSED: Final = ("disconnect", "refused", "crash", "end")
"""With one of these rows a history of a client is at its end."""


Sides = Mapping[str, tuple[str, ...]]
"""By group: who is with whom, each side as "name name"."""


class Role(NamedTuple):
    """Who a program is."""

    name: str
    daemon: str
    groups: tuple[str, ...]
    refuge: str
    """Where it goes when its daemon dies."""


class Equal(NamedTuple):
    """Programs whose ledgers of one group are equal, entry for entry."""

    group: str
    names: tuple[str, ...]
    entries: int
    state: str


class Troupe(Children):
    def __init__(self, cluster: LocalCluster, roles: tuple[Role, ...], groups: tuple[str, ...]) -> None:
        super().__init__()
        self._cluster = cluster
        self._roles = {role.name: role for role in roles}
        self._groups = groups

    # --- what is done to them

    def start(self, *names: str) -> int:
        """All at once; when they are ready, their daemons have let them in. The wall clock just before."""
        at = time.time_ns()
        for role in [self._roles[name] for name in names]:
            log = self._cluster.directory / f"{role.name}.log"
            task = self._task(role, len(self._lives))
            self._lives.append(Child(role.name, command(task), log, self._changed))
        self._wait(lambda: all(_said(child, Ready) for child in self._lives), "every program at its daemon")
        return at

    def kill(self, name: str) -> int:
        """kill -9; the wall clock just before."""
        return self.child(name).kill()

    def tell(self, command_line: str, *names: str) -> int:
        """A command, to all or to some; the wall clock just before."""
        at = time.time_ns()
        for child in self.living():
            if not names or child.name in names:
                child.command(command_line)
        return at

    def _task(self, role: Role, number: int) -> DemoTask:
        digest = self._cluster.cluster.digest()
        return DemoTask(
            name=role.name,
            groups=role.groups,
            to=self._groups,
            addresses=tuple(f"unix:{socket_path(digest, daemon)}" for daemon in (role.daemon, role.refuge)),
            trace=str(self._cluster.trace),
            stem=f"program-{role.name}-{number}",
            run=self._cluster.run,
            seed=number,
            pause_s=PAUSE_S,
        )

    # --- what they saw

    def views_since(self, time_ns: int) -> list[tuple[str, GroupViewed]]:
        """(who, view), in the order of their times."""
        return [(name, event) for name, event in self._events_since(time_ns) if isinstance(event, GroupViewed)]

    def merges_since(self, time_ns: int) -> list[LedgersMerged]:
        """One of each: all members put together the same."""
        found = [event for _, event in self._events_since(time_ns) if isinstance(event, LedgersMerged)]
        return list({(event.group, event.view): event for event in found}.values())

    def _events_since(self, time_ns: int) -> list[tuple[str, Any]]:
        with self._changed:
            said = [(child.name, event) for child in self._lives for event in child.events if event.time_ns >= time_ns]
        return sorted(said, key=lambda one: one[1].time_ns)

    def wait_for_members(self, sides: Sides) -> None:
        """Until each program's last view of a group has exactly its own side as members."""

        def missing() -> list[str]:
            return [
                f"{name} in {group} with {side}"
                for group, parts in sides.items()
                for side in parts
                for name in side.split()
                if _members(self.child(name), group) != set(side.split())
            ]

        self._wait(lambda: not missing(), "views", missing)

    def wait_for_equals(self, sides: Sides, within_s: float = WITHIN_S) -> list[Equal]:
        """Until ledgers are at rest and equal on each side. Programs are quiet."""
        deadline = time.monotonic() + within_s
        before: list[Equal] = []
        while True:
            found = self._equals(sides)
            if found and found == before:
                return found
            before = found
            if time.monotonic() > deadline:
                raise LiveError(f"waited {within_s:g} s for equal ledgers; {self.statuses()}")
            self._moment()

    def _equals(self, sides: Sides) -> list[Equal]:
        """Nothing, unless they are."""
        told = {status.process: status.snapshot["ledgers"] for status in self.statuses()}
        found: list[Equal] = []
        for group, parts in sides.items():
            for part in parts:
                names = tuple(part.split())
                ledgers = [told[name].get(group, {"whole": False}) for name in names]
                if not all(one["whole"] and one == ledgers[0] for one in ledgers):
                    return []
                found.append(Equal(group, names, ledgers[0]["entries"], ledgers[0]["state"]))
        return found

    def statuses(self) -> list[Status]:
        children = self.living()
        said = [len(child.events) for child in children]
        for child in children:
            child.command("status")
        asked = list(zip(children, said, strict=True))
        self._wait(lambda: all(_said(child, Status, at) for child, at in asked), "answers of programs")
        return [_said(child, Status, at)[0] for child, at in asked]

    # --- waiting

    def _wait(self, holds: Callable[[], bool], what: str, missing: Callable[[], list[str]] = list) -> None:
        deadline = time.monotonic() + WITHIN_S
        with self._changed:
            while not holds():
                self._refuse_deaths()
                if time.monotonic() > deadline:
                    raise LiveError(f"waited {WITHIN_S:g} s for {what}: {'; '.join(missing())}")
                self._changed.wait(MOMENT_S)

    def _refuse_deaths(self) -> None:
        for child in self.living():
            if child.exit_code is not None:
                raise LiveError(f"{child.name} ended with code {child.exit_code}: {child.last_words()}")

    # --- the end of a run

    def finish(self, within_s: float = WITHIN_S) -> None:
        """When programs and daemons are at rest, living programs end their rows; connections stay until `close`."""
        self.tell("quiet")
        if not self._come_to_rest(lambda: [*self.statuses(), *self._cluster.statuses()], within_s):
            raise LiveError(f"waited {within_s:g} s for programs and daemons to come to rest")
        self.tell("end")
        self._wait(lambda: all(_said(child, LifeEnded) for child in self.living()), "the last words of programs")

    def record_crashes(self) -> None:
        """A killed program cannot write its last row. We know when it was killed; its trace says how far it came."""
        killed = {child.name: child.killed_ns for child in self._lives if child.killed_ns is not None}
        last: dict[str, Row] = {}
        for row in self._cluster.rows():
            if row.level == "C" and (row.process not in last or row.index > last[row.process].index):
                last[row.process] = row
        with SegmentWriter(self._cluster.trace, "supervisor-of-programs") as writer:
            for row in last.values():
                with suppress(KeyError):
                    if row.event not in CLOSED:
                        writer.append(crash_row(row, killed[row.name.partition("@")[0]]))


def _said(child: Child, wanted: type[Any], after: int = 0) -> list[Any]:
    return [event for event in child.events[after:] if isinstance(event, wanted)]


def _members(child: Child, group: str) -> set[str]:
    """The last view of a group, by names without daemons."""
    for event in reversed(child.events):
        if isinstance(event, GroupViewed) and event.group == group:
            return {member.partition("@")[0] for member in event.members}
    return set()
