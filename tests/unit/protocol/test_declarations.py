"""What members of an attempt declare, in parts: any order, asked for again, and never two things in one name."""

from __future__ import annotations

import itertools

import pytest

from covey.ids import Ballot
from covey.protocol.counters import Counter, Dropped
from covey.protocol.evs.codec import encode_stated
from covey.protocol.evs.declarations import ASKED_MAX, Declarations
from covey.protocol.evs.frames import Stated, StateTrans, WantState
from covey.protocol.values import START, Declaration
from tests.unit.protocol.builders import VIEW, A, B, held

ATTEMPT = Ballot(8, 0, 1)
ROOM = 10


def stated(high: int = 7) -> Stated:
    return Stated(Declaration(VIEW, START, 0, high, (A, B), (held(gap_free=3, extras=(5, 9)), held(1))), 4, 2, b"")


def declarations(mine: Stated, parts_max: int = 40) -> Declarations:
    return Declarations(ATTEMPT, mine, ROOM, parts_max)


def test_parts_fit_and_are_numbered() -> None:
    parts = declarations(stated()).mine()
    assert [part.part for part in parts] == list(range(parts[0].parts))
    assert len(parts) > 1
    assert all(len(part.data) <= ROOM for part in parts)
    assert b"".join(part.data for part in parts) == encode_stated(stated())


def test_parts_may_come_in_any_order_and_again() -> None:
    parts, theirs = declarations(stated()).mine(), declarations(stated(1))
    for part in [*reversed(parts[1:]), parts[2]]:
        assert theirs.add(B, part) is None
    assert theirs.add(B, parts[0]) == stated()


def test_what_is_lacking_is_asked_for() -> None:
    parts, theirs = declarations(stated()).mine(), declarations(stated(1))
    assert theirs.ask(B) == WantState(ATTEMPT, ())
    for part in parts[::2]:
        theirs.add(B, part)
    lacking = tuple(range(1, len(parts), 2))
    assert theirs.ask(B) == WantState(ATTEMPT, lacking)
    assert [part.part for part in declarations(stated()).mine((*lacking, 1_000))] == list(lacking)


@pytest.mark.parametrize("wrong", [{"parts": 30}, {"data": b"else"}], ids=["another count", "other bytes"])
def test_two_things_in_one_name_are_a_contradiction(wrong: dict[str, object]) -> None:
    first, theirs = declarations(stated()).mine()[0], declarations(stated(1))
    assert theirs.add(B, first) is None
    other = StateTrans(**({"attempt": ATTEMPT, "part": 0, "parts": first.parts, "data": first.data} | wrong))  # type: ignore[arg-type]
    assert theirs.add(B, other) == Dropped(Counter.DECLARATION_CONTRADICTS)
    assert theirs.add(A, other) is None  # What somebody else says is another matter.


@pytest.mark.parametrize(
    "impossible",
    [
        StateTrans(ATTEMPT, 0, 41, b"x"),
        StateTrans(ATTEMPT, 3, 3, b"x"),
        StateTrans(ATTEMPT, 0, 2, bytes(ROOM + 1)),
        StateTrans(ATTEMPT, 0, 1, b"no declaration"),
    ],
    ids=["too many parts", "beyond the last", "longer than any", "none at all"],
)
def test_what_nobody_can_declare_is_dropped(impossible: StateTrans) -> None:
    theirs = declarations(stated())
    assert theirs.add(B, impossible) == Dropped(Counter.DECLARATION_IMPOSSIBLE)


def test_after_nonsense_somebody_may_say_something_better() -> None:
    theirs = declarations(stated())
    theirs.add(B, StateTrans(ATTEMPT, 0, 1, b"no declaration"))
    results = [theirs.add(B, part) for part in declarations(stated()).mine()]
    assert list(itertools.dropwhile(lambda one: one is None, results)) == [stated()]


def test_however_often_a_part_is_asked_for_it_is_said_once() -> None:
    ours = declarations(stated())
    assert [part.part for part in ours.mine((1, 1, 0, 1))] == [0, 1]
    assert len(ours.mine(tuple(range(4_096)))) <= ASKED_MAX
