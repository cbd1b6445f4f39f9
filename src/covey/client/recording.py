"""A session that writes down its history: what the program asked, and what the library received for it.

In:        requests and bytes, as `ClientProtocol` takes them; a clock.
Out:       the same events; and rows of level C, in the same order.
Not here:  the columns of a row (trace/client.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import assert_never

from covey.protocol.values import Service
from covey.protocol.wire.session import Discarded, FromDaemon, Policy
from covey.trace.client import ClientRecorder, Place

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
from .options import PLAIN, SendOptions
from .protocol import ClientProtocol
from .routes import Data, Destinations

Clock = Callable[[], tuple[int, int | None]]
"""The time in nanoseconds, and a simulator's step."""


def wall_clock() -> tuple[int, int | None]:
    return time.time_ns(), None


class RecordingProtocol(ClientProtocol):
    """A `ClientProtocol` with a recorder beside it."""

    def __init__(
        self,
        name: str,
        recorder: ClientRecorder,
        priority: int = 1,
        policy: Policy = "disconnect",
        clock: Clock = wall_clock,
        *,
        daemon_timeout_ms: int = 0,
        alive_timeout_ms: int = 0,
        lag_max_ms: int = 0,
    ) -> None:
        super().__init__(
            name,
            priority,
            policy,
            daemon_timeout_ms=daemon_timeout_ms,
            alive_timeout_ms=alive_timeout_ms,
            lag_max_ms=lag_max_ms,
        )
        self._recorder = recorder
        self._clock = clock
        self._early: list[str] = []
        """Joins and leaves before there is a history to write them into."""

    def join(self, group: str) -> None:
        super().join(group)
        self._request("join", group)

    def leave(self, group: str) -> None:
        super().leave(group)
        self._request("leave", group)

    def send(self, groups: Destinations, payload: Data, options: SendOptions = PLAIN) -> int:
        seq = super().send(groups, payload, options)
        self._sent(groups, [payload], seq, options.service)
        return seq

    def send_many(self, groups: Destinations, payloads: Iterable[Data], options: SendOptions = PLAIN) -> int:
        kept = list(payloads)
        seq = super().send_many(groups, kept, options)
        self._sent(groups, kept, seq, options.service)
        return seq

    def bye(self) -> None:
        if self.is_open:
            self._recorder.disconnect("the program left", *self._clock())
        super().bye()

    def _on_word(self, word: FromDaemon) -> list[Event]:
        """Row by row in the order of the stream, whatever came in one read."""
        was_known = self.process is not None
        events = super()._on_word(word)
        if self.process is not None and not was_known:
            self._connected(self.process)
        elif self.refusal and not was_known:
            self._recorder.refused(self.name, self.refusal, *self._clock())
        if isinstance(word, Discarded):
            place = (word.view, word.stamp, word.site, 0)
            self._recorder.discarded(
                word.groups, word.session_seq, word.messages, word.service, place, *self._clock()
            )  # fmt: skip
        if happened := [one for one in events if not isinstance(one, Disconnected)]:
            record_events(self._recorder, happened, *self._clock())
        return events

    def _ended(self, reason: str, lag_bytes: int = 0, lag_seconds: float = 0.0) -> list[Event]:
        events = super()._ended(reason, lag_bytes, lag_seconds)
        if self.process is not None:
            record_events(self._recorder, events, *self._clock())
        return events

    def _connected(self, process: str) -> None:
        self._recorder.connect(process, *self._clock())
        for request in self._early:
            event, _, group = request.partition(" ")
            self._request(event, group)

    def _request(self, event: str, group: str) -> None:
        if self.process is None:
            self._early.append(f"{event} {group}")
        elif event == "join":
            self._recorder.join(group, *self._clock())
        else:
            self._recorder.leave(group, *self._clock())

    def _sent(self, groups: Destinations, payloads: list[Data], seq: int, service: Service) -> None:
        destinations = [groups] if isinstance(groups, str) else list(dict.fromkeys(groups))
        for count, payload in enumerate(payloads):
            self._recorder.send(destinations, bytes(payload), seq + count, service, *self._clock())


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


def _place(order: Order | None) -> Place | None:
    return None if order is None else (order.view, order.stamp, order.site, order.index)
