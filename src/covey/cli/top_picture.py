"""What `covey top` shows, as values: from what daemons answered to lines of four tables.

In:        the answers of daemons, now and at the last look.
Out:       a `Picture`: the JSON object, and what the screen draws.
Not here:  asking (where.py), drawing (top_screen.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import msgspec

from covey.drivers.live.told import LiveStatus

from .status_text import remark

RECEIVERS_MAX: Final = 100

Answers = Mapping[str, LiveStatus | None]


class DaemonLine(msgspec.Struct, frozen=True):
    """One daemon. Rates are each second, since the last look."""

    name: str
    running: bool
    state: str = "not running"
    working: bool = False
    view: str = ""
    members: tuple[str, ...] = ()
    messages_per_s: float = 0
    bytes_in_per_s: float = 0
    bytes_out_per_s: float = 0
    programs: int = 0
    backlog_bytes: int = 0
    uptime_s: float = 0
    longest_step_recent_ms: float = 0
    reason: str = ""


class ViewLine(msgspec.Struct, frozen=True):
    """A view of daemons: which of them installed it, and who moved into it together."""

    time_ns: int
    view: str
    members: tuple[str, ...]
    transitional: tuple[str, ...]
    cause: str
    reason: str
    at: tuple[str, ...]


class ReceiverLine(msgspec.Struct, frozen=True):
    """One program, and what waits for it."""

    name: str
    groups: int
    messages_per_s: float
    backlog_bytes: int
    lag_ms: int
    policy: str
    remark: str


class Picture(msgspec.Struct, frozen=True):
    """One look at a cluster."""

    time_ns: int
    cluster: str
    daemons: tuple[DaemonLine, ...]
    views: tuple[ViewLine, ...]
    groups: dict[str, int]
    group_count: int
    receivers: tuple[ReceiverLine, ...]
    receiver_count: int


class Look(msgspec.Struct, frozen=True):
    """What was answered when."""

    time_ns: int
    answers: Answers


def picture(now: Look, before: Look | None) -> Picture:
    running = {name: answer for name, answer in now.answers.items() if answer}
    seconds = (now.time_ns - before.time_ns) / 1_000_000_000 if before else 0.0
    then = before.answers if before else {}
    receivers = [line for name, answer in running.items() for line in _receivers(answer, then.get(name), seconds)]
    groups = {group: size for answer in running.values() for group, size in answer["clients"]["groups"].items()}
    return Picture(
        time_ns=now.time_ns,
        cluster=next((answer["cluster"] for answer in running.values()), ""),
        daemons=tuple(_daemon(name, answer, then.get(name), seconds) for name, answer in now.answers.items()),
        views=tuple(_views(running)),
        groups=dict(sorted(groups.items(), key=lambda one: (-one[1], one[0]))),
        group_count=max((answer["clients"]["group_count"] for answer in running.values()), default=0),
        receivers=tuple(sorted(receivers, key=_urgency)[:RECEIVERS_MAX]),
        receiver_count=sum(answer["clients"]["session_count"] for answer in running.values()),
    )


def _urgency(line: ReceiverLine) -> tuple[int, float, str]:
    return -line.backlog_bytes, -line.messages_per_s, line.name


def _daemon(name: str, answer: LiveStatus | None, then: LiveStatus | None, seconds: float) -> DaemonLine:
    if answer is None:
        return DaemonLine(name, running=False)

    numbers = cast("Mapping[str, float]", answer)
    earlier = cast("Mapping[str, float] | None", then)

    def rate(what: str) -> float:
        """Ours, if we have looked before at the same life; else what the daemon has measured itself."""
        if earlier is None or earlier["boot"] != numbers["boot"] or seconds <= 0:
            return float(numbers[f"{what}_per_s"])
        return round((numbers[what] - earlier[what]) / seconds, 1)

    return DaemonLine(
        name=name,
        running=True,
        state=answer["state"],
        working=answer["working"],
        view=answer["view"].rpartition(".")[0],
        members=tuple(answer["members"]),
        messages_per_s=rate("messages"),
        bytes_in_per_s=rate("bytes_received"),
        bytes_out_per_s=rate("bytes_sent"),
        programs=answer["clients"]["session_count"],
        backlog_bytes=answer["clients"]["backlog_bytes"],
        uptime_s=answer["uptime_s"],
        longest_step_recent_ms=answer["longest_step_recent_ms"],
        reason=answer["reason"],
    )


def _receivers(answer: LiveStatus, then: LiveStatus | None, seconds: float) -> list[ReceiverLine]:
    before = {one["process"]: one["delivered"] for one in then["clients"]["sessions"]} if then else {}
    return [
        ReceiverLine(
            name=one["process"].rpartition(":")[0],
            groups=one["groups"],
            messages_per_s=round((one["delivered"] - before[one["process"]]) / seconds, 1)
            if seconds > 0 and one["process"] in before
            else 0.0,
            backlog_bytes=one["backlog_bytes"],
            lag_ms=one["lag_ms"] if one["backlog_bytes"] else 0,
            policy=one["policy"],
            remark=remark(one),
        )
        for one in answer["clients"]["sessions"]
    ]


def _views(running: dict[str, LiveStatus]) -> list[ViewLine]:
    """Latest first; one line for all daemons that came to the same view together."""
    found: dict[tuple[str, tuple[str, ...]], ViewLine] = {}
    for name, answer in running.items():
        for one in answer["recent_views"]:
            key = (one["view"], tuple(one["transitional"]))
            known = found.get(key)
            at = (name,) if known is None else (*known.at, name)
            first = known or ViewLine(
                one["time_ns"], one["view"].rpartition(".")[0], tuple(one["members"]), key[1], one["cause"],
                "; ".join(filter(None, (one["detail"], one["reason"]))), at,
            )  # fmt: skip
            found[key] = msgspec.structs.replace(first, at=at)
    return sorted(found.values(), key=lambda line: (-line.time_ns, line.transitional))
