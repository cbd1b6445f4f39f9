"""What a session is, however it waits: its names, its stream, what was read and not taken.

In:        a plan, and the stream of an open session; another one after a reconnection.
Out:       who we are; the protocol to speak to, or an error that says why there is none.
Not here:  waiting (session.py, blocking.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from covey.errors import CoveyError, ReconnectError, SessionOverError

from .events import Event, Reconnected
from .inbox import Inbox
from .plan import ConnectPlan
from .protocol import WE_LEFT, ClientProtocol
from .stream import Stream
from .watch import Watch


class SessionBase:
    def __init__(self, plan: ConnectPlan, stream: Stream, events: list[Event], address_index: int, now: float) -> None:
        self._plan = plan
        self._inbox = Inbox()
        self._is_final = False
        """There will be no other stream."""
        self._given_up: CoveyError | None = None
        """Why there will be none, though one was looked for."""
        self._adopt(stream, events, address_index, now)

    @property
    def name(self) -> str:
        """Who we are to others: `alice@a`. Private messages to us go there."""
        return self._stream.protocol.name

    @property
    def process(self) -> str:
        """Who we are for ever: `alice@a:7.3`."""
        return self._stream.protocol.process or ""

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups we have asked to be in, in that order."""
        return self._stream.protocol.groups

    @property
    def views(self) -> Mapping[str, str]:
        """The id of the last view of each group, as far as it has been read from the daemon."""
        return self._stream.protocol.views

    @property
    def is_open(self) -> bool:
        """Whether something can be sent now."""
        return self._stream.protocol.is_open and not self._stream.is_over

    def _speak(self) -> ClientProtocol:
        stream = self._stream
        if stream.at_end or stream.is_broken:  # Not `is_over`: this is done for every message.
            raise self._over()
        return stream.protocol

    def _over(self) -> SessionOverError:
        if self._given_up is not None:
            return SessionOverError(f"the session has ended ({self._given_up}): connect again")
        if self._may_reconnect:
            return SessionOverError("the connection is lost: go on reading events, and send again after Reconnected")
        reason = self._stream.protocol.end or (WE_LEFT if self._is_final else "the connection broke")
        return SessionOverError(f"the session has ended ({reason}): connect again")

    def _cut_off(self) -> SessionOverError:
        return SessionOverError("the connection was lost while this waited to be written: send it again")

    def _leave(self) -> bool:
        """Say goodbye; whether we were connected until now."""
        self._is_final = True
        was_open = self.is_open
        self._stream.protocol.bye()
        return was_open

    def _check_left(self, was_open: bool) -> None:
        if was_open and not self._stream.has_said_all:
            raise SessionOverError(
                "we left before the daemon had taken all that was sent: the last messages are lost. "
                "Give `disconnect` a longer timeout where senders are made to wait"
            )

    @contextmanager
    def _unless(self, error: BaseException | None) -> Iterator[None]:
        """Leaving after an error does not hide that error behind one of its own."""
        try:
            yield
        except SessionOverError:
            if error is None:
                raise

    @property
    def _may_reconnect(self) -> bool:
        return self._plan.reconnects and not self._is_final

    def _adopt(self, stream: Stream, events: list[Event], address_index: int, now: float) -> None:
        """An open stream, and what came along with its welcome."""
        self._stream = stream
        self._address_index = address_index
        """Of the address in the plan that we are connected to."""
        self._watch = Watch(self._plan.bounds.daemon_timeout_s, stream.protocol.alive_interval_ms / 1_000, now)
        self._inbox.put(events, 0)

    def _reconnected(self, stream: Stream, events: list[Event], address_index: int, now: float) -> None:
        told: list[Event] = [Reconnected(stream.protocol.process or "", stream.protocol.name)]
        self._adopt(stream, told + events, address_index, now)

    def _not_reconnected(self, error: CoveyError) -> None:
        self._is_final = True
        self._given_up = error

    def _check_given_up(self) -> None:
        """An end that nobody chose is not just an end."""
        if isinstance(self._given_up, ReconnectError):
            raise ReconnectError(str(self._given_up))
        if self._given_up is not None:
            raise self._given_up
