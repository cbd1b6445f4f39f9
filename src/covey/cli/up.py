"""`covey up`: a whole cluster on this machine, until Ctrl-C.

In:        a configuration file, or how many daemons a new one is to have and where it is to be.
Out:       running daemons, which say their views; a file, where there was none.
Not here:  one daemon (daemon.py), its process (drivers/live/daemon.py).

Commands look for a covey.toml first, so that file is also what `covey up` runs: otherwise they would ask for others.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import called, fail, telling

if TYPE_CHECKING:
    from covey.config import Cluster

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
    raise typer.Exit(_wait_for(children))


def _write_new(daemons: int, directory: Path) -> Path:
    from covey.config import Cluster, DaemonConfig, daemon_name
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


def _wait_for(children: list[subprocess.Popen[bytes]]) -> int:
    """Until all have ended; SIGTERM, SIGHUP and Ctrl-C are passed on as SIGTERM."""

    def stop(*_: object) -> None:
        for child in children:
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)
    return max(abs(child.wait()) for child in children)
