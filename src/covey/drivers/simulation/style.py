"""How the programs of one seed behave: what they call themselves and their groups, and what they do all at once.

In:        a seed, the number of programs, the settings.
Out:       a Style: names, destinations, storms to come, how a session is opened.
Not here:  doing it (clients.py, storms.py), what daemons submit themselves (workload.py).

A style is drawn by a generator of its own. A seed whose style has no traits runs as if there were no styles: its
programs draw from the generator of the run what they always drew.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from covey.config import GROUPS_BYTES_MAX, GROUPS_MAX, Settings
from covey.names import GROUP_MAX, NAME_MAX
from covey.protocol.values import Policy, Service
from covey.protocol.wire.group_names import groups_bytes

from .network import NEAR_THE_LIMIT

PLAIN_GROUPS = ("red", "green", "blue", "black")
POLICIES: tuple[Policy, ...] = ("disconnect", "block")

_PLAIN = 0.4
"""The share of seeds without any trait."""
_TRAITS = {"names": 0.5, "many": 0.25, "storm": 0.3, "large": 0.15, "hop": 0.3}
"""What a style may have, and how often the others have it."""
_BUSY = 8
_TRAITS_OF_BUSY = {"names": 0.5, "many": 0.4, "storm": 0.5, "large": 0.4, "hop": 0.4}
"""The same where there are so many programs: nobody asks for them who wants a cheap run."""
_LARGE_WHERE_NARROW = 0.8
"""The share of large messages beside small ones where a large one does not fit the queue with them."""
_SLOW_WHERE_NARROW = 0.6
"""The share of receivers that make senders wait while views change, where a session's bound is soon reached."""
_MANY = (60, 60, 60, 300, 300, 1_200)
_MANY_OF_BUSY = (60, 300, 1_200, 1_200, 1_200, 1_200)
"""Groups of those who have many."""
ROUND_TRIPS = 100
"""Where other sites must hear of all that is sent, many is no more than so many windows: it takes a round trip each."""
_EXTRAS = (12, 25, 40)
"""Programs that only take part in storms, where there are few others."""
_SMALL = 20
"""Bytes of a submission that may as well be large."""
_FILLERS = 130
"""Groups that nobody is in: what lists of destinations are filled with."""
_LETTERS = ("abcxyz", "äßλж", "名前群", "🦢🌊🐦")  # One to four bytes each.
_ADDRESSED = 8
"""So many names of programs are written to in private."""


_WATCHED = 0.35
"""The share of seeds whose programs and daemons watch each other."""
_DAEMON_TIMEOUTS = (0, 500, 5_000)
_ALIVE_TIMEOUTS = (0, 500, 500, 1_000)
_LAGS = (0, 0, 0, 400)


class SessionOptions(NamedTuple):
    """What a program says of itself when it connects."""

    priority: int
    policy: Policy


class SessionBounds(NamedTuple):
    """How long either side may be silent, and a reader behind, in milliseconds; 0 is for ever."""

    daemon_timeout_ms: int = 0
    alive_timeout_ms: int = 0
    lag_max_ms: int = 0


class Style:
    def __init__(self, seed: int, clients: int, settings: Settings, sites: int = 1) -> None:
        self.random = random = Random(f"covey {seed} style")
        plain = random.random() < _PLAIN
        narrow = settings.submit_queue_bytes < settings.message_bytes_max
        busy = clients >= _BUSY
        shares = (_TRAITS_OF_BUSY if busy else _TRAITS) | ({"large": _LARGE_WHERE_NARROW} if narrow else {})
        if narrow and settings.block_percent:
            shares["slow"] = _SLOW_WHERE_NARROW
        self.traits = frozenset(trait for trait, share in shares.items() if random.random() < share and not plain)
        self._bundle_bytes = settings.bundle_bytes
        self._roomy = NEAR_THE_LIMIT < settings.bundle_bytes < settings.message_bytes_max
        self.most = ROUND_TRIPS * settings.source_bundles_unstable if sites > 1 else max(_MANY)
        """Bundles that one program has in hand at once."""
        many = random.choice(_MANY_OF_BUSY if busy else _MANY) if "many" in self.traits else 0
        self.many = min(many, self.most)
        self.extras = random.choice(_EXTRAS) if "storm" in self.traits and 0 < clients < _EXTRAS[0] else 0
        self._fillers = self._names(_FILLERS) if "names" in self.traits else []
        self.groups = self._groups()
        self.names = self._program_names(max(clients, _ADDRESSED))
        self.crowd = random.randrange(64) if self.traits & {"storm", "large"} else None
        """Where most programs are, by rank; the number of daemons divides it."""
        self._watching = Random(f"covey {seed} watching")
        self.watched = self._watching.random() < _WATCHED

    # --- sessions

    def session_options(self, random: Random) -> SessionOptions:
        """How a program opens a session: the one place where that is drawn."""
        priority, policy = random.randrange(3), random.choice(POLICIES)
        if "slow" in self.traits:
            policy = "block"
        elif "large" in self.traits:
            policy = "disconnect"  # Where a receiver makes senders wait, nobody can tell who starves.
        return SessionOptions(priority, policy)

    def stall_ms(self, random: Random) -> int:
        """For how long a program does not read. Where silence is judged, some are silent for long."""
        return random.choice((50, 1_500, 3_000) if self.watched else (50, 400, 1_500))

    def session_bounds(self) -> SessionBounds:
        """By a generator of its own: whoever is not watched runs as ever."""
        if not self.watched:
            return SessionBounds()
        return SessionBounds(*map(self._watching.choice, (_DAEMON_TIMEOUTS, _ALIVE_TIMEOUTS, _LAGS)))

    def daemon(self, random: Random, daemons: int) -> int:
        """The rank of the daemon to connect to."""
        rank = random.randrange(daemons)
        return self.crowd % daemons if self.crowd is not None and self.random.random() < 0.8 else rank

    # --- destinations

    def destinations(self, random: Random) -> list[str]:
        """One to three groups; with long names now and then as many as a message may have."""
        few = random.sample(self.groups[:60], random.choice((1, 1, 1, 2, 3)))
        return self.filled(few) if self._fillers and self.random.random() < 0.3 else few

    def address(self, random: Random, daemons: tuple[str, ...]) -> str:
        return f"{self.names[random.randrange(_ADDRESSED)]}@{random.choice(daemons)}"

    def submitted_to(self) -> tuple[str, ...]:
        """What a daemon's own submission is for: mostly nobody."""
        if not self._fillers or self.random.random() < 0.7:
            return ()
        return tuple(self.filled([self.random.choice(self.groups[:60])]))

    def submitted_bytes(self, service: Service, size: int) -> int:
        """Where datagrams are large, some small submissions become as large as fits one."""
        small = size <= _SMALL and service is not Service.UNRELIABLE
        if not self._roomy or not small or self.random.random() < 0.9:
            return 0
        return self.random.randrange(50_000, self._bundle_bytes)

    def filled(self, groups: list[str]) -> list[str]:
        """These and others, of any number and length that a message may have."""
        random = self.random
        room = random.choice((600, 2_000, GROUPS_BYTES_MAX)) - groups_bytes(tuple(groups))
        count = random.choice((3, 20, GROUPS_MAX)) - len(groups)
        others = random.sample(self._fillers, _FILLERS)
        for name in sorted(others, key=len) if count > _FILLERS // 2 else others:  # As many as there may be are short.
            size = groups_bytes((name,))
            if count > 0 and size <= room and name not in groups:
                groups.append(name)
                room, count = room - size, count - 1
        random.shuffle(groups)
        return groups

    # --- names

    def _groups(self) -> tuple[str, ...]:
        pool = self._names(self.random.choice((4, 4, 8, 30))) if self._fillers else list(PLAIN_GROUPS)
        numbered = self.random.choice(("room {}", "a/long/path/" * 8 + "room {:04}"))
        return (*pool, *(numbered.format(number) for number in range(self.many)))

    def _names(self, count: int) -> list[str]:
        """Different ones, of every length a group's name may have."""
        names: dict[str, None] = {}
        while len(names) < count:
            longest = self.random.choice((1, 12, 12, GROUP_MAX, GROUP_MAX))
            names.setdefault(self._name(self.random.choice((longest, self.random.randint(1, longest)))))
        return list(names)

    def _name(self, length: int) -> str:
        letters = self.random.choice((*_LETTERS, "".join(_LETTERS)))
        return "".join(self.random.choices(letters, k=length))

    def _program_names(self, count: int) -> list[str]:
        plain = [f"p{number}" for number in range(count)]
        if "names" not in self.traits:
            return plain
        lengths = [self.random.choice((0, self.random.randrange(NAME_MAX), NAME_MAX)) for _ in plain]
        return [name + self._name(max(0, length - len(name))) for name, length in zip(plain, lengths, strict=True)]

    def extra_names(self) -> list[str]:
        return [f"e{number}" for number in range(self.extras)]
