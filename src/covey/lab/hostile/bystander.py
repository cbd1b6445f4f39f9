"""The program that has nothing to do with the trouble: it sends one small message every so often, or receives them.

In:        its task, as one JSON argument; `go` and `stop` on standard input.
Out:       "ready" and then what it saw, each one JSON line on standard output.
Not here:  the trouble (crowd.py, sender.py), the judgement (stage.py).

A message holds its number and the time of the call that sent it, so that a call that hangs counts as waiting too.
"""

from __future__ import annotations

import sys
import time

import msgspec

from covey.client import blocking
from covey.client.events import Disconnected, Message, View
from covey.errors import CoveyError
from covey.lab.helper_streams import say, told

from .task import BYSTANDERS, LAST, STAMPED, BystanderResult, BystanderTask


def main() -> int:
    task = msgspec.json.decode(sys.argv[1], type=BystanderTask)
    try:
        with blocking.connect(task.name, task.address) as session:
            say(send(session, task) if task.role == "send" else receive(session, task))
            told()
    except CoveyError as error:
        say(BystanderResult(name=task.name, problem=str(error)))
    return 0


# --- sending


def send(session: blocking.Session, task: BystanderTask) -> BystanderResult:
    say("ready")
    told()
    sent, longest = 0, 0
    due = time.monotonic()
    try:
        while not told(max(0.0, due - time.monotonic())):
            # Who had to wait goes on at its rate: it does not make up for the pause with a burst.
            due = max(due, time.monotonic()) + task.interval_s
            longest = max(longest, _send_one(session, sent))
            sent += 1
        longest = max(longest, _send_one(session, sent, LAST))
    except CoveyError as error:
        return BystanderResult(name=task.name, messages=sent, longest_wait_ms=_ms(longest), problem=str(error))
    return BystanderResult(name=task.name, messages=sent + 1, longest_wait_ms=_ms(longest))


def _send_one(session: blocking.Session, number: int, kind: int = 0) -> int:
    """How long the call took."""
    before = time.monotonic_ns()
    session.send(BYSTANDERS, STAMPED.pack(number, before), kind=kind)
    return time.monotonic_ns() - before


# --- receiving


def receive(session: blocking.Session, task: BystanderTask) -> BystanderResult:
    session.join(BYSTANDERS)
    seen, is_ready = BystanderSeen(task), False
    for event in session:
        if isinstance(event, View) and len(event.members) == task.receivers and not is_ready:
            is_ready = True
            say("ready")
        elif isinstance(event, Disconnected):
            seen.note(f"its session was ended: {event.reason}")
            break
        elif isinstance(event, Message):
            seen.take(event)
            if event.kind == LAST:
                break
    return seen.result()


class BystanderSeen:
    """What one receiver has got: every message, in the order sent."""

    def __init__(self, task: BystanderTask) -> None:
        self._task = task
        self._next = 0
        self._messages = 0
        self._longest = 0
        self._problem = ""

    def take(self, message: Message) -> None:
        number, sent_ns = STAMPED.unpack(message.payload)
        self._longest = max(self._longest, time.monotonic_ns() - sent_ns)
        if number < self._next or (number > self._next and not self._task.may_miss):
            self.note(f"message {number} came instead of {self._next}")
        self._next = number + 1
        self._messages += 1

    def note(self, problem: str) -> None:
        self._problem = self._problem or problem

    def result(self) -> BystanderResult:
        return BystanderResult(
            name=self._task.name, messages=self._messages, longest_wait_ms=_ms(self._longest), problem=self._problem
        )


def _ms(nanoseconds: int) -> float:
    return round(nanoseconds / 1_000_000, 1)


if __name__ == "__main__":
    sys.exit(main())
