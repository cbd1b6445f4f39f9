"""Who exists: daemons, their sites, and the links between sites.

In:   values from a caller or a file, checked once here.
Out:  `Cluster`, frozen; every daemon of a cluster must have the same one.
Not here:  how long, how much, how often (config.py), the file (config_file.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import combinations
from typing import Annotated, NamedTuple

import msgspec

from .errors import ConfigError
from .names import daemon_problem

_BYTES = frozenset(map(str, range(256)))

Address = tuple[str, int]
"""An IPv4 address and a port."""

SITE_MAX = 65_535
"""A bundle names its site in two bytes."""

LINKS_MAX = 1_225
"""Each of fifty sites with every other: a proposal names all of them in one datagram."""

LINK_COST_MAX = 1_000_000
"""Milliseconds of a round trip, or whatever else links are compared by."""

DAEMONS_MAX = 1_024


class SiteLink(NamedTuple):
    """A link between two sites, by their numbers, the lower one first."""

    one: Annotated[int, msgspec.Meta(ge=0, le=SITE_MAX)]
    other: Annotated[int, msgspec.Meta(ge=0, le=SITE_MAX)]
    cost: Annotated[int, msgspec.Meta(ge=1, le=LINK_COST_MAX)] = 1
    """What is sent takes the path with the least sum of costs."""


class DaemonConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One configured daemon. Its rank is its number in the cluster's list: lower ranks represent and propose."""

    name: str
    site: int
    host: str = "127.0.0.1"
    port: int = 0
    clients: str | None = None
    """HOST:PORT where programs may connect over TCP; on its own machine they always can, over a Unix socket."""
    gateway: bool = True
    """Whether it may speak for its site to other sites."""

    @property
    def address(self) -> Address:
        """Where its datagrams come from."""
        return "127.0.0.1" if self.host == "localhost" else self.host, self.port


class Cluster(msgspec.Struct, frozen=True):
    """All daemons that may ever take part, in rank order."""

    name: str
    daemons: tuple[DaemonConfig, ...]
    multicast: str | None = None
    """`address:port` to which a datagram for several daemons goes once; None: one goes to each."""
    site_names: tuple[str, ...] = ()
    """What sites are called, by their numbers; empty: they have numbers only."""
    links: tuple[SiteLink, ...] = ()
    """Between sites; empty: each is linked with every other."""

    def __post_init__(self) -> None:
        names = [daemon.name for daemon in self.daemons]
        if not names:
            raise ConfigError(f"cluster {self.name!r} has no daemons: list at least one")
        if len(set(names)) != len(names):
            raise ConfigError(f"cluster {self.name!r} names a daemon twice: {sorted(names)}; give each its own name")
        for index, name in enumerate(names):
            if problem := daemon_problem(name):
                raise ConfigError(f"cluster {self.name!r}: {problem}", f"daemon[{index}].name")
        if not self.name or not self.name.isprintable():
            raise ConfigError(f"a cluster cannot be called {self.name!r}: write a name of printable characters")
        if len(names) > DAEMONS_MAX:
            raise ConfigError(f"cluster {self.name!r} has {len(names)} daemons: at most {DAEMONS_MAX} are supported")
        for index, daemon in enumerate(self.daemons):
            if not 0 <= daemon.site <= SITE_MAX:
                rule = f"daemon {daemon.name!r} has site {daemon.site}: write 0 to {SITE_MAX}"
                raise ConfigError(rule, f"daemon[{index}].site")
        self._check_sites()
        if self.multicast is not None:
            multicast_address(self.multicast)

    def _check_sites(self) -> None:
        if len(set(self.site_names)) != len(self.site_names):
            raise ConfigError(f"a site is named twice: {sorted(self.site_names)}; give each its own name")
        for index, name in enumerate(self.site_names):
            if problem := daemon_problem(name, "site"):
                raise ConfigError(problem, f"site[{index}].name")
        sites = self.sites
        if len(sites) > 1:
            for site in sites:
                there = [index for index, daemon in enumerate(self.daemons) if daemon.site == site]
                if not any(self.daemons[index].gateway for index in there):
                    raise ConfigError(
                        f"no daemon of site {self.site_name(site)} is a gateway: let one be, or leave out `gateway`",
                        f"daemon[{there[0]}].gateway",
                    )
        self._check_links(sites)

    def _check_links(self, sites: tuple[int, ...]) -> None:
        if len(self.all_links) > LINKS_MAX:
            raise ConfigError(f"there are {len(self.all_links)} links: at most {LINKS_MAX} are supported; list fewer")
        seen: set[tuple[int, int]] = set()
        for index, (one, other, cost) in enumerate(self.links):
            where = f"link[{index}].between"
            if not 0 <= one <= other <= SITE_MAX:
                rule = f"a link joins {one} and {other}: write sites from 0 to {SITE_MAX}, the lower first"
                raise ConfigError(rule, where)
            between = f"the link between {self.site_name(one)} and {self.site_name(other)}"
            if one == other:
                raise ConfigError(f"{between} joins a site with itself: name two sites", where)
            for site in (one, other):
                if site not in sites:
                    raise ConfigError(
                        f"{between}: no daemon is in site {self.site_name(site)}: place one there, or remove the link",
                        where,
                    )
            if not 1 <= cost <= LINK_COST_MAX:
                raise ConfigError(f"{between} has cost {cost}: write 1 to {LINK_COST_MAX}", f"link[{index}].cost")
            if (one, other) in seen:
                raise ConfigError(f"{between} is there twice: remove one", where)
            seen.add((one, other))
        if self.links and (apart := sorted(set(sites) - self._reached_from(sites[0]))):
            named = " ".join(map(self.site_name, apart))
            rule = f"no links join {named} with {self.site_name(sites[0])}: add a [[link]], or remove all"
            raise ConfigError(rule, "link[0].between")

    def _reached_from(self, site: int) -> set[int]:
        reached, before = {site}, 0
        while len(reached) > before:
            before = len(reached)
            reached |= {end for link in self.links if reached & set(link[:2]) for end in link[:2]}
        return reached

    @property
    def sites(self) -> tuple[int, ...]:
        """The numbers of all sites that have daemons."""
        return tuple(sorted({daemon.site for daemon in self.daemons}))

    @property
    def site_count(self) -> int:
        return len(self.sites)

    def site_name(self, site: int) -> str:
        return self.site_names[site] if site < len(self.site_names) else str(site)

    @property
    def all_links(self) -> tuple[SiteLink, ...]:
        """Those that are configured, or one between each two sites."""
        return self.links or tuple(SiteLink(one, other) for one, other in combinations(self.sites, 2))

    def on_host_of(self, name: str) -> list[str]:
        """The daemons on the machine of this one, itself included."""
        host = self.daemons[self.rank_of(name)].host
        return [one.name for one in self.daemons if one.host == host or (is_loopback(one.host) and is_loopback(host))]

    def rank_of(self, name: str) -> int:
        for rank, daemon in enumerate(self.daemons):
            if daemon.name == name:
                return rank
        raise ConfigError(f"no daemon {name!r} in cluster {self.name!r}: it has {[d.name for d in self.daemons]}")

    def digest(self) -> int:
        """64 bits over who exists and where: the same for everyone who names the same cluster."""
        daemons = [(d.name, d.site, d.host, d.port) for d in self.daemons]
        who: list[object] = [self.name, daemons]
        who += [] if self.multicast is None else [self.multicast]
        if self.site_count > 1:
            who += [self.links, [d.gateway for d in self.daemons]]
        return digest_of(repr(tuple(who)))


def digest_of(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def one_site(count: int, name: str = "covey") -> Cluster:
    """A cluster of `count` daemons a, b, c … in one site."""
    return Cluster(name, tuple(DaemonConfig(daemon_name(rank), 0) for rank in range(count)))


def one_daemon_sites(count: int, name: str = "covey") -> Cluster:
    """A cluster of `count` sites with one daemon each."""
    return many_sites([1] * count, name=name)


def many_sites(daemons: Sequence[int], links: tuple[SiteLink, ...] = (), name: str = "covey") -> Cluster:
    """A cluster of sites 0, 1, 2 … with so many daemons each: a, b, … in the first.

    >>> [(daemon.name, daemon.site) for daemon in many_sites([2, 1]).daemons]
    [('a', 0), ('b', 0), ('c', 1)]
    """
    placed = [site for site, count in enumerate(daemons) for _ in range(count)]
    made = tuple(DaemonConfig(daemon_name(rank), site) for rank, site in enumerate(placed))
    return Cluster(name, made, links=links)


def ipv4(text: str) -> tuple[int, int, int, int] | None:
    """The four numbers of an IPv4 address; None if it is something else.

    >>> ipv4("127.0.0.1"), ipv4("127.1"), ipv4("127.0.0.01"), ipv4("::1")
    ((127, 0, 0, 1), None, None, None)
    """
    parts = text.split(".")
    if len(parts) != 4 or not all(part in _BYTES for part in parts):
        return None
    one, two, three, four = map(int, parts)
    return one, two, three, four


def is_loopback(host: str) -> bool:
    return host == "localhost" or (ipv4(host) or (0,))[0] == 127


def multicast_address(text: str) -> Address:
    """
    >>> multicast_address("239.192.77.1:4800")
    ('239.192.77.1', 4800)
    """
    host, _, port = text.rpartition(":")
    numbers = ipv4(host)
    if numbers is None or not 224 <= numbers[0] < 240 or not (port.isdecimal() and 0 < int(port) < 65_536):
        raise ConfigError(
            f"multicast is {text!r}: write an IPv4 multicast address and a port, for example 239.192.77.1:4800"
        )
    return host, int(port)


def daemon_name(rank: int) -> str:
    """a, b, … z, then a1, b1 …

    >>> [daemon_name(rank) for rank in (0, 1, 25, 26, 53)]
    ['a', 'b', 'z', 'a1', 'b2']
    """
    letter = chr(ord("a") + rank % 26)
    return letter if rank < 26 else f"{letter}{rank // 26}"
