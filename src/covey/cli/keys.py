"""Single keys from a terminal, and the terminal put back as it was.

In:        standard input, if it is a terminal.  Out: what was typed, at once and without echo.
Not here:  what a key means.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

STDIN = 0


def is_terminal() -> bool:
    """Whether somebody sits there: keys come in, what is shown is seen, and a line can be written again."""
    return os.isatty(STDIN) and sys.stdout.isatty() and not is_dumb()


def is_dumb() -> bool:
    return os.environ.get("TERM") == "dumb"


@contextmanager
def single_keys() -> Iterator[None]:
    """Keys come one by one, not line by line. Ctrl-C stays what it is."""
    before = termios.tcgetattr(STDIN)
    tty.setcbreak(STDIN)
    try:
        yield
    finally:
        termios.tcsetattr(STDIN, termios.TCSADRAIN, before)


def read_keys() -> bytes:
    """What has been typed; call it when there is something."""
    return os.read(STDIN, 1_024)


def typed_within(seconds: float) -> str:
    """What is typed in this time; it returns with the first key."""
    if not select.select([STDIN], [], [], seconds)[0]:
        return ""
    return read_keys().decode(errors="replace")


def bold(text: str) -> str:
    return _styled(text, 1)


def dim(text: str) -> str:
    return _styled(text, 2)


def _styled(text: str, style: int) -> str:
    """Weight only, no colour: every background shows it."""
    plain = not sys.stdout.isatty() or "NO_COLOR" in os.environ or is_dumb()
    return text if plain else f"\x1b[{style}m{text}\x1b[0m"
