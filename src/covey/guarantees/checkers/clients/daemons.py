"""What the daemons' own rows tell about their clients: which views a daemon went through, with whom, what passed when.

In:        the History of level S.
Out:       Daemons: the stays of a daemon by view, views that two daemons went through together, and the moment at
           which a daemon passed a bundle.
Not here:  clients, judgement.

A trace may lack rows of level S. Then the answers are empty, and whatever needs them stays undecided.
"""

from __future__ import annotations

from functools import cache

from covey.guarantees.checkers.history import History
from covey.guarantees.checkers.lives import DaemonStay

from .lives import TracedPlace, place_of


class Daemons:
    """The daemons of one run."""

    def __init__(self, history: History) -> None:
        self._lives = history.lives
        self._stays = history.first_stays
        self.views_together = history.views_together
        self.passed = cache(self._passed)
        self.passed_after_signal = cache(self._passed_after_signal)

    def views(self, daemon: str) -> list[str]:
        """The views it installed, in their order."""
        life = self._lives.get(daemon)
        return [stay.view for stay in life.stays] if life is not None else []

    def stay(self, daemon: str, view: str) -> DaemonStay | None:
        return self._stays.get((daemon, view))

    def ranks(self) -> dict[str, tuple[int, ...]]:
        return {view: stay.rank for (_, view), stay in self._stays.items()}

    def came_from(self, daemon: str, view: str) -> str | None:
        """The view before this one; None also where nothing is known of this daemon."""
        stay = self.stay(daemon, view)
        return stay.previous.view if stay is not None and stay.previous is not None else None

    def has_ended(self, daemon: str) -> bool:
        life = self._lives.get(daemon)
        return life is not None and life.is_witness

    def _passed(self, daemon: str) -> dict[TracedPlace, int]:
        """When this daemon delivered each bundle, early or not: a number that grows along its history."""
        return {place: number for number, (place, _) in enumerate(self._deliveries(daemon))}

    def _passed_after_signal(self, daemon: str) -> frozenset[TracedPlace]:
        """The bundles that this daemon delivered between a signal and the view that followed."""
        return frozenset(place for place, after_signal in self._deliveries(daemon) if after_signal)

    def _deliveries(self, daemon: str) -> list[tuple[TracedPlace, bool]]:
        life = self._lives.get(daemon)
        deliveries = life.deliveries if life is not None else []
        places = ((place_of(delivery.row), delivery.after_signal) for delivery in deliveries)
        return [(place, after_signal) for place, after_signal in places if place is not None]
