"""How a program wants to be connected: under which name, to which daemons, how long to try.

In:        the arguments of `connect`, checked here.
Out:       the protocol of a new session, and what to try in which order; what to say when nothing worked.
Not here:  sockets (dial.py, blocking.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from typing import Final, NamedTuple, TypedDict

from covey.errors import ArgumentError, ConnectError, RefusedError
from covey.protocol.values import Policy
from covey.trace.client import ClientRecorder

from .address import FORMS, Endpoint, endpoints
from .events import Disconnected, Event
from .protocol import ClientProtocol
from .recording import Recording

TIMEOUT_S: Final = 5.0
DAEMON_TIMEOUT_S: Final = 5.0
SECONDS_MAX: Final = 1e9
"""Longer than anybody waits, and short enough for every clock."""
ADDRESSES_MAX: Final = 100

Address = str | Sequence[str] | None


class HelloTimes(TypedDict):
    """The words of HELLO about time."""

    daemon_timeout_ms: int
    alive_timeout_ms: int
    lag_max_ms: int


class Bounds(NamedTuple):
    """How long is too long, in seconds; None: nothing is."""

    daemon_timeout_s: float | None = None
    """The daemon is silent."""
    alive_timeout_s: float | None = None
    """We are silent."""
    lag_max_s: float | None = None
    """Something waits for us."""
    reconnect_for_s: float | None = None
    """No daemon lets us in again."""

    def told(self) -> HelloTimes:
        """What a daemon has to know, in its words.

        >>> Bounds(daemon_timeout_s=5.0).told()
        {'daemon_timeout_ms': 5000, 'alive_timeout_ms': 0, 'lag_max_ms': 0}
        """
        return HelloTimes(
            daemon_timeout_ms=_ms(self.daemon_timeout_s),
            alive_timeout_ms=_ms(self.alive_timeout_s),
            lag_max_ms=_ms(self.lag_max_s),
        )


def _ms(seconds: float | None) -> int:
    return 0 if seconds is None else max(1, round(seconds * 1_000))


class ConnectPlan(NamedTuple):
    """The arguments of `connect`."""

    name: str
    addresses: tuple[str | None, ...]
    reconnects: bool
    """When the connection is lost, go on to the next address."""
    priority: int
    policy: Policy
    timeout_s: float
    """How long one daemon may take to let us in."""
    bounds: Bounds
    recorder: ClientRecorder | None

    def protocol(self) -> ClientProtocol:
        """The protocol of a new session, with an observer of its own if it is to be recorded."""
        observer = None if self.recorder is None else Recording(self.recorder)
        return ClientProtocol(self.name, self.priority, self.policy, observer=observer, **self.bounds.told())

    def targets(self, first: int, problems: list[str]) -> Iterator[tuple[int, Endpoint]]:
        """(index in the list, endpoint) of all addresses, from `first` around; those that name nothing are problems."""
        count = len(self.addresses)
        for at in (number % count for number in range(first, first + count)):
            try:
                yield from ((at, endpoint) for endpoint in endpoints(self.addresses[at]))
            except ConnectError as error:
                problems.append(str(error))


def make_plan(
    name: str,
    address: Address,
    reconnect: bool | None,
    priority: int,
    policy: Policy,
    timeout_s: float,
    bounds: Bounds,
    recorder: ClientRecorder | None,
) -> ConnectPlan:
    _check_seconds("timeout", timeout_s, "write the seconds that a daemon may take to answer")
    _check_bounds(bounds)
    addresses = _checked_addresses(address)
    is_list = not (address is None or isinstance(address, str))
    reconnects = is_list if reconnect is None else reconnect
    plan = ConnectPlan(name, addresses, reconnects, priority, policy, timeout_s, bounds, recorder)
    plan.protocol()
    return plan


_REMEDIES: Final = {
    "daemon_timeout": "write the seconds of silence after which the daemon is given up, or None for never",
    "alive_timeout": "write the seconds of our silence after which the daemon gives us up, or None for never",
    "lag_max": "write the seconds that something may wait for us before the daemon ends us, or None for any time",
    "reconnect_for": "write the seconds for which another daemon is looked for, or None for ever",
}


def _check_bounds(bounds: Bounds) -> None:
    for (name, remedy), seconds in zip(_REMEDIES.items(), bounds, strict=True):
        if seconds is not None:
            _check_seconds(name, seconds, remedy)


def _check_seconds(name: str, seconds: object, remedy: str) -> None:
    if not isinstance(seconds, int | float) or not 0 < seconds <= SECONDS_MAX:
        raise ArgumentError(f"{name} is {seconds!r}: {remedy}")


def check_wait(seconds: object) -> None:
    """Any number of seconds that is one: less than none is no wait, more than anybody waits is for ever."""
    if seconds is not None and (not isinstance(seconds, int | float) or isnan(seconds)):
        raise ArgumentError(f"timeout is {seconds!r}: write the seconds to wait at most, or None")


def _checked_addresses(address: object) -> tuple[str | None, ...]:
    if address is None or isinstance(address, str):
        return (address,)
    if not isinstance(address, Sequence) or not all(isinstance(one, str) for one in address):
        raise ArgumentError(f"address is {address!r}: {FORMS}, or a list of them")
    if not 0 < len(address) <= ADDRESSES_MAX:
        raise ArgumentError(f"there are {len(address)} addresses: write 1 to {ADDRESSES_MAX}, or None")
    return tuple(address)


def check_welcome(protocol: ClientProtocol, events: list[Event]) -> bool:
    """Whether the daemon has let us in; False if it has not said yet."""
    if protocol.refusal:
        raise RefusedError(protocol.refusal)
    if events and isinstance(events[-1], Disconnected) and protocol.process is None:
        raise ConnectError(events[-1].reason)
    return protocol.process is not None


def why_not(endpoint: Endpoint, error: Exception, timeout_s: float) -> str:
    if isinstance(error, TimeoutError):
        return f"{endpoint} did not answer within {timeout_s:g} s"
    if isinstance(error, ConnectionRefusedError | FileNotFoundError):
        return f"nobody listens at {endpoint}"
    return f"{endpoint}: {error.strerror if isinstance(error, OSError) and error.strerror else error}"


def failed(problems: list[str], refusals: list[RefusedError]) -> ConnectError:
    """The error that tells about all attempts."""
    if len(problems) == 1 and refusals:
        return RefusedError(problems[0])
    told = "; ".join(dict.fromkeys(problems))
    if "covey up" in told:
        return ConnectError(told)
    return ConnectError(f"no daemon lets us in: {told}. If none runs, start some with `covey up`")
