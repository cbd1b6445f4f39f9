"""A second judge of the demonstration: Spark, in a process of its own that gets ready while the play goes on.

In:        where the trace is written; that it is complete.
Out:       its table on standard error, or with --json its objects on standard output; whether every guarantee holds.
Not here:  the check (trace_check.py), how it gets ready (trace_wait.py).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self


class SparkJudge:
    def __init__(self, trace: Path, as_json: bool) -> None:
        command = [sys.executable, "-m", "covey", "trace", "check", str(trace), "--wait", *(["--json"] * as_json)]
        # A session of its own: Ctrl-C comes to us, and we end it.
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._end_input()
        self._process.wait()

    def holds(self) -> bool:
        """The trace is complete: whether nothing in it is violated."""
        self._end_input()
        return self._process.wait() == 0

    def _end_input(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
