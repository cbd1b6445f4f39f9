"""The measurement with a slow receiver: what it refuses, what it calls a problem, and one short run."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from covey.cli.main import app
from covey.lab.traffic.slow import SlowPlan, problems
from covey.lab.traffic.slow_program import SlowResult
from covey.protocol.values import Policy

SENT = SlowResult(name="sender", messages=100, seconds=1.0, longest_pause_s=0.0)
FIELDS = {
    "healthy_longest_pause_ms",
    "sender_longest_pause_ms",
    "lost_not_obsolete",
    "purged_share",
    "daemon_memory_mb",
}


def got(name: str, messages: int = 100, problem: str = "", ended: str = "", lag_bytes: int = 0) -> SlowResult:
    return SlowResult(
        name=name, messages=messages, seconds=1.0, longest_pause_s=0.0, problem=problem, ended=ended,
        lag_bytes=lag_bytes,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "healthy", "slow", "found"),
    [
        ("disconnect", got("healthy"), got("slow"), ""),
        ("disconnect", got("healthy"), got("slow", 40, ended="too slowly", lag_bytes=7), ""),
        ("disconnect", got("healthy"), got("slow", 40, ended="too slowly"), "without its lag"),
        ("disconnect", got("healthy"), got("slow", 40), "slow got 40 of 100"),
        ("disconnect", got("healthy", 99), got("slow"), "healthy got 99 of 100"),
        ("disconnect", got("healthy", 99, ended="too slowly", lag_bytes=7), got("slow"), "healthy was ended"),
        ("disconnect", got("healthy", problem="a gap"), got("slow"), "healthy: a gap"),
        ("block", got("healthy"), got("slow"), ""),
        ("block", got("healthy"), got("slow", 40, ended="too slowly", lag_bytes=7), "slow was ended"),
    ],
    ids=range(9),
)
def test_what_is_not_as_it_must_be_is_told(policy: Policy, healthy: SlowResult, slow: SlowResult, found: str) -> None:
    told = problems(SlowPlan(policy=policy), SENT, [healthy, got("healthy"), slow])
    assert (found in " ".join(told)) if found else not told


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["--obsolete", "0.5"], "cannot be declared obsolete yet"),
        (["--policy", "drop"], "write disconnect or block"),
        (["--policy", "block", "--stall", "10"], "is ended"),
    ],
    ids=range(3),
)
def test_what_cannot_be_measured_is_refused(arguments: list[str], answer: str) -> None:
    result = CliRunner().invoke(app, ["bench", "slow-receiver", *arguments])
    assert result.exit_code == 2
    assert answer in result.output


@pytest.mark.live
def test_a_short_stall_loses_nothing() -> None:
    result = CliRunner().invoke(
        app, ["bench", "slow-receiver", "--stall", "0.2", "--mb-per-s", "2", "--policy", "block", "--json"]
    )
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert set(told) >= FIELDS
    assert (told["lost_not_obsolete"], told["purged_share"], told["problems"]) == (0, 0, [])
