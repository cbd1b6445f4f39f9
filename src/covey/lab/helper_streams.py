"""What a helper process of a measurement does with its standard streams.

In:        words of who started it, one a line.  Out: one JSON line for each thing said.
Not here:  who starts it (helper_process.py).
"""

from __future__ import annotations

import os
import select
import sys
from typing import Final

import msgspec

READ_BYTES: Final = 4_096


def say(value: object) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


def told(within_s: float | None = None) -> str:
    """What the supervisor says next; nothing, if it does not in time. Its end is a `stop`."""
    stdin = sys.stdin.fileno()
    if not select.select([stdin], [], [], within_s)[0]:
        return ""
    return os.read(stdin, READ_BYTES).decode().strip() or "stop"
