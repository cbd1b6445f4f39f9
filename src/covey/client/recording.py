"""The history of a session, written down: what the program asked, and what the library received for it.

In:        what an observer of a `ClientProtocol` is told (observer.py); a clock.
Out:       rows of level C, in the same order.
Not here:  the columns of a row (trace/client.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import assert_never

from covey.protocol.notices import OwnDiscarded
from covey.trace.client import ClientRecorder, IndexedPlace

from .events import (
    Batch,
    Disconnected,
    Event,
    Failure,
    Message,
    Order,
    Reconnected,
    Reconnecting,
    SelfLeave,
    Single,
    Transitional,
    View,
)
from .options import SendOptions

Clock = Callable[[], tuple[int, int | None]]
"""The time in nanoseconds, and a simulator's step."""
Write = Callable[[str, int, int | None], None]
"""What writes a row about a group."""
Request = tuple[Write, str]


def wall_clock() -> tuple[int, int | None]:
    return time.time_ns(), None


class Recording:
    """An observer that writes each thing down as it happens. One for each session, also where a recorder serves more.

    >>> rows = []
    >>> recording = Recording(ClientRecorder("live", rows.append))
    >>> recording.on_join("room")
    >>> recording.on_open("alice@b:7.3")
    >>> [row.event for row in rows]
    ['connect', 'join']
    """

    def __init__(self, recorder: ClientRecorder, clock: Clock = wall_clock) -> None:
        self._recorder = recorder
        self._clock = clock
        self._is_open = False
        """There is a history, perhaps at its end already."""
        self._early: list[Request] = []
        """Joins and leaves before there is a history to write them into."""

    # --- what the program asks

    def on_join(self, group: str) -> None:
        self._request(self._recorder.join, group)

    def on_leave(self, group: str) -> None:
        self._request(self._recorder.leave, group)

    def on_send(self, first: int, groups: Sequence[str], payloads: Sequence[bytes], options: SendOptions) -> None:
        for seq, payload in enumerate(payloads, first):
            self._recorder.send(groups, payload, seq, options.service, *self._clock())

    def on_bye(self) -> None:
        self._recorder.disconnect("the program left", *self._clock())

    def _request(self, write: Write, group: str) -> None:
        if self._is_open:
            write(group, *self._clock())
        else:
            self._early.append((write, group))

    # --- what the daemon says

    def on_open(self, process: str) -> None:
        self._is_open = True
        self._recorder.connect(process, *self._clock())
        for write, group in self._early:
            write(group, *self._clock())

    def on_refusal(self, name: str, reason: str) -> None:
        self._recorder.refused(name, reason, *self._clock())

    def on_discarded(self, discarded: OwnDiscarded) -> None:
        one, place = discarded, (discarded.view, discarded.stamp, discarded.site, 0)
        self._recorder.discarded(one.groups, one.session_seq, one.messages, one.service, place, *self._clock())

    def on_events(self, events: Sequence[Event]) -> None:
        if events and self._is_open:  # What never began leaves no row but a refusal.
            record_events(self._recorder, events, *self._clock())


def record_events(recorder: ClientRecorder, events: Iterable[Event], time_ns: int, step: int | None = None) -> None:
    """A row for each message and for each other event that traces know."""
    for event in events:
        if isinstance(event, Batch):
            for message in event:
                _record(recorder, message, time_ns, step)
        else:
            _record(recorder, event, time_ns, step)


def _record(
    recorder: ClientRecorder,
    event: Single,
    time_ns: int,
    step: int | None,
) -> None:
    match event:
        case Message(sender=_, groups=groups, payload=payload, service=service, session_seq=seq, process=process):
            recorder.deliver(groups, payload, process, seq, service, _place(event.order), time_ns, step)
        case View():
            recorder.view(
                event.group, event.id, event.rank, event.processes, event.transitional_processes,
                event.cause, event.detail, _place(event.order), time_ns, step,
            )  # fmt: skip
        case Transitional(group=group):
            recorder.transitional(group, time_ns, step)
        case SelfLeave(group=group, order=order):
            recorder.self_leave(group, _place(order), time_ns, step)
        case Disconnected(reason=reason):
            recorder.disconnect(reason, time_ns, step)
        case Failure() | Reconnecting() | Reconnected():
            pass
        case _:
            assert_never(event)


def _place(order: Order | None) -> IndexedPlace | None:
    return None if order is None else (order.view, order.stamp, order.site, order.index)
