"""A session of an asyncio program.

In:        an open stream; requests of the program.
Out:       events, as the program iterates; waiting, where the other side is slower.
Not here:  connecting (connection.py, dial.py), the same without asyncio (blocking.py).

A request that has begun is not taken back: cancelling it only ends the waiting. A session belongs to the loop in which
it was opened. When its connection is lost, and the program has taken all events before and waits for the next, a task
begins to look for another daemon.

Bounded: no more than SEND_BYTES_MAX waits to be written when a request returns, and reading stops while
`inbox.RECEIVE_BYTES_MAX` waits for the program. The first request of a turn of the loop is written at once; the others
of that turn travel together at its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from math import inf
from threading import get_ident
from types import TracebackType
from typing import Final, Self

from covey.errors import ConnectError, CoveyError, LocalProtocolError
from covey.protocol.values import Service

from .base import SessionBase
from .dial import Dialled, dial
from .events import Event, Single
from .options import SendOptions
from .plan import ConnectPlan, check_wait
from .routes import Data, Destinations
from .search import Search
from .watch import ALIVE_SHARE

SEND_BYTES_MAX: Final = 256 * 1024


class Session(SessionBase):
    """An open session. Iterate over it for its events; what is asked and sent keeps its order."""

    def __init__(self, plan: ConnectPlan, dialled: Dialled) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        """Of our loop: while it runs, no other does so here. To ask which one does costs a call to the system."""
        super().__init__(plan, *dialled, self._loop.time())
        self._news = asyncio.Event()
        """Something was read, or the stream is at its end."""
        self._room = asyncio.Event()
        """Something was written, or the stream is at its end."""
        self._is_reading = False
        self._is_writing = False
        """The socket was full, and is watched."""
        self._in_turn = False
        """Something was written in this turn of the loop; the rest goes at its end."""
        self._timer: asyncio.TimerHandle | None = None
        """Of the daemon's silence and of our own; set anew when its time has come, not at every read."""
        self._search: asyncio.Task[Dialled | CoveyError] | None = None
        """For another daemon."""
        self._read_on()
        self._set_timer()

    # --- requests

    async def join(self, group: str) -> None:
        """Ask to be a member. The first `View` of the group tells from where in the stream on we are."""
        if get_ident() != self._thread or not self._loop.is_running():
            raise elsewhere()
        self._speak().join(group)
        await self._written()

    async def leave(self, group: str) -> None:
        """Ask to be no member any more. `SelfLeave` tells from where in the stream on we are not."""
        if get_ident() != self._thread or not self._loop.is_running():
            raise elsewhere()
        self._speak().leave(group)
        await self._written()

    async def send(
        self,
        groups: Destinations,
        payload: Data,
        service: Service = Service.AGREED,
        kind: int = 0,
        self_discard: bool = False,
    ) -> int:
        """Send to a group, to `name@daemon`, or to several of them at once; the number of the message."""
        if get_ident() != self._thread or not self._loop.is_running():
            raise elsewhere()
        seq = self._speak().send(groups, payload, SendOptions(service, kind, self_discard))
        await self._written()
        return seq

    async def send_many(
        self,
        groups: Destinations,
        payloads: Iterable[Data],
        service: Service = Service.AGREED,
        kind: int = 0,
        self_discard: bool = False,
    ) -> int:
        """Send many messages: all or, if one of them is impossible, none; the number of the first."""
        if get_ident() != self._thread or not self._loop.is_running():
            raise elsewhere()
        first = self._speak().send_many(groups, payloads, SendOptions(service, kind, self_discard))
        await self._written()
        return first

    async def disconnect(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as in blocking
        """Leave in good order, after all that was sent before. Events that were read already can still be taken.

        SessionOverError: within `timeout` seconds, or those given to `connect`, the daemon did not take all of it.
        """
        if get_ident() != self._thread or not self._loop.is_running():
            raise elsewhere()
        check_wait(timeout)
        was_open = self._leave()
        self._end_search()
        try:
            async with asyncio.timeout(self._plan.timeout_s if timeout is None else timeout):
                await self._say_goodbye()
        except TimeoutError:
            pass  # The daemon does not answer; it will notice that we are gone.
        finally:
            self._close()
        self._check_left(was_open)

    # --- events

    async def __aiter__(self) -> AsyncIterator[Single]:
        self._check_home()
        while True:
            for event in self._inbox.singles():
                yield event
            if not await self._more():
                return

    async def batches(self) -> AsyncIterator[Event]:
        """The same events, but messages in the runs they travelled in: several times cheaper where there are many."""
        self._check_home()
        while True:
            for event in self._inbox.wholes():
                yield event
            if not await self._more():
                return

    async def receive(self, timeout: float | None = None) -> Single:  # noqa: ASYNC109 - as in blocking
        """The next event. TimeoutError if none comes in time, SessionOverError if none will come."""
        self._check_home()
        check_wait(timeout)
        async with asyncio.timeout(timeout):
            while True:
                for event in self._inbox.singles():
                    return event
                if not await self._more():
                    raise self._over()

    def _check_home(self) -> None:
        """A session belongs to the thread and the loop that opened it."""
        if get_ident() != self._thread or not self._loop.is_running():
            raise elsewhere()

    async def _more(self) -> bool:
        """Go on to the next read; False if there will be none."""
        self._check_home()
        if self._inbox.advance():
            self._read_on()
            await asyncio.sleep(0)  # It is others' turn: a busy stream would never let them.
            return True
        while True:
            if not self._stream.at_end:
                if not self._is_reading:  # Asked here: this is done for every message.
                    self._read_on()
            elif not self._may_reconnect:
                self._check_given_up()
                return False
            elif self._found():
                if self._inbox.advance():
                    return True
                continue
            self._news.clear()
            await self._news.wait()
            if self._inbox.advance():
                return True

    # --- another daemon

    def _found(self) -> bool:
        """Whether the search has come to an end; begins one if there is none."""
        if self._search is None:
            self._close()
            self._search = self._loop.create_task(self._redial())
            return False
        if not self._search.done():
            return False
        found, self._search = self._search.result(), None
        if isinstance(found, CoveyError):
            self._not_reconnected(found)
        else:
            self._reconnected(*found, self._loop.time())
            self._read_on()
            self._set_timer()
        return True

    async def _redial(self) -> Dialled | CoveyError:
        """Try all addresses in turn until one lets us in, for as long as the program wants."""
        time = self._loop.time
        search = Search(self._plan.name, self._plan.bounds.reconnect_for_s, time())
        try:
            async with asyncio.timeout(self._plan.bounds.reconnect_for_s):
                while True:
                    try:
                        return await dial(self._plan, self._address_index + 1)
                    except ConnectError as error:
                        if told := search.failed(error, time()):
                            self._inbox.put([told], 0)
                            self._news.set()
                    await asyncio.sleep(search.pause(time()))
        except TimeoutError:
            return search.over(time())
        except CoveyError as error:
            return error
        finally:
            self._news.set()

    def _end_search(self) -> None:
        """We have left. What was found meanwhile is not needed."""
        search, self._search = self._search, None
        if search is None or search.cancel() or search.cancelled() or search.exception() is not None:
            return
        if not isinstance(found := search.result(), CoveyError):
            found.stream.close()

    # --- the stream

    def _read_on(self) -> None:
        if not self._is_reading and not self._stream.at_end and self._inbox.is_low:
            self._is_reading = True
            self._watch.heard_at = self._loop.time()
            self._loop.add_reader(self._stream.fileno(), self._on_readable)

    def _on_readable(self) -> None:
        events, size = self._stream.read()
        self._inbox.put(events, size)
        if size:
            self._watch.heard_at = self._loop.time()
        if self._stream.at_end:
            self._close()
        elif self._inbox.is_full:
            self._is_reading = False
            self._loop.remove_reader(self._stream.fileno())
        if self._stream.protocol.owes_life:
            self._write()
        self._news.set()

    def _set_timer(self) -> None:
        alive_ms = self._stream.protocol.alive_timeout_ms
        ours = self._loop.time() + alive_ms / 1_000 / ALIVE_SHARE if alive_ms else inf
        at = min(self._watch.due, ours)
        if at < inf and not self._stream.at_end:
            self._timer = self._loop.call_at(at, self._on_time, at)

    def _on_time(self, planned: float) -> None:
        now = self._loop.time()
        if not self._is_reading:  # The program takes nothing: we do not hear the daemon, which must hear us.
            self._watch.heard_at = now
            if self._stream.protocol.alive_timeout_ms:
                self._stream.protocol.say_alive()
                self._write()
        elif now >= self._watch.due:
            self._on_readable()
            if not self._stream.at_end and self._watch.is_silent(now, planned):
                self._inbox.put(self._stream.give_up(self._watch.reason), 0)
                self._close()
        self._set_timer()

    async def _written(self) -> None:
        """Until little enough waits."""
        if not self._in_turn:
            self._in_turn = True
            self._write()
            self._loop.call_soon(self._end_turn)
        stream = self._stream
        while stream.waiting_bytes > SEND_BYTES_MAX and not stream.is_over:
            self._room.clear()
            await self._room.wait()
        if stream.at_end or stream.is_broken:
            raise self._over() if stream is self._stream else self._cut_off()

    def _end_turn(self) -> None:
        self._in_turn = False
        if self._stream.waiting_bytes:  # Mostly nothing does: the only message of a turn is written already.
            self._write()
        self._room.set()

    def _write(self) -> None:
        if self._is_writing or self._stream.at_end:
            return
        if not self._stream.write():
            self._is_writing = True
            self._loop.add_writer(self._stream.fileno(), self._on_writable)

    def _on_writable(self) -> None:
        if self._stream.write():
            self._is_writing = False
            self._loop.remove_writer(self._stream.fileno())
        self._room.set()

    async def _say_goodbye(self) -> None:
        self._write()
        while not self._stream.at_end:
            if not self._is_reading:
                self._is_reading = True
                self._loop.add_reader(self._stream.fileno(), self._on_readable)
            self._news.clear()
            await self._news.wait()

    def _close(self) -> None:
        if self._stream.fileno() >= 0:
            self._loop.remove_reader(self._stream.fileno())
            self._loop.remove_writer(self._stream.fileno())
        if self._timer is not None:
            self._timer.cancel()
        self._is_reading = self._is_writing = False
        self._stream.close()
        self._news.set()
        self._room.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._unless(error):
            await self.disconnect()


def elsewhere() -> LocalProtocolError:
    return LocalProtocolError(
        "this session belongs to another event loop, or to another thread: call it through "
        "`asyncio.run_coroutine_threadsafe(session.send(…), loop)`, or open one with `covey.blocking.connect`"
    )
