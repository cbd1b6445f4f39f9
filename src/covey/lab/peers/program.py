"""One program beside others, a process of its own: a sender or a receiver of any system.

In:        its task, as one JSON argument; a line on standard input when all are ready.
Out:       "ready" and then its result, each one JSON line on standard output.
Not here:  the system's calls (systems/), what is sent (content.py), what is checked (audit.py).
"""

from __future__ import annotations

import sys
import time

import msgspec

from covey.lab.helper_streams import say, told
from covey.lab.traffic.task import TrafficResult

from .audit import Audit
from .content import Source
from .system import system_named
from .task import PeerTask


def main() -> int:
    task = msgspec.json.decode(sys.argv[1], type=PeerTask)
    if task.role == "send":
        send(task)
    else:
        receive(task)
    return 0


def send(task: PeerTask) -> None:
    source = Source(task)
    with system_named(task.system).sending(task) as end:
        say("ready")
        told()
        started, busy = time.monotonic(), time.process_time()
        if task.singly:
            end.send_singles(source.singles())
        else:
            end.send_chunks(source.chunks())
        seconds, cpu_seconds = time.monotonic() - started, time.process_time() - busy
        say(TrafficResult(name=task.name, messages=source.sent, seconds=seconds, cpu_seconds=cpu_seconds))
        told()  # Until everybody has everything.


def receive(task: PeerTask) -> None:
    audit = Audit(task)
    with system_named(task.system).receiving(task, audit) as end:
        say("ready")
        end.receive(audit)
        say(audit.result())
        told()


if __name__ == "__main__":
    sys.exit(main())
