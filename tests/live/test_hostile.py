"""Legal programs that go to the limits, in small: daemons live, the view holds, and a bystander gets every message."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from covey.cli.main import app
from covey.lab.cluster import LiveError
from covey.lab.hostile.measure import measure_hostile, open_files
from covey.lab.hostile.outcome import Outcome, summary
from covey.lab.hostile.plan import HostilePlan

PATIENT = {"token_lost_ms": 2_000, "peer_timeout_ms": 3_000}
"""On a machine with too much to do, a daemon that had no time must not be taken for a lost one."""

SMALL = HostilePlan(
    sessions=150,
    groups=2_000,
    silent=5,
    seconds=0.7,
    flap_seconds=1.0,
    block_every_s=0.7,
    patience_s=30.0,
    later_s=0.1,
    settings=PATIENT,
)
SMALL_BUFFERS = {"message_bytes_max": 100_000, "session_receive_bytes": 1_000_000}
FIELDS = {
    "longest_step_ms",
    "bystander_longest_wait_ms",
    "views_lost",
    "peak_memory_mb",
    "later_memory_mb",
    "problems",
    "scenarios",
}


def measured(name: str, plan: HostilePlan = SMALL) -> Outcome:
    [(_, outcome)] = measure_hostile([name], plan)
    return outcome


def check_unhurt(outcome: Outcome) -> None:
    assert outcome.problems == []
    assert outcome.views_lost == 0
    assert outcome.bystander_messages > 0


# --- what is told


def test_the_summary_is_of_the_worst_and_of_each() -> None:
    scenarios = {
        "storm": Outcome(views_lost=1, peak_memory_mb=30.0, problems=["a daemon died"]),
        "silent": Outcome(views_lost=2, peak_memory_mb=20.0, bystander_longest_wait_ms=7.0, details={"sent_mb": 8}),
        "flap": Outcome(views_lost=40, bystander_longest_wait_ms=900.0),
    }
    told = summary(scenarios)
    assert set(told) == FIELDS
    assert (told["views_lost"], told["peak_memory_mb"], told["bystander_longest_wait_ms"]) == (3, 30.0, 7.0)
    assert told["problems"] == ["storm: a daemon died"]
    assert told["scenarios"]["silent"]["sent_mb"] == 8


def test_a_flapping_link_alone_is_told_as_it_is() -> None:
    assert summary({"flap": Outcome(views_lost=40)})["views_lost"] == 40


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["--scenario", "flood"], "storm groups silent flap large names blocker"),
        (["--preset", "moon"], "write loopback, lan or wan"),
    ],
)
def test_what_there_is_not_is_refused(arguments: list[str], answer: str) -> None:
    result = CliRunner().invoke(app, ["bench", "hostile", *arguments])
    assert result.exit_code == 2
    assert answer in result.output


def test_more_sessions_than_files_are_refused() -> None:
    with pytest.raises(LiveError, match="ulimit -Hn"), open_files(1 << 40):
        pass


# --- what happens


@pytest.mark.live
def test_one_scenario_from_the_command_line() -> None:
    arguments = ["--scenario", "groups", "--groups", "50", "--later", "0.1", "--json"]
    result = CliRunner().invoke(app, ["bench", "hostile", *arguments])
    told = json.loads(result.stdout)
    assert set(told) == FIELDS
    assert told["scenarios"]["groups"]["joined"] == 50
    assert (result.exit_code, told["views_lost"]) == (0, 0), told


@pytest.mark.live
def test_many_sessions_join_one_group_at_once_and_leave_at_once() -> None:
    outcome = measured("storm")
    check_unhurt(outcome)
    assert (outcome.details["joined"], outcome.details["ended_by_daemon"]) == (150, 0)
    read_mb, views_of_all, a_change = outcome.details["crowd_read_mb"], 150 * 150, 250
    assert isinstance(read_mb, float)
    assert read_mb <= views_of_all * a_change / 1_000_000, "each view is told by what changed"


@pytest.mark.live
def test_few_sessions_join_very_many_groups() -> None:
    outcome = measured("groups")
    check_unhurt(outcome)
    assert (outcome.details["joined"], outcome.details["ended_by_daemon"]) == (2_000, 0)


@pytest.mark.live
def test_members_that_never_read_hurt_nobody() -> None:
    check_unhurt(measured("silent", replace(SMALL, settings=PATIENT | SMALL_BUFFERS)))


@pytest.mark.live
def test_messages_to_several_groups_with_long_names() -> None:
    check_unhurt(measured("names"))


@pytest.mark.live
def test_a_large_message_arrives_beside_many_small_ones() -> None:
    outcome = measured("large")
    check_unhurt(outcome)
    assert outcome.details["large_messages"] != 0


@pytest.mark.live
def test_a_member_that_never_reads_makes_only_its_own_group_wait() -> None:
    check_unhurt(measured("blocker", replace(SMALL, settings=PATIENT | {"block_max_ms": 500})))


@pytest.mark.live
def test_a_flapping_link_loses_nothing_at_the_senders_own_daemon() -> None:
    outcome = measured("flap", replace(SMALL, settings={}))
    assert outcome.problems == []
    assert outcome.bystander_messages > 0
