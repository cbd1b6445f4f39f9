"""`python -m covey.lab.faultnet --selftest`: what the bench can carry here, as JSON on standard output.

Not here:  the measurement (selftest.py). A bench is otherwise used from Python, and has no command line.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import msgspec

from .path import FaultNetError
from .selftest import measure


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m covey.lab.faultnet", description="The fault bench.")
    parser.add_argument("--selftest", action="store_true", required=True, help="measure how much it can carry")
    parser.parse_args(arguments)
    try:
        measured = measure()
    except FaultNetError as error:
        sys.stderr.write(f"faultnet: {error}\n")
        return 2
    sys.stdout.write(msgspec.json.encode(measured).decode() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
