"""Who is in a group: a list of processes, or the difference from another roll until somebody looks.

In:        a list; or a roll, who came and who went.
Out:       processes and names, sorted, made when they are asked for.
Not here:  events (view.py), whose roll it is (protocol.py).

A join storm is thousands of views of thousands of members, most of which no program looks at: each costs what it
changes. A look costs about what the list has, and drops the link to the roll before. Any thread may look.

Invariant: Y1 the differences from the last list add up to less than that list had, or ROOM_MIN: chains stay short, and
           making lists costs a constant for each change.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

ROOM_MIN: Final = 16
"""So many changes may follow even a short list before the next one is made."""

Names = tuple[str, ...]


def name_of(process: str) -> str:
    """What people call a process: the address to which private messages for it go.

    >>> name_of("alice@a:7.3")
    'alice@a'
    """
    return process.rpartition(":")[0]


class Step(NamedTuple):
    """A difference."""

    before: Roll
    came: Names
    gone: Names


class Roll:
    """
    >>> first = roll_of(["bob@b:2.9", "alice@a:7.3"])
    >>> second = first.then(came=("carol@c:1.1",), gone=("bob@b:2.9",))
    >>> second.is_made, second.processes, second.is_made
    (False, ('alice@a:7.3', 'carol@c:1.1'), True)
    >>> second.names
    ('alice@a', 'carol@c')
    """

    __slots__ = ("_known", "_names", "_room")

    def __init__(self, known: Names | Step, room: int, names: Names | None = None) -> None:
        self._known = known
        """One attribute, so that another thread sees the one or the other."""
        self._names = names
        self._room = room
        """So many changes may follow before a list is made."""

    @property
    def is_made(self) -> bool:
        return not isinstance(self._known, Step)

    @property
    def processes(self) -> Names:
        """For ever, sorted."""
        known = self._known
        if isinstance(known, Step):
            known = self._known = _made(self)
        return known

    @property
    def names(self) -> Names:
        """What people call them, sorted."""
        if self._names is None:
            self._names = tuple(sorted(map(name_of, self.processes)))
        return self._names

    def then(self, came: Names, gone: Names) -> Roll:
        """The next one in a chain."""
        room = self._room - len(came) - len(gone)
        roll = Roll(Step(self, came, gone), room)
        return roll if room > 0 else roll_of(roll.processes)

    def without(self, others: Names) -> Roll:
        """Some of these."""
        return Roll(Step(self, (), others), 0) if others else self


def roll_of(processes: Iterable[str], names: Names | None = None) -> Roll:
    """All of them; with their names, if somebody knows better."""
    known = tuple(sorted(processes))
    return Roll(known, max(len(known), ROOM_MIN), names)


def _made(roll: Roll) -> Names:
    """The list, from the last list before it. Whoever was named last is right."""
    known, steps = roll._known, list[Step]()
    while isinstance(known, Step):
        steps.append(known)
        known = known.before._known
    is_in: dict[str, bool] = {}
    for step in reversed(steps):
        is_in.update(dict.fromkeys(step.gone, False))
        is_in.update(dict.fromkeys(step.came, True))
    stayed = [process for process in known if process not in is_in]
    return tuple(sorted([*stayed, *sorted(process for process, here in is_in.items() if here)]))
