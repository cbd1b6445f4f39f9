"""What a receiver of a measurement calls a problem: anything but each message once, in order, with its content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from covey.client.events import Batch, batch_of
from covey.cluster import Cluster, DaemonConfig
from covey.config_file import parse, render
from covey.ids import Ballot
from covey.lab.cluster import LiveError
from covey.lab.traffic import program
from covey.lab.traffic.measure import ORDERED, PATIENT, judge
from covey.lab.traffic.pattern import Pattern
from covey.lab.traffic.program import policy
from covey.lab.traffic.seen import Seen
from covey.lab.traffic.task import LAST, TrafficResult, TrafficTask
from covey.protocol.values import Service
from covey.protocol.wire.bodies import record_parts, sender_prefix
from covey.protocol.wire.words import Arrived

PROCESS = "send0@a:7.3"
SIZE = 100
TASK = TrafficTask(
    role="receive", name="receive0", address="", size=SIZE, service="agreed", seconds=1, rate=0, senders=1, receivers=1
)

Batches = list[tuple[int, list[bytes]]]


def good() -> Batches:
    """The first number and the payloads of five batches, the last of which is the last message."""
    pattern = Pattern(SIZE, 10)
    return [(first, pattern.payloads(first, 1 if first == 41 else 10)) for first in (1, 11, 21, 31, 41)]


def batch(first: int, payloads: list[bytes]) -> Batch:
    kind = LAST if first == 41 else 0
    records = [part for payload in payloads for part in record_parts(kind, payload)]
    body = b"".join([sender_prefix(PROCESS), *records])
    head = (Service.AGREED, 0, len(payloads), first, Ballot(7, 0, 3), 1_000 + first, 0, ("traffic",))
    return batch_of(Arrived(*head, memoryview(body)))


def seen(batches: Batches, task: TrafficTask = TASK) -> Seen:
    made = Seen(task)
    for first, payloads in batches:
        made.take(batch(first, payloads))
    return made


def test_what_was_sent_is_no_problem() -> None:
    one = seen(good())
    assert (one.problem, one.is_over, one.result().messages) == ("", True, 41)


@pytest.mark.parametrize(("rate", "asked"), [(0, "block"), (100, "disconnect")])
def test_receivers_make_senders_wait_who_send_as_fast_as_they_can(rate: float, asked: str) -> None:
    assert policy(msgspec.structs.replace(TASK, rate=rate)) == asked


def test_receivers_may_make_senders_wait_for_as_long_as_they_must() -> None:
    settings = parse(render(Cluster("x", (DaemonConfig("a", 0, port=1),)), "loopback") + PATIENT, Path("x")).settings
    assert (settings.block_percent, settings.block_max_ms) == (100, 600_000)


class Calls:
    """A session that notes how many messages each call hands over."""

    def __init__(self) -> None:
        self.together: list[int] = []

    def send(self, *_: object, **__: object) -> None:
        self.together.append(1)

    def send_many(self, _: str, payloads: list[bytes], __: Service) -> None:
        self.together.append(len(payloads))


@pytest.mark.parametrize("one_by_one", [True, False])
def test_one_by_one_is_a_call_for_each_message(one_by_one: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "say", lambda _: None)
    monkeypatch.setattr(program, "told", lambda: "go")
    task = msgspec.structs.replace(TASK, role="send", seconds=0.01, one_by_one=one_by_one)
    calls = Calls()
    result = program.send(calls, task)  # type: ignore[arg-type]
    assert sum(calls.together) == result.messages > 1
    assert (set(calls.together) == {1}) == one_by_one


def changed(at: int, change: Callable[[list[bytes]], list[bytes]]) -> Batches:
    return [(first, change(payloads) if number == at else payloads) for number, (first, payloads) in enumerate(good())]


@pytest.mark.parametrize(
    "batches",
    [
        good()[1:],
        good()[:2] + good()[3:],
        [*good()[:2], good()[1], *good()[2:]],
        [good()[1], good()[0], *good()[2:]],
        changed(1, lambda payloads: payloads[:-1]),
        changed(1, lambda payloads: [payloads[1], payloads[0], *payloads[2:]]),
        changed(1, lambda payloads: [payloads[0]] * len(payloads)),
        changed(1, lambda payloads: [bytes(len(one)) for one in payloads]),
        changed(1, lambda payloads: [one + b"." for one in payloads]),
        changed(1, lambda payloads: [one[:-1] for one in payloads]),
        changed(4, lambda payloads: [bytes(SIZE)]),
    ],
)
def test_anything_else_is(batches: Batches) -> None:
    assert seen(batches).problem


def test_of_unreliable_messages_some_may_be_missing_but_none_may_be_another() -> None:
    task = msgspec.structs.replace(TASK, service="unreliable")
    assert not seen(good()[:2] + good()[3:], task).problem
    assert seen(changed(1, lambda payloads: [payloads[0]] * len(payloads)), task).problem


def test_the_last_message_comes_once() -> None:
    one = seen(good())
    one.take_late(next(iter(batch(*good()[-1]))))
    assert "came after its last one" in one.problem


def result(name: str, messages: int, order: str = "x", problem: str = "") -> TrafficResult:
    return TrafficResult(name=name, messages=messages, seconds=1.0, cpu_seconds=0.1, order=order, problem=problem)


@pytest.mark.parametrize(
    ("service", "sent", "received", "told"),
    [
        ("agreed", result("s", 10), [result("r", 10), result("q", 9)], "q got 9 of 10"),
        ("agreed", result("s", 10), [result("r", 11)], "r got 11 of 10"),
        ("agreed", result("s", 10), [result("r", 10), result("q", 10, "y")], "same order"),
        ("agreed", result("s", 10, problem="too large"), [result("r", 10)], "s: too large"),
        ("fifo", result("s", 10), [result("r", 10, problem="odd")], "r: odd"),
        ("unreliable", result("s", 10), [result("r", 11)], "r got 11 of 10"),
    ],
)
def test_receivers_are_compared(service: str, sent: TrafficResult, received: list[TrafficResult], told: str) -> None:
    with pytest.raises(LiveError, match=told):
        judge([sent], received, may_miss=service == "unreliable", ordered=service in ORDERED)


def test_receivers_of_unreliable_messages_need_not_agree() -> None:
    judge([result("s", 10)], [result("r", 8), result("q", 9, "y")], may_miss=True, ordered=False)
