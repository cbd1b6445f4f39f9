"""What the clients of this daemon are told: messages, views with cause and transitional set, signals, self-leaves.

In:        the daemon's deliveries, and its view changes as one step (signal, rest, view).
Out:       `Out`: something for some local sessions, in the order to tell it.
Not here:  who is where (roster.py), what waits for whom (session/), bytes (wire/session.py).

Between a signal and the next daemon view nobody is shown a view: joins, leaves and disconnects ordered there are
applied silently, and show in the network view. A group that a daemon change does not touch hears nothing of it (C4).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from covey.errors import FrameError
from covey.ids import Life
from covey.names import is_private
from covey.protocol.effects import Deliver, Installed
from covey.protocol.values import Bundle, Count, Kind, Place, Service
from covey.protocol.wire.session import (
    NET,
    SELF_DISCARD,
    Discarded,
    GroupLeft,
    GroupSignal,
    GroupView,
    Word,
    read_sender,
)

from .roster import Key, Member, Roster


class Out(NamedTuple):
    """For these sessions of this daemon."""

    sessions: tuple[int, ...]
    what: Word | Deliver


Members = dict[Key, Member]


class Groups:
    def __init__(self, me: Life, count: Count) -> None:
        self._me = me
        self._count = count
        self.roster = Roster(me)
        self.addresses: dict[str, int] = {}
        """The private addresses of this daemon, and whose they are."""

    # --- in a working view

    def deliver(self, effect: Deliver) -> list[Out]:
        kind = effect.bundle.kind
        if kind is Kind.MESSAGES:
            return told(effect, self._me, self._receivers(effect.bundle))
        if kind is Kind.JOIN:
            return self._join(effect)
        if kind is Kind.LEAVE:
            return self._leave(effect)
        if kind is Kind.DISCONNECT:
            return self._disconnect(effect)
        return []

    def _receivers(self, bundle: Bundle) -> tuple[int, ...]:
        local = self.roster.local
        if len(bundle.groups) == 1 and not is_private(bundle.groups[0]):
            return local(bundle.groups[0])
        return gathered(bundle, {group: local(group) for group in bundle.groups}, self.addresses)

    def _join(self, effect: Deliver) -> list[Out]:
        bundle, (group,) = effect.bundle, effect.bundle.groups
        before = self.roster.members(group)
        old, local = names(before.values()), self.roster.local(group)
        member = _joiner(effect)
        if not self.roster.join(group, member):
            return []
        view = self._view(effect, group, "join", member.process)
        outs = [Out(local, view(old))] if local else []
        if bundle.origin == self._me:
            outs.append(Out((bundle.session,), view((member.process,))))
        return outs

    def _leave(self, effect: Deliver) -> list[Out]:
        bundle, (group,) = effect.bundle, effect.bundle.groups
        member = self.roster.leave(group, bundle.origin, bundle.session)
        if member is None:
            return []
        outs = []
        if bundle.origin == self._me:
            outs.append(Out((bundle.session,), GroupLeft(group, effect.view, bundle.stamp, bundle.site)))
        return outs + self._shrunk(effect, group, "leave", member.process)

    def _disconnect(self, effect: Deliver) -> list[Out]:
        outs: list[Out] = []
        for group in self.roster.groups_of(effect.bundle.origin, effect.bundle.session):
            member = self.roster.leave(group, effect.bundle.origin, effect.bundle.session)
            assert member is not None
            outs += self._shrunk(effect, group, "disconnect", member.process)
        return outs

    def _shrunk(self, effect: Deliver, group: str, cause: str, who: str) -> list[Out]:
        local = self.roster.local(group)
        rest = names(self.roster.members(group).values())
        return [Out(local, self._view(effect, group, cause, who)(rest))] if local else []

    def _view(self, effect: Deliver, group: str, cause: str, who: str) -> _LightView:
        members = names(self.roster.members(group).values())
        return _LightView(effect, group, members, cause, who)

    # --- a daemon change, as one step

    def change(self, after: list[Deliver], installed: Installed) -> list[Out]:
        """From the signal on: signals, what is left of the old view, and the new views of the groups touched."""
        step = Step(self._me, self.roster, installed, self.addresses)
        rest = [out for effect in after for out in step.deliver(effect)]
        self.roster.keep_only(life for life in installed.transitional)
        for life, declared in installed.joined:
            self.roster.adopt(life, declared)
        self._count.add("group merged after it shrank", step.merged_after_shrinking())
        self._count.add("several groups across a merge", step.several_groups if installed.joined else 0)
        return [*step.signals(), *rest, *step.views()]


class Step:
    """One daemon change: what was at the signal, what happened silently after it, what is new."""

    def __init__(self, me: Life, roster: Roster, installed: Installed, addresses: dict[str, int]) -> None:
        self._addresses = addresses
        self._me = me
        self._roster = roster
        self._installed = installed
        self._movers = frozenset(installed.transitional)
        self._at_signal: dict[str, Members] = {group: dict(roster.members(group)) for group in roster.local_groups()}
        # Who of ours is shown the rest of the old view, by group: those there at the signal, until they leave.
        self._present = {group: roster.local(group) for group in self._at_signal}
        self._busy: set[str] = set()
        self.several_groups = 0

    def deliver(self, effect: Deliver) -> list[Out]:
        bundle = effect.bundle
        if bundle.service >= Service.CAUSAL:
            self._busy.update(bundle.groups)
        if bundle.kind is Kind.MESSAGES:
            sessions = gathered(bundle, self._present, self._addresses)
            self.several_groups += bool(sessions) and len(bundle.groups) > 1
            return told(effect, self._me, sessions)
        if bundle.kind is Kind.JOIN:
            self._roster.join(bundle.groups[0], _joiner(effect))
        elif bundle.kind is Kind.LEAVE:
            return self._leave(effect, bundle.groups[0])
        elif bundle.kind is Kind.DISCONNECT:
            for group in self._roster.groups_of(bundle.origin, bundle.session):
                self._busy.add(group)
                self._remove(group, bundle)
        return []

    def _leave(self, effect: Deliver, group: str) -> list[Out]:
        bundle = effect.bundle
        if not self._remove(group, bundle) or bundle.origin != self._me:
            return []
        return [Out((bundle.session,), GroupLeft(group, effect.view, bundle.stamp, bundle.site))]

    def _remove(self, group: str, bundle: Bundle) -> bool:
        if self._roster.leave(group, bundle.origin, bundle.session) is None:
            return False
        if bundle.origin == self._me and group in self._present:
            self._present[group] = tuple(one for one in self._present[group] if one != bundle.session)
        return True

    # --- once the new roster is known

    def signals(self) -> list[Out]:
        return [
            Out(tuple(session for life, session in members if life == self._me), GroupSignal(group))
            for group, members in self._at_signal.items()
            if self._is_touched(group)
        ]

    def views(self) -> list[Out]:
        outs: list[Out] = []
        for group in sorted(self._roster.local_groups()):
            if group not in self._at_signal or self._is_touched(group):
                outs += self._network_view(group)
        return outs

    def merged_after_shrinking(self) -> int:
        """Groups that lost members in the same change that brought strangers."""
        strangers = {life for life, _ in self._installed.joined}
        return sum(
            any(key not in self._roster.members(group) for key in before)
            and any(life in strangers for life, _ in self._roster.members(group))
            for group, before in self._at_signal.items()
        )

    def _is_touched(self, group: str) -> bool:
        before, now = self._at_signal[group], self._roster.members(group)
        return group in self._busy or before != now or any(life not in self._movers for life, _ in before)

    def _network_view(self, group: str) -> list[Out]:
        before, now = self._at_signal.get(group, {}), self._roster.members(group)
        together = {key: member for key, member in now.items() if before.get(key) == member and key[0] in self._movers}
        view, detail = self._installed.view, self._installed.reason.value
        members = names(now.values())

        def shown(transitional: tuple[str, ...]) -> GroupView:
            return GroupView(group, view, *NET, members, transitional, "network", detail)

        stayed = tuple(session for life, session in together if life == self._me)
        outs = [Out(stayed, shown(names(together.values())))] if stayed else []
        new = [member for key, member in now.items() if key[0] == self._me and key not in together]
        return outs + [Out((member.session,), shown((member.process,))) for member in new]


class _LightView(NamedTuple):
    """The view that one ordered change makes, but for the transitional set, which is not the same for all."""

    effect: Deliver
    group: str
    members: tuple[str, ...]
    cause: str
    who: str

    def __call__(self, transitional: tuple[str, ...]) -> GroupView:
        bundle = self.effect.bundle
        return GroupView(
            self.group, self.effect.view, bundle.stamp, bundle.site, self.members, transitional, self.cause, self.who
        )


def gathered(bundle: Bundle, local: dict[str, tuple[int, ...]], addresses: dict[str, int]) -> tuple[int, ...]:
    """Everyone here it is for: each session once, however many of its destinations are its own."""
    sessions: dict[int, None] = {}
    for destination in bundle.groups:
        if is_private(destination):
            sessions.update(dict.fromkeys([addresses[destination]] if destination in addresses else ()))
        else:
            sessions.update(dict.fromkeys(local.get(destination, ())))
    return tuple(sessions)


def told(effect: Deliver, me: Life, sessions: tuple[int, ...]) -> list[Out]:
    """To all of them; a sender that does not want its messages back learns only where they took their place."""
    bundle = effect.bundle
    if not bundle.flags & SELF_DISCARD or bundle.origin != me or bundle.session not in sessions:
        return [Out(sessions, effect)] if sessions else []
    rest = tuple(session for session in sessions if session != bundle.session)
    b, view = bundle, effect.view
    own = Discarded(b.service, b.count, b.session_seq, view, b.stamp, b.site, b.groups)
    return [*([Out(rest, effect)] if rest else []), Out((bundle.session,), own)]


def names(members: Iterable[Member]) -> tuple[str, ...]:
    return tuple(sorted(member.process for member in members))


def _joiner(effect: Deliver) -> Member:
    bundle = effect.bundle
    place = Place(effect.view, bundle.stamp, bundle.site)
    return Member(bundle.origin, bundle.session, process_of(bundle, effect.payloads[0]), place)


def process_of(bundle: Bundle, payload: bytes | memoryview) -> str:
    """The client process a bundle comes from. Its daemon wrote or checked the name."""
    try:
        return read_sender(payload)
    except FrameError:
        return f"?@{bundle.origin.rank}:{bundle.origin.boot}.{bundle.session}"
