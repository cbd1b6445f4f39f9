"""Planted bugs of pruning, switched on by name in tests only. Each must be caught by the guarantee it names."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from covey.protocol.evs.exchange import Exchange
from covey.protocol.evs.flow import Flow
from covey.protocol.evs.frames import Want
from covey.protocol.evs.interest import Interest
from covey.protocol.evs.links.relay import Relay
from covey.protocol.evs.operation import Operation
from covey.protocol.evs.ordering.order import ViewOrder
from covey.protocol.evs.stamping import token
from covey.protocol.values import Bundle, GroupNews
from covey.protocol.wire.bundles import meta_of

from .mutants import Mutant


def _heads_only(right: Any) -> Any:
    def wanted(self: Exchange, frame: Want) -> list[Bundle]:
        return [meta_of(one) if one.content and not one.is_meta else one for one in right(self, frame)]

    return wanted


def _own_site_will_do(right: Any) -> Any:
    def may_join(self: Flow, group: str, withdrawn_seq: int) -> bool:
        assert self.interest is not None
        return self.interest.may_join(group, withdrawn_seq, self.order.logs[self.kit.site].received)

    return may_join


def _nobody_at_first(right: Any) -> Any:
    def begin(self: Interest, at_start: dict[str, int]) -> None:
        right(self, {group: sites & self._ours for group, sites in at_start.items()})

    return begin


def _who_speaks_will_do(right: Any) -> Any:
    """Who speaks for a site tells what it has received itself, and not what everybody there has."""

    def received_here(self: token.TokenStamper) -> dict[int, int]:
        return self._flow.received() if self._relay.speaks else right(self)

    return received_here


def _has_heard_all(right: Any) -> Any:
    return lambda self, group, withdrawn_seq, received: right(self, group, 0, received)


def _whoever_joined(right: Any) -> Any:
    """Who is told to have left is gone, whatever was stamped since."""

    def emptied(self: Interest, group: str, stamp: int, now_us: int) -> None:
        if self._speaks:
            self._empty[group] = now_us + self._linger_us

    return emptied


def _as_it_was(right: Any) -> Any:
    before: WeakKeyDictionary[object, dict[str, set[int]]] = WeakKeyDictionary()

    def on_group_news(self: Operation, news: GroupNews, now_us: int) -> None:
        interest, key = self.interest, self.kit.deadlines
        if interest is not None and news.view == self.view and news.at_start is not None and key in before:
            kept = {group: sum(interest._bits.get(site, 0) for site in sites) for group, sites in before[key].items()}
            news = news._replace(at_start={group: sites for group, sites in kept.items() if sites})
        right(self, news, now_us)
        if interest is not None and interest._wanted is not None:
            before[key] = {
                group: {site for site, bit in interest._bits.items() if sites & bit}
                for group, sites in interest._wanted.items()
            }

    return on_group_news


INTEREST_MUTANTS: dict[str, Mutant] = {
    "heads are resent": Mutant(
        "S15", "who misses a bundle when a view ends gets its head", Exchange, "_wanted", _heads_only
    ),
    "joined at once": Mutant(
        "M4",
        "a join does not wait until others know",
        Interest,
        "may_join",
        lambda right: lambda self, group, withdrawn_seq, received: True,
    ),
    "our own site knows": Mutant(
        "M4", "a join waits only until its own site has heard", Flow, "_may_join", _own_site_will_do
    ),
    "nobody was anywhere": Mutant(
        "S8", "who was in a group when the view began gets nothing", Interest, "begin", _nobody_at_first
    ),
    "nobody is told to be in it": Mutant(
        "M4", "interest is given up though somebody has joined", Interest, "emptied", _whoever_joined
    ),
    "interest outlives its view": Mutant(
        "M4", "a view begins with the interest of the last one", Operation, "on_group_news", _as_it_was
    ),
    "content ends at the first branch": Mutant(
        "S13", "a site that needs the content is passed over", Relay, "children_for", lambda right: lambda *_: ()
    ),
}

INTEREST_STORY_MUTANTS: dict[str, tuple[Mutant, str]] = {
    "who speaks has heard": (
        Mutant(
            "M4",
            "a join waits only until who speaks for each site has heard",
            token.TokenStamper,
            "_received_here",
            _who_speaks_will_do,
        ),
        "join_race",
    ),
    "a head counts at once": (
        Mutant(
            "M4",
            "what follows a head does not wait for its content",
            ViewOrder,
            "_counts",
            lambda right: lambda *_: True,
        ),
        "meta_waits_for_its_content",
    ),
    "interest is still there": (
        Mutant("M5", "a join does not wait for what its site has given up", Interest, "may_join", _has_heard_all),
        "interest_withdrawn_while_joining",
    ),
}

INTEREST_COMPANIONS: dict[str, Mutant] = {
    "a head counts at once": Mutant(
        "M4", "a head is good for everybody", Operation, "_is_wrongly_pruned", lambda right: lambda *_: False
    ),
}
