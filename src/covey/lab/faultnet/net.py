"""The bench: hosts, the paths between them, and processes on them.

In:        how many hosts, the seed; what is to happen to which path; what to run where.
Out:       processes and sockets that live on a host; counters by ordered pair.
Not here:  packets (router.py).

Hosts have numbers, 1 and up. A change of paths holds when the call returns: what a host sends afterwards meets the new
paths, and what it sent before the call met the old ones.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Final, Self

from msgspec.structs import replace

from covey.errors import ConfigError
from covey.lab.faultnet import namespace

from .client import RouterProcess
from .messages import HOSTS_MAX, Ask, Pair, Report, RequestDone, SetPaths, Start
from .path import Counters, FaultNetError, Path

MTU_MIN: Final = 576
MTU_MAX: Final = 65_535


class FaultNet:
    """A network of its own for each instance: several may exist at once, and do not know of one another."""

    def __init__(self, hosts: int, seed: int = 0, path: Path | None = None, mtu: int = 1_500) -> None:
        if not 1 <= hosts <= HOSTS_MAX:
            raise ConfigError(f"{hosts} hosts: write a number from 1 to {HOSTS_MAX}")
        if not MTU_MIN <= mtu <= MTU_MAX:
            raise ConfigError(f"an mtu of {mtu}: write a number from {MTU_MIN} to {MTU_MAX}")
        if reason := self.unavailable():
            raise FaultNetError(reason)
        path = path or Path()
        self.hosts = range(1, hosts + 1)
        self._paths = {(one, other): path for one in self.hosts for other in self.hosts if one != other}
        self._processes: list[subprocess.Popen[Any]] = []
        self._router = RouterProcess(Start(hosts, seed, mtu, path))

    @staticmethod
    def unavailable() -> str | None:
        """Why there can be no bench here; None if there can."""
        return namespace.unavailable()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Everything the bench has made is gone afterwards; what still runs on its hosts is killed."""
        for process in self._processes:
            process.kill()
            process.wait()
        self._processes = []
        self._router.close()

    @property
    def router_pid(self) -> int:
        return self._router.pid

    # --- hosts

    def address(self, host: int) -> str:
        self._check(host)
        return namespace.address_of(host)

    def inside(self, host: int) -> AbstractContextManager[None]:
        """Meanwhile the calling thread is on that host: the sockets it makes, the processes it starts belong there."""
        self._check(host)
        return namespace.entered(self._router.namespaces[host - 1])

    def popen(self, host: int, arguments: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a process on that host, with the options of subprocess.Popen. It does not outlive the bench."""
        with self.inside(host):
            process = subprocess.Popen(arguments, **options)
        self._processes = [one for one in self._processes if one.poll() is None] + [process]
        self._router.adopt(process.pid)
        return process

    def adopt(self, pid: int) -> None:
        """For a process that was started by other means: it is killed if the bench ends without closing."""
        self._router.adopt(pid)

    # --- paths

    def path(self, source: int, to: int) -> Path:
        self._check(source, to)
        return self._paths[source, to]

    def set(self, source: int, to: int, path: Path) -> None:
        """What happens from now on to packets of `source` for `to`; not to those of the other direction."""
        self._check(source, to)
        self._change({(source, to): path})

    def set_all(self, path: Path) -> None:
        """The same path for every pair, whatever was set before."""
        self._change(dict.fromkeys(self._paths, path))

    def vary(self, **options: float) -> None:
        """These options of every path become the same; all others, and every cut, stay as they are."""
        self._change({pair: replace(path, **options) for pair, path in self._paths.items()})

    def cut(self, source: int, to: int) -> None:
        self._check(source, to)
        self._cut([(source, to)], True)

    def mend(self, source: int, to: int) -> None:
        """One cut ends."""
        self._check(source, to)
        self._cut([(source, to)], False)

    def partition(self, sides: Sequence[Sequence[int]]) -> None:
        """Nothing crosses between the sides. Cuts that exist stay, and hosts on no side are left alone."""
        side_of = {host: index for index, side in enumerate(sides) for host in side}
        self._check(*side_of)
        apart = [pair for pair in self._paths if set(pair) <= side_of.keys() and side_of[pair[0]] != side_of[pair[1]]]
        self._cut(apart, True)

    def heal(self) -> None:
        """All cuts end; the other options stay."""
        self._cut([pair for pair, path in self._paths.items() if path.cut], False)

    def _cut(self, pairs: Iterable[Pair], cut: bool) -> None:
        self._change({pair: replace(self._paths[pair], cut=cut) for pair in pairs})

    def _change(self, paths: dict[Pair, Path]) -> None:
        self._router.ask(SetPaths(list(paths.items())), RequestDone)
        self._paths |= paths

    def _check(self, *hosts: int) -> None:
        for host in hosts:
            if host not in self.hosts:
                raise ConfigError(f"there is no host {host}: write a number from 1 to {len(self.hosts)}")
        if len(set(hosts)) < len(hosts):
            raise ConfigError(f"a path from host {hosts[0]} to itself does not cross the bench: name two hosts")

    # --- what happened

    def counters(self) -> dict[Pair, Counters]:
        """By source and destination."""
        return dict(self.report().pairs)

    def report(self) -> Report:
        """The counters, and how the router itself is doing."""
        return self._router.ask(Ask(), Report)
