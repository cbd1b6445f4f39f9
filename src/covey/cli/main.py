"""The `covey` command: one file a command beside this one.

Starting must be quick, so only the file of the command that was asked for is imported, and none for the list of all
commands. For whatever is not the name of one, all of them are.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import typer

from covey import __version__

if TYPE_CHECKING:
    app: typer.Typer

COMMANDS: Final = {
    "demo": "demo",
    "up": "up",
    "chat": "chat",
    "send": "send",
    "tail": "tail",
    "groups": "groups",
    "status": "status",
    "top": "top",
    "init": "daemon",
    "daemon": "daemon",
}
"""Name and file, in the order in which a newcomer meets them."""

FAMILIES: Final = ("bench", "sim", "trace")
"""Files that hold several commands each."""

SUMMARIES: Final = {
    "demo": "Watch replicas survive a partition and crashes.",
    "up": "Run a whole cluster on this machine until Ctrl-C.",
    "chat": "Talk in a group, and see who comes and goes.",
    "send": "Send messages, and say when they are delivered.",
    "tail": "Show messages and views of groups, as they come.",
    "groups": "Show who is in which group, at which daemon.",
    "status": "Ask running daemons on this machine how they are, and why.",
    "top": "Watch the daemons of this machine, live.",
    "init": "Write a configuration for a cluster on this machine, to be edited.",
    "daemon": "Run one daemon in the foreground.",
    "bench": "Measure with real processes.",
    "sim": "Run whole clusters in virtual time.",
    "trace": "Look at recorded event traces.",
}
"""What the list of all commands says of each: the first line of its own help. A test keeps it so."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"covey {__version__}")
        raise typer.Exit


def root(
    version: bool = typer.Option(
        False, "--version", help="Print the version and stop.", callback=_version, is_eager=True
    ),
) -> None:
    """Covey: wide-area group communication with extended virtual synchrony."""


def summary() -> typer.Typer:
    """The command line as far as its own help shows it."""
    made = _empty()
    for name, text in SUMMARIES.items():
        made.command(name, help=text)(lambda: None)
    return made


def _empty() -> typer.Typer:
    made = typer.Typer(
        name="covey",
        help="Covey: wide-area group communication with extended virtual synchrony.",
        epilog=examples(("covey demo", "covey up", "covey chat", "covey top")),
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    made.callback()(root)
    return made


def build(wanted: str | None = None) -> typer.Typer:
    """The command line: with one command if this is its name, else with all."""
    made = _empty()
    for name, file in COMMANDS.items():
        if wanted in (None, name):
            module = import_module(f".{file}", __package__)
            made.command(name, epilog=examples(_examples(module, name)))(getattr(module, name))
    for family in FAMILIES:
        if wanted in (None, family):
            made.add_typer(import_module(f".{family}", __package__).app, name=family)
    return made


def _examples(module: Any, name: str) -> tuple[str, ...]:
    found = module.EXAMPLES
    lines: tuple[str, ...] = found[name] if isinstance(found, dict) else found
    return lines


def examples(lines: tuple[str, ...]) -> str:
    """What stands at the end of a help text."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def __getattr__(name: str) -> typer.Typer:
    """`app` is everything; making it takes its time, so it is made when it is asked for."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["app"] = made = build()
    return made


def refuse_what_is_no_text(arguments: list[str]) -> None:
    """Names, messages and paths are told to daemons, and printed: all of it in UTF-8."""
    for one in arguments:
        if not one.isascii() and any("\ud800" <= character <= "\udfff" for character in one):
            print(
                f"covey: {one!a} is not UTF-8 text: write it in UTF-8, which the terminal should use too",
                file=sys.stderr,
            )
            raise SystemExit(2)


def main() -> None:
    refuse_what_is_no_text(sys.argv[1:])
    if sys.argv[1:] in ([], ["-h"], ["--help"]) and not any(name.endswith("_COMPLETE") for name in os.environ):
        summary()()
    first = sys.argv[1] if len(sys.argv) > 1 else ""
    build(first if first in COMMANDS or first in FAMILIES or first == "--version" else None)()
