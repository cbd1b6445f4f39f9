"""What a daemon tells of its clients and groups: true, and bounded however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from covey.ids import Ballot, Life
from covey.protocol.clients import SNAPSHOT_MAX
from covey.protocol.groups.roster import PORTION, Member, Roster
from covey.protocol.values import Place
from covey.protocol.wire.words import JoinGroup
from tests.unit.protocol.network import TinyNetwork
from tests.unit.protocol.peers import Peer, network

ME = Life(0, 7)


def roster(**groups: int) -> Roster:
    """With so many members in each group."""
    made = Roster(ME)
    for group, size in groups.items():
        for number in range(size):
            place = Place(Ballot(1, 0, 1), number, 0)
            made.join(group, Member(ME, number, f"p{number}@a:7.{number}", place))
    return made


def last(portions: Iterator[Any]) -> Any:
    *before, found = portions
    assert found is not None
    assert not any(before)
    return found


def listing(made: Roster, wanted: str, groups_max: int, members_max: int) -> Any:
    return last(made.listing_in_portions(wanted, groups_max, members_max))


def told(house: TinyNetwork) -> Any:
    return house.daemons[0].clients.snapshot(house.now)


def test_groups_are_listed_with_their_members() -> None:
    listed = listing(roster(room=2, hall=1), "", 10, 10)
    assert listed == {
        "groups": [
            {"group": "hall", "size": 1, "members": ["p0@a:7.0"]},
            {"group": "room", "size": 2, "members": ["p0@a:7.0", "p1@a:7.1"]},
        ],
        "group_count": 2,
    }


def test_a_name_or_its_first_letters_choose_groups() -> None:
    made = roster(room=1, rooms=1, hall=1)
    assert listing(made, "room", 10, 10)["group_count"] == 1
    assert listing(made, "room*", 10, 10)["group_count"] == 2
    assert listing(made, "ro", 10, 10)["groups"] == []


def test_a_listing_is_bounded_in_groups_and_in_members() -> None:
    listed: Any = listing(roster(a=3, b=3, c=3), "", 2, 4)
    assert listed["group_count"] == 3
    assert [(one["group"], one["size"], len(one["members"])) for one in listed["groups"]] == [("a", 3, 3), ("b", 3, 1)]


def test_a_long_listing_is_made_in_portions_while_the_roster_changes() -> None:
    sizes = {f"group{number:05}": 1 for number in range(2 * PORTION)}
    made = roster(**sizes, all=2 * PORTION)
    portions = made.listing_in_portions("", 3, 2)
    steps = 0
    while (found := next(portions)) is None:
        steps += 1
        made.leave("group00001", ME, 0)
        made.join(f"new{steps}", Member(ME, 0, "p", Place(Ballot(1, 0, 1), 0, 0)))
    assert steps >= 4, "twice for the groups, twice for the members of the largest"
    assert found == {
        "groups": [
            {"group": "all", "size": 2 * PORTION, "members": ["p0@a:7.0", "p1000@a:7.1000"]},
            {"group": "group00000", "size": 1, "members": []},
            {"group": "group00001", "size": 0, "members": []},
        ],
        "group_count": 2 * PORTION + 1,
    }


def test_of_many_sessions_those_with_most_waiting_are_told() -> None:
    house = network()
    peers = []
    for number in range(SNAPSHOT_MAX + 5):
        peers.append(Peer(house, connection=number))
        peers[-1].hello(f"p{number}")
    peers[-1].say(JoinGroup("room"))
    peers[0].send("room", payload=bytes(5_000))
    house.run(50_000)
    snapshot = told(house)
    assert snapshot["session_count"] == SNAPSHOT_MAX + 5
    assert len(snapshot["sessions"]) == SNAPSHOT_MAX
    first = snapshot["sessions"][0]
    assert (first["name"], first["process"], first["policy"]) == (peers[-1].process.partition("@")[0],
                                                                   peers[-1].process, "disconnect")  # fmt: skip
    assert snapshot["backlog_bytes"] > first["backlog_bytes"] > 5_000
    assert snapshot["groups"] == {"room": 1}
    peers[-1].pull(1 << 30)
    assert first["process"] not in [one["process"] for one in told(house)["sessions"]]
    assert told(house)["backlog_bytes"] == 0


def test_who_has_not_said_who_it_is_is_counted_but_not_listed() -> None:
    house = network()
    Peer(house)
    assert (told(house)["session_count"], told(house)["connection_count"], told(house)["sessions"]) == (0, 1, [])


def test_messages_are_counted_each_not_by_the_bundle() -> None:
    house = network()
    peer = Peer(house)
    peer.hello()
    peer.say(JoinGroup("room"))
    for _ in range(3):
        peer.send("room")
    peer.read()
    assert told(house)["sessions"][0]["delivered"] == 3


def test_a_daemon_tells_the_groups_of_its_whole_view() -> None:
    house = network(2)
    here, there = Peer(house), Peer(house, rank=1)
    here.hello("here")
    there.hello("there")
    for peer in (here, there):
        peer.say(JoinGroup("room"))
        peer.read()
    snapshots = [last(daemon.groups_snapshot("", 10, 10)) for daemon in house.daemons.values()]
    assert snapshots[0]["groups"] == snapshots[1]["groups"]
    assert snapshots[0]["groups"][0]["members"] == sorted([here.process, there.process])
    assert (snapshots[0]["view"], snapshots[0]["daemons"]) == (snapshots[1]["view"], ["a", "b"])
