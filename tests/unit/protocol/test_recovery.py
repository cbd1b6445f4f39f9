"""What co-movers owe one another: unions, frontiers, the hole line, the signal's place, on cases written by hand."""

from __future__ import annotations

from covey.ids import INFINITE, Life
from covey.protocol.evs.ordering.recovery import Holdings, RecoveryPlan, Union, make_plan, missing
from covey.protocol.values import START, Announcement, Declaration, Position, SiteDeclaration
from tests.unit.protocol.builders import VIEW, A, B, C, held


def declares(
    *sites: SiteDeclaration, position: Position = START, aru: int = 0, commit: tuple[Life, ...] = ()
) -> Declaration:
    return Declaration(VIEW, position, aru, 0, commit, sites)


def plan_of(*declarations: Declaration, whole: tuple[int, ...] = ()) -> RecoveryPlan:
    return make_plan(dict(zip((A, B, C), declarations, strict=False)), whole)


# --- the union


def test_the_union_is_everything_that_some_co_mover_holds() -> None:
    plan = plan_of(
        declares(held(gap_free=3)),
        declares(
            held(
                gap_free=1,
                extras=(
                    5,
                    8,
                ),
            )
        ),
    )
    assert plan.unions == {0: Union(3, (5, 8))}


def test_extras_that_join_the_prefix_extend_it() -> None:
    plan = plan_of(
        declares(held(gap_free=2)),
        declares(
            held(
                extras=(
                    3,
                    4,
                    6,
                )
            )
        ),
    )
    assert plan.unions == {0: Union(4, (6,))}


def test_extras_below_the_prefix_are_part_of_it() -> None:
    plan = plan_of(
        declares(held(gap_free=5)),
        declares(
            held(
                extras=(
                    2,
                    4,
                )
            )
        ),
    )
    assert plan.unions == {0: Union(5, ())}


def test_a_union_contains_its_prefix_and_its_extras() -> None:
    assert [number in Union(2, (4,)) for number in range(1, 6)] == [True, True, False, True, False]


# --- what is missing, and who has it


def test_missing_is_what_the_union_has_and_we_do_not() -> None:
    mine = declares(held(gap_free=1, extras=(4,)), held(1, gap_free=2))
    plan = plan_of(mine, declares(held(gap_free=3, extras=(6,)), held(1, gap_free=2)))
    assert missing(plan, mine) == [(0, 2), (0, 3), (0, 6)]


def test_what_we_hold_beyond_a_gap_is_not_missing_when_the_gap_is_filled() -> None:
    mine = declares(
        held(
            extras=(
                2,
                3,
            )
        )
    )
    plan = plan_of(mine, declares(held(gap_free=1)))
    assert missing(plan, mine) == [(0, 1)]


def test_nothing_is_missing_at_the_one_who_holds_it_all() -> None:
    mine = declares(held(gap_free=4, extras=(7,)))
    assert missing(plan_of(mine, declares(held(gap_free=4))), mine) == []


def test_holders_are_those_who_have_not_let_it_go_lowest_first() -> None:
    declarations = {
        C: declares(held(gap_free=3)),
        A: declares(held(low=2, gap_free=3)),
        B: declares(held(extras=(2,))),
    }
    assert Holdings(declarations).holders(0, 2) == [B, C]
    assert Holdings(declarations).holders(0, 3) == [A, C]
    assert Holdings(declarations).holders(1, 1) == []


# --- frontiers and the hole line


def test_the_frontier_is_the_highest_that_a_co_mover_knew() -> None:
    plan = plan_of(declares(held(gap_free=2, frontier=25)), declares(held(gap_free=1, frontier=15)))
    assert plan.frontiers == {0: 25}


def test_an_announcement_counts_once_the_union_has_its_bundles() -> None:
    waiting = (Announcement(2, 27), Announcement(4, 47))
    plan = plan_of(declares(held(gap_free=2, frontier=20)), declares(held(announcements=waiting)))
    assert plan.frontiers == {0: 27}


def test_nothing_more_can_come_from_a_whole_site() -> None:
    plan = plan_of(declares(held(frontier=10), held(1, frontier=30)), whole=(0,))
    assert plan.frontiers == {0: INFINITE, 1: 30}


# --- the signal


def test_the_signal_comes_after_the_last_place_that_any_co_mover_delivered() -> None:
    plan = plan_of(declares(position=Position(40, 1)), declares(position=Position(40, 2)), declares())
    assert plan.position == (40, 2)


def test_the_signal_comes_after_all_that_a_co_mover_knew_to_be_everywhere() -> None:
    plan = plan_of(declares(position=Position(40, 2)), declares(aru=40))
    assert plan.position > (40, 1_000)
    assert plan.position < (41, -1)


# --- commit


def test_commit_is_the_movers_and_all_they_committed_to_before() -> None:
    plan = plan_of(declares(commit=(A,)), declares(commit=(B, C)))
    assert plan.movers == (A, B)
    assert plan.commit == {A, B, C}
