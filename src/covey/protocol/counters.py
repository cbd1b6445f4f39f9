"""What daemons and their drivers count: each counter with its words and its sentence.

In:        that something happened, once or several times.
Out:       how often, by counter; for people and machines by the words of each.
Not here:  where each of them is counted; which daemon's they are (kit.py).

The table of docs/troubleshooting.md is made of what stands here (`python -m docs.counter_tables`).
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Counter(Enum):
    """What is counted under a name of its own. The value is that name, as status, stories and documents have it."""

    # --- datagrams and frames

    ACCEPTED = "accepted"
    """Only among outcomes: nothing of the datagram was dropped."""
    FRAME_OUR_OWN = "frame dropped: our own, retransmitted"
    """It was sent by this daemon, and somebody sent it on to us, or the network sent it back."""
    FRAME_OF_ANOTHER_VIEW = "frame dropped: of another view"
    """Its sender is in another view than this daemon: it was late, or one of the two has moved on already."""
    FRAME_VIEW_FROZEN = "frame dropped: the view is frozen"
    """It carries messages of a view that ends here: what is missing of it, its members resend to one another."""
    FRAME_VIEW_LOST = "frame dropped: the view is lost"
    """It came for a view that works here no more."""
    FRAME_MISDIRECTED = "frame dropped: not for this kind of view"
    """It speaks of a token where there is none, or to sites that are not in the view."""
    FRAME_WRONG_WAY = "frame dropped: it came the wrong way"
    """What a site sends comes along its tree, or around the own ring: this came through somebody else."""
    CHUNK_RELAYED = "piece relayed between two other sites"
    """This daemon speaks for a site that lies between two others, and has sent on a piece of a bundle."""
    FOREIGN_RESENT = "packet of another site resent on the ring"
    """A packet with what another site has sent had been lost here, and came again."""
    FOREIGN_TOO_MUCH = "piece dropped: more from other sites than their windows allow"
    """What came from other sites waits for the token, and more waits than they can have under way."""

    # --- pruning

    HEAD_WAITED = "head counted after its content arrived elsewhere"
    """Nobody here needs the payload of a bundle; its head took its place once the sites that do had received it."""
    CONTENT_RECOVERED = "content recovered where only a head was"
    """A view ended before the head of a bundle counted here: the whole bundle was resent."""
    JOIN_WAITED = "join waited for interest"
    """A program is the first in this site to join a group: the other sites were told before."""
    INTEREST_ASKED = "interest asked"
    """This daemon has asked the other sites for the messages of a group."""
    INTEREST_WITHDRAWN = "interest withdrawn"
    """Nobody in this site is in a group any more, and the other sites were told so."""
    BEGUN_AGAIN_FOR_INTEREST = "message begun again for new interest"
    """While a large message was being sent, another site asked for its group: it was sent anew, to everybody."""
    INTERESTS_TOO_MANY = "site not pruned: it asks for too many groups"
    """More groups than `interests_max`: everything goes to that site until the next view."""
    HEAD_FOR_A_MEMBER = "head delivered to a member"
    """A program here is in a group, and only the head of a message for it is here: a fault of Covey."""

    # --- messages and their order

    BUNDLE_MALFORMED = "bundle dropped: malformed"
    """A packet was sound, and what is in it is no bundle of messages: another version, or a forgery."""
    BUNDLE_IMPOSSIBLE = "bundle dropped: impossible"
    """No member can have sent such a bundle now: its site, stamp, number or size is out of all bounds."""
    BUNDLE_KNOWN = "bundle dropped: known or too late"
    """This daemon has it already, or its view has ended."""
    BUNDLE_PLACE_TAKEN = "bundle dropped: its place is taken"
    """Its session has sent another one for the same place in its order, which only a forgery can do."""
    PIECE_TOO_MANY = "piece dropped: too many incomplete bundles"
    """More pieces of large bundles are here than the windows let be under way."""
    MESSAGE_BEGUN_AGAIN = "message begun again"
    """A large message was cut by the end of a view: all of it is sent anew in the next."""
    SAFE_AFTER_SIGNAL = "safe after signal"
    """A safe message was delivered after the transitional signal: those who were lost may not have it."""
    STAMP_FAR_AHEAD = "stamp far ahead"
    """The clock of a member is far ahead of ours; it is named in the log, and delays everyone."""
    WINDOW_CLOSED = "window closed"
    """Something waits to be sent because not everyone has what is under way."""
    SENDING_WAITS = "sending waits: clients are behind"
    """Something waits to be sent because programs of this daemon are told too slowly."""
    UNRELIABLE_NO_VIEW = "unreliable dropped: no view"
    """A program has sent an unreliable message while no view works; nobody has got it."""
    UNRELIABLE_DUPLICATE = "unreliable dropped: duplicate"
    """An unreliable message came twice, or later than those after it by more than is remembered."""
    UNRELIABLE_TOO_MANY_SESSIONS = "unreliable dropped: too many sessions in this view"
    """More sessions have sent unreliable messages in this view than are remembered."""
    UNRELIABLE_BEHIND = "unreliable dropped: this daemon is behind"
    """So much waits to be told to programs here that unreliable messages are left out."""
    ANNOUNCEMENT_IMPOSSIBLE = "announcement dropped: impossible"
    """Another site promises stamps of half a year ahead, or more."""

    # --- the ring

    PACKET_RETRANSMITTED = "packet retransmitted"
    """Somebody in the ring had missed a packet, and this daemon has sent it again."""
    PACKET_DUPLICATE = "packet dropped: duplicate"
    """This daemon had it already: somebody else had asked for it, or the network has doubled it."""
    PACKET_BEYOND_WINDOW = "packet dropped: beyond the window"
    """Its number is further ahead than the windows allow."""
    TOKEN_PARKED = "token parked"
    """Nothing was left to do, and the token rests here until somebody has something to send."""
    TOKEN_KEPT = "token kept"
    """This daemon alone sent, and the token stayed here for a while."""
    LINE_TOLD = "line told"
    """A safe message came from who keeps the token: this daemon has told the others that it misses nothing."""
    TOKEN_RESENT = "token resent"
    """The next in the ring did not show in time that it has the token: it got it again."""
    TOKEN_DUPLICATE = "token dropped: duplicate"
    """This daemon had passed it on already, or holds it."""
    TOKEN_IMPOSSIBLE = "token dropped: impossible"
    """The token claims more than can have happened since it was last here."""
    TOKEN_LOST = "token lost"
    """The token did not come back in time: the view was given up."""

    # --- membership

    ALIVE_OVERTAKEN = "ALIVE dropped: overtaken"
    """A heartbeat came after a later one of the same daemon."""
    ALIVE_CLOCK_FAR_AHEAD = "ALIVE dropped: its clock is far ahead"
    """The daemon stays outside until its clock, or ours, is set right."""
    ALIVE_COUNTER_FAR_AHEAD = "ALIVE dropped: its counter is far ahead"
    """It speaks of views so far in the future that nobody can have proposed them."""
    ALIVE_UNPROVEN = "ALIVE dropped: of an unproven life"
    """A restarted daemon has not shown yet that it hears us; it is asked for that."""
    ALIVE_TOO_EARLY = "ALIVE dropped: not yet in our attempt"
    """It was sent before its sender joined the attempt to form a view."""
    RESTART_SEEN = "restart seen"
    """A known daemon is here in a new life."""
    ONE_WAY_SEEN = "one-way link seen"
    """A member is heard that does not hear us."""
    GOODBYE_HEARD = "goodbye heard"
    """A daemon has stopped in good order."""
    GOODBYE_UNKNOWN = "goodbye dropped: of a life we do not know"
    """It is of a daemon that was not heard yet, or of an earlier life."""
    ATTEMPT_SUPERSEDED = "attempt superseded"
    """An attempt to form a view was abandoned for a newer one."""
    ATTEMPT_OLDER = "older attempt dropped"
    """It belongs to an attempt below one that this daemon has promised since."""
    ATTEMPT_NOT_OURS = "attempt frame dropped: not ours"
    """It belongs to an attempt in which this daemon takes no part, or its sender does not."""
    PROPOSAL_COUNTER_FAR_AHEAD = "proposal dropped: its counter is far ahead"
    """It proposes a view so far in the future that nobody can have come so far."""
    PROPOSAL_NOT_FOR_US = "proposal dropped: not for this life"
    """It proposes a view without this life of this daemon, or in another's name."""
    PROPOSAL_NOT_JOINED = "proposal dropped: its links do not join its sites"
    """It names other links than those configured between the sites of its members, or they leave a site out."""
    REFUSAL_NOT_OURS = "refusal dropped: not of our attempt"
    """It refuses an attempt that is not under way here."""

    # --- the change of views

    DECLARATION_IMPOSSIBLE = "declaration dropped: impossible"
    """What a member says it holds of the old view cannot be."""
    DECLARATION_IMPOSSIBLE_GROUPS = "declaration dropped: impossible groups"
    """What a daemon from another view says its programs have joined cannot be read."""
    DECLARED_IN_PARTS = "declared in parts"
    """What a member of an attempt holds did not fit one packet."""
    GROUP_PARTS_KEPT = "group parts kept"
    """What the programs of a daemon from another view have joined was known in part from an attempt that failed."""
    DECLARATION_CONTRADICTS = "declaration dropped: it contradicts itself"
    """Two parts of what a member says it holds do not belong together."""
    PASSED_IMPOSSIBLE = "passed frame dropped: impossible"
    """A frame on its way between sites that is none of an attempt, of nobody in it, or for nobody."""
    RESENT_NEXT_DOOR = "bundle resent within a site"
    """A message of the old view came from a daemon of the same site."""
    RESENT_FROM_AFAR = "bundle resent from afar"
    """The same, from another site."""
    NEXT_HOLDER_ASKED = "next holder asked"
    """Who was asked for a message of the old view did not answer in time, and another was asked."""
    RESEND_NOT_WANTED = "resend dropped: not wanted"
    """A message of the old view that is not missing here, or no more."""
    RECOVERED_FROM_SINGLE_HOLDER = "recovered from single holder"
    """A message of a lost sender was resent by the only one who had it."""
    GROUP_PARTS_ASKED = "group parts asked"
    """What the programs of a daemon from another view have joined did not fit one datagram."""
    GROUP_PART_NOT_WANTED = "group part dropped: not wanted"
    """A part of that which is here already, or was not asked for."""

    # --- programs

    CLIENT_REJECTED = "client rejected"
    """A program was not let in; it was told why."""
    CLIENT_GONE = "client gone without goodbye"
    """The stream of a program ended before it said goodbye: it crashed or was killed."""
    CLIENT_SILENT = "client ended: silent"
    """A program did not answer for longer than it may, and was given up."""
    CLIENT_TOO_SLOW = "client ended: too slow"
    """More waited for a program, or for longer, than may."""
    CLIENT_LONGEST_BACKLOG = "client ended: the longest backlog"
    """Too much waited for all programs together, and most of it for this one."""
    CLIENT_IMPOSSIBLE_MESSAGE = "client ended: impossible message"
    """A program has sent a message out of turn, to nobody, or in another's name."""
    CLIENT_WORK_LEFT = "client work left for the next step"
    """There was more to do for programs than one step does."""
    SENDS_JOINED = "sends joined"
    """Messages that a program sent one by one, and that travel with the one before: they came in one read."""
    RECEIVER_BLOCKS = "receiver made senders wait"
    """Much waits for a program with the policy `block`: those who send to it have to wait."""
    NAME_CAME_BACK = "name came back"
    """A program has opened a session under the name of an earlier one."""
    DISCONNECT_DURING_CHANGE = "disconnect during a change"
    """A program has left while no view worked."""
    JOINED_IN_PART = "joined in a part"
    """A program has joined a group while some daemons of the cluster are down or cut off."""
    GROUP_MERGED_AFTER_SHRINKING = "group merged after it shrank"
    """A group has lost members and got others in one view."""
    SEVERAL_GROUPS_ACROSS_MERGE = "several groups across a merge"
    """A message to several groups was delivered between the transitional signal and the view of a merge."""

    # --- the network

    PORT_REFUSED = "port refused"
    """The host of a daemon says that nobody listens on its port."""
    WAITED_FOR_ROOM = "waited for room to send"
    """The socket was full, and a step was held up briefly until it had room."""
    DATAGRAM_TOO_LARGE = "datagram too large"
    """Only in simulations: no network carries it, and it is lost."""
    DATAGRAM_NEAR_THE_LIMIT = "datagram near the limit"
    """Only in simulations: a little more, and it were too large."""

    __hash__ = object.__hash__
    """Each is one object, and looked up with every datagram."""


class Family(Enum):
    """What is counted by reason, as `name: reason`: the reasons are of others, and not all of them can be listed."""

    FRAME_REJECTED = "frame rejected"
    """A datagram that is no frame of this cluster: of a stranger, of another version or configuration, or damaged."""
    SUBMISSION_REFUSED = "submission refused"
    """A message of a program was not taken; the program is told."""
    CLIENT_ENDED = "client ended"
    """A program has sent something that its dialect does not know."""
    CONNECTION_NOT_ACCEPTED = "connection not accepted"
    """The system did not let a program in, by its error. EMFILE: the daemon may open no more files (`ulimit -n`)."""
    NO_DESCRIPTOR = "no descriptor for a question"
    """The system did not let in who asked for the status, by its error; the descriptor in reserve was used."""
    DATAGRAM_NOT_SENT = "datagram not sent"
    """The system did not take a datagram, by its error; it is lost like any other."""
    SENT_ONE_BY_ONE = "datagrams sent one by one from now on"
    """The system, or the network device, does not take several datagrams at once, by its error."""

    __hash__ = object.__hash__

    def of(self, reason: str) -> Reasoned:
        """
        >>> Family.FRAME_REJECTED.of("another cluster").value
        'frame rejected: another cluster'
        """
        return Reasoned(self, reason)


class Reasoned(NamedTuple):
    """One counter of a family."""

    family: Family
    reason: str

    @property
    def value(self) -> str:
        return f"{self.family.value}: {self.reason}"


Counted = Counter | Reasoned


class Dropped(NamedTuple):
    """Something of a frame was not taken, and why: returned among what follows from the frame (datagrams.py)."""

    counter: Counted


class Count(dict[Counted, int]):
    """How often: what was dropped and why, what the protocol had to do.

    >>> count = Count(); count.add(Counter.TOKEN_LOST); count.add(Counter.TOKEN_LOST); count.in_words()
    {'token lost': 2}
    """

    def add(self, counter: Counted, amount: int = 1) -> None:
        if amount:
            self[counter] = self.get(counter, 0) + amount

    def of(self, family: Family) -> int:
        """All of a family together."""
        return sum(amount for one, amount in self.items() if isinstance(one, Reasoned) and one.family is family)

    def in_words(self) -> dict[str, int]:
        """For people and machines: by the words of each counter."""
        return {counter.value: amount for counter, amount in self.items()}
