"""One daemon change: only groups that it touches cost or hear anything, and views travel the shorter way."""

from __future__ import annotations

import pytest

from covey.ids import Life
from covey.protocol.effects import Deliver, Installed
from covey.protocol.groups.step import NetworkStep
from covey.protocol.notices import Difference, Views, WholeView
from covey.protocol.values import Kind, Service
from tests.unit.protocol.builders import A, B, C
from tests.unit.protocol.grouphouse import House, stay


def touched(house: House, after: list[Deliver], installed: Installed) -> list[str]:
    return sorted(set(NetworkStep(house.groups, after, installed)._touched()))


def crowd(*lives: tuple[Life, int]) -> House:
    """So many sessions of each daemon in `room`."""
    house = House()
    for life, count in lives:
        for session in range(1, count + 1):
            house.join(life, session)
    return house


def view_of(house: House, after: list[Deliver], installed: Installed, session: int = 1) -> WholeView | Difference:
    """The network view that one session is shown."""
    [what] = [
        out.what
        for out in house.outs(after, installed)
        if session in out.sessions and isinstance(out.what, WholeView | Views)
    ]
    if isinstance(what, WholeView):
        return what
    assert isinstance(what, Views)
    [difference] = what.differences
    return difference


# --- which groups are touched


def test_only_groups_of_who_is_lost_or_comes_are_touched() -> None:
    house = House()
    for number, life in enumerate((A, B, C)):
        house.join(life, number, f"of {'abc'[number]}")
        house.join(A, 9, f"of {'abc'[number]}")
    assert touched(house, [], house.installed(A, B)) == ["of c"]
    theirs = {C: tuple(stay(C, 2, group) for group in ("x", "y", "z"))}
    assert touched(house, [], house.installed(A, B, joined=theirs)) == ["of c", "x", "y", "z"]


@pytest.mark.parametrize(
    ("kind", "service", "touches"),
    [
        (Kind.MESSAGES, Service.FIFO, False),
        (Kind.MESSAGES, Service.CAUSAL, True),
        (Kind.MESSAGES, Service.SAFE, True),
        (Kind.JOIN, Service.AGREED, True),
        (Kind.LEAVE, Service.AGREED, True),
        (Kind.BLOCK, Service.AGREED, False),
        (Kind.UNBLOCK, Service.AGREED, False),
    ],
)
def test_what_touches_its_groups_after_the_signal(kind: Kind, service: Service, touches: bool) -> None:
    house = crowd((A, 2))
    after = [house.effect(kind, A, 1, "room", service=service)]
    assert touched(house, after, house.installed(A)) == ["room"] * touches


def test_a_request_to_wait_is_shown_to_nobody() -> None:
    house = crowd((A, 2))
    after = [house.effect(kind, A, 1, "room") for kind in (Kind.BLOCK, Kind.UNBLOCK)]
    assert house.step(after, house.installed(A)) == []


def test_a_group_without_members_here_costs_nothing() -> None:
    house = House()
    house.join(B, 1, "theirs")
    step = NetworkStep(house.groups, [], house.installed(A))
    assert [out for out in step.told() if out is not None] == []
    assert step._before == {}
    assert len(house.groups.roster) == 0


# --- the shorter of difference and list


def test_a_few_of_many_lost_are_told_as_a_difference() -> None:
    house = crowd((A, 5), (B, 5), (C, 1))
    view = view_of(house, [], house.installed(A, B))
    assert isinstance(view, Difference)
    assert (view.came, view.gone, view.apart, view.cause) == ((), ("c1",), (), "network")


def test_where_most_of_a_large_group_is_lost_the_list_is_shorter() -> None:
    house = crowd((A, 2), (B, 9))
    view = view_of(house, [], house.installed(A))
    assert isinstance(view, WholeView)
    assert sorted(view.names()) == sorted(view.transitional) == ["a1", "a2"]


def test_a_large_crowd_that_comes_is_told_as_a_list_only_if_that_is_shorter() -> None:
    house = crowd((A, 2))
    theirs = {C: tuple(stay(C, session) for session in range(1, 10))}
    view = view_of(house, [], house.installed(A, joined=theirs))
    assert isinstance(view, Difference)
    assert (len(view.came), view.gone) == (9, ())
    again = crowd((A, 2), (B, 9))
    view = view_of(again, [], again.installed(A, joined=theirs))
    assert isinstance(view, WholeView)
    assert len(view.members) == 11


# --- who stayed, but did not move with us


def test_who_left_and_came_back_after_the_signal_is_apart() -> None:
    house = crowd((A, 4), (B, 1))
    after = [house.effect(Kind.LEAVE, B, 1, "room"), house.effect(Kind.JOIN, B, 1, "room")]
    view = view_of(house, after, house.installed(A, B))
    assert isinstance(view, Difference)
    assert (view.came, view.gone, view.apart) == ((), (), ("b1",))


def test_who_comes_back_from_another_view_under_the_same_name_is_apart() -> None:
    house = crowd((A, 4), (C, 1))
    view = view_of(house, [], house.installed(A, joined={C: (stay(C, 1),)}))
    assert isinstance(view, Difference)
    assert (view.came, view.gone, view.apart) == ((), (), ("c1",))
    assert house.groups.roster.largest(1) == {"room": 5}


def test_who_rejoined_here_gets_the_whole_list_and_moved_with_nobody() -> None:
    house = crowd((A, 4))
    after = [house.effect(Kind.LEAVE, A, 2, "room"), house.effect(Kind.JOIN, A, 2, "room")]
    view = view_of(house, after, house.installed(A), session=2)
    assert isinstance(view, WholeView)
    assert (sorted(view.names()), view.transitional) == (["a1", "a2", "a3", "a4"], ("a2",))
