"""What the daemons of a run were made to do with many names, many groups and many programs at once: for the probes.

In:        what daemons stamp and deliver.
Out:       names of reactions.
Not here:  what the membership of daemons did (faults.py), who waited for whom (fairness.py).
"""

from __future__ import annotations

from collections import Counter

from covey.ids import Ballot, Life
from covey.protocol.effects import Deliver, Effect, Installed, InterestSaid, Signal, Stamped
from covey.protocol.values import Bundle, Kind
from covey.protocol.wire.group_names import groups_bytes

from .node import Node
from .world import World

LONG_NAMES = "names longer than a packet"
HUNDREDS_OF_GROUPS = "hundreds of groups"
THOUSAND_GROUPS = "thousand groups"
UNEVEN_SITES = "sites of one and of several"
INTEREST_RENEWED = "interest asked again"
CAME_BACK = "left and came back after the signal"
STORMS = {Kind.JOIN: "storm of joins", Kind.LEAVE: "storm of leaves", Kind.DISCONNECT: "storm of departures"}

_STORM = 10
"""So many of a kind at one daemon within `_STORM_US` are a storm."""
_STORM_US = 100_000


class Reactions:
    def __init__(self, world: World) -> None:
        self._world = world
        self._packet_bytes = world.settings.packet_bytes
        self._recent: dict[tuple[Life, Kind], list[tuple[int, int]]] = {}
        self._joins: dict[Life, int] = {}
        self._left: dict[Life, set[tuple[Life, int, str]]] = {}
        """Who left which group after the signal: of daemons that are between signal and view."""
        self._given_up: set[tuple[Ballot, int, str]] = set()
        self.seen: set[str] = set()
        world.observers.append(self._observe)

    def _observe(self, node: Node, effect: Effect) -> None:
        if isinstance(effect, Stamped):
            self._stamped(node, effect.bundle)
        elif isinstance(effect, InterestSaid):
            self._see_interest(node, effect)
        elif isinstance(effect, Signal):
            self._left[node.life] = set()
        elif isinstance(effect, Installed):
            self._left.pop(node.life, None)
            self._see_sites(effect)
        elif isinstance(effect, Deliver) and node.life in self._left and effect.bundle.kind in (Kind.JOIN, Kind.LEAVE):
            self._see_after_signal(self._left[node.life], effect.bundle)

    def _see_interest(self, node: Node, said: InterestSaid) -> None:
        what = said.view, self._world.cluster.daemons[node.rank].site, said.group
        if not said.is_asked:
            self._given_up.add(what)
        elif what in self._given_up:
            self.seen.add(INTEREST_RENEWED)

    def _see_sites(self, installed: Installed) -> None:
        placed = Counter(self._world.cluster.daemons[life.rank].site for life in installed.members)
        if len(placed) > 1 and min(placed.values()) == 1 < max(placed.values()):
            self.seen.add(UNEVEN_SITES)

    def _see_after_signal(self, left: set[tuple[Life, int, str]], bundle: Bundle) -> None:
        who = bundle.origin, bundle.session, bundle.groups[0]
        if bundle.kind is Kind.LEAVE:
            left.add(who)
        elif who in left:
            self.seen.add(CAME_BACK)

    def _stamped(self, node: Node, bundle: Bundle) -> None:
        if len(bundle.groups) > 1 and LONG_NAMES not in self.seen:
            self._see_names(bundle.groups)
        if bundle.kind is Kind.JOIN:
            joins = self._joins[node.life] = self._joins.get(node.life, 0) + 1
            if joins in (200, 1_000):
                self.seen.add(HUNDREDS_OF_GROUPS if joins == 200 else THOUSAND_GROUPS)
        if bundle.kind in STORMS:
            self._see_storm(node.life, bundle.kind, bundle.session)

    def _see_names(self, groups: tuple[str, ...]) -> None:
        size = groups_bytes(groups)
        if size > self._packet_bytes:
            self.seen.add(LONG_NAMES)

    def _see_storm(self, life: Life, kind: Kind, session: int) -> None:
        """Different sessions, a short while: one that joins many groups is no storm."""
        now = self._world.now
        recent = [
            (at, who) for at, who in self._recent.get((life, kind), []) if now - at < _STORM_US and who != session
        ]
        recent.append((now, session))
        self._recent[life, kind] = recent
        if len(recent) >= _STORM:
            self.seen.add(STORMS[kind])
