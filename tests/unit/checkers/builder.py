"""A trace written as a story: daemons install views, send, deliver, crash and come to rest.

In:   one call an event. Daemons are named by letters; "a b" means the current lives of a and b.
Out:  rows of level S, and two questions about them: which guarantees are violated, and how often one was tested.

What a call does not say is filled in as a correct daemon would write it, so each test spells out only its fault.
"""

from __future__ import annotations

from typing import Any

import msgspec

from covey.guarantees.checkers import Verdict, check
from covey.trace.record import Row, payload_digest

# What a delivery repeats of its send.
SENT_COLUMNS = (
    *("count", "sender", "session_seq", "service", "size", "digest"),
    *("order_view", "order_stamp", "order_site", "order_index"),
)


class Trace:
    def __init__(self, daemons: str, run: str = "run") -> None:
        self.run = run
        self.rows: list[Row] = []
        self.sends: dict[str, Row] = {}
        # By process: how many rows it wrote and the view it is in. By session: its last sequence.
        self.indexes: dict[str, int] = {}
        self.views: dict[str, str | None] = {}
        self.sequences: dict[str, int] = {}
        self.stamp = 0
        self.counter = 0
        self.lives: dict[str, int] = {}
        for name in daemons.split():
            self.restart(name)

    # ------------------------------------------------------------------------------------------------------- lives

    def process(self, daemon: str) -> str:
        """The current life of a daemon; a full process name stands for itself."""
        return daemon if ":" in daemon else f"{daemon}:{self.lives[daemon]}"

    def processes(self, daemons: str) -> tuple[str, ...]:
        return tuple(sorted(self.process(daemon) for daemon in daemons.split()))

    def restart(self, daemon: str) -> Trace:
        self.lives[daemon] = self.lives.get(daemon, 0) + 1
        self.views[self.process(daemon)] = None
        return self.event(daemon, "recover")

    def crash(self, daemons: str) -> Trace:
        return self.each(daemons, "crash")

    def stop(self, daemons: str) -> Trace:
        return self.each(daemons, "stop")

    # ------------------------------------------------------------------------------------------------------- views

    def install(self, view: str, daemons: str, /, **wrong: Any) -> Trace:
        """The named daemons install a view of themselves; the transitional sets follow from where they come."""
        self.counter += 1
        members = self.processes(daemons)
        previous = {process: self.views[process] for process in members}
        for process in members:
            came_along = [q for q in members if previous[q] == previous[process] and previous[q] is not None]
            columns: dict[str, Any] = {
                "view": previous[process],
                "view_new": view,
                "view_rank": (self.counter, 0, 1),
                "members": members,
                "transitional": tuple(came_along) or (process,),
                "cause": "merge",
            }
            self.event(process, "view", **columns | wrong)
            self.views[process] = view
        return self

    def install_at(self, daemon: str, view: str, members: str, transitional: str, /, **wrong: Any) -> Trace:
        """One daemon installs a view, with whatever sets the test wants; the rank is that of the last view."""
        process = self.process(daemon)
        columns: dict[str, Any] = {
            "view": self.views[process],
            "view_new": view,
            "view_rank": (self.counter, 0, 1),
            "members": self.processes(members),
            "transitional": self.processes(transitional),
            "cause": "merge",
        }
        self.event(process, "view", **columns | wrong)
        self.views[process] = view
        return self

    def signal(self, daemons: str) -> Trace:
        return self.each(daemons, "transitional")

    # ---------------------------------------------------------------------------------------------------- messages

    def send(self, daemon: str, service: str, session: str | None = None, **wrong: Any) -> str:
        """Stamps a message at this daemon and returns its name."""
        process = self.process(daemon)
        sender = f"{session}@{process}" if session else process
        sequence = self.sequences[sender] = self.sequences.get(sender, 0) + 1
        self.stamp += 1
        message = f"{sender}#{sequence}"
        stamped = service != "unreliable"
        columns: dict[str, Any] = {
            "message": message,
            "count": 1,
            "sender": sender,
            "session_seq": sequence,
            "service": service,
            "order_view": self.views[process],
            "order_stamp": self.stamp if stamped else None,
            "order_site": 1 if stamped else None,
            "order_index": 0 if stamped else None,
            "size": len(message),
            "digest": payload_digest(message.encode()),
        }
        self.event(process, "send", **columns | wrong)
        self.sends[message] = self.rows[-1]
        return message

    def deliver(self, message: str, daemons: str, **wrong: Any) -> Trace:
        """The named daemons deliver a message as it was sent; a message nobody sent has its name alone."""
        send = self.sends.get(message)
        sent = {column: getattr(send, column) for column in SENT_COLUMNS} if send is not None else {}
        for process in self.processes(daemons):
            self.event(process, "deliver", message=message, **sent | wrong)
        return self

    def multicast(self, daemon: str, service: str, daemons: str, session: str | None = None) -> str:
        """Sent by one daemon, and delivered at once by all the named ones."""
        message = self.send(daemon, service, session)
        self.deliver(message, daemons)
        return message

    # -------------------------------------------------------------------------------------------------------- rest

    def calm(self, daemons: str, connected: str | None = None) -> Trace:
        return self.each(daemons, "calm", members=self.processes(connected or daemons))

    def end(self, daemons: str) -> Trace:
        return self.each(daemons, "end")

    def settle(self, daemons: str) -> Trace:
        return self.calm(daemons).end(daemons)

    # -------------------------------------------------------------------------------------------------------- rows

    def each(self, daemons: str, event: str, **columns: Any) -> Trace:
        for process in self.processes(daemons):
            self.event(process, event, **columns)
        return self

    def event(self, daemon: str, event: str, **columns: Any) -> Trace:
        process = self.process(daemon)
        index = self.indexes[process] = self.indexes.get(process, -1) + 1
        defaults: dict[str, Any] = {
            "run": self.run,
            "level": "S",
            "process": process,
            "name": process.partition(":")[0],
            "daemon": process,
            "index": index,
            "time_ns": 0,
            "event": event,
            "view": self.views[process],
        }
        self.rows.append(Row(**defaults | columns))
        return self


def verdicts(trace: Trace | list[Row]) -> dict[str, Verdict]:
    rows = trace.rows if isinstance(trace, Trace) else trace
    return {verdict.guarantee: verdict for verdict in check(rows)}


def violated(trace: Trace | list[Row]) -> set[str]:
    return {guarantee for guarantee, verdict in verdicts(trace).items() if not verdict.holds}


def details(trace: Trace, guarantee: str) -> list[str]:
    return [violation.detail for violation in verdicts(trace)[guarantee].violations]


def assert_good(trace: Trace | list[Row], tested: str) -> None:
    """Nothing is violated, and this guarantee had something to say."""
    found = verdicts(trace)
    assert [violation for verdict in found.values() for violation in verdict.violations] == []
    assert found[tested].premises > 0


def renumbered(rows: list[Row]) -> list[Row]:
    """The rows with fresh indexes in the order in which they stand: for tests that remove or move rows."""
    indexes: dict[str, int] = {}
    result = []
    for row in rows:
        indexes[row.process] = indexes.get(row.process, -1) + 1
        result.append(msgspec.structs.replace(row, index=indexes[row.process]))
    return result
