"""`covey sim`: whole clusters in virtual time, repeatable from one seed."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from .common import finite

if TYPE_CHECKING:
    from covey.drivers.simulation.options import Asked
    from covey.drivers.simulation.swarm import Violated

app = typer.Typer(name="sim", help="Run whole clusters in virtual time.", no_args_is_help=True, rich_markup_mode=None)

SITES_MAX = 10
DAEMONS_MAX = 200
CLIENTS_MAX = 1_000
SEEDS_MAX = 1_000_000
SECONDS_MAX = 3_600

FLOORS_FROM = 100
"""Shares of fewer seeds than this say little, and are not held against the floors."""

Sites = Annotated[int | None, typer.Option(help="Number of sites; drawn from the seed if unset.")]
Clients = Annotated[
    int | None, typer.Option(help="Number of programs that use the daemons; drawn from the seed if unset.")
]
Daemons = Annotated[int | None, typer.Option(help="Number of daemons in all; drawn from the seed if unset.")]
Seconds = Annotated[
    float | None, typer.Option(callback=finite, help="Virtual seconds of faults and load; drawn if unset.")
]
Json = Annotated[bool, typer.Option("--json", help="Standard output holds only JSON objects, one a line.")]


@app.command()
def run(
    seed: Annotated[int, typer.Option(help="The seed: the same seed gives the same run, row for row.")],
    sites: Sites = None,
    daemons: Daemons = None,
    clients: Clients = None,
    seconds: Seconds = None,
    trace: Annotated[Path | None, typer.Option(help="Write the trace to this new or empty directory.")] = None,
    as_json: Json = False,
) -> None:
    """Run one seed and check every guarantee on its trace."""
    from covey.drivers.simulation.swarm import report_seed
    from covey.errors import CoveyError

    _refuse_used_directory(trace)
    try:
        report = report_seed(seed, _asked(sites, daemons, clients, seconds), trace)
    except CoveyError as error:
        _fail(str(error))
    if as_json:
        _print_json(report.seed, report.events, report.violations)
    else:
        from .tables import print_guarantees

        title = f"seed {seed}: {report.events} events"
        print_guarantees(title, report.premises, report.violations, report.excused)
    raise typer.Exit(1 if report.violations else 0)


@app.command()
def swarm(
    seeds: Annotated[str, typer.Option(help="Which seeds, as FIRST:END; END is not included.")] = "0:100",
    sites: Sites = None,
    daemons: Daemons = None,
    clients: Clients = None,
    seconds: Seconds = None,
    jobs: Annotated[int, typer.Option(help="Processes to use.")] = os.cpu_count() or 1,
    as_json: Json = False,
) -> None:
    """Run many seeds; each also draws which kinds of fault exist. Prints what the protocol was made to do."""
    from covey.drivers.simulation.probes import Tally
    from covey.drivers.simulation.swarm import SeedReport, run_swarm

    from .tables import print_costs, print_guarantees, print_probes, progress

    wanted = _seed_range(seeds)
    asked = _asked(sites, daemons, clients, seconds)
    tally, failed = Tally(clients=bool(clients)), list[SeedReport]()
    premises, excused = Counter[str](), Counter[str]()
    costs: list[tuple[float, int]] = []
    for report in progress(run_swarm(wanted, asked, jobs), len(wanted), "seeds"):
        costs.append((report.cpu_s, report.seed))
        tally.add(report.probes)
        premises.update(report.premises)
        excused.update(report.excused)
        if report.violations:
            failed.append(report)
            print(f"seed {report.seed} fails: {asked.command(report.seed)}", file=sys.stderr)
        if as_json:
            _print_json(report.seed, report.events, report.violations)
    violations = [one for report in failed for one in report.violations]
    print_guarantees(f"{len(wanted)} seeds, {len(failed)} failed", premises, violations, excused)
    print_costs(costs)
    default = sites is None and daemons is None and seconds is None
    low = print_probes(tally, enforce=default and len(wanted) >= FLOORS_FROM)
    if low:
        print(f"too rare to prove much: {', '.join(low)}", file=sys.stderr)
    raise typer.Exit(1 if failed or low else 0)


@app.command()
def story(
    files: Annotated[list[Path] | None, typer.Argument(help="Story files; without any, the built-in ones.")] = None,
    rewrite: Annotated[bool, typer.Option("--rewrite", help="Write the transcripts into the files.")] = False,
    as_json: Json = False,
) -> None:
    """Play text scenarios and compare their transcripts."""
    from covey.drivers.simulation.story import builtin_stories, play_story
    from covey.errors import CoveyError

    failed = 0
    for path in files or builtin_stories():
        written = _read(path)
        try:
            told = play_story(written)
        except CoveyError as error:
            _fail(f"{path}: {error}")
        if rewrite:
            path.write_text(told)
        elif told != written:
            failed += 1
            print(f"{path.stem} differs; see how with: covey sim story --rewrite {path}", file=sys.stderr)
        print(json.dumps({"story": path.stem, "as_written": told == written}) if as_json else told)
    raise typer.Exit(1 if failed else 0)


def _asked(sites: int | None, daemons: int | None, clients: int | None, seconds: float | None) -> Asked:
    from covey.drivers.simulation.options import Asked

    if sites is not None and sites > 1 and daemons is not None and daemons < sites:
        _fail(f"--sites {sites} needs a daemon for each: write --daemons {sites} or more")
    if (sites is not None and sites < 1) or (daemons is not None and not 1 <= daemons <= DAEMONS_MAX):
        _fail(f"--sites and --daemons must be at least 1, --daemons at most {DAEMONS_MAX}")
    if clients is not None and not 0 <= clients <= CLIENTS_MAX:
        _fail(f"--clients {clients}: write a number from 0 to {CLIENTS_MAX}")
    if max(sites or 1, daemons or 2) < 2:
        _fail("a partition needs at least two daemons: --daemons 2")
    if sites is not None and sites > SITES_MAX:
        _fail(f"--sites {sites}: at most {SITES_MAX} can be simulated")
    if seconds is not None and not 0 < seconds <= SECONDS_MAX:
        _fail(f"--seconds {seconds:g}: write a number of virtual seconds above 0, at most {SECONDS_MAX}")
    return Asked(sites=sites, daemons=daemons, clients=clients, seconds=seconds)


def _seed_range(text: str) -> range:
    first, colon, end = text.partition(":")
    try:
        seeds = range(int(first), int(end)) if colon else range(int(first), int(first) + 1)
    except ValueError:
        _fail(f"--seeds {text}: write FIRST:END, for example --seeds 0:200")
    if seeds.stop <= seeds.start:
        _fail(f"--seeds {text}: END must be larger than FIRST")
    if seeds.stop - seeds.start > SEEDS_MAX:
        _fail(f"--seeds {text}: at most {SEEDS_MAX:,} at a time")
    return seeds


def _refuse_used_directory(trace: Path | None) -> None:
    if trace is None:
        return
    try:
        trace.mkdir(parents=True, exist_ok=True)
        used = any(trace.iterdir())
    except OSError as error:
        _fail(f"--trace {trace}: {error.strerror}; name a directory that can be made")
    if used:
        _fail(f"--trace {trace}: the directory is not empty; name a new one")


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        _fail(f"{path} cannot be read ({error.strerror}): name a story file")
    except UnicodeDecodeError:
        _fail(f"{path} is no text: name a story file")


def _print_json(seed: int, events: int, violations: list[Violated]) -> None:
    found = [{"guarantee": one.guarantee, "process": one.process, "detail": one.detail} for one in violations]
    print(json.dumps({"seed": seed, "events": events, "violations": found}), flush=True)


def _fail(text: str) -> NoReturn:
    print(f"covey sim: {text}", file=sys.stderr)
    raise typer.Exit(2)
