"""Clients of a daemon, frame by frame: handshake, names, groups, flow control, slow receivers, hostile streams."""

from __future__ import annotations

import pytest

from covey.config import Settings
from covey.protocol.asked import Sending
from covey.protocol.counters import Counter
from covey.protocol.effects import ClientReading, Notice
from covey.protocol.inputs import ClientGone, Stop
from covey.protocol.notices import GroupSignalled
from covey.protocol.values import Service
from covey.protocol.wire.bodies import record_parts, sender_prefix
from covey.protocol.wire.session import encode_word, sending_parts
from covey.protocol.wire.words import (
    MAGIC,
    VERSION,
    Arrived,
    Bye,
    Ended,
    Failed,
    GroupView,
    Hello,
    JoinGroup,
    LeaveGroup,
    Rejected,
    Welcome,
    Word,
)
from tests.unit.protocol.network import SECOND_US, TinyNetwork
from tests.unit.protocol.peers import FRAME_MAX, Peer, differences, kinds, network

# --- handshake and names


def test_a_session_is_called_after_its_name_its_daemon_and_its_life() -> None:
    welcome = Peer(network()).hello("alice")
    assert welcome.process.startswith("alice@a:1.")


def test_a_hello_may_come_in_pieces() -> None:
    peer = Peer(network())
    for byte in encode_word(Hello(MAGIC, VERSION, "alice", 1, "disconnect")):
        peer.write(bytes([byte]))
    assert kinds(peer.read()) == ["Welcome"]


@pytest.mark.parametrize(
    ("hello", "reason"),
    [
        (Hello(MAGIC, VERSION + 1, "alice", 1, "disconnect"), "version"),
        (Hello("http", VERSION, "alice", 1, "disconnect"), "HELLO"),
        (Hello(MAGIC, VERSION, "", 1, "disconnect"), "empty"),
        (Hello(MAGIC, VERSION, "x" * 65, 1, "disconnect"), "64"),
        (Hello(MAGIC, VERSION, "a\nb", 1, "disconnect"), "control"),
        (JoinGroup("room"), "HELLO"),
    ],
)
def test_who_cannot_come_in_is_told_why(hello: Word, reason: str) -> None:
    peer = Peer(network())
    peer.say(hello)
    [word] = peer.read()
    assert isinstance(word, Rejected)
    assert reason in word.reason
    assert peer.is_closed


def test_a_name_is_taken_until_its_departure_is_ordered() -> None:
    house = network(2)
    first = Peer(house)
    first.hello()
    first.say(JoinGroup("room"))
    first.read()
    house.submit(1, 1, b"x", Service.AGREED)
    house.run(50_000)  # The token rests with who sent last: elsewhere.
    first.give(ClientGone(1))
    second = Peer(house, connection=2)
    second.say(Hello(MAGIC, VERSION, "alice", 1, "disconnect"))
    [word] = second.pull(FRAME_MAX)
    assert isinstance(word, Rejected)
    house.run(SECOND_US)
    Peer(house, connection=3).hello()


def test_a_silent_stream_is_closed() -> None:
    house = network()
    peer = Peer(house)
    [word] = peer.read(6_000)
    assert isinstance(word, Rejected)
    assert peer.is_closed


def test_there_is_a_limit_to_sessions() -> None:
    house = network(settings=Settings(sessions_max=2))
    for connection in (1, 2):
        Peer(house, connection=connection).hello(f"p{connection}")
    assert kinds(Peer(house, connection=3).read()) == ["Rejected"]


@pytest.mark.parametrize("last", [Bye(), Hello(MAGIC, VERSION, "twice", 1, "disconnect")])
def test_sessions_that_are_over_take_no_place_while_their_last_words_are_written(last: Word) -> None:
    house = network(settings=Settings(sessions_max=2))
    peers = [Peer(house, connection=connection) for connection in (1, 2)]
    for peer in peers:
        peer.hello(f"p{peer.connection}")
    assert kinds(Peer(house, connection=3).read()) == ["Rejected"]
    peers[0].say(last)
    Peer(house, connection=4).hello("p4")
    assert kinds(Peer(house, connection=5).read()) == ["Rejected"]
    for connection in (1, 3, 5):
        house.give(0, ClientGone(connection))
    assert kinds(Peer(house, connection=6).read()) == ["Rejected"]


# --- groups


def test_join_send_and_leave() -> None:
    peer = Peer(network())
    peer.hello()
    peer.say(JoinGroup("room"))
    peer.send("room", payload=b"hi")
    peer.say(LeaveGroup("room"))
    assert kinds(peer.read()) == ["join", "Arrived", "GroupLeft"]


def test_members_at_different_daemons_see_the_same() -> None:
    house = network(2)
    one, other = Peer(house, 0), Peer(house, 1)
    one.hello("alice")
    other.hello("bob")
    one.say(JoinGroup("room"))
    one.read()
    other.say(JoinGroup("room"))
    [change] = differences(one.read())
    assert (change.came, change.gone, change.apart, change.cause) == ((other.process,), (), (), "join")
    [view] = other.read()
    assert isinstance(view, GroupView)
    assert sorted(view.members) == sorted([one.process, other.process])
    assert view.transitional == (other.process,)
    assert (view.view, view.stamp, view.site) == (change.view, change.stamp, change.site)
    other.send("room", payload=b"to all")
    for peer in (one, other):
        [word] = peer.read()
        assert isinstance(word, Arrived)
        assert bytes(word.body).endswith(b"to all")


def test_a_private_message_reaches_only_its_session() -> None:
    house = network(2)
    one, other, third = Peer(house, 0), Peer(house, 1), Peer(house, 1, connection=2)
    for peer, name in ((one, "alice"), (other, "bob"), (third, "carol")):
        peer.hello(name)
    one.send("bob@b")
    assert kinds(other.read()) == ["Arrived"]
    assert third.read() == []


@pytest.mark.parametrize("word", [JoinGroup(""), JoinGroup("a@b"), LeaveGroup("room")])
def test_what_cannot_be_is_said_and_the_session_goes_on(word: Word) -> None:
    peer = Peer(network())
    peer.hello()
    peer.say(word, JoinGroup("room"))
    words = peer.read()
    assert isinstance(words[0], Failed)
    assert kinds(words[1:]) == ["join"]


def test_a_client_that_crashes_leaves_its_groups_and_no_daemon_notices() -> None:
    house = network(2)
    one, other = Peer(house, 0), Peer(house, 1)
    one.hello("alice")
    other.hello("bob")
    one.say(JoinGroup("room"))
    one.read()
    other.say(JoinGroup("room"))
    other.read()
    view = house.daemons[0].engine.machine.view
    other.give(ClientGone(1))
    words = one.read()
    assert kinds(words)[-1] == "disconnect"
    assert house.daemons[0].engine.machine.view == view


def test_goodbye_follows_what_was_sent_before() -> None:
    house = network()
    one, other = Peer(house), Peer(house, connection=2)
    one.hello("alice")
    other.hello("bob")
    for peer in (one, other):
        peer.say(JoinGroup("room"))
        peer.read()
    one.send("room")
    one.say(Bye())
    assert kinds(other.read()) == ["Arrived", "disconnect"]
    assert kinds(one.read())[-1] == "Ended"
    assert one.is_closed


def test_a_stopping_daemon_tells_its_clients() -> None:
    house = network(2)
    peer = Peer(house)
    peer.hello()
    peer.give(Stop())
    [word] = peer.pull(FRAME_MAX)
    assert isinstance(word, Ended)
    assert "stops" in word.reason


def test_who_was_told_already_that_it_is_over_is_not_rejected_when_the_daemon_stops() -> None:
    house = network(2)
    peer = Peer(house)
    peer.hello()
    peer.write(b"\xff\xff\xff\xff\x01")
    peer.give(Stop())
    assert kinds(peer.read()) == ["Ended"]
    assert Counter.CLIENT_REJECTED not in house.daemons[0].kit.count


# --- hostile streams


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff\x01",
        b"\x01\x00\x00\x00\x63x",
        b"\x05\x00\x00\x00\x02hello",
        encode_word(Welcome(2, "x", 1, 1)),
        encode_word(Hello(MAGIC, VERSION, "again", 1, "disconnect")),
    ],
)
def test_garbage_ends_the_session_with_a_reason_and_harms_nobody(data: bytes) -> None:
    house = network()
    good, bad = Peer(house), Peer(house, connection=2)
    good.hello("alice")
    bad.hello("mallory")
    bad.write(data)
    assert kinds(bad.read()) == ["Ended"]
    assert bad.is_closed
    good.say(JoinGroup("room"))
    assert kinds(good.read()) == ["join"]


def test_nobody_sends_in_the_name_of_another() -> None:
    peer = Peer(network())
    peer.hello()
    peer.process = "bob@a:1.7"
    peer.send("room")
    [word] = peer.read()
    assert isinstance(word, Ended)
    assert "another's name" in word.reason


def test_messages_are_counted_one_by_one() -> None:
    peer = Peer(network())
    peer.hello()
    peer.seq = 5
    peer.send("room")
    assert kinds(peer.read()) == ["Ended"]


def test_before_its_hello_a_stranger_can_make_us_keep_little() -> None:
    peer = Peer(network())
    peer.write(b"\x00\x10\x00\x00\x01" + bytes(3_000))
    peer.write(bytes(3_000))
    assert kinds(peer.read()) in (["Rejected"], ["Ended"])


# --- flow control


SMALL = Settings(
    session_send_bytes=2_000, session_receive_bytes=20_000, message_bytes_max=3_000, ring_packets_per_visit=1
)


def test_a_client_that_sends_faster_than_the_daemons_is_not_read_for_a_while() -> None:
    house = network(2, SMALL)
    peer = Peer(house)
    peer.hello()
    for _ in range(30):
        peer.send("room", payload=bytes(900))
    changes = [effect.read for effect in peer.effects if isinstance(effect, ClientReading)]
    assert changes == [False]
    house.run(SECOND_US)
    reading = [one.read for one in house.effects[0] if isinstance(one, ClientReading)]
    assert reading[-1]
    assert house.daemons[0].clients.snapshot(house.now)["sessions"][0]["reading"]


def test_a_slow_receiver_is_ended_with_its_lag_and_the_others_go_on() -> None:
    house = network(settings=SMALL)
    slow, good = Peer(house), Peer(house, connection=2)
    slow.hello("slow")
    good.hello("good")
    for peer in (slow, good):
        peer.say(JoinGroup("room"))
        peer.read()
    for _ in range(30):
        good.send("room", payload=bytes(1_000))
        good.read(1)
    assert house.daemons[0].clients.snapshot(house.now)["sessions"][0]["backlog_bytes"] < 20_000
    [word] = slow.read()
    assert isinstance(word, Ended)
    assert word.lag_bytes > 20_000
    assert "too slowly" in word.reason
    assert slow.is_closed
    assert any("slow@a" in text for text in slow.texts(Notice))
    assert kinds(good.read()) in (["disconnect"], [])


def test_who_is_too_slow_is_not_told_late_views_of_what_it_never_saw() -> None:
    house = network(settings=SMALL)
    peer = Peer(house)
    peer.hello()
    peer.say(JoinGroup("room"))
    peer.read()
    desk = house.daemons[0].clients._desk
    (session,) = desk.by_number.values()
    desk.put_later(session, session.dialect.entry(GroupSignalled("room")))
    desk._too_slow(session, "it reads too slowly")
    assert kinds(peer.read()) == ["Ended"]
    assert (desk.late_count, desk.late) == (0, {})


def test_who_had_no_time_to_read_is_not_too_slow() -> None:
    house = network(settings=SMALL)
    peer = Peer(house)
    peer.hello()
    peer.say(JoinGroup("room"))
    peer.read()
    body = b"".join([sender_prefix(peer.process), *record_parts(0, bytes(1_000))])
    sends = [Sending(Service.UNRELIABLE, 0, 1, seq, ("room",), body) for seq in range(1, 31)]
    peer.write(b"".join(part for sending in sends for part in sending_parts(sending)))
    assert sum(word.messages for word in peer.pull(FRAME_MAX) if isinstance(word, Arrived)) == 30


def blocking(destination: str = "room") -> tuple[TinyNetwork, Peer]:
    """A receiver with the policy `block` that has not read the sixty messages of a sender elsewhere."""
    house = network(2, SMALL)
    slow, sender = Peer(house, 0), Peer(house, 1)
    slow.hello("slow", policy="block")
    sender.hello("sender")
    slow.say(JoinGroup("room"))
    slow.read()
    for _ in range(60):
        sender.send(destination, payload=bytes(500))
        house.run(2_000)
    return house, slow


@pytest.mark.parametrize("destination", ["room", "slow@a"])
def test_a_receiver_that_blocks_makes_senders_wait_and_loses_nothing(destination: str) -> None:
    house, slow = blocking(destination)
    assert house.daemons[0].kit.count[Counter.RECEIVER_BLOCKS] == 1
    received = 0
    for _ in range(100):
        received += sum(isinstance(word, Arrived) for word in slow.pull(3_000))
        house.run(20_000)
    assert received == 60


def test_a_receiver_that_blocks_for_too_long_is_ended() -> None:
    house, slow = blocking()
    house.run(11 * SECOND_US)
    [word] = slow.pull(1 << 30)
    assert isinstance(word, Ended)
    assert house.daemons[1].clients.snapshot(house.now)["blocked"] == []


def test_who_says_goodbye_during_a_change_makes_nobody_wait_in_the_next_view() -> None:
    house = network(3, SMALL)
    slow, sender = Peer(house, 0), Peer(house, 1)
    slow.hello("slow", policy="block")
    sender.hello("sender")
    slow.say(JoinGroup("room"))
    slow.read()
    for _ in range(60):
        sender.send("room", payload=bytes(500))
        house.run(2_000)
    assert house.daemons[1].clients.snapshot(house.now)["blocked"] == ["room", "slow@a"]
    house.loses = lambda source, to, _: 2 in (source, to)
    while house.daemons[0].engine.machine.active:
        house.run(1_000)
    slow.say(Bye())
    house.run_until(lambda: house.in_one_view([0, 1]))
    house.run(SECOND_US)
    assert [house.daemons[rank].clients.snapshot(house.now)["blocked"] for rank in (0, 1)] == [[], []]
