"""What a client has said and was not done: cut into frames as their turn comes, and counted until then."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.errors import FrameError
from covey.protocol.asked import CannotOpen, Depart, JoinRequest, LeaveRequest, Open, Request, StillHere
from covey.protocol.dialects.native_reader import NativeReader
from covey.protocol.portions import PORTIONS
from covey.protocol.wire.session import HELLO_BYTES_MAX, encode_word, read_from_client
from covey.protocol.wire.words import MAGIC, VERSION, Bye, ClientAlive, FromClient, Hello, JoinGroup, LeaveGroup, Word
from tests.unit.protocol.peers import Peer, network


def frame(number: int) -> bytes:
    return encode_word(JoinGroup(f"g{number}"))


def taken(said: NativeReader) -> list[Request]:
    """All that can be taken now."""
    words: list[Request] = []
    while (one := said.next()) is not None:
        words.append(one)
    return words


@given(st.lists(st.integers(1, 40), max_size=20), st.integers(0, 3))
def test_frames_come_in_order_however_they_were_read(cuts: list[int], each: int) -> None:
    data, said = b"".join(frame(number) for number in range(20)), NativeReader()
    words: list[Request] = []
    for cut in [*cuts, len(data)]:
        said.put(data[:cut])
        data = data[cut:]
        if each:
            words += taken(said)
    assert words + taken(said) == [JoinRequest(f"g{number}") for number in range(20)]
    assert (bool(said), said.size) == (False, 0)


def test_what_is_put_back_comes_first() -> None:
    said = NativeReader()
    said.put(frame(1) + frame(2))
    said.next()
    said.put_back(JoinRequest("again"))
    said.put(frame(3))
    assert taken(said) == [JoinRequest("again"), JoinRequest("g2"), JoinRequest("g3")]


def test_the_last_word_that_was_put_back_counts_until_it_is_done() -> None:
    said = NativeReader()
    said.put(frame(1))
    said.next()
    said.put_back(JoinRequest("g1"))
    assert said
    assert said.size == len(frame(1))
    assert taken(said) == [JoinRequest("g1")]
    assert (bool(said), said.size) == (False, 0)


def test_an_unfinished_frame_counts_but_nothing_of_it_can_be_done() -> None:
    said = NativeReader()
    said.put(frame(1) + frame(2)[:-1])
    assert taken(said) == [JoinRequest("g1")]
    assert (bool(said), said.size) == (False, len(frame(2)) - 1)


def test_a_problem_shows_when_its_turn_comes_and_nothing_follows_it() -> None:
    said = NativeReader()
    too_large = encode_word(JoinGroup("x" * (HELLO_BYTES_MAX + 1)))
    said.put(frame(1) + too_large + frame(2))
    problems = [said.problem]
    assert taken(said) == [JoinRequest("g1")]
    problems.append(said.problem)
    assert [problem is None for problem in problems] == [True, False]
    said.put(frame(3))
    assert taken(said) == []


def test_larger_frames_are_accepted_once_it_is_known_who_speaks() -> None:
    said = NativeReader()
    said.put(frame(1) + encode_word(JoinGroup("x" * (HELLO_BYTES_MAX + 1))))
    said.next()
    said.open("al@a:1.101", 1 << 20, 8_192)
    with pytest.raises(FrameError, match="malformed frame"):  # It is read: its name is too long, and not the frame.
        said.next()
    assert said.problem is None


def test_what_is_cleared_is_gone() -> None:
    said = NativeReader()
    said.put(frame(1) + frame(2))
    said.next()
    said.put_back(JoinRequest("g1"))
    said.clear()
    assert (bool(said), said.size, said.next()) == (False, 0, None)


@pytest.mark.parametrize(
    ("word", "asked"),
    [
        (Hello(MAGIC, VERSION, "al", 2, "block", 1, 2, 3), Open("al", 2, "block", 1, 2, 3)),
        (Hello("spread", VERSION, "al", 1, "block"), CannotOpen("say HELLO first")),
        (JoinGroup("room"), JoinRequest("room")),
        (LeaveGroup("room"), LeaveRequest("room")),
        (Bye(), Depart()),
        (ClientAlive(), StillHere()),
    ],
)
def test_each_word_asks_for_something(word: Word, asked: Request) -> None:
    said = NativeReader()
    said.put(encode_word(word))
    assert taken(said) == [asked]


def test_another_version_says_which_to_use() -> None:
    said = NativeReader()
    said.put(encode_word(Hello(MAGIC, VERSION + 1, "al", 1, "block")))
    [asked] = taken(said)
    assert isinstance(asked, CannotOpen)
    assert f"version {VERSION}, not {VERSION + 1}" in asked.reason


def test_one_read_of_very_many_words_is_worked_off_a_portion_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is cut lazily: what is kept of it is its bytes, not an object for each word."""
    done = 0

    def read(kind: int, body: memoryview) -> FromClient:
        nonlocal done
        done += 1
        return read_from_client(kind, body)

    house = network()
    peer = Peer(house)
    peer.hello()
    monkeypatch.setattr("covey.protocol.dialects.native_reader.read_from_client", read)
    data = encode_word(ClientAlive()) * 10_000
    tracemalloc.start()
    peer.write(data)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 4 * len(data) + 100_000
    assert done == PORTIONS.words
    for step in range(2, 5):
        house.give(0)
        assert done == step * PORTIONS.words
    house.run(1_000)
    assert done == 10_000
    assert house.daemons[0].clients.waiting_bytes == 0
