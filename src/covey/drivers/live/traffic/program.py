"""One program of a measurement, a process of its own: a sender or a receiver, through the public library.

In:        its task, as one JSON argument; a line on standard input when all are ready.
Out:       "ready" and then its result, each one JSON line on standard output.
Not here:  the cluster, and the judgement of what all programs saw (measure.py).

A receiver notes the order of what it gets in a digest, so that receivers can be compared, and each sender's count.
"""

from __future__ import annotations

import hashlib
import sys
import time
from typing import Literal

import msgspec

from covey.client import blocking
from covey.client.events import Batch, Disconnected, View
from covey.client.records import MIXED
from covey.protocol.values import Service

GROUP = "traffic"
LAST = 1
"""The kind of a sender's last message."""
CHUNK_BYTES = 400_000
"""What a sender hands over at a time when it sends as fast as it can."""
STAMP_BYTES = 8


class Task(msgspec.Struct, frozen=True, kw_only=True):
    role: Literal["send", "receive"]
    name: str
    address: str
    size: int
    service: str
    seconds: float
    rate: float
    """Messages a second; 0 is as fast as the daemons take them."""
    senders: int
    receivers: int


class Result(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    messages: int
    seconds: float
    """From the first to the last message."""
    cpu_seconds: float
    order: str = ""
    """Digest of the order of all bundles."""
    problem: str = ""
    latencies_us: list[int] = []


def main() -> int:
    task = msgspec.json.decode(sys.argv[1], type=Task)
    with blocking.connect(task.name, task.address) as session:
        result = send(session, task) if task.role == "send" else receive(session, task)
        say(result)
        sys.stdin.readline()
    return 0


def say(value: object) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


# --- sending


def send(session: blocking.Session, task: Task) -> Result:
    say("ready")
    sys.stdin.readline()
    service, started, busy = Service[task.service.upper()], time.monotonic(), time.process_time()
    paced = task.rate > 0
    sent = _send_paced(session, task, service) if paced else _send_freely(session, task, service)
    session.send(GROUP, _stamped(task.size), service, LAST)
    return Result(
        name=task.name,
        messages=sent + 1,
        seconds=time.monotonic() - started,
        cpu_seconds=time.process_time() - busy,
    )


def _send_freely(session: blocking.Session, task: Task, service: Service) -> int:
    payloads = [bytes(task.size)] * max(1, CHUNK_BYTES // max(1, task.size))
    end, sent = time.monotonic() + task.seconds, 0
    while time.monotonic() < end:
        session.send_many(GROUP, payloads, service)
        sent += len(payloads)
    return sent


def _send_paced(session: blocking.Session, task: Task, service: Service) -> int:
    start, sent = time.monotonic(), 0
    while (now := time.monotonic()) < start + task.seconds:
        due = start + sent / task.rate
        if now < due:
            time.sleep(due - now)
        session.send(GROUP, _stamped(task.size), service)
        sent += 1
    return sent


def _stamped(size: int) -> bytes:
    return time.monotonic_ns().to_bytes(STAMP_BYTES, "little").ljust(size, b".")


# --- receiving


def receive(session: blocking.Session, task: Task) -> Result:
    session.join(GROUP)
    seen = Seen(task)
    for event in session.batches():
        if isinstance(event, View) and len(event.members) == task.receivers and not seen.is_ready:
            seen.is_ready = True
            say("ready")
        elif isinstance(event, Disconnected):
            seen.problem = seen.problem or f"the session ended: {event.reason}"
        elif isinstance(event, Batch):
            seen.take(event)
        if seen.is_over:
            break
    return seen.result()


class Seen:
    """What one receiver has seen."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.is_ready = False
        self.problem = ""
        self._next: dict[str, int] = {}
        self._over: set[str] = set()
        self._order = hashlib.blake2b(digest_size=8)
        self._messages = 0
        self._first = self._last = 0.0
        self._busy = 0.0
        self._latencies: list[int] = []

    @property
    def is_over(self) -> bool:
        return len(self._over) == self._task.senders or bool(self.problem)

    def take(self, batch: Batch) -> None:
        now_ns = time.monotonic_ns()
        if not self._messages:
            self._first, self._busy = now_ns / 1e9, time.process_time()
        expected = self._next.get(batch.process, 1)
        if batch.session_seq != expected:
            self.problem = f"message {batch.session_seq} of {batch.process} came instead of {expected}"
        payloads = batch.payloads()
        self._next[batch.process] = batch.session_seq + len(payloads)
        self._messages += len(payloads)
        self._last = now_ns / 1e9
        self._order.update(f"{batch.process} {batch.session_seq} {len(payloads)}\n".encode())
        if (min(map(len, payloads)) if batch.size == MIXED else batch.size) < self._task.size:
            self.problem = "a message is shorter than it was sent"
        if self._task.rate:
            self._latencies += [(now_ns - int.from_bytes(one[:STAMP_BYTES], "little")) // 1_000 for one in payloads]
        if len(payloads) == 1 and any(message.kind == LAST for message in batch):
            self._over.add(batch.process)

    def result(self) -> Result:
        return Result(
            name=self._task.name,
            messages=self._messages,
            seconds=self._last - self._first,
            cpu_seconds=time.process_time() - self._busy,
            order=self._order.hexdigest(),
            problem=self.problem,
            latencies_us=self._latencies,
        )


if __name__ == "__main__":
    sys.exit(main())
