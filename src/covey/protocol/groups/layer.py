"""What the clients of this daemon are told: messages, views with cause and transitional set, signals, self-leaves.

In:        the daemon's deliveries, in their order; runs of changes of one group may come together.
Out:       `Out`: something for some local sessions, in the order to tell it.
Not here:  who is where (roster.py), daemon changes (step.py), what waits for whom (session/), bytes (dialects/).

A view goes to those who have the one before it as the difference, so that a join costs the same however many members
there are. Who is new gets all the members, once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from covey.errors import FrameError
from covey.ids import Life
from covey.names import is_private
from covey.protocol.counters import Counter
from covey.protocol.effects import Deliver
from covey.protocol.kit import Kit
from covey.protocol.notices import (
    Difference,
    GroupNotice,
    GrowingRoll,
    LeftGroup,
    Listed,
    OwnDiscarded,
    Run,
    Views,
    WholeView,
)
from covey.protocol.values import Bundle, Kind, Place
from covey.protocol.wire.bodies import SELF_DISCARD, read_sender, sender_prefix

from .roster import Member, Roster
from .where import Where

ROLL_LEAST: Final = 32
"""With so many members, those who join are shown a common list."""

LOOKED_AT_A_BREATH: Final = 16
"""Groups of a session that is gone, between two pauses."""


class Out(NamedTuple):
    """For these sessions of this daemon."""

    sessions: Collection[int]
    what: Deliver | GroupNotice


class Groups:
    def __init__(self, kit: Kit) -> None:
        self.me = kit.me
        self.count = kit.count
        self.roster = Roster(kit.me)
        self.where = Where(kit, self.roster)
        self.addresses: dict[str, int] = {}
        """The private addresses of this daemon, and whose they are."""
        self._rolls: dict[str, GrowingRoll] = {}
        """Of large groups that only grow."""

    # --- messages

    def message(self, effect: Deliver) -> list[Out]:
        sessions = self._receivers(effect.bundle)
        return told(effect, self.me, sessions) if self.is_whole(effect.bundle, sessions) else []

    def is_whole(self, bundle: Bundle, sessions: Collection[int]) -> bool:
        """Whether its payload is here. Nobody here is in its groups, or it would be."""
        if bundle.is_meta and sessions:
            self.count.add(Counter.HEAD_FOR_A_MEMBER)
        return not bundle.is_meta

    def _receivers(self, bundle: Bundle) -> Collection[int]:
        local = self.roster.local
        if len(bundle.groups) == 1 and not is_private(bundle.groups[0]):
            return local(bundle.groups[0])
        return gathered(bundle, {group: local(group) for group in bundle.groups}, self.addresses)

    # --- light changes

    def only_group(self, bundle: Bundle) -> str | None:
        """The one group that a change is about; None if it is about several, or none."""
        if bundle.kind in (Kind.JOIN, Kind.LEAVE):
            return bundle.groups[0]
        groups = self.roster.groups_of(bundle.origin, bundle.session) if bundle.kind is Kind.DISCONNECT else []
        return groups[0] if len(groups) == 1 else None

    def changed(self, effects: list[Deliver]) -> Iterator[Out | None]:
        """What a run of joins, leaves and disconnects of one group shows; or one disconnect from many."""
        bundle = effects[0].bundle
        group = self.only_group(bundle)
        if group is not None:
            yield from self._run(group, effects)
        elif bundle.kind is Kind.DISCONNECT:
            yield from self._departed(effects)

    def _departed(self, effects: list[Deliver]) -> Iterator[Out | None]:
        """A disconnect from many groups, as far as others here are in them; None every few groups."""
        bundle = effects[0].bundle
        alone = 1 if bundle.origin == self.me else 0
        for at, group in enumerate(self.roster.groups_of(bundle.origin, bundle.session), 1):
            if len(self.roster.local(group)) > alone:
                yield from self._run(group, effects)
            if at % LOOKED_AT_A_BREATH == 0:
                yield None

    def forgotten(self, bundle: Bundle) -> Iterator[None]:
        """A session that is gone leaves the groups in which nobody here is told of it."""
        for group in self.roster.groups_of(bundle.origin, bundle.session):
            self._rolls.pop(group, None)
            self.roster.leave(group, bundle.origin, bundle.session)
            self.where.left(bundle.stamp)
            yield None

    def _run(self, group: str, effects: list[Deliver]) -> Iterator[Out]:
        """Who is there already gets the whole run; who joins on the way, all members and then the rest of it."""
        run = Run(group)
        since = dict.fromkeys(self.roster.local(group), 0)
        is_alone = len(effects) == 1
        for effect in effects:
            is_join = effect.bundle.kind is Kind.JOIN
            if not is_join and effect.bundle.origin == self.me:  # Who leaves is still told what was before.
                start = since.pop(effect.bundle.session, len(run))
                if start < len(run):
                    yield Out((effect.bundle.session,), Views(run, start, len(run)))
            difference, outs = self._join(effect, group) if is_join else self._leave(effect, group)
            yield from outs
            if difference is not None and (since or not is_alone):
                run.add(difference, self.roster.members(group))
            if difference is not None and is_join and effect.bundle.origin == self.me:
                since[effect.bundle.session] = len(run)
        starts: dict[int, list[int]] = {}
        for session, start in since.items():
            if start < len(run):
                starts.setdefault(start, []).append(session)
        for start, sessions in starts.items():
            yield Out(sessions, Views(run, start, len(run)))

    def _join(self, effect: Deliver, group: str) -> tuple[Difference | None, list[Out]]:
        member = joined_by(effect)
        if not self.roster.join(group, member):
            return None, []
        bundle = effect.bundle
        difference = Difference(effect.view, bundle.stamp, bundle.site, (member.process,), (), (), "join", "")
        if (roll := self._rolls.get(group)) is not None:
            roll.names.append(member.process)
        if bundle.origin != self.me:
            return difference, []
        return difference, [Out((bundle.session,), self._all_members(effect, group, member.process))]

    def _all_members(self, effect: Deliver, group: str, joiner: str) -> WholeView:
        """The first view of whoever has just come."""
        bundle, present = effect.bundle, self.roster.members(group)
        members: tuple[str, ...] | Listed
        if len(present) < ROLL_LEAST:
            members = names(present.values())
        else:
            roll = self._rolls.get(group)
            if roll is None:
                roll = self._rolls[group] = GrowingRoll(names(present.values()))
            members = Listed(roll, len(present))
        return WholeView(group, effect.view, bundle.stamp, bundle.site, members, (joiner,), "join", joiner)

    def forget_rolls(self) -> None:
        """More has changed than that somebody came."""
        self._rolls.clear()

    def _leave(self, effect: Deliver, group: str) -> tuple[Difference | None, list[Out]]:
        bundle, outs = effect.bundle, list[Out]()
        member = self.roster.leave(group, bundle.origin, bundle.session)
        if member is None:
            return None, outs
        self.where.left(bundle.stamp)
        self._rolls.pop(group, None)
        if bundle.origin == self.me and bundle.kind is Kind.LEAVE:
            outs.append(Out((bundle.session,), LeftGroup(group, effect.view, bundle.stamp, bundle.site)))
        cause = "leave" if bundle.kind is Kind.LEAVE else "disconnect"
        detail = departure(member.process, effect.payloads[0])
        return Difference(effect.view, bundle.stamp, bundle.site, (), (member.process,), (), cause, detail), outs


def gathered(bundle: Bundle, local: dict[str, Collection[int]], addresses: dict[str, int]) -> tuple[int, ...]:
    """Everyone here it is for: each session once, however many of its destinations are its own."""
    sessions: dict[int, None] = {}
    for destination in bundle.groups:
        if is_private(destination):
            sessions.update(dict.fromkeys([addresses[destination]] if destination in addresses else ()))
        else:
            sessions.update(dict.fromkeys(local.get(destination, ())))
    return tuple(sessions)


def told(effect: Deliver, me: Life, sessions: Collection[int]) -> list[Out]:
    """To all of them; a sender that does not want its messages back learns only where they took their place."""
    bundle = effect.bundle
    if not bundle.flags & SELF_DISCARD or bundle.origin != me or bundle.session not in sessions:
        return [Out(sessions, effect)] if sessions else []
    rest = tuple(session for session in sessions if session != bundle.session)
    b, view = bundle, effect.view
    own = OwnDiscarded(b.service, b.count, b.session_seq, view, b.stamp, b.site, b.groups)
    return [*([Out(rest, effect)] if rest else []), Out((bundle.session,), own)]


def names(members: Iterable[Member]) -> tuple[str, ...]:
    """In no order that means anything: the library sorts them when a program looks."""
    return tuple([member.process for member in members])


def joined_by(effect: Deliver) -> Member:
    """The member that a join makes."""
    bundle = effect.bundle
    place = Place(effect.view, bundle.stamp, bundle.site)
    return Member(bundle.origin, bundle.session, process_of(bundle, effect.payloads[0]), place)


def process_of(bundle: Bundle, payload: bytes | memoryview) -> str:
    """The client process a bundle comes from. Its daemon wrote or checked the name."""
    try:
        return read_sender(payload)
    except FrameError:
        return f"?@{bundle.origin.rank}:{bundle.origin.boot}.{bundle.session}"


def departure(process: str, payload: bytes | memoryview) -> str:
    """Who went, and why if its daemon says so behind the name; empty if it is only who.

    >>> departure("al@a:1.2", sender_prefix("al@a:1.2") + b"it did not answer")
    'al@a:1.2: it did not answer'
    """
    why = bytes(payload[len(sender_prefix(process)) :]).decode(errors="replace")
    return f"{process}: {why}" if why else ""
