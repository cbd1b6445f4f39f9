"""Spark made ready while a trace is still being written.

In:        where Spark shall run; the end of standard input, which says that the trace is complete.
Out:       the session of this process, started and warm.
Not here:  the check itself (trace_check.py).

A first judgement takes much longer than the second: Java loads and compiles what it needs on the way. So a small
simulated trace is judged meanwhile, as far as the time allows.
"""

from __future__ import annotations

import os
import select
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

SEED: Final = 5
"""Its run has programs too, so all guarantees have something to say."""
READ_BYTES: Final = 65_536


class _Enough(Exception):  # noqa: N818 - nothing is wrong
    """The trace is there."""


def be_ready(master: str, memory: str) -> None:
    """Returns when standard input has ended."""
    from covey.analysis import judge, session
    from covey.analysis.reading import read_trace
    from covey.drivers.simulation.run import run_seed

    spark = session(master, memory=memory, brief=True)
    with tempfile.TemporaryDirectory(prefix="covey-sample-") as sample, suppress(_Enough):
        run_seed(SEED, trace=Path(sample), invariants=False)
        judge(read_trace(spark, sample), progress=_stop_if_written)
    while os.read(sys.stdin.fileno(), READ_BYTES):
        pass


def _stop_if_written(_: str) -> None:
    ready = select.select([sys.stdin], [], [], 0)[0]
    if ready and not os.read(sys.stdin.fileno(), READ_BYTES):
        raise _Enough
