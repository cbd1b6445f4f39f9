"""`covey demo`: real daemons and real programs, what happens to them, and every guarantee checked on what they wrote.

In:        options.
Out:       a play for people on standard output; with --json one object a line there, and the play on standard error.
           Exit code 1: a guarantee is violated, or somebody did not do what was waited for; 2: wrong options.
Not here:  the acts (lab/demo/), how they look (demo_stage.py), the checkers (guarantees/checkers),
           what Spark says (demo_spark.py).
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import BROKEN, USAGE, Json, called, fail, finite

if TYPE_CHECKING:
    from covey.guarantees.checkers import Verdict
    from covey.trace.record import Row

    from .demo_spark import SparkJudge
    from .demo_stage import DemoJudgement, DemoStage

KEPT = "Every promise was kept. What you saw is called extended virtual synchrony."
EXAMPLES = ("covey demo", "covey demo --keep played && covey trace cat played/trace", "covey demo --spark")


def demo(
    as_json: Json = False,
    keep: Annotated[Path | None, typer.Option(help="Keep trace, logs and cluster file in this new directory.")] = None,
    seconds: Annotated[
        float, typer.Option(callback=finite, min=0, max=60, help="Seconds to read the text of an act.")
    ] = 1.5,
    spark: Annotated[bool, typer.Option("--spark", help="Let Spark check the trace too.")] = False,
) -> None:
    """Watch replicas survive a partition and crashes.

    Four daemons and five programs, all real processes on this machine, keep two ledgers through a partition, a merge,
    crashes and restarts. Each view is shown with its cause and who moved together; then every guarantee is checked on
    the recorded trace. Exits 1 if one is broken.
    """
    from covey.lab.cluster import LiveError

    from .demo_stage import DemoStage

    if spark and find_spec("pyspark") is None:
        fail("demo", "--spark needs Spark: pip install 'covey[spark]'", USAGE)
    directory = _new_directory(keep)
    stage = DemoStage(as_json)
    worth_keeping, holds = keep is not None, False
    with ExitStack() as stack:
        try:
            second = stack.enter_context(_spark_judge(directory, as_json)) if spark else None
            _perform(directory, stage, seconds)
            holds = _judge(directory, stage, second)
            worth_keeping = worth_keeping or not holds
        except LiveError as error:
            worth_keeping = True
            typer.echo(f"covey demo: {error}", err=True)
        finally:
            stage.rest()
            if not worth_keeping:
                shutil.rmtree(directory, ignore_errors=True)
    if worth_keeping:
        stage.say(f"Trace, logs and cluster file are in {directory}; see: {called()} trace cat {directory / 'trace'}")
    raise typer.Exit(0 if holds else BROKEN)


def _perform(directory: Path, stage: DemoStage, seconds: float) -> None:
    from covey.lab.cluster import LocalCluster
    from covey.lab.demo.acts import GROUPS, ROLES, play
    from covey.lab.demo.troupe import Troupe

    with LocalCluster(directory, 4, run="demo", seed=1) as cluster, Troupe(cluster, ROLES, GROUPS) as troupe:
        for told in play(cluster, troupe, seconds):
            stage.show(told)
    stage.rest()


def _spark_judge(directory: Path, as_json: bool) -> SparkJudge:
    from .demo_spark import SparkJudge

    return SparkJudge(directory / "trace", as_json)


def _judge(directory: Path, stage: DemoStage, second: SparkJudge | None) -> bool:
    """Whether every judge says that every guarantee holds."""
    from covey.trace.reading import read_whole

    judgement = by_checkers(read_whole(directory / "trace"))
    stage.judgement(judgement)
    holds = judgement.holds
    if second is not None:
        stage.say("The same trace once more, with Spark, which counts some cases otherwise (half a minute or more):")
        holds = second.holds() and holds
    stage.say(KEPT if holds else "A promise was broken.")
    if holds:
        stage.say(f"To play with it: {called()} up; then, in other terminals, {called()} chat and {called()} top.")
    return holds


def by_checkers(rows: list[Row]) -> DemoJudgement:
    """The checkers of the simulator, between daemons and between programs."""
    from covey.guarantees.checkers import CHECKERS, check_levels

    from .demo_stage import DemoJudgement, Line

    levels = [{one.guarantee: one for one in verdicts} for verdicts in check_levels("demo", rows)]
    lines = []
    for guarantee in CHECKERS:
        daemons, programs = (level.get(guarantee) for level in levels)
        found = [one for one in (daemons, programs) if one is not None]
        broken = sum(one.violation_count for one in found)
        violations = [violation for one in found for violation in one.violations]
        lines.append(Line(guarantee, _cases(daemons), _cases(programs), broken, violations))
    return DemoJudgement(f"{len(rows):,} events checked", lines)


def _cases(verdict: Verdict | None) -> int | None:
    return None if verdict is None else verdict.premises


def _new_directory(keep: Path | None) -> Path:
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="covey-demo-"))
    try:
        keep.mkdir(parents=True, exist_ok=True)
        is_used = any(keep.iterdir())
    except OSError as error:
        fail("demo", f"--keep {keep} ({error.strerror}): name a directory that can be made", USAGE)
    if is_used:
        fail("demo", f"--keep {keep}: the directory is not empty; name a new one", USAGE)
    return keep
