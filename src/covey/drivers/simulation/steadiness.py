"""One view lasts: where datagrams are lost, repeated and late, and clocks are off, nobody gives a view up.

In:        what daemons do, from when all are in one view until faults begin.
Out:       a Verdict like those of the checkers, under the name `steadiness`.
Not here:  which runs are steady (options.py).

A trace does not tell that nothing worse was wrong; so this is judged in simulated runs only.
"""

from __future__ import annotations

from covey.guarantees.checkers.verdict import Findings, Verdict
from covey.protocol.effects import Effect, Entered, Installed
from covey.protocol.evs.states import State

from .node import Node
from .world import World

STEADINESS = "steadiness"

HELD = "a view held under loss"
_LONG_US = 1_000_000
_THOUGH = "though only datagrams were lost, repeated or late, and clocks off"


class Steadiness:
    def __init__(self, world: World, run: str) -> None:
        self._world = world
        self._findings = Findings(STEADINESS, run)
        self._since: int | None = None
        """When all were first in one view."""
        self._is_over = False
        self.reactions: set[str] = set()
        world.watchers.append(self._watch)

    def over(self) -> None:
        """From now on views may end."""
        if not self._is_over and self._since is not None and self._world.now - self._since > _LONG_US:
            self.reactions.add(HELD)
        self._is_over = True

    def verdict(self) -> Verdict:
        return self._findings.verdict()

    def _watch(self, node: Node, effect: Effect) -> None:
        if self._is_over:
            return
        if self._since is None:
            if isinstance(effect, Installed) and self._all_are_together():
                self._since = self._world.now
                self._findings.premise()
        elif isinstance(effect, Entered) and effect.state is not State.OP:
            self._is_over = True
            why = f"entered {effect.state.value} ({effect.reason.value}) {_THOUGH}"
            self._findings.violation(node.recorder.process, why)

    def _all_are_together(self) -> bool:
        living = self._world.living()
        reports = [node.core.engine.report(0) for node in living]
        return all(one.working and len(one.members) == len(self._world.cluster.daemons) for one in reports)
