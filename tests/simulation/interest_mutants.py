"""Planted bugs of pruning, switched on by name in tests only. Each must be caught by the guarantee it names."""

from __future__ import annotations

from typing import Any

from covey.protocol.evs.exchange import Exchange
from covey.protocol.evs.flow import Flow
from covey.protocol.evs.frames import Want
from covey.protocol.evs.interest import Interest
from covey.protocol.evs.links.relay import Relay
from covey.protocol.values import Bundle
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


INTEREST_MUTANTS: dict[str, Mutant] = {
    "heads are resent": Mutant(
        "S13", "who misses a bundle when a view ends gets its head", Exchange, "_wanted", _heads_only
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
    "content ends at the first branch": Mutant(
        "S13", "a site that needs the content is passed over", Relay, "children_for", lambda right: lambda *_: ()
    ),
}
