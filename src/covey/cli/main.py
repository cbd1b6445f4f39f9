"""The `covey` command: one file a command beside this one."""

from __future__ import annotations

import typer

from covey import __version__

from . import bench, chat, daemon, demo, groups, send, sim, status, tail, top, trace


def examples(lines: tuple[str, ...]) -> str:
    """What stands at the end of a help text."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


app = typer.Typer(
    name="covey",
    help="Covey: wide-area group communication with extended virtual synchrony.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("demo", epilog=examples(demo.EXAMPLES))(demo.demo)
app.command("init", epilog=examples(daemon.EXAMPLES["init"]))(daemon.init)
app.command("daemon", epilog=examples(daemon.EXAMPLES["daemon"]))(daemon.daemon)
app.command("up", epilog=examples(daemon.EXAMPLES["up"]))(daemon.up)
app.command("send", epilog=examples(send.EXAMPLES))(send.send)
app.command("tail", epilog=examples(tail.EXAMPLES))(tail.tail)
app.command("chat", epilog=examples(chat.EXAMPLES))(chat.chat)
app.command("groups", epilog=examples(groups.EXAMPLES))(groups.groups)
app.command("status", epilog=examples(status.EXAMPLES))(status.status)
app.command("top", epilog=examples(top.EXAMPLES))(top.top)
app.add_typer(bench.app, name="bench")
app.add_typer(sim.app, name="sim")
app.add_typer(trace.app, name="trace")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"covey {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", help="Print the version and stop.", callback=_version, is_eager=True
    ),
) -> None:
    """Covey: wide-area group communication with extended virtual synchrony."""


def main() -> None:
    app()
