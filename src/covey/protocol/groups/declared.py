"""What the sessions of this daemon have joined, as far as it is fixed: what a view change declares of them.

In:        our own joins, leaves and disconnects, when they are stamped.
Out:       `declared`, for the moment at which the view is frozen.
Not here:  who is in which group by what was delivered (roster.py), how this travels (exchange.py).

Once a change of ours is stamped, we shall deliver it in this view, whatever comes.
"""

from __future__ import annotations

from covey.protocol.effects import Stamped
from covey.protocol.values import Kind, Place, SessionGroups

from .layer import process_of


class Declared:
    def __init__(self) -> None:
        self._sessions: dict[int, tuple[str, dict[str, Place]]] = {}
        """The process of each session, and where in the order it joined which groups."""

    def on_stamped(self, effect: Stamped) -> None:
        bundle = effect.bundle
        if bundle.kind is Kind.JOIN:
            _, groups = self._sessions.setdefault(bundle.session, (process_of(bundle, effect.payloads[0]), {}))
            groups.setdefault(bundle.groups[0], Place(effect.view, bundle.stamp, bundle.site))
        elif bundle.kind is Kind.LEAVE and bundle.session in self._sessions:
            self._sessions[bundle.session][1].pop(bundle.groups[0], None)
        elif bundle.kind is Kind.DISCONNECT:
            self._sessions.pop(bundle.session, None)

    def declared(self) -> tuple[SessionGroups, ...]:
        return tuple(
            SessionGroups(number, process, tuple(groups.items()))
            for number, (process, groups) in sorted(self._sessions.items())
            if groups
        )
