"""How many faults were caught, by whom, and which were not: by the numbers under which they were printed."""

from __future__ import annotations

from .judging import Outcome


class Score:
    """What was judged so far.

    >>> score = Score(7)
    >>> for number, outcome in enumerate((Outcome.SWARM, Outcome.LATE, Outcome.NOBODY, Outcome.LATE), 1):
    ...     score.add(number, outcome)
    >>> print(score.summary())
    of 4 faults (seed 7) the swarm caught 1, the tests 0 more; survivors: 1 (3); not judged in time: 2 (2, 4)
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._numbers: dict[Outcome, list[int]] = {outcome: [] for outcome in Outcome}

    def add(self, number: int, outcome: Outcome) -> None:
        self._numbers[outcome].append(number)

    def all_are_caught(self) -> bool:
        return not any(self._numbers[outcome] for outcome in (Outcome.NOBODY, Outcome.LATE, Outcome.STOPPED))

    def summary(self) -> str:
        count = {outcome: len(numbers) for outcome, numbers in self._numbers.items()}
        caught = f"the swarm caught {count[Outcome.SWARM]}, the tests {count[Outcome.TESTS]} more"
        parts = [f"of {sum(count.values())} faults (seed {self._seed}) {caught}"]
        parts += [f"survivors: {self._listed(Outcome.NOBODY)}", f"not judged in time: {self._listed(Outcome.LATE)}"]
        if count[Outcome.STOPPED]:
            parts.append(f"killed by somebody else: {self._listed(Outcome.STOPPED)}")
        return "; ".join(parts)

    def _listed(self, outcome: Outcome) -> str:
        numbers = self._numbers[outcome]
        return f"{len(numbers)} ({', '.join(map(str, numbers))})" if numbers else "0"
