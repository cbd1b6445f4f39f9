"""What the programs of a seed do where there are several sites, so that pruning is tried where it could go wrong.

In:        the programs, by the site of their daemon; faults that cut sites apart.
Out:       scripts for the world.
Not here:  what they do all at once wherever they are (storms.py).
"""

from __future__ import annotations

from random import Random

from covey.protocol.values import Service

from .clients import MS, Program
from .faults import Faults
from .world import Script, World

TURNS = "in turns"
PARTED = "parted"
"""Groups that only these storms use."""

_ROUNDS = 4
_PRUNED = (200, 200, 700)
"""Bytes of messages that are worth a head."""
_LARGE = 9_000
_SOME = 6
"""Messages around a join."""


class SiteStorms:
    def __init__(self, world: World, random: Random, faults: Faults, programs: list[Program]) -> None:
        self._world = world
        self._random = random
        self._faults = faults
        self._programs = programs

    def scripts(self, seconds: float) -> list[Script]:
        """In half of the runs with several sites and programs: one of them, or both."""
        if self._world.cluster.site_count < 2 or not self._programs:
            return []
        drawn = [script for script in (self._turns, self._parting) if self._random.random() < 0.4]
        return [script(int(self._random.uniform(0.1, 0.6) * seconds * 1_000 * MS)) for script in drawn]

    # --- members of a site take turns in a group

    def _turns(self, wait_us: int) -> Script:
        """One leaves and another joins about when interest is given up, while others send to the group."""
        yield wait_us
        linger_us = self._world.settings.interest_linger_ms * MS
        for _ in range(_ROUNDS):
            self._everybody_comes()
            yield 20 * MS
            sites = self._by_site()
            if len(sites) < 2:
                continue
            here, *elsewhere = self._random.sample(sorted(sites), len(sites))
            mates = self._random.sample(sites[here], len(sites[here]))
            senders = [self._random.choice(sites[site]) for site in elsewhere]
            for member in mates[:3]:
                member.join(TURNS)
                yield from self._sending(senders, TURNS)
                member.leave(TURNS)
                yield max(1, linger_us + self._random.randrange(-30, 30) * MS)

    def _sending(self, senders: list[Program], group: str) -> Script:
        """Some messages, spread over the time that a join may take; one of them large, now and then."""
        random = self._random
        large = random.randrange(_SOME) if random.random() < 0.3 else -1
        for number in range(_SOME):
            size = _LARGE if number == large else random.choice(_PRUNED)
            random.choice(senders).send_to(group, random.randbytes(size), random.choice(_ORDERED))
            yield random.choice((1, 5, 20)) * MS

    # --- a site is parted from one site after the other

    def _parting(self, wait_us: int) -> Script:
        """What a site sends reaches one site as heads; the other, which needs the content, is cut off already."""
        yield wait_us
        for _ in range(_ROUNDS):
            self._everybody_comes()
            yield 20 * MS
            sites = self._by_site()
            if len(sites) < 2 or self._world.cluster.site_count < 3:
                return
            source, needs, *_ = self._random.sample(sorted(sites), len(sites))
            for site, there in sites.items():
                for program in there:
                    program.join(PARTED) if site in (source, needs) else program.leave(PARTED)
            yield self._random.choice((100, 300)) * MS
            yield from self._part(sites[source], source, needs)
            yield self._random.choice((300, 900)) * MS

    def _part(self, senders: list[Program], source: int, needs: int) -> Script:
        random, ranks = self._random, self._ranks()
        self._faults.cut_off(ranks[source], ranks[needs])
        yield random.choice((0, 1, 15)) * MS
        for _ in range(3):
            random.choice(senders).send_to(PARTED, random.randbytes(random.choice(_PRUNED)), random.choice(_ORDERED))
        yield random.choice((1, 10)) * MS
        random.choice(senders).send_to(PARTED, b"all get this", random.choice(_ORDERED))
        yield random.choice((30, 60, 120, 250)) * MS
        self._faults.cut_off(ranks[source], [rank for site, some in ranks.items() if site != source for rank in some])

    # --- helpers

    def _everybody_comes(self) -> None:
        for program in self._programs:
            program.come()

    def _by_site(self) -> dict[int, list[Program]]:
        found: dict[int, list[Program]] = {}
        for program in self._programs:
            if (rank := program.rank) is not None:
                found.setdefault(self._world.cluster.daemons[rank].site, []).append(program)
        return found

    def _ranks(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for rank, daemon in enumerate(self._world.cluster.daemons):
            found.setdefault(daemon.site, []).append(rank)
        return found


_ORDERED = (Service.RELIABLE, Service.FIFO, Service.CAUSAL, Service.AGREED, Service.AGREED, Service.SAFE)
