"""What is measured beside others: workloads, sizes, rounds, and the order of it all.

In:        names and numbers, as somebody asked for them.
Out:       cases (a workload and a size), and for each round whose turn it is.
Not here:  doing it (measure.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

SYSTEMS: Final = ("covey", "corosync", "pyzmq", "zenoh", "nats", "redis")
OURS: Final = "covey"
RECEIVERS: Final = 3
SMALL: Final = 100
ASKED_PER_S: Final = 20_000.0
CALM_PER_S: Final = 500.0
SIZE_MIN: Final = 16
"""A number and a stamp."""


FLAT_OUT: Final = ("messages_per_s", "server_cpu_us")
PACED: Final = ("p50_us", "p99_us", "server_cpu_us")

START_S: Final = {"covey": 1.5, "corosync": 3.5, "pyzmq": 1.0, "zenoh": 1.0, "nats": 2.0, "redis": 2.0}
"""What a turn takes besides sending, rather more than less, on two cores: to start, to receive what waits, to end."""


class PeerWorkload(msgspec.Struct, frozen=True):
    meaning: str
    tells: tuple[str, ...]
    """Figures that tell systems apart, the first one most."""
    senders: int = 1
    rate: float = 0.0
    singly: bool = False
    service: str = "agreed"
    has_sizes: bool = False
    """Measured with every size; the others with small messages."""
    is_idle: bool = False


WORKLOADS: Final = {
    "one-to-three": PeerWorkload("one sender, as fast as it can", FLAT_OUT, has_sizes=True),
    "three-to-three": PeerWorkload("three senders, as fast as they can", FLAT_OUT, senders=3, has_sizes=True),
    "single": PeerWorkload("one sender, one call a message, as fast as it can", FLAT_OUT, singly=True),
    "asked": PeerWorkload(
        "one sender, one call a message, 20,000/s asked for",
        ("p50_us", "messages_per_s", "p99_us", "server_cpu_us"),
        singly=True,
        rate=ASKED_PER_S,
    ),
    "latency": PeerWorkload("one sender, 500/s", PACED, singly=True, rate=CALM_PER_S),
    "safe": PeerWorkload("one sender, 500/s, safe", PACED, singly=True, rate=CALM_PER_S, service="safe"),
    "idle": PeerWorkload("three receivers, nobody sends", ("idle_cpu_percent",), is_idle=True),
}


class PeerCase(NamedTuple):
    workload: str
    size: int

    @property
    def work(self) -> PeerWorkload:
        return WORKLOADS[self.workload]

    def title(self) -> str:
        """
        >>> PeerCase("single", 100).title()
        'single, 100 bytes'
        """
        return self.workload if self.work.is_idle else f"{self.workload}, {self.size:,} bytes"


class PeersPlan(msgspec.Struct, frozen=True, kw_only=True):
    systems: tuple[str, ...] = SYSTEMS
    workloads: tuple[str, ...] = tuple(WORKLOADS)
    sizes: tuple[int, ...] = (100, 1_000, 8_192)
    rounds: int = 7
    seconds: float = 2.0

    def cases(self) -> list[PeerCase]:
        """
        >>> PeersPlan(workloads=("one-to-three", "idle"), sizes=(100, 1000)).cases()[1:]
        [PeerCase(workload='one-to-three', size=1000), PeerCase(workload='idle', size=100)]
        """
        return [
            PeerCase(name, size)
            for name in self.workloads
            for size in (self.sizes if WORKLOADS[name].has_sizes else (SMALL,))
        ]


def turns(cases: Sequence[PeerCase], systems: Sequence[str], rounds: int) -> Iterator[tuple[int, PeerCase, str]]:
    """Round by round, each system once for each case. Who is first changes with the round.

    >>> [system for _, _, system in turns([PeerCase("idle", 100)], ["a", "b"], 2)]
    ['a', 'b', 'b', 'a']
    """
    for number in range(1, rounds + 1):
        first = (number - 1) % len(systems) if systems else 0
        for case in cases:
            for system in (*systems[first:], *systems[:first]):
                yield number, case, system


def problem(plan: PeersPlan) -> str:
    """Why this cannot be measured, or nothing."""
    for what, names, known in (("--systems", plan.systems, SYSTEMS), ("--workloads", plan.workloads, WORKLOADS)):
        wrong = [name for name in names if name not in known]
        if wrong or not names:
            return f"{what} {','.join(wrong)}: write one or several of {','.join(known)}"
        if len(set(names)) < len(names):
            return f"{what} {','.join(names)}: write each once"
    if not plan.sizes or min(plan.sizes) < SIZE_MIN or len(set(plan.sizes)) < len(plan.sizes):
        return f"--sizes: write each once, in bytes, {SIZE_MIN} or more, such as 100,1000,65536"
    return ""
