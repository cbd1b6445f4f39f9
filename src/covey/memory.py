"""Memory that is used again rather than given back.

In:        nothing.  Out: nothing; the process keeps what it frees, up to a bound.
Not here:  bounds on what is kept in use: every queue has its own.

The C library gives freed memory back to the system as soon as a little is free, and asks for it again for the next
large buffer. Each page then has to be cleared and mapped anew, which costs several times the copy into it. The library
learns from what is freed: after one large block it keeps up to twice as much. Other C libraries are not impressed.
"""

from __future__ import annotations

from functools import cache
from typing import Final

BLOCK_BYTES: Final = 8 * 1024 * 1024


@cache
def keep_freed_memory() -> None:
    """Once a process: `bytes` does not touch the memory it asks for, but a second block would be of what is kept."""
    bytes(BLOCK_BYTES)
