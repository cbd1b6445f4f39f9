"""The commands around daemons, without any: what they write, print and refuse."""

from __future__ import annotations

import errno
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from covey.cli import common, up
from covey.cli.main import app, build, main, summary
from covey.cli.status_tables import print_statuses
from covey.client.address import socket_path
from covey.config_file import load
from covey.drivers.live.launch import DaemonOptions, from_arguments
from covey.guarantees.checkers.verdict import Violation
from covey.lab import failover
from covey.lab.cluster import LiveError
from covey.lab.failover import TROUBLES, Failover, FailoverPlan

RUNNING: Any = {
    "state": "op",
    "reason": "every member is done",
    "view": "7.0.1",
    "members": ["a", "b"],
    "waiting_bytes": 1_234,
    "uptime_s": 9.5,
    "longest_step_ms": 12.34,
    "longest_step_recent_ms": 3.0,
    "sending_problem": "datagrams cannot be sent",
    "views": 3,
    "delivered_per_s": 12.0,
    "datagrams_sent_per_s": 1_500.4,
    "datagrams_received_per_s": 700.0,
    "bytes_sent_per_s": 2_340_000.0,
    "bytes_received_per_s": 560.0,
    "link": {
        "kind": "ring",
        "token": 77,
        "token_is_here": True,
        "packets_kept": 5,
        "packets_unstable_max": 60,
        "rotations_per_s": 812.3,
    },
    "recent_views": [
        {
            "time_ns": 0,
            "transitional": ["a"],
            "cause": "merge",
            "reason": "daemons outside our view can be merged",
            "detail": "b",
        }
    ],
    "clients": {
        "session_count": 21,
        "sessions": [
            {
                "process": "slow@a:7.3",
                "policy": "block",
                "phase": "open",
                "groups": 2,
                "delivered": 4_000,
                "backlog_bytes": 2_500_000,
                "lag_ms": 1_500,
                "blocking": True,
                "reading": True,
            }
        ],
    },
    "peers": [{"name": "b", "two_way": False, "gone": None, "silent_ms": 99}],
    "multicast": "239.192.77.1:4800",
    "strangers": ["c: it is not connected both ways with b"],
    "outsiders": [{"datagrams": 1_200, "silent_ms": 90, "text": "192.0.2.7:4801: another cluster"}],
    "unsealed": ["192.0.2.1"],
    "count": {"frame rejected: malformed frame": 3, "packet dropped: duplicate": 4_000, "token parked": 5},
}


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


@pytest.mark.parametrize("words", [[], ["send"], ["sim"], ["sim", "run"]])
def test_help_is_short_to_ask_for(runner: CliRunner, words: list[str]) -> None:
    ran = runner.invoke(app, [*words, "-h"])
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.startswith("Usage: ")


@pytest.mark.parametrize(("found", "called"), [(None, ".venv/bin/covey"), ("/usr/bin/covey", "covey")])
def test_what_is_to_be_typed_next_can_be_typed(monkeypatch: pytest.MonkeyPatch, found: str | None, called: str) -> None:
    monkeypatch.setattr("sys.argv", [".venv/bin/covey", "demo"])
    monkeypatch.setattr("shutil.which", lambda _: found)
    assert common.called() == called


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield words
    else:
        for name, child in children.items():
            yield from commands(child, (*words, name))


COMMAND: Any = typer.main.get_command(app)


@pytest.mark.parametrize("words", list(commands(COMMAND)), ids=" ".join)
def test_every_command_takes_json(runner: CliRunner, words: tuple[str, ...]) -> None:
    assert "--json" in runner.invoke(app, [*words, "--help"]).stdout


def numbers(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every option that takes one which need not be whole."""
    for name, child in getattr(command, "commands", {}).items():
        yield from numbers(child, (*words, name))
    for option in command.params:
        if option.type.name.startswith("float"):
            yield words, option


@pytest.mark.parametrize(
    ("words", "option"), [pytest.param(*one, id=f"{' '.join(one[0])} {one[1].name}") for one in numbers(COMMAND)]
)
def test_what_is_no_number_is_refused_wherever_one_is_taken(words: tuple[str, ...], option: Any) -> None:
    for wrong in ("nan", "inf", "-inf"):
        with pytest.raises(typer.BadParameter):
            option.process_value(typer.Context(COMMAND), wrong)


@pytest.mark.parametrize("arguments", [["send", "caf\udce9", "hi"], ["daemon", "a", "--run", "caf\udce9"]])
def test_an_argument_that_is_not_utf_8_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["covey", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "'caf\\udce9' is not UTF-8 text" in capsys.readouterr().err


# --- init


def test_init_tells_what_it_wrote(runner: CliRunner, tmp_path: Path) -> None:
    file = tmp_path / "covey.toml"
    ran = runner.invoke(app, ["init", str(file), "--daemons", "2", "--port", "5000", "--name", "x", "--json"])
    assert ran.exit_code == 0
    told = json.loads(ran.stdout)
    assert told["path"] == str(file)
    assert told["cluster"] == load(file).cluster.name == "x"
    assert [(one["name"], one["host"], one["port"]) for one in told["daemons"]] == [
        (one.name, one.host, one.port) for one in load(file).cluster.daemons
    ]


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["covey.toml"], "overwrite it with --force"),
        (["missing/covey.toml"], "name a file in a directory that exists"),
        (["other.toml", "--name", ""], "a cluster cannot be called ''"),
        (["other.toml", "--name", "a\nb"], "write a name of printable characters"),
    ],
)
def test_init_refuses_with_what_to_do(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], remedy: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("covey.toml").touch()
    ran = runner.invoke(app, ["init", "--json", *arguments])
    assert ran.exit_code == 2
    assert ran.stdout == ""
    assert remedy in ran.stderr


def test_init_writes_a_name_with_quotes_so_that_it_can_be_read(runner: CliRunner, tmp_path: Path) -> None:
    file = tmp_path / "covey.toml"
    assert runner.invoke(app, ["init", str(file), "--name", 'a"b\\c']).exit_code == 0
    assert load(file).cluster.name == 'a"b\\c'


def test_init_says_what_to_type_next(runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "with `covey daemon a`, or all with `covey up`" in runner.invoke(app, ["init"]).stdout
    assert "`covey up --config other.toml`" in runner.invoke(app, ["init", "other.toml"]).stdout


# --- up


class Started:
    """Processes that are not started."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.options: list[DaemonOptions] = []
        monkeypatch.setattr(up, "_wait_for", lambda _: 0)
        monkeypatch.setattr("subprocess.Popen", self._start)

    def _start(self, command: list[str], **_: object) -> None:
        self.options.append(from_arguments(command[-1:], DaemonOptions))

    @property
    def names(self) -> str:
        return " ".join(one.name for one in self.options)


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Started:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return Started(monkeypatch)


def test_up_runs_the_file_that_other_commands_would_find(runner: CliRunner, started: Started) -> None:
    runner.invoke(app, ["init", "--daemons", "2"])
    ran = runner.invoke(app, ["up"])
    assert (ran.exit_code, started.names) == (0, "a b")
    assert {one.config for one in started.options} == {str(Path("covey.toml").absolute())}
    assert "COVEY_ADDRESS" not in ran.stderr
    assert not Path("covey-up").exists()


def test_up_without_a_file_makes_one_and_again_the_next_time(runner: CliRunner, started: Started) -> None:
    assert runner.invoke(app, ["up"]).exit_code == 0
    assert runner.invoke(app, ["up", "--daemons", "1"]).exit_code == 0
    assert started.names == "a b c a"
    assert [one.name for one in load(Path("covey-up/covey.toml")).cluster.daemons] == ["a"]
    assert all(one.views_only for one in started.options)


def test_up_beside_another_file_says_how_to_reach_its_daemons(runner: CliRunner, started: Started) -> None:
    runner.invoke(app, ["init"])
    ran = runner.invoke(app, ["up", "--dir", "second"])
    assert (ran.exit_code, started.names) == (0, "a b c")
    assert f"work in {Path('second').absolute()} " in ran.stderr
    address = socket_path(load(Path("second/covey.toml")).cluster.digest(), "a")
    assert f"export COVEY_ADDRESS=unix:{address}" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["--dir", "."], "run it with --config covey.toml"),
        (["--dir", "file"], "name a directory of yours"),
        (["--config", "covey.toml", "--daemons", "2"], "leave out --daemons"),
        (["--config", "missing.toml"], "covey init"),
    ],
)
def test_up_refuses_with_what_to_do(runner: CliRunner, started: Started, arguments: list[str], remedy: str) -> None:
    runner.invoke(app, ["init"])
    Path("file").touch()
    ran = runner.invoke(app, ["up", *arguments])
    assert (ran.exit_code, ran.stdout, started.options) == (2, "", [])
    assert remedy in ran.stderr


def test_up_leaves_daemons_alone_that_run_already(runner: CliRunner, started: Started) -> None:
    runner.invoke(app, ["init"])
    path = socket_path(load(Path("covey.toml")).cluster.digest(), "b")
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        for arguments in (["up"], ["up", "--dir", "."], ["up", "--config", "covey.toml"]):
            ran = runner.invoke(app, arguments)
            assert (ran.exit_code, started.options) == (2, [])
            assert "b of " in ran.stderr
            assert "run already" in ran.stderr


# --- status


def test_status_shows_rates_windows_and_drops_by_reason(capsys: pytest.CaptureFixture[str]) -> None:
    print_statuses({"a": RUNNING, "b": None})
    shown = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "a op 7.0 a b 77 here 1,234 B 9.5 s 3" in lines
    assert "b not running" in lines
    assert "a 12 1,500 700 2.3 MB 560 B 812 5 of 60" in lines
    assert "slow@a 2 4,000 2.5 MB 1,500 ms block makes senders wait" in lines
    assert "and 20 more" in lines
    assert "old, merge: daemons outside our view can be merged (b); moved together: a" in " ".join(lines)
    assert "datagrams for several daemons go to 239.192.77.1:4800" in lines
    assert lines.index("4,000 packet dropped: duplicate") < lines.index("3 frame rejected: malformed frame")
    assert "token parked" not in shown
    assert "its longest step took 12.3 ms, of late 3.0 ms" in lines
    assert "warning: datagrams cannot be sent" in lines
    assert "not merged with c: it is not connected both ways with b" in lines
    assert "1,200 datagrams, the last 0.1 s ago, from 192.0.2.7:4801: another cluster" in lines


# --- bench failover


def with_result(monkeypatch: pytest.MonkeyPatch, result: Failover | LiveError) -> list[FailoverPlan]:
    plans: list[FailoverPlan] = []

    def measured(plan: FailoverPlan) -> Iterator[Failover]:
        plans.append(plan)
        if isinstance(result, LiveError):
            raise result
        yield result

    monkeypatch.setattr(failover, "measure_failover", measured)
    return plans


def test_failover_tells_medians_and_worst_cases(runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    times = {trouble: [1.0, 9.0, 2.0] for trouble in TROUBLES}
    plans = with_result(monkeypatch, Failover(times, events=5))
    ran = runner.invoke(app, ["bench", "failover", "--json", "--pause-trials", "2", "--pause-seconds", "7"])
    assert ran.exit_code == 0
    told = json.loads(ran.stdout)
    for kind in ("start", "kill", "stop", "merge", "resume"):
        assert (told[f"{kind}_ms"], told[f"{kind}_worst_ms"]) == (2.0, 9.0)
    assert (told["trials"], told["violations"]) == (3, 0)
    assert plans == [FailoverPlan(3, 10, 2, 7.0, 0)]


def test_a_violation_in_the_trace_fails_the_bench(runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Failover(violations=[Violation("S1", "a:1", "delivered twice")], kept=[Path("somewhere")])
    with_result(monkeypatch, broken)
    ran = runner.invoke(app, ["bench", "failover", "--json"])
    assert ran.exit_code == 1
    assert json.loads(ran.stdout)["violations"] == 1
    assert "S1 a:1: delivered twice" in ran.stderr
    assert "covey trace cat somewhere/trace" in ran.stderr


def test_daemons_that_do_not_come_to_one_view_fail_the_bench(
    runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_result(monkeypatch, LiveError("waited 15 s for one view of a b c"))
    ran = runner.invoke(app, ["bench", "failover", "--json"])
    assert ran.exit_code == 1
    assert ran.stdout == ""
    assert "waited 15 s" in ran.stderr


# --- simulation


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["run", "--seed", "1", "--daemons", "5000"], "at most"),
        (["run", "--seed", "1", "--clients", "-3"], "from 0 to"),
        (["swarm", "--seeds", "0:99999999999999999999"], "at a time"),
        (["swarm", "--seeds", "5:5"], "END must be larger"),
        (["run", "--seed", "1", "--seconds", "0"], "above 0, at most 3600"),
    ],
)
def test_sim_refuses_with_what_to_do(runner: CliRunner, arguments: list[str], remedy: str) -> None:
    result = runner.invoke(app, ["sim", *arguments])
    assert (result.exit_code, remedy in result.stderr) == (2, True)


def test_a_run_whose_trace_lost_rows_is_no_good_run(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", fails)
    arguments = ["sim", "run", "--seed", "3", "--daemons", "3", "--seconds", "1", "--trace", str(tmp_path / "trace")]
    result = runner.invoke(app, arguments)
    assert (result.exit_code, "free some space" in result.stderr) == (2, True)


def test_the_list_of_commands_says_what_the_commands_say() -> None:
    runner = CliRunner()
    assert runner.invoke(summary(), ["--help"]).output == runner.invoke(build(), ["--help"]).output
