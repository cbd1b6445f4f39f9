"""The runner that plants faults at random: what counts as caught, which options it takes, where it plants nothing."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from random import Random

import pytest

from tests.mutation.__main__ import arguments
from tests.mutation.children import Children, Ended
from tests.mutation.judging import Outcome, budget, classified
from tests.mutation.planting import draw, faults_in
from tests.mutation.score import Score

ENDLESS = [sys.executable, "-c", "import threading; threading.Event().wait()"]


@pytest.mark.parametrize(
    ("judges", "ended", "outcome"),
    [
        (Outcome.SWARM, Ended(0), Outcome.NOBODY),
        (Outcome.SWARM, Ended(0, "seed 3: S8 ..."), Outcome.SWARM),
        (Outcome.SWARM, Ended(1, "", "ImportError"), Outcome.SWARM),
        (Outcome.SWARM, Ended(-signal.SIGSEGV), Outcome.SWARM),
        (Outcome.SWARM, Ended(None), Outcome.LATE),
        (Outcome.SWARM, Ended(-signal.SIGINT, "", "KeyboardInterrupt"), Outcome.STOPPED),
        (Outcome.TESTS, Ended(0, "90 passed"), Outcome.NOBODY),
        (Outcome.TESTS, Ended(1, "F\nFAILED tests/x.py::test_y"), Outcome.TESTS),
        (Outcome.TESTS, Ended(2, "ERROR tests/x.py\nInterrupted: 1 error during collection"), Outcome.TESTS),
        (Outcome.TESTS, Ended(4, "", "ImportError while loading conftest"), Outcome.TESTS),
        (Outcome.TESTS, Ended(None), Outcome.LATE),
        (Outcome.TESTS, Ended(-signal.SIGTERM), Outcome.STOPPED),
        (Outcome.TESTS, Ended(2, "!!! KeyboardInterrupt !!!"), Outcome.STOPPED),
    ],
)
def test_only_a_check_catches(judges: Outcome, ended: Ended, outcome: Outcome) -> None:
    assert classified(judges, ended).outcome is outcome


def test_who_catches_says_how() -> None:
    assert (
        classified(Outcome.TESTS, Ended(1, "F\nFAILED tests/x.py::test_y\n1 failed")).how == "FAILED tests/x.py::test_y"
    )
    assert classified(Outcome.SWARM, Ended(1, "", "ImportError")).how == "died: ImportError"


def test_a_child_whose_time_is_over_is_ended_and_has_no_code(tmp_path: Path) -> None:
    assert Children().run(ENDLESS, tmp_path, 0.0) == Ended(None)


def test_stop_kills_all_children_and_starts_no_more(tmp_path: Path) -> None:
    children, ended = Children(), list[Ended]()
    begun = tmp_path / "begun"
    endless = [sys.executable, "-c", f"import threading; open({str(begun)!r}, 'x').close(); threading.Event().wait()"]
    waiting = threading.Thread(target=lambda: ended.append(children.run(endless, tmp_path, None)))
    waiting.start()
    while not begun.exists():
        assert waiting.is_alive()
    children.stop()
    waiting.join()
    assert ended == [Ended(-signal.SIGKILL)]
    assert children.run(ENDLESS, tmp_path, None) == Ended(-signal.SIGKILL)


def test_a_fault_has_more_time_where_the_control_was_slow() -> None:
    assert (budget(600.0, control=20.0), budget(600.0, control=200.0)) == (600.0, 1000.0)


def test_what_was_not_judged_is_listed_and_not_caught() -> None:
    score = Score(7)
    score.add(1, Outcome.SWARM)
    assert score.all_are_caught()
    score.add(2, Outcome.LATE)
    assert not score.all_are_caught()
    assert score.summary().endswith("the swarm caught 1, the tests 0 more; survivors: 0; not judged in time: 1 (2)")


@pytest.mark.parametrize("option", ["--jobs", "--faults", "--seeds"])
@pytest.mark.parametrize("value", ["0", "-3", "two", "1.5"])
def test_counts_begin_at_one(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        arguments(["--seed", "1", f"{option}={value}"])
    said = f"argument {option}: it must be a whole number, at least 1, and not {value}"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "long"])
def test_there_must_be_some_time(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        arguments(["--seed", "1", f"--seconds={value}"])
    assert f"it must be a number of seconds, more than 0, and not {value}" in capsys.readouterr().err


def test_usual_options_are_taken() -> None:
    asked = arguments(["--seed", "1", "--faults", "2", "--seconds", "0.5"])
    assert (asked.faults, asked.seeds, asked.seconds, asked.jobs) == (2, 90, 0.5, 2)


def test_who_asks_for_more_faults_than_there_are_gets_all(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(x):\n    return x > 3\n")
    found = faults_in(tmp_path, tmp_path / "a.py")
    assert sorted(draw(found, 99, Random(1))) == sorted(found)


def test_the_first_assignment_of_a_field_is_not_dropped(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "class A:\n"
        "    def __init__(self):\n"
        "        self.x = 0\n"
        "        self.y: list[int] = []\n"
        "    def reset(self):\n"
        "        self.x = 0\n"
    )
    found = [(fault.line, fault.what) for fault in faults_in(tmp_path, tmp_path / "a.py")]
    assert found == [(3, "0 becomes 1"), (6, "reset dropped"), (6, "0 becomes 1")]
