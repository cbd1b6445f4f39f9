"""`covey.blocking`: sessions without asyncio, for scripts and threads of your own. One thread at a time uses a session.

In:        the same arguments as `covey.connect`; requests of the program.
Out:       an open `Session`; events, as the program iterates.
Not here:  what is sent and read (stream.py, protocol.py), the same with asyncio (session.py).

Nothing happens between calls: a request returns when it is written, and events are read when they are asked for, or
while a request has to wait, up to `inbox.RECEIVE_BYTES_MAX`.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

from covey.errors import ConnectError, RefusedError
from covey.protocol.values import Service
from covey.protocol.wire.session import Policy
from covey.trace.client import ClientRecorder

from .address import Endpoint, Unix
from .base import SessionBase
from .events import Event, Single
from .plan import TIMEOUT_S, Address, Plan, check_welcome, failed, make_plan, pauses, why_not
from .protocol import ClientProtocol
from .routes import Data, Destinations
from .stream import BUSY_PAUSE_S, READ_BYTES, Stream

Dialled = tuple[Stream, list[Event], int]


def connect(
    name: str,
    address: Address = None,
    *,
    reconnect: bool | None = None,
    priority: int = 1,
    policy: Policy = "disconnect",
    timeout: float = TIMEOUT_S,
    trace: ClientRecorder | None = None,
) -> Session:
    """Connect to a daemon; every argument is that of `covey.connect`.

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
    """
    plan = make_plan(name, address, reconnect, priority, policy, timeout, trace)
    return Session(plan, *_dial(plan))


class Session(SessionBase):
    """An open session. Iterate over it for its events; what is asked and sent keeps its order."""

    # --- requests

    def join(self, group: str) -> None:
        """Ask to be a member. The first `View` of the group tells from where in the stream on we are."""
        self._speak().join(group)
        self._write()

    def leave(self, group: str) -> None:
        """Ask to be no member any more. `SelfLeave` tells from where in the stream on we are not."""
        self._speak().leave(group)
        self._write()

    def send(
        self,
        groups: Destinations,
        payload: Data,
        service: Service = Service.AGREED,
        kind: int = 0,
        self_discard: bool = False,
    ) -> int:
        """Send to a group, to `name@daemon`, or to several of them at once; the number of the message."""
        seq = self._speak().send(groups, payload, service, kind, self_discard)
        self._write()
        return seq

    def send_many(
        self,
        groups: Destinations,
        payloads: Iterable[Data],
        service: Service = Service.AGREED,
        kind: int = 0,
        self_discard: bool = False,
    ) -> int:
        """Send many messages: all or, if one of them is impossible, none; the number of the first."""
        first = self._speak().send_many(groups, payloads, service, kind, self_discard)
        self._write()
        return first

    def disconnect(self, timeout: float | None = None) -> None:
        """Leave in good order, after all that was sent before. Events that were read already can still be taken.

        SessionOverError: within `timeout` seconds, or those given to `connect`, the daemon did not take all of it.
        """
        was_open = self._leave()
        deadline = time.monotonic() + (self._plan.timeout_s if timeout is None else timeout)
        is_written = False
        while not self._stream.at_end and (left := deadline - time.monotonic()) > 0:
            is_written = is_written or self._stream.write()
            self._wait(left, reading=True, writing=not is_written)
        self._stream.close()
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
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            for event in self._inbox.singles():
                return event
            if not self._more(deadline):
                raise self._over()

    def _more(self, deadline: float | None) -> bool:
        """Go on to the next read; False if there will be none."""
        while not self._inbox.advance():
            if not self._stream.at_end:
                self._wait(_left(deadline), reading=True, writing=not self._stream.write())
            elif not self._may_reconnect:
                return False
            else:
                self._reconnect()
        return True

    def _reconnect(self) -> None:
        self._stream.close()
        try:
            dialled = _dial_again(self._plan, self._place + 1)
        except ConnectError as error:
            self._not_reconnected(error)
        else:
            self._reconnected(*dialled)

    # --- the stream

    def _write(self) -> None:
        while not self._stream.at_end and not self._stream.write():
            self._wait(None, reading=not self._inbox.is_full, writing=True)
        if self._stream.is_over:
            raise self._over()

    def _wait(self, timeout: float | None, *, reading: bool, writing: bool) -> None:
        """Until the socket can be read, and is, or can be written."""
        if _poll(self._stream.fileno(), timeout, reading=reading, writing=writing):
            self._inbox.put(*self._stream.read())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._unless(error):
            self.disconnect()


def _left(deadline: float | None) -> float | None:
    """Seconds; TimeoutError when the time is over."""
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left < 0:
        raise TimeoutError("no event came in time")
    return left


def _poll(fileno: int, timeout: float | None, *, reading: bool, writing: bool) -> bool:
    """Whether it can be read, or is at its end."""
    poll = select.poll()
    poll.register(fileno, (select.POLLIN if reading else 0) | (select.POLLOUT if writing else 0))
    ready = poll.poll(None if timeout is None else timeout * 1_000)
    return bool(ready and ready[0][1] & ~select.POLLOUT)


# --- reaching a daemon


def _dial(plan: Plan, first: int = 0) -> Dialled:
    """Try each address once."""
    problems: list[str] = []
    refusals: list[RefusedError] = []
    for place, endpoint in plan.targets(first, problems):
        try:
            return *_dial_one(plan.protocol(), endpoint, plan.timeout_s), place
        except (OSError, ConnectError) as error:
            problems.append(why_not(endpoint, error, plan.timeout_s))
            refusals += [error] if isinstance(error, RefusedError) else []
    raise failed(problems, refusals)


def _dial_again(plan: Plan, first: int) -> Dialled:
    """Try all addresses in turn until one lets us in, for as long as the plan allows."""
    deadline = time.monotonic() + plan.timeout_s
    for pause in pauses():
        try:
            return _dial(plan, first)
        except ConnectError:
            if time.monotonic() + pause > deadline:
                raise
        time.sleep(pause)
    raise AssertionError("pauses never end")


def _dial_one(protocol: ClientProtocol, endpoint: Endpoint, timeout_s: float) -> tuple[Stream, list[Event]]:
    connected = _connected(endpoint, timeout_s)
    try:
        events = _greet(connected, protocol)
        return Stream(connected, protocol), events
    except BaseException:
        connected.close()
        raise


def _connected(endpoint: Endpoint, timeout_s: float) -> socket.socket:
    if not isinstance(endpoint, Unix):
        connected = socket.create_connection(endpoint, timeout_s)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connected
    connecting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    deadline = time.monotonic() + timeout_s
    try:
        connecting.settimeout(timeout_s)
        while not _connects(connecting, endpoint, deadline):
            time.sleep(BUSY_PAUSE_S)
    except BaseException:
        connecting.close()
        raise
    return connecting


def _connects(connecting: socket.socket, endpoint: Unix, deadline: float) -> bool:
    """False if the daemon's queue is full: nothing tells when there is room."""
    try:
        connecting.connect(str(endpoint.path))
    except BlockingIOError:
        if time.monotonic() > deadline:
            raise TimeoutError from None
        return False
    return True


def _greet(connected: socket.socket, protocol: ClientProtocol) -> list[Event]:
    with suppress(BrokenPipeError, ConnectionResetError):  # It may have refused us already, and said why.
        for part in protocol.take(1):
            connected.sendall(part)
    events: list[Event] = []
    while not check_welcome(protocol, events):
        data = connected.recv(READ_BYTES)
        events = protocol.feed(data) if data else protocol.lost("it closed the connection without a word")
    return events
