"""What the programs of a seed do all at once: they join, leave, vanish and come back, or keep a queue full.

In:        the programs, and the extras that wait for storms; a style that says which storms there are.
Out:       scripts for the world.
Not here:  what each program does by itself (clients.py).
"""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller

from .clients import MS, Program
from .faults import Faults
from .style import Style
from .world import Script, World

_SMALL = 400
_SMALL_SENDERS = 3
"""Small messages that each of so many others has in hand while a large one waits."""
_TRIES = 3

_FEW_OF_MANY = 30
_JOINED_AT_ONCE = 200
"""Groups."""


_STALLED_US = 2_500 * MS
_STRIKES = 2
"""How long a slow receiver does not read, and how often views change meanwhile."""


_HOPS = 3
"""How often everybody leaves and comes back."""


class Storms:
    def __init__(
        self, world: World, style: Style, faults: Faults, programs: list[Program], extras: list[Program]
    ) -> None:
        self._world = world
        self._faults = faults
        self._style = style
        self._random = style.random
        self._programs = programs
        self._all = programs + extras

    def scripts(self, seconds: float) -> list[Script]:
        """Those of this style, each from a drawn moment on."""
        found: list[Script] = []
        for trait, script in (
            ("storm", self._storms),
            ("many", self._many),
            ("large", self._large_beside_small),
            ("slow", self._slow_receiver),
            ("hop", self._hops),
        ):
            if trait in self._style.traits and self._programs:
                found.append(script(int(self._random.uniform(0.1, 0.6) * seconds * 1_000 * MS)))
        return found

    def _storms(self, wait_us: int) -> Script:
        """All connect at once, join one group at once, go at once: twice."""
        yield wait_us
        for departure in self._random.sample((Program.leave, Program.bye, Program.crash), 2):
            self._everybody(Program.come)
            yield self._random.choice((5, 20, 60)) * MS
            group = self._random.choice(self._style.groups[:4])
            self._everybody(methodcaller("join", group))
            yield self._random.choice((1, 30, 300)) * MS
            self._everybody(departure)
            yield self._random.choice((1, 100)) * MS

    def _many(self, wait_us: int) -> Script:
        """One program joins as many groups as there are, two others a few of them; later it leaves many at once."""
        yield wait_us
        groups = self._style.groups[-self._style.many :]
        self._everybody(Program.come, self._programs)
        yield 20 * MS
        there = [program for program in self._programs if program.is_connected][:3]
        few = self._random.sample(groups, min(_FEW_OF_MANY, len(groups)))
        for program, joined in zip(there, (groups, few, few), strict=False):
            for at in range(0, len(joined), _JOINED_AT_ONCE):
                program.join(*joined[at : at + _JOINED_AT_ONCE])
                yield self._random.choice((1, 10, 40)) * MS
        yield self._random.choice((100, 1_000)) * MS
        for program in there[:1]:
            program.leave(*groups[: self._random.choice((1, len(groups) // 2, len(groups)))])

    def _large_beside_small(self, wait_us: int) -> Script:
        """A large message waits at a daemon whose queue others keep full of small ones."""
        yield wait_us
        for _ in range(_TRIES):
            large, *others = self._random.sample(self._programs, len(self._programs))
            self._everybody(Program.come, self._programs)
            yield 20 * MS
            sent = self._send_small(others, _SMALL)
            yield self._random.choice((1, 3)) * MS
            if large.send_large() and any(sent):
                return
            yield self._random.choice((50, 300)) * MS

    def _slow_receiver(self, wait_us: int) -> Script:
        """A receiver makes senders wait while views change."""
        yield wait_us
        for _ in range(_TRIES):
            slow, *others = self._random.sample(self._programs, len(self._programs))
            self._everybody(Program.come, self._programs)
            yield 20 * MS
            slow.join(*self._style.groups[:4])
            yield 30 * MS
            slow.stall(_STALLED_US)
            sent = self._send_small(others, _SMALL // 2)
            if slow.is_connected and any(sent):
                for _ in range(_STRIKES):
                    yield self._random.choice((60, 150, 400)) * MS
                    self._faults.strike()
                return
            yield self._random.choice((50, 300)) * MS

    def _hops(self, wait_us: int) -> Script:
        """Everybody leaves and comes back at once, while connectivity changes."""
        yield wait_us
        for _ in range(_HOPS):
            self._everybody(Program.come, self._programs)
            yield 20 * MS
            self._everybody(methodcaller("join", *self._style.groups[:4]), self._programs)
            yield self._random.choice((60, 200, 400)) * MS
            self._everybody(Program.hop, self._programs)
            yield self._random.choice((0, 1, 3, 8)) * MS
            self._faults.strike()
            yield self._random.choice((300, 900)) * MS

    def _send_small(self, programs: list[Program], count: int) -> list[int]:
        each = min(count, self._style.most // _SMALL_SENDERS)
        return [program.send_small(each) for program in programs[:_SMALL_SENDERS]]

    def _everybody(self, action: Callable[[Program], object], programs: list[Program] | None = None) -> None:
        for program in self._all if programs is None else programs:
            action(program)
