"""A second opinion: every guarantee checked the slow and obvious way, on one small trace at a time.

`broken(rows)` gives the (level, guarantee) pairs that a trace breaks. Each function is a transcript of the sentence in
docs/guarantees.md and of its reading there: loops over processes and pairs of messages, sets of names, no cleverness.
Nothing is shared with the simulator's checkers or with the analysis.
"""

from __future__ import annotations

from covey.trace.record import Row

from .clients import CLIENT_ORACLES
from .daemons import DAEMON_ORACLES
from .story import Story


def broken(rows: list[Row]) -> set[tuple[str, str]]:
    daemons = Story(rows, "S")
    found = {("S", number) for number, holds in DAEMON_ORACLES.items() if not holds(daemons)}
    if any(row.level == "C" for row in rows):
        clients = Story(rows, "C", daemons)
        found |= {("C", number) for number, holds in CLIENT_ORACLES.items() if not holds(clients)}
    return found
