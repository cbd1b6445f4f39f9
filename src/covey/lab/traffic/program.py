"""One program of a measurement, a process of its own: a sender or a receiver, through the public library.

In:        its task, as one JSON argument; a line on standard input when all are ready.
Out:       "ready" and then its result, each one JSON line on standard output.
Not here:  the cluster, and the judgement of what all programs saw (measure.py); what a receiver checks (seen.py).
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress

import msgspec

from covey.client import blocking
from covey.client.events import Batch, Disconnected, Message, View
from covey.errors import CoveyError, SessionOverError
from covey.lab.helper_streams import say, told
from covey.protocol.values import Policy, Service

from .pattern import Pattern
from .seen import Seen
from .task import GROUP, LAST, TrafficResult, TrafficTask, stamped

CHUNK_BYTES = 400_000
"""What a sender hands over at a time when it sends as fast as it can."""
QUIET_S = 0.2
"""So long nothing may come after the last message."""


def main() -> int:
    task = msgspec.json.decode(sys.argv[1], type=TrafficTask)
    try:
        with blocking.connect(task.name, task.address, policy=policy(task)) as session:
            say(send(session, task) if task.role == "send" else receive(session, task))
            told()
    except CoveyError as error:
        say(TrafficResult(name=task.name, messages=0, seconds=0.0, cpu_seconds=0.0, problem=str(error)))
    return 0


def policy(task: TrafficTask) -> Policy:
    """Without a rate, nobody but the receivers says how fast is too fast: they make the senders wait."""
    return "disconnect" if task.rate else "block"


def send(session: blocking.Session, task: TrafficTask) -> TrafficResult:
    pattern = Pattern(task.size, _together(task))
    say("ready")
    told()
    service, started, busy = Service[task.service.upper()], time.monotonic(), time.process_time()
    paced = task.rate > 0
    sent = _send_paced(session, task, service) if paced else _send_freely(session, task, service, pattern)
    # The last one must come, whatever may become of the others. A flag of its own keeps it out of their bundles.
    last = stamped(task.size) if paced else pattern.payloads(sent + 1, 1)[0]
    session.send(GROUP, last, max(service, Service.RELIABLE), LAST, self_discard=True)
    return TrafficResult(
        name=task.name,
        messages=sent + 1,
        seconds=time.monotonic() - started,
        cpu_seconds=time.process_time() - busy,
    )


def _together(task: TrafficTask) -> int:
    return 1 if task.one_by_one else max(1, CHUNK_BYTES // max(1, task.size))


def _send_freely(session: blocking.Session, task: TrafficTask, service: Service, pattern: Pattern) -> int:
    end, sent, together = time.monotonic() + task.seconds, 0, _together(task)
    while time.monotonic() < end and task.one_by_one:
        session.send(GROUP, pattern.payload(sent + 1), service)
        sent += 1
    while time.monotonic() < end:
        session.send_many(GROUP, pattern.payloads(sent + 1, together), service)
        sent += together
    return sent


def _send_paced(session: blocking.Session, task: TrafficTask, service: Service) -> int:
    start, sent = time.monotonic(), 0
    while (now := time.monotonic()) < start + task.seconds:
        due = start + sent / task.rate
        if now < due:
            time.sleep(due - now)
        session.send(GROUP, stamped(task.size), service)
        sent += 1
    return sent


def receive(session: blocking.Session, task: TrafficTask) -> TrafficResult:
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
    _expect_nothing(session, seen)
    return seen.result()


def _expect_nothing(session: blocking.Session, seen: Seen) -> None:
    """Not even the last message again."""
    with suppress(TimeoutError, SessionOverError):
        while not seen.problem:
            event = session.receive(QUIET_S)
            if isinstance(event, Message):
                seen.take_late(event)


if __name__ == "__main__":
    sys.exit(main())
