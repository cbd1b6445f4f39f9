"""What a checker says about one guarantee: how often it had something to say, and what was wrong.

In:        premises and violations, as a checker finds them.
Out:       Verdict, a value that can be added to verdicts of other runs and written as JSON.
Not here:  any knowledge of histories (history.py) or guarantees (membership.py, delivery.py, services.py).

A verdict without premises proves nothing: the guarantee was never put to the test.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

# A broken run can violate a promise at every row. The first few tell the story; the rest is counted.
VIOLATIONS_KEPT: Final = 20


class Violation(msgspec.Struct, frozen=True):
    """One broken promise, with the evidence in one sentence."""

    guarantee: str
    process: str
    detail: str
    run: str = ""


class Verdict(msgspec.Struct, frozen=True):
    """The judgement on one guarantee, over one run or several."""

    guarantee: str
    premises: int
    violations: list[Violation]
    # All violations found; `violations` keeps only the first VIOLATIONS_KEPT of each run and level.
    violation_count: int
    excused: int = 0
    """How often an excuse of the promise was used: it would have been violated without."""

    @property
    def holds(self) -> bool:
        return self.violation_count == 0


class Findings:
    """Collects what one checker finds in one run."""

    __slots__ = ("_excused", "_guarantee", "_premises", "_run", "_violation_count", "_violations")

    def __init__(self, guarantee: str, run: str) -> None:
        self._guarantee = guarantee
        self._run = run
        self._premises = 0
        self._violations: list[Violation] = []
        self._violation_count = 0
        self._excused = 0

    def premise(self, count: int = 1) -> None:
        self._premises += count

    def violation(self, process: str, detail: str) -> None:
        self._violation_count += 1
        if len(self._violations) < VIOLATIONS_KEPT:
            self._violations.append(Violation(self._guarantee, process, detail, self._run))

    def excuse(self) -> None:
        self._excused += 1

    def verdict(self) -> Verdict:
        return Verdict(self._guarantee, self._premises, self._violations, self._violation_count, self._excused)


def summed(guarantee: str, verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict for several runs.

    >>> summed("S1", [Verdict("S1", 2, [], 0), Verdict("S1", 3, [], 0)]).premises
    5
    """
    premises = violation_count = excused = 0
    violations: list[Violation] = []
    for verdict in verdicts:
        premises += verdict.premises
        violation_count += verdict.violation_count
        excused += verdict.excused
        violations.extend(verdict.violations)
    return Verdict(guarantee, premises, violations, violation_count, excused)
