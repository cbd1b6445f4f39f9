"""Clients and groups run on any ordering engine: here on one that orders within a single daemon."""

from __future__ import annotations

import pytest

from covey.protocol.counters import Family
from covey.protocol.effects import Refused, Stopped
from covey.protocol.inputs import ClientGone, Datagram, Stop, Submit
from covey.protocol.values import Service
from covey.protocol.wire.words import Arrived, Ended, FromDaemon, GroupLeft, JoinGroup, LeaveGroup
from tests.unit.protocol.peers import Seen, kinds
from tests.unit.protocol.solo_house import SoloHouse


class House(SoloHouse):
    def __init__(self) -> None:
        super().__init__()
        self.al, self.bo = self.peer(1, "al"), self.peer(2, "bo")


@pytest.fixture
def house() -> House:
    return House()


def views(words: list[FromDaemon]) -> list[tuple[str, tuple[str, ...]]]:
    seen = Seen()
    for word in words:
        seen.see(word)
    return [(cause, members) for cause, members, _ in seen.views]


def test_members_see_who_comes_and_goes(house: House) -> None:
    house.al.say(JoinGroup("room"))
    house.bo.say(JoinGroup("room"))
    house.bo.say(LeaveGroup("room"))
    al, bo = house.al.process, house.bo.process
    assert views(house.al.read()) == [("join", (al,)), ("join", (al, bo)), ("leave", (al,))]
    assert isinstance(house.bo.read()[-1], GroupLeft)


@pytest.mark.parametrize("service", [Service.UNRELIABLE, Service.FIFO, Service.AGREED, Service.SAFE])
@pytest.mark.parametrize("size", [5, 4_000])
def test_messages_come_to_members(house: House, service: Service, size: int) -> None:
    house.al.say(JoinGroup("room"))
    house.al.read()
    house.bo.send("room", payload=b"x" * size, service=service)
    (arrived,) = house.al.read()
    assert isinstance(arrived, Arrived)
    assert bytes(arrived.body).endswith(b"x" * size)


def test_a_large_message_comes_whole(house: House) -> None:
    house.al.say(JoinGroup("room"))
    house.al.read()
    house.bo.send("room", payload=bytes(500_000))
    assert kinds(house.al.read()) == ["Arrived"]


def test_a_crash_of_a_program_is_ordered(house: House) -> None:
    for peer in (house.al, house.bo):
        peer.say(JoinGroup("room"))
    house.al.read()
    house.bo.give(ClientGone(2))
    assert kinds(house.al.read()) == ["disconnect"]


def test_a_daemon_stops_and_says_so(house: House) -> None:
    house.al.give(Stop())
    assert isinstance(house.al.pull(1 << 20)[-1], Ended)
    assert isinstance(house.effects[0][-1], Stopped)


def test_datagrams_have_outcomes_and_submissions_answers(house: House) -> None:
    house.give(0, Datagram(b"noise"), Submit(1, 1, Service.AGREED, bytes(20_000_000)))
    rejected = Family.FRAME_REJECTED.of("not a covey datagram")
    assert house.daemons[0].snapshot(house.now)["outcomes"] == {rejected.value: 1}
    assert [effect.reason for effect in house.effects[0] if isinstance(effect, Refused)] == ["the message is too large"]
