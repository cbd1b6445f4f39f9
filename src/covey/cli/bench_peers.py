"""`covey bench peers`: Covey beside other systems, on this machine, in turn."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import BROKEN, INTERRUPTED, USAGE, Json, fail, finite

if TYPE_CHECKING:
    from covey.lab.peers.measure import PeerSample
    from covey.lab.peers.plan import PeersPlan

COMMAND = "bench peers"
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def peers(
    systems: Annotated[
        str | None, typer.Option(help="Of covey, corosync, pyzmq, zenoh, nats and redis, with commas; all of them.")
    ] = None,
    workloads: Annotated[
        str | None,
        typer.Option(
            help="Of one-to-three, three-to-three, single, asked, latency, safe and idle, with commas; all of them."
        ),
    ] = None,
    sizes: Annotated[
        str, typer.Option(help="Bytes of a message, with commas, for one-to-three and three-to-three.")
    ] = "100,1000,8192",
    rounds: Annotated[int, typer.Option(min=1, max=1_000, help="How often each is measured.")] = 7,
    seconds: Annotated[
        float, typer.Option(callback=finite, min=0.1, max=600, help="How long senders send, each time.")
    ] = 2.0,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Standard output holds one Markdown table of medians and ratios.")
    ] = False,
    as_json: Json = False,
) -> None:
    """How Covey compares with other systems on this machine: throughput, single sends, latency, idle cost.

    In every round each system has its turn at each workload, so that all meet the same machine; ratios to Covey are
    those of a round. What is not installed is skipped, with the command that would install it. Every receiver checks
    number and content of every message; a mismatch exits 1. How long it takes is said at the beginning. Ctrl-C ends
    it, and everything that it started.
    """
    if as_json and as_markdown:
        fail(COMMAND, "--json and --markdown: write one of them", USAGE)
    plan = _plan(systems, workloads, sizes, rounds, seconds)
    with _ended_in_good_order():
        _measure(plan, as_json, as_markdown)


def _plan(systems: str | None, workloads: str | None, sizes: str, rounds: int, seconds: float) -> PeersPlan:
    from covey.lab.peers.plan import SYSTEMS, WORKLOADS, PeersPlan, problem

    try:
        numbers = tuple(int(size) for size in _listed(sizes))
    except ValueError:
        fail(COMMAND, f"--sizes {sizes}: write numbers of bytes, such as 100,1000,65536", USAGE)
    plan = PeersPlan(
        systems=tuple(SYSTEMS) if systems is None else _listed(systems),
        workloads=tuple(WORKLOADS) if workloads is None else _listed(workloads),
        sizes=numbers,
        rounds=rounds,
        seconds=seconds,
    )
    if wrong := problem(plan):
        fail(COMMAND, wrong, USAGE)
    return plan


def _listed(text: str) -> tuple[str, ...]:
    """
    >>> _listed("covey, redis")
    ('covey', 'redis')
    """
    return tuple(part.strip() for part in text.split(",") if part.strip())


@contextmanager
def _ended_in_good_order() -> Iterator[None]:
    """Whoever ends us, we end what we have started; who asks again while we do is not heard."""

    def end(*_: object) -> None:
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    from covey.lab.peers.leftovers import nothing_left

    before = {number: signal.signal(number, end) for number in ENDING}
    try:
        with nothing_left():
            yield
    except KeyboardInterrupt:
        fail(COMMAND, "interrupted: every process that it started is ended", INTERRUPTED)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _measure(plan: PeersPlan, as_json: bool, as_markdown: bool) -> None:
    from covey.lab.peers.measure import skipped
    from covey.lab.peers.statistics import summaries

    from .bench_peers_markdown import markdown
    from .bench_peers_tables import show_peers

    left_out = skipped(plan)
    for name, reason in left_out.items():
        print(f"{name} is skipped: {reason}", file=sys.stderr)
    names = [name for name in plan.systems if name not in left_out]
    machine = _machine(names, left_out)
    samples, failure = _samples(plan, names, as_json)
    found = summaries(samples)
    machine["load_after"] = os.getloadavg()
    if found:
        show_peers(found, machine)
    if failure:
        fail(COMMAND, failure, BROKEN)
    for summary in found:
        _tell(as_json, "summary", summary)
    _tell(as_json, "machine", machine)
    if as_markdown:
        print(markdown(found, plan, machine))


def _samples(plan: PeersPlan, names: list[str], as_json: bool) -> tuple[list[PeerSample], str]:
    """What was measured, and what ended it early; who waits is told how long it takes, and how far it is."""
    from covey.lab.cluster import LiveError
    from covey.lab.peers.measure import count_turns, expected_s, measure_peers

    from .tables import progress

    total, minutes = count_turns(plan, names), expected_s(plan, names) / 60
    print(f"{total} measurements, about {max(minutes, 0.1):.2g} minutes", file=sys.stderr)
    samples: list[PeerSample] = []
    try:
        for sample in progress(_rounds_told(measure_peers(plan, names), plan.rounds), total, "measurements"):
            samples.append(sample)
            _tell(as_json, "measurement", sample)
    except LiveError as error:
        return samples, str(error)
    return samples, "" if samples else "nothing was measured: see what is skipped, and why"


def _rounds_told(samples: Iterable[PeerSample], rounds: int) -> Iterator[PeerSample]:
    """Where there is no terminal for a bar, a line when a round begins."""
    number = 0
    for sample in samples:
        if sample.round > number and not sys.stderr.isatty():
            number = sample.round
            print(f"round {number} of {rounds}", file=sys.stderr, flush=True)
        yield sample


def _machine(names: list[str], left_out: dict[str, str]) -> dict[str, Any]:
    from covey.lab.peers.system import system_named

    return {
        "cores": os.cpu_count(),
        "systems": {name: system_named(name).version() for name in names},
        "skipped": left_out,
        "load_before": os.getloadavg(),
    }


def _tell(as_json: bool, what: str, value: object) -> None:
    import msgspec

    if as_json:
        print(json.dumps({"what": what} | msgspec.to_builtins(value)), flush=True)
