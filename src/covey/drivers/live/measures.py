"""What a daemon process counts of its own work, and how fast it grows.

In:        effects as they are performed; what passed through the sockets; how long turns took.
Out:       fields for the status.
Not here:  what the core knows and counts (its snapshot).
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

from covey.cluster import Cluster
from covey.drivers.live.told import TurnsStatus, ViewStatus
from covey.protocol.effects import Deliver, Effect, Installed
from covey.protocol.values import Kind

from .endpoint import Traffic

SECOND_US = 1_000_000
RECENT_VIEWS_MAX = 8
RECENT_US = 10 * SECOND_US


class Rate:
    """How fast a count grows: between the last two questions that were at least a second apart."""

    def __init__(self, now_us: int, count: int = 0) -> None:
        self._then_us, self._before, self._last = now_us, count, 0.0

    def per_second(self, count: int, now_us: int) -> float:
        passed = now_us - self._then_us
        if passed >= SECOND_US:
            self._last = round((count - self._before) * SECOND_US / passed, 1)
            self._then_us, self._before = now_us, count
        return self._last


class Turns:
    """How long the turns of the loop take, from waking to waiting again: for so long nobody else is served."""

    def __init__(self) -> None:
        self._longest_us = 0
        self._now_us = self._before_us = 0
        """Of the RECENT_US that are passing, and of those before."""
        self._until_us = 0

    def add(self, began_us: int, ended_us: int) -> None:
        if ended_us >= self._until_us:
            self._begin_anew(ended_us)
        took_us = ended_us - began_us
        if took_us > self._now_us:
            self._now_us = took_us
            self._longest_us = max(self._longest_us, took_us)

    def snapshot(self, now_us: int) -> TurnsStatus:
        """The longest turn since the start, and the longest of the last ten to twenty seconds."""
        if now_us >= self._until_us:
            self._begin_anew(now_us)
        recent_us = max(self._now_us, self._before_us)
        return {"longest_step_ms": self._longest_us / 1_000, "longest_step_recent_ms": recent_us / 1_000}

    def _begin_anew(self, now_us: int) -> None:
        self._before_us = self._now_us if now_us < self._until_us + RECENT_US else 0
        self._now_us, self._until_us = 0, now_us + RECENT_US


class Measures:
    def __init__(self, now_us: int) -> None:
        self.changes = 0
        """Everything that happened except datagrams."""
        self.delivered = 0
        """Bundles, those of joins and other changes included."""
        self.messages = 0
        """Messages of programs among what was delivered."""
        self.views = 0
        self._recent: deque[tuple[int, Installed]] = deque(maxlen=RECENT_VIEWS_MAX)
        self._rates: dict[str, Rate] = {}
        self._rotations: tuple[str, Rate] = ("", Rate(now_us))
        """Tokens are counted from 0 in each view: the rate belongs to one."""
        self._start_us = now_us

    def observe(self, effect: Effect, time_ns: int = 0) -> None:
        self.changes += 1
        if isinstance(effect, Deliver):
            self.delivered += 1
            if effect.bundle.kind is Kind.MESSAGES:
                self.messages += effect.bundle.count
        elif isinstance(effect, Installed):
            self.views += 1
            self._recent.append((time_ns, effect))

    def snapshot(self, traffic: Traffic, now_us: int) -> dict[str, Any]:
        """Each count, and under `…_per_s` how fast it grows."""
        found: dict[str, Any] = {"views": self.views}
        counts = [("delivered", self.delivered), ("messages", self.messages)]
        for name, count in [*counts, *msgspec.structs.asdict(traffic).items()]:
            rate = self._rates.setdefault(name, Rate(self._start_us))
            found |= {name: count, f"{name}_per_s": rate.per_second(count, now_us)}
        return found

    def recent_views(self, cluster: Cluster) -> list[ViewStatus]:
        """The last few views, the latest first: who is in them, who came along, and why they came about."""
        return [
            {
                "time_ns": time_ns,
                "view": str(one.view),
                "members": [cluster.daemons[life.rank].name for life in one.members],
                "transitional": [cluster.daemons[life.rank].name for life in one.transitional],
                "cause": one.cause,
                "reason": one.reason.value,
                "detail": one.detail,
            }
            for time_ns, one in reversed(self._recent)
        ]

    def rotations_per_s(self, view: str, tokens: int, members: int, now_us: int) -> float:
        """How often the token goes around; `tokens` says how often it was passed in this view."""
        if self._rotations[0] != view:
            self._rotations = (view, Rate(now_us, tokens))
        return round(self._rotations[1].per_second(tokens, now_us) / members, 1)
