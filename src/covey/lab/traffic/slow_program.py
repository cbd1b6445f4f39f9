"""One program of the measurement with a slow receiver, a process of its own: the sender, or one who receives.

In:        its task, as one JSON argument; a line on standard input when all are ready.
Out:       "ready" and then what it saw, each one JSON line on standard output.
Not here:  who is stopped and when, and the judgement (slow.py).

Every message carries its number, so a receiver knows what is missing, and tells how long nothing came.
"""

from __future__ import annotations

import sys
import time

import msgspec

from covey.client import blocking
from covey.client.events import Batch, Disconnected, View
from covey.lab.helper_streams import say, told
from covey.protocol.values import Policy

from .task import GROUP, LAST

CHUNK_MESSAGES = 10
"""What the sender hands over at a time."""
NUMBER_BYTES = 8


class SlowTask(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    address: str
    size: int
    policy: Policy = "disconnect"
    seconds: float = 0.0
    """How long to send; 0: it receives."""
    rate: float = 0.0
    """Messages a second."""
    receivers: int = 3


class SlowResult(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    messages: int
    """Sent, or received without a gap from the first one on."""
    seconds: float
    longest_pause_s: float
    """Of the sender: in one call. Of a receiver: between two arrivals."""
    problem: str = ""
    ended: str = ""
    """Why the daemon ended the session, if it did."""
    lag_bytes: int = 0
    lag_seconds: float = 0.0


def main() -> int:
    task = msgspec.json.decode(sys.argv[1], type=SlowTask)
    with blocking.connect(task.name, task.address, policy=task.policy) as session:
        say(send(session, task) if task.seconds else receive(session, task))
        told()
    return 0


# --- sending


def send(session: blocking.Session, task: SlowTask) -> SlowResult:
    say("ready")
    told()
    start = due = time.monotonic()
    sent, longest = 0, 0.0
    while (now := time.monotonic()) < start + task.seconds:
        if now < due:
            time.sleep(due - now)
        # Who had to wait goes on at its rate: it does not make up for the pause with a burst.
        due = max(due, now - 0.01) + CHUNK_MESSAGES / task.rate
        before = time.monotonic()
        session.send_many(GROUP, [numbered(sent + at, task.size) for at in range(CHUNK_MESSAGES)])
        longest = max(longest, time.monotonic() - before)
        sent += CHUNK_MESSAGES
    session.send(GROUP, numbered(sent, task.size), kind=LAST, self_discard=True)  # The flag: it travels alone.
    return SlowResult(
        name=task.name, messages=sent + 1, seconds=time.monotonic() - start, longest_pause_s=longest
    )  # fmt: skip


def numbered(number: int, size: int) -> bytes:
    """
    >>> numbered(0x3130, 10)[:2], len(numbered(0, 10))
    (b'01', 10)
    """
    return number.to_bytes(NUMBER_BYTES, "little").ljust(size, b".")


# --- receiving


def receive(session: blocking.Session, task: SlowTask) -> SlowResult:
    session.join(GROUP)
    seen, is_ready = Arrivals(task), False
    for event in session.batches():
        if isinstance(event, View) and len(event.members) == task.receivers and not is_ready:
            is_ready = True
            say("ready")
        elif isinstance(event, Disconnected):
            return seen.result(event)
        elif isinstance(event, Batch):
            seen.take(event)
        if seen.is_over:
            break
    return seen.result()


class Arrivals:
    """What one receiver has seen."""

    def __init__(self, task: SlowTask) -> None:
        self._task = task
        self._messages = 0
        self._problem = ""
        self._first = self._last = 0.0
        self._longest_pause = 0.0
        self.is_over = False

    def take(self, batch: Batch) -> None:
        now = time.monotonic()
        if self._messages:
            self._longest_pause = max(self._longest_pause, now - self._last)
        else:
            self._first = now
        self._last = now
        payloads = batch.payloads()
        expected = [numbered(self._messages + at, self._task.size) for at in range(len(payloads))]
        if payloads != expected or batch.session_seq != self._messages + 1:
            self._problem = f"messages from {batch.session_seq} on are not those after {self._messages}"
        else:
            self._messages += len(payloads)
        self.is_over = bool(self._problem) or (len(payloads) == 1 and any(one.kind == LAST for one in batch))

    def result(self, end: Disconnected | None = None) -> SlowResult:
        return SlowResult(
            name=self._task.name,
            messages=self._messages,
            seconds=self._last - self._first,
            longest_pause_s=self._longest_pause,
            problem=self._problem,
            ended=end.reason if end else "",
            lag_bytes=end.lag_bytes if end else 0,
            lag_seconds=end.lag_seconds if end else 0.0,
        )


if __name__ == "__main__":
    sys.exit(main())
