"""`covey.blocking`: sessions without asyncio, for scripts and threads of your own.

In:        the same arguments as `covey.connect`; requests of the program.
Out:       an open `Session`; events, as the program iterates.
Not here:  what is sent and read (stream.py, protocol.py), the same with asyncio (session.py), threads that work between
           calls (answering.py, searching.py).

One thread reads, any number of threads send. A request returns when it is written, and events are read when they are
asked for, or while a request has to wait, up to `inbox.RECEIVE_BYTES_MAX`.

A thread that waits for events, and for nothing else, waits in the read itself: one call, the system's poll and recv.
Whoever has something to write, or less time than such a read may take, asks the system first which of them it can do.

Invariants:
  T1  stream, protocol and watch are touched, and the inbox is filled, under `_lock` only; nobody waits with it. Only
      `Stream.hear` is called without it, between `begin_wait` and `end_wait`: it touches nothing but the socket
  T2  while a thread waits for events, no other one reads: what that one read would wait for the next bytes to be seen,
      and would overtake what the first has read and not yet shown to the protocol
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from math import inf
from threading import get_ident
from types import TracebackType
from typing import Final, Self, TypeVar, TypeVarTuple

from covey.errors import CoveyError, LocalProtocolError
from covey.protocol.values import Policy, Service
from covey.trace.client import ClientRecorder

from .answering import answer_between_calls
from .base import SessionBase
from .dial_blocking import Dialled, dial
from .events import Event, Reconnecting, Single
from .options import SendOptions
from .plan import DAEMON_TIMEOUT_S, TIMEOUT_S, Address, Bounds, ConnectPlan, check_wait, make_plan
from .protocol import ClientProtocol
from .routes import Data, Destinations, listed
from .searching import Found, Searching, drop
from .stream import HEAR_S, Stream

WAIT_S_MAX: Final = 1_000_000.0
"""More than this, the system does not take at once."""
LOOK_EVERY_S: Final = 1.0
"""Who waits for room looks at least so often whether nobody reads any more, and it has to do so itself."""

Answer = TypeVar("Answer")
Asked = TypeVarTuple("Asked")
"""What a request of the protocol gives, and what it takes."""


def connect(
    name: str,
    address: Address = None,
    *,
    reconnect: bool | None = None,
    reconnect_for: float | None = None,
    priority: int = 1,
    policy: Policy = "disconnect",
    timeout: float = TIMEOUT_S,
    daemon_timeout: float | None = DAEMON_TIMEOUT_S,
    alive_timeout: float | None = None,
    alive_thread: bool = False,
    lag_max: float | None = None,
    trace: ClientRecorder | None = None,
) -> Session:
    """Connect to a daemon; the arguments are those of `covey.connect`, and `alive_thread`.

    Use it with `with`, which leaves in good order, or call `disconnect`:

        import covey

        with covey.blocking.connect("alice") as session:
            session.join("room")
            session.send("room", b"hi", covey.SAFE)
            for event in session:
                match event:
                    case covey.Message(sender=sender, payload=payload):
                        print(sender, "says", payload)
                        break

    One thread may read events while any number of others send; `disconnect` in one of them ends the reading. Nothing
    happens between calls: the silence of the daemon is noticed inside them, and with `alive_timeout` they are what says
    that we live. If your program works for longer than that without a call, `alive_thread=True` lets a thread say it,
    and read meanwhile: then only a process that is stopped as a whole is given up.
    """
    bounds = Bounds(daemon_timeout, alive_timeout, lag_max, reconnect_for)
    plan = make_plan(name, address, reconnect, priority, policy, timeout, bounds, trace)
    return Session(plan, dial(plan), alive_thread)


class Session(SessionBase):
    """An open session. Iterate over it for its events; what is asked and sent keeps its order."""

    def __init__(self, plan: ConnectPlan, dialled: Dialled, alive_thread: bool = False) -> None:
        super().__init__(plan, *dialled, time.monotonic())
        self._lock = threading.RLock()  # A handler of signals may call us while we are called.
        self._asking = False
        """A request is being made and written: a handler of signals must not make another in its middle."""
        self._turn = threading.RLock()
        """Of those who wait for room, one watches the socket."""
        self._reader: int | None = None
        """The thread that waits for events."""
        self._search: Searching | None = None
        self._gone = threading.Event()
        """We have left."""
        if alive_thread:
            answer_between_calls(self, self._gone)

    # --- requests

    def join(self, group: str) -> None:
        """Ask to be a member. The first `View` of the group tells from where in the stream on we are."""
        self._ask(ClientProtocol.join, group)

    def leave(self, group: str) -> None:
        """Ask to be no member any more. `SelfLeave` tells from where in the stream on we are not."""
        self._ask(ClientProtocol.leave, group)

    def send(
        self,
        groups: Destinations,
        payload: Data,
        service: Service = Service.AGREED,
        kind: int = 0,
        self_discard: bool = False,
    ) -> int:
        """Send to a group, to `name@daemon`, or to several of them at once; the number of the message."""
        return self._ask(ClientProtocol.send, groups, payload, SendOptions(service, kind, self_discard))

    def send_many(
        self,
        groups: Destinations,
        payloads: Iterable[Data],
        service: Service = Service.AGREED,
        kind: int = 0,
        self_discard: bool = False,
    ) -> int:
        """Send many messages: all or, if one of them is impossible, none; the number of the first."""
        made = listed(payloads)  # By code of the program, which may take its time: other threads go on.
        return self._ask(ClientProtocol.send_many, groups, made, SendOptions(service, kind, self_discard))

    def disconnect(self, timeout: float | None = None) -> None:
        """Leave in good order, after all that was sent before. Events that were read already can still be taken.

        SessionOverError: within `timeout` seconds, or those given to `connect`, the daemon did not take all of it.
        """
        check_wait(timeout)
        self._gone.set()
        with self._lock:
            stream, was_open = self._stream, self._leave()
            if self._search is not None:
                self._search.stop()
        deadline = time.monotonic() + (self._plan.timeout_s if timeout is None else timeout)
        while not stream.at_end and time.monotonic() < deadline:
            self._wait(stream, deadline, reading=True)
        with self._lock:
            stream.close()
        self._check_left(was_open)

    # --- events

    def __iter__(self) -> Iterator[Single]:
        while True:
            yield from self._inbox.singles()
            if not self._more(None):
                return

    def batches(self) -> Iterator[Event]:
        """The same events, but messages in the runs they travelled in: several times cheaper where there are many."""
        while True:
            yield from self._inbox.wholes()
            if not self._more(None):
                return

    def receive(self, timeout: float | None = None) -> Single:
        """The next event. TimeoutError if none comes in time, SessionOverError if none will come."""
        check_wait(timeout)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            for event in self._inbox.singles():
                return event
            if not self._more(deadline):
                raise self._over()

    def _more(self, deadline: float | None) -> bool:
        """Go on to the next read; False if there will be none."""
        me = get_ident()
        with self._lock:
            if self._reader is not None and self._reader != me:
                raise LocalProtocolError(
                    "another thread waits for the events of this session: let one thread read, and give the others "
                    "what they need through a queue; any thread may send"
                )
            if self._inbox.advance():
                return True
            outer, self._reader = self._reader, me  # We may be a handler of signals inside ourselves.
        try:
            return self._waited(inf if deadline is None else deadline)
        finally:
            self._reader = outer

    def _waited(self, deadline: float) -> bool:
        """Whether there is something to take now."""
        while True:
            stream = self._stream
            if not stream.at_end:
                self._hear(stream, deadline)
            elif self._may_reconnect:
                self._look_for_another(deadline)
            else:
                self._check_given_up()
                return False
            with self._lock:
                if self._inbox.advance():
                    return True
            if time.monotonic() >= deadline:
                raise TimeoutError("no event came in time")

    # --- another daemon

    def _look_for_another(self, deadline: float) -> None:
        with self._lock:
            if not self._may_reconnect:
                return
            self._stream.close()
            search = self._search = self._search or Searching(self._plan, self._address_index + 1)
        found = search.next(None if deadline == inf else max(0.0, deadline - time.monotonic()))
        with self._lock:
            self._on_found(found)

    def _on_found(self, found: Found) -> None:
        if self._is_final:  # We have left meanwhile.
            drop(found)
        elif isinstance(found, Reconnecting):
            self._inbox.put([found], 0)
        elif isinstance(found, CoveyError):
            self._not_reconnected(found)
        elif isinstance(found, Exception):
            self._search = None
            raise found
        elif found is not None:
            self._search = None
            self._reconnected(*found, time.monotonic())

    # --- the stream

    def _ask(self, request: Callable[[ClientProtocol, *Asked], Answer], *asked: *Asked) -> Answer:
        """What the protocol answers to a request, which is written when this returns; SessionOverError if it cannot."""
        with self._lock:
            if self._asking:
                raise LocalProtocolError(
                    "a handler of signals asks for something while its thread does: let it set a flag, and send when "
                    "the call that it interrupted has returned"
                )
            self._asking = True
            try:
                stream, answer, emptied = self._request(request, *asked)
            finally:
                self._asking = False
        if stream.emptied == emptied:
            self._written(stream, emptied)
        return answer

    def _request(
        self, request: Callable[[ClientProtocol, *Asked], Answer], *asked: *Asked
    ) -> tuple[Stream, Answer, int]:
        """The stream that it was written to, what was answered, and how often that stream had been emptied before."""
        stream, watch = self._stream, self._watch
        if watch.interval_s and time.monotonic() - watch.heard_at > watch.interval_s:
            self._look(stream, watch.due)
        if stream.at_end or stream.is_broken:  # Not `is_over`: this is done for every message.
            raise self._over()
        answer = request(stream.protocol, *asked)
        emptied = stream.emptied
        stream.write()
        return stream, answer, emptied

    def _written(self, stream: Stream, asked: int) -> None:
        """Until all that was asked for then is written."""
        with self._turn:
            while stream.emptied == asked and not stream.is_over:
                self._wait(stream, inf, reading=False)
        if stream.is_over:
            raise self._over() if stream is self._stream else self._cut_off()

    def _hear(self, stream: Stream, deadline: float) -> None:
        """Until something comes, and is read, or it is time to look; the thread is the one that waits for events."""
        with self._lock:
            watch = self._watch
            time_s = min(deadline, watch.heard_at + watch.timeout_s) - time.monotonic()
            only_listens = time_s > HEAR_S and not stream.unsent and not stream.at_end
            if only_listens:
                stream.begin_wait()
        if not only_listens:
            self._wait(stream, deadline, reading=True)
            return
        error = None
        try:
            error = stream.hear()
        finally:
            with self._lock:
                if error is not None:
                    self._put(stream, stream.heard(error), 0)
                elif stream.has_early:
                    self._take(stream)
                stream.end_wait()

    def _wait(self, stream: Stream, deadline: float, *, reading: bool) -> None:
        """Until the socket can be read, and is, or can be written, and is; no longer than the deadline."""
        with self._lock:
            if stream.at_end:
                return
            writing = stream.has_to_write and not stream.write()
            if not writing and not reading:
                return
            hears = self._may_read()
            planned = min(
                deadline, self._watch.due if hears else inf, inf if reading else time.monotonic() + LOOK_EVERY_S
            )
            stream.begin_wait()
            fileno = stream.fileno()
        is_readable = False
        try:
            is_readable = _poll(fileno, planned, reading=reading or hears, writing=writing)
        finally:
            with self._lock:
                stream.end_wait()
                if stream is self._stream and (is_readable or time.monotonic() >= self._watch.due):
                    self._look(stream, planned)

    def _may_read(self) -> bool:
        """Whoever waits for events reads; without one, whoever waits for room, as long as the inbox takes more.

        Where it does not, somebody still has to look from time to time whether the daemon is there.
        """
        if self._reader is None:
            return self._is_final or not self._inbox.is_full or time.monotonic() >= self._watch.due
        return self._reader == get_ident()

    def _look(self, stream: Stream, planned: float) -> None:
        """Read what is there. Where nothing is, and has not been for too long, the daemon is given up."""
        if not self._may_read() or self._take(stream) or stream.is_over:
            return
        if self._watch.is_silent(time.monotonic(), planned):
            self._inbox.put(stream.give_up(self._watch.reason), 0)
            stream.close()

    def _take(self, stream: Stream) -> int:
        """Read once; how many bytes."""
        events, size = stream.read()
        self._put(stream, events, size)
        return size

    def _put(self, stream: Stream, events: list[Event], size: int) -> None:
        """What was read; answer if we are asked whether we live."""
        self._inbox.put(events, size)
        if size:
            self._watch.heard_at = time.monotonic()
            if stream.protocol.owes_life:
                stream.write()

    def _answer(self) -> None:
        """Between calls, for a program whose thread says that it lives."""
        with self._lock:
            stream = self._stream
            if self._reader is not None or stream.at_end:
                return
            if self._inbox.is_full:
                stream.protocol.say_alive()
            else:
                self._take(stream)
            stream.write()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._unless(error):
            self.disconnect()


def _poll(fileno: int, until: float, *, reading: bool, writing: bool) -> bool:
    """Whether it can be read, or is at its end."""
    poll = select.poll()
    poll.register(fileno, (select.POLLIN if reading else 0) | (select.POLLOUT if writing else 0))
    wait_s = min(max(0.0, until - time.monotonic()), WAIT_S_MAX)
    ready = poll.poll(None if until == inf else wait_s * 1_000)
    return bool(ready and ready[0][1] & ~select.POLLOUT)
