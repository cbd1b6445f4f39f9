"""Everything daemons say to one another, as values. `codec.py` alone knows the bytes.

Every frame travels under a header with the sender's rank and boot id, and carries the view or attempt it belongs to.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from covey.cluster import DAEMONS_MAX, LINKS_MAX, SiteLink
from covey.config import FRAME_ITEMS_MAX as REQUESTS_MAX
from covey.ids import Ballot, Life, Natural, Rank
from covey.protocol.values import Bundle, Declaration, Payload, Stamp

from .states import STATES, WORKING_STATES, State

GROUP_PARTS_MAX = 1 << 24
STATE_PARTS_MAX = 65_535

Lives = Annotated[tuple[Life, ...], Meta(max_length=DAEMONS_MAX)]


class Heard(NamedTuple):
    """One line of a sender's list of whom it hears."""

    rank: Rank
    boot: Natural
    number: Natural
    """The last ALIVE number heard from that life: seeing a recent one come back shows that the link works both ways."""
    two_way: bool


class Control(msgspec.Struct, array_like=True, frozen=True):
    """Base of the frames that are encoded as one array."""


class Alive(Control, frozen=True):
    """I am here; this is my state, and whom I hear."""

    number: Natural
    state: Annotated[int, Meta(ge=0, lt=len(STATES))]
    leader: Annotated[int, Meta(ge=-1, lt=DAEMONS_MAX)]
    """The rank whose proposal the sender waits for, or -1."""
    view: Ballot
    members: Lives
    promised: Ballot
    counter: Natural
    heard: Annotated[tuple[Heard, ...], Meta(max_length=DAEMONS_MAX)]
    clock: Stamp
    """The sender's clock: one that is far ahead of ours keeps it out of our views."""

    @property
    def is_working(self) -> bool:
        """The sender's view works: messages are ordered in it."""
        return STATES[self.state] in WORKING_STATES

    @property
    def is_arriving(self) -> bool:
        """The sender has promised an attempt, and works on it."""
        return STATES[self.state] in (State.STATETRANS, State.EVS)


class Join(Control, frozen=True):
    """I gather, and will propose in `remaining_us`; so far I think of `proposed`."""

    alive: Alive
    remaining_us: Natural
    proposed: Lives


class NewMemb(Control, frozen=True):
    """Form this membership. The attempt is the future view id."""

    attempt: Ballot
    members: Lives
    links: Annotated[tuple[SiteLink, ...], Meta(max_length=LINKS_MAX)] = ()
    """Between the sites of the members."""


class Refuse(Control, frozen=True):
    """I have promised more than the attempt you propose."""

    attempt: Ballot
    counter: Natural


class Stated(msgspec.Struct, array_like=True, frozen=True):
    """What a member of an attempt tells the others of itself: its declaration, and what its sessions have joined."""

    declaration: Declaration
    groups_version: Natural
    """The parts of one life and version are the same in every attempt."""
    group_parts: Annotated[int, Meta(ge=0, le=GROUP_PARTS_MAX)]
    """In how many parts the sender tells what its sessions have joined; those from other views need them all."""
    first_part: bytes
    """The only part there is, where all of this fits one packet; otherwise empty."""


class StateTrans(Control, frozen=True):
    """One part of what I declare: its encoding, cut."""

    attempt: Ballot
    part: Annotated[int, Meta(ge=0, lt=STATE_PARTS_MAX)]
    parts: Annotated[int, Meta(ge=1, le=STATE_PARTS_MAX)]
    data: bytes


class WantState(Control, frozen=True):
    """Send me these parts of what you declare; all of them if none is named."""

    attempt: Ballot
    parts: Annotated[tuple[Natural, ...], Meta(max_length=REQUESTS_MAX)]


class Proceeding(Control, frozen=True):
    """I have received resent bundles since I last said so: give the attempt more time."""

    attempt: Ballot


class Want(Control, frozen=True):
    """Resend me these bundles of our old view: (site, first number, last number)."""

    attempt: Ballot
    ranges: Annotated[tuple[tuple[Natural, Natural, Natural], ...], Meta(max_length=REQUESTS_MAX)]


class WantGroups(Control, frozen=True):
    """Send me these parts of what your sessions have joined."""

    attempt: Ballot
    parts: Annotated[tuple[Natural, ...], Meta(max_length=REQUESTS_MAX)]


class GroupPart(Control, frozen=True):
    """One part of what my sessions have joined."""

    attempt: Ballot
    part: Natural
    data: bytes
    ends_page: bool
    """With this part, what came since the last such one can be understood."""


class Done(Control, frozen=True):
    """I have everything of my old view that the attempt's members declared."""

    attempt: Ballot
    reply: bool


class PassedOn(Control, frozen=True):
    """A frame of an attempt on its way between sites, as its sender said it."""

    attempt: Ballot
    to: Annotated[bytes, Meta(max_length=DAEMONS_MAX // 8)]
    """A bit for each member of the attempt: whether it is for that one."""
    data: bytes
    """Without what all datagrams of a cluster begin with."""


class Goodbye(Control, frozen=True):
    """I stop, in good order. Nothing of this life follows."""

    view: Ballot
    promised: Ballot


class Floor(NamedTuple):
    """A minimum over the ring in the making: a value, and the rank that lowered it last (-1: nobody)."""

    value: Natural
    modifier: Annotated[int, Meta(ge=-1, lt=DAEMONS_MAX)]


class Token(Control, frozen=True):
    """The right to send in a site. Only its holder stamps."""

    view: Ballot
    number: Natural
    packet_seq: Natural
    """The highest packet number used."""
    packet_floor: Floor
    """Packets up to here are at every member, when the minimum of two consecutive visits is taken."""
    line_floor: Floor
    """Likewise the order line, for safe delivery."""
    received_floors: Annotated[tuple[tuple[Natural, Floor], ...], Meta(max_length=DAEMONS_MAX)]
    """Likewise the gap-free bundle number of each site, for discarding."""
    site_seq: Natural
    """The highest bundle number used."""
    stamp: Natural
    """The highest stamp used or promised."""
    flow: Natural
    """Packets sent during the last rotation."""
    idle: Natural
    """Consecutive hops with nothing to do."""
    requests: Annotated[tuple[Natural, ...], Meta(max_length=REQUESTS_MAX)]
    """Packets someone is missing."""
    withdrawn_seq: Natural = 0
    """The number of the last bundle with which this site gave up interest in groups."""
    behind: Annotated[int, Meta(ge=-1, lt=DAEMONS_MAX)] = -1
    """The rank of one whose clients are told too slowly, as far as is known; -1: nobody's are."""


class Parked(Control, frozen=True):
    """I hold the idle token with this number."""

    view: Ballot
    number: Natural


class Hurry(Control, frozen=True):
    """I have something to send, or miss the token: pass it on if you have it parked."""

    view: Ballot


class Ack(Control, frozen=True):
    """I hold the order up to this line, and so do those know who wait with a safe message."""

    view: Ballot
    line: Stamp


class Announce(Control, frozen=True):
    """How far a site is: every bundle above `number` has a stamp above `last`; all there hold the order to `line`."""

    view: Ballot
    site: Natural
    number: Natural
    last: Natural
    line: Natural
    received: Annotated[tuple[tuple[Natural, Natural], ...], Meta(max_length=DAEMONS_MAX)]
    quiet: bool
    """Nothing is outstanding at the sender: no answer is needed."""
    behind: bool = False
    """Clients there are told too slowly: less should be sent to it."""


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """A bundle's encoding, or one piece of it when it does not fit a packet."""

    site: int
    number: Natural
    piece: int
    pieces: int
    data: Payload | tuple[Payload, ...]
    """One run of bytes when it comes from a datagram; in parts when it goes into one."""
    content: int = 0
    """To which sites of the view it goes, as in the bundle; 0: to all whom it reaches, as a head does."""


class Data(msgspec.Struct, frozen=True, gc=False):
    """A packet of bundles. On a ring `turn` is the number of the token it was sent under; elsewhere both are 0."""

    view: Ballot
    turn: int
    packet_seq: int
    chunks: tuple[Chunk, ...]
    kept_line: int = 0
    """Its sender keeps the token for a while, and holds the order up to this line; 0: it passes the token on."""


class Resend(NamedTuple):
    """Bundles of the old view, resent under an attempt."""

    attempt: Ballot
    bundles: tuple[Bundle, ...]


class Unreliable(NamedTuple):
    """A bundle outside order and recovery."""

    view: Ballot
    bundle: Bundle


AttemptFrame = StateTrans | WantState | Proceeding | Want | WantGroups | GroupPart | Resend | Done
"""What the members of an attempt say to one another."""

Frame = (
    Alive
    | Join
    | NewMemb
    | Refuse
    | StateTrans
    | WantState
    | Proceeding
    | PassedOn
    | Want
    | WantGroups
    | GroupPart
    | Done
    | Goodbye
    | Token
    | Parked
    | Hurry
    | Ack
    | Announce
    | Data
    | Resend
    | Unreliable
)
