"""A daemon process for demonstrations and tests: it can load itself, and be cut off from others.

In:        its options; besides the commands of every daemon (drivers/live/control.py), where it takes any:

    quiet        stop the load
    cut N N …    send nothing to the daemons of these names any more, as if the network were in parts; none: to all

Out:       what every daemon says.
Not here:  the process (drivers/live/daemon.py), what the load is (load.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from covey.cluster import Cluster
from covey.drivers.live.daemon import DaemonProcess, run_daemon
from covey.drivers.live.driver import LiveDaemon, clock
from covey.drivers.live.launch import DaemonOptions
from covey.protocol.effects import Send

from .load import Load

MODULE: Final = "covey.lab.daemon"


class LabOptions(DaemonOptions, frozen=True, kw_only=True):
    """What such a daemon is told."""

    load: float = 0
    """Submit this many messages a second. They are the same from the same seed."""
    bursts: bool = False
    """Many at once now and then, at the same rate on average."""


class Cut:
    """Stands between a daemon and its socket: nothing leaves for some ranks. Not with multicast."""

    def __init__(self, send: Callable[[list[Send]], None]) -> None:
        self._send = send
        self.off: frozenset[int] = frozenset()

    def send(self, sends: list[Send]) -> None:
        self._send([self._without(one) for one in sends] if self.off else sends)

    def _without(self, send: Send) -> Send:
        return Send(tuple(rank for rank in send.to if rank not in self.off), send.data)


def make_process(options: LabOptions) -> DaemonProcess:
    process = DaemonProcess(options)
    _load(process, options)
    _take_cuts(process)
    return process


def _load(process: DaemonProcess, options: LabOptions) -> None:
    process.commands["quiet"] = lambda _: None  # Where there is no load, that is nothing.
    if options.load <= 0:
        return
    daemon = process.daemon
    bundle_bytes = daemon.core.kit.settings.bundle_bytes
    load = Load(options.load, process.seed, clock().mono_us, bundle_bytes, options.bursts)
    daemon.keep_up(lambda now_us: _submit(daemon, load, now_us))
    process.commands["quiet"] = lambda _: load.stop()


def _submit(daemon: LiveDaemon, load: Load, now_us: int) -> int | None:
    for one in load.due(now_us):
        daemon.give(one)
    return load.next_us()


def _take_cuts(process: DaemonProcess) -> None:
    daemon = process.daemon
    cut = Cut(daemon.send)
    daemon.send = cut.send

    def on_cut(names: list[str]) -> None:
        ranks = _ranks(daemon.core.kit.cluster, names)
        if ranks is None:
            process.notice("cut needs names of daemons, and a cluster without multicast: nothing is cut")
        else:
            cut.off = ranks

    process.commands["cut"] = on_cut


def _ranks(cluster: Cluster, names: list[str]) -> frozenset[int] | None:
    """None if these cannot be cut off."""
    known = {daemon.name: rank for rank, daemon in enumerate(cluster.daemons)}
    if cluster.multicast or not known.keys() >= set(names):
        return None
    return frozenset(known[name] for name in names)


def main() -> int:
    return run_daemon(LabOptions, make_process)


if __name__ == "__main__":
    sys.exit(main())
