"""What the library costs a program: processor time for one message, sent or received.

    python bench/library_cost.py [--uvloop] [--messages 500] [--rounds 5]

The daemon only lets the program in, and then swallows what it says, or sends: no order, no other daemons. *Apart*: the
daemon is another process, and 2 ms pass between two messages, so that both wake anew for each one, as they do at 500
messages a second. Processor time of the program, of the call of `send` alone, and of all that is done from one message
to the next where they are received. *Again and again*: the daemon is this process, and what is asked for is there: the
time of each call, and its median. Medians of the rounds, in turn, in microseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import multiprocessing
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import covey
from covey.ids import Ballot, Life
from covey.protocol.values import Bundle, Kind, Service
from covey.protocol.wire.bodies import record_parts, sender_prefix
from covey.protocol.wire.session import arrived_head, encode_word
from covey.protocol.wire.words import VERSION, Welcome

SIZE = 100
PAUSE_S = 0.002
PAYLOAD = bytes(SIZE)
BUNDLE = Bundle(0, 1, 1_200, Life(0, 7), 100, 1, 1, 1, Service.AGREED, 0, 1, ("room",), b"", Kind.MESSAGES, 0)
BODY = b"".join([sender_prefix("bob@b:7.9"), *record_parts(0, PAYLOAD)])
FRAME = arrived_head(BUNDLE, Ballot(7, 0, 3), len(BODY)) + BODY


def greet(connection: socket.socket) -> None:
    connection.recv(65_536)
    connection.sendall(encode_word(Welcome(VERSION, "alice@a:7.3", 8_192, 1 << 24, 1_000, 0)))


def serve(listener: socket.socket, is_sender: bool, messages: int) -> None:
    """The daemon of one program, as a process."""
    connection, _ = listener.accept()
    greet(connection)
    if is_sender:
        time.sleep(0.1)
        for _ in range(messages):
            connection.sendall(FRAME)
            time.sleep(PAUSE_S)
    while connection.recv(1 << 20):
        pass


@contextmanager
def apart(is_sender: bool, messages: int) -> Iterator[str]:
    with listening() as (address, listener):
        arguments = (listener, is_sender, messages)
        daemon = multiprocessing.get_context("fork").Process(target=serve, args=arguments)
        daemon.start()
        yield address
        daemon.join()


@contextmanager
def listening() -> Iterator[tuple[str, socket.socket]]:
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(Path(folder) / "socket"))
        listener.listen()
        yield f"unix:{folder}/socket", listener


@contextmanager
def here() -> Iterator[tuple[str, list[socket.socket]]]:
    """The address of a daemon that has greeted when the program is connected, and then its end of the stream."""
    ends: list[socket.socket] = []

    def accept(listener: socket.socket) -> None:
        ends.append(listener.accept()[0])
        greet(ends[0])

    with listening() as (address, listener):
        thread = threading.Thread(target=accept, args=(listener,))
        thread.start()
        yield address, ends
        thread.join()
        ends[0].close()


# --- without asyncio


def blocking_sends(messages: int) -> float:
    spent = 0.0
    with apart(False, messages) as address, covey.blocking.connect("alice", address) as session:
        for _ in range(messages):
            begun = time.process_time()
            session.send("room", PAYLOAD)
            spent += time.process_time() - begun
            time.sleep(PAUSE_S)
        session._stream.close()
    return spent / messages * 1e6


def blocking_receives(messages: int) -> float:
    with apart(True, messages) as address, covey.blocking.connect("alice", address) as session:
        events, begun = iter(session), time.process_time()
        for _ in range(messages):
            next(events)
        spent = time.process_time() - begun
        session._stream.close()
    return spent / messages * 1e6


def blocking_again(messages: int) -> tuple[float, float]:
    sends, receives = [], []
    with here() as (address, ends), covey.blocking.connect("alice", address) as session:
        events = iter(session)
        for _ in range(messages):
            begun = time.perf_counter_ns()
            session.send("room", PAYLOAD)
            sends.append(time.perf_counter_ns() - begun)
            ends[0].recv(4_096)
            ends[0].sendall(FRAME)
            begun = time.perf_counter_ns()
            next(events)
            receives.append(time.perf_counter_ns() - begun)
        session._stream.close()
    return median(sends) / 1_000, median(receives) / 1_000


# --- with asyncio


async def asyncio_sends(messages: int) -> float:
    spent = 0.0
    with apart(False, messages) as address:
        session = await covey.connect("alice", address)
        for _ in range(messages):
            begun = time.process_time()
            await session.send("room", PAYLOAD)
            spent += time.process_time() - begun
            await asyncio.sleep(PAUSE_S)
        session._close()
    return spent / messages * 1e6


async def asyncio_receives(messages: int) -> float:
    with apart(True, messages) as address:
        session = await covey.connect("alice", address)
        events, begun = aiter(session), time.process_time()
        for _ in range(messages):
            await anext(events)
        spent = time.process_time() - begun
        session._close()
    return spent / messages * 1e6


async def asyncio_again(messages: int) -> tuple[float, float]:
    sends, receives = [], []
    with here() as (address, ends):
        session = await covey.connect("alice", address)
        events = aiter(session)
        for _ in range(messages):
            begun = time.perf_counter_ns()
            await session.send("room", PAYLOAD)
            sends.append(time.perf_counter_ns() - begun)
            await asyncio.sleep(0)
            ends[0].recv(4_096)
            ends[0].sendall(FRAME)
            begun = time.perf_counter_ns()
            await anext(events)
            receives.append(time.perf_counter_ns() - begun)
        session._close()
    return median(sends) / 1_000, median(receives) / 1_000


Found = TypeVar("Found")


def run_uvloop(program: Coroutine[Any, Any, Found]) -> Found:
    uvloop = importlib.import_module("uvloop")  # It need not be there.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(program)


def row(way: str, messages: int) -> tuple[float, ...]:
    if way == "blocking":
        return (blocking_sends(messages), blocking_receives(messages), *blocking_again(messages * 4))
    run: Callable[[Coroutine[Any, Any, Any]], Any] = run_uvloop if way == "uvloop" else asyncio.run
    again = run(asyncio_again(messages * 4))
    return (run(asyncio_sends(messages)), run(asyncio_receives(messages)), *again)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uvloop", action="store_true", help="also with uvloop, which must be installed")
    parser.add_argument("--messages", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    ways = ["blocking", "asyncio", *(["uvloop"] if asked.uvloop else [])]
    rounds = [{way: row(way, asked.messages) for way in ways} for _ in range(asked.rounds)]
    print("µs a message   send, apart   receive, apart   send, again and again   receive, again and again")
    for way in ways:
        send, receive, send_again, receive_again = map(median, zip(*(one[way] for one in rounds), strict=True))
        print(f"{way:<12} {send:>13.1f} {receive:>16.1f} {send_again:>23.1f} {receive_again:>26.1f}")


if __name__ == "__main__":
    main()
