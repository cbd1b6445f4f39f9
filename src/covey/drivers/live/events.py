"""What a supervised process says: one JSON object a line, on its standard output. The supervisor reads the same values.

In:        effects of the daemon.  Out: lines, and values from lines.
Not here:  messages (they go to sessions and to the trace), rows (trace/).
"""

from __future__ import annotations

from typing import Any

import msgspec

from covey.cluster import Cluster
from covey.ids import Life
from covey.protocol.effects import Effect, Entered, Installed, Notice
from covey.trace.daemon import process_name


class Said(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """`time_ns` is the wall clock, `process` the life that speaks."""

    time_ns: int
    process: str

    @property
    def name(self) -> str:
        return self.process.rpartition(":")[0]


class Ready(Said, frozen=True, kw_only=True, tag="ready"):
    """The socket is bound; from here on the daemon looks for others."""

    address: str


class DaemonView(Said, frozen=True, kw_only=True, tag="view"):
    """A view was installed. `processes` are its members as lives, `members` by their names."""

    view: str
    previous: str | None
    members: tuple[str, ...]
    transitional: tuple[str, ...]
    processes: tuple[str, ...]
    cause: str
    reason: str
    detail: str = ""
    """Who is gone, and who has come."""


class StateEntered(Said, frozen=True, kw_only=True, tag="state"):
    """Membership entered a state."""

    state: str
    reason: str
    detail: str


class Noticed(Said, frozen=True, kw_only=True, tag="notice"):
    """Something an operator should read."""

    text: str


class Status(Said, frozen=True, kw_only=True, tag="status"):
    """The answer to `status`. `changes` counts everything that happened except datagrams."""

    settled: bool
    changes: int
    delivered: int
    snapshot: dict[str, Any]


class LifeEnded(Said, frozen=True, kw_only=True, tag="ended"):
    """The daemon has stopped living, without a goodbye; its socket stays open until its standard input ends."""


class Gone(Said, frozen=True, kw_only=True, tag="stopped"):
    """The orderly end is done."""


class GroupViewed(Said, frozen=True, kw_only=True, tag="group_view"):
    """A program of the demonstration got a view of a group."""

    group: str
    view: str
    members: tuple[str, ...]
    transitional: tuple[str, ...]
    cause: str
    detail: str


class LedgersMerged(Said, frozen=True, kw_only=True, tag="merged"):
    """A program of the demonstration has put together what each side had: who speaks for whom, with how much."""

    group: str
    view: str
    sides: tuple[tuple[tuple[str, ...], int], ...]
    entries: int


Event = Ready | DaemonView | StateEntered | Noticed | Status | LifeEnded | Gone | GroupViewed | LedgersMerged

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def to_line(event: Event) -> bytes:
    return _encoder.encode(event) + b"\n"


def from_line(line: bytes) -> Event:
    return _decoder.decode(line)


def event_of(effect: Effect, time_ns: int, process: str, cluster: Cluster) -> Event | None:
    """What there is to say of an effect; of most there is nothing."""
    if isinstance(effect, Installed):
        return _view(effect, time_ns, process, cluster)
    if isinstance(effect, Entered):
        return StateEntered(
            time_ns=time_ns,
            process=process,
            state=effect.state.value,
            reason=effect.reason.value,
            detail=effect.detail,
        )
    if isinstance(effect, Notice):
        return Noticed(time_ns=time_ns, process=process, text=effect.text)
    return None


def _view(effect: Installed, time_ns: int, process: str, cluster: Cluster) -> DaemonView:
    def names(lives: tuple[Life, ...]) -> tuple[str, ...]:
        return tuple(cluster.daemons[life.rank].name for life in lives)

    return DaemonView(
        time_ns=time_ns,
        process=process,
        view=str(effect.view),
        previous=None if effect.previous is None else str(effect.previous),
        members=names(effect.members),
        transitional=names(effect.transitional),
        processes=tuple(process_name(cluster, life) for life in effect.members),
        cause=effect.cause,
        reason=effect.reason.value,
        detail=effect.detail,
    )
