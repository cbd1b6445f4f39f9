"""The promises of order, checked the slow and obvious way: every process against every pair of messages.

In:   rows of one run.
Out:  for a guarantee, the processes that break it: to be compared with what the fast checkers say.

Each function is a transcript of the sentence it checks. Nothing is shared with the checkers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, product

from covey.trace.record import Row

RELIABLE_UP = ("reliable", "fifo", "causal", "agreed", "safe")
FIFO_UP = RELIABLE_UP[1:]
AGREED_CLASS = RELIABLE_UP[2:]


class Oracle:
    def __init__(self, rows: list[Row]) -> None:
        self.processes = sorted({row.process for row in rows})
        self.rows = {process: [row for row in rows if row.process == process] for process in self.processes}
        self.sends = {str(row.message): row for row in rows if row.event == "send"}
        self.happened_before = self._happened_before()

    # ------------------------------------------------------------------------------------------------- what happened

    def position(self, process: str, event: str, message: str) -> int | None:
        rows = self.rows[process]
        return next((i for i, row in enumerate(rows) if row.event == event and row.message == message), None)

    def delivered(self, process: str, message: str) -> bool:
        return self.position(process, "deliver", message) is not None

    def before(self, process: str, first: str, second: str) -> bool:
        """The process delivers both, the first one first."""
        one, two = self.position(process, "deliver", first), self.position(process, "deliver", second)
        return one is not None and two is not None and one < two

    def view_of(self, process: str, message: str) -> str | None:
        position = self.position(process, "deliver", message)
        return None if position is None else self.rows[process][position].view

    def view_row(self, process: str, view: str | None) -> Row | None:
        return next((row for row in self.rows[process] if row.event == "view" and row.view_new == view), None)

    def next_view_row(self, process: str, view: str | None) -> Row | None:
        return next((row for row in self.rows[process] if row.event == "view" and row.view == view and view), None)

    def after_signal(self, process: str, message: str) -> bool:
        position = self.position(process, "deliver", message)
        view = self.view_of(process, message)
        return any(row.event == "transitional" and row.view == view for row in self.rows[process][:position])

    def messages(self, services: tuple[str, ...]) -> list[str]:
        return [name for name, row in self.sends.items() if row.service in services]

    def deliveries(self, services: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        for process, message in product(self.processes, self.messages(services)):
            if self.delivered(process, message):
                yield process, message

    def key(self, message: str) -> tuple[int, int]:
        row = self.sends[message]
        return row.order_stamp or 0, row.order_site or 0

    def vsync(self) -> Iterator[tuple[str, str, str]]:
        views = sorted({row.view for rows in self.rows.values() for row in rows if row.event == "view" and row.view})
        for view, (p, q) in product(views, combinations(self.processes, 2)):
            one, two = self.next_view_row(p, view), self.next_view_row(q, view)
            if one and two and one.view_new == two.view_new and (q in one.transitional or p in two.transitional):
                yield p, q, view

    def rested(self, process: str) -> bool:
        return any(row.event == "end" for row in self.rows.get(process, []))

    def _happened_before(self) -> set[tuple[str, str]]:
        pairs = set()
        for rows in self.rows.values():
            seen: list[str] = []
            for row in rows:
                if row.event in ("send", "deliver") and row.service in RELIABLE_UP:
                    if row.event == "send":
                        pairs |= {(earlier, str(row.message)) for earlier in seen}
                    seen.append(str(row.message))
        while True:
            longer = {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs
            if not longer:
                return pairs
            pairs |= longer

    # ---------------------------------------------------------------------------------------------------- guarantees

    def s8(self) -> set[str]:
        return {
            f"{p} {q}"
            for p, q, view in self.vsync()
            for m in self.messages(RELIABLE_UP)
            if (self.view_of(p, m) == view) != (self.view_of(q, m) == view)
        }

    def s11(self) -> set[str]:
        return {
            f"{p} {q}"
            for p, q, view in self.vsync()
            for m in self.messages(AGREED_CLASS)
            if (self.view_of(p, m) == view) != (self.view_of(q, m) == view)
            or (self.view_of(p, m) == view and self.after_signal(p, m) != self.after_signal(q, m))
        }

    def m3(self) -> set[str]:
        return {
            p
            for p, later in self.deliveries(FIFO_UP)
            for m in self.messages(RELIABLE_UP)
            if self._earlier_in_session(m, later)
            and not self.before(p, m, later)
            and (self.delivered(p, m) or self._moved_together(p, m, later))
        }

    def _earlier_in_session(self, m: str, later: str) -> bool:
        one, two = self.sends[m], self.sends[later]
        return one.sender == two.sender and (one.session_seq or 0) < (two.session_seq or 0)

    def _moved_together(self, p: str, m: str, later: str) -> bool:
        origin, view = self.sends[later].process, self.sends[later].order_view
        while view != self.sends[m].order_view:
            here, there = self.view_row(p, view), self.view_row(origin, view)
            if not here or not there or here.view is None or here.view != there.view:
                return False
            if origin not in here.transitional or p not in there.transitional:
                return False
            view = here.view
        return True

    def m4(self) -> set[str]:
        return {
            p
            for p, later in self.deliveries(AGREED_CLASS)
            for m in self.messages(RELIABLE_UP)
            if (m, later) in self.happened_before
            and not self.before(p, m, later)
            and (self.delivered(p, m) or self.sends[m].order_view == self.sends[later].order_view)
        }

    def m5(self) -> set[str]:
        return {
            p
            for p, later in self.deliveries(AGREED_CLASS)
            for m in self.messages(RELIABLE_UP)
            if self.sends[m].order_view == self.sends[later].order_view == self.view_of(p, later)
            and self.key(m) < self.key(later)
            and not self.before(p, m, later)
            and (self._required(p, m, later) or (self._agreed(m) and self.delivered(p, m)))
        }

    def _agreed(self, m: str) -> bool:
        return self.sends[m].service in AGREED_CLASS

    def _required(self, p: str, m: str, later: str) -> bool:
        view = self.view_of(p, later)
        if not any(self.view_of(q, m) == view for q in self.processes):
            return False
        onward = self.next_view_row(p, view)
        moves_along = onward is not None and self.sends[m].process in onward.transitional
        return moves_along if self.after_signal(p, later) else True

    def m6(self) -> set[str]:
        return {
            q
            for p, m in self.deliveries(("safe",))
            for q in self._promised(p, m)
            if self.rested(q) and not self.delivered(q, m)
        }

    def _promised(self, p: str, m: str) -> tuple[str, ...]:
        view = self.view_of(p, m)
        if not self.after_signal(p, m):
            installed = self.view_row(p, view)
            return installed.members if installed else ()
        onward = self.next_view_row(p, view)
        return onward.transitional if onward else ()


ORACLES: dict[str, Callable[[Oracle], set[str]]] = {
    "S8": Oracle.s8,
    "S11": Oracle.s11,
    "M3": Oracle.m3,
    "M4": Oracle.m4,
    "M5": Oracle.m5,
    "M6": Oracle.m6,
}
