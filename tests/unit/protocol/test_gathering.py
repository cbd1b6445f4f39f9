"""Whom to form a view with: pairwise two-way, whole views only, and never out of another attempt."""

from __future__ import annotations

from covey.cluster import SiteLink, many_sites, one_site
from covey.config import Settings
from covey.ids import Ballot, Life
from covey.protocol.evs.frames import Heard
from covey.protocol.evs.membership.gathering import free_clique, to_propose
from covey.protocol.evs.membership.hearing import Hearing
from covey.protocol.evs.states import State
from tests.unit.protocol.builders import A, B, C, D, alive

OLD = Ballot(5, 1, 1)
CLUSTER = one_site(4)
CHAIN = many_sites([1, 1, 2], (SiteLink(0, 1), SiteLink(1, 2)))
"""a, b, and c with d: a reaches c and d through b alone."""


class Crowd:
    """What one daemon has heard from everyone around it; unless said otherwise everyone hears everyone."""

    def __init__(self, me: Life = A) -> None:
        self.hearing = Hearing(me, Settings())
        self.number = self.hearing.next_number(0)
        self.deaf: set[tuple[int, int]] = set()

    def hear(
        self,
        *lives: Life,
        state: State = State.SEG,
        leader: int = -1,
        view: Ballot | None = None,
        members: tuple[Life, ...] = (),
    ) -> Crowd:
        """Words of these daemons. With a view they work in it."""
        for life in lives:
            heard = [self._line(life, other) for other in (A, B, C, D) if other != life]
            word = alive(
                state=state,
                leader=leader,
                view=view or Ballot(0, life.rank, life.boot),
                members=members or (life,),
                hears=heard,
            )
            self.hearing.on_alive(life, word, 0)
        return self

    def working(self, *members: Life, view: Ballot = OLD) -> Crowd:
        return self.hear(*members, state=State.OP, view=view, members=members)

    def _line(self, life: Life, other: Life) -> Heard:
        return Heard(other.rank, other.boot, self.number, two_way=(life.rank, other.rank) not in self.deaf)

    def clique(self, *excluded: int) -> list[int]:
        return free_clique(self.hearing, CLUSTER, excluded, 0)

    def proposal(self, *excluded: int, base: tuple[Life, ...] | None = None) -> list[Life]:
        return to_propose(self.hearing, CLUSTER, base or (self.hearing.me,), excluded, 0)


def deaf_pair(one: Life, other: Life) -> Crowd:
    crowd = Crowd()
    crowd.deaf = {(one.rank, other.rank)}
    return crowd


# --- the clique of the free


def test_a_daemon_that_hears_nobody_is_alone() -> None:
    assert Crowd().clique() == [0]
    assert Crowd().proposal() == [A]


def test_everyone_free_and_two_way_is_in_the_clique() -> None:
    assert Crowd(C).hear(A, B, D).clique() == [0, 1, 2, 3]


def test_of_two_that_do_not_hear_each_other_the_lower_is_taken() -> None:
    assert deaf_pair(C, B).hear(B, C, D).clique() == [0, 1, 3]


def test_those_who_work_or_are_in_an_attempt_are_not_free() -> None:
    crowd = Crowd().hear(B, state=State.STATETRANS).hear(C, state=State.EVS).working(D)
    assert crowd.clique() == [0]


def test_a_gatherer_that_still_works_is_not_free() -> None:
    assert Crowd().hear(B, state=State.MERGE, view=OLD, members=(B,)).clique() == [0]
    assert Crowd().hear(B, state=State.GATHER).clique() == [0, 1]


def test_the_excluded_are_not_in_the_clique() -> None:
    assert Crowd(C).hear(A, B).clique(0) == [1, 2]


# --- whom to propose to


def test_only_daemons_of_higher_rank_are_proposed_to() -> None:
    assert Crowd(B).hear(A, C, D).proposal() == [B, C, D]


def test_a_proposal_is_pairwise_two_way() -> None:
    assert deaf_pair(D, C).hear(B, C, D).proposal() == [A, B, C]


def test_who_waits_for_another_representative_is_left_to_it() -> None:
    assert Crowd().hear(B, leader=1).hear(C, leader=1).hear(D, leader=3).proposal() == [A, B, D]


def test_who_waits_for_somebody_that_waits_for_us_is_ours() -> None:
    assert Crowd().hear(B, leader=0).hear(C, leader=1).hear(D, leader=3).proposal() == [A, B, C, D]


def test_nobody_is_taken_out_of_another_attempt() -> None:
    assert Crowd().hear(B, state=State.STATETRANS).hear(C, state=State.EVS).hear(D).proposal() == [A, D]


def test_the_excluded_are_not_proposed_to() -> None:
    assert Crowd().hear(B, C).proposal(1) == [A, C]


def test_a_proposal_names_the_lives_that_were_heard() -> None:
    reborn = Life(B.rank, 7)
    assert Crowd().hear(reborn).proposal() == [A, reborn]


# --- whole views


def test_a_working_view_joins_whole() -> None:
    assert Crowd().working(B, C).proposal() == [A, B, C]


def test_a_working_view_of_which_we_do_not_hear_everyone_does_not_join() -> None:
    assert Crowd().hear(B, state=State.OP, view=OLD, members=(B, C)).proposal() == [A]


def test_a_working_view_with_a_member_that_one_of_us_does_not_hear_does_not_join() -> None:
    assert deaf_pair(C, A).working(B, C).hear(D).proposal() == [A, D]


def test_a_view_that_a_member_has_left_does_not_join() -> None:
    crowd = Crowd().hear(B, state=State.OP, view=OLD, members=(B, C)).hear(C)
    assert crowd.proposal() == [A, C]


def test_a_view_that_a_member_of_which_has_restarted_does_not_join() -> None:
    crowd = Crowd().hear(B, state=State.OP, view=OLD, members=(B, C))
    reborn = Life(C.rank, 2)
    assert crowd.hear(reborn, state=State.OP, view=OLD, members=(B, C)).proposal() == [A]


def test_a_view_with_a_lower_member_than_the_gatherer_is_left_to_that_one() -> None:
    assert Crowd(B).working(A, C).hear(D).proposal() == [B, D]


def test_our_own_view_grows_by_whole_views_and_free_daemons() -> None:
    ours = Ballot(6, 0, 1)
    crowd = Crowd().hear(B, state=State.OP, view=ours, members=(A, B)).working(C, view=OLD).hear(D)
    assert crowd.proposal(base=(A, B)) == [A, B, C, D]


def test_a_stranger_that_one_of_our_view_does_not_hear_is_not_taken() -> None:
    crowd = deaf_pair(B, C).hear(B, state=State.OP, view=Ballot(6, 0, 1), members=(A, B)).hear(C, D)
    assert crowd.proposal(base=(A, B)) == [A, B, D]


# --- several sites


def test_sites_that_only_an_absent_one_joins_stay_apart() -> None:
    crowd = Crowd().hear(C, D)
    assert free_clique(crowd.hearing, CHAIN, (), 0) == [0]
    assert to_propose(crowd.hearing, CHAIN, (A,), (), 0) == [A]


def test_sites_that_a_third_one_joins_meet() -> None:
    crowd = Crowd().hear(B, C, D)
    assert free_clique(crowd.hearing, CHAIN, (), 0) == [0, 1, 2, 3]
    assert to_propose(crowd.hearing, CHAIN, (A,), (), 0) == [A, B, C, D]


def test_a_view_elsewhere_comes_whole_or_not_at_all_with_its_links() -> None:
    crowd = Crowd().working(C, D)
    assert to_propose(crowd.hearing, CHAIN, (A,), (), 0) == [A]
    assert to_propose(crowd.hear(B).hearing, CHAIN, (A,), (), 0) == [A, B, C, D]


def test_who_is_not_joined_keeps_nobody_out() -> None:
    """A hub in site 2: a and c meet, though b, whom no link joins with a but through c, does not hear c."""
    star = many_sites([1, 1, 1], (SiteLink(0, 2), SiteLink(1, 2)))
    crowd = deaf_pair(B, C)
    crowd.deaf |= {(C.rank, B.rank)}
    crowd.hear(B, C)
    assert free_clique(crowd.hearing, star, (), 0) == [0, 2]
    assert to_propose(crowd.hearing, star, (A,), (), 0) == [A, C]
