"""Where the demonstration is shown: to people, and with --json to programs too.

In:        what the acts tell (lab/demo/acts.py), and judgements.
Out:       text that fits the terminal, narrow or wide; JSON objects on standard output.
Not here:  what happens (lab/demo/), who judges (demo.py).

Weight only, no colour but red: both a light and a dark background show it.
"""

from __future__ import annotations

import sys
from typing import Final, NamedTuple

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from covey.guarantees import HELD
from covey.guarantees.checkers.verdict import Violation
from covey.lab.demo.acts import ActStep, Equals, Lesson, Merge, Shown, ShownView

WIDE: Final = 90
WIDTH_MAX: Final = 110
"""Longer lines are hard to read; and what is no terminal has no width."""


class Line(NamedTuple):
    """What came of checking one guarantee: cases between daemons, and between programs."""

    guarantee: str
    daemons: int | None
    programs: int | None
    broken: int
    violations: list[Violation]


class DemoJudgement(NamedTuple):
    """One verdict on every guarantee."""

    title: str
    lines: list[Line]

    @property
    def holds(self) -> bool:
        return not any(line.broken for line in self.lines)


class DemoStage:
    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        stream = sys.stderr if as_json else sys.stdout
        self._screen = Console(file=stream)
        self._screen.width = min(self._screen.width, WIDTH_MAX) if stream.isatty() else WIDTH_MAX
        self._busy = self._screen.status("at work", spinner="line")
        self._rows: list[Shown] = []

    def say(self, text: str) -> None:
        self._screen.print(Text(text))

    def show(self, told: Shown) -> None:
        """Rows of one table are shown together, when something else follows."""
        if self._as_json:
            print(msgspec.json.encode(told).decode(), flush=True)
        if self._rows and type(self._rows[0]) is not type(told):
            self._flush()
        if isinstance(told, ActStep):
            self._step(told)
        elif isinstance(told, Lesson):
            self._screen.print(Padding(Text(told.text, style="italic"), (0, 0, 0, 2), expand=False))
        else:
            self._rows.append(told)

    def rest(self) -> None:
        """No sign of life any more: the play is over, or broken off."""
        self._busy.stop()

    # --- the play

    def _step(self, step: ActStep) -> None:
        self._busy.stop()
        self.say("")
        self._screen.print(Text(step.act.upper(), style="bold"))
        self.say(step.text)
        if step.since:
            self._screen.print(Text(f"Times are in milliseconds {step.since}.", style="dim"))
        if self._screen.is_terminal:
            self._busy.start()

    def _flush(self) -> None:
        rows, self._rows = self._rows, []
        self._screen.print(Padding(self._table(rows), (0, 0, 0, 2), expand=False))

    def _table(self, rows: list[Shown]) -> Table:
        if isinstance(rows[0], ShownView):
            views = [row for row in rows if isinstance(row, ShownView)]
            return _views(views) if self._screen.width >= WIDE else _narrow_views(views)
        if isinstance(rows[0], Merge):
            return _merges([row for row in rows if isinstance(row, Merge)])
        return _ledgers([row for row in rows if isinstance(row, Equals)])

    # --- the verdict

    def judgement(self, judgement: DemoJudgement) -> None:
        table = Table("", "promise", box=None, pad_edge=False, title=judgement.title, title_justify="left")
        for heading in ("daemons", "programs", "broken"):
            table.add_column(heading, justify="right")
        for line in judgement.lines:
            self._emit(line)
            cells = [_cases(line.daemons), _cases(line.programs), f"{line.broken:,}"]
            table.add_row(
                line.guarantee, HELD[line.guarantee].in_short, *cells, style="bold red" if line.broken else ""
            )  # fmt: skip
        self._screen.print(table)
        self.say("Numbers are cases in which a promise had something to say, between daemons and between programs.")
        for one in [one for line in judgement.lines for one in line.violations][:20]:
            self.say(f"{one.guarantee} {one.process}: {one.detail}")

    def _emit(self, line: Line) -> None:
        if not self._as_json:
            return
        told = {
            "kind": "guarantee",
            "guarantee": line.guarantee,
            "promise": HELD[line.guarantee].in_short,
            "rows_checked": (line.daemons or 0) + (line.programs or 0),
            "between_daemons": line.daemons,
            "between_programs": line.programs,
            "violations": line.broken,
        }
        print(msgspec.json.encode(told).decode(), flush=True)


def _cases(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _plain(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in columns:
        table.add_column(heading, justify="right" if heading in {"ms", "entries"} else "left")
    return table


def _views(rows: list[ShownView]) -> Table:
    table = _plain("ms", "view of", "members", "moved together", "why")
    for row in rows:
        names = (Text(" ".join(row.members), style="bold"), Text(" ".join(row.transitional)))
        table.add_row(f"{row.after_ms:,.0f}", row.group, *names, Text(_why(row)))
    return table


def _narrow_views(rows: list[ShownView]) -> Table:
    table = _plain("ms", "view")
    for row in rows:
        text = Text(f"{row.group}: ").append(" ".join(row.members), style="bold")
        alone = row.members == row.transitional
        together = "all moved together" if alone else f"moved together: {' '.join(row.transitional)}"
        table.add_row(f"{row.after_ms:,.0f}", text.append(f"\n{together}; {_why(row)}", style="not bold"))
    return table


def _why(row: ShownView) -> str:
    """Of a merge: who is new to those who saw this; of a loss: who is gone."""
    new = [name for name in row.members if name not in row.transitional]
    if row.cause in {"network", "merge"} and new:
        return f"{row.cause}: {' '.join(new)} from another view"
    if row.cause in {"network", "loss"} and row.gone:
        return f"{row.cause}: without {' '.join(row.gone)}; {row.reason}"
    return f"{row.cause}: {row.reason}"


def _merges(rows: list[Merge]) -> Table:
    table = _plain("state of", "told by", "for", "entries")
    for row in rows:
        for names, entries in row.sides:
            table.add_row(row.group, Text(names[0]), Text(" ".join(names)), f"{entries:,}")
        table.add_row("", "together", "", Text(f"{row.entries:,}", style="bold"))
    return table


def _ledgers(rows: list[Equals]) -> Table:
    table = _plain("ledger", "equal at", "entries", "state")
    for row in rows:
        table.add_row(row.group, Text(" ".join(row.programs), style="bold"), f"{row.entries:,}", row.state)
    return table
