"""A daemon inside the program: for tests, and for first steps without starting anything.

It is a cluster of one, in a thread of its own, with a socket that only this user can reach. It ends with its block.
"""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from covey.drivers.live.driver import LiveDaemon, new_life
from covey.drivers.live.sockets import free_ports, path_problem
from covey.protocol.effects import Effect, Installed
from covey.protocol.inputs import Stop

from .cluster import Cluster, DaemonConfig
from .config import loopback
from .config_file import Configuration
from .errors import ArgumentError, CoveyError
from .names import daemon_problem

START_S = 10.0


class EmbeddedDaemon:
    """Made by `covey.embedded()`."""

    def __init__(self, name: str) -> None:
        if problem := daemon_problem(name):
            raise ArgumentError(f"{name!r} cannot be the name of a daemon: {problem}")
        self._directory = tempfile.TemporaryDirectory(prefix="covey-")
        self._path = Path(self._directory.name) / "daemon.client"  # Not its name: that may be long.
        if problem := path_problem(self._path):
            self._directory.cleanup()
            raise CoveyError(problem)
        cluster = Cluster("embedded", (DaemonConfig(name, 0, "127.0.0.1", free_ports(1)[0]),))
        configuration = Configuration(Path("covey.toml"), cluster, loopback(1), allow_unsealed=False)
        life = new_life(cluster, name)
        self._ready = threading.Event()
        self._daemon = LiveDaemon(configuration, life, life.boot, "embedded", None, self._observe)
        self._daemon.clients.listen_unix(self._path)
        self._bell, self._ringer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._daemon.watch(self._bell, self._on_bell)
        self._thread = threading.Thread(target=self._daemon.run, name=f"covey daemon {name}", daemon=True)

    @property
    def address(self) -> str:
        """What `covey.connect` takes."""
        return f"unix:{self._path}"

    def __enter__(self) -> Self:
        if self._thread.ident is not None:
            raise CoveyError("this embedded daemon was used already: call covey.embedded() again for another one")
        self._thread.start()
        if not self._ready.wait(START_S):
            raise CoveyError(f"the embedded daemon did not come up within {START_S:.0f} s")
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.write(self._ringer, b"!")
        self._thread.join()
        self._daemon.close()
        os.close(self._bell)
        os.close(self._ringer)
        self._directory.cleanup()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(error_type, error, traceback)

    def _observe(self, _time_ns: int, effect: Effect) -> None:
        if isinstance(effect, Installed):
            self._ready.set()

    def _on_bell(self) -> None:
        os.read(self._bell, 1)
        self._daemon.give(Stop())


def embedded(name: str = "here") -> EmbeddedDaemon:
    """A daemon in this process, for the length of a `with` or `async with` block.

    >>> import covey
    >>> with covey.embedded() as daemon, covey.blocking.connect("alice", daemon.address) as alice:
    ...     alice.join("room")
    ...     alice.send("room", b"hello")
    ...     next(event.payload for event in alice if isinstance(event, covey.Message))
    1
    b'hello'
    """
    return EmbeddedDaemon(name)
