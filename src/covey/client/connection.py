"""`covey.connect`: the door for asyncio programs.

In:        a name, where to find a daemon, how to be treated.
Out:       an open `Session`.
Not here:  what a session does (session.py), the same without asyncio (blocking.py).
"""

from __future__ import annotations

from collections.abc import Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from covey.errors import ArgumentError
from covey.protocol.values import Policy
from covey.trace.client import ClientRecorder

from .dial import dial
from .plan import DAEMON_TIMEOUT_S, TIMEOUT_S, Address, Bounds, ConnectPlan, make_plan
from .session import Session


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
    lag_max: float | None = None,
    trace: ClientRecorder | None = None,
) -> Connecting:
    """Connect to a daemon under a name that is unique there.

    Use it with `async with`, which leaves in good order, or await it:

        import asyncio, covey

        async def main() -> None:
            async with covey.connect("alice") as session:
                await session.join("room")
                await session.send("room", b"hi", covey.SAFE)
                async for event in session:
                    match event:
                        case covey.View(members=members):
                            print("in the room:", *members)
                        case covey.Message(sender=sender, payload=payload):
                            print(sender, "says", payload)
                            break

        asyncio.run(main())

    `address` is `unix:/path`, `tcp://host:port` or the name of a daemon. Without one it is COVEY_ADDRESS, or a daemon
    of the `covey.toml` here or above, or of the only cluster that runs here. With a list, the first that lets us in
    counts.

    `timeout` is how many seconds one daemon may take to let us in: 5 by default.

    `reconnect` says whether to go on when the connection is lost: `Disconnected` comes, then another daemon is looked
    for among the addresses, then `Reconnected` comes: a new session, in no group. Unless told, that is so for a list.
    While the search lasts, a `Reconnecting` comes now and then. It goes on for `reconnect_for` seconds, or for ever;
    when they are over, iterating and `receive` raise `ReconnectError`.

    `daemon_timeout` is how many seconds the daemon may be silent before it is given up, which ends the connection:
    5 by default, None for ever. Daemons say something often enough. `alive_timeout` is the same the other way round:
    if our event loop does not answer for so many seconds, the daemon takes us out of our groups. Without one, only the
    daemon's configuration can ask for that.

    `priority` orders sessions of one daemon against each other: 0 goes first, 2 last. `policy` says what happens when
    this session reads too slowly: "disconnect" it, or "block" the senders of its groups for a while. `lag_max` ends it
    when something has waited for it for so many seconds. `trace` records the history of the session.

    ConnectError: no daemon was reached. RefusedError: it was, and said no, for instance because the name is taken.
    """
    bounds = Bounds(daemon_timeout, alive_timeout, lag_max, reconnect_for)
    return Connecting(make_plan(name, address, reconnect, priority, policy, timeout, bounds, trace))


FIRST: Final = "write `async with covey.connect(…) as session:`, or `session = await covey.connect(…)`"


class Connecting:
    """What `connect` gives: await it, or enter it with `async with`, once."""

    def __init__(self, plan: ConnectPlan) -> None:
        self._plan = plan
        self._session: Session | None = None

    def __await__(self) -> Generator[Any, None, Session]:
        return self._open().__await__()

    async def __aenter__(self) -> Session:
        self._session = await self._open()
        return self._session

    async def __aexit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.__aexit__(error_type, error, traceback)

    # What people write who forget a word. Type checkers know it by themselves.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if hasattr(Session, name):
                raise AttributeError(f"not connected yet, so there is no {name!r}: {FIRST}")
            raise AttributeError(f"'Connecting' object has no attribute {name!r}")

        def __enter__(self) -> NoReturn:
            raise ArgumentError(f"{FIRST}; without asyncio, `with covey.blocking.connect(…) as session:`")

        def __exit__(self, *_: object) -> None: ...

    async def _open(self) -> Session:
        return Session(self._plan, await dial(self._plan))
