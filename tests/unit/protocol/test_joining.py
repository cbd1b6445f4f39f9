"""Messages sent one by one that come in one read: joined where a batch would have held them, and never otherwise."""

from __future__ import annotations

import pytest

from covey.config import Settings
from covey.protocol.asked import Sending
from covey.protocol.counters import Counter
from covey.protocol.dialects.native_reader import NativeReader
from covey.protocol.values import Service
from covey.protocol.wire.bodies import SELF_DISCARD, record_parts, sender_prefix
from covey.protocol.wire.session import encode_word, sending_parts
from covey.protocol.wire.words import Arrived, Ended, JoinGroup, LeaveGroup
from tests.unit.protocol.network import TinyNetwork
from tests.unit.protocol.peers import Peer, kinds, network

PROCESS = "al@a:1.101"
BUNDLE_BYTES = 8_192


def frame(
    seq: int, *groups: str, service: Service = Service.AGREED, flags: int = 0, size: int = 10, process: str = PROCESS
) -> bytes:
    body = b"".join([sender_prefix(process), *record_parts(seq % 7, bytes([seq % 250]) * size)])
    return b"".join(sending_parts(Sending(service, flags, 1, seq, groups or ("room",), body)))


def requests(*data: bytes) -> list[object]:
    reader = NativeReader()
    reader.open(PROCESS, 1 << 20, BUNDLE_BYTES)
    for one in data:
        reader.put(one)
    found: list[object] = []
    while (request := reader.next()) is not None:
        found.append(request)
    assert not reader
    return found


def runs(*data: bytes) -> list[tuple[int, int]]:
    return [(one.session_seq, one.messages) for one in requests(*data) if isinstance(one, Sending)]


def test_what_goes_the_same_way_is_one_run_with_every_record_in_its_place() -> None:
    (run,) = requests(b"".join(frame(seq) for seq in range(1, 51)))
    assert isinstance(run, Sending)
    records = [part for seq in range(1, 51) for part in record_parts(seq % 7, bytes([seq % 250]) * 10)]
    assert bytes(run.body) == b"".join([sender_prefix(PROCESS), *records])
    assert (run.session_seq, run.messages, run.groups, run.service) == (1, 50, ("room",), Service.AGREED)


@pytest.mark.parametrize(
    "second",
    [
        frame(2, "hall"),
        frame(2, "room", "hall"),
        frame(2, service=Service.SAFE),
        frame(2, flags=SELF_DISCARD),
        frame(3),
        frame(1),
        frame(2, size=BUNDLE_BYTES),
        frame(2, process="bo@a:1.102"),
    ],
    ids=["group", "one more group", "service", "self-discard", "a gap", "a repetition", "too large", "another's name"],
)
def test_what_differs_stays_by_itself(second: bytes) -> None:
    assert [count for _, count in runs(frame(1) + second)] == [1, 1]


@pytest.mark.parametrize("word", [JoinGroup("hall"), LeaveGroup("room")])
def test_a_request_in_between_ends_a_run_and_keeps_its_place(word: JoinGroup | LeaveGroup) -> None:
    found = requests(frame(1) + frame(2) + encode_word(word) + frame(3) + frame(4))
    assert [getattr(one, "messages", 0) for one in found] == [2, 0, 2]


def test_a_run_fits_one_bundle_to_the_byte() -> None:
    prefix, record = len(sender_prefix(PROCESS)), 6 + 10
    fitting = (BUNDLE_BYTES - prefix) // record
    rest = BUNDLE_BYTES - prefix - (fitting - 1) * record - 6
    exact = b"".join(frame(seq) for seq in range(1, fitting)) + frame(fitting, size=rest)
    assert runs(exact) == [(1, fitting)]
    over = b"".join(frame(seq) for seq in range(1, fitting)) + frame(fitting, size=rest + 1)
    assert runs(over) == [(1, fitting - 1), (fitting, 1)]


def test_what_comes_in_the_next_read_is_not_waited_for() -> None:
    assert runs(frame(1) + frame(2), frame(3)) == [(1, 2), (3, 1)]


def test_a_frame_that_is_cut_by_the_end_of_a_read_is_joined_to_what_it_ends_with() -> None:
    data = b"".join(frame(seq) for seq in range(1, 7))
    cut = len(data) * 2 // 3
    assert sum(count for _, count in runs(data[:cut], data[cut:])) == 6


def two(house: TinyNetwork) -> tuple[Peer, Peer]:
    busy, other = Peer(house), Peer(house, rank=1)
    busy.hello("busy")
    other.hello("other")
    for peer in (busy, other):
        peer.say(JoinGroup("room"))
        peer.read()
    return busy, other


def test_fifty_sends_of_one_read_are_one_bundle_for_everybody() -> None:
    house = network(2)
    busy, other = two(house)
    before = len(house.delivered(1))
    busy.write(b"".join(busy.sending("room", payload=bytes([seq])) for seq in range(50)))
    (word,) = (one for one in other.read() if isinstance(one, Arrived))
    assert (word.session_seq, word.messages) == (1, 50)
    assert len(house.delivered(1)) == before + 1
    assert house.daemons[0].kit.count[Counter.SENDS_JOINED] == 49
    assert [one.messages for one in busy.read() if isinstance(one, Arrived)] == [50]


def test_self_discard_and_private_messages_stay_what_they_are() -> None:
    house = network(2)
    busy, other = two(house)
    discarded = b"".join(busy.sending("room", flags=SELF_DISCARD) for _ in range(5))
    busy.write(discarded + b"".join(busy.sending("other@b") for _ in range(5)))
    assert [(one.groups, one.messages) for one in other.read() if isinstance(one, Arrived)] == [
        (("room",), 5),
        (("other@b",), 5),
    ]
    assert not [one for one in busy.read() if isinstance(one, Arrived)]


def test_a_lie_behind_honest_messages_is_refused_in_its_own_turn() -> None:
    house = network(2)
    busy, other = two(house)
    honest = busy.sending("room") + busy.sending("room")
    busy.seq += 1  # One is left out.
    busy.write(honest + busy.sending("room"))
    assert [one.messages for one in other.read() if isinstance(one, Arrived)] == [2]
    ended = [one for one in busy.read() if isinstance(one, Ended)]
    assert ["not the next" in one.reason for one in ended] == [True]


def test_garbage_behind_messages_that_wait_for_room_does_not_take_them_along() -> None:
    house = network(2, Settings(session_send_bytes=300, submit_queue_bytes=600))
    busy, other = two(house)
    honest = b"".join(busy.apart(number, "room", payload=bytes(200)) for number in range(8))
    busy.write(honest + b"\xff\xff\xff\xff\x01")
    assert sum(one.messages for one in other.read() if isinstance(one, Arrived)) == 8
    assert kinds(busy.read())[-1] == "Ended"
