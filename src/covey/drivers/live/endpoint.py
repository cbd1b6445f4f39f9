"""One daemon's UDP socket: everything that arrived, everything to send, and which peers' ports refuse.

In:        the cluster's addresses.  Out: datagrams, ranks whose host says that nobody listens, counters by name.
Not here:  what a datagram means (protocol/), when to read and write (driver.py).

Invariants:
  E1  nothing here waits: a datagram that cannot be sent at once is lost, and counted
  E2  an error of the network is data: no method raises it once the socket is bound
  E3  only loopback, unless asked otherwise: until datagrams are sealed, whoever reaches the port can speak for a daemon
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import struct
from contextlib import suppress
from typing import Final

from covey.config import Cluster, DaemonConfig
from covey.errors import ConfigError
from covey.protocol.values import Count

Address = tuple[str, int]

DATAGRAM_BYTES_MAX: Final = 65_536
SOCKET_BUFFER_BYTES: Final = 2 * 1024 * 1024
"""Asked for, not needed: it lets a paused daemon find on waking what was said meanwhile. The system may give less."""

# Linux names that the socket module lacks: have errors of sent datagrams queued, each with the address it was sent to.
_IP_RECVERR: Final = 11
_ORIGIN_ICMP: Final = 2
_EXTENDED_ERROR: Final = struct.Struct("=IB")
_ANCILLARY_BYTES: Final = 256


def check_cluster(cluster: Cluster, allow_unsealed: bool = False) -> None:
    """ConfigError: this driver cannot run this cluster yet."""
    for daemon in cluster.daemons:
        _address(daemon, allow_unsealed)
    if cluster.site_count > 1:
        raise ConfigError("several sites need links between sites, which live daemons lack: put all in one site")


class Endpoint:
    """The socket of one daemon; the address of a rank is fixed by the configuration."""

    def __init__(self, cluster: Cluster, rank: int, allow_unsealed: bool = False) -> None:
        check_cluster(cluster, allow_unsealed)
        self.count = Count()
        self._addresses = [_address(daemon, allow_unsealed) for daemon in cluster.daemons]
        self._ranks = {address: rank for rank, address in enumerate(self._addresses)}
        self._refused: list[int] = []
        self._socket = _bound(cluster.daemons[rank], self._addresses[rank])

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def address(self) -> Address:
        host, port = self._socket.getsockname()
        return host, port

    def close(self) -> None:
        self._socket.close()

    # --- receiving

    def receive(self, limit: int) -> list[bytes]:
        """What has arrived, up to `limit` datagrams: the rest wakes us again at once."""
        datagrams: list[bytes] = []
        receive = self._socket.recv
        for _ in range(limit):
            try:
                datagrams.append(receive(DATAGRAM_BYTES_MAX))
            except BlockingIOError:
                break
            except OSError:
                # An error of a datagram we sent earlier takes the place of one read; see _read_errors.
                self._read_errors()
        return datagrams

    def refused(self) -> list[int]:
        """Ranks whose port was found closed since the last call."""
        self._read_errors()
        ranks, self._refused = self._refused, []
        return ranks

    # --- sending

    def send(self, to: tuple[int, ...], data: bytes) -> None:
        for rank in to:
            self._send(data, self._addresses[rank])

    def _send(self, data: bytes, address: Address) -> None:
        try:
            self._socket.sendto(data, address)
        except ConnectionRefusedError:
            # The error belongs to an earlier datagram, perhaps to another peer; this one was not tried yet.
            self._read_errors()
            try:
                self._socket.sendto(data, address)
            except OSError as error:
                self._lost(error)
        except OSError as error:
            self._lost(error)

    def _lost(self, error: OSError) -> None:
        self.count.add(f"datagram not sent: {errno.errorcode.get(error.errno or 0, 'unknown error')}")

    # --- errors of datagrams sent earlier

    def _read_errors(self) -> None:
        """Empty the error queue; each entry names the address that its datagram was sent to."""
        while True:
            try:
                _, ancillary, _, address = self._socket.recvmsg(1, _ANCILLARY_BYTES, socket.MSG_ERRQUEUE)
            except OSError:
                return
            rank = self._ranks.get(address)
            if rank is not None and any(_says_refused(*entry) for entry in ancillary):
                self.count.add("port refused")
                if rank not in self._refused:
                    self._refused.append(rank)


def _says_refused(level: int, kind: int, data: bytes) -> bool:
    if (level, kind) != (socket.IPPROTO_IP, _IP_RECVERR) or len(data) < _EXTENDED_ERROR.size:
        return False
    number, origin = _EXTENDED_ERROR.unpack_from(data)
    return (number, origin) == (errno.ECONNREFUSED, _ORIGIN_ICMP)


def _address(daemon: DaemonConfig, allow_unsealed: bool) -> Address:
    host = "127.0.0.1" if daemon.host == "localhost" else daemon.host
    try:
        loopback = ipaddress.IPv4Address(host).is_loopback
    except ipaddress.AddressValueError:
        raise ConfigError(f"daemon {daemon.name!r} has host {daemon.host!r}: write an IPv4 address") from None
    if not loopback and not allow_unsealed:
        raise ConfigError(
            f"daemon {daemon.name!r} has host {daemon.host!r}, but datagrams are not sealed yet, and only loopback "
            "is safe without: write 127.0.0.1, or `allow_unsealed = true` on a network you trust"
        )
    if not 0 < daemon.port < 65_536:
        raise ConfigError(f"daemon {daemon.name!r} has port {daemon.port}: write a free one, 1024 to 65535")
    return host, daemon.port


def _bound(daemon: DaemonConfig, address: Address) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        bound.setsockopt(socket.SOL_SOCKET, option, SOCKET_BUFFER_BYTES)
    with suppress(OSError):  # A refused port is a hint only: where the system cannot tell, timeouts must do.
        bound.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise ConfigError(
            f"daemon {daemon.name!r} cannot listen on {address[0]} port {address[1]} ({error.strerror}): "
            "is it running already? Stop that one, or give this one another port"
        ) from error
    return bound
