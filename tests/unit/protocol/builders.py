"""Small values for tests of the protocol: lives, bundles, frames, and what one daemon's parts share.

What a call does not say is filled in as a correct daemon would write it, so each test spells out only what it is about.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from covey.cluster import Cluster, one_site
from covey.config import Settings, digest
from covey.ids import Ballot, Instant, Life
from covey.protocol.bits import to_bits
from covey.protocol.counters import Count
from covey.protocol.deadlines import DeadlineTable
from covey.protocol.effects import LinkSend, Send
from covey.protocol.evs.clock import StampClock
from covey.protocol.evs.codec import Codec, encode_stated
from covey.protocol.evs.frames import Alive, Frame, Heard, PassedOn, Stated, StateTrans
from covey.protocol.evs.kit import EvsKit
from covey.protocol.evs.membership.machine import Machine
from covey.protocol.evs.states import STATES, State
from covey.protocol.values import Announcement, Bundle, Declaration, Payload, Service, SiteDeclaration

A, B, C, D = (Life(rank, 1) for rank in range(4))
VIEW = Ballot(7, 0, 1)
OTHER_VIEW = Ballot(9, 1, 1)
NO_VIEW = Ballot(0, 0, 0)


def bundle(
    number: int,
    stamp: int | None = None,
    *,
    site: int = 0,
    origin: Life = A,
    session: int = 1,
    fifo_number: int | None = None,
    service: Service = Service.AGREED,
    fragment: int = 0,
    fragments: int = 1,
    groups: tuple[str, ...] = (),
    payload: Payload = b"",
) -> Bundle:
    """A bundle whose stamp is ten times its number, and whose fifo number is its number, unless said otherwise."""
    return Bundle(
        site=site,
        number=number,
        stamp=10 * number if stamp is None else stamp,
        origin=origin,
        session=session,
        session_seq=number,
        count=1,
        fifo_number=number if fifo_number is None else fifo_number,
        service=service,
        fragment=fragment,
        fragments=fragments,
        groups=groups,
        payload=payload,
    )


def fragments_of(first: int, parts: Iterable[bytes], *, service: Service, origin: Life = A) -> list[Bundle]:
    """One message cut into bundles with consecutive numbers and fifo numbers."""
    cut = list(parts)
    return [
        bundle(first + at, service=service, origin=origin, fragment=at, fragments=len(cut), payload=part)
        for at, part in enumerate(cut)
    ]


def held(
    site: int = 0,
    *,
    low: int = 0,
    gap_free: int = 0,
    frontier: int = 0,
    extras: tuple[int, ...] = (),
    announcements: tuple[Announcement, ...] = (),
) -> SiteDeclaration:
    """What a daemon declares of one site."""
    return SiteDeclaration(site, low, gap_free, frontier, to_bits(extras, gap_free + 1), announcements)


def alive(
    number: int = 1,
    *,
    state: State = State.SEG,
    leader: int = -1,
    view: Ballot = NO_VIEW,
    members: tuple[Life, ...] = (A,),
    promised: Ballot | None = None,
    counter: int = 1,
    hears: Iterable[Heard] = (),
    clock: int = 1,
) -> Alive:
    return Alive(
        number=number,
        state=STATES.index(state),
        leader=leader,
        view=view,
        members=members,
        promised=view if promised is None else promised,
        counter=counter,
        heard=tuple(hears),
        clock=clock,
    )


def kit(me: Life = A, cluster: Cluster | None = None, settings: Settings | None = None) -> EvsKit:
    cluster = cluster or one_site(4)
    codec = Codec(cluster.name, digest(cluster, settings or Settings()), me)
    clock = StampClock(Instant(0, 0), ahead_max_us=60_000_000)
    return EvsKit(me, cluster, settings or Settings(), Count(), DeadlineTable(), codec, clock)


def codec_of(life: Life, cluster: Cluster, settings: Settings | None = None) -> Codec:
    """What another daemon of the cluster encodes with."""
    return Codec(cluster.name, digest(cluster, settings or Settings()), life)


def frames_in(effects: Iterable[object], codec: Codec) -> list[Frame]:
    """All frames among the effects, in order; of what is passed on, the frame within."""
    return [unpacked(codec, effect.data) for effect in effects if isinstance(effect, Send | LinkSend)]


def unpacked(codec: Codec, data: bytes) -> Frame:
    frame = codec.decode(data).frame
    return unpacked(codec, codec.with_prefix(frame.data)) if isinstance(frame, PassedOn) else frame


def told(attempt: Ballot, declaration: Declaration) -> StateTrans:
    """A declaration in one part, of who has joined nothing."""
    return StateTrans(attempt, 0, 1, encode_stated(Stated(declaration, 0, 0, b"")))


def declared_in(frames: Iterable[Frame]) -> list[Declaration]:
    """Of those that are in one part."""
    decode = msgspec.msgpack.Decoder(Stated).decode
    return [decode(frame.data).declaration for frame in frames if isinstance(frame, StateTrans)]


def strangers(machine: Machine, now_us: int) -> list[str]:
    """Who stays outside, and why, as the status has it."""
    return machine.kept_out.told() + (machine.merging.told(machine.members, now_us) if machine.active else [])
