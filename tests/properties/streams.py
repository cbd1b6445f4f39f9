"""A view's worth of bundles, drawn at random: sites, sessions, services, fragments, stamps that tie between sites.

The sessions of a daemon are cut into bundles one message after the other, and the daemons of a site take turns.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from random import Random

from covey.ids import Life
from covey.protocol.values import Bundle, Delivery, Service, SessionKey

SERVICES: list[Service] = [service for service in Service if service is not Service.UNRELIABLE]
STRONG = (Service.CAUSAL, Service.AGREED, Service.SAFE)


@dataclass
class Source:
    """One daemon's stream: what is left of the message it is sending, and its sessions' fifo numbers."""

    life: Life
    site: int
    random: Random
    fifo_numbers: dict[int, int] = field(default_factory=dict)
    pending: list[tuple[int, Service, int, int]] = field(default_factory=list)

    def next_bundle(self, number: int, stamp: int) -> Bundle:
        if not self.pending:
            session, service = self.random.randrange(1, 3), self.random.choice(SERVICES)
            fragments = self.random.choice([1, 1, 1, 2, 3])
            self.pending = [(session, service, at, fragments) for at in range(fragments)]
        session, service, fragment, fragments = self.pending.pop(0)
        fifo_number = self.fifo_numbers[session] = self.fifo_numbers.get(session, 0) + 1
        payload = f"{self.life.rank}.{session}.{fifo_number}".encode()
        return Bundle(
            self.site, number, stamp, self.life, session, fifo_number, 1, fifo_number, service, fragment, fragments, (),
            payload,
        )  # fmt: skip


def draw_bundles(random: Random, sites: int, daemons_per_site: int, most: int) -> list[Bundle]:
    """All bundles of one view, in no order. Every message is complete."""
    drawn = []
    for site in range(sites):
        first = site * daemons_per_site
        sources = [Source(Life(first + at, 1), site, random) for at in range(daemons_per_site)]
        stamp = number = 0
        budget = random.randrange(most)
        while budget > number or any(source.pending for source in sources):
            unfinished = [source for source in sources if source.pending]
            source = random.choice(sources if budget > number else unfinished)
            number, stamp = number + 1, stamp + random.randrange(1, 4)
            drawn.append(source.next_bundle(number, stamp))
    return drawn


def fresh(bundle: Bundle) -> Bundle:
    """A copy of its own for each daemon, as if it had come over the network."""
    return copy(bundle)


def name(delivery: Delivery) -> tuple[int, int]:
    return delivery.bundle.site, delivery.bundle.number


def in_order(bundles: list[Bundle]) -> list[tuple[int, int]]:
    """The agreed order: last fragments of strong messages by stamp, then by site."""
    strong = [one for one in bundles if one.service in STRONG and one.is_last_fragment]
    return [(one.site, one.number) for one in sorted(strong, key=lambda one: one.position)]


def breaks_fifo(deliveries: list[Delivery]) -> list[tuple[int, int]]:
    """Messages, fifo or stronger, that came without everything their session had sent before."""
    done: dict[SessionKey, set[int]] = {}
    broken = []
    for delivery in deliveries:
        one = delivery.bundle
        first = one.fifo_number - one.fragment
        fifo_numbers = done.setdefault(one.key, set())
        if one.service is not Service.RELIABLE and not fifo_numbers.issuperset(range(1, first)):
            broken.append(name(delivery))
        fifo_numbers.update(range(first, one.fifo_number + 1))
    return broken
