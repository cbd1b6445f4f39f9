"""Who is blamed in a simulated run: what is counted there as wrong with somebody is a violation, and nothing else."""

from __future__ import annotations

from covey.drivers.simulation.blame import blames, judge_blame
from covey.protocol.counters import Count, Counter, Family

WORDS = (
    "impossible",
    "malformed",
    "not for this kind",
    "its place is taken",
    "beyond the window",
    "too many incomplete",
)


def test_every_counter_of_what_cannot_be_blames_somebody() -> None:
    accusing = [counter for counter in Counter if any(word in counter.value for word in WORDS)]
    assert len(accusing) >= 10
    assert all(blames(counter) for counter in accusing)
    assert blames(Family.FRAME_REJECTED.of("malformed frame"))
    assert blames(Family.CLIENT_ENDED.of("unknown frame kind"))


def test_what_happens_to_honest_ones_blames_nobody() -> None:
    innocent = (Counter.TOKEN_LOST, Counter.PACKET_DUPLICATE, Counter.CLIENT_TOO_SLOW, Counter.FRAME_OF_ANOTHER_VIEW)
    assert not any(blames(counter) for counter in innocent)
    assert not blames(Family.SUBMISSION_REFUSED.of("the send queue is full"))


def test_the_verdict_names_who_blamed() -> None:
    honest, unjust = Count(), Count()
    honest.add(Counter.TOKEN_LOST)
    unjust.add(Counter.TOKEN_IMPOSSIBLE, 3)
    verdict = judge_blame([("a:1", honest), ("b:1", unjust)], "run")
    assert [(one.process, "3 times" in one.detail) for one in verdict.violations] == [("b:1", True)]
    assert verdict.premises == 2
