"""What may wait for all sessions of a daemon together, and for how long for one: the longest backlog goes first."""

from __future__ import annotations

from covey.config import Settings
from covey.protocol.effects import Notice
from covey.protocol.wire.session import Ended, JoinGroup
from tests.unit.protocol.network import SECOND_US, TinyNetwork
from tests.unit.protocol.peers import Peer, changes, kinds, network

BUDGET = 80_000
SETTINGS = Settings(clients_bytes_max=BUDGET, session_receive_bytes=BUDGET, message_bytes_max=3_000)


def member(house: TinyNetwork, connection: int, group: str, lag_max_ms: int = 0) -> Peer:
    peer = Peer(house, connection=connection)
    peer.hello(f"p{connection}", lag_max_ms=lag_max_ms)
    peer.say(JoinGroup(group))
    peer.read()
    return peer


def waiting(house: TinyNetwork) -> int:
    house.engines[0].check(full=True)
    return house.engines[0].clients.waiting_bytes


def test_past_the_budget_the_longest_backlog_is_ended_with_reason_and_lag() -> None:
    house = network(settings=SETTINGS)
    short, long, sender = member(house, 1, "short"), member(house, 2, "long"), member(house, 3, "both")
    for number in range(40):
        sender.send("long" if number % 3 else "short", payload=bytes(2_000))
        house.run(1_000)
        assert waiting(house) <= BUDGET
    assert long.is_closed
    assert not short.is_closed
    [word] = long.read()
    assert isinstance(word, Ended)
    assert "too much waits for all sessions" in word.reason
    assert word.lag_bytes > 30_000
    assert word.lag_us > 0
    assert f"{word.lag_bytes} bytes wait" in word.reason
    assert any(long.process in text for text in long.texts(Notice))
    assert "Arrived" in kinds(short.read())


def test_what_waits_for_many_counts_once() -> None:
    house = network(settings=SETTINGS)
    members = [member(house, number, "room") for number in range(1, 11)]
    for peer in members:
        peer.read()
    sender = member(house, 11, "other")
    for _ in range(20):
        sender.send("room", payload=bytes(2_000))
        house.run(1_000)
    assert 40_000 < waiting(house) < BUDGET
    assert not any(peer.is_closed for peer in members)


def test_freed_room_is_counted_back() -> None:
    house = network(settings=SETTINGS)
    slow, sender = member(house, 1, "room"), member(house, 2, "other")
    for _ in range(3):
        for _ in range(20):
            sender.send("room", payload=bytes(2_000))
            house.run(1_000)
        slow.read()
    assert not slow.is_closed
    sender.read()
    assert waiting(house) == 0


def test_many_who_do_not_read_leave_one_by_one() -> None:
    house = network(settings=SETTINGS)
    silent = [member(house, number, f"g{number}") for number in range(1, 9)]
    sender = member(house, 99, "other")
    for number in range(120):
        sender.send(f"g{number % 8 + 1}", payload=bytes(2_000))
        house.run(500)
        assert waiting(house) <= BUDGET
    assert 1 <= sum(peer.is_closed for peer in silent) < len(silent)
    assert not sender.is_closed


def test_who_lets_something_wait_longer_than_it_said_is_ended() -> None:
    house = network(settings=SETTINGS)
    hurried, patient = member(house, 1, "room", lag_max_ms=800), member(house, 2, "room")
    hurried.read()
    patient.send("room")
    house.run(SECOND_US // 2)
    assert not hurried.is_closed
    house.run(SECOND_US)
    [word] = hurried.read()
    assert isinstance(word, Ended)
    assert "too slowly" in word.reason
    assert word.lag_us >= 800_000
    assert not patient.is_closed
    assert [one.cause for one in changes(patient.read())] == ["disconnect"]


def test_the_configuration_may_bound_the_time_too() -> None:
    house = network(settings=Settings(session_lag_max_ms=500))
    slow = member(house, 1, "room", lag_max_ms=5_000)
    slow.send("room")
    house.run(SECOND_US)
    assert slow.is_closed


def test_who_reads_in_time_goes_on_for_ever() -> None:
    house = network()
    peer = member(house, 1, "room", lag_max_ms=500)
    for _ in range(30):
        peer.send("room")
        peer.read(300)
    assert not peer.is_closed
