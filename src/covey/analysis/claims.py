"""What each row of a daemon comes after, written beside it: so that order can be checked row by row.

In:        rows in the order in which their processes wrote them.
Out:       four more columns of the store.
Not here:  how they are proven (checks/links.py), whether what must grow does (checks/digests.py).

To find out what comes before a row, Spark must sort all rows, or bring those that are neighbours together. Who writes
them down one after the other knows it anyway. The columns are claims, and nobody relies on them before they are proven:
each row says what was before it, and so what the next one has to claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from covey.trace.record import SERVICES

CLAIMS: Final = ("claim_top", "claim_ordered", "claim_last", "claim_floor")
"""At level S, NONE where there is nothing: the highest order of all messages before this row in the history of its
process; of those among them that were delivered in order. Of sends and deliveries also: the row before in its thread,
which is what a process sent in a session, or delivered of it; and the sequence that this one must exceed, which is that
of the last send, or of the last fifo delivery."""
NAMED: Final = (
    *("run", "level", "process", "index", "event", "sender", "session_seq", "service"),
    *("order_stamp", "order_site", "order_index"),
)
"""The columns that the claims are made from."""

NONE: Final = -1
STAMP_BITS: Final = 52
SITE_BITS: Final = 9
MESSAGES: Final = ("send", "deliver")
ORDERED: Final = frozenset(SERVICES[SERVICES.index("causal") :])

Claims = tuple[int | None, int | None, int | None, int | None]
Pair = tuple[int, int]

NO_CLAIMS: Final[Claims] = (None, None, None, None)
AT_FIRST: Final[Pair] = (NONE, NONE)


class Claimant:
    """Follows the histories of any number of processes."""

    def __init__(self) -> None:
        self._tops: dict[tuple[str, str], Pair] = {}
        self._threads: dict[tuple[str, str, str, bool], Pair] = {}

    def claims(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[Claims]:
        """Of each row, given by its values of NAMED, those of CLAIMS."""
        for run, level, process, index, event, sender, seq, service, *order in rows:
            if level != "S":
                yield NO_CLAIMS
                continue
            top, top_ordered = self._tops.get((run, process), AT_FIRST)
            if event not in MESSAGES:
                yield top, top_ordered, None, None
                continue
            is_send = event == "send"
            thread = (run, process, sender, is_send)
            last, floor = self._threads.get(thread, AT_FIRST)
            yield top, top_ordered, last, floor
            self._threads[thread] = (index, _raised(floor, seq, is_send or service == "fifo"))
            key = order_number(*order)
            is_ordered = not is_send and service in ORDERED
            self._tops[run, process] = (_raised(top, key, True), _raised(top_ordered, key, is_ordered))


def order_number(stamp: int | None, site: int | None, index: int | None) -> int | None:
    """The born order as one number; None for what does not fit, and for all but the first of a bundle.

    >>> order_number(2, 3, 0), order_number(2, 3, 1), order_number(-2, 3, 0)
    (1027, None, None)
    """
    if stamp is None or site is None or index or not (0 <= stamp < 1 << STAMP_BITS and 0 <= site < 1 << SITE_BITS):
        return None
    return stamp << SITE_BITS | site


def _raised(top: int, value: int | None, counts: bool) -> int:
    return value if counts and value is not None and value > top else top
