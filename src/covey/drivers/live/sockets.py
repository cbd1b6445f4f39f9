"""The sockets of one daemon: made with their options, bound, and joined to the cluster's multicast address.

In:        a daemon of a cluster.  Out: sockets that do not wait; or a ConfigError that says what to do.
Not here:  what passes through them (endpoint.py).

Invariants:
  K1  only loopback, unless asked otherwise: until datagrams are sealed, whoever reaches the port can speak for a daemon
  K2  multicast does not leave the network of the daemon's own host address: one hop, by that interface
"""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from covey.cluster import Address, Cluster, DaemonConfig, ipv4, is_loopback, multicast_address
from covey.errors import ConfigError

from .trains import UDP_GRO

SOCKET_BUFFER_BYTES: Final = 2 * 1024 * 1024
"""Asked for, not needed: it lets a paused daemon find on waking what was said meanwhile. The system may give less."""

PATH_BYTES_MAX: Final = 107
"""What the system takes as the path of a socket; a character may have four bytes."""

# Linux names that the socket module lacks.
IP_RECVERR: Final = 11
"""Have errors of sent datagrams queued, each with the address it was sent to."""
_IP_MULTICAST_ALL: Final = 49


def path_problem(path: Path) -> str:
    """Why no socket can have this path; empty if one can.

    >>> path_problem(Path("/tmp/covey-0/00000000000000ff-a.client"))
    ''
    """
    size = len(os.fsencode(path))
    if size <= PATH_BYTES_MAX:
        return ""
    return (
        f"the path of its socket would have {size} bytes, at most {PATH_BYTES_MAX} are possible ({path}): give the "
        "daemon a shorter name, or set TMPDIR to a directory with a shorter one, for daemons and programs alike"
    )


def check_cluster(cluster: Cluster, allow_unsealed: bool = False) -> None:
    """ConfigError: this driver cannot run this cluster yet."""
    for daemon in cluster.daemons:
        address_of(daemon, allow_unsealed)
    if cluster.site_count > 1:
        raise ConfigError("several sites need links between sites, which live daemons lack: put all in one site")


def address_of(daemon: DaemonConfig, allow_unsealed: bool) -> Address:
    host, port = daemon.address
    if ipv4(host) is None:
        raise ConfigError(f"daemon {daemon.name!r} has host {daemon.host!r}: write an IPv4 address")
    if not is_loopback(host) and not allow_unsealed:
        raise ConfigError(
            f"daemon {daemon.name!r} has host {daemon.host!r}, but datagrams are not sealed yet, and only loopback "
            "is safe without: write 127.0.0.1, or `allow_unsealed = true` on a network you trust"
        )
    if not 0 < port < 65_536:
        raise ConfigError(f"daemon {daemon.name!r} has port {port}: write a free one, 1024 to 65535")
    return host, port


def bound(daemon: DaemonConfig, address: Address) -> socket.socket:
    """The daemon's own socket: all it sends leaves by it, and what is for it alone arrives here."""
    made = _datagram_socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
    with suppress(OSError):  # A refused port is a hint only: where the system cannot tell, timeouts must do.
        made.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
    try:
        made.bind(address)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address[0]))
        made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
    except OSError as error:
        made.close()
        raise ConfigError(
            f"daemon {daemon.name!r} cannot listen on {address[0]} port {address[1]} ({error.strerror}): "
            "is it running already? Stop that one, or give this one another port"
        ) from error
    return made


def joined(daemon: DaemonConfig, own_host: str, multicast: str) -> socket.socket:
    """What is sent once for several daemons arrives here. Daemons on one host share the port."""
    made = _datagram_socket()
    host, port = multicast_address(multicast)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
        made.bind((host, port))
        membership = socket.inet_aton(host) + socket.inet_aton(own_host)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    except OSError as error:
        made.close()
        raise ConfigError(
            f"daemon {daemon.name!r} cannot receive multicast {multicast} at host {own_host} ({error.strerror}): "
            "correct `multicast` in the configuration, or remove it and datagrams go to each daemon by itself"
        ) from error
    return made


def _datagram_socket() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_BYTES)
    with suppress(OSError):  # Where the system cannot give several datagrams in one read, it gives one.
        made.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
    return made


def free_ports(count: int) -> list[int]:
    """Ports nobody has now: all held at once, so that they differ, then given back."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
