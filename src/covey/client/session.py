"""A session of an asyncio program.

In:        an open stream; requests of the program.
Out:       events, as the program iterates; waiting, where the other side is slower.
Not here:  connecting (connection.py, dial.py), the same without asyncio (blocking.py).

A request that has begun is not taken back: cancelling it only ends the waiting.

Bounded: no more than SEND_BYTES_MAX waits to be written when a request returns, and reading stops while
`inbox.RECEIVE_BYTES_MAX` waits for the program. The first request of a turn of the loop is written at once; the others
of that turn travel together at its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import Final, Self

from covey.errors import ConnectError
from covey.protocol.values import Service

from .base import SessionBase
from .dial import Dialled, dial_again
from .events import Event, Single
from .plan import Plan
from .routes import Data, Destinations

SEND_BYTES_MAX: Final = 256 * 1024


class Session(SessionBase):
    """An open session. Iterate over it for its events; what is asked and sent keeps its order."""

    def __init__(self, plan: Plan, dialled: Dialled) -> None:
        super().__init__(plan, *dialled)
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        """Something was read, or the stream is at its end."""
        self._room = asyncio.Event()
        """Something was written, or the stream is at its end."""
        self._is_reading = False
        self._is_writing = False
        """The socket was full, and is watched."""
        self._in_turn = False
        """Something was written in this turn of the loop; the rest goes at its end."""
        self._read_on()

    # --- requests

    async def join(self, group: str) -> None:
        """Ask to be a member. The first `View` of the group tells from where in the stream on we are."""
        self._speak().join(group)
        await self._written()

    async def leave(self, group: str) -> None:
        """Ask to be no member any more. `SelfLeave` tells from where in the stream on we are not."""
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
        seq = self._speak().send(groups, payload, service, kind, self_discard)
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
        first = self._speak().send_many(groups, payloads, service, kind, self_discard)
        await self._written()
        return first

    async def disconnect(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as in blocking
        """Leave in good order, after all that was sent before. Events that were read already can still be taken.

        SessionOverError: within `timeout` seconds, or those given to `connect`, the daemon did not take all of it.
        """
        was_open = self._leave()
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
        while True:
            for event in self._inbox.singles():
                yield event
            if not await self._more():
                return

    async def batches(self) -> AsyncIterator[Event]:
        """The same events, but messages in the runs they travelled in: several times cheaper where there are many."""
        while True:
            for event in self._inbox.wholes():
                yield event
            if not await self._more():
                return

    async def receive(self, timeout: float | None = None) -> Single:  # noqa: ASYNC109 - as in blocking
        """The next event. TimeoutError if none comes in time, SessionOverError if none will come."""
        async with asyncio.timeout(timeout):
            while True:
                for event in self._inbox.singles():
                    return event
                if not await self._more():
                    raise self._over()

    async def _more(self) -> bool:
        """Go on to the next read; False if there will be none."""
        if self._inbox.advance():
            self._read_on()
            await asyncio.sleep(0)  # It is others' turn: a busy stream would never let them.
            return True
        while not self._inbox.advance():
            if not self._stream.at_end:
                self._read_on()
                self._news.clear()
                await self._news.wait()
            elif not self._may_reconnect:
                return False
            else:
                await self._reconnect()
        return True

    async def _reconnect(self) -> None:
        self._close()
        try:
            dialled = await dial_again(self._plan, self._place + 1)
        except ConnectError as error:
            self._not_reconnected(error)
        else:
            if self._is_final:  # We have left meanwhile.
                dialled.stream.close()
                return
            self._reconnected(*dialled)
            self._read_on()

    # --- the stream

    def _read_on(self) -> None:
        if not self._is_reading and not self._stream.at_end and self._inbox.is_low:
            self._is_reading = True
            self._loop.add_reader(self._stream.fileno(), self._on_readable)

    def _on_readable(self) -> None:
        self._inbox.put(*self._stream.read())
        if self._stream.at_end:
            self._close()
        elif self._inbox.is_full:
            self._is_reading = False
            self._loop.remove_reader(self._stream.fileno())
        self._news.set()

    async def _written(self) -> None:
        """Until little enough waits."""
        if not self._in_turn:
            self._in_turn = True
            self._loop.call_soon(self._end_turn)
            self._write()
        stream = self._stream
        while stream.waiting_bytes > SEND_BYTES_MAX and not stream.is_over:
            self._room.clear()
            await self._room.wait()
        if stream.is_over:
            raise self._over() if stream is self._stream else self._cut_off()

    def _end_turn(self) -> None:
        self._in_turn = False
        self._write()

    def _write(self) -> None:
        if self._is_writing or self._stream.at_end:
            return
        if not self._stream.write():
            self._is_writing = True
            self._loop.add_writer(self._stream.fileno(), self._on_writable)
        self._room.set()

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
        self._is_reading = self._is_writing = False
        self._stream.close()
        self._news.set()
        self._room.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._unless(error):
            await self.disconnect()
