"""Plant faults at random in copies of the tree, and say who catches each.

python -m tests.mutation --seed 7 --faults 30
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from random import Random

from .judging import Caught, judge
from .planting import Fault, draw

ROOT = Path(__file__).parents[2]
COPIED = ("src", "tests", "pyproject.toml")


def main() -> int:
    asked = _arguments()
    faults = draw(ROOT, asked.faults, Random(asked.seed))
    seeds = range(asked.first, asked.first + asked.seeds)
    score = {"swarm": 0, "tests": 0, "": 0}
    with ThreadPoolExecutor(asked.jobs) as pool:
        jobs = {pool.submit(_try, fault, seeds, asked.seconds): fault for fault in faults}
        for number, job in enumerate(as_completed(jobs), 1):
            lines, caught = job.result()
            score[caught.by] += 1
            _tell(number, len(faults), jobs[job], lines, caught)
    all_of = len(faults)
    print(
        f"\nof {all_of} faults (seed {asked.seed}) the swarm caught {score['swarm']}, the tests {score['tests']} more"
    )
    print(f"survivors: {score['']}")
    return 1 if score[""] else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, required=True, help="which faults: a new number, new faults")
    parser.add_argument("--faults", type=int, default=30, help="how many")
    parser.add_argument(
        "--seeds", type=int, default=90, help="simulated runs for each, a third of them again with programs"
    )
    parser.add_argument("--first", type=int, default=0, help="the first of these seeds")
    parser.add_argument("--seconds", type=float, default=600.0, help="what a swarm or the tests may take for one fault")
    parser.add_argument("--jobs", type=int, default=2, help="faults judged at once")
    return parser.parse_args()


def _try(fault: Fault, seeds: range, seconds: float) -> tuple[str, Caught]:
    with tempfile.TemporaryDirectory(prefix="covey-mutation-") as directory:
        tree = Path(directory)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, tree / name)
        lines = fault.plant(tree)
        return lines, judge(tree, seeds, seconds)


def _tell(number: int, all_of: int, fault: Fault, lines: str, caught: Caught) -> None:
    verdict = f"caught by the {caught.by}: {caught.how}" if caught.by else "SURVIVES"
    print(f"\n{number}/{all_of} {fault.path}:{fault.line}: {fault.what}\n{lines}\n{verdict}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
