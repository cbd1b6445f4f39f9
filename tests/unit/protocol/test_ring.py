"""The token ring of a site: who may send, what is repeated, and how an idle token rests."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from covey.config import Settings
from covey.protocol.counters import Counter, Dropped
from covey.protocol.evs.deadlines import EvsDeadline
from covey.protocol.evs.frames import Data, Frame, Hurry, Parked, Token
from covey.protocol.evs.links.turn import Standing, Turn
from tests.unit.protocol.ringhouse import SMALL, Member, RingHouse

TOKEN_DEADLINES = (EvsDeadline.TOKEN_RESEND, EvsDeadline.TOKEN_LOST, EvsDeadline.HURRY)


def losing(kind: type[Frame], to: int, times: int) -> RingHouse:
    """A ring of three at rest that will lose the next frames of a kind to one member."""
    house = RingHouse(3)
    house.run()
    lost: list[Frame] = []

    def loses(rank: int, frame: Frame) -> bool:
        hit = rank == to and isinstance(frame, kind) and len(lost) < times
        lost.extend([frame] if hit else [])
        return hit

    house.loses = loses
    return house


def at_rest(members: int = 3, settings: Settings = SMALL) -> RingHouse:
    house = RingHouse(members, settings)
    house.run()
    return house


def first_visit(waiting: int, settings: Settings = SMALL) -> tuple[Member, list[Frame]]:
    """The lowest of three uses the first token with so much to send; returns what it sends, in order."""
    member = Member((0, 1, 2), 0, settings)
    member.waiting = waiting
    sends = member.take(member.ring.first_token((0,), 0), b"", 0)
    return member, [member.codec.decode(send.data).frame for send in sends]


# --- sending


@pytest.mark.parametrize("members", [2, 3, 5])
def test_everything_sent_by_anyone_arrives_everywhere(members: int) -> None:
    house = RingHouse(members)
    for rank in range(members):
        house.submit(rank, 10)
    house.run()
    assert [sorted(member.numbers) for member in house.members] == [list(range(1, 10 * members + 1))] * members


def test_a_visit_sends_no_more_than_its_share() -> None:
    _, frames = first_visit(waiting=50)
    assert sum(isinstance(frame, Data) for frame in frames) == SMALL.ring_packets_per_visit


def test_the_last_packets_of_a_visit_follow_the_token() -> None:
    _, frames = first_visit(waiting=50)
    assert [type(frame) for frame in frames] == [Data, Token, Data, Data]


def test_a_token_names_the_packets_that_follow_it() -> None:
    _, frames = first_visit(waiting=50)
    (token,) = [frame for frame in frames if isinstance(frame, Token)]
    assert (token.packet_seq, token.site_seq, token.number, token.flow) == (3, 3, 2, 3)


def test_a_rotation_sends_no_more_than_its_share() -> None:
    house = RingHouse(3)
    for rank in range(3):
        house.submit(rank, 30)
    house.run()
    flows = [token.flow for token in house.frames(Token) if isinstance(token, Token)]
    assert max(flows) == SMALL.ring_packets_per_rotation


def test_no_more_is_sent_while_a_member_has_nothing() -> None:
    house = losing(Data, to=2, times=10_000)
    house.submit(0, 50)
    for _ in range(600):
        house.hop()
    assert max(house.members[0].numbers) == SMALL.ring_packets_unstable


# --- packets


def test_a_lost_packet_is_asked_for_and_sent_again() -> None:
    house = losing(Data, to=2, times=1)
    house.submit(0, 3)
    house.run()
    assert sorted(house.members[2].numbers) == [1, 2, 3]
    assert sum(member.count.get(Counter.PACKET_RETRANSMITTED, 0) for member in house.members) == 1


def test_a_packet_is_handed_up_once() -> None:
    member, _ = first_visit(waiting=0)
    _, (packet, *_) = first_visit(waiting=3)
    assert isinstance(packet, Data)
    assert member.ring.on_data(packet, b"", 0, member.deadlines) == packet.chunks
    assert member.ring.on_data(packet, b"", 0, member.deadlines) == Dropped(Counter.PACKET_DUPLICATE)


def test_a_packet_far_beyond_the_window_is_dropped() -> None:
    member, _ = first_visit(waiting=0)
    far = Data(member.ring.view, 1, 2 * SMALL.ring_packets_unstable + 1, ())
    assert member.ring.on_data(far, b"", 0, member.deadlines) == Dropped(Counter.PACKET_BEYOND_WINDOW)


# --- the token


def test_a_repeated_token_is_ignored() -> None:
    house = at_rest()
    house.submit(0, 1)
    passed = [data for to, data in house.under_way if to == 1][-1:]
    house.run()
    before = [list(member.accepted) for member in house.members]
    house.under_way = [(1, data) for data in passed]
    house.run()
    assert [member.accepted for member in house.members] == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"number": 6},
        {"number": 2**62 - 1},
        {"requests": tuple(range(1, SMALL.retransmit_requests_max + 2))},
        {"flow": 2**62 - 1},
        {"idle": 2**62 - 1},
    ],
)
def test_a_token_that_nobody_can_have_passed_is_dropped(wrong: dict[str, Any]) -> None:
    """It grows by one with each hop around three members, and asks for no more packets than the settings allow."""
    member, _ = first_visit(waiting=0)
    assert member.ring.number == 2
    token = member.ring.first_token((0,), 1)
    assert member.ring.why_not(replace(token, **({"number": 4} | wrong))) == Dropped(Counter.TOKEN_IMPOSSIBLE)
    assert member.ring.why_not(replace(token, number=4)) is None


def test_a_token_that_was_lost_is_repeated_by_its_last_sender() -> None:
    house = losing(Token, to=2, times=3)
    house.submit(0, 2)
    house.run()
    assert house.members[1].count[Counter.TOKEN_RESENT] == 3
    assert sorted(house.members[2].numbers) == [1, 2]


def test_a_packet_of_a_later_turn_shows_that_the_token_has_arrived() -> None:
    member, _ = first_visit(waiting=0)
    view = member.ring.view
    member.ring.on_data(Data(view, 1, 1, ()), b"", 0, member.deadlines)
    assert member.deadlines.is_set(EvsDeadline.TOKEN_RESEND)
    member.ring.on_data(Data(view, 2, 1, ()), b"", 0, member.deadlines)
    assert member.deadlines.is_set(EvsDeadline.TOKEN_RESEND), "a packet that is dropped shows nothing"
    member.ring.on_data(Data(view, 2, 2, ()), b"", 0, member.deadlines)
    assert not member.deadlines.is_set(EvsDeadline.TOKEN_RESEND)
    assert member.deadlines.is_set(EvsDeadline.TOKEN_LOST)


def test_after_lost_views_the_token_is_given_more_time_but_a_parked_one_is_asked_for_as_soon() -> None:
    waits = []
    for losses in (1, 2, 3, 4, 9):
        member = Member((0, 1, 2), 0, SMALL)
        for _ in range(losses):
            member.patience.trouble(0)
        member.take(member.ring.first_token((0,), 0), b"", 0)
        waits.append((member.deadlines.at(EvsDeadline.TOKEN_LOST), member.deadlines.at(EvsDeadline.HURRY)))
    lost_us = SMALL.token_lost_ms * 1_000
    assert waits == [(growth * lost_us, lost_us // 3) for growth in (1, 2, 4, 8, 8)]


def test_whoever_passed_the_token_waits_for_it() -> None:
    member, _ = first_visit(waiting=1)
    assert all(member.deadlines.is_set(deadline) for deadline in TOKEN_DEADLINES)


# --- rest


def test_an_idle_token_is_parked_at_one_member_and_nobody_waits() -> None:
    house = at_rest()
    assert len(house.holders()) == 1
    assert [member.deadlines.next_us() for member in house.members] == [None] * 3


def test_whoever_holds_the_parked_token_sends_at_once() -> None:
    house = at_rest()
    (holder,) = house.holders()
    house.submit(holder, 1)
    assert house.members[holder].numbers == [1]


def test_hurry_makes_a_parked_token_go_on() -> None:
    house = at_rest()
    (holder,) = house.holders()
    house.submit((holder + 1) % 3, 1)
    assert len(house.frames(Hurry)) == 1
    house.run()
    assert [member.numbers for member in house.members] == [[1]] * 3


def test_hurry_is_repeated_until_it_is_heard() -> None:
    house = at_rest()
    (holder,) = house.holders()
    house.loses = lambda to, frame: to == holder and isinstance(frame, Hurry) and len(house.frames(Hurry)) < 4
    house.submit((holder + 1) % 3, 1)
    house.run()
    assert len(house.frames(Hurry)) == 4
    assert [member.numbers for member in house.members] == [[1]] * 3


def test_a_parked_token_answers_the_repetition_of_a_token() -> None:
    house = RingHouse(3)
    last_passed = None
    while not house.holders():
        tokens = [data for _, data in house.under_way if isinstance(house.members[0].codec.decode(data).frame, Token)]
        last_passed = tokens[-1] if tokens else last_passed
        house.hop()
    (holder,) = house.holders()
    house.under_way.clear()
    assert last_passed is not None
    house.under_way.append((holder, last_passed))
    house.hop()
    assert {to for to, data in house.under_way} == {0, 1, 2} - {holder}
    assert all(isinstance(house.members[0].codec.decode(data).frame, Parked) for _, data in house.under_way)


def test_who_missed_that_the_token_was_parked_asks_for_it() -> None:
    house = RingHouse(3)
    house.loses = lambda to, frame: isinstance(frame, Parked) and len(house.frames(Parked)) == 1
    house.run()
    assert len(house.frames(Parked)) > 1
    assert len(house.holders()) == 1


def test_a_word_of_an_older_parking_is_ignored() -> None:
    member, _ = first_visit(waiting=0)
    member.ring.on_parked(Parked(member.ring.view, 1), member.deadlines)
    assert member.deadlines.is_set(EvsDeadline.TOKEN_LOST)
    member.ring.on_parked(Parked(member.ring.view, 2), member.deadlines)
    assert not member.deadlines.is_set(EvsDeadline.TOKEN_LOST)


def test_what_everyone_has_is_known_after_the_ring_came_to_rest() -> None:
    house = at_rest()
    house.submit(1, 7)
    house.run()
    assert [member.ring.line_everywhere.usable for member in house.members] == [7, 7, 7]
    assert [member.ring.received_everywhere[0].usable for member in house.members] == [7, 7, 7]


def test_how_much_of_another_site_everyone_has_is_not_measured_by_the_own_sites_numbers() -> None:
    """The own site has sent nothing: whoever has three of the other one's may still miss what a fourth daemon has."""
    members = [Member((0, 1, 2), rank, SMALL) for rank in range(3)]
    received = [5, 3, 7]
    token = members[0].ring.first_token((0, 1), 0)
    for number in range(9):
        member = members[number % 3]
        mine = Standing(0, {0: 0, 1: received[number % 3]}, 0, 0)
        member.ring.hold(token, 0, member.deadlines)
        member.ring.arrive(mine)
        passed = member.ring.turn(mine, Turn([], busy=True), 0, member.deadlines)
        frames = [member.codec.decode(send.data).frame for send in passed]
        (token,) = [frame for frame in frames if isinstance(frame, Token)]
        assert member.ring.received_everywhere[1].usable <= min(received)
    assert [member.ring.received_everywhere[1].usable for member in members] == [3, 3, 3]
