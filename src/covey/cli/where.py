"""Which daemons a command is about, and how they are asked: by the rule of `covey.connect`.

In:        an address, a configuration file, or neither.
Out:       daemons of this machine with the sockets at which they tell how they are; their answers.
Not here:  the rule itself (client/address.py), what is told (drivers/live/status.py).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from covey.client.address import ENVIRONMENT, FILE_NAME, SUFFIX, Unix, daemon_of, endpoints, find_file, somebody_listens
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
    address = _address(at, config)
    file = _file(address, config)
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


def _address(at: str | None, config: Path | None) -> str | None:
    return at or (None if config else os.environ.get(ENVIRONMENT)) or None


def _file(address: str | None, config: Path | None) -> Path | None:
    """None where the address says all."""
    by_name = address is None or not {*":/"} & {*address}
    return (config or find_file()) if by_name else None


def unseen(at: str | None, config: Path | None, of: list[AskedDaemon], told: Mapping[str, Any]) -> list[AskedDaemon]:
    """Daemons that were found by nobody's name, since they do not run: those that run know who should be here too."""
    if _address(at, config) is not None:
        return []
    known = {one.name for one in of}
    found = {
        name: one.path.with_name(f"{one.path.name.partition('-')[0]}-{name}")
        for one in of
        for name in (told[one.name] or {}).get("daemons_here", ())
        if name not in known
    }
    return [AskedDaemon(name, path) for name, path in found.items()]


def config_option(at: str | None, config: Path | None, told: Mapping[str, Any]) -> str:
    """What to write behind a command that starts daemons, where it would not find their file by itself."""
    of_one = next((answer.get("config") for answer in told.values() if answer), None)
    file = _file(_address(at, config), config) or (Path(of_one) if of_one else None)
    if file is None or file.absolute() == Path(FILE_NAME).absolute():
        return ""
    return f" --config {shlex.quote(str(file))}"


def nobody_answers(at: str | None, config: Path | None, told: Mapping[str, Any]) -> str:
    return f"no daemon answers of {' '.join(told)}: start daemons with: covey up{config_option(at, config, told)}"


def asked(endpoint: Unix) -> AskedDaemon:
    """From where a daemon takes programs to where it tells how it is."""
    return AskedDaemon(
        daemon_of(endpoint.path) or str(endpoint), endpoint.path.with_name(endpoint.path.name.removesuffix(SUFFIX))
    )


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
