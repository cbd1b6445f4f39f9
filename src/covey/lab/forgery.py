"""Frames that nobody sent, about lives, views and numbers that are real: what the handlers behind the codec must bear.

In:        what is known of a running cluster, chance.  Out: well-formed frames, each with a sender.
Not here:  their bytes, and what is done to those (fuzz.py).
"""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

from covey.cluster import Cluster
from covey.ids import Ballot, Life
from covey.protocol.evs.codec import Codec, encode_stated
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
    Stated,
    StateTrans,
    Token,
    Unreliable,
    Want,
    WantGroups,
    WantState,
)
from covey.protocol.evs.states import STATES
from covey.protocol.values import Announcement, Bundle, Declaration, Kind, Position, Service, SiteDeclaration
from covey.protocol.wire.bodies import sender_prefix
from covey.protocol.wire.bundles import encode_bundle

EDGES: Final = (0, 1, 2, 255, 65_535, 1 << 31, (1 << 32) + 1, (1 << 62) - 1)


class Facts(NamedTuple):
    """What a running cluster looks like from outside, at one daemon."""

    cluster: Cluster
    digest: int
    lives: tuple[Life, ...]
    """Those of the view."""
    view: Ballot
    target: Life
    """Whom the frames are for."""
    token: int
    """The number of the last token that the target has handled or passed."""
    packets: int
    """The target has packets up to this number without a gap."""
    clock: int
    """Microseconds since 1970."""


class Forger:
    """Draws frames. The same facts and chance give the same frames."""

    def __init__(self, facts: Facts, random: Random) -> None:
        self.facts = facts
        self._random = random
        self._makers = (
            self._alive, self._join, self._newmemb, self._refuse, self._state_trans, self._want_state, self._progress,
            self._passed, self._want, self._want_groups, self._group_part, self._done, self._goodbye, self._token,
            self._parked, self._hurry, self._ack, self._announce, self._data, self._resend, self._unreliable,
        )  # fmt: skip

    def frame(self) -> tuple[Life, Frame]:
        sender = self._life()
        return sender, self._random.choice(self._makers)(sender)

    # --- pieces

    def number(self, about: int) -> int:
        """Mostly near what is true, sometimes at an edge."""
        if self._random.random() < 0.2:
            return self._random.choice(EDGES)
        return max(0, about + self._random.choice((-300, -3, -2, -1, 0, 1, 2, 3, 300)))

    def _life(self) -> Life:
        """Somebody else of the view, sometimes nobody."""
        real = self._random.choice([life for life in self.facts.lives if life != self.facts.target])
        return real if self._random.random() < 0.9 else Life(real.rank, self.number(real.boot))

    def _lives(self) -> tuple[Life, ...]:
        count = self._random.randrange(1, len(self.facts.lives) + 1)
        lives = self._random.sample(self.facts.lives, count)
        return tuple(sorted(lives)) if self._random.random() < 0.8 else (*lives, self._life())

    def _ballot(self, sender: Life) -> Ballot:
        view = self.facts.view
        drawn = self._random.random()
        if drawn < 0.6:
            return view
        return Ballot(self.number(view.counter + 1), *sender) if drawn < 0.9 else Ballot(self.number(7), *self._life())

    def _floor(self, about: int) -> Floor:
        return Floor(self.number(about), self._random.choice((-1, 0, 1, 2)))

    def _length(self) -> int:
        """Of a list: mostly short, sometimes as long as a frame may be."""
        return self._random.choice((0, 1, 3)) if self._random.random() < 0.97 else 4_000

    def _clock(self) -> int:
        return self.number(self.facts.clock)

    def _flag(self) -> bool:
        return self._random.random() < 0.5

    def _bundle(self, service: Service | None = None) -> Bundle:
        random = self._random
        kind = random.choice((Kind.RAW, Kind.MESSAGES, *Kind))
        fits = kind > Kind.MESSAGES and random.random() < 0.8  # As a daemon would say it of its sessions.
        fragments = 1 if fits else random.choice((1, 1, 1, 2, 7))
        if service is None:
            service = Service.AGREED if fits else random.choice(list(Service))
        return Bundle(
            site=random.choice((0, 0, 0, 1)),
            number=self.number(self.facts.packets),
            stamp=self._clock(),
            origin=self._life() if random.random() < 0.9 else self.facts.target,
            session=random.randrange(4),
            session_seq=self.number(40),
            count=random.choice((1, 1, 5, 1_000_000)),
            fifo_number=self.number(20),
            service=service,
            fragment=random.randrange(fragments),
            fragments=fragments,
            groups=("room",) if fits else random.choice(((), ("room",), ("room", "hall"))),
            payload=random.choice((sender_prefix("p0@b:1.1"), b"")) + random.randbytes(random.choice((0, 10, 200))),
            kind=kind,
            flags=random.randrange(4),
        )

    # --- membership

    def _alive(self, sender: Life) -> Alive:
        hears = [Heard(life.rank, life.boot, self.number(200), self._flag()) for life in self.facts.lives]
        return Alive(
            number=self.number(200),
            state=self._random.randrange(len(STATES)),
            leader=self._random.choice((-1, 0, 1, 1_023)),
            view=self._ballot(sender),
            members=self._lives(),
            promised=self._ballot(sender),
            counter=self.number(self.facts.view.counter),
            heard=tuple(hears),
            clock=self._clock(),
        )

    def _join(self, sender: Life) -> Join:
        return Join(self._alive(sender), self.number(20_000), self._lives())

    def _newmemb(self, sender: Life) -> NewMemb:
        return NewMemb(self._ballot(sender), self._lives())

    def _refuse(self, sender: Life) -> Refuse:
        return Refuse(self._ballot(sender), self.number(self.facts.view.counter))

    def _goodbye(self, sender: Life) -> Goodbye:
        return Goodbye(self._ballot(sender), self._ballot(sender))

    # --- the exchange

    def _state_trans(self, sender: Life) -> StateTrans:
        number = self.number
        extras = self._random.randbytes(self._random.choice((0, 1, 40)))
        announced = (Announcement(number(self.facts.packets), self._clock()),)
        site = SiteDeclaration(
            self._random.choice((0, 0, 1)), number(0), number(self.facts.packets), self._clock(), extras, announced
        )
        declaration = Declaration(
            self._ballot(sender), Position(self._clock(), 0), self._clock(), self._clock(), self._lives(), (site,)
        )
        first = self._random.randbytes(self._random.choice((0, 40)))
        data = encode_stated(Stated(declaration, number(1), number(1) % 65_536, first))
        if self._flag():
            return StateTrans(self._ballot(sender), 0, 1, data)
        return StateTrans(self._ballot(sender), number(1) % 65_535, 1 + number(1) % 65_535, data[:40])

    def _want_state(self, sender: Life) -> WantState:
        return WantState(self._ballot(sender), tuple(self.number(1) for _ in range(self._length())))

    def _progress(self, sender: Life) -> Proceeding:
        return Proceeding(self._ballot(sender))

    def _passed(self, sender: Life) -> PassedOn:
        """Something of another, or nothing, for anybody."""
        inner = Codec("covey", 0, sender)
        maker = self._random.choice((self._done, self._want, self._state_trans, self._alive))
        data = inner.without_prefix(inner.encode(maker(sender))) if self._flag() else self._random.randbytes(20)
        return PassedOn(self._ballot(sender), self._random.randbytes(self._random.choice((0, 1, 128))), data)

    def _want(self, sender: Life) -> Want:
        ranges = [(0, self.number(1), self.number(self.facts.packets)) for _ in range(self._length())]
        return Want(self._ballot(sender), tuple(ranges))

    def _want_groups(self, sender: Life) -> WantGroups:
        return WantGroups(self._ballot(sender), tuple(self.number(1) for _ in range(self._length())))

    def _group_part(self, sender: Life) -> GroupPart:
        return GroupPart(self._ballot(sender), self.number(1), self._random.randbytes(30), self._flag())

    def _done(self, sender: Life) -> Done:
        return Done(self._ballot(sender), self._flag())

    def _resend(self, sender: Life) -> Resend:
        return Resend(self._ballot(sender), tuple(self._bundle() for _ in range(self._random.randrange(1, 5))))

    # --- a view at work

    def _token(self, sender: Life) -> Token:
        number = self.number
        return Token(
            view=self._ballot(sender),
            number=number(self.facts.token),
            packet_seq=number(self.facts.packets),
            packet_floor=self._floor(self.facts.packets),
            line_floor=self._floor(self.facts.clock),
            received_floors=((self._random.choice((0, 0, 0, 1)), self._floor(self.facts.packets)),),
            site_seq=number(self.facts.packets),
            stamp=self._clock(),
            flow=number(3),
            idle=number(1),
            requests=tuple(number(self.facts.packets) for _ in range(self._length())),
        )

    def _parked(self, sender: Life) -> Parked:
        return Parked(self._ballot(sender), self.number(self.facts.token))

    def _ack(self, sender: Life) -> Ack:
        return Ack(self._ballot(sender), self._clock())

    def _hurry(self, sender: Life) -> Hurry:
        return Hurry(self._ballot(sender))

    def _announce(self, sender: Life) -> Announce:
        received = ((0, self.number(5)), (1, self.number(5)))
        return Announce(self._ballot(sender), 0, self.number(5), self._clock(), self._clock(), received, self._flag())

    def _data(self, sender: Life) -> Data:
        chunks = [self._chunk() for _ in range(self._random.randrange(1, 4))]
        return Data(self._ballot(sender), self.number(self.facts.token), self.number(self.facts.packets), tuple(chunks))

    def _chunk(self) -> Chunk:
        bundle, pieces = self._bundle(), self._random.choice((1, 1, 1, 3, 65_535))
        data = encode_bundle(bundle) if self._flag() else self._random.randbytes(20)
        return Chunk(bundle.site, bundle.number, self._random.randrange(pieces), pieces, data)

    def _unreliable(self, sender: Life) -> Unreliable:
        return Unreliable(self._ballot(sender), self._bundle(Service.UNRELIABLE if self._flag() else None))
