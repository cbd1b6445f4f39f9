"""What one receiver beside others has got, and whether it is what was sent; the same for every system.

In:        messages as they come, one by one or in runs of one sender.
Out:       whether all is here; the count, the time, the digest of the order; the first problem.
Not here:  receiving (systems/), what messages hold (content.py), comparing receivers with one another (measure.py).

Every message must be the next of its sender and hold what its number says; the end of a sender must count what came,
and nothing may come after it.
"""

from __future__ import annotations

import hashlib
import time

from covey.lab.traffic.pattern import NUMBER_BYTES, Pattern
from covey.lab.traffic.task import TrafficResult

from .content import FILLER, SENDER_AT, STAMPED_BYTES, end_message, head, number_in
from .task import PeerTask

TOGETHER = 4_000
"""More messages than this in one run are compared one by one."""
NOBODY = -1


class Audit:
    def __init__(self, task: PeerTask) -> None:
        self._task = task
        self._patterns = {number: Pattern(task.size, TOGETHER, number) for number in range(task.senders)}
        """Of the senders that are not at their end."""
        self._next = dict.fromkeys(range(task.senders), 1)
        self._marks = [bytes([number]) for number in range(task.senders)]
        self._filler = FILLER * (task.size - STAMPED_BYTES)
        self.is_over = False
        """The ends of all senders have come, or a problem."""
        self.problem = ""
        self._first_ns = self._last_ns = 0
        self._busy = 0.0
        self._latencies: list[int] = []
        self._keeps_order = task.is_agreed and task.senders > 1
        self._order = hashlib.blake2b(digest_size=8)
        self._run = (0, 0)
        """Whose messages came last, and how many of them in a row."""

    # --- what comes

    def take_run(self, payloads: list[bytes]) -> None:
        """Messages of one sender."""
        sender = _sender_of(payloads[0])
        pattern, number = self._patterns.get(sender), self._next.get(sender, 0)
        if pattern is None or self._task.rate or payloads != pattern.payloads(number, len(payloads)):
            for payload in payloads:
                self.take(payload)
            return
        self._begin()
        self._next[sender] = number + len(payloads)
        if self._keeps_order:
            self._note_order(sender, len(payloads))

    def take_mixed(self, payloads: list[bytes]) -> None:
        """Messages of all senders, from a system that promises no order between them."""
        assert not self._keeps_order
        runs = [[one for one in payloads if one[SENDER_AT:NUMBER_BYTES] == mark] for mark in self._marks]
        if sum(map(len, runs)) < len(payloads):  # Some are nobody's.
            runs = [[payload] for payload in payloads]
        for run in filter(None, runs):
            self.take_run(run)

    def take(self, payload: bytes) -> None:
        if not self._first_ns:
            self._begin()
        sender = payload[SENDER_AT] if len(payload) > SENDER_AT else NOBODY  # Here, and not a call: for every message.
        pattern = self._patterns.get(sender)
        if pattern is None:
            self._note_stranger(sender)
        elif self._task.rate:
            self._take_stamped(sender, payload)
        elif payload == pattern.payload(self._next[sender]):
            self._count(sender)
        else:
            self._take_other(sender, payload)

    def _take_stamped(self, sender: int, payload: bytes) -> None:
        now_ns = time.monotonic_ns()
        is_next = payload[:NUMBER_BYTES] == head(sender, self._next[sender])
        if not is_next or payload[STAMPED_BYTES:] != self._filler:
            self._take_other(sender, payload)
            return
        self._count(sender)
        self._latencies.append((now_ns - int.from_bytes(payload[NUMBER_BYTES:STAMPED_BYTES], "little")) // 1_000)

    def _take_other(self, sender: int, payload: bytes) -> None:
        """The end of its sender, or a problem."""
        total = self._next[sender] - 1
        if payload == end_message(sender, total, self._task.size):
            del self._patterns[sender]
            self._last_ns = time.monotonic_ns()
            self.is_over = not self._patterns
        elif payload == end_message(sender, number_in(payload), self._task.size):
            self.fail(f"sender {sender} has sent {number_in(payload):,} messages, {total:,} came")
        else:
            self.fail(self._why(sender, payload))

    def _count(self, sender: int) -> None:
        self._next[sender] += 1
        if self._keeps_order:
            self._note_order(sender, 1)

    def _begin(self) -> None:
        if not self._first_ns:
            self._first_ns, self._busy = time.monotonic_ns(), time.process_time()

    def _note_order(self, sender: int, count: int) -> None:
        """Runs of a sender count as a whole: how they were cut on their way must not matter."""
        last, length = self._run
        if last != sender:
            self._order.update(f"{last} {length}\n".encode())
            length = 0
        self._run = (sender, length + count)

    # --- problems

    def _why(self, sender: int, payload: bytes) -> str:
        """What is wrong with a message, in words."""
        expected, number = self._next[sender], number_in(payload)
        if not self._is_whole(sender, payload):
            return f"message {expected:,} of sender {sender} does not hold what was sent"
        if not self._task.rate:
            # Contents return: of all numbers that it may have, the one nearest to what was due.
            cycle = self._patterns[sender].cycle
            number = expected + (number - expected + cycle // 2) % cycle - cycle // 2
        return f"message {number:,} of sender {sender} came instead of {expected:,}"

    def _is_whole(self, sender: int, payload: bytes) -> bool:
        if self._task.rate:
            return len(payload) == self._task.size and payload[STAMPED_BYTES:] == self._filler
        return payload == self._patterns[sender].payload(number_in(payload))

    def _note_stranger(self, sender: int) -> None:
        if sender in self._next:
            self.fail(f"a message of sender {sender} came after its end")
        else:
            self.fail("a message came that no sender has sent")

    def fail(self, problem: str) -> None:
        """The first one counts."""
        self.problem = self.problem or problem
        self.is_over = True

    # --- the sum of it

    def result(self) -> TrafficResult:
        return TrafficResult(
            name=self._task.name,
            messages=sum(number - 1 for number in self._next.values()),
            seconds=(self._last_ns - self._first_ns) / 1e9,
            cpu_seconds=time.process_time() - self._busy,
            order=hashlib.blake2b(self._order.digest() + repr(self._run).encode(), digest_size=8).hexdigest(),
            problem=self.problem,
            latencies_us=self._latencies,
        )


def _sender_of(payload: bytes) -> int:
    return payload[SENDER_AT] if len(payload) > SENDER_AT else NOBODY
