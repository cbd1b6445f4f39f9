"""Do many groups make joining slow? Do many idle sessions make messages slow?

    python bench/sessions.py [ROUNDS]

Two clusters of three daemons run side by side, one with few of them and one with many, and are measured in turn: both
see the same machine. A join is measured from the call to the session's own view; a message from the call to its
arrival back at its sender. Prints medians and their ratio.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

import covey
from covey.client.address import socket_path
from covey.lab.cluster import LocalCluster

DAEMONS = ("a", "b", "c")
FEW_GROUPS, MANY_GROUPS = 10, 10_000
FEW_SESSIONS, MANY_SESSIONS = 10, 1_000
IN_A_ROW = 5
"""Measurements before it is the other cluster's turn."""
PATIENCE_S = 60.0

Measured = Callable[[covey.blocking.Session], float]


@contextmanager
def cluster(stack: ExitStack) -> Iterator[str]:
    """Three daemons; the address of the first."""
    directory = stack.enter_context(tempfile.TemporaryDirectory())
    with LocalCluster(Path(directory), len(DAEMONS), run=Path(directory).name, traced=False) as made:
        made.start(*DAEMONS)
        made.wait_for_view(*DAEMONS)
        yield f"unix:{socket_path(made.cluster.digest(), DAEMONS[0])}"


def with_groups(stack: ExitStack, count: int) -> covey.blocking.Session:
    """A session at a daemon that knows so many groups of somebody else."""
    address = stack.enter_context(cluster(stack))
    filler = stack.enter_context(covey.blocking.connect("filler", address))
    for number in range(count):
        filler.join(f"group{number}")
    joined = 0
    while joined < count:
        joined += isinstance(filler.receive(PATIENCE_S), covey.View)
    return stack.enter_context(covey.blocking.connect("probe", address))


def with_sessions(stack: ExitStack, count: int) -> covey.blocking.Session:
    """A session at a daemon that so many others are connected to."""
    address = stack.enter_context(cluster(stack))
    for number in range(count):
        stack.enter_context(covey.blocking.connect(f"idle{number}", address))
    probe = stack.enter_context(covey.blocking.connect("probe", address))
    probe.join("probe")
    wait_for(probe, covey.View)
    return probe


def wait_for(session: covey.blocking.Session, kind: type) -> None:
    while not isinstance(session.receive(PATIENCE_S), kind):
        pass


def join_us(session: covey.blocking.Session) -> float:
    start = time.perf_counter()
    session.join("probe")
    wait_for(session, covey.View)
    passed = time.perf_counter() - start
    session.leave("probe")
    wait_for(session, covey.SelfLeave)
    return passed * 1e6


def message_us(session: covey.blocking.Session) -> float:
    start = time.perf_counter()
    session.send("probe", b"x" * 100)
    wait_for(session, covey.Message)
    return (time.perf_counter() - start) * 1e6


def compare(few: covey.blocking.Session, many: covey.blocking.Session, measured: Measured, rounds: int) -> list[float]:
    """The medians with few and with many, and the ratio."""
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for session, times in zip((few, many), took, strict=True):
            times += [measured(session) for _ in range(IN_A_ROW)]
    with_few, with_many = map(median, took)
    return [round(with_few, 1), round(with_many, 1), round(with_many / with_few, 3)]


def joins(rounds: int) -> list[float]:
    with ExitStack() as stack:
        return compare(with_groups(stack, FEW_GROUPS), with_groups(stack, MANY_GROUPS), join_us, rounds)


def messages(rounds: int) -> list[float]:
    with ExitStack() as stack:
        return compare(with_sessions(stack, FEW_SESSIONS), with_sessions(stack, MANY_SESSIONS), message_us, rounds)


def told(what: str, few: int, many: int, result: list[float]) -> dict[str, float]:
    names = (f"{what}_us_with_{few}", f"{what}_us_with_{many}", f"{what}_ratio")
    return dict(zip(names, result, strict=True))


def main() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # For us, and for the daemons, which inherit it.
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    groups = told("join", FEW_GROUPS, MANY_GROUPS, joins(rounds))
    print(json.dumps(groups | told("message", FEW_SESSIONS, MANY_SESSIONS, messages(rounds))))


if __name__ == "__main__":
    main()
