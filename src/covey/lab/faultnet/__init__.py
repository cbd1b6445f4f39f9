"""The fault bench: real daemons on a network of our own making, which delays, loses, repeats, reorders and cuts.

    with FaultNet(hosts=3, seed=1) as net:
        daemon = net.popen(1, [...])                          # lives at net.address(1)
        net.set_all(Path(delay_ms=20, jitter_ms=5))
        net.set(1, 2, Path(loss=0.1))                         # this direction only
        net.partition([[1], [2, 3]])
        net.heal()

A host is a network namespace with a loopback device and one TUN device, and nothing else. A router, in a process of its
own, holds the other ends of all TUN devices and carries packets between them. So daemons run unchanged, on sockets and
in a kernel that know nothing of it, and no datagram of theirs can reach anything but another host of the bench.

    path.py       what may happen to packets, and what did: values
    lane.py       what happens to one packet: pure
    router.py     the process that carries packets
    namespace.py  namespaces and devices: the only file that speaks to the kernel about them
    messages.py   what is said between a bench and its router
    client.py     the router as seen from the bench
    net.py        the bench

The words are those of the simulated network. A packet is an IPv4 packet: a datagram larger than the MTU travels in
several, and is lost with any of them.
"""

from .net import FaultNet
from .path import Counters, FaultNetError, Path

__all__ = ["Counters", "FaultNet", "FaultNetError", "Path"]
