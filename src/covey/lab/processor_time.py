"""Processor time of processes, read from the system.

In:        the number of a process.  Out: seconds that its threads have run so far.
Not here:  what is made of it (traffic/measure.py, peers/measure.py).
"""

from __future__ import annotations

import os
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """Of all threads that live; to the nanosecond where the kernel counts so, else to a tick."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9
    except FileNotFoundError:
        return ticks(Path(f"/proc/{pid}/stat").read_text()) / os.sysconf("SC_CLK_TCK")


def ticks(stat: str) -> int:
    """In user mode and in the kernel.

    >>> ticks("7 (a name) with) S 1 7 7 0 -1 0 0 0 0 0 30 12 0 0 20 0 1 0 0 0")
    42
    """
    user, system = stat.rpartition(")")[2].split()[11:13]
    return int(user) + int(system)
