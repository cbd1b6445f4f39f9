"""Planted bugs of groups and sessions, switched on by name in tests only, and the guarantees that must catch them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from covey.ids import Life
from covey.protocol.clients import Clients
from covey.protocol.effects import Deliver, Installed
from covey.protocol.groups import layer
from covey.protocol.groups.layer import Groups, Out, Step
from covey.protocol.groups.roster import Member, Roster
from covey.protocol.inputs import Submit
from covey.protocol.session.session import Session
from covey.protocol.transport import queue
from covey.protocol.transport.queue import SubmitQueue, Waiting
from covey.protocol.values import Bundle, Kind, Service, SessionGroups
from covey.protocol.wire.session import GroupLeft, GroupSignal, GroupView

from .mutants import Mutant


def _rewritten(rewrite: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What clients are told, with each thing rewritten; None is not told."""

    def make(right: Any) -> Any:
        def told(self: Any, *arguments: Any) -> list[Out]:
            told_as: list[tuple[tuple[int, ...], Any]] = [
                (sessions, rewrite(what)) for sessions, what in right(self, *arguments)
            ]
            return [Out(sessions, what) for sessions, what in told_as if what is not None]

        return told

    return make


def _all_moved_together(what: Any) -> Any:
    return msgspec.structs.replace(what, transitional=what.members) if isinstance(what, GroupView) else what


def _same_cause(what: Any) -> Any:
    return msgspec.structs.replace(what, cause="join") if isinstance(what, GroupView) else what


def _no_self_leave(what: Any) -> Any:
    return None if isinstance(what, GroupLeft) else what


def _one_view_id(what: Any) -> Any:
    return msgspec.structs.replace(what, stamp=0, site=0) if isinstance(what, GroupView) else what


def _once_for_each_group(right: Any) -> Any:
    def gathered(bundle: Bundle, local: dict[str, tuple[int, ...]], addresses: dict[str, int]) -> tuple[int, ...]:
        return tuple(session for group in bundle.groups for session in local.get(group, ()))

    return gathered


def _light_views_after_the_signal(right: Any) -> Any:
    def change(self: Groups, after: list[Deliver], installed: Installed) -> list[Out]:
        early = [out for effect in after if effect.bundle.kind is Kind.JOIN for out in self.deliver(effect)]
        rest = [effect for effect in after if effect.bundle.kind is not Kind.JOIN]
        return early + right(self, rest, installed)  # type: ignore[no-any-return]

    return change


def _only_who_was_there(right: Any) -> Any:
    def is_touched(self: Step, group: str) -> bool:
        return bool(self._at_signal[group] != self._roster.members(group))

    return is_touched


def _members_only(right: Any) -> Any:
    def deliver(self: Groups, effect: Deliver) -> list[Out]:
        bundle = effect.bundle
        groups = self.roster.groups_of(bundle.origin, bundle.session)
        if self._me.rank % 2 and bundle.kind is Kind.MESSAGES and not set(groups) & set(bundle.groups):
            return []
        return right(self, effect)  # type: ignore[no-any-return]

    return deliver


def _at_most_one_session(right: Any) -> Any:
    def adopt(self: Roster, life: Life, declared: tuple[SessionGroups, ...]) -> None:
        right(self, life, declared[:1])

    return adopt


def _free_at_once(right: Any) -> Any:
    def depart(self: Clients, session: Session) -> None:
        right(self, session)
        self._free(session.number)

    return depart


def _crash_unnoticed(right: Any) -> Any:
    def change(self: Clients, session: Session, kind: Kind, groups: tuple[str, ...]) -> None:
        if kind is Kind.DISCONNECT:
            self._free(session.number)
        else:
            right(self, session, kind, groups)

    return change


def _joiners_hear_at_once(right: Any) -> Any:
    def deliver(self: Step, effect: Deliver) -> list[Out]:
        outs = right(self, effect)
        bundle = effect.bundle
        if bundle.kind is Kind.JOIN and bundle.origin == self._me:
            group = bundle.groups[0]
            self._present[group] = (*self._present.get(group, ()), bundle.session)
        return outs  # type: ignore[no-any-return]

    return deliver


def _leavers_still_hear(right: Any) -> Any:
    def remove(self: Step, group: str, bundle: Bundle) -> bool:
        return self._roster.leave(group, bundle.origin, bundle.session) is not None

    return remove


def _stays_after_leaving(right: Any) -> Any:
    def leave(self: Roster, group: str, life: Life, session: int) -> Member | None:
        member = right(self, group, life, session)
        if member is not None and life == self._me:
            self._local[group] = (*self.local(group), session)
        return member  # type: ignore[no-any-return]

    return leave


def _signal_first(right: Any) -> Any:
    """Every join and leave is treated like a change of the network."""

    def deliver(self: Groups, effect: Deliver) -> list[Out]:
        outs: list[Out] = []
        for out in right(self, effect):
            if isinstance(out.what, GroupView):
                outs.append(Out(out.sessions, GroupSignal(out.what.group)))
            outs.append(out)
        return outs

    return deliver


def _weak_changes(right: Any) -> Any:
    """Joins and leaves are not ordered with the messages."""

    def change(self: Clients, session: Session, kind: Kind, groups: tuple[str, ...]) -> None:
        submit = self._submit

        def weaker(one: Submit) -> str:
            return submit(msgspec.structs.replace(one, service=Service.RELIABLE))

        self._submit = weaker
        right(self, session, kind, groups)
        self._submit = submit

    return change


def _until_its_line_is_empty(right: Any) -> Any:
    """A session that has had its turn has the next one too."""

    def done(self: SubmitQueue, waiting: Waiting) -> None:
        right(self, waiting)
        turns = self._turns[waiting.priority]
        if waiting.session in turns:
            turns.remove(waiting.session)
            turns.appendleft(waiting.session)

    return done


CLIENT_MUTANTS: dict[str, Mutant] = {
    "joiners moved with everybody": Mutant(
        "S5", "the transitional set is all members", Groups, "deliver", _rewritten(_all_moved_together)
    ),
    "strangers moved with us": Mutant(
        "S5", "network views know no strangers", Step, "views", _rewritten(_all_moved_together)
    ),
    "signal for light changes": Mutant("C1", "a join or leave costs a signal", Groups, "deliver", _signal_first),
    "view ids repeat": Mutant("S3", "light views are all called net", Groups, "deliver", _rewritten(_one_view_id)),
    "light view after the signal": Mutant(
        "C3", "a join between signal and view is shown", Groups, "change", _light_views_after_the_signal
    ),
    "only some strangers adopted": Mutant("C3", "a merge forgets sessions", Roster, "adopt", _at_most_one_session),
    "agreed after the signal untouched": Mutant(
        "C2", "a group goes on though the daemons' view ended inside it", Step, "_is_touched", _only_who_was_there
    ),
    "every group touched": Mutant(
        "C4", "a daemon change is shown to all", Step, "_is_touched", lambda right: lambda self, group: True
    ),
    "wrong cause": Mutant("C5", "every view is called a join", Groups, "deliver", _rewritten(_same_cause)),
    "self leave forgotten": Mutant("C6", "nobody learns where it left", Groups, "_leave", _rewritten(_no_self_leave)),
    "crash unnoticed": Mutant("C7", "a crashed client stays a member", Clients, "_change", _crash_unnoticed),
    "name free at once": Mutant("C8", "a name is used before its departure", Clients, "_depart", _free_at_once),
    "some for members only": Mutant(
        "M8", "some daemons let only members send to a group", Groups, "deliver", _members_only
    ),
    "once for each group": Mutant("M9", "a message comes once for each group", layer, "gathered", _once_for_each_group),
    "joiners hear at once": Mutant(
        "S1", "who joins after the signal hears before its view", Step, "deliver", _joiners_hear_at_once
    ),
    "heard after leaving": Mutant("S1", "messages go on after the leave", Roster, "leave", _stays_after_leaving),
    "changes not ordered": Mutant("C2", "joins and leaves are only reliable", Clients, "_change", _weak_changes),
    "signal twice": Mutant(
        "S11", "the signal is told twice", Step, "signals", lambda right: lambda self: 2 * right(self)
    ),
    "priority starves": Mutant(
        "fairness", "a lower priority waits until no higher one does", queue, "PASSED_OVER_MAX", lambda right: 1 << 30
    ),
    "no turns": Mutant(
        "fairness", "a session goes on until its line is empty", SubmitQueue, "_done", _until_its_line_is_empty
    ),
}
