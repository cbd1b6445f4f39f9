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


class Why(NamedTuple):
    """What a view says of why it came."""

    cause: str
    reason: Reason
    detail: str


def why_it_came(
    is_first: bool,
    old: tuple[Life, ...],
    movers: tuple[Life, ...],
    members: tuple[Life, ...],
    ending: Ending,
    name: NameOf,
) -> Why:
    """Who is gone or has come says more than whom the ending was about; a first view follows no other."""
    changed = "" if is_first else _who(old, movers, members, name)
    return Why(_cause_of(is_first, movers, members, ending.reason), ending.reason, changed or ending.detail)


def _cause_of(is_first: bool, movers: tuple[Life, ...], members: tuple[Life, ...], reason: Reason) -> str:
    """One word for it."""
    if is_first:
        return "start"
    if any(life not in movers for life in members):
        return "merge"  # Also of those who were together before, and parted without our notice.
    return "goodbye" if reason is Reason.PEER_GOODBYE else "loss"


def _who(old: tuple[Life, ...], movers: tuple[Life, ...], members: tuple[Life, ...], name: NameOf) -> str:
    """Who is gone and who has come, whatever it was that made us look for a new view."""
    gone = {name(life.rank) for life in old if life not in members}
    come = {name(life.rank) for life in members if life not in movers}
    words = {"without": gone - come, "with": come - gone, "again with": come & gone}
    return ", ".join(f"{word} {' '.join(sorted(names))}" for word, names in words.items() if names)
