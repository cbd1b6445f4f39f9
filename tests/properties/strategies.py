"""Every frame that a correct daemon may send, as hypothesis strategies."""

from __future__ import annotations

from hypothesis import strategies as st

from covey.config import COUNT_MAX
from covey.ids import INFINITE, Ballot, Life
from covey.protocol.evs.frames import (
    Ack,
    Alive,
    Announce,
    Chunk,
    Data,
    Done,
    Floor,
    Frame,
    Goodbye,
    GroupPart,
    Heard,
    Hurry,
    Join,
    NewMemb,
    Parked,
    PassedOn,
    Proceeding,
    Refuse,
    Resend,
    StateTrans,
    Token,
    Unreliable,
    Want,
    WantGroups,
    WantState,
)
from covey.protocol.evs.states import State
from covey.protocol.values import (
    Announcement,
    Bundle,
    Declaration,
    Kind,
    Position,
    Service,
    SiteDeclaration,
)
from covey.protocol.wire.bundles import meta_of

LARGE = 1 << 48
RANK = st.integers(0, 1_023)
MAYBE_RANK = st.integers(-1, 1_023)
SITE = st.integers(0, 1_023)
BOOT = st.integers(0, LARGE)
NUMBER = st.integers(0, LARGE)
STAMP = st.integers(0, INFINITE - 1)
FRONTIER = st.integers(0, INFINITE)
COUNT = st.integers(1, COUNT_MAX)
GROUPS = st.lists(st.text(max_size=5), max_size=3).map(tuple)
BYTES = st.binary(max_size=40)
CONTENT = st.one_of(st.just(0), st.integers(1, 2**64 - 1))

LIFE = st.builds(Life, RANK, BOOT)
LIVES = st.lists(LIFE, min_size=1, max_size=4).map(tuple)
BALLOT = st.builds(Ballot, NUMBER, RANK, BOOT)
FLOOR = st.builds(Floor, NUMBER, MAYBE_RANK)


@st.composite
def bundles(draw: st.DrawFn) -> Bundle:
    kind = draw(st.sampled_from(Kind))
    of_messages = kind <= Kind.MESSAGES
    fragments = draw(st.integers(1, 2**32 - 1 if of_messages else 1))
    made = Bundle(
        site=draw(SITE),
        number=draw(NUMBER),
        stamp=draw(STAMP),
        origin=draw(LIFE),
        session=draw(st.integers(0, 2**32 - 1)),
        session_seq=draw(NUMBER),
        count=draw(COUNT),
        fifo_number=draw(NUMBER),
        service=draw(st.sampled_from(Service)) if of_messages else _service_of(kind),
        fragment=draw(st.integers(0, fragments - 1)),
        fragments=fragments,
        groups=("room",) if kind in (Kind.JOIN, Kind.LEAVE) or kind >= Kind.INTEREST else draw(GROUPS),
        payload=draw(BYTES),
        kind=kind,
        flags=draw(st.integers(0, 63)),
        content=draw(CONTENT) if kind is Kind.MESSAGES else 0,
    )
    return meta_of(made) if made.content and draw(st.booleans()) else made


def _service_of(kind: Kind) -> Service:
    return Service.RELIABLE if kind >= Kind.INTEREST else Service.AGREED


@st.composite
def chunks(draw: st.DrawFn) -> Chunk:
    pieces = draw(st.integers(1, 2**15 - 1))
    return Chunk(draw(SITE), draw(NUMBER), draw(st.integers(0, pieces - 1)), pieces, draw(BYTES), draw(CONTENT))


ALIVE = st.builds(
    Alive,
    number=NUMBER,
    state=st.integers(0, len(State) - 1),
    leader=MAYBE_RANK,
    view=BALLOT,
    members=LIVES,
    promised=BALLOT,
    counter=NUMBER,
    heard=st.lists(st.builds(Heard, RANK, BOOT, NUMBER, st.booleans()), max_size=3).map(tuple),
    clock=STAMP,
)
SITE_DECLARATION = st.builds(
    SiteDeclaration,
    site=SITE,
    low=NUMBER,
    gap_free=NUMBER,
    frontier=FRONTIER,
    extras=st.binary(max_size=3),
    announcements=st.lists(st.builds(Announcement, NUMBER, STAMP), max_size=2).map(tuple),
)
DECLARATION = st.builds(
    Declaration,
    view=BALLOT,
    position=st.builds(Position, STAMP, st.integers(-1, 1_023)),
    aru=FRONTIER,
    high=STAMP,
    commit=LIVES,
    sites=st.lists(SITE_DECLARATION, max_size=3).map(tuple),
)
TOKEN = st.builds(
    Token,
    view=BALLOT,
    number=NUMBER,
    packet_seq=NUMBER,
    packet_floor=FLOOR,
    line_floor=FLOOR,
    received_floors=st.lists(st.tuples(SITE, FLOOR), max_size=3).map(tuple),
    site_seq=NUMBER,
    stamp=STAMP,
    flow=NUMBER,
    idle=NUMBER,
    requests=st.lists(NUMBER, max_size=4).map(tuple),
)
ANNOUNCE = st.builds(
    Announce,
    view=BALLOT,
    site=SITE,
    number=NUMBER,
    last=STAMP,
    line=STAMP,
    received=st.lists(st.tuples(SITE, NUMBER), max_size=3).map(tuple),
    quiet=st.booleans(),
)

KINDS: dict[type[Frame], st.SearchStrategy[Frame]] = {
    Alive: ALIVE,
    Join: st.builds(Join, ALIVE, st.integers(0, 10_000_000), LIVES),
    NewMemb: st.builds(NewMemb, BALLOT, LIVES),
    Refuse: st.builds(Refuse, BALLOT, NUMBER),
    WantGroups: st.builds(WantGroups, BALLOT, st.lists(NUMBER, max_size=3).map(tuple)),
    GroupPart: st.builds(GroupPart, BALLOT, NUMBER, BYTES, st.booleans()),
    StateTrans: st.builds(StateTrans, BALLOT, st.integers(0, 9), st.integers(1, 9), BYTES),
    WantState: st.builds(WantState, BALLOT, st.lists(NUMBER, max_size=3).map(tuple)),
    Proceeding: st.builds(Proceeding, BALLOT),
    PassedOn: st.builds(PassedOn, BALLOT, st.binary(max_size=4), BYTES),
    Want: st.builds(Want, BALLOT, st.lists(st.tuples(SITE, NUMBER, NUMBER), max_size=4).map(tuple)),
    Done: st.builds(Done, BALLOT, st.booleans()),
    Goodbye: st.builds(Goodbye, BALLOT, BALLOT),
    Token: TOKEN,
    Parked: st.builds(Parked, BALLOT, NUMBER),
    Hurry: st.builds(Hurry, BALLOT),
    Ack: st.builds(Ack, BALLOT, NUMBER),
    Announce: ANNOUNCE,
    Data: st.builds(Data, BALLOT, NUMBER, NUMBER, st.lists(chunks(), max_size=4).map(tuple), NUMBER),
    Resend: st.builds(Resend, BALLOT, st.lists(bundles(), max_size=3).map(tuple)),
    Unreliable: st.builds(Unreliable, BALLOT, bundles()),
}
FRAME: st.SearchStrategy[Frame] = st.one_of(*KINDS.values())
