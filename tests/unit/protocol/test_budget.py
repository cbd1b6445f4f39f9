"""What may wait for all sessions of a daemon together, and for how long for one: the longest backlog goes first."""

from __future__ import annotations

import pytest

from covey.config import Settings
from covey.ids import Instant
from covey.protocol.effects import ClientClosed, Effect, Notice
from covey.protocol.inputs import ClientBytes, ClientConnected, ClientGone, Input
from covey.protocol.portions import PORTIONS
from covey.protocol.wire.session import encode_word
from covey.protocol.wire.words import MAGIC, VERSION, Ended, Hello, JoinGroup
from tests.unit.protocol.network import SECOND_US, TinyNetwork
from tests.unit.protocol.peers import Peer, differences, kinds, network

BUDGET = 80_000
SETTINGS = Settings(clients_bytes_max=BUDGET, session_receive_bytes=BUDGET, message_bytes_max=3_000)


def member(house: TinyNetwork, connection: int, group: str, lag_max_ms: int = 0) -> Peer:
    peer = Peer(house, connection=connection)
    peer.hello(f"p{connection}", lag_max_ms=lag_max_ms)
    peer.say(JoinGroup(group))
    peer.read()
    return peer


def waiting(house: TinyNetwork) -> int:
    house.daemons[0].check(full=True)
    return house.daemons[0].clients.waiting_bytes


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


def crowd(house: TinyNetwork, connections: range, name: str = "s") -> None:
    """So many join one group, all at once."""
    words: list[Input] = []
    for connection in connections:
        hello = encode_word(Hello(MAGIC, VERSION, f"{name}{connection}", 1, "disconnect"))
        words += [ClientConnected(connection), ClientBytes(connection, hello + encode_word(JoinGroup("room")))]
    house.give(0, *words)


def read_all(house: TinyNetwork, connections: range) -> int:
    """Each of them reads all that it is told; how much that is."""
    size = 0
    for _ in range(20):
        house.run(1_000)
        size += sum(len(part) for one in connections for part in house.daemons[0].pull(one, 1 << 30))
    return size


def closed_by_step(house: TinyNetwork, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """From now on: how many streams each step closes. Their last words are written at once."""
    daemon, counts = house.daemons[0], list[int]()
    step = daemon.step

    def counted(now: Instant, inputs: list[Input]) -> list[Effect]:
        effects = step(now, inputs)
        closed = [one.connection for one in effects if isinstance(one, ClientClosed)]
        for connection in closed:
            daemon.pull(connection, 1 << 30)
        counts.append(len(closed))
        return effects

    monkeypatch.setattr(daemon, "step", counted)
    return counts


def test_many_who_share_what_waits_are_ended_a_few_in_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """To end one of them frees very little: what waits for it waits for the others too."""
    budget = 400_000
    house = network(settings=Settings(clients_bytes_max=budget, session_receive_bytes=budget, message_bytes_max=9_000))
    house.checks = False
    others, sender = [member(house, number, f"g{number}") for number in range(1, 20)], member(house, 99, "other")
    for first in range(1_000, 1_600, 50):
        crowd(house, range(first, first + 50))
        read_all(house, range(1_000, first + 50))
    for _ in range(5):
        sender.send("room", payload=bytes(9_000))
        house.run(10_000)
    closed, house.checks = closed_by_step(house, monkeypatch), True
    for number in range(1, 20):
        sender.send(f"g{number}", payload=bytes(8_000))
        house.run(1_000)
    assert max(closed) == PORTIONS.ended
    assert 5 * PORTIONS.ended < sum(closed) < 600
    assert not any(peer.is_closed for peer in [*others, sender])
    assert waiting(house) <= budget


def test_a_storm_of_joiners_with_long_names_ends_nobody_who_reads() -> None:
    """Each is told a long list of members: what is kept for that is one list for all."""
    budget = 60_000
    house = network(settings=Settings(clients_bytes_max=budget, session_receive_bytes=budget, message_bytes_max=3_000))
    house.checks = False
    read = 0
    for first in range(1_000, 1_300, 10):
        crowd(house, range(first, first + 10), "n" * 60)
        assert waiting(house) < budget
        read = read_all(house, range(first, first + 10))
        read_all(house, range(1_000, first + 10))
    assert read > 2 * budget
    assert not any(isinstance(one, ClientClosed) for one in house.effects[0])


def test_who_was_ended_cannot_be_ended_again_however_much_waits_for_it() -> None:
    """Else a daemon over its budget would look for somebody to end, and find nobody, in step after step."""
    house = network(settings=SETTINGS)
    slow, sender = member(house, 1, "room"), member(house, 2, "other")
    for _ in range(20):
        sender.send("room", payload=bytes(2_000))
        house.run(1_000)
    assert house.daemons[0].clients._desk.slow.has_large
    slow.say(Hello(MAGIC, VERSION, "twice", 1, "disconnect"))
    assert slow.is_closed
    assert waiting(house) > 40_000
    assert not house.daemons[0].clients._desk.slow.has_large


# --- what clients have said


TALK = Settings(
    clients_bytes_max=60_000, session_receive_bytes=60_000, message_bytes_max=5_000, block_percent=100,
    session_send_bytes=2_000,
)  # fmt: skip


def talking(house: TinyNetwork, lag_max_ms: int = 0) -> tuple[Peer, Peer]:
    """One who sends to a group whose senders wait, and is in another group, and one who sends there."""
    slow = Peer(house)
    slow.hello("slow", policy="block")
    slow.say(JoinGroup("room"))
    talker, other = member(house, 2, "hall", lag_max_ms), member(house, 3, "other")
    for _ in range(4):
        other.send("room", payload=bytes(4_500))
        house.run(1_000)
    assert house.daemons[0].clients.snapshot(house.now)["blocked"]
    return talker, other


def test_what_a_client_has_said_and_was_not_done_counts_and_ends_it() -> None:
    house = network(settings=TALK)
    talker, other = talking(house)
    before = waiting(house)
    talker.write(b"".join(talker.sending("room", payload=bytes(1_000)) for _ in range(25)))
    assert waiting(house) > before + 25_000
    for _ in range(4):
        other.send("hall", payload=bytes(4_500))
        house.run(1_000)
    assert talker.is_closed
    assert waiting(house) < before + 5_000
    house.give(0, ClientGone(2))
    assert [peer.is_closed for peer in (other, Peer(house, connection=1_000))] == [False, False]


def test_nothing_is_kept_of_a_sender_that_was_ended_before_it_had_sent_anything() -> None:
    house = network(settings=TALK)
    _, other = talking(house)
    stranger = Peer(house, connection=4)
    stranger.hello("stranger")
    stranger.write(b"".join(stranger.sending("room", payload=bytes(1_000)) for _ in range(30)))
    for _ in range(6):
        other.send("hall", payload=bytes(4_500))
        house.run(1_000)
    assert stranger.is_closed
    assert not house.daemons[0].clients._blocked._senders


@pytest.mark.parametrize("lag_max_ms", [800, 0], ids=["lag", "budget"])
def test_who_is_gone_while_a_word_waits_and_is_then_ended_is_forgotten(lag_max_ms: int) -> None:
    house = network(settings=TALK)
    talker, other = talking(house, lag_max_ms)
    talker.send("room")
    house.give(0, ClientGone(2))
    assert house.daemons[0].clients.snapshot(house.now)["connection_count"] == 3
    for _ in range(1 if lag_max_ms else 8):
        other.send("hall", payload=bytes(4_500))
        house.run(1_000)
    house.run(2 * SECOND_US if lag_max_ms else 1_000)
    assert talker.is_closed
    waiting(house)
    assert house.daemons[0].clients.snapshot(house.now)["connection_count"] == 2


# --- how long it may wait


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
    assert [one.cause for one in differences(patient.read())] == ["disconnect"]


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
