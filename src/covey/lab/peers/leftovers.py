"""Nothing is left: whatever a block has started and not ended, because it was interrupted in between, is ended with it.

Not here:  ending in the ordinary way, which is the business of who started something (servers.py, hosts.py).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def nothing_left() -> Iterator[None]:
    before = children()
    try:
        yield
    finally:
        for pid in sorted(children() - before):
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def children() -> set[int]:
    """Processes that this one has started, and that it has not seen end."""
    return {int(directory.name) for directory in Path("/proc").glob("[0-9]*") if _parent(directory) == os.getpid()}


def _parent(directory: Path) -> int | None:
    try:
        return int((directory / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None  # It has ended meanwhile.
