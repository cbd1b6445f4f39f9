"""Hosts on this machine, joined by a bridge: network namespaces that end with the processes that hold them.

In:        how many hosts, and a directory for what their holders say.
Out:       for each host, the words that run a command on it.
Not here:  what runs there (systems/corosync_system.py); a network that loses and delays (faultnet/).

Invariants:
  H1  no namespace and no device has a name outside: when the holders have ended, however that comes, nothing is left
  H2  each host has its own /run and /dev/shm, so that what daemons leave there ends too
  H3  a host has routes to the others alone
  H4  packets may be as large as on loopback: systems that run there have no advantage
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from covey.lab.cluster import LiveError

NEEDED: Final = {"ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux"}
"""Programs, and their Debian packages."""
PREFIX: Final = "10.78.0"
PACKET_BYTES_MAX: Final = 65_535
_BRIDGE: Final = "bridge"
_OWN_DIRECTORIES: Final = "mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /dev/shm && echo held && exec cat"


def unavailable() -> str | None:
    """Why hosts cannot be made here; None if they can. The programs it takes are in NEEDED."""
    if os.geteuid() != 0:
        return "only root may make network namespaces; run it with sudo"
    command = ["unshare", "--net", "--mount", "true"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        return "this machine lets nobody make network namespaces; run it outside the container"
    return None


def address_of(host: int) -> str:
    """Hosts count from 0.

    >>> address_of(0)
    '10.78.0.1'
    """
    return f"{PREFIX}.{host + 1}"


def inside(holder: int) -> list[str]:
    """The words before a command that is to run where this process is."""
    return ["nsenter", f"--net=/proc/{holder}/ns/net", f"--mount=/proc/{holder}/ns/mnt", "--"]


@contextmanager
def bridged_hosts(count: int) -> Iterator[list[list[str]]]:
    """For each host, the words before a command."""
    with ExitStack() as holders:
        bridge = holders.enter_context(_held())
        hosts = [holders.enter_context(_held()) for _ in range(count)]
        _run(bridge, f"ip link add {_BRIDGE} mtu {PACKET_BYTES_MAX} type bridge")
        _run(bridge, f"ip link set {_BRIDGE} up")
        for number, holder in enumerate(hosts):
            _join(bridge, holder, number)
        yield [inside(holder) for holder in hosts]


def _join(bridge: int, holder: int, number: int) -> None:
    """A cable from the host to the bridge."""
    mtu = f"mtu {PACKET_BYTES_MAX}"
    _run(bridge, f"ip link add port{number} {mtu} type veth peer name cable{number} {mtu}")
    _run(bridge, f"ip link set port{number} master {_BRIDGE} up")
    _run(bridge, f"ip link set cable{number} netns {holder}")
    _run(holder, f"ip addr add {address_of(number)}/24 dev cable{number}")
    _run(holder, f"ip link set cable{number} up")
    _run(holder, "ip link set lo up")


@contextmanager
def _held() -> Iterator[int]:
    """A process in namespaces of its own: it ends when we close its input, or are no more."""
    command = ["unshare", "--net", "--mount", "sh", "-c", _OWN_DIRECTORIES]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as holder:
        assert holder.stdout is not None
        if holder.stdout.readline() != b"held\n":
            raise LiveError("no namespace of its own could be made for a host")
        yield holder.pid


def _run(holder: int, command: str) -> None:
    done = subprocess.run([*inside(holder), *command.split()], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LiveError(f"{command}: {done.stderr.strip()}")
