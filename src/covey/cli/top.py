"""`covey top`: a cluster on this machine, live: daemons, views and why, groups, and what waits for whom.

In:        which daemons; keys: q ends, p pauses.
Out:       a screen that is drawn anew each second; with --once or without a terminal one picture, with --json objects.
Not here:  what is shown (top_picture.py), how (top_screen.py).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import BROKEN, At, Json, fail, finite, telling

if TYPE_CHECKING:
    from rich.live import Live

    from .top_picture import Look, Picture
    from .where import AskedDaemon

EXAMPLES = (
    "covey top",
    "covey top --config cluster/covey.toml --every 5",
    "covey top --once",
    "covey top --json | jq .receivers",
)

KEYS = "q ends, p pauses"
PAUSED = "paused: p goes on"
ONCE_S = 0.5
"""Over which rates are taken for a single look."""


def top(
    every: Annotated[float, typer.Option(callback=finite, min=0.1, max=3_600, help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look once and stop.")] = False,
    config: Annotated[Path | None, typer.Option("--config", help="The configuration file of the cluster.")] = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Watch the daemons of this machine, live.

    States, views and why they came, groups, rates, and what waits for each receiver; q ends, p pauses. Exits 1 if no
    daemon answers.
    """
    from .where import daemons, nobody_answers, unseen

    with telling("top"):
        asked = daemons(at, config)
        look = _look(asked)
        if not any(look.answers.values()):
            fail("top", nobody_answers(at, config, look.answers), BROKEN)
        asked += unseen(at, config, asked, look.answers)
        if as_json:
            _print_objects(asked, look, every, once)
        elif once or not _is_terminal():
            time.sleep(ONCE_S)
            _print_once(_look(asked), look)
        else:
            _watch(asked, look, every)


def _look(asked: list[AskedDaemon]) -> Look:
    from .top_picture import Look
    from .where import answers

    return Look(time.time_ns(), answers(asked))


def _is_terminal() -> bool:
    from .keys import is_terminal

    return is_terminal()


def _print_objects(asked: list[AskedDaemon], look: Look, every: float, once: bool) -> None:
    import msgspec

    from .top_picture import picture

    time.sleep(ONCE_S if once else 0)
    before, look = look, _look(asked)
    while True:
        sys.stdout.write(msgspec.json.encode(picture(look, before)).decode() + "\n")
        sys.stdout.flush()
        if once:
            return
        time.sleep(every)
        before, look = look, _look(asked)


def _print_once(look: Look, before: Look) -> None:
    """Every line there is, however many."""
    from rich.console import Console

    from .top_picture import picture
    from .top_screen import screen

    console = Console()
    shown = picture(look, before)
    lines = len(shown.daemons) + len(shown.views) + len(shown.groups) + len(shown.receivers)
    console.print(screen(shown, console.width, 4 * lines + 40))


def _watch(asked: list[AskedDaemon], look: Look, every: float) -> None:
    from rich.console import Console
    from rich.live import Live

    from .keys import single_keys, typed_within
    from .top_picture import picture

    console = Console()
    before, paused = look, False
    shown = picture(look, None)
    with single_keys(), Live(console=console, screen=True, auto_refresh=False) as live:
        due = time.monotonic()
        while True:
            _draw(live, shown, paused)
            keys = typed_within(max(0.0, due - time.monotonic()))
            if "q" in keys or "\x04" in keys:
                return
            paused ^= "p" in keys or " " in keys
            if time.monotonic() >= due:
                due = time.monotonic() + every
                if not paused:
                    before, look = look, _look(asked)
                    shown = picture(look, before)


def _draw(live: Live, shown: Picture, paused: bool) -> None:
    from .top_screen import screen

    columns, rows = live.console.size
    live.update(screen(shown, columns, rows, PAUSED if paused else KEYS), refresh=True)
