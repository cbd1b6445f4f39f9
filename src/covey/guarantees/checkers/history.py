"""The history of the daemons of one run, indexed once for all checkers.

In:        the trace rows of one run; rows of other levels than S are passed over.
Out:       History: what clients have too, and which daemons went through which views together or left them alive.
Not here:  one process at a time (lives.py), judgement (membership.py, delivery.py, services.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final

from covey.guarantees.checkers.common.history import BaseHistory
from covey.guarantees.checkers.common.lives import TracedMessage, collect_messages
from covey.trace.record import Row

from .lives import DaemonLife, DaemonStay, DaemonWalk, split_into_lives

EVERYTHING: Final = -1
"""The set of all messages."""


class History(BaseHistory[TracedMessage, DaemonStay, DaemonLife]):
    """Everything the checkers of level S ask of one run."""

    def __init__(self, run: str, rows: Iterable[Row]) -> None:
        lives = split_into_lives(rows)
        own = [row for life in lives.values() for row in life.rows]
        sends = (row for row in own if row.event == "send")
        deliveries = (row for row in own if row.event == "deliver")
        super().__init__(run, lives, *collect_messages(TracedMessage, sends, deliveries))
        for life in lives.values():
            DaemonWalk(life, self.messages).walk()

    def stays(self) -> Iterator[DaemonStay]:
        return (stay for life in self.lives.values() for stay in life.stays)

    @cached_property
    def first_stays(self) -> dict[tuple[str, str], DaemonStay]:
        """By daemon and view; where S3 is broken, there may be later ones."""
        return {(life.process, stay.view): stay for life in self.lives.values() for stay in reversed(life.stays)}

    def daemon_of(self, process: str) -> str:
        return process

    def views_together(self, one: str, other: str, view: str) -> list[str]:
        views = [view]
        here, there = self.first_stays.get((one, view)), self.first_stays.get((other, view))
        while here is not None and there is not None and _came_together(here, there):
            here, there = here.previous, there.previous
            assert here is not None, "who came together came from somewhere"
            views.append(here.view)
        return views

    @cached_property
    def owed(self) -> Mapping[str, int]:
        """A daemon may lack nothing that its view has ordered."""
        return dict.fromkeys(self.lives, EVERYTHING)

    def survivors(self, processes: Iterable[str], view: str) -> list[DaemonLife]:
        """Witnesses, and those who left this view alive for a later one: what became of them later is no excuse."""
        known = (self.lives[process] for process in sorted(processes) if process in self.lives)
        return [life for life in known if life.is_witness or self._left_alive(life, view)]

    def _left_alive(self, life: DaemonLife, view: str) -> bool:
        stay = self.first_stays.get((life.process, view))
        return stay is not None and stay.next is not None


def _came_together(here: DaemonStay, there: DaemonStay) -> bool:
    """Both came to this view from the same one, each in the transitional set of the other."""
    return (
        here.previous is not None
        and there.previous is not None
        and here.previous.view == there.previous.view
        and there.process in here.transitional
        and here.process in there.transitional
    )
