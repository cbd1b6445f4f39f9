"""Reaching a daemon without asyncio: a socket, HELLO, and the daemon's answer.

In:        a plan, and the address to begin with.
Out:       a stream of an open session, with the events that came along; or a ConnectError that tells every attempt.
Not here:  where daemons are (address.py), what to try (plan.py), the same with asyncio (dial.py).
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from math import inf
from typing import Final

from covey.errors import ConnectError, RefusedError

from .address import Endpoint, Unix
from .events import Event
from .plan import ConnectPlan, check_welcome, failed, why_not
from .protocol import ClientProtocol
from .stream import BUSY_PAUSE_S, READ_BYTES, Stream, prepare_tcp

Dialled = tuple[Stream, list[Event], int]
"""An open session: its stream, what came along, and the index of its address in the plan."""

PATIENCE_MIN_S: Final = 0.01
"""The last address is tried too, however little time is left."""


def dial(plan: ConnectPlan, first: int = 0, patience_s: float | None = None) -> Dialled:
    """Try each address once; none for longer than its time, or than patience lasts."""
    deadline = inf if patience_s is None else time.monotonic() + patience_s
    problems: list[str] = []
    refusals: list[RefusedError] = []
    for address_index, endpoint in plan.targets(first, problems):
        timeout_s = max(PATIENCE_MIN_S, min(plan.timeout_s, deadline - time.monotonic()))
        try:
            return *_dial_one(plan.protocol(), endpoint, timeout_s), address_index
        except (OSError, ConnectError) as error:
            problems.append(why_not(endpoint, error, timeout_s))
            refusals += [error] if isinstance(error, RefusedError) else []
    raise failed(problems, refusals)


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
        prepare_tcp(connected)
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
