"""Events of a session as lines for people and as JSON objects.

In:        events.  Out: text of one line each, safe to print whatever others have sent; dicts.
Not here:  which events are shown (tail.py, chat.py).
"""

from __future__ import annotations

import time
import unicodedata
from base64 import b64encode
from typing import Any, Final

from covey.client.events import (
    Disconnected,
    Failure,
    Message,
    Reconnected,
    Reconnecting,
    SelfLeave,
    Single,
    Transitional,
    View,
    name_of,
)
from covey.protocol.values import Service

SHOWN_MAX: Final = 1_000
"""Characters of a message that are shown."""
NAMES_MAX: Final = 20
"""Names that are listed; of the others only the number."""


def printable(text: str) -> str:
    r"""What a terminal may show: no control characters, and nothing that turns text around.

    >>> printable("a\x1b[2Jb\n")
    'a\\x1b[2Jb\\n'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(one) if unicodedata.category(one)[0] == "C" else one for one in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def payload_text(payload: bytes) -> str:
    r"""
    >>> payload_text("grüß".encode()), payload_text(b"\xff\x00")
    ('grüß', '2 bytes: ff 00')
    """
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        more = " …" if len(payload) > 16 else ""
        return f"{len(payload):,} bytes: {payload[:16].hex(' ')}{more}"
    if len(text) > SHOWN_MAX:
        return f"{printable(text[:SHOWN_MAX])} … ({len(payload):,} bytes)"
    return printable(text)


def names_text(names: tuple[str, ...] | list[str]) -> str:
    """
    >>> names_text(["a", "b"]), names_text([])
    ('a b', 'nobody')
    """
    if not names:
        return "nobody"
    more = f" and {len(names) - NAMES_MAX:,} more" if len(names) > NAMES_MAX else ""
    return " ".join(map(printable, names[:NAMES_MAX])) + more


def message_text(message: Message) -> str:
    service = "" if message.service is Service.AGREED else f" [{message.service.name.lower()}]"
    kind = f" [kind {message.kind}]" if message.kind else ""
    return f"{printable(message.sender)}:{service}{kind} {payload_text(message.payload)}"


_CHANGES: Final = {"join": "joined", "leave": "left", "disconnect": "disconnected"}


class Changes:
    """What each view of a group changed, and why. Knows the view before."""

    def __init__(self, me: str) -> None:
        self.me = me
        self._before: dict[str, tuple[str, ...]] = {}

    def forget(self) -> None:
        self._before.clear()

    def text(self, view: View) -> str:
        before = self._before.get(view.group)
        self._before[view.group] = view.processes
        if before is None:
            return f"we are in; here: {names_text(view.members)}"
        if view.cause == "network":
            return self._network(view, before)
        who = printable(name_of(view.detail))
        return f"{who} {_CHANGES.get(view.cause, view.cause)}; here: {names_text(view.members)}"

    def _network(self, view: View, before: tuple[str, ...]) -> str:
        gone = [name_of(one) for one in before if one not in view.processes]
        new = [name_of(one) for one in view.processes if one not in before]
        parts = [f"network: {printable(view.detail)}"]
        parts += [f"gone: {names_text(gone)}"] if gone else []
        parts += [f"new: {names_text(new)}"] if new else []
        return "; ".join([*parts, f"here: {names_text(view.members)}", f"with us: {names_text(view.transitional)}"])


def event_text(event: Single, changes: Changes) -> tuple[str, str]:
    """(the groups it is about, what happened)."""
    match event:
        case Message(groups=groups):
            return " ".join(map(printable, groups)), message_text(event)
        case View(group=group):
            return printable(group), f"* {changes.text(event)}"
        case Transitional(group=group):
            return printable(group), "* the view ends: until the next one, only who moves with us sees the same"
        case SelfLeave(group=group):
            return printable(group), "* we have left"
        case Failure(asked=asked, reason=reason):
            return "", f"* {printable(asked)}: {printable(reason)}"
        case Disconnected(reason=reason):
            return "", f"* disconnected: {printable(reason)}"
        case Reconnecting(reason=reason, seconds=seconds):
            return "", f"* no daemon for {seconds:.0f} s: {printable(reason)}"
        case Reconnected(name=name):
            return "", f"* connected again, as {printable(name)}"


def clock_text(now: float) -> str:
    return f"{time.strftime('%H:%M:%S', time.localtime(now))}.{int(now * 1_000) % 1_000:03d}"


def event_json(event: Single, time_ns: int) -> dict[str, Any]:
    """Text as it is; what is not UTF-8 under `payload_base64`."""
    told: dict[str, Any] = {"kind": _EVENT_NAMES[type(event)], "time_ns": time_ns}
    match event:
        case Message():
            return told | _message_json(event)
        case View():
            fields = ("group", "id", "members", "transitional", "cause", "detail", "processes")
            return told | {field: getattr(event, field) for field in fields}
        case Transitional() | SelfLeave():
            return told | {"group": event.group}
        case Failure():
            return told | {"asked": event.asked, "reason": event.reason}
        case Disconnected():
            return told | {"reason": event.reason, "lag_bytes": event.lag_bytes, "lag_seconds": event.lag_seconds}
        case Reconnecting():
            return told | {"attempt": event.attempt, "reason": event.reason, "seconds": event.seconds}
        case Reconnected():
            return told | {"name": event.name, "process": event.process}


_EVENT_NAMES: Final = {
    Message: "message", View: "view", Transitional: "transitional", SelfLeave: "left", Failure: "failure",
    Disconnected: "disconnected", Reconnecting: "reconnecting", Reconnected: "reconnected",
}  # fmt: skip


def _message_json(message: Message) -> dict[str, Any]:
    try:
        payload = {"payload": message.payload.decode()}
    except UnicodeDecodeError:
        payload = {"payload_base64": b64encode(message.payload).decode()}
    return {
        "sender": message.sender,
        "groups": message.groups,
        "service": message.service.name.lower(),
        "message_kind": message.kind,
        "seq": message.session_seq,
        "process": message.process,
        **payload,
    }
