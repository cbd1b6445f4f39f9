"""Wrong datagrams for a live cluster: noise, truncations, and good frames with bytes changed.

In:        the cluster, its digest, a seed.  Out: datagrams, endless.
Good frames come from a codec that speaks as one of the cluster's daemons, so that most reach the parsers behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from covey.config import Cluster
from covey.ids import Ballot, Life
from covey.protocol.values import Bundle, Declaration, Position, Service, SiteDeclaration
from covey.protocol.wire.codec import Codec, encode_bundle
from covey.protocol.wire.frames import (
    Alive,
    Announce,
    Chunk,
    Data,
    Done,
    Floor,
    Frame,
    Goodbye,
    Heard,
    Hurry,
    Join,
    NewMemb,
    Parked,
    Refuse,
    Resend,
    StateTrans,
    Token,
    Unreliable,
    Want,
)


def wrong_datagrams(cluster: Cluster, digest: int, seed: int) -> Iterator[bytes]:
    random = Random(seed)
    while True:
        kind = random.random()
        if kind < 0.2:
            yield random.randbytes(random.randrange(200))
            continue
        data = bytearray(_frame(cluster, digest, random))
        if kind < 0.4:
            del data[random.randrange(len(data)) :]
        else:
            for _ in range(random.choice((1, 1, 2, 8))):
                data[random.randrange(len(data))] = random.randrange(256)
        yield bytes(data)


def _frame(cluster: Cluster, digest: int, random: Random) -> bytes:
    """A good frame of any kind, of a life and a view that never were."""
    life = Life(random.randrange(len(cluster.daemons)), random.randrange(1, 1 << 40))
    return Codec(cluster.name, digest, life).encode(_content(life, random))


def _content(life: Life, random: Random) -> Frame:
    view = Ballot(random.randrange(1 << 40), life.rank, life.boot)
    lives = tuple(Life(rank, random.randrange(1 << 40)) for rank in range(3))
    number = random.randrange(1 << 20)
    alive = Alive(
        number, random.randrange(6), bool(number % 2), -1, view, lives, view, number, (Heard(0, 1, 2, True),), number
    )
    floor = Floor(number, -1)
    service, payload = random.choice(list(Service)), b"x" * (number % 99)
    bundle = Bundle(0, number, number, life, 0, number, 1, number, service, 0, 1, ("room",), payload)
    site = SiteDeclaration(0, 0, number, number, ((number + 2, number),), ())
    return random.choice(
        (
            alive,
            Join(alive, number, lives),
            NewMemb(view, lives),
            Refuse(view, number),
            StateTrans(
                view, Declaration(view, Position(0, -1), 0, number, lives, (site,)), lives, 1, payload, bool(number % 2)
            ),
            Want(view, ((0, 1, number),)),
            Done(view, bool(number % 2)),
            Goodbye(view, view),
            Token(view, number, number, floor, floor, ((0, floor),), number, number, 0, 0, (number,)),
            Parked(view, number),
            Hurry(view),
            Announce(view, 0, number, number, number, ((0, number),), False),
            Data(view, number, number, (Chunk(0, number, 0, 1, encode_bundle(bundle)),)),
            Resend(view, (bundle,)),
            Unreliable(view, bundle),
        )
    )
