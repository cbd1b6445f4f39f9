"""Clients and groups run on any ordering engine: here on one that orders within a single daemon."""

from __future__ import annotations

from typing import TypeVar

import pytest

from covey.config import Settings
from covey.protocol.counters import Counter, Family
from covey.protocol.effects import (
    Deliver,
    Effect,
    Entered,
    Installed,
    Notice,
    Refused,
    Send,
    Signal,
    Stamped,
    Stopped,
)
from covey.protocol.inputs import ClientGone, Datagram, Input, PeerRefused, Stop, Submit
from covey.protocol.portions import PORTIONS, Portions
from covey.protocol.status import DaemonStatus
from covey.protocol.values import Service
from covey.protocol.wire.words import Arrived, Ended, FromDaemon, GroupLeft, JoinGroup, LeaveGroup
from covey.trace.daemon import DaemonRecorder
from covey.trace.record import Row
from tests.unit.protocol.peers import Seen, kinds
from tests.unit.protocol.solo_engine import SLEEP_US, Phase, SoloDeadline, Why, said
from tests.unit.protocol.solo_house import SoloHouse

T = TypeVar("T", bound=Effect)

ME, OTHER = 1, 0


class House(SoloHouse):
    """One daemon of two. Its rank is not its site."""

    def __init__(self, portions: Portions = PORTIONS) -> None:
        super().__init__(daemons=2, portions=portions)
        self.rows: list[Row] = []
        self._recorder = DaemonRecorder("house", self.cluster, self.life, self.rows.append)
        self.al, self.bo = self.peer(1, "al"), self.peer(2, "bo")

    def give(self, rank: int, *inputs: Input) -> list[Effect]:
        effects = super().give(rank, *inputs)
        self._recorder.effects(effects, self.now * 1_000)
        return effects

    def hear(self, *words: str) -> list[Effect]:
        """In one step."""
        return self.give(ME, *(Datagram(said(OTHER, word)) for word in words))

    def told(self, kind: type[T]) -> list[T]:
        return [effect for effect in self.effects[ME] if isinstance(effect, kind)]

    def is_at_rest(self) -> bool:
        return self.daemon.is_at_rest

    def status(self) -> DaemonStatus:
        return self.daemon.snapshot(self.now)


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


# --- what an engine does, and is asked


def test_frames_go_to_the_engine_and_those_that_come_last_after_all_else(house: House) -> None:
    words = [Datagram(said(OTHER, word)) for word in ("late one", "first", "late two", "second")]
    effects = house.give(ME, *words, Submit(1, 1, Service.AGREED, b"x"))
    told = [one.text if isinstance(one, Notice) else type(one).__name__ for one in effects]
    says = [f"a says {word}" for word in ("first", "second", "late one", "late two")]
    assert told == [*says[:2], "Stamped", "Deliver", *says[2:]]
    assert house.status()["outcomes"] == {Counter.ACCEPTED.value: 4}


def test_of_a_frame_that_is_dropped_the_rest_is_done_and_the_reason_counted(house: House) -> None:
    assert house.hear("mumble") == [Notice("what?")]
    assert house.status()["outcomes"] == {Counter.FRAME_MISDIRECTED.value: 1}
    assert house.status()["count"][Counter.FRAME_MISDIRECTED.value] == 1


def test_the_engine_sees_neither_noise_nor_strangers_nor_ourselves(house: House) -> None:
    house.give(ME, Datagram(b"noise"), Datagram(said(9, "hello")), Datagram(said(ME, "hello")))
    rejected = [Family.FRAME_REJECTED.of(why).value for why in ("not a word", "unknown daemon")]
    assert house.status()["outcomes"] == dict.fromkeys(sorted([*rejected, Counter.FRAME_OUR_OWN.value]), 1)
    assert house.told(Notice) == []


def test_a_peer_that_refuses_is_the_matter_of_the_engine(house: House) -> None:
    assert house.give(ME, PeerRefused(OTHER)) == [Notice("a is gone")]


def test_while_the_view_does_not_work_messages_wait_until_a_deadline_of_the_engine(house: House) -> None:
    house.al.say(JoinGroup("room"))
    house.al.read()
    assert house.is_at_rest()
    assert house.hear("sleep") == [Entered(Phase.ASLEEP, Why.TOLD, "")]
    assert house.daemon.kit.deadlines.at(SoloDeadline.WAKE) == house.now + SLEEP_US
    assert not house.is_at_rest()
    house.bo.send("room")
    assert house.al.read() == []
    assert (house.status()["state"], house.status()["working"]) == ("asleep", False)
    before = len(house.effects[ME])
    house.run(SLEEP_US)
    done = [type(effect) for effect in house.effects[ME][before:]]
    assert done[:5] == [Entered, Signal, Installed, Stamped, Deliver], "what waited goes out in the same step"
    assert kinds(house.al.read()) == ["Arrived"]
    assert (house.status()["state"], house.status()["reason"]) == ("awake", Why.RESTED.value)
    assert house.is_at_rest()


def test_a_program_may_leave_while_the_view_does_not_work(house: House) -> None:
    house.bo.say(JoinGroup("room"))
    house.hear("sleep")
    house.bo.give(ClientGone(2))
    assert house.status()["count"][Counter.DISCONNECT_DURING_CHANGE.value] == 1


def test_an_engine_begins_with_its_daemon(house: House) -> None:
    assert [type(effect) for effect in house.effects[ME][:2]] == [Entered, Installed]


def test_states_and_views_of_any_engine_are_traced(house: House) -> None:
    house.hear("sleep")
    house.run(SLEEP_US)
    traced = [(row.event, row.detail) for row in house.rows]
    asleep, awake = f"asleep: {Why.TOLD.value}", f"awake: {Why.RESTED.value}"
    assert traced == [("state", asleep), ("state", awake), ("transitional", None), ("view", Why.RESTED.value)]


def test_source_and_numbers_are_the_engines(house: House) -> None:
    for seq in (1, 2):
        house.give(ME, Submit(1, seq, Service.AGREED, b"x"))
        house.hear("sleep")
        house.run(SLEEP_US)
    bundles = [effect.bundle for effect in house.told(Deliver)]
    assert [(one.site, one.number, one.fifo_number) for one in bundles] == [(ME, 1, 1), (ME, 2, 2)]
    assert len({effect.view for effect in house.told(Deliver)}) == 2


def test_while_clients_are_behind_the_engine_holds_back() -> None:
    house = House(Portions(told=1, behind=0))
    house.al.say(JoinGroup("room"))
    house.al.read()
    sends = b"".join(house.bo.apart(number, "room") for number in range(3))
    house.bo.write(sends)
    assert house.daemon.clients.behind
    delivered = len(house.told(Deliver))
    house.bo.send("room")
    assert (len(house.told(Deliver)), house.status()["waiting_bytes"] > 0) == (delivered, True)
    for _ in range(9):
        house.run(1)
    assert kinds(house.al.read()) == ["Arrived"] * 4
    assert house.status()["waiting_bytes"] == 0


def test_a_report_is_what_status_tells(house: House) -> None:
    house.al.say(JoinGroup("room"))
    house.hear("hello")
    status = house.status()
    assert (status["members"], status["peers"], status["strangers"]) == (["b"], [], ["the world"])
    assert (status["view"], status["reason"]) == ("1.1.1", Why.START.value)
    assert status["link"] == {"kind": "solo", "heard": 1, "joined": 1}


def test_the_engine_checks_its_invariants(house: House) -> None:
    house.daemon.check(full=False)
    assert house.daemon.engine.checks == {True, False}


def test_the_last_words_come_before_the_end(house: House) -> None:
    house.al.give(Stop())
    assert isinstance(house.al.pull(1 << 20)[-1], Ended)
    assert house.effects[ME][-2:] == [Send((OTHER,), said(ME, "goodbye")), Stopped()]


def test_without_a_working_view_a_daemon_waits_before_its_last_words(house: House) -> None:
    house.hear("sleep")
    house.give(ME, Stop())
    house.run(1_000)
    assert house.told(Stopped) == []
    house.run(Settings().goodbye_wait_ms * 1_000)
    assert house.effects[ME][-2:] == [Send((OTHER,), said(ME, "goodbye")), Stopped()]


def test_a_submission_that_cannot_be_taken_is_answered(house: House) -> None:
    house.give(ME, Submit(1, 1, Service.AGREED, bytes(20_000_000)))
    assert [effect.reason for effect in house.told(Refused)] == ["the message is too large"]
