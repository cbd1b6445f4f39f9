"""How the process of a daemon is started: the command, and the one argument it takes.

In:        what this daemon is to do.  Out: a command for subprocess or exec; the options back from its argument.
Not here:  the process itself (daemon.py), its supervisor (child.py, cluster.py).

Most of the time until a daemon is ready is Python's own start. So the command leaves out what a daemon does without:
the search for installed packages (it gets our path as it is), the collection of garbage while modules are loaded, and
`typing_extensions`, which msgspec would load if it is there, and with it a fifth of all.
"""

from __future__ import annotations

import sys
from typing import Final, TypeVar

import msgspec

MODULE: Final = "covey.drivers.live.daemon"


class DaemonOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a daemon process is told."""

    config: str
    """The configuration file."""
    name: str
    """Which of its daemons this is."""
    trace: str | None = None
    """Write the event trace into this directory."""
    run: str = "live"
    """The name of this run in the trace."""
    seed: int | None = None
    """What this daemon draws is drawn from it; otherwise from its life."""
    json: bool = False
    """Say events as JSON objects, one a line."""
    views_only: bool = False
    """Say nothing of the states on the way to a view."""
    control: bool = False
    """Take commands from standard input; its end stops the daemon."""


Options = TypeVar("Options", bound=DaemonOptions)


def command(options: DaemonOptions, module: str = MODULE) -> list[str]:
    """`module` has the `main` that reads these options."""
    frugal = "import gc, sys; gc.disable(); sys.modules['typing_extensions'] = None"
    boot = f"{frugal}; sys.path[:] = {sys.path!r}; from {module} import main; sys.exit(main())"
    return [sys.executable, "-S", "-c", boot, msgspec.json.encode(options).decode()]


def from_arguments(arguments: list[str], kind: type[Options]) -> Options:
    """
    >>> from_arguments(['{"config": "covey.toml", "name": "a"}'], DaemonOptions).name
    'a'
    """
    if len(arguments) != 1:
        raise msgspec.ValidationError("one argument, a JSON object")
    return msgspec.json.decode(arguments[0], type=kind)
