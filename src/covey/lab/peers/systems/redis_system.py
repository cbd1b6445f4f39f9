"""Redis: one server, publish and subscribe over a socket of the file system, buffers without a bound.

Not here:  the interface (system.py).

By default Redis closes the connection of a subscriber that falls behind; told to lose nothing, its server keeps what
waits. One by one, each publish waits for its answer, as redis-py does it; chunks are pipelines.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from covey.lab.peers.audit import Audit
from covey.lab.peers.plan import PeerCase
from covey.lab.peers.servers import missing, program_path, serving, version_of
from covey.lab.peers.system import QUIET_S, RunningSystem
from covey.lab.peers.task import PeerTask
from covey.lab.traffic.task import GROUP

SERVER: Final = "redis-server"
PIPELINE: Final = 200
"""Publishes that wait for their answers together."""


class RedisSystem:
    has_servers = True
    is_agreed = False
    services = ("agreed",)

    def unavailable(self) -> str | None:
        return missing({SERVER: "redis-server"}, ["redis"])

    def version(self) -> str:
        return f"{SERVER} {version_of(program_path(SERVER) or SERVER, '--version')}, redis-py {version('redis')}"

    @contextmanager
    def running(self, directory: Path, case: PeerCase) -> Iterator[RunningSystem]:
        del case
        address = directory / "redis"
        command = [program_path(SERVER) or SERVER, "--port", "0", "--unixsocket", str(address), "--dir", str(directory)]
        command += ["--save", "", "--appendonly", "no", "--client-output-buffer-limit", "pubsub 0 0 0"]
        with serving(command, directory / "redis.log", address.exists) as server:
            yield RunningSystem(lambda *_: [str(address)], (server.pid,))

    @contextmanager
    def sending(self, task: PeerTask) -> Iterator[RedisSending]:
        import redis

        with redis.Redis(unix_socket_path=task.addresses[0]) as client:
            client.ping()
            yield RedisSending(client)

    @contextmanager
    def receiving(self, task: PeerTask, audit: Audit) -> Iterator[RedisReceiving]:
        import redis

        del audit
        with redis.Redis(unix_socket_path=task.addresses[0]) as client, client.pubsub() as subscription:
            subscription.subscribe(GROUP)
            while subscription.get_message(timeout=QUIET_S) is None:
                pass  # Until the server has said that we are subscribed.
            yield RedisReceiving(subscription)


class RedisSending:
    def __init__(self, client: Any) -> None:
        self._client = client

    def send_chunks(self, chunks: Iterable[list[bytes]]) -> None:
        with self._client.pipeline(transaction=False) as pipeline:
            for chunk in chunks:
                for at in range(0, len(chunk), PIPELINE):
                    for payload in chunk[at : at + PIPELINE]:
                        pipeline.publish(GROUP, payload)
                    pipeline.execute()

    def send_singles(self, singles: Iterable[bytes]) -> None:
        publish = self._client.publish
        for payload in singles:
            publish(GROUP, payload)


class RedisReceiving:
    def __init__(self, subscription: Any) -> None:
        self._subscription = subscription

    def receive(self, audit: Audit) -> None:
        for message in self._subscription.listen():
            audit.take(message["data"])
            if audit.is_over:
                break
        end = time.monotonic() + QUIET_S
        while (left := end - time.monotonic()) > 0:
            late = self._subscription.get_message(timeout=left)
            if late is not None:
                audit.take(late["data"])


SYSTEM = RedisSystem()
