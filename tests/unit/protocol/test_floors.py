"""A minimum over a ring: lowered by whoever has less, raised only by the one who lowered it."""

from __future__ import annotations

from covey.protocol.evs.frames import Floor
from covey.protocol.evs.links.floors import NOBODY, TwoVisits, visit

ME, OTHER = 1, 2


def test_who_has_less_lowers_the_floor() -> None:
    assert visit(Floor(5, OTHER), 3, ME, top=9) == Floor(3, ME)


def test_who_has_more_leaves_it_to_the_one_who_lowered_it() -> None:
    assert visit(Floor(3, OTHER), 7, ME, top=9) == Floor(3, OTHER)


def test_who_lowered_the_floor_raises_it_again() -> None:
    assert visit(Floor(3, ME), 7, ME, top=9) == Floor(7, ME)


def test_who_misses_nothing_any_more_hands_the_floor_to_anybody() -> None:
    assert visit(Floor(3, ME), 9, ME, top=9) == Floor(9, NOBODY)


def test_a_floor_that_nobody_lowered_follows_every_visitor() -> None:
    assert visit(Floor(3, NOBODY), 7, ME, top=9) == Floor(7, ME)


def test_one_visit_alone_is_not_to_be_used() -> None:
    assert TwoVisits().see(7) == 0


def test_the_lower_of_two_visits_is_to_be_used() -> None:
    visits = TwoVisits()
    visits.see(7)
    assert visits.see(5) == 5


def test_what_may_be_used_never_falls() -> None:
    visits = TwoVisits()
    assert [visits.see(value) for value in (7, 7, 4, 3, 8, 9)] == [0, 7, 7, 7, 7, 8]
