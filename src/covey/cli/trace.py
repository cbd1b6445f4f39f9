"""`covey trace`: look at a recorded trace.

In:        a directory and options.
Out:       rows on standard output, what went wrong and what to do on standard error with exit code 2.
Not here:  what a row is (covey.trace.record), how it is read (covey.trace.cat).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .trace_check import check

if TYPE_CHECKING:
    from covey.trace.record import Row

FAILED = 2
RUNS_SHOWN = 10

app = typer.Typer(name="trace", help="Look at recorded event traces.", no_args_is_help=True)


class Level(StrEnum):
    S = "S"
    C = "C"
    V = "V"


@app.callback()
def trace() -> None:
    """Look at recorded event traces."""


app.command()(check)


@app.command()
def cat(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Directory with the trace: segments, *.ndjson files, or both.")
    ],
    level: Annotated[
        Level | None,
        typer.Option(help="Only rows of this level: S daemon, C client under EVS, V client under virtual synchrony."),
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="Only rows of this run: a simulation seed or the id of a cluster.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Rows are JSON objects, with this and without.")] = False,
) -> None:
    """Print a trace as NDJSON: one row a line, every column of the schema by its name."""
    del as_json
    from covey.trace.errors import TraceError

    try:
        _print_rows(directory, level, run)
    except BrokenPipeError:
        _discard_output()
    except TraceError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{directory} cannot be read ({error.strerror}): name a directory with a trace that you may read.")


def _print_rows(directory: Path, level: Level | None, run: str | None) -> None:
    from covey.trace.cat import read_trace, select, to_json_line
    from covey.trace.errors import TraceError

    # Bytes, because NDJSON is UTF-8 whatever the terminal speaks.
    output = typer.get_binary_stream("stdout")
    runs: dict[str, None] = {}
    for row in select(_noting(read_trace(directory), runs), level, run):
        output.write(to_json_line(row).encode() + b"\n")
    output.flush()
    if run is not None and run not in runs:
        raise TraceError(f"{directory} has no run {run!r}: {_listed(list(runs))}")


def _noting(rows: Iterator[Row], runs: dict[str, None]) -> Iterator[Row]:
    for row in rows:
        runs[row.run] = None
        yield row


def _listed(runs: list[str]) -> str:
    """
    >>> _listed(["7", "8"]), _listed([str(seed) for seed in range(100)])
    ('it has 7 8.', 'it has 0 1 2 3 4 5 6 7 8 9 and 90 more.')
    """
    more = f" and {len(runs) - RUNS_SHOWN} more" if len(runs) > RUNS_SHOWN else ""
    return f"it has {' '.join(runs[:RUNS_SHOWN])}{more}." if runs else "it has no rows."


def _discard_output() -> None:
    """The reader has seen enough. What is still buffered goes nowhere, or the exit would complain of it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(reason: str) -> None:
    typer.echo(f"covey trace cat: {reason}", err=True)
    raise typer.Exit(FAILED)
