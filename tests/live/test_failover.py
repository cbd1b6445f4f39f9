"""The measurement of failovers: one short trial with everything in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.guarantees.checkers.verdict import Verdict, Violation
from covey.lab import failover
from covey.lab.failover import TROUBLES, FailoverPlan, measure_failover

pytestmark = pytest.mark.live


def test_a_trial_measures_each_kind_and_checks_its_trace() -> None:
    (result,) = measure_failover(FailoverPlan(trials=1, pause_trials=1, pause_seconds=1))
    assert {trouble: len(times) for trouble, times in result.times.items()} == dict.fromkeys(TROUBLES, 1) | {"merge": 2}
    assert all(time > 0 for times in result.times.values() for time in times)
    assert result.events > 0
    assert (result.violations, result.kept) == ([], [])


def test_what_broke_a_guarantee_is_told_and_its_trace_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    violation = Violation("S1", "a:1", "planted")
    monkeypatch.setattr(failover, "check", lambda _: [Verdict("S1", 1, [violation], 1)])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (result,) = measure_failover(FailoverPlan(trials=1, pause_trials=0))
    assert result.violations == [violation]
    assert [directory.parent for directory in result.kept] == [tmp_path]
    assert list((result.kept[0] / "trace").iterdir())
    assert "resume_ms" not in result.summary()
