"""In which sites the members of groups are, for an engine that sends messages only there.

In:        the roster; that a view has begun; that members of our own site have come and gone.
Out:       news for the engine: the sites of each group when a view began, and groups that our site has left.
Not here:  what follows from it (the engine), who is in which group (roster.py).

Only where a cluster has several sites: elsewhere nothing is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Final

from covey.ids import Ballot
from covey.protocol.effects import Installed
from covey.protocol.kit import Kit, site_bits
from covey.protocol.values import GroupNews

from .roster import Roster

PORTION: Final = 1_000
"""Members that are looked at between two breaths."""


class Where:
    def __init__(self, kit: Kit, roster: Roster) -> None:
        self._kit = kit
        self._roster = roster
        site = kit.cluster.daemons[kit.me.rank].site
        self._is_needed = kit.cluster.site_count > 1 and kit.settings.prune
        if self._is_needed:
            roster.near = frozenset(rank for rank, one in enumerate(kit.cluster.daemons) if one.site == site)
        self._view: Ballot | None = None
        self._news: list[GroupNews] = []
        self._emptied: dict[str, int] = {}

    @property
    def has_news(self) -> bool:
        return bool(self._news or self._emptied)

    def take_news(self) -> list[GroupNews]:
        news, self._news = self._news, []
        if self._emptied and self._view is not None:
            news.append(GroupNews(self._view, None, self._emptied))
        self._emptied = {}
        return news

    def left(self, stamp: int) -> None:
        """Somebody has left groups, or is gone, at this place."""
        if self._roster.emptied:
            self._emptied |= dict.fromkeys(self._roster.emptied, stamp)
            self._roster.emptied.clear()

    def begin(self, installed: Installed) -> Iterator[None]:
        """A view has been told: look where the members of all groups are, a portion at a time."""
        self._view = installed.view
        self._emptied = {}
        self._roster.emptied.clear()
        bits = site_bits(self._kit.cluster, installed.members) if self._is_needed else {}
        if len(set(bits.values())) < 2:
            return
        table: dict[str, int] = {}
        looked_at = 0
        for group in self._roster.groups():
            members = self._roster.members(group)
            table[group] = reduce(or_, [bits.get(life, 0) for life, _ in members], 0)
            looked_at += len(members)
            if looked_at >= PORTION:
                looked_at = 0
                yield None
        self._news.append(GroupNews(installed.view, table, {}))
