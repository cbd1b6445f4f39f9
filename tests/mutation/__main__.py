"""Plant faults at random in copies of the tree, and say who catches each.

python -m tests.mutation --seed 7 --faults 30

Exit codes: 0 all are caught; 1 some survive, or were not judged; 2 the options are wrong, or the tree fails without a
fault; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import math
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from pathlib import Path
from random import Random

from .children import Children
from .judging import Outcome, Verdict, budget, judge
from .planting import Fault, draw, plantable
from .score import Score

ROOT = Path(__file__).parents[2]
COPIED = ("src", "tests", "docs", "pyproject.toml")
STOPPED = 130


def main() -> int:
    asked = arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    run = _Run(asked)
    with ThreadPoolExecutor(asked.jobs) as pool:
        try:
            return run.judge_all(pool)
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Who is impatient need not be: it ends at once.
            run.children.stop()
            pool.shutdown(wait=False, cancel_futures=True)
    print(f"\nstopped\n{run.score.summary()}")
    return STOPPED


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, required=True, help="which faults: a new number, new faults")
    parser.add_argument("--faults", type=_count, default=30, help="how many")
    parser.add_argument(
        "--seeds", type=_count, default=90, help="simulated runs for each, a third of them again with programs"
    )
    parser.add_argument("--first", type=int, default=0, help="the first of these seeds")
    parser.add_argument(
        "--seconds", type=_seconds, default=600.0, help="what a fault may take; five times what no fault takes, if more"
    )
    parser.add_argument("--jobs", type=_count, default=2, help="faults judged at once")
    return parser.parse_args(given)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"it must be a whole number, at least 1, and not {text}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"it must be a number of seconds, more than 0, and not {text}")
    return seconds


class _Run:
    """One call: the control first, then fault after fault."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self._asked = asked
        self._seeds = range(asked.first, asked.first + asked.seeds)
        self.children = Children()
        self.score = Score(asked.seed)

    def judge_all(self, pool: Executor) -> int:
        faults = self._draw()
        seconds = self._control(pool)
        if seconds is None:
            return 2
        jobs = {pool.submit(self._try, fault, seconds): fault for fault in faults}
        for number, job in enumerate(as_completed(jobs), 1):
            lines, verdict = job.result()
            self.score.add(number, verdict.outcome)
            _tell(f"{number}/{len(faults)}", jobs[job], lines, verdict)
        print(f"\n{self.score.summary()}")
        return 0 if self.score.all_are_caught() else 1

    def _draw(self) -> list[Fault]:
        found = plantable(ROOT)
        if self._asked.faults > len(found):
            print(f"only {len(found)} faults can be planted: all of them are")
        faults = draw(found, self._asked.faults, Random(self._asked.seed))
        many = f"{len(faults)} faults of {len(found)}, {len(self._seeds)} seeds from {self._seeds.start} on for each"
        print(f"{many}, then the tests", flush=True)
        return faults

    def _control(self, pool: Executor) -> float | None:
        """What a fault may take; none, if the tree fails as it is. A thread of the pool waits, and we hear Ctrl-C."""
        print("first the tree without a fault ...", flush=True)
        began = time.monotonic()
        _, verdict = pool.submit(self._try, None, None).result()
        if verdict.outcome is not Outcome.NOBODY:
            print(f"nothing is planted: the tree without a fault is {verdict.outcome.value}: {verdict.how}")
            return None
        took = time.monotonic() - began
        seconds = budget(self._asked.seconds, took)
        print(f"... passes, and took {took:.0f} s; each fault may take {seconds:.0f} s", flush=True)
        return seconds

    def _try(self, fault: Fault | None, seconds: float | None) -> tuple[str, Verdict]:
        with tempfile.TemporaryDirectory(prefix="covey-mutation-") as directory:
            tree = Path(directory)
            _copy(tree)
            lines = fault.plant(tree) if fault else ""
            return lines, judge(tree, self._seeds, seconds, self.children)


def _copy(tree: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tree / name)


def _tell(number: str, fault: Fault, lines: str, verdict: Verdict) -> None:
    said = f"{verdict.outcome.value}: {verdict.how}" if verdict.how else verdict.outcome.value
    print(f"\n{number} {fault.path}:{fault.line}: {fault.what}\n{lines}\n{said}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
