"""Nobody is blamed who did nothing wrong: in a simulated run no datagram is forged, and programs keep to the rules.

In:        what the daemons of a run have counted.
Out:       a Verdict like those of the checkers, under the name `blame`.
Not here:  what daemons do to those who are to blame (unit tests, properties, the fuzzer of lab/).

A trace does not tell that nobody forged; so this is judged in simulated runs only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from covey.guarantees.checkers.verdict import Findings, Verdict
from covey.protocol.counters import Count, Counted, Counter, Family, Reasoned

BLAME: Final = "blame"

_BLAMING: Final = frozenset(
    {
        Counter.FRAME_MISDIRECTED,
        Counter.FRAME_WRONG_WAY,
        Counter.PASSED_IMPOSSIBLE,
        Counter.FOREIGN_TOO_MUCH,
        Counter.HEAD_FOR_A_MEMBER,
        Counter.PROPOSAL_NOT_JOINED,
        Counter.BUNDLE_MALFORMED,
        Counter.BUNDLE_IMPOSSIBLE,
        Counter.BUNDLE_PLACE_TAKEN,
        Counter.PIECE_TOO_MANY,
        Counter.ANNOUNCEMENT_IMPOSSIBLE,
        Counter.PACKET_BEYOND_WINDOW,
        Counter.TOKEN_IMPOSSIBLE,
        Counter.ALIVE_COUNTER_FAR_AHEAD,
        Counter.PROPOSAL_COUNTER_FAR_AHEAD,
        Counter.DECLARATION_CONTRADICTS,
        Counter.DECLARATION_IMPOSSIBLE,
        Counter.DECLARATION_IMPOSSIBLE_GROUPS,
        Counter.CLIENT_IMPOSSIBLE_MESSAGE,
        Counter.DATAGRAM_TOO_LARGE,
    }
)
_BLAMING_FAMILIES: Final = frozenset({Family.FRAME_REJECTED, Family.CLIENT_ENDED})


def judge_blame(counts: Iterable[tuple[str, Count]], run: str) -> Verdict:
    """What each daemon of a run has counted, by process."""
    findings = Findings(BLAME, run)
    for process, count in counts:
        findings.premise()
        for counter, amount in count.items():
            if blames(counter):
                findings.violation(process, f"counts {counter.value!r}, {amount} times, though nobody forged anything")
    return findings.verdict()


def blames(counter: Counted) -> bool:
    return counter.family in _BLAMING_FAMILIES if isinstance(counter, Reasoned) else counter in _BLAMING
