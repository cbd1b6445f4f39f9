"""The exchange of states, event by event: who sends its state when, and what waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

import msgspec

import covey
from covey.ids import Ballot
from examples.replica import STATE, Processes, Replica, State


class Mute:
    """A session that keeps what is sent."""

    process = "a@x:1.1"

    def __init__(self) -> None:
        self.sent: list[State] = []

    async def send(self, _group: str, payload: bytes, _service: covey.Service, kind: int) -> None:
        assert kind == STATE
        self.sent.append(msgspec.msgpack.decode(payload, type=State))


class Words(Replica):
    """Its state is what was said, and to whom it was shown."""

    def __init__(self) -> None:
        self.mute = Mute()
        super().__init__(cast("covey.Session", self.mute), "group")
        self.words: list[tuple[str, str]] = []

    def apply(self, message: covey.Message, seen_by: Processes) -> None:
        self.words.append((message.payload.decode(), names(seen_by)))

    def snapshot(self) -> bytes:
        return " ".join(word for word, _ in self.words).encode()

    def merge(self, states: Sequence[bytes], seen_by: Processes) -> None:
        self.words = [(state.decode(), names(seen_by)) for state in states]

    def on(self, *events: covey.Event) -> None:
        for event in events:
            asyncio.run(self.on_event(event))


def names(processes: Processes) -> str:
    return "".join(sorted(process[0] for process in processes))


def processes(letters: str) -> tuple[str, ...]:
    return tuple(f"{letter}@x:1.1" for letter in letters)


def view(number: int, members: str, transitional: str) -> covey.View:
    return covey.View(
        "group", f"{number}", (), (), "network", "", processes(members), processes(transitional), None, (number,)
    )


def message(payload: bytes, kind: int = 0, group: str = "group") -> covey.Message:
    order = covey.Order(Ballot(1, 0, 1), 1, 0)
    return covey.Message("b@x", (group,), payload, covey.SAFE, kind, 1, order, "b@x:1.1")


def state(number: int, holders: str, data: bytes) -> covey.Message:
    return message(msgspec.msgpack.encode(State(f"{number}", frozenset(processes(holders)), data)), STATE)


def test_alone_nothing_is_exchanged_and_nothing_waits() -> None:
    one = Words()
    one.on(view(1, "a", "a"), message(b"hi"), message(b"private", group="a@x"))
    assert (one.words, one.mute.sent, one.is_ready) == ([("hi", "a")], [], True)


def test_the_lowest_of_those_with_one_state_sends_it_and_messages_wait_for_all_states() -> None:
    one = Words()
    one.on(view(1, "a", "a"), message(b"mine"), view(2, "abc", "a"))
    assert [(sent.view, names(sent.holders), sent.data) for sent in one.mute.sent] == [("2", "a", b"mine")]
    one.on(state(2, "bc", b"theirs"), message(b"later"))
    assert (one.is_ready, one.words) == (False, [("mine", "a")])
    one.on(state(2, "a", b"mine"))
    assert (one.is_ready, one.words) == (True, [("theirs", "abc"), ("mine", "abc"), ("later", "abc")])


def test_a_view_before_all_states_are_here_starts_anew_with_those_who_really_have_ours() -> None:
    one = Words()
    one.on(view(1, "ab", "a"), message(b"waits"), state(1, "a", b""))
    one.on(view(2, "abc", "ab"))  # b came with us, but its state is another one
    assert one.words == [("waits", "ab")]
    assert names(one.holders) == "a"
    assert [(sent.view, sent.data) for sent in one.mute.sent] == [("1", b""), ("2", b"waits")]
    one.on(state(1, "b", b"too late"), state(2, "a", b"waits"), state(2, "b", b"b"))
    assert not one.is_ready
    one.on(state(2, "c", b"c"))
    assert one.words == [("waits", "abc"), ("b", "abc"), ("c", "abc")]


def test_what_comes_after_the_signal_is_seen_by_those_who_move_on_with_us() -> None:
    one = Words()
    one.on(view(1, "ab", "a"), state(1, "a", b""), state(1, "b", b"b"), message(b"before"))
    one.on(covey.Transitional("group"), message(b"after"))
    assert one.words[2:] == [("before", "ab")]
    one.on(view(2, "a", "a"))
    assert one.words[2:] == [("before", "ab"), ("after", "a")]
    assert one.is_ready
