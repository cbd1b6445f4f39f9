"""Who is in which group: a fold over the ordered joins, leaves and disconnects of one daemon's history.

In:        the changes, in the agreed order; at a new daemon view, who moved with us and what the others declare.
Out:       members by group, the sessions of this daemon by group.
Not here:  what clients are told (layer.py).

Invariant: G1 the local index, the groups of each session, the sessions of each daemon, the sizes and the members of
each group tell the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import nlargest, nsmallest
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from covey.ids import Life
from covey.protocol.status import GroupsListing, GroupStatus
from covey.protocol.values import Place, Stay

PORTION: Final = 2_000
"""How many groups or members are looked at in one portion of a listing."""

T = TypeVar("T")


class Member(NamedTuple):
    """One stay of one session in one group. Leaving and joining again makes another member."""

    life: Life
    session: int
    process: str
    place: Place
    """Of its join."""


Key = tuple[Life, int]


class Roster:
    def __init__(self, me: Life) -> None:
        self._me = me
        self._members: dict[str, dict[Key, Member]] = {}
        self._groups_of: dict[Key, dict[str, None]] = {}
        self._sessions_of: dict[Life, dict[int, None]] = {}
        self._local: dict[str, dict[int, None]] = {}
        self._by_size: dict[int, dict[str, None]] = {}
        self.near: frozenset[int] = frozenset()
        """The daemons of our site, by rank, where somebody wants to know of groups that they have left."""
        self._near_members: dict[str, int] = {}
        self.emptied: dict[str, None] = {}
        """Groups that the last member in our site has left, until somebody has taken note."""

    # --- questions

    def groups(self) -> list[str]:
        return list(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def members(self, group: str) -> dict[Key, Member]:
        """By daemon and session; do not change it."""
        return self._members.get(group, {})

    def local(self, group: str) -> Collection[int]:
        """The sessions of this daemon in a group, in the order of their joins."""
        return self._local.get(group, ())

    def local_groups(self) -> list[str]:
        return list(self._local)

    def groups_of(self, life: Life, session: int) -> list[str]:
        return list(self._groups_of.get((life, session), ()))

    def sessions_of(self, life: Life) -> list[int]:
        """The sessions of a daemon that are in any group."""
        return list(self._sessions_of.get(life, ()))

    def lives(self) -> list[Life]:
        """The daemons with members."""
        return sorted(self._sessions_of)

    def largest(self, most: int) -> dict[str, int]:
        """The largest groups, by size: it costs no more however many groups there are."""
        sizes = nlargest(most, self._by_size)
        found = ((group, size) for size in sizes for group in nsmallest(most, islice(self._by_size[size], 1_000)))
        return dict(islice(found, most))

    def listing_in_portions(self, wanted: str, groups_max: int, members_max: int) -> Iterator[GroupsListing | None]:
        """Who is where: the groups of this name, or with these first letters before a `*`; all of them for nothing.

        None after each portion, and the answer at last: the roster may change between two of them. The answer is
        bounded: `group_count` says how many groups there are, and `size` of each how many members it has.
        """
        names: list[str] = []
        count = 0
        is_one = wanted and not wanted.endswith("*")
        for some in _portions([wanted] if is_one else list(self._members)):
            found = [group for group in some if group in self._members and _is_wanted(group, wanted)]
            count += len(found)
            names = sorted(names + found)[:groups_max]  # Mostly sorted: that is fast.
            yield None
        listed: list[GroupStatus] = []
        looked_at = 0
        for group in names:
            present = list(self.members(group).values())
            members: list[str] = []
            for few in _portions(present):
                members = sorted(members + [member.process for member in few])[:members_max]
                looked_at += len(few)
                if looked_at >= PORTION:
                    looked_at = 0
                    yield None
            listed.append({"group": group, "size": len(present), "members": members})
            members_max -= len(members)
        yield {"groups": listed, "group_count": count}

    # --- changes

    def join(self, group: str, member: Member) -> bool:
        """False if the session is a member already."""
        key = (member.life, member.session)
        members = self._members.get(group)
        if members is None:
            members = self._members[group] = {}
        elif key in members:
            return False
        members[key] = member
        self._resized(group, len(members) - 1, len(members))
        groups = self._groups_of.get(key)
        if groups is None:
            groups = self._groups_of[key] = {}
            self._sessions_of.setdefault(member.life, {})[member.session] = None
        groups[group] = None
        if member.life == self._me:
            self._local.setdefault(group, {})[member.session] = None
        if self.near and member.life.rank in self.near:
            self._near_members[group] = self._near_members.get(group, 0) + 1
            self.emptied.pop(group, None)
        return True

    def leave(self, group: str, life: Life, session: int) -> Member | None:
        """The member that was; None if it was none."""
        key = (life, session)
        members = self._members.get(group)
        member = members.pop(key, None) if members is not None else None
        if members is None or member is None:
            return None
        self._resized(group, len(members) + 1, len(members))
        if not members:
            del self._members[group]
        groups = self._groups_of[key]
        del groups[group]
        if not groups:
            del self._groups_of[key]
            _discard(self._sessions_of, life, session)
        if life == self._me:
            _discard(self._local, group, session)
        if self.near and life.rank in self.near:
            self._leave_site(group)
        return member

    def _leave_site(self, group: str) -> None:
        left = self._near_members[group] - 1
        if left:
            self._near_members[group] = left
        else:
            del self._near_members[group]
            self.emptied[group] = None

    def part_with(self, kept: frozenset[Life]) -> Iterator[None]:
        """Daemons that did not move with us take their sessions with them: one session a turn."""
        for life in self.lives():
            for session in self.sessions_of(life) if life not in kept else ():
                for group in self.groups_of(life, session):
                    self.leave(group, life, session)
                    yield

    def adopt(self, life: Life, declared: Iterable[Stay]) -> None:
        """A daemon from another view brings its sessions."""
        for session, process, group, place in declared:
            self.join(group, Member(life, session, process, place))

    def _resized(self, group: str, before: int, now: int) -> None:
        if before:
            _discard(self._by_size, before, group)
        if now:
            self._by_size.setdefault(now, {})[group] = None

    def check(self) -> None:
        for group, members in self._members.items():
            assert members, "G1"
            assert all(group in self._groups_of[key] for key in members), "G1"
            here = sorted(session for life, session in members if life == self._me)
            assert here == sorted(self.local(group)), "G1"
            assert group in self._by_size[len(members)], "G1"
            near = sum(life.rank in self.near for life, _ in members)
            assert near == self._near_members.get(group, 0), "G1"
        assert sum(map(len, self._groups_of.values())) == sum(map(len, self._members.values())), "G1"
        assert sum(map(len, self._by_size.values())) == len(self._members), "G1"
        assert {(life, one) for life, some in self._sessions_of.items() for one in some} == self._groups_of.keys(), "G1"


def _discard(index: dict[Any, dict[Any, None]], key: Any, item: Any) -> None:
    """Out of an index that has no empty entries."""
    items = index[key]
    del items[item]
    if not items:
        del index[key]


def _is_wanted(group: str, wanted: str) -> bool:
    """
    >>> _is_wanted("room", ""), _is_wanted("room", "ro*"), _is_wanted("room", "ro")
    (True, True, False)
    """
    return group.startswith(wanted[:-1]) if wanted.endswith("*") else wanted in ("", group)


def _portions(some: Sequence[T]) -> Iterator[Sequence[T]]:
    """
    >>> [len(portion) for portion in _portions(range(5_000))]
    [2000, 2000, 1000]
    """
    return (some[at : at + PORTION] for at in range(0, len(some), PORTION))
