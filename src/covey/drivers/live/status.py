"""How a running daemon is asked how it is: a Unix socket that answers every connection with one JSON object.

In:        connections of the same user.  Out: a snapshot, then the end of the stream.
Not here:  what is in the snapshot (the engine), how it is shown (cli/).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from covey.config import Cluster
from covey.errors import CoveyError

ANSWER_BYTES_MAX = 4 * 1024 * 1024
TIMEOUT_S = 2.0


class NotRunningError(CoveyError):
    """Nobody answers for this daemon."""


def socket_path(cluster: Cluster, name: str) -> Path:
    """Where a daemon of this cluster answers: short, private to the user, the same for everyone who has the file."""
    directory = Path(os.environ.get("TMPDIR") or "/tmp") / f"covey-{os.getuid()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory / f"{cluster.digest():016x}-{name}"


class StatusSocket:
    """The daemon's end. Never waits: an answer that does not fit the socket at once is cut off."""

    def __init__(self, path: Path, snapshot: Callable[[], dict[str, Any]]) -> None:
        self._path = path
        self._snapshot = snapshot
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._socket.bind(str(path))
        self._socket.listen(16)

    def fileno(self) -> int:
        return self._socket.fileno()

    def answer(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except OSError:
            return
        with connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1024 * 1024)
            connection.setblocking(False)
            try:
                connection.sendall(msgspec.json.encode(self._snapshot()))
            except OSError:
                return

    def close(self) -> None:
        self._socket.close()
        self._path.unlink(missing_ok=True)


def ask(path: Path) -> dict[str, Any]:
    """The snapshot of a running daemon; NotRunningError if nobody answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(TIMEOUT_S)
        try:
            connection.connect(str(path))
            return _decode(_read_all(connection))
        except (OSError, msgspec.DecodeError) as error:
            raise NotRunningError(str(error)) from None


def _read_all(connection: socket.socket) -> bytes:
    parts: list[bytes] = []
    while sum(map(len, parts)) < ANSWER_BYTES_MAX and (part := connection.recv(65_536)):
        parts.append(part)
    return b"".join(parts)


def _decode(data: bytes) -> dict[str, Any]:
    return msgspec.json.decode(data, type=dict[str, Any])
