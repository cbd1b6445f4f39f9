"""What the co-movers of an attempt still owe one another, computed alike at each of them.

The rules: docs/protocol/recovery.md, 3.

Pure functions of the declarations. Co-movers are the members of an attempt that come from the same view.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from covey.ids import INFINITE, Life
from covey.protocol.values import Declaration, Position, SiteDeclaration


class Union(msgspec.Struct, frozen=True):
    """The bundles of one site that at least one co-mover holds: 1 … prefix, and some beyond."""

    prefix: int
    extras: tuple[int, ...]

    def __contains__(self, number: int) -> bool:
        return number <= self.prefix or number in self.extras


class RecoveryPlan(msgspec.Struct, frozen=True):
    """How the old view ends if the attempt succeeds."""

    movers: tuple[Life, ...]
    unions: dict[int, Union]
    lows: dict[int, int]
    """Of each site: up to here somebody has let go of its bundles, and so everybody has received them."""
    frontiers: dict[int, int]
    """As far as declarations tell: whoever holds the union may know more by the stamps of its bundles."""
    position: Position
    """The place of the transitional signal."""
    commit: frozenset[Life]
    """Whose messages are delivered even above a hole."""


def make_plan(declarations: Mapping[Life, Declaration], whole_sites: Collection[int]) -> RecoveryPlan:
    """`declarations` of the co-movers; `whole_sites`: sites all of whose daemons of the old view are co-movers."""
    movers = tuple(sorted(declarations))
    by_site: dict[int, list[SiteDeclaration]] = {}
    for life in movers:
        for entry in declarations[life].sites:
            by_site.setdefault(entry.site, []).append(entry)
    unions = {site: _union(entries) for site, entries in by_site.items()}
    frontiers = {
        site: INFINITE if site in whole_sites else _frontier(entries, unions[site].prefix)
        for site, entries in by_site.items()
    }
    return RecoveryPlan(
        movers=movers,
        unions=unions,
        lows={site: max(entry.low for entry in entries) for site, entries in by_site.items()},
        frontiers=frontiers,
        position=_signal_position(declarations),
        commit=frozenset(movers).union(*(declaration.commit for declaration in declarations.values())),
    )


def missing(plan: RecoveryPlan, mine: Declaration) -> list[tuple[int, int]]:
    """(site, number) of every bundle of the union that this daemon does not hold."""
    wanted = []
    for entry in mine.sites:
        held = set(entry.held_beyond)
        union, has_to = plan.unions[entry.site], max(entry.gap_free, plan.lows[entry.site])
        numbers = [*range(has_to + 1, union.prefix + 1), *(n for n in union.extras if n > has_to)]
        wanted += [(entry.site, number) for number in numbers if number not in held]
    return wanted


class Holdings:
    """Who can resend what: the declarations, looked up by number."""

    def __init__(self, declarations: Mapping[Life, Declaration]) -> None:
        self._entries = [
            (life, entry.site, entry.low, entry.gap_free, set(entry.held_beyond))
            for life in sorted(declarations)
            for entry in declarations[life].sites
        ]

    def holders(self, site: int, number: int) -> list[Life]:
        """Lowest rank first."""
        return [
            life
            for life, declared, low, gap_free, extras in self._entries
            if declared == site and (low < number <= gap_free or number in extras)
        ]


def _union(entries: list[SiteDeclaration]) -> Union:
    extras = sorted({number for entry in entries for number in entry.held_beyond})
    prefix = max(entry.gap_free for entry in entries)
    for number in extras:
        if number == prefix + 1:
            prefix = number
    return Union(prefix, tuple(number for number in extras if number > prefix))


def _frontier(entries: list[SiteDeclaration], prefix: int) -> int:
    """How far the site's stamps are known from all the co-movers' frontiers and announcements together."""
    known = [entry.frontier for entry in entries]
    known += [one.last for entry in entries for one in entry.announcements if one.number <= prefix]
    return max(known)


def _signal_position(declarations: Mapping[Life, Declaration]) -> Position:
    """Whatever some co-mover delivered as agreed, or knew to be everywhere, comes before the signal."""
    positions = [declaration.position for declaration in declarations.values()]
    positions += [Position(declaration.aru, INFINITE) for declaration in declarations.values()]
    return max(positions)
