"""Who catches a planted fault: the swarm, and if it does not, the tests.

In:        a copy of the tree with a fault in it; how many seeds, how much time.
Out:       a verdict: who caught it, and what that said.
Not here:  the fault (planting.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

TESTS: Final = ("tests/unit/protocol", "tests/properties", "tests/stories", "tests/unit/checkers")
_CLIENTS_SHARE = 3
"""One seed of three is run with eight programs, and costs about as much as the two others."""


class Caught(NamedTuple):
    by: str
    """`swarm`, `tests`, or nobody: empty."""
    how: str
    """The seed and the guarantee, or the first test that fails."""


def judge(tree: Path, seeds: range, seconds: float) -> Caught:
    """The cheapest first: a few seeds, many seeds, then tests."""
    for part in (seeds[:10], seeds[10:]):
        for clients in (None, 8):
            some = part if clients is None else part[::_CLIENTS_SHARE]
            if found := _swarm(tree, some, clients, seconds):
                return Caught("swarm", found)
    failed = _tests(tree, seconds)
    return Caught("tests", failed) if failed else Caught("", "")


def _swarm(tree: Path, seeds: range, clients: int | None, seconds: float) -> str:
    """The first seed that fails; none is run after it."""
    if not seeds:
        return ""
    program = (
        "import sys, json\n"
        "from covey.drivers.simulation.options import Asked\n"
        "from covey.drivers.simulation.swarm import report_seed\n"
        "seeds, clients = json.loads(sys.argv[1])\n"
        "for seed in range(*seeds):\n"
        "    broken = report_seed(seed, Asked(clients=clients)).violations\n"
        "    if broken:\n"
        "        print(f'seed {seed}: {broken[0].guarantee} {broken[0].detail}')\n"
        "        break\n"
    )
    arguments = json.dumps([[seeds.start, seeds.stop, seeds.step], clients])
    return _run([sys.executable, "-c", program, arguments], tree, seconds, "a run that does not end")[1]


def _tests(tree: Path, seconds: float) -> str:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *TESTS]
    code, said = _run(command, tree, seconds, "tests that do not end")
    if code == 0:
        return ""
    return next((line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))), said[-200:])


def _run(command: list[str], tree: Path, seconds: float, endless: str) -> tuple[int, str]:
    """Exit code and standard output. What dies or does not end has caught the fault, too."""
    environment = os.environ | {"PYTHONPATH": f"{tree / 'src'}:{tree}", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return 1, endless
    if done.returncode and not done.stdout.strip():
        return done.returncode, f"died: {done.stderr.strip()[-200:]}"
    return done.returncode, done.stdout.strip()
