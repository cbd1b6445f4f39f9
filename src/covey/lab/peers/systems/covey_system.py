"""Covey: three daemons on loopback, each program at the daemon of its number.

Not here:  the interface (system.py), starting daemons (lab/cluster.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Final

from covey.client import blocking
from covey.client.events import Batch, Disconnected, Message, View
from covey.errors import SessionOverError
from covey.lab.peers.audit import Audit
from covey.lab.peers.plan import PeerCase
from covey.lab.peers.system import QUIET_S, RunningSystem
from covey.lab.peers.task import PeerTask, Role
from covey.lab.traffic.task import GROUP
from covey.protocol.values import Policy, Service

DAEMONS: Final = ("a", "b", "c")


class CoveySystem:
    has_servers = True
    is_agreed = True
    services = ("agreed", "safe")

    def unavailable(self) -> str | None:
        return None

    def version(self) -> str:
        return f"covey {version('covey')}, three daemons"

    @contextmanager
    def running(self, directory: Path, case: PeerCase) -> Iterator[RunningSystem]:
        from covey.client.address import socket_path
        from covey.lab.cluster import LocalCluster
        from covey.lab.traffic.measure import PATIENT

        with LocalCluster(directory, len(DAEMONS), run="bench", traced=False) as cluster:
            if not case.work.rate:
                cluster.file.write_text(cluster.file.read_text() + PATIENT)
            cluster.start(*DAEMONS)
            cluster.wait_for_view(*DAEMONS)
            digest = cluster.cluster.digest()

            def addresses(_: Role, number: int) -> list[str]:
                return [f"unix:{socket_path(digest, DAEMONS[number % len(DAEMONS)])}"]

            yield RunningSystem(addresses, tuple(child.pid for child in cluster.living()))

    @contextmanager
    def sending(self, task: PeerTask) -> Iterator[CoveySending]:
        with blocking.connect(task.name, task.addresses[0]) as session:
            yield CoveySending(session, Service[task.service.upper()])

    @contextmanager
    def receiving(self, task: PeerTask, audit: Audit) -> Iterator[CoveyReceiving]:
        """Who is as fast as can be makes the senders wait for the slowest, as in `covey bench throughput`."""
        del audit
        policy: Policy = "disconnect" if task.rate else "block"
        with blocking.connect(task.name, task.addresses[0], policy=policy) as session:
            session.join(GROUP)
            for event in session:
                if isinstance(event, View) and len(event.members) == task.receivers:
                    break
            yield CoveyReceiving(session)


class CoveySending:
    def __init__(self, session: blocking.Session, service: Service) -> None:
        self._session = session
        self._service = service

    def send_chunks(self, chunks: Iterable[list[bytes]]) -> None:
        for chunk in chunks:
            self._session.send_many(GROUP, chunk, self._service)

    def send_singles(self, singles: Iterable[bytes]) -> None:
        for payload in singles:
            self._session.send(GROUP, payload, self._service)


class CoveyReceiving:
    def __init__(self, session: blocking.Session) -> None:
        self._session = session

    def receive(self, audit: Audit) -> None:
        for event in self._session.batches():
            if isinstance(event, Batch):
                audit.take_run(event.payloads())
            elif isinstance(event, Disconnected):
                audit.fail(f"the session ended: {event.reason}")
            if audit.is_over:
                break
        with suppress(TimeoutError, SessionOverError):
            while not audit.problem:
                late = self._session.receive(QUIET_S)
                if isinstance(late, Message):
                    audit.take(late.payload)


SYSTEM = CoveySystem()
