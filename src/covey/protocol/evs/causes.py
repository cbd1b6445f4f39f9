"""Why a view came, for people: one word, the reason, and who is gone or has come."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from covey.ids import Life

from .states import Reason

NameOf = Callable[[int], str]


class Ending(NamedTuple):
    """Why the view in force is to end, and whom that is about."""

    reason: Reason
    detail: str


def cause_of(is_first: bool, movers: tuple[Life, ...], members: tuple[Life, ...], reason: Reason) -> str:
    """One word for it."""
    if is_first:
        return "start"
    if any(life not in movers for life in members):
        return "merge"  # Also of those who were together before, and parted without our notice.
    return "goodbye" if reason is Reason.PEER_GOODBYE else "loss"


def who(old: tuple[Life, ...], movers: tuple[Life, ...], members: tuple[Life, ...], name: NameOf) -> str:
    """Who is gone and who has come, whatever it was that made us look for a new view."""
    gone = {name(life.rank) for life in old if life not in members}
    come = {name(life.rank) for life in members if life not in movers}
    told = {"without": gone - come, "with": come - gone, "again with": come & gone}
    return ", ".join(f"{word} {' '.join(sorted(names))}" for word, names in told.items() if names)
