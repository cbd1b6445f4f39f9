"""The state machine of membership: one ballot, losses with their reasons, goodbye, following and yielding."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import pytest

from covey.cluster import SiteLink, many_sites, one_site
from covey.config import Settings
from covey.ids import Ballot, Life
from covey.protocol.counters import Counter, Dropped
from covey.protocol.effects import Effect, Entered, Notice
from covey.protocol.evs.deadlines import EvsDeadline
from covey.protocol.evs.frames import Alive, Frame, Goodbye, Heard, Join, NewMemb, Refuse
from covey.protocol.evs.membership.kept_out import WARN_EVERY_US
from covey.protocol.evs.membership.machine import Machine
from covey.protocol.evs.states import Reason, State
from covey.protocol.inputs import Datagram, PeerRefused, Stop
from tests.unit.protocol.builders import A, B, C, alive, codec_of, frames_in, kit, strangers
from tests.unit.protocol.network import SECOND_US, TinyNetwork

SETTINGS = Settings()
SLACK_US = SETTINGS.follow_slack_ms * 1_000


def make_machine(me: Life = A) -> Machine:
    machine = Machine(kit(me), counter=10, seed=1)
    machine.start(0)
    return machine


def entered(effects: Iterable[object]) -> list[tuple[Enum, Enum]]:
    return [(effect.state, effect.reason) for effect in effects if isinstance(effect, Entered)]


def in_view(count: int = 3) -> TinyNetwork:
    network = TinyNetwork(one_site(count))
    network.form_view()
    network.run(SECOND_US)
    return network


def give(network: TinyNetwork, rank: int, sender: Life, frame: Frame) -> list[Effect]:
    return network.give(rank, Datagram(codec_of(sender, network.cluster).encode(frame)))


def above(network: TinyNetwork, proposer: Life) -> Ballot:
    """An attempt above everything promised so far."""
    counters = [daemon.engine.machine.counter for daemon in network.daemons.values()]
    return Ballot(max(counters) + 1, proposer.rank, proposer.boot)


def join_of(sender: Life, *others: Life, number: int = 1, remaining_us: int = 50_000) -> Join:
    """A daemon without a view gathers, and thinks of these others."""
    return Join(alive(number, state=State.GATHER, members=(sender,)), remaining_us, (sender, *others))


# --- starting


def test_a_daemon_starts_by_listening() -> None:
    machine = Machine(kit(), counter=10, seed=1)
    effects = machine.start(0)
    assert entered(effects) == [(State.SEG, Reason.STARTED)]
    assert [type(frame) for frame in frames_in(effects, machine.kit.codec)] == [Alive]
    assert machine.kit.deadlines.at(EvsDeadline.SEGMENT) == SETTINGS.segment_ms * 1_000


def test_before_its_first_view_a_daemon_stands_alone() -> None:
    machine = make_machine()
    assert machine.members == (A,)
    assert not machine.active


def test_the_lowest_around_gathers_and_then_proposes() -> None:
    machine = make_machine()
    assert entered(machine.on_segment_deadline(60_000)) == [(State.GATHER, Reason.ALL_HEARD)]
    assert entered(machine.on_gather_deadline(120_000)) == [(State.STATETRANS, Reason.PROPOSED)]
    assert machine.attempt == (Ballot(11, 0, 1), (A,), ())


def test_a_failed_attempt_makes_the_next_gathering_longer() -> None:
    machine, waits = make_machine(), []
    for round_us in range(0, 7_000_000, 1_000_000):
        machine.on_segment_deadline(round_us)
        waits.append((machine.kit.deadlines.at(EvsDeadline.GATHER) or 0) - round_us)
        machine.on_gather_deadline(round_us)
        machine.lost(Reason.ATTEMPT_STUCK, "", round_us)
    gather_us = SETTINGS.gather_ms * 1_000
    assert waits[0] == gather_us
    for failed, wait in enumerate(waits[1:], start=1):
        base = gather_us * min(2**failed, SETTINGS.gather_growth_max)
        assert base <= wait < base + base // 2


def test_the_same_seed_waits_the_same_time() -> None:
    waits = []
    for _ in range(2):
        machine = make_machine()
        machine.on_segment_deadline(0)
        machine.on_gather_deadline(0)
        machine.lost(Reason.ATTEMPT_STUCK, "", 0)
        machine.on_segment_deadline(0)
        waits.append(machine.kit.deadlines.at(EvsDeadline.GATHER))
    assert waits[0] == waits[1]


# --- clocks


def test_a_clock_far_ahead_keeps_its_daemon_out_and_is_named_once() -> None:
    machine = make_machine()
    far = 2 * SETTINGS.skew_max_ms * 1_000
    notices = [effect for effect in machine.on_alive(B, alive(1, clock=far), 10) if isinstance(effect, Notice)]
    assert [one.text.split(":")[0] for one in notices] == ["b stays outside"]
    assert machine.on_alive(B, alive(2, clock=far), 20) == [Dropped(Counter.ALIVE_CLOCK_FAR_AHEAD)]
    assert B.rank not in machine.hearing.peers
    assert machine.kit.clock.now(20) < far
    assert [text.split(":")[0] for text in strangers(machine, 20)] == ["b"]


def test_forged_lives_with_clocks_far_ahead_do_not_fill_the_log() -> None:
    machine = make_machine()
    far = 2 * SETTINGS.skew_max_ms * 1_000
    told = [machine.on_alive(Life(B.rank, boot), alive(1, clock=far), boot) for boot in range(2, 99)]
    told.append(machine.on_alive(Life(B.rank, 99), alive(1, clock=2 * far), 2 + WARN_EVERY_US))
    named = [any(isinstance(effect, Notice) for effect in effects) for effects in told]
    assert named == [True, *[False] * 96, True]


def test_the_clock_of_an_overtaken_word_is_not_followed() -> None:
    machine = make_machine()
    machine.on_alive(B, alive(2, clock=20), 10)
    machine.on_alive(B, alive(1, clock=5_000_000), 10)
    assert machine.kit.clock.now(10) == 20


def test_a_clock_within_the_bound_is_followed() -> None:
    machine = make_machine()
    machine.on_alive(B, alive(1, clock=5_000_000), 10)
    assert machine.kit.clock.now(10) == 5_000_000
    assert strangers(machine, 10) == []


def test_a_daemon_set_right_is_no_stranger_any_more() -> None:
    machine = make_machine()
    machine.on_alive(B, alive(1, clock=2 * SETTINGS.skew_max_ms * 1_000), 10)
    machine.on_alive(Life(B.rank, B.boot + 1), alive(1, clock=20), 20)
    assert strangers(machine, 20) == []


# --- one ballot


def test_a_proposal_above_the_promise_is_accepted() -> None:
    network = in_view()
    attempt = above(network, B)
    effects = give(network, 0, B, NewMemb(attempt, (A, B)))
    assert entered(effects)[0] == (State.STATETRANS, Reason.PROMISED)
    assert network.daemons[0].engine.machine.promised == attempt


@pytest.mark.parametrize("below", [0, 1])
def test_a_proposal_not_above_the_promise_is_refused_with_our_counter(below: int) -> None:
    network = in_view()
    machine = network.daemons[0].engine.machine
    promised = machine.promised
    attempt = Ballot(promised.counter - below, B.rank, B.boot)
    effects = give(network, 0, B, NewMemb(attempt, (A, B)))
    (refusal,) = frames_in(effects, machine.kit.codec)
    assert isinstance(refusal, Refuse)
    assert refusal.attempt == attempt
    assert refusal.counter >= promised.counter
    assert (machine.promised, machine.state) == (promised, State.OP)


def test_a_repeated_proposal_changes_nothing() -> None:
    network = in_view()
    proposal = NewMemb(above(network, B), (A, B))
    give(network, 0, B, proposal)
    assert give(network, 0, B, proposal) == []


def test_a_repeated_proposal_of_the_view_in_force_changes_nothing() -> None:
    network = in_view()
    machine = network.daemons[1].engine.machine
    assert give(network, 1, A, NewMemb(machine.view, machine.members)) == []
    assert machine.state is State.OP


@pytest.mark.parametrize(
    "members",
    [(B, C), (Life(0, 2), B), (B, A), (A, A, B), (A, B, Life(9, 1)), (Life(-1, 1), A, B), ()],
    ids=["without us", "of another life", "unsorted", "twice", "unknown rank", "no rank", "nobody"],
)
def test_a_proposal_that_no_proposer_would_make_to_us_is_dropped(members: tuple[Life, ...]) -> None:
    network = in_view()
    machine = network.daemons[0].engine.machine
    dropped = sum(machine.kit.count.values())
    assert give(network, 0, B, NewMemb(above(network, B), members)) == []
    assert machine.state is State.OP
    assert sum(machine.kit.count.values()) == dropped + 1


@pytest.mark.parametrize(
    "links",
    [(), (SiteLink(0, 1), SiteLink(0, 2), SiteLink(1, 2)), (SiteLink(0, 1, 9), SiteLink(1, 2)), (SiteLink(0, 1),)],
    ids=["none", "one that is not configured", "at another cost", "not all of them"],
)
def test_a_proposal_whose_links_do_not_join_its_sites_is_dropped(links: tuple[SiteLink, ...]) -> None:
    chain = (SiteLink(0, 1), SiteLink(1, 2))
    network = TinyNetwork(many_sites([1, 1, 1], chain))
    network.form_view()
    network.run(SECOND_US)
    machine = network.daemons[0].engine.machine
    ballot = Ballot(machine.counter + 1, B.rank, B.boot)
    assert give(network, 0, B, NewMemb(ballot, (A, B, C), links)) == []
    assert machine.kit.count[Counter.PROPOSAL_NOT_JOINED] == 1
    assert machine.state is State.OP
    give(network, 0, B, NewMemb(ballot, (A, B, C), chain))
    assert machine.attempt == (ballot, (A, B, C), chain)


def test_a_refused_proposer_learns_the_counter_and_listens_again() -> None:
    network = in_view()
    give(network, 0, B, NewMemb(above(network, B), (A, B)))
    machine = network.daemons[0].engine.machine
    effects = give(network, 0, B, Refuse(machine.promised, machine.counter + 50))
    assert entered(effects) == [(State.SEG, Reason.ATTEMPT_REFUSED)]
    assert machine.counter >= machine.promised.counter + 50


def test_a_refusal_by_who_is_not_in_the_attempt_does_not_end_it() -> None:
    network = in_view()
    give(network, 0, B, NewMemb(above(network, B), (A, B)))
    machine = network.daemons[0].engine.machine
    assert entered(give(network, 0, C, Refuse(machine.promised, machine.counter + 50))) == []
    assert machine.state is State.STATETRANS


def test_a_refusal_of_another_attempt_is_counted_and_changes_nothing() -> None:
    network = in_view()
    machine = network.daemons[0].engine.machine
    counter = machine.counter
    assert give(network, 0, C, Refuse(Ballot(1, 0, 1), counter + 5)) == []
    assert (machine.state, machine.counter) == (State.OP, counter)


def test_a_proposal_is_above_every_counter_heard() -> None:
    machine = make_machine()
    machine.on_alive(B, alive(counter=500), 0)
    machine.on_segment_deadline(60_000)
    machine.on_gather_deadline(120_000)
    assert machine.promised.counter > 500


# --- losses


def test_a_silent_member_ends_the_view() -> None:
    network = in_view()
    network.loses = lambda source, to, header: 2 in (source, to)
    network.run_until(lambda: network.in_one_view((0, 1)))
    reasons = [effect.reason for effect in network.effects[0] if isinstance(effect, Entered)]
    assert {Reason.PEER_SILENT, Reason.TOKEN_LOST} & set(reasons)


def test_a_member_that_does_not_hear_us_ends_the_view() -> None:
    network = TinyNetwork(one_site(2))
    network.form_view()
    network.run(SECOND_US)
    network.loses = lambda source, to, header: source == 0
    network.run_until(lambda: network.in_one_view((0,)) and network.in_one_view((1,)))
    reasons = [effect.reason for effect in network.effects[0] if isinstance(effect, Entered)]
    assert {Reason.PEER_ONE_WAY, Reason.PEER_LEFT} & set(reasons)


def test_a_restarted_member_ends_the_view() -> None:
    network = in_view()
    assert entered(give(network, 0, Life(2, 2), alive())) == []
    number = network.daemons[0].engine.machine.hearing.next_number(network.now)
    proof = [Heard(A.rank, A.boot, number, two_way=False)]
    effects = give(network, 0, Life(2, 2), alive(2, hears=proof))
    assert (State.SEG, Reason.PEER_RESTARTED) in entered(effects)


def test_a_refused_port_ends_the_view_at_once() -> None:
    network = in_view()
    assert (State.SEG, Reason.PEER_REFUSED) in entered(network.give(0, PeerRefused(2)))


def test_a_refused_port_of_a_daemon_we_never_heard_says_nothing() -> None:
    assert make_machine().on_peer_refused(2, 0) == []


def test_an_older_word_of_a_member_does_not_end_the_view() -> None:
    network = in_view()
    older = alive(100_000, state=State.SEG, view=Ballot(1, 1, 1))
    assert entered(give(network, 0, B, older)) == []
    assert network.daemons[0].engine.machine.state is State.OP


def test_a_member_without_a_view_ends_ours() -> None:
    network = in_view()
    machine = network.daemons[0].engine.machine
    left = alive(100_000, state=State.SEG, view=machine.view, members=machine.members)
    assert (State.SEG, Reason.PEER_LEFT) in entered(give(network, 0, B, left))


# --- goodbye


def test_after_a_goodbye_the_lowest_of_the_rest_proposes_at_once() -> None:
    network = in_view()
    machine = network.daemons[1].engine.machine
    effects = give(network, 1, A, Goodbye(machine.view, machine.promised))
    assert entered(effects)[0] == (State.STATETRANS, Reason.PROPOSED)
    proposals = [frame for frame in frames_in(effects, machine.kit.codec) if isinstance(frame, NewMemb)]
    assert [proposal.members for proposal in proposals] == [(B, C)]


def test_after_a_goodbye_the_others_wait_for_the_lowest() -> None:
    network = in_view()
    machine = network.daemons[2].engine.machine
    assert entered(give(network, 2, A, Goodbye(machine.view, machine.promised))) == []
    assert machine.state is State.OP


def test_a_goodbye_of_another_life_is_ignored() -> None:
    network = in_view()
    machine = network.daemons[1].engine.machine
    assert give(network, 1, Life(0, 2), Goodbye(machine.view, machine.promised)) == []
    assert machine.state is State.OP


def test_a_stopped_daemon_is_left_out_of_a_new_view() -> None:
    network = in_view()
    network.give(0, Stop())
    network.run_until(lambda: network.in_one_view((1, 2)))
    assert [network.views(rank)[-1].cause for rank in (1, 2)] == ["goodbye", "goodbye"]


# --- following


def test_a_daemon_follows_a_lower_one_that_gathers() -> None:
    machine = make_machine(B)
    effects = machine.on_join(A, join_of(A, B), 1_000)
    assert (State.REP, Reason.FOLLOW_LOWER) in entered(effects)
    assert machine.kit.deadlines.at(EvsDeadline.FOLLOW) == 51_000 + SLACK_US


def test_a_daemon_does_not_follow_a_higher_one() -> None:
    machine = make_machine(B)
    assert entered(machine.on_join(C, join_of(C, B), 1_000)) == []
    assert machine.state is State.SEG


def test_a_daemon_does_not_follow_who_does_not_think_of_it() -> None:
    machine = make_machine(B)
    assert entered(machine.on_join(A, join_of(A, C), 1_000)) == []


def test_a_daemon_changes_over_to_a_still_lower_one() -> None:
    machine = make_machine(C)
    machine.on_join(B, join_of(B, C), 1_000)
    assert (State.REP, Reason.FOLLOW_LOWER) in entered(machine.on_join(A, join_of(A, C), 2_000))
    assert entered(machine.on_join(B, join_of(B, C, number=2), 3_000)) == []


def test_the_next_word_of_the_representative_extends_the_wait() -> None:
    machine = make_machine(B)
    machine.on_join(A, join_of(A, B), 1_000)
    assert entered(machine.on_join(A, join_of(A, B, number=2), 30_000)) == []
    assert machine.kit.deadlines.at(EvsDeadline.FOLLOW) == 80_000 + SLACK_US


def test_who_is_silent_as_a_representative_is_not_followed_again_in_this_gathering() -> None:
    machine = make_machine(B)
    machine.on_join(A, join_of(A, B), 1_000)
    assert entered(machine.on_follow_deadline(500_000)) == [(State.SEG, Reason.REPRESENTATIVE_SILENT)]
    assert entered(machine.on_join(A, join_of(A, B, number=2), 510_000)) == []


def test_a_join_that_was_overtaken_is_not_followed() -> None:
    machine = make_machine(B)
    machine.on_alive(A, alive(5), 0)
    assert entered(machine.on_join(A, join_of(A, B, number=4), 1_000)) == []
    assert machine.state is State.SEG


def test_a_join_of_an_earlier_life_is_not_followed() -> None:
    machine = make_machine(B)
    machine.on_alive(Life(0, 2), alive(), 0)
    assert entered(machine.on_join(A, join_of(A, B), 1_000)) == []
    assert machine.state is State.SEG


def test_a_representative_that_asks_for_endless_patience_is_given_up() -> None:
    machine = make_machine(B)
    machine.on_join(A, join_of(A, B, remaining_us=2**60), 0)
    waited_us = machine.kit.deadlines.at(EvsDeadline.FOLLOW)
    assert waited_us is not None
    assert waited_us <= 2 * SETTINGS.gather_growth_max * SETTINGS.gather_ms * 1_000 + SLACK_US


# --- merging


def apart(one: tuple[int, ...], other: tuple[int, ...]) -> TinyNetwork:
    """Two sides of a cluster of three, each in its view; they hear each other from now on."""
    network = TinyNetwork(one_site(3))
    network.loses = lambda source, to, header: (source in one) != (to in one)
    network.run_until(lambda: network.in_one_view(one) and network.in_one_view(other))
    network.loses = lambda source, to, header: False
    return network


def test_a_working_view_gathers_when_a_stranger_can_be_merged() -> None:
    network = apart((0, 1), (2,))
    network.run_until(lambda: network.in_one_view((0, 1, 2)))
    assert (State.MERGE, Reason.STRANGERS) in entered(network.effects[0])
    assert [network.views(rank)[-1].cause for rank in (0, 1, 2)] == ["merge"] * 3


def test_the_lowest_of_two_views_proposes_their_union() -> None:
    network = apart((0,), (1, 2))
    network.run_until(lambda: network.in_one_view((0, 1, 2)))
    assert network.views(2)[-1].view.proposer == 0


def test_a_gatherer_that_still_works_yields_to_a_lower_one() -> None:
    network = apart((0,), (1, 2))
    machine = network.daemons[1].engine.machine
    machine._enter(Reason.STRANGERS, "", network.now)
    effects = machine.on_join(A, join_of(A, B, C, number=100_000), network.now)
    assert (State.OP, Reason.YIELDED) in entered(effects)
    assert machine.active


def test_a_gatherer_that_finds_nobody_goes_on_working() -> None:
    # A fourth daemon that nobody ever hears: with everyone here the gatherer would not wait.
    network = TinyNetwork(one_site(4))
    network.loses = lambda source, to, header: 3 in (source, to) or (source == 2) != (to == 2)
    network.run_until(lambda: network.in_one_view((0, 1)) and network.in_one_view((2,)))
    network.loses = lambda source, to, header: 3 in (source, to)
    machine = network.daemons[0].engine.machine
    network.run_until(lambda: machine.state is State.MERGE)
    network.loses = lambda source, to, header: {2, 3} & {source, to} != set()
    network.run(1_000)
    network.give(0, PeerRefused(2))
    network.run_until(lambda: machine.state is State.OP)
    assert entered(network.effects[0])[-1] == (State.OP, Reason.NOTHING_FOUND)
    assert machine.members == (A, B)
