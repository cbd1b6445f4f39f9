"""ZeroMQ through pyzmq: each sender is an XPUB socket that loses nothing, and every receiver connects to all of them.

Not here:  the interface (system.py).

There is no server, and no order between senders. ZeroMQ writes what waits in a thread of its own, as many messages at a
time as there are; one by one and in chunks are the same to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from covey.lab.peers.audit import Audit
from covey.lab.peers.plan import PeerCase
from covey.lab.peers.servers import missing
from covey.lab.peers.system import PATIENCE_MS, QUIET_S, CallEach, RunningSystem
from covey.lab.peers.task import PeerTask


class PyzmqSystem:
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
            for address in task.addresses:
                subscriber.connect(address)
            yield PyzmqReceiving(subscriber)


class PyzmqReceiving:
    def __init__(self, subscriber: Any) -> None:
        self._subscriber = subscriber

    def receive(self, audit: Audit) -> None:
        receive, take = self._subscriber.recv, audit.take
        while not audit.is_over:
            take(receive())
        while self._subscriber.poll(QUIET_S * 1_000):
            take(receive())


SYSTEM = PyzmqSystem()
