"""`covey demo`: three real daemons, what happens to them, and every guarantee checked on what they wrote down.

In:        options.
Out:       a play for people on standard output; with --json one object a line there, and the play on standard error.
           Exit code 1: a guarantee is violated, or the daemons did not do what they should; 2: wrong options.
Not here:  the acts (drivers/live/acts.py), the daemons (drivers/live), the checkers (drivers/simulation/checkers).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from covey.drivers.live.acts import Shown, Step
    from covey.drivers.simulation.checkers import Verdict

# Each promise in a few words for newcomers; docs/guarantees.md has them in full.
PROMISES: Final = {
    "S1": "whatever happens to a daemon happens in a view",
    "S2": "a daemon is a member of its own views",
    "S3": "view ids only grow",
    "S4": "the same view has the same members everywhere",
    "S5": "who is said to have moved together has",
    "S6": "no message is delivered twice",
    "S7": "what is delivered was sent",
    "S8": "who moved together delivered the same messages",
    "S9": "a message is delivered in the same view everywhere",
    "S10": "no message comes from the future or a former life",
    "S11": "the signal that a view ends is in one place",
    "S12": "senders deliver their own messages",
    "S13": "every member delivers a message, or the view ends",
    "S14": "at rest, the connected daemons share one view",
    "S15": "daemons do come to rest",
    "M1": "unreliable: at most once",
    "M2": "reliable: delivered as soon as it is complete",
    "M3": "fifo: in the order of the sender, without holes",
    "M4": "causal: never before what its sender had seen",
    "M5": "agreed: one order for all",
    "M6": "safe: delivered only when all have it",
    "M7": "services mix without overtaking",
    "M8": "who sends need not be a member",
    "M9": "one message to several groups comes once",
    "C1": "a join or leave is one message, and blocks nobody",
    "C2": "members deliver a message in the same view",
    "C3": "the same view of a group has the same members everywhere",
    "C4": "a group hears nothing of what does not concern it",
    "C5": "every view says why it came",
    "C6": "who leaves learns where",
    "C7": "a client that crashes takes nobody along",
    "C8": "a name is one program's at a time",
}
WIDTH_WITHOUT_TERMINAL: Final = 110


def demo(
    as_json: Annotated[
        bool, typer.Option("--json", help="Standard output holds only JSON objects, one a line.")
    ] = False,
    keep: Annotated[Path | None, typer.Option(help="Keep trace, logs and cluster file in this new directory.")] = None,
    seconds: Annotated[float, typer.Option(min=0, max=60, help="Seconds of traffic in each view.")] = 1.0,
) -> None:
    """Watch three real daemons find one another, crash, leave, return and merge; then check every guarantee."""
    from covey.drivers.live.cluster import LiveError

    directory = _new_directory(keep)
    stage = Stage(as_json)
    worth_keeping = keep is not None
    try:
        holds = _perform(directory, stage, seconds)
        worth_keeping = worth_keeping or not holds
    except LiveError as error:
        worth_keeping, holds = True, False
        typer.echo(f"covey demo: {error}", err=True)
    finally:
        if not worth_keeping:
            shutil.rmtree(directory, ignore_errors=True)
    if worth_keeping:
        stage.say(f"Trace, logs and cluster file are in {directory}; see: covey trace cat {directory / 'trace'}")
    raise typer.Exit(0 if holds else 1)


def _perform(directory: Path, stage: Stage, seconds: float) -> bool:
    """Play, then judge; whether every guarantee holds."""
    from covey.drivers.live.acts import LOAD_PER_SECOND, Step, play
    from covey.drivers.live.cluster import LocalCluster
    from covey.drivers.simulation.checkers import check

    with LocalCluster(directory, run="demo", load=LOAD_PER_SECOND, seed=1) as cluster, stage.busy():
        for told in play(cluster, seconds):
            if isinstance(told, Step):
                stage.step(told)
            else:
                stage.view(told)
        rows = cluster.rows()
        verdicts = check(rows)
    stage.verdicts(verdicts, len(rows))
    return all(verdict.holds for verdict in verdicts)


def _new_directory(keep: Path | None) -> Path:
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="covey-demo-"))
    try:
        keep.mkdir(parents=True, exist_ok=True)
        if not any(keep.iterdir()):
            return keep
    except OSError as error:
        typer.echo(f"covey demo: --keep {keep} ({error.strerror}): name a directory that can be made", err=True)
        raise typer.Exit(2) from None
    typer.echo(f"covey demo: --keep {keep}: the directory is not empty; name a new one", err=True)
    raise typer.Exit(2)


class Stage:
    """Where the play is shown: to people, and with --json to programs too."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._screen = _screen(as_json)

    def say(self, text: str) -> None:
        self._screen.print(text, markup=False, highlight=False)

    @contextmanager
    def busy(self) -> Iterator[None]:
        """A sign of life on a terminal while daemons work; nothing elsewhere."""
        if not self._screen.is_terminal:
            yield
            return
        with self._screen.status("daemons at work"):
            yield

    def step(self, step: Step) -> None:
        self._emit(step)
        self.say("")
        self._screen.print(step.act.upper(), style="bold")
        self.say(step.text)
        if step.since:
            heads = _columns("ms", "at", "view of", "together", "cause: reason")
            self._screen.print(f"Views, in milliseconds {step.since}:\n{heads}", style="dim", highlight=False)

    def view(self, shown: Shown) -> None:
        self._emit(shown)
        members, together = " ".join(shown.members), " ".join(shown.transitional)
        self.say(_columns(f"{shown.after_ms:.1f}", shown.at, members, together, f"{shown.cause}: {shown.reason}"))

    def verdicts(self, verdicts: list[Verdict], rows: int) -> None:
        from rich.table import Table

        from covey.drivers.simulation.checkers import DAEMON_CHECKERS

        table = Table("", "promise", "cases", "broken", title=f"{rows:,} events checked", title_justify="left")
        for verdict in [one for one in verdicts if one.premises or one.guarantee in DAEMON_CHECKERS]:
            self._emit(
                {
                    "kind": "guarantee",
                    "guarantee": verdict.guarantee,
                    "promise": PROMISES[verdict.guarantee],
                    "rows_checked": verdict.premises,
                    "violations": verdict.violation_count,
                }
            )
            table.add_row(
                verdict.guarantee,
                PROMISES[verdict.guarantee],
                f"{verdict.premises:,}",
                str(verdict.violation_count),
                style="" if verdict.holds else "bold red",
            )
        self._screen.print(table)
        for one in [one for verdict in verdicts for one in verdict.violations][:20]:
            self.say(f"{one.guarantee} {one.process}: {one.detail}")
        self.say("Every promise was kept." if all(one.holds for one in verdicts) else "A promise was broken.")

    def _emit(self, value: object) -> None:
        if self._as_json:
            import msgspec

            print(msgspec.json.encode(value).decode(), flush=True)


def _columns(after: str, at: str, members: str, together: str, why: str) -> str:
    return f"{after:>6}  {at:<3} {members:<8} {together:<9} {why}"


def _screen(as_json: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if as_json else sys.stdout
    return Console(file=stream, width=None if stream.isatty() else WIDTH_WITHOUT_TERMINAL)
