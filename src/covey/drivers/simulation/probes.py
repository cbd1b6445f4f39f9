"""What the swarm must have exercised: the protocol's reactions, not the faults injected.

Each probe has a floor: the share of default seeds in which it must be seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from covey.protocol.values import Kind

from .fairness import WAITED
from .faults import ONE_WAY
from .reactions import HUNDREDS_OF_GROUPS, LONG_NAMES, STORMS, THOUSAND_GROUPS
from .run import Result


class Probe(NamedTuple):
    name: str
    """A reaction of the run, or a counter of the daemons."""
    floor: float
    meaning: str
    clients: bool = False
    """Only seen in runs with clients."""


PROBES = (
    Probe("partition", 1.00, "a view without somebody who is alive and cut off"),
    Probe("merge", 1.00, "a view that brings components together"),
    Probe("attempt superseded", 0.30, "an attempt abandoned for a newer one"),
    Probe("recovered from single holder", 0.10, "a message of a lost sender, resent by its only holder"),
    Probe("safe after signal", 0.10, "a safe message delivered after the transitional signal"),
    Probe("token lost", 0.50, "a view given up because its token did not come back"),
    Probe(ONE_WAY, 0.20, "a view without somebody with whom only one way is cut"),
    Probe("restart seen", 0.30, "a new incarnation of a known daemon"),
    Probe("older attempt dropped", 0.30, "a control packet of an older attempt counted and dropped"),
    Probe("window closed", 0.10, "something waits because not everyone has what is under way"),
    Probe("submission refused: the send queue is full", 0.10, "a daemon refuses what would exceed its bound"),
    Probe("receiver made senders wait", 0.10, "a slow receiver with the policy block", True),
    Probe("group merged after it shrank", 0.10, "a network view with strangers and without former members", True),
    Probe("joined in a part", 0.10, "a join ordered while somebody is cut off", True),
    Probe("disconnect during a change", 0.10, "a client leaves while daemons exchange what they hold", True),
    Probe("client ended: silent", 0.10, "a program that does not answer is given up", True),
    Probe("client ended: too slow", 0.15, "a session ended because it is behind in bytes or in time", True),
    Probe("client work left for the next step", 0.30, "more to do for clients than one step does", True),
    Probe("sending waits: clients are behind", 0.10, "a daemon asks the others to send less", True),
    Probe("group parts asked", 0.05, "memberships of strangers that do not fit one datagram", True),
    Probe("name came back", 0.10, "a session under the name of an earlier one", True),
    Probe("several groups across a merge", 0.10, "a message to several groups after the signal of a merge", True),
    Probe("message begun again", 0.10, "a large message cut by the end of a view, stamped again in the next", True),
    Probe(LONG_NAMES, 0.07, "a bundle whose names alone are larger than a packet"),
    Probe("datagram near the limit", 0.03, "a datagram of more than 60,000 bytes, and not too large"),
    Probe(WAITED, 0.07, "a large message that small ones of others have passed", True),
    Probe(STORMS[Kind.JOIN], 0.10, "ten sessions of a daemon join at once", True),
    Probe(STORMS[Kind.LEAVE], 0.05, "ten sessions of a daemon leave a group at once", True),
    Probe(STORMS[Kind.DISCONNECT], 0.10, "ten sessions of a daemon are gone at once", True),
    Probe(HUNDREDS_OF_GROUPS, 0.06, "a daemon whose sessions have joined two hundred groups", True),
    Probe(THOUSAND_GROUPS, 0.02, "a daemon whose sessions have joined a thousand groups", True),
)


def seen(result: Result) -> frozenset[str]:
    """The probes that a run has hit."""
    return frozenset(probe.name for probe in PROBES if probe.name in result.reactions or result.count.get(probe.name))


class Tally:
    """How many seeds hit each probe."""

    def __init__(self, clients: bool = False) -> None:
        self.seeds = 0
        self.probes = tuple(probe for probe in PROBES if clients or not probe.clients)
        self.hits = dict.fromkeys((probe.name for probe in PROBES), 0)

    def add(self, hit: Iterable[str]) -> None:
        self.seeds += 1
        for name in hit:
            self.hits[name] += 1

    def share(self, probe: Probe) -> float:
        return self.hits[probe.name] / self.seeds if self.seeds else 0.0

    def below_floor(self) -> list[Probe]:
        return [probe for probe in self.probes if self.share(probe) < probe.floor]
