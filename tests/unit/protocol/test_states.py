"""The table of transitions: no state and no reason is forgotten, and the text of it is stable."""

from __future__ import annotations

from covey.protocol.evs.states import LOSSES, STATES, TRANSITIONS, WORKING_STATES, Reason, State, diagram

WORKING = set(WORKING_STATES)
ATTEMPTING = {State.STATETRANS, State.EVS}


def targets_of(source: State) -> set[State]:
    return {target for (state, _), target in TRANSITIONS.items() if state is source}


def reachable_from(start: State) -> set[State]:
    found, fresh = {start}, {start}
    while fresh:
        fresh = {target for source in fresh for target in targets_of(source)} - found
        found |= fresh
    return found


def test_every_state_has_a_way_out() -> None:
    assert {source for source, _ in TRANSITIONS} == set(State)


def test_every_reason_leads_somewhere() -> None:
    assert {reason for _, reason in TRANSITIONS} == set(Reason)


def test_every_state_can_be_reached_from_the_start() -> None:
    assert reachable_from(State.SEG) == set(State)


def test_every_state_can_come_to_work_again() -> None:
    assert all(State.OP in reachable_from(state) for state in State)


def test_a_reason_leads_to_one_state_wherever_it_comes_up() -> None:
    targets: dict[Reason, set[State]] = {}
    for (_, reason), target in TRANSITIONS.items():
        targets.setdefault(reason, set()).add(target)
    assert all(len(states) == 1 for states in targets.values())


def test_a_proposal_can_be_accepted_in_every_state() -> None:
    assert {TRANSITIONS[state, Reason.PROMISED] for state in State} == {State.STATETRANS}


def test_who_gathers_proposes_and_so_does_a_view_that_somebody_leaves() -> None:
    proposing = {source for source, reason in TRANSITIONS if reason is Reason.PROPOSED}
    assert proposing == {State.GATHER, State.MERGE, State.OP}


def test_a_view_stops_working_only_by_a_loss_or_an_attempt() -> None:
    left = {target for (source, _), target in TRANSITIONS.items() if source in WORKING} - WORKING
    assert left == {State.SEG, State.STATETRANS}


def test_numbers_on_the_wire_stay() -> None:
    assert [state.name for state in STATES] == ["OP", "SEG", "REP", "GATHER", "STATETRANS", "EVS", "MERGE"]


def test_a_view_or_attempt_can_be_lost_for_every_kind_of_loss() -> None:
    assert {TRANSITIONS[state, reason] for state in WORKING | ATTEMPTING for reason in LOSSES} == {State.SEG}


def test_only_an_attempt_can_get_stuck_or_be_refused() -> None:
    for reason in (Reason.ATTEMPT_STUCK, Reason.ATTEMPT_REFUSED):
        assert {source for source, why in TRANSITIONS if why is reason} == ATTEMPTING


def test_a_view_is_installed_only_at_the_end_of_an_exchange() -> None:
    assert [source for source, reason in TRANSITIONS if reason is Reason.INSTALLED] == [State.EVS]


def test_the_diagram_has_a_line_for_each_transition() -> None:
    lines = diagram().splitlines()
    assert len(lines) == len(TRANSITIONS)
    assert lines == sorted(lines)
    assert "EVS        -> OP         INSTALLED" in lines


def test_the_diagram_is_the_same_each_time() -> None:
    assert diagram() == diagram()
    assert diagram().splitlines()[0] == "EVS        -> OP         INSTALLED"


def test_every_reason_reads_as_a_sentence() -> None:
    assert all(len(reason.value.split()) >= 3 and reason.value[0].islower() for reason in Reason)
