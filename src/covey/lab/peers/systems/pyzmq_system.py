"""ZeroMQ through pyzmq: each sender is an XPUB socket that loses nothing, and every receiver connects to all of them.

Not here:  the interface (system.py).

There is no server, and no order between senders. ZeroMQ writes what waits in a thread of its own, as many messages at a
time as there are; one by one and in chunks are the same to it. Receivers take what is there, and check it together.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from covey.lab.peers.audit import Audit
from covey.lab.peers.plan import PeerCase
from covey.lab.peers.servers import missing
from covey.lab.peers.system import PATIENCE_MS, QUIET_S, CallEach, RunningSystem, together
from covey.lab.peers.task import PeerTask

WAITING_BYTES: Final = 1_000_000
WAITING_DEFAULT: Final = 1_000


class PyzmqSystem:
    has_servers = False
    is_agreed = False
    services = ("agreed",)

    def unavailable(self) -> str | None:
        return missing({}, ["zmq"])

    def version(self) -> str:
        import zmq

        return f"pyzmq {zmq.pyzmq_version()}, libzmq {zmq.zmq_version()}, no server"

    @contextmanager
    def running(self, directory: Path, case: PeerCase) -> Iterator[RunningSystem]:
        addresses = [f"ipc://{directory / f'sender{number}'}" for number in range(case.work.senders)]
        yield RunningSystem(lambda role, number: addresses[number : number + 1] if role == "send" else addresses)

    @contextmanager
    def sending(self, task: PeerTask) -> Iterator[CallEach]:
        import zmq

        with zmq.Context() as context, context.socket(zmq.XPUB) as publisher:
            publisher.setsockopt(zmq.XPUB_NODROP, 1)
            publisher.setsockopt(zmq.XPUB_VERBOSE, 1)  # Or the second subscriber of the same is not told of.
            publisher.setsockopt(zmq.LINGER, PATIENCE_MS)
            publisher.setsockopt(zmq.SNDHWM, waiting_max(task.size))
            publisher.bind(task.addresses[0])
            for _ in range(task.receivers):
                publisher.recv()  # Somebody has subscribed.
            yield CallEach(publisher.send)

    @contextmanager
    def receiving(self, task: PeerTask, audit: Audit) -> Iterator[PyzmqReceiving]:
        import zmq

        del audit
        with zmq.Context() as context, context.socket(zmq.SUB) as subscriber:
            subscriber.setsockopt(zmq.SUBSCRIBE, b"")
            subscriber.setsockopt(zmq.RCVHWM, waiting_max(task.size))
            for address in task.addresses:
                subscriber.connect(address)
            yield PyzmqReceiving(subscriber, together(task))


def waiting_max(size: int) -> int:
    """Messages that may wait at either end: a megabyte of them, or what ZeroMQ does without being told.

    >>> waiting_max(100), waiting_max(8192)
    (10000, 1000)
    """
    return max(WAITING_DEFAULT, WAITING_BYTES // size)


class PyzmqReceiving:
    def __init__(self, subscriber: Any, most: int) -> None:
        self._subscriber = subscriber
        self._most = most

    def receive(self, audit: Audit) -> None:
        while not audit.is_over:
            audit.take_mixed(self._what_is_there())
        while self._subscriber.poll(QUIET_S * 1_000):
            audit.take(self._subscriber.recv())

    def _what_is_there(self) -> list[bytes]:
        """One message at least."""
        import zmq

        receive, now = self._subscriber.recv, zmq.NOBLOCK
        there = [receive()]
        with suppress(zmq.Again):
            while len(there) < self._most:
                there.append(receive(now))
        return there


SYSTEM = PyzmqSystem()
