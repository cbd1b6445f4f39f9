"""The view of a group, as an event: who is in it is made when a program looks.

In:        what the daemon said: a whole view, or the difference from the one before.
Out:       a `View`, and the roll that the next difference builds on.
Not here:  rolls (roll.py), other events (events.py).
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

import msgspec

from covey.ids import Ballot
from covey.protocol.notices import NET, Difference
from covey.protocol.wire.words import GroupView

from .roll import Names, Roll, roll_of

FIELDS: Final = (
    "group", "id", "members", "transitional", "cause", "detail", "processes", "transitional_processes", "order", "rank",
)  # fmt: skip


class Order(msgspec.Struct, frozen=True, order=True, gc=False):
    """A place in the agreed order, the same at every receiver. Later places of one view compare greater.

    >>> Order(Ballot(7, 0, 3), 1200, 0, 4) < Order(Ballot(7, 0, 3), 1200, 1, 0)
    True
    """

    view: Ballot
    """The daemons' view in which it was stamped."""
    stamp: int
    site: int
    index: int = 0
    """The place inside its bundle."""


def order_of(view: Ballot, stamp: int, site: int) -> Order | None:
    """Of a change; None if it came with a view of the daemons."""
    return None if (stamp, site) == NET else Order(view, stamp, site)


def view_id(view: Ballot, stamp: int, site: int) -> str:
    """The id of a group's view: the daemons' view, and what in it caused this one.

    >>> view_id(Ballot(7, 0, 3), 1200, 1), view_id(Ballot(8, 0, 3), 0, 0)
    ('7.0.3/1200.1', '8.0.3/net')
    """
    return f"{view}/net" if (stamp, site) == NET else f"{view}/{stamp}.{site}"


class View:
    """Who is in a group from here on in the stream, and why that changed.

    Members are listed when they are looked at: of many views in a row, those that nobody looks at cost little.

    >>> alone = GroupView("room", Ballot(7, 0, 3), 1200, 1, ("ann@a:7.3",), ("ann@a:7.3",), "join", "ann@a:7.3")
    >>> first, roll = view_of(alone)
    >>> match first:
    ...     case View(group=group, members=members):
    ...         print(group, *members)
    room ann@a
    >>> second, roll = next_view("room", roll, Difference(Ballot(7, 0, 3), 1300, 0, ("bob@b:2.9",), (), (), "join", ""))
    >>> second.members, second.transitional, second.detail
    (('ann@a', 'bob@b'), ('ann@a',), 'bob@b:2.9')
    """

    __slots__ = ("_roll", "_with_us", "cause", "detail", "group", "id", "order", "rank")
    __match_args__ = FIELDS

    group: str
    id: str
    """Unique together with the group: equal ids, equal members."""
    cause: str
    """join, leave, disconnect or network."""
    detail: str
    order: Order | None
    """Of the join, leave or disconnect; None if the network caused it."""
    rank: tuple[int, ...]
    """Grows from view to view of one stay in a group."""

    def __init__(
        self,
        group: str,
        id: str,  # noqa: A002 - the name of the field
        members: Names,
        transitional: Names,
        cause: str,
        detail: str,
        processes: Names,
        transitional_processes: Names,
        order: Order | None,
        rank: tuple[int, ...],
    ) -> None:
        roll, with_us = roll_of(processes, members), roll_of(transitional_processes, transitional)
        _fill(self, group, id, roll, with_us, cause, detail, order, rank)

    @property
    def members(self) -> tuple[str, ...]:
        """Names, sorted."""
        return self._roll.names

    @property
    def transitional(self) -> tuple[str, ...]:
        """Those who came with us from our previous view: they have seen what we have seen."""
        return self._with_us.names

    @property
    def processes(self) -> tuple[str, ...]:
        """The members for ever: names with their incarnations, sorted."""
        return self._roll.processes

    @property
    def transitional_processes(self) -> tuple[str, ...]:
        """The transitional set, likewise."""
        return self._with_us.processes

    _roll: Roll
    _with_us: Roll

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View):
            return NotImplemented
        return hash(self) == hash(other) and _values(self) == _values(other)

    def __hash__(self) -> int:
        return hash((self.group, self.id, self.rank))

    def __repr__(self) -> str:
        told = ", ".join(f"{field}={value!r}" for field, value in zip(FIELDS, _values(self), strict=True))
        return f"View({told})"

    def __reduce__(self) -> tuple[type[View], tuple[Any, ...]]:
        return View, _values(self)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a view does not change: {name!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a view does not change: {name!r} cannot be deleted")


def _values(view: View) -> tuple[Any, ...]:
    return tuple(getattr(view, field) for field in FIELDS)


_SETTERS: Final = tuple(
    View.__dict__[slot].__set__ for slot in ("group", "id", "_roll", "_with_us", "cause", "detail", "order", "rank")
)


def _fill(view: View, *values: object) -> None:
    """Once, when it is made."""
    for put, value in zip(_SETTERS, values, strict=True):
        put(view, value)


# --- from what the daemon said


def view_of(word: GroupView) -> tuple[View, Roll]:
    """A view that names everybody."""
    roll, with_us = roll_of(word.members), roll_of(word.transitional)
    return _view(word, word.group, roll, with_us, word.detail), roll


def next_view(group: str, before: Roll, difference: Difference) -> tuple[View, Roll]:
    """A view that says what changed."""
    roll = before.then(difference.came, difference.gone)
    with_us = roll.without(difference.came + difference.apart)
    return _view(
        difference, group, roll, with_us, difference.detail or " ".join(difference.came + difference.gone)
    ), roll


def _view(word: GroupView | Difference, group: str, roll: Roll, with_us: Roll, detail: str) -> View:
    view, stamp, site = word.view, word.stamp, word.site
    made: View = View.__new__(View)
    _fill(
        made,
        group,
        view_id(view, stamp, site),
        roll,
        with_us,
        word.cause,
        detail,
        order_of(view, stamp, site),
        (*view, stamp, site),
    )
    return made
