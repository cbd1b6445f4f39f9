"""One daemon's UDP sockets: everything that arrived, everything to send, and which peers' ports refuse.

In:        the cluster's addresses.
Out:       datagrams and where they came from, ranks whose host says that nobody listens, counters by name.
Not here:  what a datagram means (protocol/), when to read and write (driver.py), socket options (sockets.py).

Invariants:
  E1  a datagram that finds no room waits for it, all of one `send` together SEND_WAIT_MS at most; then what finds no
      room is lost, and counted
  E2  an error of the network is data: no method raises it once the sockets are bound
  E3  to each peer, datagrams leave in the order given
"""

from __future__ import annotations

import errno
import math
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from covey.cluster import Address, Cluster, multicast_address
from covey.protocol.counters import Count, Counter, Family
from covey.protocol.effects import Send
from covey.protocol.inputs import Datagram

from .sockets import IP_RECVERR, address_of, bound, check_cluster, joined
from .trains import cut, to_be_cut, trains

READ_BYTES_MAX: Final = 65_536
_ANCILLARY_BYTES: Final = 256
_ORIGIN_ICMP: Final = 2
_EXTENDED_ERROR: Final = struct.Struct("=IB")

_TRAIN_REFUSED: Final = (errno.EIO, errno.EINVAL, errno.EOPNOTSUPP, errno.EMSGSIZE)
"""How systems and devices say that they do not cut, or not into datagrams of a size that the path cannot carry."""


class Traffic(msgspec.Struct):
    """What has passed so far. Multicast counts once; bytes are those of datagrams, without the headers below them."""

    datagrams_sent: int = 0
    bytes_sent: int = 0
    datagrams_received: int = 0
    bytes_received: int = 0


SEND_WAIT_MS: Final = 10
"""How long a full socket may hold up a step: less than any `token_resend_ms`, so nobody repeats what is only late."""

_TRIES_MAX: Final = 8


class Endpoint:
    """The sockets of one daemon; the address of a rank is fixed by the configuration."""

    def __init__(self, cluster: Cluster, rank: int, allow_unsealed: bool = False) -> None:
        check_cluster(cluster, allow_unsealed)
        self.count = Count()
        self.traffic = Traffic()
        self.lost: dict[str, int] = {}
        """Datagrams that could not be sent, by the name of the error."""
        self.lost_to: Address = ("", 0)
        """Where the last one of them was to go."""
        self._addresses = [address_of(daemon, allow_unsealed) for daemon in cluster.daemons]
        self._ranks = {address: rank for rank, address in enumerate(self._addresses)}
        self._refused: list[int] = []
        self._train_refused: dict[Address, int] = {}
        """By receiver: trains with datagrams of this size or larger go one by one."""
        self._rank = rank
        self.address = self._addresses[rank]
        self._alone = [[address] for address in self._addresses]
        self._multicast = None if cluster.multicast is None else [multicast_address(cluster.multicast)]
        daemon = cluster.daemons[rank]
        self._socket = bound(daemon, self.address)
        self._sockets = [self._socket]
        self._wait_until: float | None = None
        """When what is being sent has waited long enough; None: it has not had to."""
        self._more = select.poll()
        self._room = select.poll()
        self._room.register(self._socket.fileno(), select.POLLOUT)
        if cluster.multicast is not None:
            try:
                self._sockets.append(joined(daemon, self.address[0], cluster.multicast))
            except BaseException:
                self.close()
                raise
        for one in self._sockets:
            self._more.register(one.fileno(), select.POLLIN)

    def descriptors(self) -> list[int]:
        return [one.fileno() for one in self._sockets]

    def close(self) -> None:
        for one in self._sockets:
            one.close()

    # --- receiving

    def receive(self, limit: int) -> list[Datagram]:
        """What has arrived, until there are `limit` datagrams or a few more: the rest wakes us again at once.

        First what is for us alone: data that others sent to all of us before the token has arrived when we see it.
        """
        datagrams: list[Datagram] = []
        for one in self._sockets:
            self.traffic.bytes_received += self._receive_from(one, datagrams, limit)
        self.traffic.datagrams_received += len(datagrams)
        return datagrams

    def _receive_from(self, one: socket.socket, datagrams: list[Datagram], limit: int) -> int:
        """How many bytes came."""
        size = 0
        for _ in range(limit):
            if len(datagrams) >= limit:
                return size
            try:
                data, ancillary, _, source = one.recvmsg(READ_BYTES_MAX, _ANCILLARY_BYTES)
            except BlockingIOError:
                return size
            except OSError:
                # An error of a datagram we sent earlier takes the place of one read; see _read_errors.
                self._read_errors()
                continue
            rank = self._ranks.get(source)
            if rank == self._rank:
                continue  # Our own multicast: the other daemons on this host need it, and so we get it too.
            size += len(data)
            if ancillary:
                datagrams += [Datagram(piece, source, rank is None) for piece in cut(data, ancillary)]
            else:
                datagrams.append(Datagram(data, source, rank is None))
                if len(datagrams) == 1 and not self._more.poll(0):
                    return size  # Most come alone where little is sent: to ask costs less than to read in vain.
        return size

    def refused(self) -> list[int]:
        """Ranks whose port was found closed since the last call."""
        ranks, self._refused = self._refused, []
        return ranks

    # --- sending

    def send(self, sends: Sequence[Send]) -> None:
        sent = size = 0
        self._wait_until = None
        for to, datagrams in trains(sends) if len(sends) > 1 else [(one.to, [one.data]) for one in sends]:
            receivers = self._receivers(to)
            sent += len(receivers) * len(datagrams)
            size += len(receivers) * (len(datagrams[0]) * (len(datagrams) - 1) + len(datagrams[-1]))
            for address in receivers:
                if len(datagrams) == 1 or not self._send_together(datagrams, address):
                    for data in datagrams:
                        self._send(data, address)
        self.traffic.datagrams_sent += sent
        self.traffic.bytes_sent += size

    def _receivers(self, to: tuple[int, ...]) -> list[Address]:
        if len(to) == 1:
            return self._alone[to[0]]
        if self._multicast is not None and to:
            return self._multicast
        return [self._addresses[rank] for rank in to]

    def _send(self, data: bytes, address: Address) -> None:
        try:
            self._socket.sendto(data, address)
        except OSError as error:
            last = self._try_again(error, self._socket.sendto, data, address)
            if last is not None:
                self._lost([data], address, last)

    def _send_together(self, datagrams: list[bytes], address: Address) -> bool:
        """Whether the system took them, or lost them; if not, it wants them one by one."""
        size = len(datagrams[0])
        if size >= self._train_refused.get(address, READ_BYTES_MAX):
            return False
        try:
            self._socket.sendmsg(datagrams, to_be_cut(size), 0, address)
        except OSError as error:
            last = self._try_again(error, self._socket.sendmsg, datagrams, to_be_cut(size), 0, address)
            if last is not None and last.errno in _TRAIN_REFUSED:
                self._train_refused[address] = size
                self.count.add(Family.SENT_ONE_BY_ONE.of(_name(last)))
                return False
            if last is not None:
                self._lost(datagrams, address, last)
        return True

    def _try_again(self, error: OSError, send: Callable[..., int], *arguments: object) -> OSError | None:
        """No room: wait a little. A refusal belongs to an earlier datagram: this one was not tried yet."""
        for _ in range(_TRIES_MAX):
            if isinstance(error, BlockingIOError):
                if not self._wait_for_room():
                    return error
            elif isinstance(error, ConnectionRefusedError):
                self._read_errors()
            else:
                return error
            try:
                send(*arguments)
            except OSError as last:
                error = last
            else:
                return None
        return error

    def _wait_for_room(self) -> bool:
        """Until there may be room; False if there was no time left to wait."""
        now = time.monotonic()
        if self._wait_until is None:
            self._wait_until = now + SEND_WAIT_MS / 1_000
            self.count.add(Counter.WAITED_FOR_ROOM)
        left_ms = math.ceil((self._wait_until - now) * 1_000)
        if left_ms <= 0:
            return False
        if any(mask & select.POLLERR for _, mask in self._room.poll(left_ms)):
            self._read_errors()  # Errors end the wait too: they are not what was waited for.
        return True

    def _lost(self, datagrams: list[bytes], address: Address, error: OSError) -> None:
        self.traffic.datagrams_sent -= len(datagrams)
        self.traffic.bytes_sent -= sum(map(len, datagrams))
        name = _name(error)
        self.lost[name] = self.lost.get(name, 0) + len(datagrams)
        self.lost_to = address
        self.count.add(Family.DATAGRAM_NOT_SENT.of(name), len(datagrams))

    # --- errors of datagrams sent earlier

    def on_errors(self) -> None:
        """The system says that there are some."""
        self._read_errors()

    def _read_errors(self) -> None:
        """Empty the error queue; each entry names the address that its datagram was sent to."""
        while True:
            try:
                _, ancillary, _, address = self._socket.recvmsg(1, _ANCILLARY_BYTES, socket.MSG_ERRQUEUE)
            except OSError:
                return
            rank = self._ranks.get(address)
            if rank is not None and any(_says_refused(*entry) for entry in ancillary):
                self.count.add(Counter.PORT_REFUSED)
                if rank not in self._refused:
                    self._refused.append(rank)


def _says_refused(level: int, kind: int, data: bytes) -> bool:
    if (level, kind) != (socket.IPPROTO_IP, IP_RECVERR) or len(data) < _EXTENDED_ERROR.size:
        return False
    number, origin = _EXTENDED_ERROR.unpack_from(data)
    return (number, origin) == (errno.ECONNREFUSED, _ORIGIN_ICMP)


def _name(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, "unknown error")
