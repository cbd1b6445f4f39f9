"""How daemons are, as tables for people."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from covey.drivers.live.told import LiveStatus, RingStatus, ring_of
from covey.protocol.status import OutsiderStatus

from .lines import printable
from .status_text import duration_text, remark, size_text

SESSIONS_SHOWN = 20

LOSSES = ("dropped", "rejected", "refused", "not sent")
"""Words in the names of counters that tell of something that was not done."""


def print_statuses(answers: Mapping[str, LiveStatus | None], silent: Sequence[str] = ()) -> None:
    screen = Console()
    running = {name: answer for name, answer in answers.items() if answer}
    table = _table("daemon", "state", "view", "members", "token", "waiting", "up", "views")
    for name in answers:
        missing = "no answer" if name in silent else "not running"
        table.add_row(name, *(_state(running[name]) if name in running else (missing, *[""] * 6)))
    screen.print(table)
    if running:
        screen.print()
        screen.print(_rates(running))
    if any(answer["clients"]["session_count"] for answer in running.values()):
        screen.print()
        screen.print(_sessions(running))
    for name, answer in running.items():
        screen.print()
        for line in _remarks(name, answer):
            screen.print(line, markup=False, highlight=False)


def _state(answer: LiveStatus) -> tuple[str, ...]:
    ring = ring_of(answer["link"])
    token = "-" if ring is None else f"{ring['token']}{' here' if ring['token_is_here'] else ''}"
    waiting, up = f"{answer['waiting_bytes']:,} B", f"{answer['uptime_s']:g} s"
    view = answer["view"].rpartition(".")[0]
    return (answer["state"], view, " ".join(answer["members"]), token, waiting, up, str(answer["views"]))


def _rates(running: dict[str, LiveStatus]) -> Table:
    """Each a second: on average since the last question, or since the start."""
    table = _table("each second", "delivered", "datagrams out", "in", "bytes out", "in", "rotations", "window")
    for name, answer in running.items():
        counts = [answer["delivered_per_s"], answer["datagrams_sent_per_s"], answer["datagrams_received_per_s"]]
        sizes = [size_text(answer["bytes_sent_per_s"]), size_text(answer["bytes_received_per_s"])]
        table.add_row(name, *(f"{count:,.0f}" for count in counts), *sizes, *_ring(ring_of(answer["link"])))
    return table


def _sessions(running: dict[str, LiveStatus]) -> Table:
    """Programs: those for which most waits come first."""
    table = _table("program", "groups", "delivered", "backlog", "oldest", "policy", "")
    listed = [one for answer in running.values() for one in answer["clients"]["sessions"]]
    for one in sorted(listed, key=lambda one: (-one["backlog_bytes"], one["process"]))[:SESSIONS_SHOWN]:
        oldest = f"{one['lag_ms']:,} ms" if one["backlog_bytes"] else "-"
        row = (f"{one['groups']:,}", f"{one['delivered']:,}", size_text(one["backlog_bytes"]), oldest, one["policy"])
        table.add_row(Text(printable(one["process"].rpartition(":")[0])), *row, remark(one))
    total = sum(answer["clients"]["session_count"] for answer in running.values())
    if total > table.row_count:
        table.add_row(f"and {total - table.row_count:,} more")
    return table


def _ring(ring: RingStatus | None) -> tuple[str, str]:
    """How often the token goes around, and how many packets are kept of those that may be under way."""
    if ring is None:
        return "-", "-"
    return f"{ring['rotations_per_s']:,.0f}", f"{ring['packets_kept']} of {ring['packets_unstable_max']}"


def _remarks(name: str, answer: LiveStatus) -> list[str]:
    """Why it is as it is, and whatever an operator should know."""
    lines = [f"{name}: {answer['state']} because {answer['reason']}", *_last_view(answer), _longest_step(answer)]
    for peer in answer["peers"]:
        if not peer["two_way"]:
            why = peer["gone"] or f"silent for {peer['silent_ms']} ms, or it does not hear us"
            lines.append(f"  {peer['name']} is not connected both ways: {why}")
    if answer["multicast"]:
        lines.append(f"  datagrams for several daemons go to {answer['multicast']}")
    if answer["sending_problem"]:
        lines.append(f"  warning: {answer['sending_problem']}")
    lines += [f"  not merged with {stranger}" for stranger in answer["strangers"]]
    lines += [_outsider(one) for one in answer["outsiders"]]
    lines += [f"  warning: datagrams to {host} are not sealed" for host in answer["unsealed"]]
    losses = [(count, what) for what, count in answer["count"].items() if any(word in what for word in LOSSES)]
    return lines + [f"  {count:>8,} {what}" for count, what in sorted(losses, key=lambda one: (-one[0], one[1]))]


def _outsider(one: OutsiderStatus) -> str:
    """
    >>> _outsider({"datagrams": 3, "silent_ms": 1_240, "text": "127.0.0.1:9: another version"})
    '  3 datagrams, the last 1.2 s ago, from 127.0.0.1:9: another version'
    """
    return f"  {one['datagrams']:,} datagrams, the last {one['silent_ms'] / 1_000:.1f} s ago, from {one['text']}"


def _longest_step(answer: LiveStatus) -> str:
    """
    >>> _longest_step({"longest_step_ms": 12.34, "longest_step_recent_ms": 0.8})
    '  its longest step took 12.3 ms, of late 0.8 ms'
    """
    longest_ms, recent_ms = answer["longest_step_ms"], answer["longest_step_recent_ms"]
    return f"  its longest step took {longest_ms:,.1f} ms, of late {recent_ms:,.1f} ms"


def _last_view(answer: LiveStatus) -> list[str]:
    for view in answer["recent_views"][:1]:
        ago = duration_text((time.time_ns() - view["time_ns"]) / 1_000_000_000)
        about = f" ({view['detail']})" if view["detail"] else ""
        together = " ".join(view["transitional"])
        return [f"  its view is {ago} old, {view['cause']}: {view['reason']}{about}; moved together: {together}"]
    return []


def _table(*columns: str) -> Table:
    return Table(*columns, box=None, pad_edge=False)
