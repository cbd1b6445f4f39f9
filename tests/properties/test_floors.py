"""Floors: what may be used is never more than what any member had when the token last came by."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from covey.ids import INFINITE
from covey.protocol.evs.frames import Floor
from covey.protocol.evs.links.floors import NOBODY, TwoVisits, visit

GROWTH = st.tuples(st.integers(0, 3), st.integers(0, 4))
"""On each visit: by how much the top grows, and by how much the visitor's own value does, if the top allows."""


@given(st.integers(1, 5), st.lists(GROWTH, max_size=60))
def test_the_usable_value_is_never_above_any_members_own(members: int, visits: list[tuple[int, int]]) -> None:
    floor, top = Floor(0, NOBODY), 0
    own = [0] * members
    usable = [TwoVisits() for _ in range(members)]
    for turn, (more, progress) in enumerate(visits):
        me = turn % members
        top += more
        own[me] = min(top, own[me] + progress)
        floor = visit(floor, own[me], me, top)
        assert usable[me].see(floor.value) <= min(own)


@given(st.integers(1, 5), st.lists(GROWTH, max_size=40))
def test_the_usable_value_reaches_the_top_when_everyone_does(members: int, visits: list[tuple[int, int]]) -> None:
    floor, top = Floor(0, NOBODY), 0
    own = [0] * members
    usable = [TwoVisits() for _ in range(members)]
    for turn, (more, progress) in enumerate(visits):
        me = turn % members
        top += more
        own[me] = min(top, own[me] + progress)
        floor = visit(floor, own[me], me, top)
        usable[me].see(floor.value)
    for turn in range(len(visits), len(visits) + 4 * members):
        floor = visit(floor, top, turn % members, top)
        usable[turn % members].see(floor.value)
    assert [one.usable for one in usable] == [top] * members


@given(st.integers(1, 5), st.lists(st.lists(st.integers(0, 4), min_size=5, max_size=5), max_size=60))
def test_of_a_source_elsewhere_the_usable_value_is_never_above_any_members_own(
    members: int, arrivals: list[list[int]]
) -> None:
    """What comes from another site comes to each at its own time, and nobody knows how much there is."""
    floor = Floor(0, NOBODY)
    own = [0] * members
    usable = [TwoVisits() for _ in range(members)]
    for turn, arrived in enumerate(arrivals):
        own = [have + more for have, more in zip(own, arrived, strict=False)]
        me = turn % members
        floor = visit(floor, own[me], me, INFINITE)
        assert usable[me].see(floor.value) <= min(own)
    for turn in range(len(arrivals), len(arrivals) + 4 * members):
        me = turn % members
        floor = visit(floor, own[me], me, INFINITE)
        usable[me].see(floor.value)
    assert [one.usable for one in usable] == [min(own)] * members
