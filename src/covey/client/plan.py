"""How a program wants to be connected: under which name, to which daemons, how long to try.

In:        the arguments of `connect`, checked here.
Out:       the protocol of a new session, and what to try in which order; what to say when nothing worked.
Not here:  sockets (dial.py, blocking.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Final, NamedTuple

from covey.errors import ArgumentError, ConnectError, RefusedError
from covey.protocol.wire.session import Policy
from covey.trace.client import ClientRecorder

from .address import FORMS, Endpoint, endpoints
from .events import Disconnected, Event
from .protocol import ClientProtocol
from .recording import RecordingProtocol

TIMEOUT_S: Final = 5.0
PAUSE_FIRST_S: Final = 0.05
PAUSE_MAX_S: Final = 1.0
ADDRESSES_MAX: Final = 100

Address = str | Sequence[str] | None


class Plan(NamedTuple):
    """The arguments of `connect`."""

    name: str
    addresses: tuple[str | None, ...]
    reconnects: bool
    """When the connection is lost, go on to the next address."""
    priority: int
    policy: Policy
    timeout_s: float
    """How long one daemon may take to let us in, and how long to look for another one."""
    recorder: ClientRecorder | None

    def protocol(self) -> ClientProtocol:
        if self.recorder is None:
            return ClientProtocol(self.name, self.priority, self.policy)
        return RecordingProtocol(self.name, self.recorder, self.priority, self.policy)

    def targets(self, first: int, problems: list[str]) -> Iterator[tuple[int, Endpoint]]:
        """(place in the list, endpoint) of all addresses, from `first` around; those that name nothing are problems."""
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
    recorder: ClientRecorder | None,
) -> Plan:
    _check_timeout(timeout_s)
    addresses = _checked_addresses(address)
    is_list = not (address is None or isinstance(address, str))
    reconnects = is_list if reconnect is None else reconnect
    plan = Plan(name, addresses, reconnects, priority, policy, timeout_s, recorder)
    plan.protocol()
    return plan


def _check_timeout(timeout_s: object) -> None:
    if not isinstance(timeout_s, int | float) or not 0 < timeout_s < inf:
        raise ArgumentError(f"timeout is {timeout_s!r}: write the seconds that a daemon may take to answer")


def _checked_addresses(address: object) -> tuple[str | None, ...]:
    if address is None or isinstance(address, str):
        return (address,)
    if not isinstance(address, Sequence) or not all(isinstance(one, str) for one in address):
        raise ArgumentError(f"address is {address!r}: {FORMS}, or a list of them")
    if not 0 < len(address) <= ADDRESSES_MAX:
        raise ArgumentError(f"there are {len(address)} addresses: write 1 to {ADDRESSES_MAX}, or None")
    return tuple(address)


def pauses() -> Iterator[float]:
    """How long to wait, in seconds, before each further round through the addresses."""
    pause = PAUSE_FIRST_S
    while True:
        yield pause
        pause = min(2 * pause, PAUSE_MAX_S)


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
