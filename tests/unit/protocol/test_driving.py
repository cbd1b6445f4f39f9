"""What a daemon asks of its driver: docs/driving.md names these tests."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from covey.cluster import one_site
from covey.config import Settings
from covey.errors import LocalProtocolError
from covey.ids import Life
from covey.protocol.building import build_daemon
from covey.protocol.clients import FIRST_SESSION
from covey.protocol.dialects.known import DIALECTS
from covey.protocol.effects import ClientReady, Entered
from covey.protocol.inputs import ClientBytes, ClientConnected, ClientGone, Submit
from covey.protocol.portions import Portions
from covey.protocol.values import Service
from covey.protocol.wire.session import encode_word
from covey.protocol.wire.words import Arrived, JoinGroup
from tests.unit.protocol.network import START_US, instant, make_daemon
from tests.unit.protocol.peers import Peer, kinds, network


def members(house_portions: Portions, count: int) -> list[Peer]:
    """So many sessions in one group, who have read all."""
    house = network(portions=house_portions)
    peers = [Peer(house, connection=number) for number in range(1, count + 1)]
    for number, peer in enumerate(peers):
        peer.hello(f"p{number}")
        peer.say(JoinGroup("room"))
    for peer in peers:
        peer.read()
    return peers


# --- what a driver hands over


@pytest.mark.parametrize("me", [Life(-1, 1), Life(2, 1), Life(0, -1), Life(0, 1 << 62)])
def test_a_life_that_cannot_be_is_refused(me: Life) -> None:
    with pytest.raises(LocalProtocolError, match="write "):
        build_daemon(one_site(2), me, Settings(), instant(START_US), seed=1)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("session", -1), ("session", FIRST_SESSION), ("session_seq", -1), ("session_seq", 1 << 62), ("flags", -1),
        ("flags", 64), ("priority", -1), ("priority", 3), ("groups", ("caf\udce9",)),
    ],
)  # fmt: skip
def test_a_submission_out_of_range_is_the_drivers_mistake(field: str, value: Any) -> None:
    daemon = make_daemon(one_site(1), 0)
    fitting = Submit(FIRST_SESSION - 1, 1, Service.AGREED, b"x", groups=("é",), flags=63, priority=2)
    with pytest.raises(LocalProtocolError, match=f"{field} .* of a submission: write "):
        daemon.step(instant(START_US), [msgspec.structs.replace(fitting, **{field: value})])
    assert make_daemon(one_site(1), 0).step(instant(START_US), [fitting]) == []


def test_a_dialect_that_a_daemon_was_not_given_is_the_drivers_mistake() -> None:
    given = {"ours": DIALECTS["native"]}
    daemon = build_daemon(one_site(1), Life(0, 1), Settings(), instant(START_US), seed=1, dialects=given)
    daemon.step(instant(START_US), [ClientConnected(1, dialect="ours")])
    with pytest.raises(LocalProtocolError, match="was given no dialect 'native', but ours"):
        daemon.step(instant(START_US), [ClientConnected(2)])


# --- time


def test_before_its_start_a_daemon_waits_for_nothing() -> None:
    daemon = make_daemon(one_site(2), 0)
    assert daemon.next_deadline_us() is None
    effects = daemon.start(instant(START_US))
    assert isinstance(effects[0], Entered)
    assert (daemon.next_deadline_us() or 0) > START_US


def test_time_may_stand_still_between_steps() -> None:
    house = network()
    before = house.daemons[0].next_deadline_us()
    assert house.give(0) == house.give(0) == []
    assert house.daemons[0].next_deadline_us() == before


def test_a_pull_may_bring_a_deadline_forward() -> None:
    """A receiver with the policy `block` has caught up: its senders shall not wait for the next look."""
    settings = Settings(session_receive_bytes=20_000, message_bytes_max=3_000)
    house = network(settings=settings)
    slow, sender = Peer(house), Peer(house, connection=2)
    slow.hello("slow", policy="block")
    sender.hello("sender")
    slow.say(JoinGroup("room"))
    slow.read()
    for _ in range(12):
        sender.send("room", payload=bytes(500))
    daemon = house.daemons[0]
    assert (daemon.next_deadline_us() or 0) > house.now
    slow.pull(1 << 20)
    assert (daemon.next_deadline_us() or 0) < house.now


# --- streams


def test_ready_is_said_once_until_all_was_pulled() -> None:
    reader, sender = members(Portions(), 2)
    reader.network.effects[0].clear()
    for _ in range(3):
        sender.send("room")
    assert ready(reader) == 1
    reader.pull(1)
    sender.send("room")
    assert ready(reader) == 1, "not all was pulled: the driver comes again by itself"
    reader.pull(1 << 20)
    sender.send("room")
    assert ready(reader) == 2


def ready(peer: Peer) -> int:
    said = [one for one in peer.network.effects[peer.rank] if isinstance(one, ClientReady)]
    return sum(one.connection == peer.connection for one in said)


def test_a_stream_that_is_gone_is_told_of_though_the_daemon_closed_it() -> None:
    house = network()
    peer = Peer(house)
    peer.write(b"nonsense")
    peer.read()
    assert peer.is_closed
    assert house.daemons[0].clients.snapshot(house.now)["connection_count"] == 1
    house.give(0, ClientGone(1))
    assert house.daemons[0].clients.snapshot(house.now)["connection_count"] == 0


def test_what_comes_after_the_end_of_a_stream_is_not_heard() -> None:
    house = network()
    peer = Peer(house)
    peer.hello()
    house.give(0, ClientGone(1), ClientBytes(1, encode_word(JoinGroup("room"))))
    house.run(50_000)
    assert house.daemons[0].clients.snapshot(house.now)["memberships"] == 0


def test_a_client_is_connected_before_it_is_heard() -> None:
    house = network()
    house.give(0, ClientBytes(7, b"early"))
    house.give(0, ClientConnected(7))
    assert house.daemons[0].clients.snapshot(house.now)["connection_count"] == 1
    assert house.daemons[0].pull(7, 1 << 20) == []


def test_what_many_are_told_waits_while_many_streams_wait_to_be_written() -> None:
    sender, *others = members(Portions(many=2, unwritten_many=10), 4)
    house = sender.network
    house.daemons[0].clients.streams_unwritten = 11
    sender.send("room", service=Service.AGREED)
    house.give(0)
    assert [peer.pull(1 << 20) for peer in others] == [[], [], []]
    house.daemons[0].clients.streams_unwritten = 10
    house.give(0)
    assert [kinds(peer.pull(1 << 20)) for peer in others] == [[Arrived.__name__]] * 3
