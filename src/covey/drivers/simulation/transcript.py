"""Rows of a trace as lines that people read: the transcript of a story."""

from __future__ import annotations

from covey.trace.record import Row

_ASKS = {"join": "asks to join", "leave": "asks to leave"}
_SAYS = {"connect": "is let in", "refused": "is not let in", "disconnect": "is gone", "expelled": "is expelled"}


def tell(row: Row) -> str:
    """One row as a line."""
    head = f"{row.time_ns / 1_000_000:9.2f}  {row.process:<5}"
    return f"{head} {_of_client(row) if row.level == 'C' else _of_daemon(row)}"


def _of_daemon(row: Row) -> str:
    if row.event == "state":
        return f"enters {row.detail}"
    if row.event == "view":
        return f"VIEW {row.view_new} {_set(row.members)} with {_set(row.transitional)}: {row.cause}, {row.detail}"
    if row.event == "transitional":
        return "signal"
    if row.event == "interest":
        return f"{'asks for' if row.cause == 'asked' else 'gives up'} {row.group}"
    if row.event in ("send", "deliver"):
        return f"{row.event}s {row.message} {row.service}" + (f" of {row.size} bytes" if row.size else "")
    return _plainly(row, row.event)


def _of_client(row: Row) -> str:
    if row.event == "view":
        return f"sees {row.group} {_set(row.members)} with {_set(row.transitional)}: {row.cause}"
    if row.event == "transitional":
        return f"signal in {row.group}"
    if row.event == "self_leave":
        return f"has left {row.group}"
    if row.event in _ASKS:
        return _plainly(row, f"{_ASKS[row.event]} {row.group}")
    if row.event in ("send", "deliver", "discard"):
        to = row.detail or f"to {' '.join(row.groups)}"
        return f"{row.event}s {row.message} {row.service} {to}" + (f" of {row.size} bytes" if row.size else "")
    return _plainly(row, _SAYS.get(row.event, row.event))


def _plainly(row: Row, what: str) -> str:
    return what + (f" ({row.cause})" if row.cause else "")


def _set(processes: tuple[str, ...]) -> str:
    return "{" + " ".join(processes) + "}"
