"""Reaching a daemon, with asyncio: a socket, HELLO, and the daemon's answer.

In:        a plan, and the address to begin with.
Out:       a stream of an open session, with the events that came along; or a ConnectError that tells every attempt.
Not here:  where daemons are (address.py), what to try (plan.py).
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import NamedTuple

from covey.errors import ConnectError, RefusedError

from .address import Endpoint, Tcp, Unix
from .events import Event
from .plan import ConnectPlan, check_welcome, failed, why_not
from .protocol import ClientProtocol
from .stream import BUSY_PAUSE_S, READ_BYTES, Stream, prepare_tcp


class Dialled(NamedTuple):
    """An open session."""

    stream: Stream
    events: list[Event]
    address_index: int
    """Of the address in the plan."""


async def dial(plan: ConnectPlan, first: int = 0) -> Dialled:
    """Try each address once."""
    problems: list[str] = []
    refusals: list[RefusedError] = []
    for address_index, endpoint in plan.targets(first, problems):
        try:
            async with asyncio.timeout(plan.timeout_s):
                return await _dial_one(plan.protocol(), endpoint, address_index)
        except (OSError, ConnectError) as error:
            problems.append(why_not(endpoint, error, plan.timeout_s))
            refusals += [error] if isinstance(error, RefusedError) else []
    raise failed(problems, refusals)


async def _dial_one(protocol: ClientProtocol, endpoint: Endpoint, address_index: int) -> Dialled:
    connected = await _connected(endpoint)
    try:
        events = await _greet(connected, protocol)  # Before there is a stream: a loop wants sockets without a timeout.
        return Dialled(Stream(connected, protocol), events, address_index)
    except BaseException:
        connected.close()
        raise


async def _greet(connected: socket.socket, protocol: ClientProtocol) -> list[Event]:
    loop = asyncio.get_running_loop()
    with suppress(BrokenPipeError, ConnectionResetError):  # It may have refused us already, and said why.
        for part in protocol.take(1):
            await loop.sock_sendall(connected, part)
    events: list[Event] = []
    while not check_welcome(protocol, events):
        data = await loop.sock_recv(connected, READ_BYTES)
        events = protocol.feed(data) if data else protocol.lost("it closed the connection without a word")
    return events


async def _connected(endpoint: Endpoint) -> socket.socket:
    if isinstance(endpoint, Unix):
        return await _connected_unix(endpoint)
    return await _connected_tcp(endpoint)


async def _connected_unix(endpoint: Unix) -> socket.socket:
    connecting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        while True:
            try:
                connecting.connect(str(endpoint.path))
            except BlockingIOError:  # Its queue is full, and nothing tells when there is room.
                await asyncio.sleep(BUSY_PAUSE_S)
            else:
                return connecting
    except BaseException:
        connecting.close()
        raise


async def _connected_tcp(endpoint: Tcp) -> socket.socket:
    loop = asyncio.get_running_loop()
    problem: OSError = OSError(f"{endpoint.host} has no address")
    for family, socket_type, number, _, where in await loop.getaddrinfo(*endpoint, type=socket.SOCK_STREAM):
        connecting = socket.socket(family, socket_type | socket.SOCK_NONBLOCK, number)
        try:
            await loop.sock_connect(connecting, where)
        except OSError as error:
            connecting.close()
            problem = error
        except BaseException:
            connecting.close()
            raise
        else:
            prepare_tcp(connecting)
            return connecting
    raise problem
