"""A program of lower priority that sends as much as it may, waits for its own messages, or counts those of others.

In:        its task, as one JSON argument; `go` and `stop` on standard input.
Out:       "ready" and then its result, each one JSON line on standard output.
Not here:  who sends what when (crowds.py, messages.py).
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter
from random import Random

import msgspec

from covey.client import blocking, connection
from covey.client.events import Message, View
from covey.errors import CoveyError
from covey.lab.helper_streams import say, told

from .task import NICE, SenderResult, SenderTask

LOOK_S = 0.1
"""How often who waits for a message looks whether it shall stop."""
PAYLOADS = 100


def main() -> int:
    task = msgspec.json.decode(sys.argv[1], type=SenderTask)
    os.nice(NICE)
    program = {"flood": flood, "echo": echo, "count": count}.get(task.role)
    try:
        if program is None:
            say(asyncio.run(burst(task)))
            return 0
        with blocking.connect(task.name, task.address) as session:
            say(program(session, task))
            told()
    except CoveyError as error:
        say(SenderResult(name=task.name, problem=str(error)))
    return 0


def flood(session: blocking.Session, task: SenderTask) -> SenderResult:
    """As many messages as may be."""
    payloads = _payloads(task)
    say("ready")
    told()
    sent, due = 0, time.monotonic()
    while not told(max(0.0, due - time.monotonic())):
        due = max(due, time.monotonic()) + (1 / task.rate if task.rate else 0.0)
        groups = (task.groups[sent // task.together % len(task.groups)],) if task.in_turn else task.groups
        if task.together > 1:
            session.send_many(groups, [payloads[(sent + at) % PAYLOADS] for at in range(task.together)])
        else:
            session.send(groups, payloads[sent % PAYLOADS])
        sent += task.together
    return SenderResult(name=task.name, messages=sent)


async def burst(task: SenderTask) -> SenderResult:
    """Many frames at once, as the library writes what a program sends without a pause.

    Each names the groups in another order than the one before, so that no two messages travel in one frame.
    """
    payloads, sent = _payloads(task), 0
    async with await connection.connect(task.name, task.address) as session:
        say("ready")
        told()
        while not told(0):
            for _ in range(PAYLOADS):
                at = sent % len(task.groups)
                await session.send(task.groups[at:] + task.groups[:at], payloads[sent % PAYLOADS])
                sent += 1
    return SenderResult(name=task.name, messages=sent)


def _payloads(task: SenderTask) -> list[bytes]:
    random = Random(task.name)
    return [bytes(random.randint(task.size_min, task.size_max)) for _ in range(PAYLOADS)]


def echo(session: blocking.Session, task: SenderTask) -> SenderResult:
    """One message after the other, each when the one before is back."""
    _join(session, task)
    say("ready")
    told()
    arrived, longest, since = 0, 0.0, time.monotonic()
    session.send(task.groups, bytes(task.size_max))
    while not told(0):
        if _arrived(session):
            arrived += 1
            longest = max(longest, time.monotonic() - since)
            since = time.monotonic()
            session.send(task.groups, bytes(task.size_max))
    waited = time.monotonic() - since
    is_waiting = waited > max(1.0, longest)
    longest = max(longest, waited) if is_waiting else longest
    return SenderResult(
        name=task.name, messages=arrived, longest_wait_ms=round(longest * 1_000, 1), is_waiting=is_waiting
    )


def _arrived(session: blocking.Session) -> bool:
    try:
        return isinstance(session.receive(LOOK_S), Message)
    except TimeoutError:
        return False


def count(session: blocking.Session, task: SenderTask) -> SenderResult:
    """How many messages come, in each tenth of a second."""
    _join(session, task)
    say("ready")
    arrivals: Counter[int] = Counter()
    while not told(0):
        if _arrived(session):
            arrivals[int(time.monotonic() * 10)] += 1
    return SenderResult(name=task.name, messages=arrivals.total(), arrivals=dict(arrivals))


def _join(session: blocking.Session, task: SenderTask) -> None:
    for group in task.groups:
        session.join(group)
    for _ in task.groups:
        while not isinstance(session.receive(), View):
            pass


if __name__ == "__main__":
    sys.exit(main())
