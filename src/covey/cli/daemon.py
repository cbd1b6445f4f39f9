"""`covey init` and `covey daemon`: the file of a cluster, and one daemon of it.

In:        a file, a name.  Out: a new file; this process as a daemon.
Not here:  a whole cluster at once (up.py).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from .common import called

if TYPE_CHECKING:
    from covey.config_file import Configuration

FAILED = 2
DEFAULT = Path("covey.toml")

EXAMPLES = {
    "init": ("covey init", "covey init cluster/covey.toml --daemons 5 --port 5000"),
    "daemon": ("covey daemon a", "covey daemon b --config cluster/covey.toml --trace trace"),
}

Config = Annotated[Path, typer.Option("--config", help="The configuration file.")]


def init(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")] = DEFAULT,
    daemons: Annotated[int, typer.Option(min=1, max=100, help="How many daemons.")] = 3,
    name: Annotated[str, typer.Option(help="Name of the cluster: daemons of another name are ignored.")] = "covey",
    port: Annotated[int, typer.Option(min=1, max=65_000, help="UDP port of the first; the others follow.")] = 4_801,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Standard output holds one JSON object.")] = False,
) -> None:
    """Write a configuration for a cluster on this machine, to be edited."""
    from msgspec import to_builtins

    from covey.cluster import Cluster, DaemonConfig, daemon_name
    from covey.config_file import parse, render
    from covey.errors import ConfigError

    if path.exists() and not force:
        _fail(f"{path} exists: name another file, or overwrite it with --force")
    members = tuple(DaemonConfig(daemon_name(rank), 0, "127.0.0.1", port + rank) for rank in range(daemons))
    try:
        text = render(Cluster(name, members), "loopback")
        parse(text, path)
        path.write_text(text, encoding="utf-8")
    except ConfigError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{path} cannot be written ({error.strerror}): name a file in a directory that exists and is yours")
    if as_json:
        told = {"path": str(path), "cluster": name, "preset": "loopback", "daemons": to_builtins(members)}
        print(json.dumps(told))
    else:
        me, named = called(), "" if path == DEFAULT else f" --config {path}"
        print(f"{path} written: start one daemon with `{me} daemon a{named}`, or all with `{me} up{named}`")


def daemon(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which daemon of the file this is.")],
    config: Config = DEFAULT,
    trace: Annotated[Path | None, typer.Option(help="Write the event trace into this directory.")] = None,
    run: Annotated[str, typer.Option(help="Name of this run in the trace.")] = "live",
    as_json: Annotated[bool, typer.Option("--json", help="Say events as JSON objects, one a line.")] = False,
) -> None:
    """Run one daemon in the foreground.

    SIGTERM or Ctrl-C stops it in good order.
    """
    from covey.drivers.live.launch import DaemonOptions, command

    configuration = _load(config)
    _check_name(configuration, name)
    directory = None if trace is None else str(trace)
    options = DaemonOptions(config=str(config), name=name, trace=directory, run=run, json=as_json)
    # A process of its own from here on: a daemon carries none of the command line's libraries.
    os.execv(sys.executable, command(options))


def _load(path: Path) -> Configuration:
    from covey.config_file import load
    from covey.errors import ConfigError

    try:
        return load(path)
    except ConfigError as error:
        _fail(str(error))


def _check_name(configuration: Configuration, name: str) -> None:
    known = [one.name for one in configuration.cluster.daemons]
    if name not in known:
        _fail(f"{configuration.path} has no daemon {name!r}: it has {' '.join(known)}")


def _fail(text: str) -> NoReturn:
    print(f"covey: {text}", file=sys.stderr)
    raise typer.Exit(FAILED)
