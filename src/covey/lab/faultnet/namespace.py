"""Network namespaces and TUN devices: made, entered and left, with nothing but system calls.

In:        a host's number.  Out: descriptors. Closing them is all the cleaning up there is: a device ends with its
           descriptor, a namespace with the last process or descriptor in it, however these end.
Not here:  packets (router.py).

Invariants:
  N1  only the calling thread changes its namespace, so the rest of the process never leaves its own
  N2  a host has routes to the bench's addresses alone: there is no other device, and no default route
"""

from __future__ import annotations

import ctypes
import fcntl
import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

NETWORK: Final = ipaddress.IPv4Network("10.77.0.0/24")
DEVICE: Final = "tun0"
QUEUE_PACKETS: Final = 4_096
"""What a host may send before the router has to read: what comes on top is dropped by the host's own kernel."""

_TUN: Final = Path("/dev/net/tun")
_OWN_NAMESPACE: Final = "/proc/thread-self/ns/net"

# Linux constants that no module of the standard library has.
_CLONE_NEWNET: Final = 0x40000000
_TUNSETIFF: Final = 0x400454CA
_IFF_TUN_WITHOUT_HEADER: Final = 0x0001 | 0x1000
_IFF_TAP_WITHOUT_HEADER: Final = 0x0002 | 0x1000
_IFF_UP: Final = 0x0001
_SIOCSIFFLAGS: Final = 0x8914
_SIOCSIFADDR: Final = 0x8916
_SIOCSIFNETMASK: Final = 0x891C
_SIOCSIFMTU: Final = 0x8922
_SIOCSIFTXQLEN: Final = 0x8943
_REQUEST_BYTES: Final = 40

_libc: Final = ctypes.CDLL(None, use_errno=True)


def address_of(host: int) -> str:
    """Hosts count from 1.

    >>> address_of(1)
    '10.77.0.1'
    """
    return str(NETWORK[host])


@cache
def unavailable() -> str | None:
    """Why this process cannot make hosts here; None if it can."""
    if sys.platform != "linux":
        return "network namespaces need Linux"
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    if not _TUN.exists():
        return f"there is no {_TUN}: the kernel lacks the module tun"
    try:
        # What a container forbids even to root has too many forms to list: try it, in a thread that ends with its host.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(_try).result()
    except OSError as error:
        return f"no host can be made here: {error}"
    return None


def _try() -> None:
    for descriptor in make_host(1, 1_500):
        os.close(descriptor)


def make_host(host: int, mtu: int, ethernet: bool = False) -> tuple[int, int]:
    """A new namespace, and its TUN device, ready to use. The calling thread is inside afterwards.

    With `ethernet` the device carries frames: packets wait in the host until it has learnt its neighbour's address.
    """
    _check(_libc.unshare(_CLONE_NEWNET), "unshare")
    device = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        flags = _IFF_TAP_WITHOUT_HEADER if ethernet else _IFF_TUN_WITHOUT_HEADER
        fcntl.ioctl(device, _TUNSETIFF, _request(DEVICE, struct.pack("=H", flags)))
        _configure(host, mtu)
        return own_namespace(), device
    except OSError:
        os.close(device)
        raise


def own_namespace() -> int:
    """A descriptor of the calling thread's namespace."""
    return os.open(_OWN_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)


def enter(namespace: int) -> None:
    _check(_libc.setns(namespace, _CLONE_NEWNET), "setns")


@contextmanager
def entered(namespace: int) -> Iterator[None]:
    """The calling thread is inside; sockets, processes and threads that it makes there stay there."""
    own = own_namespace()
    try:
        enter(namespace)
        try:
            yield
        finally:
            enter(own)
    finally:
        os.close(own)


# --- the kernel's forms


def _configure(host: int, mtu: int) -> None:
    """Routes follow from the address and the mask, once the device is up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        _set(control, _SIOCSIFADDR, DEVICE, _socket_address(address_of(host)))
        _set(control, _SIOCSIFNETMASK, DEVICE, _socket_address(str(NETWORK.netmask)))
        _set(control, _SIOCSIFMTU, DEVICE, struct.pack("=i", mtu))
        _set(control, _SIOCSIFTXQLEN, DEVICE, struct.pack("=i", QUEUE_PACKETS))
        for name in ("lo", DEVICE):
            _set(control, _SIOCSIFFLAGS, name, struct.pack("=H", _IFF_UP))


def _check(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")


def _set(control: socket.socket, what: int, name: str, value: bytes) -> None:
    fcntl.ioctl(control, what, _request(name, value))


def _request(name: str, value: bytes) -> bytes:
    """An `ifreq`: the device's name, and what is to be set."""
    return struct.pack("16s", name.encode()) + value.ljust(_REQUEST_BYTES - 16, b"\0")


def _socket_address(address: str) -> bytes:
    return struct.pack("=HH", socket.AF_INET, 0) + ipaddress.IPv4Address(address).packed
