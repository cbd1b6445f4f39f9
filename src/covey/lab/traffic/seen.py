"""What one receiver of a measurement has seen, and whether it is what was sent.

In:        batches, as they come.
Out:       the count, the time, the digest of the order; the first problem.
Not here:  receiving (program.py), comparing receivers with one another (measure.py).

Every message must be the next of its sender and hold what its number says; of unreliable ones some may be missing.
"""

from __future__ import annotations

import hashlib
import time

from covey.client.events import Batch, Message
from covey.protocol.values import Service

from .pattern import Pattern
from .task import LAST, STAMP_BYTES, TrafficResult, TrafficTask, stamped

TOGETHER = 4_000
"""More messages than this in one batch are compared one by one."""


class Seen:
    def __init__(self, task: TrafficTask) -> None:
        self._task = task
        self._may_miss = Service[task.service.upper()] is Service.UNRELIABLE
        self._pattern = Pattern(task.size, TOGETHER)
        self._filler = stamped(task.size)[STAMP_BYTES:]
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
        """Everybody's last message has come."""
        return len(self._over) == self._task.senders or bool(self.problem)

    def take(self, batch: Batch) -> None:
        now_ns = time.monotonic_ns()
        if not self._messages:
            self._first, self._busy = now_ns / 1e9, time.process_time()
        self._last = now_ns / 1e9
        payloads = batch.payloads()
        self._check_number(batch)
        self._check_content(batch, payloads)
        self._next[batch.process] = batch.session_seq + len(payloads)
        self._messages += len(payloads)
        self._order.update(f"{batch.process} {batch.session_seq} {len(payloads)}\n".encode())
        if self._task.rate:
            self._latencies += [(now_ns - int.from_bytes(one[:STAMP_BYTES], "little")) // 1_000 for one in payloads]
        if len(payloads) == 1 and any(message.kind == LAST for message in batch):
            self._over.add(batch.process)

    def take_late(self, message: Message) -> None:
        """It came when everybody's last message had come."""
        if not self._may_miss:
            self._note(f"message {message.session_seq} of {message.process} came after its last one")

    def _check_number(self, batch: Batch) -> None:
        expected = self._next.get(batch.process, 1)
        if batch.session_seq != expected and not self._may_miss:
            self._note(f"message {batch.session_seq} of {batch.process} came instead of {expected}")

    def _check_content(self, batch: Batch, payloads: list[bytes]) -> None:
        if self._task.rate:
            is_right = all(len(one) == self._task.size and one[STAMP_BYTES:] == self._filler for one in payloads)
        else:
            is_right = payloads == self._pattern.payloads(batch.session_seq, len(payloads))
        if not is_right:
            self._note(f"of messages {batch.session_seq} and on of {batch.process}, not all hold what was sent")

    def _note(self, problem: str) -> None:
        self.problem = self.problem or problem

    def result(self) -> TrafficResult:
        return TrafficResult(
            name=self._task.name,
            messages=self._messages,
            seconds=self._last - self._first,
            cpu_seconds=time.process_time() - self._busy,
            order=self._order.hexdigest(),
            problem=self.problem,
            latencies_us=self._latencies,
        )
