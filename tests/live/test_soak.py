"""Client programs of a soak against real daemons: killed on both sides, then judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.guarantees.checkers import CHECKERS, DAEMON_CHECKERS, check
from covey.lab.cluster import LocalCluster
from covey.lab.soak.programs import Programs

pytestmark = pytest.mark.live

OF_CLIENTS = [guarantee for guarantee in CHECKERS if guarantee not in DAEMON_CHECKERS]
EVENTS = 20


def play(cluster: LocalCluster, programs: Programs) -> None:
    """One program and one daemon are killed in the middle of their work, and come back."""
    cluster.start("a", "b", "c")
    cluster.wait_for_view("a", "b", "c")
    programs.start(*programs.names)
    programs.wait_for_traffic(EVENTS)
    programs.kill("p0")
    cluster.kill("b")
    cluster.wait_for_view("a", "c")
    programs.wait_for_traffic(EVENTS)
    programs.start("p0")
    cluster.start("b")
    cluster.wait_for_view("a", "b", "c")
    cluster.calm()
    assert programs.finish()
    assert cluster.finish()
    programs.close()
    programs.record_crashes()


def test_programs_see_no_promise_broken_when_a_program_and_a_daemon_are_killed(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, run="soak", load=4, seed=1) as cluster, Programs(cluster, 5, pause_s=0.03) as programs:
        play(cluster, programs)
        rows = cluster.rows()
    verdicts = {verdict.guarantee: verdict for verdict in check(rows)}
    assert [violation for verdict in verdicts.values() for violation in verdict.violations] == []
    assert [guarantee for guarantee in OF_CLIENTS if not verdicts[guarantee].premises] == []
    last = {(row.level, row.event, row.name.partition("@")[0]) for row in rows if row.event in {"crash", "end"}}
    assert {("C", "crash", "p0"), ("S", "crash", "b")} <= last
    assert {name for level, event, name in last if (level, event) == ("C", "end")} == set(programs.names)
