"""What the swarm must have exercised: the protocol's reactions, not the faults injected.

Each probe has a floor: the share of default seeds in which it must be seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from covey.protocol.admission import QUEUE_FULL
from covey.protocol.counters import Counted, Counter, Family
from covey.protocol.values import Kind

from .fairness import WAITED
from .faults import LACKED, NOT_TRANSITIVE, ONE_WAY, THREE_APART
from .progress import ASKED_AGAIN
from .reactions import (
    CAME_BACK,
    HUNDREDS_OF_GROUPS,
    INTEREST_RENEWED,
    LONG_NAMES,
    STORMS,
    THOUSAND_GROUPS,
    UNEVEN_SITES,
)
from .run import Result
from .site_reactions import ANNOUNCEMENT_LOST, CRASHED_BRINGING, CRASHED_SENDING, JOIN_RACE
from .steadiness import HELD


class Probe(NamedTuple):
    what: str | Counted
    """A reaction of the run, or a counter of the daemons."""
    floor: float
    meaning: str
    clients: bool = False
    """Only seen in runs with clients."""

    @property
    def name(self) -> str:
        return self.what if isinstance(self.what, str) else self.what.value

    def is_seen(self, result: Result) -> bool:
        if isinstance(self.what, str):
            return self.what in result.reactions
        return self.what in result.count


PROBES = (
    Probe("partition", 1.00, "a view without somebody who is alive and cut off"),
    Probe("merge", 1.00, "a view that brings components together"),
    Probe(Counter.ATTEMPT_SUPERSEDED, 0.30, "an attempt abandoned for a newer one"),
    Probe(Counter.RECOVERED_FROM_SINGLE_HOLDER, 0.10, "a message of a lost sender, resent by its only holder"),
    Probe(Counter.SAFE_AFTER_SIGNAL, 0.10, "a safe message delivered after the transitional signal"),
    Probe(Counter.TOKEN_LOST, 0.40, "a view given up because its token did not come back"),
    Probe(ONE_WAY, 0.20, "a view without somebody with whom only one way is cut"),
    Probe(LACKED, 0.03, "a view without somebody who was cut off while data was kept from it"),
    Probe(NOT_TRANSITIVE, 0.05, "at rest, two who hear each other are in different views"),
    Probe(THREE_APART, 0.01, "three views and more at rest, each of whose members hears somebody both ways"),
    Probe(HELD, 0.08, "one view of all for more than a second, though datagrams are lost"),
    Probe(Counter.RESTART_SEEN, 0.30, "a new incarnation of a known daemon"),
    Probe(Counter.ATTEMPT_OLDER, 0.30, "a control packet of an older attempt counted and dropped"),
    Probe(Counter.WINDOW_CLOSED, 0.10, "something waits because not everyone has what is under way"),
    Probe(Family.SUBMISSION_REFUSED.of(QUEUE_FULL), 0.10, "a daemon refuses what would exceed its bound"),
    Probe(Counter.RECEIVER_BLOCKS, 0.10, "a slow receiver with the policy block", True),
    Probe(ASKED_AGAIN, 0.02, "it makes senders wait in the next view too", True),
    Probe(Counter.GROUP_MERGED_AFTER_SHRINKING, 0.10, "a network view with strangers and without former members", True),
    Probe(Counter.JOINED_IN_PART, 0.10, "a join ordered while somebody is cut off", True),
    Probe(Counter.DISCONNECT_DURING_CHANGE, 0.10, "a client leaves while daemons exchange what they hold", True),
    Probe(Counter.CLIENT_SILENT, 0.10, "a program that does not answer is given up", True),
    Probe(Counter.CLIENT_TOO_SLOW, 0.15, "a session ended because it is behind in bytes or in time", True),
    Probe(Counter.CLIENT_WORK_LEFT, 0.30, "more to do for clients than one step does", True),
    Probe(Counter.SENDING_WAITS, 0.10, "a daemon asks the others to send less", True),
    Probe(Counter.GROUP_PARTS_ASKED, 0.05, "memberships of strangers that do not fit one datagram", True),
    Probe(Counter.SENDS_JOINED, 0.30, "messages sent one by one that travel as one bundle", True),
    Probe(Counter.CHUNK_RELAYED, 0.10, "a bundle relayed by a third site"),
    Probe(Counter.FOREIGN_RESENT, 0.05, "a packet of another site lost on a ring, and resent"),
    Probe(Counter.HEAD_WAITED, 0.25, "a head that waited until its content had arrived elsewhere", True),
    Probe(Counter.JOIN_WAITED, 0.25, "a join that waited until other sites knew of it", True),
    Probe(Counter.INTEREST_WITHDRAWN, 0.20, "a site that gave up the messages of a group", True),
    Probe(INTEREST_RENEWED, 0.08, "a group asked for again after it was given up", True),
    Probe(Counter.CONTENT_RECOVERED, 0.06, "content recovered where only a head was", True),
    Probe(Counter.BEGUN_AGAIN_FOR_INTEREST, 0.01, "a large message begun again for new interest", True),
    Probe(
        ANNOUNCEMENT_LOST, 0.08, "a ring-mate missed an announcement of another site, and was brought up all the same"
    ),
    Probe(
        JOIN_RACE, 0.04, "a message that left a site out which had asked for its group, ordered before the join", True
    ),
    Probe(CRASHED_SENDING, 0.02, "a site lost its voice before all others were known to have what it had sent"),
    Probe(CRASHED_BRINGING, 0.004, "the same, before its ring was known to have what came from others"),
    Probe(Counter.RESENT_NEXT_DOOR, 0.20, "a message of a lost view that came from the same site"),
    Probe(Counter.RESENT_FROM_AFAR, 0.05, "one that came from another site, for all of its own"),
    Probe(Counter.NEXT_HOLDER_ASKED, 0.05, "somebody else asked for it, since the first did not answer"),
    Probe(Counter.GROUP_PARTS_KEPT, 0.02, "memberships of strangers kept from an attempt that failed", True),
    Probe(UNEVEN_SITES, 0.10, "a view with sites of one daemon and of several"),
    Probe(Counter.TOKEN_KEPT, 0.20, "a token that stayed where the only sender was"),
    Probe(Counter.LINE_TOLD, 0.10, "a safe message for which the others told their lines without the token"),
    Probe(Counter.NAME_CAME_BACK, 0.10, "a session under the name of an earlier one", True),
    Probe(Counter.SEVERAL_GROUPS_ACROSS_MERGE, 0.10, "a message to several groups after the signal of a merge", True),
    Probe(
        Counter.MESSAGE_BEGUN_AGAIN, 0.10, "a large message cut by the end of a view, stamped again in the next", True
    ),
    Probe(LONG_NAMES, 0.07, "a bundle whose names alone are larger than a packet"),
    Probe(Counter.DATAGRAM_NEAR_THE_LIMIT, 0.015, "a datagram of more than 60,000 bytes, and not too large"),
    Probe(WAITED, 0.07, "a large message that small ones of others have passed", True),
    Probe(STORMS[Kind.JOIN], 0.10, "ten sessions of a daemon join at once", True),
    Probe(STORMS[Kind.LEAVE], 0.05, "ten sessions of a daemon leave a group at once", True),
    Probe(STORMS[Kind.DISCONNECT], 0.10, "ten sessions of a daemon are gone at once", True),
    Probe(CAME_BACK, 0.03, "a member that left and came back between signal and view", True),
    Probe(HUNDREDS_OF_GROUPS, 0.06, "a daemon whose sessions have joined two hundred groups", True),
    Probe(THOUSAND_GROUPS, 0.02, "a daemon whose sessions have joined a thousand groups", True),
)


def seen(result: Result) -> frozenset[str]:
    """The probes that a run has hit."""
    return frozenset(probe.name for probe in PROBES if probe.is_seen(result))


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
