"""Planted bugs of groups and sessions, switched on by name in tests only, and the guarantees that must catch them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Any

import msgspec

from covey.ids import Life
from covey.protocol import requests
from covey.protocol.admission import Admission
from covey.protocol.asked import Sending
from covey.protocol.desk import Desk
from covey.protocol.dialects.joining import Joining
from covey.protocol.effects import Deliver
from covey.protocol.groups import layer
from covey.protocol.groups.layer import Groups, Out, names
from covey.protocol.groups.roster import Member, Roster
from covey.protocol.groups.step import Members, NetworkStep
from covey.protocol.inputs import Submit
from covey.protocol.notices import NET, Difference, GroupSignalled, LeftGroup, Run, Views, WholeView
from covey.protocol.session.problems import Destinations
from covey.protocol.session.session import ClientSession
from covey.protocol.session.slow import SlowClients
from covey.protocol.telling import NextView, Passed, Telling, Told
from covey.protocol.transport import queue
from covey.protocol.transport.queue import SubmitQueue, Waiting
from covey.protocol.values import Bundle, Kind, Service, Stay
from covey.protocol.wire.session import SENDING

from .mutants import Mutant


def _rewritten(rewrite: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What clients are told, with each thing rewritten; None is not told."""

    def make(right: Any) -> Any:
        def told(self: Any, *arguments: Any) -> Iterator[Out | None]:
            for out in right(self, *arguments):
                what = None if out is None else rewrite(out.what)
                yield Out(out.sessions, what) if what is not None else None

        return told

    return make


def _views_as(rewrite: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Each view rewritten, whole or as a difference; nothing else is."""

    def rewritten(what: Any) -> Any:
        if isinstance(what, WholeView):
            return rewrite(what)
        return _run_of(what.run.group, map(rewrite, what.differences)) if isinstance(what, Views) else what

    return rewritten


def _run_of(group: str, differences: Iterable[Difference]) -> Views:
    run = Run(group)
    for difference in differences:
        run.add(difference, {})
    return Views(run, 0, len(run))


def _with(what: WholeView | Difference, **fields: Any) -> WholeView | Difference:
    return what._replace(**fields)


def _all_moved_together(what: Any) -> Any:
    return what._replace(transitional=what.names()) if isinstance(what, WholeView) else what


def _nobody_is_a_stranger(right: Any) -> Any:
    """Whole lists instead of differences: only they can call somebody new one who moved with us."""

    def for_who_stayed(self: NetworkStep, group: str, before: Members, now: Members, together: Members) -> WholeView:
        return self._whole(group, names(now.values()), names(now.values()))

    return for_who_stayed


def _same_cause(what: Any) -> Any:
    return _with(what, cause="join")


def _no_self_leave(what: Any) -> Any:
    return None if isinstance(what, LeftGroup) else what


def _one_view_id(what: Any) -> Any:
    return _with(what, stamp=NET[0], site=NET[1])


def _nobody_is_apart(what: Any) -> Any:
    return what._replace(apart=()) if isinstance(what, Difference) else what


def _once_for_each_group(right: Any) -> Any:
    def gathered(bundle: Bundle, local: dict[str, Collection[int]], addresses: dict[str, int]) -> tuple[int, ...]:
        return tuple(session for group in bundle.groups for session in local.get(group, ()))

    return gathered


def _light_views_after_the_signal(right: Any) -> Any:
    def next_view(self: Telling, coming: NextView) -> Iterator[Told | Passed]:
        for effect in coming.after:
            if effect.bundle.kind is Kind.JOIN:
                yield from self._all(self._groups.changed([effect]))
        rest = [effect for effect in coming.after if effect.bundle.kind is not Kind.JOIN]
        yield from right(self, NextView(rest, coming.installed))

    return next_view


def _only_who_was_there(right: Any) -> Any:
    def touched_by(self: NetworkStep, bundle: Bundle) -> Iterator[str]:
        if bundle.kind is not Kind.MESSAGES:
            yield from right(self, bundle)

    return touched_by


def _all_touched(right: Any) -> Any:
    def touched(self: NetworkStep) -> Iterator[str]:
        yield from self._roster.local_groups()
        yield from right(self)

    return touched


def _members_only(right: Any) -> Any:
    def message(self: Groups, effect: Deliver) -> list[Out]:
        bundle = effect.bundle
        groups = self.roster.groups_of(bundle.origin, bundle.session)
        if self.me.rank % 2 and not set(groups) & set(bundle.groups):
            return []
        return right(self, effect)  # type: ignore[no-any-return]

    return message


def _at_most_one_session(right: Any) -> Any:
    def adopt(self: Roster, life: Life, declared: tuple[Stay, ...]) -> None:
        right(self, life, declared[:1])

    return adopt


def _free_at_once(right: Any) -> Any:
    def depart(self: Desk, session: ClientSession, why: str) -> None:
        right(self, session, why)
        self.free(session.number)

    return depart


def _crash_unnoticed(right: Any) -> Any:
    def submit_change(self: Desk, session: ClientSession, kind: Kind, groups: tuple[str, ...], why: str = "") -> None:
        if kind is Kind.DISCONNECT:
            self.free(session.number)
        else:
            right(self, session, kind, groups, why)

    return submit_change


def _joiners_hear_at_once(right: Any) -> Any:
    def deliver(self: NetworkStep, effect: Deliver) -> Iterator[Out | None]:
        yield from right(self, effect)
        bundle = effect.bundle
        if bundle.kind is Kind.JOIN and bundle.origin == self._me:
            group = bundle.groups[0]
            self._present[group] = (*self._present.get(group, ()), bundle.session)

    return deliver


def _stays_after_leaving(right: Any) -> Any:
    def leave(self: Roster, group: str, life: Life, session: int) -> Member | None:
        member = right(self, group, life, session)
        if member is not None and life == self._me:
            self._local.setdefault(group, {})[session] = None
        return member  # type: ignore[no-any-return]

    return leave


def _signal_first(right: Any) -> Any:
    """Every join and leave is treated like a change of the network."""

    def changed(self: Groups, effects: list[Deliver]) -> Iterator[Out | None]:
        for out in right(self, effects):
            if out is not None and isinstance(out.what, WholeView | Views):
                group = out.what.group if isinstance(out.what, WholeView) else out.what.run.group
                yield Out(out.sessions, GroupSignalled(group))
            yield out

    return changed


def _weak_changes(right: Any) -> Any:
    """Joins and leaves are not ordered with the messages."""

    def put(self: Admission, submit: Submit) -> None:
        is_change = submit.kind > Kind.MESSAGES
        right(self, msgspec.structs.replace(submit, service=Service.RELIABLE) if is_change else submit)

    return put


def _until_its_line_is_empty(right: Any) -> Any:
    """A session that has had its turn has the next one too."""

    def done(self: SubmitQueue, waiting: Waiting) -> None:
        right(self, waiting)
        turns = self._turns[waiting.priority]
        if waiting.session in turns:
            turns.remove(waiting.session)
            turns.appendleft(waiting.session)

    return done


def _next_begun_too_early(right: Any) -> Any:
    """The next item is begun, and told, before the last is done."""

    def following(self: Telling) -> Told | Passed | None:
        if self._portions is not None and self._waiting:
            self._portions = chain(self._begin(), self._portions)
        return right(self)  # type: ignore[no-any-return]

    return following


def _small_ones_pass(right: Any) -> Any:
    """Whoever fits is let in, however long somebody else waits for more room."""

    def admits(self: SubmitQueue, session: int, needed: int) -> bool:
        if self._fits(needed):
            self.give_up(session)
            return True
        return right(self, session, needed)  # type: ignore[no-any-return]

    return admits


def _who_came_back_was_there(right: Any) -> Any:
    def network_view(self: NetworkStep, group: str, before: Members, now: Members) -> Iterator[Out]:
        return right(self, group, {key: now.get(key, member) for key, member in before.items()}, now)  # type: ignore[no-any-return]

    return network_view


def _joined_if(field: str, where: slice) -> Callable[[Any], Any]:
    """What differs there is joined all the same."""

    def make(right: Any) -> Any:
        def take(self: Joining, code: int, body: memoryview) -> bool:
            if code == SENDING and len(body) > self._records_at:
                setattr(self, field, body[where.start : where.stop or self._records_at])
            return right(self, code, body)  # type: ignore[no-any-return]

        return take

    return make


def _joined_as(change: Callable[[Joining, Sending], Sending]) -> Callable[[Any], Any]:
    return lambda right: lambda self: change(self, right(self))


def _in_another_order(right: Any) -> Any:
    """The first message of a run stays first, the others come in reverse."""

    def run(self: Joining) -> Sending:
        self._parts[1:] = self._parts[:0:-1]
        return right(self)  # type: ignore[no-any-return]

    return run


def _in_the_place_before(right: Any) -> Any:
    """A run, joined or sent as one, has the fifo number of what its session sent before it."""

    def take(self: SubmitQueue, source: int, number: int, stamp: int) -> Any:
        run, numbers = self._peek(), self._fifo_numbers
        if run is not None and run.count > 1 and not run.taken and numbers.get(run.session, 0):
            numbers[run.session] -= 1
        return right(self, source, number, stamp)

    return take


def _one_is_too_few(right: Any) -> Any:
    def problem(session: ClientSession, sending: Sending, known: Destinations) -> str:
        return "it sent one message" if sending.messages == 1 else right(session, sending, known)

    return problem


CLIENT_MUTANTS: dict[str, Mutant] = {
    "who came back has stayed": Mutant(
        "C7",
        "who left and joined again after the signal is shown what came and went, not the whole view",
        NetworkStep,
        "_network_view",
        _who_came_back_was_there,
    ),
    "joined whatever the destinations": Mutant(
        "S7", "messages for different groups become one run", Joining, "take", _joined_if("_names", slice(14, None))
    ),
    "joined whatever the service": Mutant(
        "M5", "safe messages travel with agreed ones", Joining, "take", _joined_if("_head", slice(0, 2))
    ),
    "joined and counted once": Mutant(
        "blame",
        "a run has the count of its first",
        Joining,
        "run",
        _joined_as(lambda joining, run: run._replace(messages=1)),
    ),
    "joined under the last number": Mutant(
        "blame",
        "a run has the number of its last message",
        Joining,
        "run",
        _joined_as(lambda joining, run: run._replace(session_seq=run.session_seq + run.messages - 1)),
    ),
    "joined in another order": Mutant(
        "S7", "the messages of a run come in another order than they were sent", Joining, "run", _in_another_order
    ),
    "a run in the place before": Mutant(
        "M3",
        "a run takes the fifo place of what was sent before it, and so has none",
        SubmitQueue,
        "take",
        _in_the_place_before,
    ),
    "a single message is refused": Mutant(
        "blame", "a message that travels alone ends its session", requests, "sending_problem", _one_is_too_few
    ),
    "asks once only": Mutant(
        "progress",
        "a slow receiver does not ask again in a new view",
        SlowClients,
        "blocking",
        lambda right: lambda self: [],
    ),
    "joiners moved with everybody": Mutant(
        "S5", "the transitional set is all members", Groups, "changed", _rewritten(_all_moved_together)
    ),
    "strangers moved with us": Mutant(
        "S5", "network views know no strangers", NetworkStep, "_for_who_stayed", _nobody_is_a_stranger
    ),
    "apart forgotten": Mutant(
        "S5",
        "a difference does not say who did not move with us",
        NetworkStep,
        "views",
        _rewritten(_views_as(_nobody_is_apart)),
    ),
    "signal for light changes": Mutant("C1", "a join or leave costs a signal", Groups, "changed", _signal_first),
    "view ids repeat": Mutant(
        "S3", "light views are all called net", Groups, "changed", _rewritten(_views_as(_one_view_id))
    ),
    "light view after the signal": Mutant(
        "C3", "a join between signal and view is shown", Telling, "_next_view", _light_views_after_the_signal
    ),
    "only some strangers adopted": Mutant("C3", "a merge forgets sessions", Roster, "adopt", _at_most_one_session),
    "agreed after the signal untouched": Mutant(
        "C2",
        "a group goes on though the daemons' view ended inside it",
        NetworkStep,
        "_touched_by",
        _only_who_was_there,
    ),
    "every group touched": Mutant("C4", "a daemon change is shown to all", NetworkStep, "_touched", _all_touched),
    "wrong cause": Mutant("C5", "every view is called a join", Groups, "changed", _rewritten(_views_as(_same_cause))),
    "self leave forgotten": Mutant("C6", "nobody learns where it left", Groups, "changed", _rewritten(_no_self_leave)),
    "crash unnoticed": Mutant("C7", "a crashed client stays a member", Desk, "submit_change", _crash_unnoticed),
    "name free at once": Mutant("C8", "a name is used before its departure", Desk, "depart", _free_at_once),
    "some for members only": Mutant(
        "M8", "some daemons let only members send to a group", Groups, "message", _members_only
    ),
    "once for each group": Mutant("M9", "a message comes once for each group", layer, "gathered", _once_for_each_group),
    "joiners hear at once": Mutant(
        "S1", "who joins after the signal hears before its view", NetworkStep, "deliver", _joiners_hear_at_once
    ),
    "heard after leaving": Mutant("S1", "messages go on after the leave", Roster, "leave", _stays_after_leaving),
    "changes not ordered": Mutant("C2", "joins and leaves are only reliable", Admission, "put", _weak_changes),
    "signal twice": Mutant(
        "S11",
        "the signal is told twice",
        NetworkStep,
        "signals",
        lambda right: lambda self: iter(2 * list(right(self))),
    ),
    "told before the last is": Mutant(
        "M5", "what comes next is told before the last is done", Telling, "next", _next_begun_too_early
    ),
    "priority starves": Mutant(
        "fairness", "a lower priority waits until no higher one does", queue, "PASSED_OVER_MAX", lambda right: 1 << 30
    ),
    "small ones pass": Mutant(
        "fairness", "small messages pass a large one that waits for room", SubmitQueue, "admits", _small_ones_pass
    ),
    "no turns": Mutant(
        "fairness", "a session goes on until its line is empty", SubmitQueue, "_done", _until_its_line_is_empty
    ),
}
