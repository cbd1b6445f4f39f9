"""A replicated ledger: the same entries in the same order at every member, across crashes, partitions and merges.

In:        the views and messages of one group, in the order in which they came.
Out:       entries; in some views, a state to send to the group.
Not here:  sessions and sockets (program.py). This is what an application of Covey looks like.

The whole art is in `on_view`. Whoever moved with us from the last view has seen what we have seen, so their ledger
is ours: no question is asked. If somebody in the view did not come with us, the lowest of each set of equals tells
what it has, and everyone puts these states together in the same way.

Invariants: K1 members of `equals` have equal entries at the same place of the stream; K2 while states are awaited,
entries wait, in their order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec


class LedgerEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One booking."""

    id: str
    amount: int


class LedgerState(msgspec.Struct, frozen=True, array_like=True):
    """What a set of equals has, said by the lowest of them. It counts in this view only."""

    view: str
    equals: tuple[str, ...]
    entries: tuple[LedgerEntry, ...]


class Merged(msgspec.Struct, frozen=True):
    """States were put together: (equals, how many entries they brought) of each side, and what came of it."""

    sides: tuple[tuple[tuple[str, ...], int], ...]
    entries: int


class Ledger:
    """
    >>> anna = Ledger("anna")
    >>> anna.on_view("1", ["anna"], ["anna"])
    >>> anna.on_entry(LedgerEntry("x", 5)); anna.balance
    5
    >>> anna.on_view("2", ["anna", "ben"], ["anna"])  # ben did not come with us: he needs what we have
    LedgerState(view='2', equals=('anna',), entries=(LedgerEntry(id='x', amount=5),))
    """

    def __init__(self, me: str) -> None:
        self.entries: list[LedgerEntry] = []
        self.balance = 0
        self._me = me
        self._equals = frozenset([me])
        self._members = frozenset([me])
        self._view = ""
        self._states: dict[tuple[str, ...], tuple[LedgerEntry, ...]] = {}
        self._waiting: list[LedgerEntry] | None = None
        """None: nothing is awaited."""

    @property
    def is_whole(self) -> bool:
        """Every member of the view has these entries."""
        return self._waiting is None

    def digest(self) -> str:
        """Differs if an entry or the order differs."""
        return hashlib.blake2b(msgspec.json.encode(self.entries), digest_size=3).hexdigest()

    def on_view(self, view: str, members: Iterable[str], together: Iterable[str]) -> LedgerState | None:
        """What to send to the group, if it is ours to send."""
        self._book(self._waiting or [])  # Our equals came along, and had the same entries waiting.
        self._view, self._members = view, frozenset(members)
        self._equals &= frozenset(together)
        self._states = {}
        self._waiting = None if self._equals == self._members else []
        if self._waiting is None or self._me != min(self._equals):
            return None
        return LedgerState(view, tuple(sorted(self._equals)), tuple(self.entries))

    def on_entry(self, entry: LedgerEntry) -> None:
        if self._waiting is None:
            self._book([entry])
        else:
            self._waiting.append(entry)

    def on_state(self, state: LedgerState) -> Merged | None:
        """What was put together, if this was the last state that was missing."""
        if self._waiting is None or state.view != self._view:
            return None
        self._states[state.equals] = state.entries
        if frozenset(name for equals in self._states for name in equals) != self._members:
            return None
        return self._merge(self._waiting)

    def _merge(self, waiting: list[LedgerEntry]) -> Merged:
        """The longest first, then what only others have: the same rule everywhere, so the same ledger everywhere."""
        sides = sorted(self._states.items(), key=lambda side: (-len(side[1]), side[0]))
        merged = {entry.id: entry for _, entries in sides for entry in entries}
        self.entries, self.balance = [], 0
        self._book(merged.values())
        total = len(self.entries)
        self._book(waiting)
        self._equals, self._waiting = self._members, None
        return Merged(tuple((equals, len(entries)) for equals, entries in sides), total)

    def _book(self, entries: Iterable[LedgerEntry]) -> None:
        for entry in entries:
            self.entries.append(entry)
            self.balance += entry.amount
