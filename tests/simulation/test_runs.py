"""Seeded runs of whole clusters: repeatable, without a violation, and exercising what they should."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

from covey.cli.main import app
from covey.cluster import one_site
from covey.config import wan
from covey.drivers.simulation import world
from covey.drivers.simulation.network import NetworkOptions
from covey.drivers.simulation.node import Clocks
from covey.drivers.simulation.options import Asked
from covey.drivers.simulation.probes import Tally
from covey.drivers.simulation.run import play, run_seed
from covey.drivers.simulation.swarm import SeedReport, report_seed, run_swarm
from covey.drivers.simulation.world import World
from covey.protocol.inputs import Submit
from covey.protocol.values import Service
from covey.trace.reading import read_whole
from covey.trace.record import Row

from .mutants import MUTANTS

SWARM = range(5_000, 5_200)
CLIENT_SWARM = range(5_220, 5_300)

PAST_NOT_AWAITED = [(1, 22), (1, 72), (3, 14), (3, 20), (3, 23)]
"""(sites, seed) of runs in which agreed messages stamped without the past of early deliveries break M4 (rule R8)."""


ONCE_FAILED = [
    # What was stamped of a message before it began again was kept for ever where it was delivered early (Z4).
    (5_318, None),
    # A message that begins again for new interest was larger than the fragment that was to be its next (R3).
    (5_231, 8),
    # What a head that counts now allowed was passed by what came in the same step (M3).
    (40_086, 8),
    # Groups became empty in a view that was lost: a deadline of it was set (P5).
    (23, 8),
    # What other sites sent had one daemon's share of a lossy ring, and waited for seconds (progress).
    (5_296, 8),
    # Of a message's fragments some were heads that counted, the content of the others was recovered (S7).
    (40, 8),
    # Who waited for interest was thought to starve.
    (218, 8),
    # Interest was given up while a join waited, and nobody asked for it again (S15).
    (40_032, 8),
    # A message sent after asking to leave, while the leave hid a merge from the receiver: S10 compared unrelated views.
    (94, None),
    # More than its bound came for a client at once; only W1 took offence, one step later.
    (4, 8),
    # A large message waited in front of a full queue while small ones of others passed it.
    (48, 8),
    # A message with itself discarded was told twice where it did not fit one step.
    (1, 8),
    # The size of the next bundle was guessed without the names of its groups.
    (5, None),
    (9, None),
    (13, 8),
    # A join that waited for room was refused for another reason, and its session stayed in the line for ever.
    (5_220, 8),
    # A join told together with a departure before it showed somebody who had left several groups just before (S4).
    (565, 8),
    (288, 8),
]
"""(seed, clients)."""


def _failures(report: SeedReport) -> str:
    return "\n".join(f"{one.guarantee} {one.process}: {one.detail}" for one in report.violations)


@pytest.mark.parametrize(("sites", "seed"), PAST_NOT_AWAITED)
def test_agreed_waits_for_the_past_of_what_came_early(sites: int, seed: int) -> None:
    assert not _failures(report_seed(seed, Asked(sites=sites, clients=0)))
    with MUTANTS["past not awaited"].applied():
        assert "M4" in {one.guarantee for one in report_seed(seed, Asked(sites=sites, clients=0)).violations}


@pytest.mark.parametrize(("seed", "clients"), ONCE_FAILED)
def test_what_once_failed(seed: int, clients: int | None) -> None:
    assert not _failures(report_seed(seed, Asked(clients=clients)))


@pytest.mark.parametrize("sites", [2, 3, 4])
def test_sites_of_one_daemon_each(sites: int) -> None:
    for seed in range(900, 903):
        report = report_seed(seed, Asked(sites=sites, clients=0))
        assert not _failures(report), f"covey sim run --seed {seed} --sites {sites}"


@pytest.mark.parametrize("daemons", [3, 5, 7])
def test_a_ring_of_distant_daemons_comes_to_rest(daemons: int) -> None:
    cluster, rows = one_site(daemons), list[Row]()
    world = World(
        cluster, wan(daemons), NetworkOptions(delay_min_us=50_000, delay_mean_us=500), Random(1), "far", rows.append
    )
    for rank in range(daemons):
        world.start(rank, Clocks(0, 0, 100_000_000))
    world.run_until(10_000_000)
    early = len([row for row in rows if row.event == "view"])
    world.give(0, Submit(1, 1, Service.SAFE, b"far"))
    world.run_until(40_000_000)
    assert len([row for row in rows if row.event == "view"]) == early
    assert len({row.process for row in rows if row.event == "deliver"}) == daemons


@pytest.mark.parametrize("seed", range(910, 914))
def test_each_view_says_what_it_came_of(seed: int) -> None:
    rows: list[Row] = []
    play(seed, Asked(clients=0), rows.append, invariants=True)
    views = [row for row in rows if row.event == "view"]
    assert {row.cause for row in views} >= {"start", "merge", "loss"}
    for row in views:
        together = set(row.members) == set(row.transitional)
        expected = {"start"} if row.view is None else {"loss", "goodbye"} if together else {"merge"}
        assert row.cause in expected, row


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_swarm_has_no_violation_and_reaches_every_floor() -> None:
    tally = Tally()
    for report in run_swarm(SWARM, Asked(), os.cpu_count() or 1):
        assert not report.violations, f"covey sim run --seed {report.seed}\n{_failures(report)}"
        tally.add(report.probes)
    rare = [f"{probe.name}: {tally.share(probe):.0%} of {probe.floor:.0%}" for probe in tally.below_floor()]
    assert not rare


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_swarm_with_clients_has_no_violation_and_reaches_every_floor() -> None:
    tally = Tally(clients=True)
    for report in run_swarm(CLIENT_SWARM, Asked(clients=8), os.cpu_count() or 1):
        assert not report.violations, f"covey sim run --seed {report.seed} --clients 8\n{_failures(report)}"
        tally.add(report.probes)
    rare = [f"{probe.name}: {tally.share(probe):.0%}" for probe in tally.below_floor() if probe.clients]
    assert not rare


def _digest_in_new_process(trace: Path, hash_seed: str, options: tuple[str, ...]) -> str:
    command = [sys.executable, "-m", "covey", "sim", "run", *options, "--trace", str(trace), "--json"]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["violations"] == []
    files = sorted(trace.iterdir())
    assert files
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


@pytest.mark.parametrize(
    "options", [("--seed", "11"), ("--seed", "4", "--sites", "3"), ("--seed", "7", "--clients", "8")]
)
def test_trace_is_the_same_bytes_whatever_the_hash_seed(options: tuple[str, ...], tmp_path: Path) -> None:
    digests = [_digest_in_new_process(tmp_path / hash_seed, hash_seed, options) for hash_seed in ("1", "2")]
    assert digests[0] == digests[1]


def test_a_trace_says_how_to_play_it_again(tmp_path: Path) -> None:
    run_seed(3, Asked(daemons=3, clients=2, seconds=0.5), trace=tmp_path / "one")
    rows = read_whole(tmp_path / "one")
    (command,) = {row.detail for row in rows if row.event == "recover"}
    assert command == "covey sim run --seed 3 --daemons 3 --clients 2 --seconds 0.5"
    CliRunner().invoke(app, [*command.split()[1:], "--trace", str(tmp_path / "other")])
    assert read_whole(tmp_path / "other") == rows


def test_what_is_read_back_from_disk_is_what_happened(tmp_path: Path) -> None:
    in_memory, on_disk = run_seed(3), run_seed(3, trace=tmp_path / "trace")
    assert in_memory.events == on_disk.events
    assert in_memory.verdicts == on_disk.verdicts


def test_a_run_whose_daemons_answer_one_another_for_ever_ends_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "STEPS_MAX", 2_000)
    (violation,) = report_seed(0, Asked()).violations
    assert violation.guarantee == "invariant"
    assert "never come to an end" in violation.detail
