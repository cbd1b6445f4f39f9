"""Telling in portions: in order, each view an event of its own, wherever a portion ends."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.ids import Life
from covey.protocol.dialects.native import NATIVE
from covey.protocol.effects import Deliver
from covey.protocol.portions import PORTIONS, Portions
from covey.protocol.telling import NextView, Passed, Telling, Told
from covey.protocol.values import Kind
from covey.protocol.wire.session import Splitter, read_from_daemon
from covey.protocol.wire.words import Arrived, FromDaemon, GroupLeft
from tests.unit.protocol.builders import A, B
from tests.unit.protocol.grouphouse import House
from tests.unit.protocol.peers import Seen, kinds


def telling(house: House, portions: Portions = PORTIONS) -> Telling:
    return Telling(house.groups, portions)


def tell_all(one: Telling) -> list[Told | Passed]:
    told: list[Told | Passed] = []
    while (portion := one.next()) is not None:
        one.check()
        told.append(portion)
    assert not one
    assert one.bytes_waiting == 0
    return told


def words(portions: Iterable[Told | Passed], session: int) -> list[FromDaemon]:
    """What one session is told."""
    found: list[FromDaemon] = []
    for portion in portions:
        if isinstance(portion, Told) and portion.what is not None and session in portion.sessions:
            frames = Splitter(1 << 20).feed(b"".join(portion.what.entry(NATIVE).parts()))
            found += [read_from_daemon(code, body) for code, body in frames]
    return found


def views(found: list[FromDaemon]) -> list[tuple[str, str, str]]:
    seen = Seen()
    for word in found:
        seen.see(word)
    return [(cause, " ".join(members), " ".join(together)) for cause, members, together in seen.views]


def test_joins_that_wait_are_told_together_and_each_is_a_view_of_its_own() -> None:
    house = House()
    house.join(A, 1)
    one = telling(house)
    for session in (2, 3, 4):
        one.put(house.effect(Kind.JOIN, B, session, "room"))
    portions = tell_all(one)
    assert [isinstance(portion, Passed) for portion in portions] == [False, True, True, True]
    first = Seen()
    first.members = ("a1",)
    for word in words(portions, 1):
        first.see(word)
    assert [members for _, members, _ in first.views] == [
        ("a1", "b2"),
        ("a1", "b2", "b3"),
        ("a1", "b2", "b3", "b4"),
    ]


def test_who_joins_within_a_run_gets_all_members_and_then_the_rest_of_it() -> None:
    house = House()
    house.join(A, 1)
    one = telling(house)
    for session in (2, 3, 4):
        one.put(house.effect(Kind.JOIN, A, session, "room"))
    portions = tell_all(one)
    assert views(words(portions, 2)) == [
        ("join", "a1 a2", "a2"),
        ("join", "a1 a2 a3", "a1 a2"),
        ("join", "a1 a2 a3 a4", "a1 a2 a3"),
    ]
    assert views(words(portions, 4)) == [("join", "a1 a2 a3 a4", "a4")]


def test_who_leaves_within_a_run_gets_what_came_before_and_then_its_leave() -> None:
    house = House()
    house.join(A, 1)
    one = telling(house)
    one.put(house.effect(Kind.JOIN, B, 2, "room"))
    one.put(house.effect(Kind.LEAVE, A, 1, "room"))
    one.put(house.effect(Kind.JOIN, B, 3, "room"))
    told = words(tell_all(one), 1)
    assert kinds(told) == ["join", "GroupLeft"]
    assert isinstance(told[-1], GroupLeft)


def test_who_leaves_and_comes_back_within_a_run_begins_anew() -> None:
    house = House()
    house.join(A, 1)
    house.join(A, 2)
    one = telling(house)
    one.put(house.effect(Kind.LEAVE, A, 2, "room"))
    one.put(house.effect(Kind.JOIN, A, 2, "room"))
    one.put(house.effect(Kind.JOIN, B, 3, "room"))
    portions = tell_all(one)
    assert kinds(words(portions, 2)) == ["GroupLeft", "join", "join"]
    assert kinds(words(portions, 1)) == ["leave", "join", "join"]


@pytest.mark.parametrize("between", ["message", "another group", "several groups"])
def test_a_run_ends_where_something_else_comes(between: str) -> None:
    house = House()
    house.join(A, 1)
    house.join(B, 5)
    house.join(B, 5, "hall")
    middle = {
        "message": house.effect(Kind.MESSAGES, B, 9, "room"),
        "another group": house.effect(Kind.JOIN, B, 2, "hall"),
        "several groups": house.effect(Kind.DISCONNECT, B, 5),
    }[between]
    one = telling(house)
    one.put(house.effect(Kind.JOIN, B, 6, "room"))
    one.put(middle)
    one.put(house.effect(Kind.JOIN, B, 7, "room"))
    told = kinds(words(tell_all(one), 1))
    expected = {"message": ["Arrived"], "another group": [], "several groups": ["disconnect"]}[between]
    assert told == ["join", *expected, "join"]


def test_a_run_is_bounded() -> None:
    house = House()
    house.join(A, 1)
    one = telling(house, Portions(run=3))
    for session in range(2, 9):
        one.put(house.effect(Kind.JOIN, B, session, "room"))
    told = words(tell_all(one), 1)
    assert [len(word.differences) for word in told] == [3, 3, 1]  # type: ignore[union-attr]


def test_many_sessions_are_told_a_portion_at_a_time_with_the_same_bytes() -> None:
    house = House()
    for session in range(1, 8):
        house.join(A, session)
    one = telling(house, Portions(at_once=3))
    one.put(house.effect(Kind.MESSAGES, B, 9, "room"))
    told = [portion for portion in tell_all(one) if isinstance(portion, Told)]
    assert [len(portion.sessions) for portion in told] == [3, 3, 1]
    assert len({id(portion.what) for portion in told}) == 1
    assert [session for portion in told for session in portion.sessions] == list(range(1, 8))


def test_nothing_is_begun_before_what_came_earlier_is_done() -> None:
    house = House()
    for session in range(1, 5):
        house.join(A, session)
    one = telling(house, Portions(at_once=1))
    first, second = (house.effect(Kind.MESSAGES, B, 9, "room") for _ in range(2))
    one.put(first)
    portions = [one.next() for _ in range(2)]
    one.put(second)
    portions += tell_all(one)
    for session in range(1, 5):
        found = words([portion for portion in portions if portion is not None], session)
        assert [word.stamp for word in found if isinstance(word, Arrived)] == [first.bundle.stamp, second.bundle.stamp]


def test_what_depends_on_a_change_happens_when_it_is_told() -> None:
    house = House()
    for session in range(1, 5):
        house.join(A, session)
    one = telling(house, Portions(at_once=1))
    gone = house.effect(Kind.DISCONNECT, A, 1)
    one.put(gone)
    portions = tell_all(one)
    assert portions[-1] == Passed(gone)
    assert sum(isinstance(portion, Told) and portion.what is not None for portion in portions) == 3


def test_messages_do_not_wait_until_somebody_has_left_groups_of_which_nobody_is_told() -> None:
    house = House()
    house.join(A, 1)
    for number in range(100):
        house.join(A, 2, f"hall {number}")
    one = telling(house)
    one.put(house.effect(Kind.DISCONNECT, A, 2))
    one.put(house.effect(Kind.MESSAGES, B, 9, "room"))
    while not isinstance(portion := one.next(), Told) or portion.what is None:
        pass
    assert house.groups.roster.groups_of(A, 2)
    assert one
    tell_all(one)
    assert not house.groups.roster.groups_of(A, 2)


@pytest.mark.parametrize("kind", [Kind.JOIN, Kind.LEAVE])
def test_changes_wait_until_somebody_has_left_groups_of_which_nobody_is_told(kind: Kind) -> None:
    house = House()
    for number in range(100):
        house.join(B, 2, f"hall {number}")
    house.join(A, 1)
    one = telling(house)
    one.put(house.effect(Kind.DISCONNECT, B, 2))
    change = house.effect(kind, A, 1, "hall 7" if kind is Kind.JOIN else "room")
    one.put(change)
    told = []
    while (portion := one.next()) != Passed(change):
        told.append(portion)
    assert not house.groups.roster.groups_of(B, 2)
    if kind is Kind.JOIN:
        assert views(words([portion for portion in told if portion is not None], 1)) == [("join", "a1", "a1")]


def test_who_joins_in_a_run_that_a_departure_began_is_not_shown_who_is_gone() -> None:
    """Seed 565 with eight programs: the run began with one who was in this group alone, and nothing was caught up."""
    house = House()
    for session, groups in ((2, ("room", "hall")), (3, ("room",))):
        for group in groups:
            house.join(B, session, group)
    one = telling(house)
    one.put(house.effect(Kind.DISCONNECT, B, 2))
    one.put(house.effect(Kind.DISCONNECT, B, 3))
    one.put(house.effect(Kind.JOIN, A, 1, "room"))
    assert views(words(tell_all(one), 1)) == [("join", "a1", "a1")]


def test_a_daemon_change_passes_its_changes_and_then_its_view() -> None:
    house = House()
    house.join(A, 1)
    join, message = house.effect(Kind.JOIN, A, 2, "room"), house.effect(Kind.MESSAGES, A, 1, "room")
    installed = house.installed(A)
    one = telling(house)
    one.put(NextView([join, message], installed))
    portions = tell_all(one)
    assert [portion.effect for portion in portions if isinstance(portion, Passed)] == [join, installed]
    assert kinds(words(portions, 1)) == ["GroupSignal", "Arrived", "network"]


def test_a_daemon_is_behind_by_number_or_by_bytes() -> None:
    house = House()
    one = telling(house, Portions(behind=2, behind_bytes=1_000))
    for behind in (False, False, True):
        one.put(house.effect(Kind.MESSAGES, A, 1, "room"))
        assert one.is_behind is behind
    tell_all(one)
    assert not one.is_behind
    one.put(house.effect(Kind.MESSAGES, A, 1, "room", why="x" * 1_000))
    assert one.is_behind


CHANGE = st.tuples(
    st.sampled_from((Kind.JOIN, Kind.JOIN, Kind.LEAVE, Kind.DISCONNECT, Kind.MESSAGES)),
    st.sampled_from((A, B)),
    st.integers(1, 4),
    st.sampled_from(("room", "room", "hall")),
)
SMALL = st.builds(Portions, at_once=st.integers(1, 3), run=st.integers(1, 5))


@given(st.lists(CHANGE, max_size=20), SMALL, st.lists(st.integers(0, 4), max_size=20))
def test_everyone_sees_the_same_wherever_portions_end(
    changes: list[tuple[Kind, Life, int, str]], portions: Portions, pauses: list[int]
) -> None:
    """The same history, told change by change, and in any portions while more of it comes."""
    one_by_one, in_portions = House(), House()
    whole = _told_of(telling(one_by_one), _effects(one_by_one, changes), [])
    parts = _told_of(telling(in_portions, portions), _effects(in_portions, changes), pauses)
    for session in range(1, 5):
        for group in ("room", "hall"):
            assert _story(parts, session, group) == _story(whole, session, group)
    in_portions.groups.roster.check()


def _effects(house: House, changes: list[tuple[Kind, Life, int, str]]) -> list[Deliver]:
    return [
        house.effect(kind, life, session, *([] if kind is Kind.DISCONNECT else [group]))
        for kind, life, session, group in changes
    ]


def _told_of(one: Telling, effects: list[Deliver], pauses: list[int]) -> list[Told | Passed]:
    """Without pauses, each is told before the next comes."""
    told: list[Told | Passed] = []
    for at, effect in enumerate(effects):
        one.put(effect)
        if not pauses:
            told += tell_all(one)
        for _ in range(pauses[at % len(pauses)] if pauses else 0):
            told += [portion for portion in [one.next()] if portion is not None]
    return told + tell_all(one)


def _story(portions: list[Told | Passed], session: int, group: str) -> list[object]:
    seen, story = Seen(), list[object]()
    for word in words(portions, session):
        if isinstance(word, Arrived):
            story += [word.stamp] if group in word.groups else []
        elif getattr(word, "group", "") == group:
            known = len(seen.views)
            seen.see(word)
            story += seen.views[known:] or [type(word)]
    return story
