"""How much is done for clients in one step. The rest waits for the next one, which comes at once.

These are no settings: they keep a step within some ten milliseconds on any machine that can run a daemon. Simulations
draw smaller ones, so that every cut is made somewhere.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Portions(NamedTuple):
    words: int = 1_000
    """Words of clients done in one step."""
    turn: int = 100
    """Words of one client, before others have their turn."""
    told: int = 4_000
    """Sessions told something in one step, and other small pieces of that work."""
    at_once: int = 500
    """Sessions told before anything else is looked at."""
    run: int = 128
    """Changes of one group that are told together."""
    behind: int = 500
    """Deliveries that wait to be told: with more, this daemon is behind, and asks the others to send less."""
    behind_bytes: int = 8 * 1024 * 1024
    unwritten: int = 1_000
    """Streams that wait to be written: with more, this daemon is behind too."""


PORTIONS: Final = Portions()
