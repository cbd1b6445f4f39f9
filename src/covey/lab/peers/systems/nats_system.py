"""NATS: one server on loopback, core publish and subscribe through nats-py, buffers wide enough to lose nothing.

Not here:  the interface (system.py).

nats-py has no blocking interface. Its publish puts a message into a buffer that a task of the loop writes: one by one,
the loop gets its turn after each message. Chunks end with a flush, which is a question to the server and its answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from covey.drivers.live.sockets import free_ports
from covey.lab.cluster import HOST
from covey.lab.peers.audit import Audit
from covey.lab.peers.plan import PeerCase
from covey.lab.peers.servers import listens, missing, program_path, serving, version_of
from covey.lab.peers.system import QUIET_S, RunningSystem
from covey.lab.peers.task import PeerTask
from covey.lab.traffic.task import GROUP

SERVER: Final = "nats-server"
PENDING_MAX: Final = 1 << 40
"""More than can wait in memory: nothing is thrown away."""

CONFIGURATION: Final = """
max_pending: 8589934592
write_deadline: "60s"
"""
"""By default the server ends the connection of who is 64 MB behind, or does not read for 10 s."""


class NatsSystem:
    has_servers = True
    is_agreed = False
    services = ("agreed",)

    def unavailable(self) -> str | None:
        return missing({SERVER: "nats-server"}, ["nats"])

    def version(self) -> str:
        return f"{SERVER} {version_of(program_path(SERVER) or SERVER, '--version')}, nats-py {version('nats-py')}"

    @contextmanager
    def running(self, directory: Path, case: PeerCase) -> Iterator[RunningSystem]:
        del case
        (port,) = free_ports(1)
        file = directory / "nats.conf"
        file.write_text(CONFIGURATION)
        command = [program_path(SERVER) or SERVER, "-a", HOST, "-p", str(port), "-c", str(file)]
        with serving(command, directory / "nats.log", lambda: listens(port)) as server:
            yield RunningSystem(lambda *_: [f"nats://{HOST}:{port}"], (server.pid,))

    @contextmanager
    def sending(self, task: PeerTask) -> Iterator[NatsSending]:
        with asyncio.Runner() as runner:
            client = runner.run(_connected(task.addresses[0]))
            yield NatsSending(runner, client)
            runner.run(client.close())

    @contextmanager
    def receiving(self, task: PeerTask, audit: Audit) -> Iterator[NatsReceiving]:
        with asyncio.Runner() as runner:
            over = asyncio.Event()
            client = runner.run(_connected(task.addresses[0]))
            runner.run(_subscribed(client, audit, over))
            yield NatsReceiving(runner, over)
            runner.run(client.close())


async def _connected(address: str) -> Any:
    import nats

    return await nats.connect(address, allow_reconnect=False)


async def _subscribed(client: Any, audit: Audit, over: asyncio.Event) -> None:
    async def on_message(message: Any) -> None:
        audit.take(message.data)
        if audit.is_over:
            over.set()

    await client.subscribe(GROUP, cb=on_message, pending_msgs_limit=PENDING_MAX, pending_bytes_limit=PENDING_MAX)
    await client.flush()


class NatsSending:
    def __init__(self, runner: asyncio.Runner, client: Any) -> None:
        self._runner = runner
        self._client = client

    def send_chunks(self, chunks: Iterable[list[bytes]]) -> None:
        self._runner.run(self._send_chunks(chunks))

    def send_singles(self, singles: Iterable[bytes]) -> None:
        self._runner.run(self._send_singles(singles))

    async def _send_chunks(self, chunks: Iterable[list[bytes]]) -> None:
        publish = self._client.publish
        for chunk in chunks:
            for payload in chunk:
                await publish(GROUP, payload)
            await self._client.flush()

    async def _send_singles(self, singles: Iterable[bytes]) -> None:
        publish = self._client.publish
        for payload in singles:
            await publish(GROUP, payload)
            await asyncio.sleep(0)
        await self._client.flush()


class NatsReceiving:
    def __init__(self, runner: asyncio.Runner, over: asyncio.Event) -> None:
        self._runner = runner
        self._over = over

    def receive(self, audit: Audit) -> None:
        del audit  # It is told by the subscription.
        self._runner.run(self._until_over())

    async def _until_over(self) -> None:
        await self._over.wait()
        await asyncio.sleep(QUIET_S)


SYSTEM = NatsSystem()
