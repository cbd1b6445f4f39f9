"""What the commands share: their options, their exit codes, and how an error is told.

Exit codes: 0 all is well; 1 a promise is broken, or nobody was reached; 2 it was asked wrongly; 130 Ctrl-C.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from .complete import daemon_names, group_names

BROKEN = 1
USAGE = 2
INTERRUPTED = 130
RECONNECT_S = 30.0
"""A command that has lost its daemon looks for another one for so long."""

At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="ADDRESS",
        help="The daemon: its name, unix:/path or tcp://host:port. Without it: COVEY_ADDRESS, else the daemons of the "
        "covey.toml here or above, else those that run on this machine.",
        autocompletion=daemon_names,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Standard output holds only JSON objects, one a line.")]
GroupName = Annotated[
    str, typer.Argument(metavar="GROUP", help="The group, or name@daemon.", autocompletion=group_names)
]
GroupNames = Annotated[list[str], typer.Argument(metavar="GROUP...", help="Groups.", autocompletion=group_names)]


class ServiceName(StrEnum):
    """What is promised of a message."""

    UNRELIABLE = "unreliable"
    RELIABLE = "reliable"
    FIFO = "fifo"
    CAUSAL = "causal"
    AGREED = "agreed"
    SAFE = "safe"


class PolicyName(StrEnum):
    """What is to happen when we read too slowly."""

    DISCONNECT = "disconnect"
    BLOCK = "block"


def finite(value: float | None) -> float | None:
    """For every option that takes a number: `nan` is not below a least one, nor above a largest."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a number to count with: write one like 2.5")
    return value


def fail(command: str, text: object, code: int = USAGE) -> NoReturn:
    print(f"covey {command}: {text}", file=sys.stderr)
    raise typer.Exit(code)


@contextmanager
def telling(command: str) -> Iterator[None]:
    """Errors of Covey end the command, each with its code; their texts say what to type next."""
    from covey.errors import ConnectError, CoveyError, RefusedError, SessionOverError

    try:
        yield
    except RefusedError as error:
        hint = "; choose another one with --name" if "taken" in str(error) else ""
        fail(command, f"{error}{hint}", BROKEN)
    except (ConnectError, SessionOverError) as error:
        several = "several clusters" in str(error)
        hint = ". Write it after --at, or run this in the directory of its covey.toml" if several else ""
        fail(command, f"{error}{hint}", BROKEN)
    except CoveyError as error:
        fail(command, error, USAGE)
    except BrokenPipeError:
        # The reader has seen enough. What is still buffered goes nowhere, or the exit would complain of it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def called() -> str:
    """What to type to call us again: without a virtual environment that is active, no shell knows `covey`."""
    me = Path(sys.argv[0])
    return str(me) if me.name == "covey" and shutil.which("covey") is None else "covey"


def session_name(asked: str | None, command: str) -> str:
    """Unique enough, for commands that nobody answers to.

    >>> session_name("bob", "tail")
    'bob'
    """
    return asked or f"{command}-{os.getpid()}"
