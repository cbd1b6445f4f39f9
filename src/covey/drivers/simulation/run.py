"""One seeded run: faults and load, then a liveness phase, then every guarantee checked on the trace."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import msgspec

from covey.guarantees.checkers import Verdict, check
from covey.protocol.counters import Count
from covey.trace.daemon import Sink
from covey.trace.reading import read_whole
from covey.trace.record import Row
from covey.trace.segments import SegmentWriter

from .blame import BLAME, judge_blame
from .clients import Program, Stage
from .fairness import FAIRNESS, Fairness
from .faults import MS, SECOND, Faults
from .options import Asked, RunOptions, draw
from .progress import PROGRESS, Progress
from .reactions import Reactions
from .rest import calm, end, longest_silence, settle
from .site_reactions import SiteReactions
from .site_storms import SiteStorms
from .steadiness import STEADINESS, Steadiness
from .storms import Storms
from .streams import Streams
from .style import Style
from .workload import Workload
from .world import World

SETTLED_US = 1_500 * MS
LAST_LOSS_US = 20 * MS
"""Some of the last words are lost, and no change of view will bring them: they must be asked for."""

WATCHED: Final = (FAIRNESS, PROGRESS, STEADINESS, BLAME)
"""What is judged while a run is played: no trace tells it."""

STEADY_SHARE = 0.7
"""Of a steady run passes before faults begin."""

LAST_SPEAKERS = 40
"""Programs that say something of each service at the end; all others hear it."""


class Result(msgspec.Struct):
    """What a run showed."""

    seed: int
    options: RunOptions
    events: int
    verdicts: list[Verdict]
    count: Count
    reactions: set[str]
    virtual_seconds: float


def run_seed(seed: int, asked: Asked | None = None, trace: Path | None = None, invariants: bool = True) -> Result:
    """Run one seed. With `trace` the rows go to disk, and what is checked is read back from there."""
    if trace is None:
        rows: list[Row] = []
        played = play(seed, asked or Asked(), rows.append, invariants)
    else:
        with SegmentWriter(trace, f"seed-{seed}") as writer:
            played = play(seed, asked or Asked(), writer.append, invariants)
        rows = read_whole(trace)
    verdicts, world = [*check(rows), *played.watched], played.world
    return Result(seed, played.options, len(rows), verdicts, world.count, played.reactions, world.now / SECOND)


class Played(NamedTuple):
    """A run that is over, before its trace is judged."""

    world: World
    options: RunOptions
    reactions: set[str]
    watched: list[Verdict]
    """Of what no trace tells."""


def play(seed: int, asked: Asked, sink: Sink, invariants: bool) -> Played:
    random = Random(f"covey {seed}")
    options = draw(seed, asked, random)
    world = World(options.cluster, options.settings, options.network, random, f"seed-{seed}", sink)
    world.repeated_by = asked.command(seed)
    world.check_invariants = invariants
    world.ports_refuse = "refused" in options.kinds
    world.portions = options.portions
    style = Style(seed, options.clients, options.settings, options.cluster.site_count)
    workload = Workload(world, random, options.rate_per_second, style)
    faults = Faults(world, random, options.kinds, workload)
    for rank in range(len(options.cluster.daemons)):
        world.at(random.randrange(200 * MS), partial(faults.start, rank))
        world.play(workload.script(rank))
    if random.random() < 0.2:
        flooded = random.randrange(len(options.cluster.daemons))
        world.at(int(random.uniform(0.1, options.seconds) * SECOND), partial(workload.flood, flooded))
    seen, seen_of_sites, steadiness = Reactions(world), SiteReactions(world), Steadiness(world, f"seed-{seed}")
    fairness = Fairness(world, f"seed-{seed}")
    progress = Progress(world, fairness, f"seed-{seed}")
    world.play(progress.script())
    programs, extras = _programs(Stage(world, Streams(world, random), style, fairness, f"seed-{seed}", sink), options)
    for storm in Storms(world, style, faults, programs, extras).scripts(options.seconds):
        world.play(storm)
    for storm in SiteStorms(world, Random(f"covey {seed} site storms"), faults, programs).scripts(options.seconds):
        world.play(storm)
    if options.steady:
        faults.hold = True
        world.run_until(int(options.seconds * STEADY_SHARE * SECOND))
        faults.hold = False
    steadiness.over()
    _go_wrong(world, faults, random)
    world.run_until(int(options.seconds * SECOND))
    workload.running = False
    for program in programs + extras:
        program.running = False
    while not {"partition", "merge"} <= faults.reactions and world.now < 40 * SECOND:
        world.run_until(world.now + 100 * MS)
    faults.finish(options.final)
    calm(world)
    for program in programs + extras:
        program.read_again()
    settle(world, SETTLED_US)
    options.network.loss = 0.05 if "loss" in options.kinds else 0.0
    workload.one_of_each()
    for program in programs[:LAST_SPEAKERS]:
        program.last_words()
    world.run_until(world.now + LAST_LOSS_US)
    options.network.loss = 0.0
    if settle(world, longest_silence(world)):
        _end(world, programs + extras)
        faults.at_rest()
    world.close()
    watchers = (fairness, progress, steadiness)
    reactions = faults.reactions.union(seen.seen, seen_of_sites.seen, *(one.reactions for one in watchers))
    blame = judge_blame(world.counts, f"seed-{seed}")
    return Played(world, options, reactions, [*(one.verdict() for one in watchers), blame])


def _go_wrong(world: World, faults: Faults, random: Random) -> None:
    world.play(faults.split_and_merge(int(random.uniform(0.5, 2.0) * SECOND)))
    world.play(faults.trouble())
    world.play(faults.one_way_for_a_while(int(random.uniform(0.5, 4.0) * SECOND)))


def _end(world: World, programs: list[Program]) -> None:
    end(world)
    for program in programs:
        program.end()


def _programs(stage: Stage, options: RunOptions) -> tuple[list[Program], list[Program]]:
    """Those that act by themselves, and those that wait for a storm."""
    style, world = stage.style, stage.world
    names = style.names[: options.clients]
    programs = [Program(stage, world.random, name, options.pause_ms) for name in names]
    extras = [Program(stage, style.random, name, options.pause_ms) for name in style.extra_names()]
    for program in programs:
        world.play(program.script())
    return programs, extras
