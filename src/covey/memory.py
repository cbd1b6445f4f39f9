"""Memory that is used again rather than given back.

In:        nothing.  Out: nothing; the process keeps what it frees, up to a bound.
Not here:  bounds on what is kept in use: every queue has its own.

The C library gives freed memory back to the system as soon as a little is free, and asks for it again for the next
large buffer. Each page then has to be cleared and mapped anew, which costs several times the copy into it. The library
learns from what is freed: after one large block it keeps up to twice as much. Other C libraries are not impressed.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Final

BLOCK_BYTES: Final = 8 * 1024 * 1024


@cache
def keep_freed_memory() -> None:
    """Once a process: `bytes` does not touch the memory it asks for, but a second block would be of what is kept."""
    bytes(BLOCK_BYTES)


BUDGET_SHARE: Final = 8
BUDGET_LEAST: Final = 128 * 1024 * 1024
BUDGET_MOST: Final = 4 * 1024 * 1024 * 1024
CGROUP: Final = Path("/sys/fs/cgroup/memory.max")


def clients_budget() -> int:
    """What may wait for all clients of a daemon, where the configuration leaves it to the machine: an eighth."""
    return min(max(_memory_bytes() // BUDGET_SHARE, BUDGET_LEAST), BUDGET_MOST)


def _memory_bytes() -> int:
    """Of this machine, or of the part of it that we may use."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        return min(whole, int(CGROUP.read_text()))
    except (OSError, ValueError):
        return whole
