"""Who catches a planted fault: the swarm, and if it does not, the tests.

In:        a copy of the tree, with a fault in it or as it is; which seeds, how much time.
Out:       a verdict: who caught it, and what that said.
Not here:  the fault (planting.py), the processes (children.py).

Only a check can catch. A time that is used up shows nothing: the machine may have been busy. Nor does a child that
somebody else has killed.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

from .children import Children, Ended

TESTS: Final = ("tests/unit/protocol", "tests/properties", "tests/stories", "tests/unit/checkers")
_CLIENTS_SHARE = 3
"""One seed of three is run with eight programs, and costs about as much as the two others."""
_CONTROLS = 5
"""So many times as long as the tree without a fault may a tree with one take: some are slow, others run beside it."""
_FROM_OUTSIDE: Final = (-signal.SIGHUP, -signal.SIGINT, -signal.SIGTERM, -signal.SIGKILL)
"""No fault sends these to itself."""
_PYTEST_INTERRUPTED = 2

_PROGRAM = """
import sys, json
from covey.drivers.simulation.options import Asked
from covey.drivers.simulation.swarm import report_seed
seeds, clients = json.loads(sys.argv[1])
for seed in range(*seeds):
    broken = report_seed(seed, Asked(clients=clients)).violations
    if broken:
        print(f'seed {seed}: {broken[0].guarantee} {broken[0].detail}')
        break
"""


class Outcome(Enum):
    SWARM = "caught by the swarm"
    TESTS = "caught by the tests"
    NOBODY = "SURVIVES"
    LATE = "not judged in time"
    """An endless loop ends here, and so does a machine with too much else to do."""
    STOPPED = "not judged, since its process was killed"


class Verdict(NamedTuple):
    outcome: Outcome
    how: str = ""
    """The seed and the guarantee, or the first test that fails."""


def budget(seconds: float, control: float) -> float:
    """What one fault may take, where the tree without any took `control` seconds.

    >>> budget(600, control=20), budget(600, control=200)
    (600, 1000)
    """
    return max(seconds, _CONTROLS * control)


def judge(tree: Path, seeds: range, seconds: float | None, children: Children) -> Verdict:
    """The cheapest come first: a few seeds, many seeds, then tests. All of them share the time."""
    end = None if seconds is None else time.monotonic() + seconds
    for outcome, command in _commands(seeds):
        left = None if end is None else max(0.0, end - time.monotonic())
        verdict = classified(outcome, children.run(command, tree, left))
        if verdict.outcome is not Outcome.NOBODY:
            return verdict
    return Verdict(Outcome.NOBODY)


def classified(judges: Outcome, ended: Ended) -> Verdict:
    """What the end of a child says of the fault, where these judges were asked.

    >>> classified(Outcome.SWARM, Ended(0, "seed 3: S8 ..."))
    Verdict(outcome=<Outcome.SWARM: 'caught by the swarm'>, how='seed 3: S8 ...')
    >>> classified(Outcome.TESTS, Ended(None)).outcome.value
    'not judged in time'
    """
    if ended.code is None:
        return Verdict(Outcome.LATE, f"the {judges.name.lower()} had not ended; an endless loop looks like that, too")
    if ended.code in _FROM_OUTSIDE:
        return Verdict(Outcome.STOPPED, signal.Signals(-ended.code).name)
    return _by_swarm(ended) if judges is Outcome.SWARM else _by_tests(ended)


def _commands(seeds: range) -> Iterator[tuple[Outcome, list[str]]]:
    for part in (seeds[:10], seeds[10:]):
        if part:
            yield Outcome.SWARM, _swarm(part, None)
            yield Outcome.SWARM, _swarm(part[::_CLIENTS_SHARE], 8)
    # No test has a limit of its own: time alone catches nothing.
    options = ("-x", "-q", "--no-header", "-p", "no:cacheprovider", "--timeout=0")
    yield Outcome.TESTS, [sys.executable, "-m", "pytest", *options, *TESTS]


def _swarm(seeds: range, clients: int | None) -> list[str]:
    """It says the first seed that fails, and runs none after it."""
    arguments = json.dumps([[seeds.start, seeds.stop, seeds.step], clients])
    return [sys.executable, "-c", _PROGRAM, arguments]


def _by_swarm(ended: Ended) -> Verdict:
    """What dies has caught the fault, too."""
    if ended.said:
        return Verdict(Outcome.SWARM, ended.said)
    return Verdict(Outcome.SWARM, f"died: {ended.erred[-200:]}") if ended.code else Verdict(Outcome.NOBODY)


def _by_tests(ended: Ended) -> Verdict:
    if ended.code == 0:
        return Verdict(Outcome.NOBODY)
    failed = next((line for line in ended.said.splitlines() if line.startswith(("FAILED", "ERROR"))), "")
    if ended.code == _PYTEST_INTERRUPTED and not failed:
        return Verdict(Outcome.STOPPED, "the tests were interrupted")
    return Verdict(Outcome.TESTS, failed or f"died: {(ended.erred or ended.said)[-200:]}")
