"""`covey up`: a whole cluster on this machine, until Ctrl-C.

In:        a configuration file, or how many daemons a new one is to have and where it is to be.
Out:       running daemons, which say their views; a file, where there was none.
Not here:  one daemon (daemon.py), its process (drivers/live/daemon.py).

Commands look for a covey.toml first, so that file is also what `covey up` runs: otherwise they would ask for others.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import BROKEN, called, fail, telling

if TYPE_CHECKING:
    from covey.cluster import Cluster

CLUSTER = "up"
"""The name of clusters that we have made: their files may be written anew."""
DAEMONS = 3
DIRECTORY = Path("covey-up")

EXAMPLES = ("covey up", "covey up --daemons 5 --dir cluster", "covey up --config cluster/covey.toml")


def up(
    daemons: Annotated[
        int | None, typer.Option(min=1, max=30, help=f"How many daemons a new cluster has; {DAEMONS} if not given.")
    ] = None,
    directory: Annotated[
        Path | None, typer.Option("--dir", help=f"Where to put the file of a new cluster; {DIRECTORY} if not given.")
    ] = None,
    config: Annotated[Path | None, typer.Option("--config", help="Run all daemons of this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Daemons say events as JSON objects, one a line.")] = False,
) -> None:
    """Run a whole cluster on this machine until Ctrl-C.

    It is that of the covey.toml here or above. If there is none, or with --daemons or --dir, it is a new one.
    """
    from covey.client.address import find_file
    from covey.config_file import load
    from covey.drivers.live.launch import DaemonOptions, command

    if config is not None and (daemons is not None or directory is not None):
        fail("up", "--config runs a cluster as it is: leave out --daemons and --dir, which are for a new one")
    is_new = daemons is not None or directory is not None
    with telling("up"):
        path = config or (None if is_new else find_file()) or _write_new(daemons or DAEMONS, directory or DIRECTORY)
        cluster = load(path).cluster
        _refuse_if_running(cluster, path)
    _say_what_next(cluster, path)
    commands = [
        command(DaemonOptions(config=str(path), name=one.name, json=as_json, views_only=not as_json, control=True))
        for one in cluster.daemons
    ]
    # Their own sessions: Ctrl-C comes to us, and we stop them in good order. Our end of their input is open while we
    # live: they do not outlive us, whatever ends us.
    children = [subprocess.Popen(one, stdin=subprocess.PIPE, start_new_session=True) for one in commands]
    raise typer.Exit(_wait_for(dict(zip((one.name for one in cluster.daemons), children, strict=True))))


def _write_new(daemons: int, directory: Path) -> Path:
    from covey.cluster import Cluster, DaemonConfig, daemon_name
    from covey.config_file import load, render
    from covey.drivers.live.sockets import free_ports

    path = directory / "covey.toml"
    if path.exists():
        former = load(path).cluster
        _refuse_if_running(former, path)
        if former.name != CLUSTER:
            fail("up", f"{path} is not our work: run it with --config {path}, or name another --dir for a new cluster")
    ports = free_ports(daemons)
    members = tuple(DaemonConfig(daemon_name(rank), 0, "127.0.0.1", port) for rank, port in enumerate(ports))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(render(Cluster(CLUSTER, members), "loopback"), encoding="utf-8")
    except OSError as error:
        fail("up", f"{path} cannot be written ({error.strerror}): name a directory of yours with --dir")
    return path


def _refuse_if_running(cluster: Cluster, path: Path) -> None:
    from covey.client.address import daemon_of, running

    names = [daemon_of(one) for one in running(cluster)]
    if names:
        remedy = "use them, or stop them first; one more cluster needs another directory, named with --dir"
        fail("up", f"{' '.join(names)} of {path} run already: {remedy}")


def _say_what_next(cluster: Cluster, path: Path) -> None:
    from covey.client.address import find_file, running, socket_path

    print(f"{len(cluster.daemons)} daemons of {path}, until Ctrl-C", file=sys.stderr)
    print(f"in another terminal: {called()} chat; or top, status, send, tail", file=sys.stderr)
    found = find_file()
    if running() if found is None else found != path.absolute():
        address = f"unix:{socket_path(cluster.digest(), cluster.daemons[0].name)}"
        print(f"they are not your only ones: work in {path.absolute().parent} to mean them, or", file=sys.stderr)
        print(f"export COVEY_ADDRESS={address}", file=sys.stderr)


def _wait_for(children: dict[str, subprocess.Popen[bytes]]) -> int:
    """Until all have ended; SIGTERM, SIGHUP and Ctrl-C are passed on as SIGTERM. Who ends otherwise is named."""
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True
        for child in children.values():
            if child.returncode is None:
                child.send_signal(signal.SIGTERM)

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)
    left, code = dict(children), 0
    while left:
        name = _first_to_end(left)
        ended = left.pop(name).wait()
        if ended or not stopping:
            code = BROKEN
            print(f"covey up: {_how_it_ended(name, ended, list(left))}", file=sys.stderr, flush=True)
    return code


def _first_to_end(running: dict[str, subprocess.Popen[bytes]]) -> str:
    """It is only looked at: whose it is reaps it."""
    while True:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        for name, child in running.items():
            if ended is not None and child.pid == ended.si_pid:
                return name
        if ended is not None:
            os.waitpid(ended.si_pid, 0)  # None of ours: a process that was left to us.


def _how_it_ended(name: str, code: int, left: list[str]) -> str:
    """
    >>> _how_it_ended("b", -9, ["a", "c"])
    'daemon b has died: killed by SIGKILL; still running: a c'
    >>> _how_it_ended("a", 2, [])
    'daemon a has died: exit code 2; none is left'
    """
    try:
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    except ValueError:
        how = f"killed by signal {-code}"
    what = f"has died: {how}" if code else "has stopped"
    others = f"still running: {' '.join(left)}" if left else "none is left"
    return f"daemon {name} {what}; {others}"
