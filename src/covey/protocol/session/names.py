"""The names of one daemon's sessions.

In:        who was let in, and whose departure is ordered.
Out:       whether a name is free.
Not here:  what a name may look like (covey.names), what a session says (problems.py).

Invariant: N1 a name belongs to one session until its departure is ordered.
"""

from __future__ import annotations

FORMER_MAX = 20_000
"""Names that are remembered to notice that they came back."""


class Names:
    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: dict[int, str] = {}
        """The same the other way round: thousands may leave in one step."""
        self._former: set[str] = set()

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def take(self, name: str, number: int) -> bool:
        """For this session; whether somebody had the name before."""
        self._numbers[name] = number
        self._names[number] = name
        return name in self._former

    def on_departure(self, name: str) -> None:
        """Its session is over, but the name is not free before that is ordered."""
        if len(self._former) < FORMER_MAX:
            self._former.add(name)

    def free(self, number: int) -> None:
        """Of this session, if it has one still."""
        name = self._names.pop(number, None)
        if name is not None:
            del self._numbers[name]

    def check(self) -> None:
        assert self._numbers == {name: number for number, name in self._names.items()}, "N1"
