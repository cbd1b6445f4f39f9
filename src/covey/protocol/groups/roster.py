"""Who is in which group: a fold over the ordered joins, leaves and disconnects of one daemon's history (PROTOCOL §4).

In:        the changes, in the agreed order; at a new daemon view, who moved with us and what the others declare.
Out:       members by group, the sessions of this daemon by group.
Not here:  what clients are told (layer.py).

Invariant: G1 the local index, the groups of each session and the members of each group tell the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from covey.ids import Life
from covey.protocol.values import Place, SessionGroups


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
        self._local: dict[str, tuple[int, ...]] = {}

    # --- questions

    def members(self, group: str) -> dict[Key, Member]:
        """By daemon and session; do not change it."""
        return self._members.get(group, {})

    def local(self, group: str) -> tuple[int, ...]:
        """The sessions of this daemon in a group."""
        return self._local.get(group, ())

    def local_groups(self) -> list[str]:
        return list(self._local)

    def groups_of(self, life: Life, session: int) -> list[str]:
        return list(self._groups_of.get((life, session), ()))

    def sizes(self) -> dict[str, int]:
        """How many members each group has."""
        return {group: len(members) for group, members in sorted(self._members.items())}

    def listing(self, wanted: str, groups_max: int, members_max: int) -> dict[str, object]:
        """Who is where: the groups of this name, or with these first letters before a `*`; all of them for nothing.

        Bounded: `group_count` says how many there are, and `size` of each how many members it has.
        """
        names = sorted(group for group in self._members if _is_wanted(group, wanted))
        listed: list[dict[str, object]] = []
        for group in names[:groups_max]:
            members = sorted(member.process for member in self._members[group].values())
            listed.append({"group": group, "size": len(members), "members": members[:members_max]})
            members_max -= min(members_max, len(members))
        return {"groups": listed, "group_count": len(names)}

    # --- changes

    def join(self, group: str, member: Member) -> bool:
        """False if the session is a member already."""
        key = (member.life, member.session)
        members = self._members.setdefault(group, {})
        if key in members:
            return False
        members[key] = member
        self._groups_of.setdefault(key, {})[group] = None
        if member.life == self._me:
            self._local[group] = (*self.local(group), member.session)
        return True

    def leave(self, group: str, life: Life, session: int) -> Member | None:
        """The member that was; None if it was none."""
        member = self._members.get(group, {}).pop((life, session), None)
        if member is None:
            return None
        if not self._members[group]:
            del self._members[group]
        groups = self._groups_of[life, session]
        del groups[group]
        if not groups:
            del self._groups_of[life, session]
        if life == self._me:
            rest = tuple(one for one in self._local[group] if one != session)
            if rest:
                self._local[group] = rest
            else:
                del self._local[group]
        return member

    def keep_only(self, lives: Iterable[Life]) -> None:
        """Daemons that did not move with us take their sessions with them."""
        kept = set(lives)
        for life, session in [key for key in self._groups_of if key[0] not in kept]:
            for group in self.groups_of(life, session):
                self.leave(group, life, session)

    def adopt(self, life: Life, declared: Iterable[SessionGroups]) -> None:
        """A daemon from another view brings its sessions."""
        for session, process, groups in declared:
            for group, place in groups:
                self.join(group, Member(life, session, process, place))

    def check(self) -> None:
        for group, members in self._members.items():
            assert members, "G1"
            assert all(group in self._groups_of[key] for key in members), "G1"
            here = sorted(session for life, session in members if life == self._me)
            assert here == sorted(self.local(group)), "G1"
        assert sum(map(len, self._groups_of.values())) == sum(map(len, self._members.values())), "G1"


def _is_wanted(group: str, wanted: str) -> bool:
    """
    >>> _is_wanted("room", ""), _is_wanted("room", "ro*"), _is_wanted("room", "ro")
    (True, True, False)
    """
    return group.startswith(wanted[:-1]) if wanted.endswith("*") else wanted in ("", group)
