"""What one daemon change shows to the groups of this daemon: signals, the rest of the old view, network views.

In:        what was delivered after the signal, and the view that ends it; the roster, which it moves on.
Out:       `Out`s in the order to tell them; None where the work may be interrupted.
Not here:  light changes (layer.py).

Between a signal and the next daemon view nobody is shown a view: joins, leaves and disconnects ordered there are
applied silently, and show in the network view. A group that a daemon change does not touch hears nothing of it (C4): it
is touched if somebody is lost or comes, or if an agreed or safe message of it is delivered after the signal. Only those
groups cost anything here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from covey.protocol.counters import Counter
from covey.protocol.effects import Deliver, Installed
from covey.protocol.notices import NET, Difference, GroupSignalled, LeftGroup, Run, Views, WholeView
from covey.protocol.values import Bundle, Kind, Service

from .layer import Groups, Out, gathered, joined_by, names, told
from .roster import Key, Member

Members = dict[Key, Member]


class NetworkStep:
    """One daemon change: what was at the signal, what happened silently after it, what is new."""

    def __init__(self, groups: Groups, after: list[Deliver], installed: Installed) -> None:
        self._groups = groups
        self._me = groups.me
        self._addresses = groups.addresses
        self._roster = groups.roster
        self._count = groups.count
        self._after = after
        self._installed = installed
        self._movers = frozenset(installed.transitional)
        self._before: dict[str, Members] = {}
        """The members at the signal of each group touched that has, or gets, members here."""
        self._present: dict[str, Collection[int]] = {}
        """Of these groups: who of ours is shown the rest of the old view. Who leaves on the way is not."""
        self._joined_here = {
            effect.bundle.groups[0]
            for effect in after
            if effect.bundle.kind is Kind.JOIN and effect.bundle.origin == groups.me
        }

    def told(self) -> Iterator[Out | None]:
        self._groups.forget_rolls()
        yield from self.look()
        yield from self.signals()
        for effect in self._after:
            yield from self.deliver(effect)
        yield from self.move()
        yield from self.views()

    # --- which groups are touched

    def look(self) -> Iterator[None]:
        """Note each group touched, as it is at the signal."""
        for group in self._touched():
            is_ours = group in self._joined_here or bool(self._roster.local(group))
            if is_ours and group not in self._before:
                self._before[group] = dict(self._roster.members(group))
                self._present[group] = tuple(self._roster.local(group))
            yield

    def _touched(self) -> Iterator[str]:
        roster = self._roster
        for effect in self._after:
            yield from self._touched_by(effect.bundle)
        for life in roster.lives():
            for session in roster.sessions_of(life) if life not in self._movers else ():
                yield from roster.groups_of(life, session)
        for _, pages in self._installed.joined:
            for page in pages:
                yield from (stay.group for stay in page)

    def _touched_by(self, bundle: Bundle) -> Iterator[str]:
        """Requests to wait are for daemons: no client sees them."""
        if bundle.service >= Service.CAUSAL and bundle.kind not in (Kind.BLOCK, Kind.UNBLOCK):
            yield from bundle.groups
        if bundle.kind is Kind.DISCONNECT:
            yield from self._roster.groups_of(bundle.origin, bundle.session)

    # --- what is told

    def signals(self) -> Iterator[Out]:
        for group, present in self._present.items():
            if present:
                yield Out(present, GroupSignalled(group))

    def deliver(self, effect: Deliver) -> Iterator[Out | None]:
        bundle = effect.bundle
        if bundle.kind is Kind.MESSAGES:
            yield from self._message(effect)
        elif bundle.kind is Kind.JOIN:
            self._roster.join(bundle.groups[0], joined_by(effect))
        elif bundle.kind is Kind.LEAVE:
            yield from self._leave(effect, bundle.groups[0])
        elif bundle.kind is Kind.DISCONNECT:
            for group in self._roster.groups_of(bundle.origin, bundle.session):
                self._remove(group, bundle)
                yield None
        yield None

    def _message(self, effect: Deliver) -> Iterator[Out]:
        bundle = effect.bundle
        local = {group: self._present.get(group, self._roster.local(group)) for group in bundle.groups}
        sessions = gathered(bundle, local, self._addresses)
        if sessions and len(bundle.groups) > 1 and self._installed.joined:
            self._count.add(Counter.SEVERAL_GROUPS_ACROSS_MERGE)
        if self._groups.is_whole(bundle, sessions):
            yield from told(effect, self._me, sessions)

    def _leave(self, effect: Deliver, group: str) -> Iterator[Out]:
        bundle = effect.bundle
        if self._remove(group, bundle) and bundle.origin == self._me:
            yield Out((bundle.session,), LeftGroup(group, effect.view, bundle.stamp, bundle.site))

    def _remove(self, group: str, bundle: Bundle) -> bool:
        if self._roster.leave(group, bundle.origin, bundle.session) is None:
            return False
        if bundle.origin == self._me and group in self._present:
            self._present[group] = tuple(one for one in self._present[group] if one != bundle.session)
        return True

    def move(self) -> Iterator[None]:
        """Who did not move with us is gone, and those from other views are here."""
        yield from self._roster.part_with(self._movers)
        for life, pages in self._installed.joined:
            for page in pages:
                self._roster.adopt(life, page)
                yield from [None] * len(page)

    def views(self) -> Iterator[Out | None]:
        strangers = {life for life, _ in self._installed.joined}
        for group, before in sorted(self._before.items()):
            now = self._roster.members(group)
            if any(key not in now for key in before) and any(life in strangers for life, _ in now):
                self._count.add(Counter.GROUP_MERGED_AFTER_SHRINKING)
            if self._roster.local(group):
                yield from self._network_view(group, before, now)
            yield None

    def _network_view(self, group: str, before: Members, now: Members) -> Iterator[Out]:
        together = {key: member for key, member in now.items() if before.get(key) == member and key[0] in self._movers}
        stayed = tuple(session for life, session in together if life == self._me)
        if stayed:
            yield Out(stayed, self._for_who_stayed(group, before, now, together))
        members = names(now.values())
        for key, member in now.items():
            if key[0] == self._me and key not in together:
                yield Out((member.session,), self._whole(group, members, (member.process,)))

    def _for_who_stayed(self, group: str, before: Members, now: Members, together: Members) -> WholeView | Views:
        """What is shorter: all members, or who came and went."""
        was, moved = {member.process for member in before.values()}, set(names(together.values()))
        members = names(now.values())
        came = tuple(name for name in members if name not in was)
        apart = tuple(name for name in members if name in was and name not in moved)
        gone = tuple(sorted(was.difference(members)))
        if len(came) + len(apart) + len(gone) >= len(members) + len(moved):
            return self._whole(group, members, names(together.values()))
        run = Run(group)
        difference = Difference(self._installed.view, *NET, came, gone, apart, "network", self._installed.reason.value)
        run.add(difference, now)
        return Views(run, 0, 1)

    def _whole(self, group: str, members: tuple[str, ...], transitional: tuple[str, ...]) -> WholeView:
        view, detail = self._installed.view, self._installed.reason.value
        return WholeView(group, view, *NET, members, transitional, "network", detail)
