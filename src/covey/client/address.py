"""Where daemons are: from what a program, the environment or a configuration file says to sockets to try.

In:        an address as people write it, or none.
Out:       endpoints, to be tried in this order; or a ConnectError that says what to start or to write.
Not here:  connecting (connection.py, blocking.py).

An address is `unix:/path`, `tcp://host:port`, or the name of a daemon. Without one, the first of these that is there:
the address in COVEY_ADDRESS; the daemons of the `covey.toml` in this directory or above it that run here; the only
cluster of which this user runs daemons here.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from covey.cluster import Cluster
from covey.config_file import load
from covey.errors import ArgumentError, ConnectError

ENVIRONMENT: Final = "COVEY_ADDRESS"
FILE_NAME: Final = "covey.toml"
SUFFIX: Final = ".client"
FORMS: Final = "write 'unix:/path', 'tcp://host:port', or the name of a daemon"
START: Final = "start daemons with `covey up`"


class Unix(NamedTuple):
    """A socket on this machine."""

    path: Path

    def __str__(self) -> str:
        return f"unix:{self.path}"


class Tcp(NamedTuple):
    """A port somewhere."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"tcp://{host}:{self.port}"


Endpoint = Unix | Tcp


def socket_directory() -> Path:
    """Where the daemons of this user have their sockets. It may not exist."""
    return Path(os.environ.get("TMPDIR") or "/tmp") / f"covey-{os.getuid()}"


def socket_path(cluster_digest: int, daemon: str) -> Path:
    """Where a daemon takes its clients: short, private to the user, the same for everyone who has the file.

    >>> socket_path(255, "a").name
    '00000000000000ff-a.client'
    """
    return socket_directory() / f"{cluster_digest:016x}-{daemon}{SUFFIX}"


def endpoints(address: str | None) -> list[Endpoint]:
    """What to try, in this order: at least one.

    >>> [str(one) for one in endpoints("tcp://example.org:4803")]
    ['tcp://example.org:4803']
    """
    address = address or os.environ.get(ENVIRONMENT) or None
    if address is None:
        return [*_nearest()]
    if address.startswith("unix:"):
        return [_unix(address)]
    if "://" in address:
        return [_tcp(address)]
    if "/" in address or ":" in address:
        raise ArgumentError(f"{address!r} is no address: {FORMS}")
    return [*_named(address)]


def _unix(address: str) -> Unix:
    path = address.removeprefix("unix:")
    if not path.startswith("/"):
        raise ArgumentError(f"{address!r} is no address: write the whole path, as in 'unix:/run/covey/a.client'")
    return Unix(Path(path))


def _tcp(address: str) -> Tcp:
    problem = ArgumentError(f"{address!r} is no address: write 'tcp://host:port', as in 'tcp://127.0.0.1:4803'")
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise problem from None
    if not host or not port or parts.scheme != "tcp" or parts.path or parts.query:
        raise problem
    return Tcp(host, port)


def _nearest() -> list[Unix]:
    file = find_file()
    if file is None:
        return _only_cluster(running())
    cluster = load(file).cluster
    return _sockets(cluster, [daemon.name for daemon in cluster.daemons], file)


def _named(name: str) -> list[Unix]:
    """A daemon of the file; without a file, a running daemon of this name."""
    file = find_file()
    if file is None:
        return _only_cluster([path for path in running() if daemon_of(path) == name], name)
    cluster = load(file).cluster
    cluster.rank_of(name)
    return _sockets(cluster, [name], file)


def _sockets(cluster: Cluster, names: list[str], file: Path) -> list[Unix]:
    """Those that exist; whether somebody listens behind them shows when they are tried."""
    digest = cluster.digest()
    paths = [socket_path(digest, name) for name in names] if _is_ours(socket_directory()) else []
    found = [Unix(path) for path in paths if path.is_socket()]
    if not found:
        which = f"daemon {names[0]!r}" if len(names) == 1 else "daemon"
        raise ConnectError(
            f"no {which} of {file} runs here: start one with `covey daemon {names[0]} --config {file}`, or all with "
            f"`covey up --config {file}`"
        )
    return found


def find_file() -> Path | None:
    """The configuration file that counts here."""
    here = Path.cwd()
    return next((path for folder in (here, *here.parents) if (path := folder / FILE_NAME).is_file()), None)


def running(cluster: Cluster | None = None) -> list[Path]:
    """The sockets of this user's daemons behind which somebody listens, sorted: of one cluster, or of all."""
    directory = socket_directory()
    if not _is_ours(directory):
        return []
    pattern = f"*{SUFFIX}" if cluster is None else socket_path(cluster.digest(), "*").name
    return [path for path in sorted(directory.glob(pattern)) if somebody_listens(path)]


def _is_ours(directory: Path) -> bool:
    """A directory of somebody else could hold anybody's sockets."""
    try:
        return directory.stat().st_uid == os.getuid()
    except OSError:
        return False


def somebody_listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(str(path))
        except BlockingIOError:
            return True  # Somebody listens, and is busy.
        except OSError:
            return False
    return True


def _only_cluster(found: list[Path], name: str = "") -> list[Unix]:
    what = f"daemon {name!r}" if name else "daemon"
    if not found:
        raise ConnectError(f"no {what} of yours runs on this machine: {START}, or name another address: {FORMS}")
    clusters: dict[str, list[Path]] = {}
    for path in found:
        clusters.setdefault(path.name.partition("-")[0], []).append(path)
    if len(clusters) > 1:
        # One address of each: any of them says which cluster is meant.
        listed = ", ".join(f"unix:{of[0]} ({' '.join(map(daemon_of, of))})" for of in clusters.values())
        raise ConnectError(f"daemons of several clusters run here: say which one you mean: {listed}")
    return [Unix(path) for path in found]


def daemon_of(path: Path) -> str:
    """Whose socket this is.

    >>> daemon_of(Path("/tmp/covey-0/00000000000000ff-a.client"))
    'a'
    """
    return path.name.partition("-")[2].removesuffix(SUFFIX)
