"""What a daemon says, for people: one line an event, the same facts as the JSON lines of events.py."""

from __future__ import annotations

import time

from .events import DaemonView, Event, Gone, GroupViewed, LedgersMerged, LifeEnded, Noticed, Ready, StateEntered, Status


def to_text(event: Event) -> str:
    r"""A line of a log.

    >>> print(to_text(Noticed(time_ns=0, process="a:1", text="hello"))[24:])
    a  notice: hello
    """
    seconds, nanoseconds = divmod(event.time_ns, 1_000_000_000)
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds)) + f".{nanoseconds // 1_000_000:03d}"
    return f"{stamp} {event.name:<2} {_what(event)}"


def _what(event: Event) -> str:
    if isinstance(event, DaemonView):
        together = " ".join(event.transitional)
        why = "; ".join(filter(None, (event.detail, event.reason)))
        return f"view {event.view} of {' '.join(event.members)}; with us: {together}; {event.cause}: {why}"
    if isinstance(event, StateEntered):
        return f"{event.state}: {event.reason}" + (f" ({event.detail})" if event.detail else "")
    if isinstance(event, Ready):
        return f"ready on {event.address} as {event.process}"
    if isinstance(event, Noticed):
        return f"notice: {event.text}"
    if isinstance(event, Status):
        return f"status: {event.snapshot}"
    if isinstance(event, GroupViewed):
        return f"view {event.view} of {event.group}: {' '.join(event.members)}; {event.cause}: {event.detail}"
    if isinstance(event, LedgersMerged):
        return f"{event.group} has {event.entries} entries, put together from {len(event.sides)} sides"
    return "stopped in good order" if isinstance(event, Gone) else _ended(event)


def _ended(event: LifeEnded) -> str:
    return f"ended without a goodbye ({event.process})"
