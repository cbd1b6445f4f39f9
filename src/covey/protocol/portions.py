"""How much is done for clients in one step. The rest waits for the next one, which comes at once.

These are no settings: they keep what a step does for clients within some twenty milliseconds on a usual machine.
Simulations draw smaller ones, so that every cut is made somewhere.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Portions(NamedTuple):
    words: int = 300
    """Words of clients done in one step."""
    turn: int = 50
    """Words of one client, before others have their turn."""
    told: int = 2_000
    """Sessions told something in one step, and other small pieces of that work."""
    at_once: int = 500
    """Sessions told before anything else is looked at."""
    run: int = 128
    """Changes of one group that are told together."""
    behind: int = 500
    """Deliveries that wait to be told: with more, this daemon is behind, and asks the others to send less."""
    behind_bytes: int = 8 * 1024 * 1024
    cleared: int = 10_000
    """Entries let go that waited for sessions which are gone."""
    ended: int = 20
    """Sessions ended because too much waits for all."""
    late: int = 16
    """A view that more sessions than this are told of does not hold up what comes after it."""
    behind_late: int = 2_000_000
    """Views times sessions that are still to be told: with more, this daemon is behind too."""
    unwritten_late: int = 300
    """Streams that wait to be written: with more, nobody is told of late views before the driver has come to them."""
    many: int = 100
    unwritten_many: int = 2_000
    """The same for messages that more sessions than `many` are told."""


PORTIONS: Final = Portions()
