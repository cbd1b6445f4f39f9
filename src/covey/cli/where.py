"""Which daemons a command is about, and how they are asked: by the rule of `covey.connect`.

In:        an address, a configuration file, or neither.
Out:       daemons of this machine with the sockets at which they tell how they are; their answers.
Not here:  the rule itself (client/address.py), what is told (drivers/live/status.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from covey.client.address import ENVIRONMENT, SUFFIX, Unix, daemon_of, endpoints, find_file, somebody_listens
from covey.config_file import load
from covey.drivers.live.status import NotRunningError, Question, ask, socket_path
from covey.errors import ConfigError

ASKED_AT_ONCE = 16


class AskedDaemon(NamedTuple):
    """A daemon, and where it is asked."""

    name: str
    path: Path


def daemons(at: str | None, config: Path | None) -> list[AskedDaemon]:
    """All of the file, running or not; without a file those that run here. At least one."""
    address = at or (None if config else os.environ.get(ENVIRONMENT)) or None
    by_name = address is None or not {*":/"} & {*address}
    file = (config or find_file()) if by_name else None
    if file is not None:
        cluster = load(file).cluster
        names = [daemon.name for daemon in cluster.daemons]
        if address is not None and address not in names:
            raise ConfigError(f"{file} has no daemon {address!r}: it has {' '.join(names)}")
        return [AskedDaemon(name, socket_path(cluster, name)) for name in names if address in (None, name)]
    found = endpoints(address)
    if not all(isinstance(one, Unix) for one in found):
        raise ConfigError(f"{address} is asked on its own machine only: run this command there, with a daemon's name")
    return [asked(one) for one in found if isinstance(one, Unix)]


def asked(endpoint: Unix) -> AskedDaemon:
    """From where a daemon takes programs to where it tells how it is."""
    return AskedDaemon(daemon_of(endpoint.path), endpoint.path.with_name(endpoint.path.name.removesuffix(SUFFIX)))


def answers(of: list[AskedDaemon], question: Question | None = None) -> dict[str, Any]:
    """By name; None of those that do not answer. All are asked at once: one that hangs holds up no other."""
    with ThreadPoolExecutor(max(1, min(ASKED_AT_ONCE, len(of)))) as pool:
        told = list(pool.map(lambda one: _answer(one, question), of))
    return {one.name: answer for one, answer in zip(of, told, strict=True)}


def hanging(of: list[AskedDaemon], told: Mapping[str, object]) -> list[str]:
    """Those that take a connection and do not answer: they run, and are stopped or overloaded."""
    return [one.name for one in of if told[one.name] is None and somebody_listens(one.path)]


def _answer(one: AskedDaemon, question: Question | None) -> Any:
    try:
        return ask(one.path, question)
    except NotRunningError:
        return None
