"""Zenoh: peers without a router, each sender connected to every receiver by a socket of the file system;
senders wait for who is slow.

Not here:  the interface (system.py).

There is no server, and no order between senders. Zenoh writes what waits in threads of its own, as many messages at a
time as there are; one by one and in chunks are the same to it. Receivers take what is there, and check it together.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from covey.lab.peers.audit import Audit
from covey.lab.peers.plan import RECEIVERS, PeerCase
from covey.lab.peers.servers import LOOK_EVERY_S, missing
from covey.lab.peers.system import QUIET_S, CallEach, RunningSystem, together
from covey.lab.peers.task import PeerTask
from covey.lab.traffic.task import GROUP

WAITING_MAX: Final = 4_096
"""Messages that wait in a receiver's process; who sends more waits."""


class ZenohSystem:
    has_servers = False
    is_agreed = False
    services = ("agreed",)

    def unavailable(self) -> str | None:
        return missing({}, ["zenoh"])

    def version(self) -> str:
        return f"eclipse-zenoh {version('eclipse-zenoh')}, no server"

    @contextmanager
    def running(self, directory: Path, case: PeerCase) -> Iterator[RunningSystem]:
        del case
        addresses = [f"unixsock-stream/{directory / f'receiver{number}'}" for number in range(RECEIVERS)]
        yield RunningSystem(lambda role, number: addresses if role == "send" else addresses[number : number + 1])

    @contextmanager
    def sending(self, task: PeerTask) -> Iterator[CallEach]:
        import zenoh

        with _session(connect=task.addresses) as session:
            _await_receivers(session, task.receivers)
            publisher = session.declare_publisher(GROUP, congestion_control=zenoh.CongestionControl.BLOCK)
            yield CallEach(publisher.put)

    @contextmanager
    def receiving(self, task: PeerTask, audit: Audit) -> Iterator[ZenohReceiving]:
        import zenoh

        del audit
        with _session(listen=task.addresses) as session:
            subscriber = session.declare_subscriber(GROUP, zenoh.handlers.FifoChannel(WAITING_MAX))
            # Declared after the subscription, and told in that order: who sees it sees the subscription.
            token = session.liveliness().declare_token(f"{GROUP}/receiver/{task.number}")
            yield ZenohReceiving(subscriber, together(task))
            del token  # It is withdrawn with its last reference.


def _session(**endpoints: list[str]) -> Any:
    import zenoh

    config = zenoh.Config()
    settings = {"mode": "peer", "scouting/multicast/enabled": False, "scouting/gossip/enabled": False}
    settings |= {f"{kind}/endpoints": endpoints.get(kind, []) for kind in ("listen", "connect")}
    for key, value in settings.items():
        config.insert_json5(key, json.dumps(value))
    return zenoh.open(config)


def _await_receivers(session: Any, count: int) -> None:
    while len(list(session.liveliness().get(f"{GROUP}/receiver/*"))) < count:
        time.sleep(LOOK_EVERY_S)


class ZenohReceiving:
    def __init__(self, subscriber: Any, most: int) -> None:
        self._subscriber = subscriber
        self._most = most

    def receive(self, audit: Audit) -> None:
        while not audit.is_over:
            audit.take_mixed(self._what_is_there())
        time.sleep(QUIET_S)
        while (late := self._subscriber.try_recv()) is not None:
            audit.take(late.payload.to_bytes())

    def _what_is_there(self) -> list[bytes]:
        """One message at least."""
        there = [self._subscriber.recv().payload.to_bytes()]
        while len(there) < self._most and (more := self._subscriber.try_recv()) is not None:
            there.append(more.payload.to_bytes())
        return there


SYSTEM = ZenohSystem()
