"""`covey bench`: measure, with real processes. Every number says what it was measured from and to."""

from __future__ import annotations

import json
from typing import Annotated

import typer

app = typer.Typer(name="bench", help="Measure with real processes.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def bench() -> None:
    """Measure with real processes."""


@app.command()
def failover(
    daemons: Annotated[int, typer.Option(min=2, max=9, help="Daemons in the cluster.")] = 3,
    trials: Annotated[int, typer.Option(min=1, help="How often each is measured.")] = 10,
    seed: Annotated[int, typer.Option(help="Decides the victims.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Standard output holds one JSON object.")] = False,
) -> None:
    """How long until the last survivor has the new view: after start, kill -9, SIGTERM and restart."""
    from covey.drivers.live.failover import KINDS, measure_failover

    from .tables import console, progress

    steps = progress(measure_failover(daemons, trials, seed), trials, "trials")
    *_, result = steps
    summary = result.summary()
    if as_json:
        print(json.dumps(summary))
        return
    from rich.table import Table

    table = Table("what", "median ms", "worst ms", title=f"{trials} trials, {daemons} daemons", title_justify="left")
    for kind, meaning in KINDS.items():
        table.add_row(meaning, f"{summary[f'{kind}_ms']:.0f}", f"{summary[f'{kind}_worst_ms']:.0f}")
    console().print(table)
