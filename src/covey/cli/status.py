"""`covey status`: how daemons of this machine are, and why.

In:        which daemons.  Out: tables, or one JSON object a daemon.
Not here:  the tables (status_tables.py), what a daemon tells (drivers/live/status.py).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from covey.drivers.live.told import LiveStatus

from .common import BROKEN, At, Json, telling
from .complete import daemon_names

EXAMPLES = (
    "covey status",
    "covey status a b --config cluster/covey.toml",
    "covey status --json",
)


def status(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Which daemons; all if none.", autocompletion=daemon_names),
    ] = None,
    config: Annotated[Path | None, typer.Option("--config", help="The configuration file of the cluster.")] = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Ask running daemons on this machine how they are, and why. Exits 1 if one does not answer."""
    from .where import answers, config_option, daemons, hanging, unseen

    with telling("status"):
        wanted: list[str | None] = [*(names or [])] or [at]
        asked = [one for name in wanted for one in daemons(name, config)]
        told: dict[str, LiveStatus | None] = answers(asked)
        if not names:
            more = unseen(at, config, asked, told)
            asked += more
            told |= answers(more)
        silent = hanging(asked, told)
    if as_json:
        for name, answer in told.items():
            running = answer is not None or name in silent
            print(json.dumps({"name": name, "running": running, "answers": answer is not None} | (answer or {})))
    else:
        from .status_tables import print_statuses

        print_statuses(told, silent)
    if silent:
        print(
            f"covey status: no answer from {' '.join(silent)}: stopped or overloaded; look at the process",
            file=sys.stderr,
        )
    missing = [name for name, answer in told.items() if answer is None and name not in silent]
    if missing:
        which = f"daemon {missing[0]}" if len(missing) < len(told) else "up"
        how = f"`covey {which}{config_option(at, config, told)}`"
        print(f"covey status: not running: {' '.join(missing)}. Start with {how}", file=sys.stderr)
    raise typer.Exit(0 if all(told.values()) else BROKEN)
