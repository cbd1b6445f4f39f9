"""One simulated daemon: a pure daemon with its own clocks, an inbox, and the power to be paused or crashed."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from covey.cluster import Cluster
from covey.config import Settings
from covey.ids import Instant, Life
from covey.protocol.boundary import OrderingEngine
from covey.protocol.building import build_daemon
from covey.protocol.daemon import Daemon
from covey.protocol.inputs import Datagram, Input
from covey.protocol.portions import PORTIONS, Portions
from covey.trace.daemon import DaemonRecorder

INBOX_MAX = 400
"""Datagrams a paused daemon's socket buffer holds; more are lost."""


@dataclass(slots=True)
class Clocks:
    """How a daemon's own time relates to the world's. All in microseconds; drift in parts per million."""

    mono_offset: int
    drift_ppm: int
    wall_offset: int

    def at(self, world: int) -> Instant:
        mono = self.mono_offset + world + world * self.drift_ppm // 1_000_000
        return Instant(mono, world + self.wall_offset)

    def world_time(self, mono: int) -> int:
        """The first moment of the world at which this daemon's clock shows `mono`."""
        passed = (mono - self.mono_offset) * 1_000_000 // (1_000_000 + self.drift_ppm)
        while self.mono_offset + passed + passed * self.drift_ppm // 1_000_000 < mono:
            passed += 1
        return passed


class Death(Enum):
    """Which datagrams of its last step a daemon still sends."""

    SOME_ARRIVE = "some"
    NO_DATA_ARRIVES = "no data"


@dataclass(slots=True)
class Node:
    rank: int
    life: Life
    core: Daemon[OrderingEngine]
    recorder: DaemonRecorder
    clocks: Clocks
    inbox: list[Input] = field(default_factory=list)
    alive: bool = True
    paused: bool = False
    dying: Death | None = None
    """The next step that sends data ends in a crash."""
    step_at: int | None = None
    owed: set[tuple[int, int]] = field(default_factory=set)
    """Submissions, by session and sequence, that were given to it and have not been stamped or refused yet."""

    def take(self, one: Input, reliable: bool = False) -> bool:
        """False if it is lost. A reliable link keeps what its daemon does not read."""
        if self.paused and isinstance(one, Datagram) and not reliable and len(self.inbox) >= INBOX_MAX:
            return False
        self.inbox.append(one)
        return True


def make_node(
    cluster: Cluster,
    settings: Settings,
    life: Life,
    clocks: Clocks,
    recorder: DaemonRecorder,
    now: int,
    seed: int,
    portions: Portions = PORTIONS,
) -> Node:
    core = build_daemon(cluster, life, settings, clocks.at(now), seed, portions=portions)
    return Node(life.rank, life, core, recorder, clocks)
