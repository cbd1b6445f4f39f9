"""What clients ask for, done in turns: nobody is kept from its own by a busy one, and nothing that was read is lost."""

from __future__ import annotations

import pytest

from covey.config import Settings
from covey.protocol.counters import Counter
from covey.protocol.deadlines import Deadline
from covey.protocol.effects import ClientReading
from covey.protocol.inputs import ClientBytes, ClientGone
from covey.protocol.portions import Portions
from covey.protocol.transport.queue import SubmitQueue
from covey.protocol.values import Service
from covey.protocol.wire.session import encode_word
from covey.protocol.wire.words import Arrived, Bye, JoinGroup, LeaveGroup
from tests.unit.protocol.network import SECOND_US, TinyNetwork
from tests.unit.protocol.peers import Peer, kinds, network

BUSY = Portions(words=10, turn=2)


def two(house: TinyNetwork) -> tuple[Peer, Peer]:
    peers = Peer(house), Peer(house, connection=2)
    for peer, name in zip(peers, ("busy", "quiet"), strict=True):
        peer.hello(name)
    return peers


def arrived(peer: Peer) -> list[bytes]:
    return [bytes(word.body)[-1:] for word in peer.read() if isinstance(word, Arrived)]


# --- turns


def test_a_step_does_no_more_than_its_portion_and_the_next_comes_at_once() -> None:
    house = network(portions=BUSY)
    busy, _ = two(house)
    busy.write(b"".join(encode_word(JoinGroup(f"g{number}")) for number in range(50)))
    daemon = house.daemons[0]
    assert len(daemon.clients._declared) <= BUSY.words
    assert daemon.kit.deadlines.at(Deadline.CLIENT_WORK) == house.now
    house.run(50_000)
    assert len(daemon.clients._declared) == 50
    assert not daemon.kit.deadlines.is_set(Deadline.CLIENT_WORK)


def test_a_busy_session_does_not_keep_others_from_their_turn() -> None:
    house = network(portions=BUSY)
    busy, quiet = two(house)
    flood = b"".join(encode_word(word) for number in range(300) for word in (JoinGroup("g"), LeaveGroup("g")))
    house.give(0, ClientBytes(1, flood), ClientBytes(2, encode_word(JoinGroup("room"))))
    assert kinds(quiet.pull(1 << 20)) == ["join"]
    assert house.daemons[0].kit.deadlines.is_set(Deadline.CLIENT_WORK)
    busy.read()


def test_who_comes_later_has_its_turn_while_others_have_more_to_say() -> None:
    house = network(portions=BUSY)
    busy, quiet = two(house)
    busy.write(b"".join(busy.apart(number, "room") for number in range(400)))
    for _ in range(3):
        quiet.say(JoinGroup("room"))
        steps = len(house.steps[0])
        assert kinds(quiet.pull(1 << 20))[:1] == ["join"]
        quiet.say(LeaveGroup("room"))
        assert "GroupLeft" in kinds(quiet.pull(1 << 20))
        assert len(house.steps[0]) <= steps + 2


def test_who_has_more_to_say_is_not_read_until_that_is_done() -> None:
    house = network(portions=BUSY)
    busy, _ = two(house)
    busy.write(b"".join(busy.apart(number, "room") for number in range(40)))
    house.run(10_000)
    reading = [one.read for one in house.effects[0] if isinstance(one, ClientReading)]
    assert reading == [False, True]


def test_what_one_says_keeps_its_order_across_turns() -> None:
    house = network(portions=Portions(words=3, turn=1))
    busy, quiet = two(house)
    quiet.say(JoinGroup("room"))
    quiet.read()
    letters = [bytes([65 + number]) for number in range(26)]
    busy.write(b"".join(busy.apart(number, "room", payload=letter) for number, letter in enumerate(letters)))
    assert arrived(quiet) == letters


def test_somebody_who_waits_and_is_forgotten_breaks_a_rule() -> None:
    house = network(portions=BUSY)
    house.checks = False
    busy, _ = two(house)
    busy.write(b"".join(busy.apart(number, "room") for number in range(40)))
    house.daemons[0].check(full=True)
    house.daemons[0].clients._desk.unheard.clear()
    with pytest.raises(AssertionError, match="K1"):
        house.daemons[0].check(full=True)


# --- the last words


@pytest.mark.parametrize("portions", [Portions(), BUSY, Portions(words=1, turn=1)])
def test_who_sends_and_closes_at_once_loses_nothing_that_was_read(portions: Portions) -> None:
    house = network(portions=portions)
    busy, quiet = two(house)
    quiet.say(JoinGroup("room"))
    quiet.read()
    letters = [bytes([65 + number]) for number in range(26)]
    data = b"".join(busy.apart(number, "room", payload=letter) for number, letter in enumerate(letters))
    house.give(0, ClientBytes(1, data), ClientGone(1))
    assert arrived(quiet) == letters
    house.run(SECOND_US)
    assert house.daemons[0].clients.snapshot(house.now)["connection_count"] == 1
    Peer(house, connection=3).hello("busy")


def test_nothing_is_lost_either_while_there_is_no_room() -> None:
    house = network(3, Settings(session_send_bytes=500, submit_queue_bytes=1_000))
    busy, quiet = two(house)
    quiet.say(JoinGroup("room"))
    quiet.read()
    letters = [bytes([65 + number]) for number in range(26)]
    data = b"".join(busy.apart(number, "room", payload=bytes(150) + letter) for number, letter in enumerate(letters))
    house.give(0, ClientBytes(1, data), ClientGone(1))
    assert house.daemons[0].clients.snapshot(house.now)["connection_count"] == 2
    assert arrived(quiet) == letters
    house.run(SECOND_US)
    assert house.daemons[0].clients.snapshot(house.now)["connection_count"] == 1


def test_after_goodbye_nothing_more_is_done() -> None:
    house = network(portions=BUSY)
    busy, quiet = two(house)
    quiet.say(JoinGroup("room"))
    quiet.read()
    first, later = busy.sending("room", payload=b"a"), busy.sending("room", payload=b"b")
    busy.write(first + encode_word(Bye()) + later)
    assert arrived(quiet) == [b"a"]


# --- room


def large_beside_small(house: TinyNetwork) -> int:
    """How many small messages are delivered before a large one that was asked for at once."""
    busy, quiet = two(house)
    small = [busy, *(Peer(house, connection=number) for number in range(3, 7))]
    for number, peer in enumerate(small[1:]):
        peer.hello(f"small{number}")
    for peer in small:
        peer.write(b"".join(peer.apart(number, "room", payload=bytes(400)) for number in range(40)))
    quiet.send("room", payload=bytes(9_000))
    sizes: list[int] = []
    for _ in range(50):
        house.run(1_000)
        for peer in small:
            peer.write(b"".join(peer.apart(number, "room", payload=bytes(400)) for number in range(10)))
        sizes = [len(b"".join(one.payloads)) for one in house.delivered(0)]
        if max(sizes, default=0) > 9_000:
            break
    return sum(size < 9_000 for size in sizes)


TIGHT = Settings(submit_queue_bytes=10_000, session_send_bytes=9_999, ring_packets_per_visit=2)


def test_a_large_message_is_not_kept_waiting_by_small_ones() -> None:
    assert large_beside_small(network(2, TIGHT)) < 100


def test_a_queue_where_small_ones_pass_would_keep_it_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug, to see that the load above can tell."""

    def admits(self: SubmitQueue, session: int, needed: int) -> bool:
        if self._fits(needed):
            self._wait_list.pop(session, None)
            return True
        self._wait_list[session] = needed
        return False

    def to_try(self: SubmitQueue) -> list[int]:
        return [session for session, needed in self._wait_list.items() if self._fits(needed)]

    monkeypatch.setattr(SubmitQueue, "admits", admits)
    monkeypatch.setattr(SubmitQueue, "to_try", to_try)
    assert large_beside_small(network(2, TIGHT)) > 500


def test_a_join_refused_while_it_waited_for_room_waits_no_more() -> None:
    """Two join at once where one more stay is allowed, and neither finds room in the queue at first."""
    narrow = Settings(submit_queue_bytes=100, memberships_max=1)
    house = network(2, narrow)
    peers = [Peer(house, rank=1, connection=number) for number in (1, 2, 3)]
    for number, peer in enumerate(peers):
        peer.hello(f"p{number}")
    for peer in peers:
        peer.say(JoinGroup("room"), JoinGroup("hall"))
    house.run(SECOND_US)
    house.daemons[1].check(full=True)
    assert not house.daemons[1].clients._desk.queue.has_news


def test_what_is_ordered_because_of_a_delivery_does_not_wait_for_the_next_event() -> None:
    """A receiver falls behind by what this very step has sent: the step that asks its senders to wait comes at once."""
    small = Settings(session_receive_bytes=24_000, message_bytes_max=7_000)
    house = network(settings=small, portions=Portions(turn=1))
    slow, sender = Peer(house), Peer(house, connection=2)
    slow.hello("slow", policy="block")
    sender.hello("sender")
    slow.say(JoinGroup("room"))
    slow.read()
    sender.write(sender.sending("room") + sender.sending("room", payload=bytes(6_500)))
    daemon = house.daemons[0]
    assert daemon.kit.count[Counter.RECEIVER_BLOCKS] == 1
    assert daemon.next_deadline_us() == house.now
    house.give(0)
    assert daemon.clients.snapshot(house.now)["blocked"] == ["room", "slow@a"]


@pytest.mark.parametrize("messages", [1, 2, 3, 4])
def test_who_sends_what_is_no_frame_is_ended_wherever_its_turn_ends(messages: int) -> None:
    house = network(1, portions=Portions(words=10, turn=2))
    peer = Peer(house)
    peer.hello("al")
    services = [Service.CAUSAL if number % 2 else Service.AGREED for number in range(messages)]
    peer.write(b"".join(peer.sending("room", service=one) for one in services) + b"\xff\xff\xff\xff\x01")
    house.run(SECOND_US)
    assert "Ended" in kinds(peer.read())


def test_a_message_that_waits_for_room_counts_in_what_waits() -> None:
    house = network(2, Settings(session_send_bytes=60_000, submit_queue_bytes=120_000))
    peer = Peer(house)
    peer.hello("al")
    house.loses = lambda *_: True  # Nothing is stamped for a while.
    for _ in range(2):
        peer.write(peer.sending("room", payload=bytes(50_000)))
    session = house.daemons[0].clients._desk.by_connection[1]
    assert session.words
    assert session.words.size > 50_000
    assert house.daemons[0].clients._desk.total.size >= session.words.size
