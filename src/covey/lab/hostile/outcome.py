"""What a hostile measurement found: of one scenario, and of several together.

In:        outcomes.  Out: their common worst, as values for people and for JSON.
Not here:  how it was found (stage.py), how it is shown (cli/).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

NETWORK: Final = frozenset({"flap"})
"""Scenarios in which the network is the trouble: views must change there, and messages wait for them."""

Detail = float | int | bool | str | list[float] | None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one scenario did to the daemons and to the bystander."""

    longest_step_ms: float | None = None
    """Of any daemon, as its status tells; None: it does not."""
    bystander_longest_wait_ms: float | None = None
    """From its call of `send` to the receipt, at either receiver."""
    bystander_messages: int = 0
    views_lost: int = 0
    """Views installed after the first common one, at the daemon that installed most."""
    peak_memory_mb: float | None = None
    """The most that the daemon in trouble ever held, as the system counts it."""
    later_memory_mb: float | None = None
    """What it holds some seconds after the trouble has ended."""
    details: dict[str, Detail] = {}
    problems: list[str] = []
    """What was not as it must be: a daemon that died, a message lost or out of order, a program that failed."""

    def told(self) -> dict[str, Any]:
        """As one flat table."""
        fields = msgspec.structs.asdict(self)
        return {name: value for name, value in fields.items() if name != "details"} | self.details


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst of each.

    >>> one, other = Outcome(views_lost=1, peak_memory_mb=3.0), Outcome(views_lost=2, details={"sent": 7})
    >>> both = worst([one, other])
    >>> both.views_lost, both.peak_memory_mb, both.later_memory_mb, both.details
    (3, 3.0, None, {'sent': 7})
    """
    all_of = list(outcomes)
    return Outcome(
        longest_step_ms=_most(one.longest_step_ms for one in all_of),
        bystander_longest_wait_ms=_most(one.bystander_longest_wait_ms for one in all_of),
        bystander_messages=sum(one.bystander_messages for one in all_of),
        views_lost=sum(one.views_lost for one in all_of),
        peak_memory_mb=_most(one.peak_memory_mb for one in all_of),
        later_memory_mb=_most(one.later_memory_mb for one in all_of),
        details={name: value for one in all_of for name, value in one.details.items()},
        problems=[problem for one in all_of for problem in one.problems],
    )


def summary(scenarios: Mapping[str, Outcome]) -> dict[str, Any]:
    """The worst of all, but for the network's own trouble where there is other; then each scenario."""
    quiet = [one for name, one in scenarios.items() if name not in NETWORK]
    over_all = worst(quiet or scenarios.values())
    return {
        "longest_step_ms": over_all.longest_step_ms,
        "bystander_longest_wait_ms": over_all.bystander_longest_wait_ms,
        "views_lost": over_all.views_lost,
        "peak_memory_mb": over_all.peak_memory_mb,
        "later_memory_mb": over_all.later_memory_mb,
        "problems": [f"{name}: {problem}" for name, one in scenarios.items() for problem in one.problems],
        "scenarios": {name: one.told() for name, one in scenarios.items()},
    }


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
