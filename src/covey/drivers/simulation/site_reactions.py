"""What was on its way between sites when something happened to it: for the probes.

In:        what daemons stamp and install, the ends of lives, what the network has lost.
Out:       names of reactions.
Not here:  what can be seen at one daemon (reactions.py, and the counters).
"""

from __future__ import annotations

from typing import cast

from covey.ids import Ballot
from covey.protocol.effects import Effect, Installed, InterestSaid, Stamped
from covey.protocol.values import Bundle, Kind

from .node import Node
from .world import World

ANNOUNCEMENT_LOST = "announcement lost on a ring"
JOIN_RACE = "message stamped before its sender knew of a join"
CRASHED_SENDING = "representative crashed with messages of its site"
CRASHED_BRINGING = "representative crashed with messages for its ring"

_Asked = tuple[Ballot, int, str]
"""A view, a site of it as a bit, and the group whose messages it has asked for."""


class SiteReactions:
    def __init__(self, world: World) -> None:
        self._world = world
        self._sites: dict[Ballot, tuple[int, ...]] = {}
        self._asked: dict[_Asked, bool] = {}
        """What was asked for and not joined yet; whether a message has left the site out since."""
        self._seen: set[str] = set()
        if world.cluster.site_count > 1:
            world.observers.append(self._observe)
            world.mourners.append(self._on_end)

    @property
    def seen(self) -> set[str]:
        lost = "announce" in self._world.network.lost_within
        return self._seen | {ANNOUNCEMENT_LOST} if lost else self._seen

    def _observe(self, node: Node, effect: Effect) -> None:
        if isinstance(effect, Installed):
            daemons = self._world.cluster.daemons
            self._sites[effect.view] = tuple(sorted({daemons[life.rank].site for life in effect.members}))
        elif isinstance(effect, InterestSaid):
            asked = effect.view, self._bit(node, effect.view), effect.group
            if effect.is_asked:
                self._asked[asked] = False
            else:
                self._asked.pop(asked, None)
        elif isinstance(effect, Stamped) and self._asked:
            self._stamped(node, effect.view, effect.bundle)

    def _bit(self, node: Node, view: Ballot) -> int:
        return 1 << self._sites[view].index(self._world.cluster.daemons[node.rank].site)

    def _stamped(self, node: Node, view: Ballot, bundle: Bundle) -> None:
        if bundle.kind is Kind.MESSAGES and bundle.content:
            for asked in self._asked:
                if asked[0] == view and asked[2] in bundle.groups and not bundle.content & asked[1]:
                    self._asked[asked] = True
        elif bundle.kind is Kind.JOIN and self._asked.pop((view, self._bit(node, view), bundle.groups[0]), False):
            self._seen.add(JOIN_RACE)

    def _on_end(self, node: Node, orderly: bool) -> None:
        if not orderly and sends(node):
            self._seen.add(CRASHED_SENDING)
        if not orderly and brings(node):
            self._seen.add(CRASHED_BRINGING)


def sends(node: Node) -> bool:
    """Whether it speaks for its site, and some other site is not known to have all that its site has sent."""
    return _of_who_speaks(node, "to_be_received") > 0


def brings(node: Node) -> bool:
    """Whether it speaks for its site, and somebody on its ring is not known to have all that came from elsewhere."""
    return _of_who_speaks(node, "to_be_brought") > 0


def _of_who_speaks(node: Node, figure: str) -> int:
    report, name = node.core.engine.report(0), node.core.kit.name(node.rank)
    is_speaking = report.working and report.link.get("speaks_for_its_site") == name
    return int(cast("dict[str, int]", report.link).get(figure, 0)) if is_speaking else 0
