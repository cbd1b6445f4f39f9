"""Rows that could not be stored, counted until a gap row can tell of them.

In:        lost rows.
Out:       one gap row for each history (run, level and process) that lost rows, in the order of the first losses.
Not here:  why a row was lost, and the writing of the gap rows (segments.py).

A gap row stands at the index of the first row lost. The next row of its process has the index it would have had
anyhow, so the indexes show the gap too, and its length is their difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .record import Row

# A failing allocation may wait for the disk: while it is full, only one row in this much time of the rows tries again.
RETRY_AFTER_NS: Final = 1_000_000_000


@dataclass(slots=True)
class Gap:
    first_lost: Row
    count: int = 0

    def to_row(self) -> Row:
        lost = self.first_lost
        return Row(
            run=lost.run,
            level=lost.level,
            process=lost.process,
            name=lost.name,
            daemon=lost.daemon,
            index=lost.index,
            step=lost.step,
            time_ns=lost.time_ns,
            event="gap",
            detail=f"{self.count} rows lost",
        )


class Gaps:
    def __init__(self) -> None:
        # By run, level and process; to be read only.
        self.open: dict[tuple[str, str, str], Gap] = {}
        self._tried_at_ns = 0

    def count(self, row: Row) -> None:
        self.open.setdefault((row.run, row.level, row.process), Gap(row)).count += 1

    def failed(self, row: Row) -> None:
        """Storing this row was tried and failed: `is_due` lets some time pass before the next try."""
        self.count(row)
        self._tried_at_ns = row.time_ns

    def is_due(self, row: Row) -> bool:
        # A wall clock may be set back: a long way in either direction counts as time passed.
        return abs(row.time_ns - self._tried_at_ns) >= RETRY_AFTER_NS

    def first(self) -> Row:
        return next(iter(self.open.values())).to_row()

    def first_told(self) -> None:
        del self.open[next(iter(self.open))]
