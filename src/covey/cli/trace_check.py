"""`covey trace check`: every guarantee on a recorded trace, with Spark.

In:        a directory with a trace: segments, Parquet or NDJSON.
Out:       a table for people on standard error, or one JSON object a guarantee on standard output; exit code 0 if
           nothing is violated, 1 if something is, 2 if rows are missing, the trace cannot be read or nothing is judged.
Not here:  the judgement (covey.analysis), which needs pip install 'covey[spark]'.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from .trace_wait import be_ready

if TYPE_CHECKING:
    from covey.analysis.judging import Judgement, LevelVerdict, TracedGap, TracedViolation

VIOLATED = 1
FAILED = 2
SHOWN = 5


def check(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Directory with the trace: segments, Parquet or *.ndjson files.")
    ],
    run: Annotated[str | None, typer.Option(help="Only this run: a simulation seed or the id of a cluster.")] = None,
    master: Annotated[
        str, typer.Option(help="Where Spark runs: this machine by default, or the address of any cluster.")
    ] = "local[*]",
    memory: Annotated[str, typer.Option(help="Memory for Spark on this machine.")] = "4g",
    work: Annotated[
        str | None, typer.Option(help="Directory for tables in between; on a cluster, one that all its nodes share.")
    ] = None,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait",
            help="Start Spark now, and check when standard input ends: for a small trace that is still being written.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a guarantee on standard output.")
    ] = False,
) -> None:
    """Check every guarantee on a trace with Spark; exit 1 if one is violated, 2 if rows are missing."""
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        _fail("this needs Spark: pip install 'covey[spark]'")
    with _failing(directory):
        if wait:
            be_ready(master, memory)
        judgement, trace = _judge(directory, run, master, memory, work)
        _refuse_silence(judgement)
        proof = _proof(judgement, trace)
    if as_json:
        _print_json(judgement, proof)
    else:
        _print_table(judgement)
        _print_evidence(judgement, proof)
    if judgement.gaps:
        raise typer.Exit(FAILED)
    if any(verdict.violations for verdict in judgement.verdicts):
        raise typer.Exit(VIOLATED)


@contextmanager
def _failing(directory: Path) -> Iterator[None]:
    """Whatever keeps us from a verdict ends with a sentence and its own exit code: a traceback would be a 1."""
    from covey.analysis.failures import FAILURES, sentence_of
    from covey.errors import CoveyError

    try:
        yield
    except CoveyError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{directory} cannot be read ({error}): name a directory with a trace that you may read.")
    except FAILURES as error:
        _fail(sentence_of(str(error)))


def _judge(directory: Path, run: str | None, master: str, memory: str, work: str | None) -> tuple[Judgement, Any]:
    from rich.console import Console

    from covey.analysis import judge, session
    from covey.analysis.reading import load, of_run, parquet_files, rows_in
    from covey.analysis.workshop import ROWS_SMALL

    with Console(stderr=True).status("reading the trace") as status:
        files = parquet_files(directory)
        status.update("starting Spark")
        trace = load(session(master, memory=memory, brief=rows_in(files) <= ROWS_SMALL), files)
        trace = trace if run is None else of_run(trace, run)
        return judge(trace, work=work, progress=lambda what: status.update(f"checking: {what}")), trace


def _refuse_silence(judgement: Judgement) -> None:
    """To find nothing wrong in nothing is no finding."""
    if not judgement.gaps and not any(verdict.rows_checked or verdict.violations for verdict in judgement.verdicts):
        _fail(
            "no guarantee was put to the test: there are no views and messages at level S or C, which are the levels "
            "that can be checked. Record for longer, or copy the files of all daemons and clients."
        )


class Proof(NamedTuple):
    """What is shown beside the verdicts."""

    told: dict[str, list[TracedViolation]]
    """Of each guarantee the first violations."""
    rows: dict[tuple[str, str, int], dict[str, object]]
    commands: dict[str, str]
    """By run, what plays it again."""

    def rows_of(self, violation: TracedViolation) -> list[dict[str, object]]:
        return [self.rows[key] for one in violation.evidence if (key := (violation.run, *astuple(one))) in self.rows]


def _proof(judgement: Judgement, trace: Any) -> Proof:
    from covey.analysis.evidence import commands_of, rows_of

    told = {
        name: [one for one in judgement.violations if one.guarantee == name][:SHOWN]
        for name in _by_guarantee(judgement)
    }
    shown = [violation for violations in told.values() for violation in violations]
    return Proof(told, rows_of(trace, shown), commands_of(trace, (violation.run for violation in shown)))


# ------------------------------------------------------------------------------------------------------------- output


def _by_guarantee(judgement: Judgement) -> dict[str, tuple[int, int]]:
    """For each guarantee, in the order of the documents: premises and violations, over all runs and levels."""
    from covey.guarantees import HELD

    sums = dict.fromkeys(HELD, (0, 0))
    for verdict in judgement.verdicts:
        rows, violations = sums[verdict.guarantee]
        sums[verdict.guarantee] = (rows + verdict.rows_checked, violations + verdict.violations)
    return sums


def _print_json(judgement: Judgement, proof: Proof) -> None:
    for guarantee, (rows, violations) in _by_guarantee(judgement).items():
        line = {
            "guarantee": guarantee,
            "rows_checked": rows,
            "violations": violations,
            "first": [_as_dict(violation, proof) for violation in proof.told[guarantee]],
        }
        typer.echo(json.dumps(line))
    for gap in judgement.gaps:
        typer.echo(json.dumps({"gap": gap.process, "run": gap.run, "level": gap.level, "detail": gap.detail}))


def _as_dict(violation: TracedViolation, proof: Proof) -> dict[str, object]:
    names = ("run", "level", "group", "view", "process", "message", "detail")
    shown = {name: getattr(violation, name) for name in names}
    evidence = [{"process": one.process, "index": one.index} for one in violation.evidence]
    return shown | {
        "evidence": evidence,
        "rows": proof.rows_of(violation),
        "replay": proof.commands.get(violation.run),
    }


def _print_table(judgement: Judgement) -> None:
    from rich.console import Console
    from rich.table import Table

    from covey.guarantees import HELD

    table = Table(title="guarantees on this trace")
    for name, side in (("no.", "left"), ("name", "left"), ("times tested", "right"), ("violations", "right")):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    for guarantee, (rows, violations) in _by_guarantee(judgement).items():
        style = "red" if violations else "dim" if not rows else None
        table.add_row(
            guarantee, HELD[guarantee].name, f"{rows:,}", f"{violations:,}" if violations else "none", style=style
        )
    console = Console(stderr=True)
    console.print(table)
    console.print(_summary(judgement.verdicts, judgement.gaps))


def _summary(verdicts: list[LevelVerdict], gaps: list[TracedGap]) -> str:
    from covey.guarantees import HELD

    runs = len({verdict.run for verdict in verdicts})
    found = {verdict.guarantee for verdict in verdicts if verdict.violations}
    broken = [f"{number} ({one.name})" for number, one in HELD.items() if number in found]
    said = f"{runs} run{'s' if runs != 1 else ''}: " + (
        f"violated: {', '.join(broken)}" if broken else "no violation found"
    )
    if gaps:
        said += (
            f"\nBut rows are missing at {len(gaps)} process{'es' if len(gaps) != 1 else ''}, so this proves nothing. "
            f"First: {gaps[0].process} of run {gaps[0].run}, {gaps[0].detail}. "
            "Record again with room on the disk, or copy all files."
        )
    return said


def _print_evidence(judgement: Judgement, proof: Proof) -> None:
    from covey.analysis.evidence import heading, how_to_repeat, sentence

    counts = _by_guarantee(judgement)
    for guarantee, violations in proof.told.items():
        for violation in violations:
            typer.echo(f"\n{heading(violation)}: {violation.detail}", err=True)
            for row in proof.rows_of(violation):
                typer.echo(f"    {sentence(row)}", err=True)
        if more := counts[guarantee][1] - len(violations):
            typer.echo(f"\n{guarantee}: {more:,} more like these", err=True)
    for run in sorted({violation.run for violations in proof.told.values() for violation in violations}):
        if command := how_to_repeat(run, proof.commands):
            typer.echo(f"\nTo see run {run} again: {command}", err=True)


def _fail(reason: str) -> None:
    typer.echo(f"covey trace check: {reason}", err=True)
    raise typer.Exit(FAILED)
