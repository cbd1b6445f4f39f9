"""What the library costs a program: processor time for one message, sent or received.

    python bench/library_cost.py [--uvloop] [--messages 1000] [--rounds 3]

The program is this process; the daemon is another one that lets it in, and then only echoes, swallows or sends: no order,
no other daemons. With a pause of 2 ms each process wakes anew for every message, as programs do at 500 messages a second;
without one, each message is sent when the last has come back. Processor time of this process (system calls included) over
the number of messages; medians of the rounds, in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import socket
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from statistics import median
from typing import Any

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


def serve(listener: socket.socket, what: str, messages: int) -> None:
    """The daemon of one program."""
    connection, _ = listener.accept()
    connection.recv(65_536)
    connection.sendall(encode_word(Welcome(VERSION, "alice@a:7.3", 8_192, 1 << 24, 1_000, 0)))
    if what == "receive":
        time.sleep(0.1)
        for _ in range(messages):
            connection.sendall(FRAME)
            time.sleep(PAUSE_S)
    while connection.recv(1 << 20):
        if what == "echo":
            connection.sendall(FRAME)


def blocking_program(address: str, what: str, messages: int) -> float:
    session = covey.blocking.connect("alice", address)
    events = iter(session)
    begun = time.process_time()
    for _ in range(messages):
        if what != "receive":
            session.send("room", PAYLOAD)
        if what == "send":
            time.sleep(PAUSE_S)
        else:
            next(events)
    spent = time.process_time() - begun
    session._stream.close()
    return spent


async def asyncio_program(address: str, what: str, messages: int) -> float:
    session = await covey.connect("alice", address)
    events = aiter(session)
    begun = time.process_time()
    for _ in range(messages):
        if what != "receive":
            await session.send("room", PAYLOAD)
        if what == "send":
            await asyncio.sleep(PAUSE_S)
        else:
            await anext(events)
    spent = time.process_time() - begun
    session._close()
    return spent


def run_asyncio(program: Coroutine[Any, Any, float]) -> float:
    return asyncio.run(program)


def run_uvloop(program: Coroutine[Any, Any, float]) -> float:
    import uvloop  # noqa: PLC0415 - programs bring it

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(program)


def cost(run: Callable[[str], float], what: str, messages: int) -> float:
    """Microseconds a message."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(Path(folder) / "socket"))
        listener.listen()
        daemon = multiprocessing.get_context("fork").Process(target=serve, args=(listener, what, messages))
        daemon.start()
        spent = run(f"unix:{folder}/socket")
        daemon.join()
    return spent / messages * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uvloop", action="store_true", help="also with uvloop, which must be installed")
    parser.add_argument("--messages", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    ways = ["blocking", "asyncio", *(["uvloop"] if asked.uvloop else [])]
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(asked.rounds):
        for way in ways:
            for what in ("send", "receive", "echo"):
                messages = asked.messages * (5 if what == "echo" else 1)

                def run(address: str, way: str = way, what: str = what, messages: int = messages) -> float:
                    if way == "blocking":
                        return blocking_program(address, what, messages)
                    runs = run_uvloop if way == "uvloop" else run_asyncio
                    return runs(asyncio_program(address, what, messages))

                found.setdefault((way, what), []).append(cost(run, what, messages))
    print("µs of processor time a message   send, 2 ms apart   receive, 2 ms apart   send and receive, no pause")
    for way in ways:
        send, receive, echo = (median(found[way, what]) for what in ("send", "receive", "echo"))
        print(f"{way:<32} {send:>17.0f} {receive:>21.0f} {echo:>27.0f}")


if __name__ == "__main__":
    main()
