"""Damping: which losses make daemons more patient with a token, and who is held down, for how long."""

from __future__ import annotations

import pytest

from covey.cluster import one_site
from covey.config import Settings
from covey.ids import Life
from covey.protocol.evs.deadlines import EvsDeadline
from covey.protocol.evs.membership.damping import Damping
from covey.protocol.evs.membership.machine import Machine
from covey.protocol.evs.states import Reason
from covey.protocol.values import Service
from tests.unit.protocol.builders import A, B, C, strangers
from tests.unit.protocol.network import SECOND_US, TinyNetwork

SETTINGS = Settings()
HOLD_US = SETTINGS.hold_down_ms * 1_000
LOST_US = SETTINGS.token_lost_ms * 1_000
DECAY_US = SETTINGS.suspicion_decay_ms * 1_000
ALL, REST = (A, B, C), (A, C)


def ended(*ends: tuple[tuple[Life, ...], tuple[Life, ...], Reason]) -> Damping:
    """Views that followed one another, a millisecond apart."""
    damping = Damping(SETTINGS)
    for number, end in enumerate(ends):
        damping.view_ended(*end, now_us=1_000 * number)
        damping.check()
    return damping


# --- patience with the token


@pytest.mark.parametrize(
    "reason", [Reason.TOKEN_LOST, Reason.PEER_SILENT, Reason.PEER_ONE_WAY, Reason.PEER_LEFT, Reason.PROMISED]
)
def test_a_loss_soon_after_another_doubles_the_patience_with_a_token(reason: Reason) -> None:
    """Whatever reason a member has: the least patient one decides."""
    losses = [(ALL, ALL, reason)] * 6
    assert [ended(*losses[:number]).token.at(10_000) for number in (1, 2, 3, 4, 6)] == [1, 2, 4, 8, 8]


def test_a_merge_is_no_loss() -> None:
    merges = [(REST, ALL, Reason.STRANGERS), (REST, ALL, Reason.PROMISED)] * 3
    assert ended(*merges).token.at(10_000) == 1


def test_a_merge_that_loses_somebody_is_a_loss() -> None:
    assert ended(*[(ALL, REST, Reason.STRANGERS)] * 3).token.at(10_000) == 4


@pytest.mark.parametrize("reason", [Reason.PEER_GOODBYE, Reason.PEER_RESTARTED, Reason.PEER_REFUSED])
def test_who_is_gone_for_good_was_not_given_up_too_soon(reason: Reason) -> None:
    assert ended(*[(ALL, REST, reason)] * 5).token.at(10_000) == 1


# --- who is held down


def test_who_parts_first_waits_as_long_as_any_stranger() -> None:
    damping = ended((ALL, REST, Reason.PEER_SILENT))
    assert damping.held_down_us(B, 0) == HOLD_US
    assert damping.held_down_us(B, HOLD_US) == 0


def test_who_parts_again_and_again_waits_twice_as_long_each_time_up_to_a_bound() -> None:
    damping, waits = Damping(SETTINGS), []
    for now in range(9):
        damping.view_ended(ALL, REST, Reason.PEER_LEFT, now)
        waits.append(damping.held_down_us(B, now) // HOLD_US)
        damping.check()
    assert waits == [1, 2, 4, 8, 16, 32, 64, 64, 64]


def test_nobody_else_waits() -> None:
    damping = ended(*[(ALL, REST, Reason.PEER_SILENT)] * 4)
    assert [damping.held_down_us(life, 3_000) for life in (A, C, Life(B.rank, 2))] == [0, 0, 0]


def test_a_new_life_begins_anew() -> None:
    damping, reborn = ended(*[(ALL, REST, Reason.PEER_SILENT)] * 4), Life(B.rank, 2)
    damping.view_ended((A, reborn, C), REST, Reason.PEER_SILENT, 5_000)
    assert damping.held_down_us(reborn, 5_000) == HOLD_US


def test_who_stayed_for_long_is_no_longer_blamed() -> None:
    damping = ended(*[(ALL, REST, Reason.PEER_SILENT)] * 4)
    damping.view_ended(ALL, REST, Reason.PEER_SILENT, 10 * DECAY_US)
    assert damping.held_down_us(B, 10 * DECAY_US) == HOLD_US


# --- what a daemon makes of it


def in_view(count: int = 3) -> TinyNetwork:
    network = TinyNetwork(one_site(count))
    network.form_view()
    network.run(SECOND_US)
    return network


def part(network: TinyNetwork) -> Machine:
    """b is cut off until it is out of a's view, and heard again from then on."""
    others = [rank for rank in network.daemons if rank != 1]
    network.loses = lambda source, to, header: (source == 1) != (to == 1)
    network.run_until(lambda: network.in_one_view(others))
    network.loses = lambda source, to, header: False
    return network.daemons[0].engine.machine


def flapped(network: TinyNetwork, times: int) -> Machine:
    for _ in range(times):
        part(network)
        network.run_until(lambda: network.in_one_view(network.daemons), 20 * SECOND_US)
    return network.daemons[0].engine.machine


def test_who_came_and_went_is_merged_when_its_time_has_come_and_status_says_when() -> None:
    network = in_view()
    flapped(network, 5)
    machine = part(network)
    wait_us = machine.damping.held_down_us(B, network.now)
    assert wait_us > 20 * HOLD_US
    network.run(wait_us - SECOND_US // 2)
    assert network.in_one_view((0, 2))
    assert strangers(machine, network.now) == ["b: it came and went; merged again in 1 s"]
    assert machine.merging.held_down_us(machine.members, network.now) == SECOND_US // 2
    network.run(SECOND_US)
    assert network.in_one_view((0, 1, 2))
    assert strangers(machine, network.now) == []
    assert machine.merging.held_down_us(machine.members, network.now) == 0


def test_a_stranger_that_never_went_need_not_wait_for_one_that_did() -> None:
    network = TinyNetwork(one_site(4))
    network.loses = lambda source, to, header: 3 in (source, to)
    network.run_until(lambda: network.in_one_view((0, 1, 2)))
    machine = network.daemons[0].engine.machine
    for now in range(6):
        machine.damping.view_ended(ALL, REST, Reason.PEER_SILENT, network.now - now)
    network.loses = lambda source, to, header: 3 in (source, to) or (source == 1) != (to == 1)
    network.run_until(lambda: network.in_one_view((0, 2)))
    network.loses = lambda source, to, header: {source, to} == {1, 3}
    network.run_until(lambda: network.in_one_view((0, 2, 3)), 2 * SECOND_US)
    assert machine.merging.held_down_us(machine.members, network.now) > SECOND_US


def test_who_parts_again_is_given_more_time_by_everybody_it_parted_from() -> None:
    network = in_view()
    flapped(network, 3)
    network.run(SECOND_US)
    longer = {rank: daemon.engine.machine.hearing.peers for rank, daemon in network.daemons.items()}
    timeouts_us = [longer[rank][other].timeout_us for rank, other in ((0, 1), (2, 1), (1, 0), (1, 2))]
    assert min(timeouts_us) > SETTINGS.peer_timeout_ms * 1_000


def test_who_parted_once_does_not_come_and_go() -> None:
    partings = [(ALL, REST, Reason.PEER_SILENT)] * 2
    assert [ended(*partings[:number]).comes_and_goes(B, 2_000) for number in (0, 1, 2)] == [False, False, True]


def test_only_who_would_gather_speaks_of_being_held_down() -> None:
    network = in_view()
    flapped(network, 5)
    part(network)
    network.run(SECOND_US)
    assert [strangers(network.daemons[rank].engine.machine, network.now) for rank in (1, 2)] == [[], []]


def test_the_ring_of_the_next_view_waits_longer_for_its_token() -> None:
    network = in_view()
    machine = flapped(network, 4)
    growth = machine.damping.token.at(network.now)
    assert growth > 1
    network.run(SECOND_US)
    network.submit(0, 1, b"go", Service.AGREED)
    assert network.daemons[0].kit.deadlines.at(EvsDeadline.TOKEN_LOST) == network.now + growth * LOST_US
