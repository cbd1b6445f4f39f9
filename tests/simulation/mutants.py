"""Planted protocol bugs, switched on by name in tests only. Each must be caught by the guarantee it names.

A mutant replaces one small part of the engine while it is applied; the product knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from covey.ids import INFINITE, Ballot, Life
from covey.protocol.counters import Dropped
from covey.protocol.deadlines import DeadlineTable
from covey.protocol.effects import Deliver, Effect, Installed
from covey.protocol.evs.deadlines import EvsDeadline
from covey.protocol.evs.decisions import Attempt, Begin, FrameOutcome, Outcome
from covey.protocol.evs.engine import EvsEngine
from covey.protocol.evs.exchange import Exchange
from covey.protocol.evs.flow import Flow
from covey.protocol.evs.frames import Alive, Data, NewMemb, Stated, Token, Unreliable
from covey.protocol.evs.links import floors
from covey.protocol.evs.links.lines import Lines
from covey.protocol.evs.links.ring import Ring
from covey.protocol.evs.membership import gathering
from covey.protocol.evs.membership.hearing import Hearing
from covey.protocol.evs.membership.machine import Machine
from covey.protocol.evs.membership.merging import Merging
from covey.protocol.evs.ordering import recovery
from covey.protocol.evs.ordering.log import SiteLog
from covey.protocol.evs.ordering.order import ViewOrder
from covey.protocol.evs.ordering.recovery import RecoveryPlan
from covey.protocol.evs.ordering.sessions import SessionOrder
from covey.protocol.evs.ordering.stability import Stability
from covey.protocol.evs.overlay import overlay
from covey.protocol.evs.stamping import token
from covey.protocol.evs.states import Reason
from covey.protocol.evs.unreliable import UnreliableStreams
from covey.protocol.inputs import Submit
from covey.protocol.transport.queue import SubmitQueue, Waiting
from covey.protocol.values import Announcement, Bundle, Declaration, Delivery, Position, Service
from covey.protocol.wire.bundles import read_bundle


class Mutant(NamedTuple):
    guarantee: str
    """The guarantee that must catch it."""
    what: str
    where: Any
    name: str
    make: Callable[[Any], Any]
    """From the right function (or value) to the wrong one."""

    @contextmanager
    def applied(self) -> Iterator[None]:
        right = self.where.__dict__[self.name] if isinstance(self.where, type) else getattr(self.where, self.name)
        setattr(self.where, self.name, self.make(right))
        try:
            yield
        finally:
            setattr(self.where, self.name, right)


def _one_less(right: Any) -> Any:
    return lambda number, last: right(max(0, number - 1), last)


def _any_data_will_do(right: Any) -> Any:
    def on_data(self: Ring, frame: Data, datagram: bytes, now_us: int, deadlines: DeadlineTable) -> Any:
        deadlines.clear(EvsDeadline.TOKEN_RESEND)
        return right(self, frame, datagram, now_us, deadlines)

    return on_data


def _no_window(right: Any) -> Any:
    def is_possible(self: Ring, token: Token) -> bool:
        return right(self, token) and token.packet_seq <= self.have_to + 3

    return is_possible


_PASSED: WeakKeyDictionary[SubmitQueue, int] = WeakKeyDictionary()


def _passed(queue: SubmitQueue) -> int:
    return _PASSED.get(queue, 0)


def _sixty_go_first(right: Any) -> Any:
    """A daemon's session 1 waits until sixty others were served, whether they are there or not."""

    def peek(self: SubmitQueue) -> Waiting | None:
        mine = self._of_session.get(1)
        if self._next is not None or mine is None or _passed(self) >= 60:
            if self._next is None and mine is not None:
                _PASSED[self] = 0
            return right(self)  # type: ignore[no-any-return]
        others = [(priority, number) for priority, turns in enumerate(self._turns) for number in turns if number != 1]
        if not others:
            return None
        self._priority, number = others[0]
        turns = self._turns[self._priority]
        while turns[0] != number:
            turns.rotate(-1)
        _PASSED[self] = _passed(self) + 1
        self._next = self._of_session[number][0]
        return self._next

    return peek


def _one_line_will_do(right: Any) -> Any:
    def least(self: Lines, mine: int) -> int:
        return min(mine, max(self._lines.values()))

    return least


def _received_is_held(right: Any) -> Any:
    def say(self: token.TokenStamper, safe_waits: bool, now_us: int) -> Any:
        return self.ring.acknowledge(self._flow.order._highest) if safe_waits else []

    return say


def _seen_again(right: Any) -> Any:
    def revise(self: floors.TwoVisits, value: int) -> None:
        self.see(value)

    return revise


def _always(value: object) -> Callable[[Any], Any]:
    return lambda right: lambda *arguments, **named: value


def _forget_what_waits(right: Any) -> Any:
    def begin_again(self: SubmitQueue) -> bool:
        while self.next_service() is not None:
            self.take(0, 0, 0)
        return right(self)  # type: ignore[no-any-return]

    return begin_again


def _install_as(rewrite: Callable[[Ballot, list[Outcome]], list[Outcome]]) -> Callable[[Any], Any]:
    """The atomic step of a new view, with its effects rewritten."""

    def make(right: Any) -> Any:
        def install(self: EvsEngine, now_us: int) -> list[Outcome]:
            assert self.exchange is not None
            return rewrite(self.exchange.attempt.ballot, right(self, now_us))

        return install

    return make


def _unreliable_without_view(right: Any) -> Any:
    def send_unreliable(self: EvsEngine, submit: Submit) -> list[Effect]:
        if not self.machine.active:
            s = submit
            bundle = self.operation.unreliable.make(s.session, s.session_seq, s.count, s.groups, s.payload)
            return self.operation.send_unreliable(Unreliable(self.machine.view, bundle))
        return right(self, submit)  # type: ignore[no-any-return]

    return send_unreliable


def _propose_for_others(right: Any) -> Any:
    def propose(self: Machine, members: tuple[Life, ...], now_us: int) -> list[Outcome]:
        others = tuple(life for life in members if life != self.kit.me)
        return right(self, others or members, now_us)  # type: ignore[no-any-return]

    return propose


def _small_ballots(right: Any) -> Any:
    def propose(self: Machine, members: tuple[Life, ...], now_us: int) -> list[Outcome]:
        self.promised = Ballot(0, 0, 0)
        self.counter = (self.counter + 7) % 10
        return right(self, members, now_us)  # type: ignore[no-any-return]

    return propose


def _any_ballot(right: Any) -> Any:
    def on_new_memb(self: Machine, sender: Life, frame: NewMemb, now_us: int) -> list[Outcome]:
        if frame.attempt == self.promised or self.kit.me not in frame.members:
            return []
        attempt = Attempt(frame.attempt, frame.members, frame.links)
        return [*self._promise(attempt, Reason.PROMISED, now_us), Begin(attempt)]

    return on_new_memb


def _nobody_proposes(right: Any) -> Any:
    def propose(self: Machine, members: tuple[Life, ...], now_us: int) -> list[Outcome]:
        ballot = Ballot(max(self.counter, self.promised.counter) + 1, 0, 0)
        attempt = Attempt(ballot, members, overlay(self.kit.cluster, members))
        return [*self._promise(attempt, Reason.PROPOSED, now_us), *self.proposal(members), Begin(attempt)]

    return propose


def _whoever_proposes(right: Any) -> Any:
    def on_new_memb(self: Machine, sender: Life, frame: NewMemb, now_us: int) -> list[Outcome]:
        if frame.attempt <= self.promised or self.kit.me not in frame.members:
            return []
        attempt = Attempt(frame.attempt, frame.members, frame.links)
        return [*self._promise(attempt, Reason.PROMISED, now_us), Begin(attempt)]

    return on_new_memb


def _moved_if_member_of_both(right: Any) -> Any:
    def make_plan(self: Exchange) -> None:
        right(self)
        assert self.plan is not None
        both = tuple(life for life in self.attempt.members if life in self._old.members)
        self.plan = msgspec.structs.replace(self.plan, movers=both)

    return make_plan


def _forget_early(right: Any) -> Any:
    def finish(self: SessionOrder, delivery: Delivery) -> None:
        last = delivery.bundle
        for number in range(last.fifo_number - last.fragments + 1, last.fifo_number + 1):
            self._mark(number)

    return finish


def _reversed_fragments(right: Any) -> Any:
    def whole(self: SessionOrder, bundle: Bundle) -> Delivery | None:
        delivery = right(self, bundle)
        return None if delivery is None else Delivery(delivery.bundle, delivery.payloads[::-1])

    return whole


def _rest_after_view(view: Ballot, effects: list[Outcome]) -> list[Outcome]:
    at = next(index for index, effect in enumerate(effects) if isinstance(effect, Installed))
    late = [effect for effect in effects[:at] if isinstance(effect, Deliver)]
    rest = [effect for effect in effects if effect not in late]
    return [*rest, *(Deliver(view, one.bundle, one.payloads) for one in late)]


def _new_data_in_old_view(right: Any) -> Any:
    def on_view_frame(self: EvsEngine, sender: Life, frame: Any, data: bytes, now_us: int) -> list[Effect]:
        early: list[Effect] = []
        if self.exchange is not None and frame.view == self.exchange.attempt.ballot and isinstance(frame, Data):
            for chunk in frame.chunks:
                if chunk.pieces == 1:
                    assert not isinstance(chunk.data, tuple)
                    bundle = read_bundle(memoryview(chunk.data))
                    early.append(Deliver(self.machine.view, bundle, (bundle.payload,)))
        return early + right(self, sender, frame, data, now_us)  # type: ignore[no-any-return]

    return on_view_frame


def _aru_alone(right: Any) -> Any:
    def signal_position(declarations: dict[Life, Declaration]) -> Position:
        return max(Position(declaration.aru, INFINITE) for declaration in declarations.values())

    return signal_position


def _nothing_above_hole(right: Any) -> Any:
    def survives(self: ViewOrder, bundle: Bundle, plan: RecoveryPlan) -> bool:
        return bundle.stamp <= self._hole_line or bundle.service is Service.RELIABLE

    return survives


def _reliable_needs_commit(right: Any) -> Any:
    def survives(self: ViewOrder, bundle: Bundle, plan: RecoveryPlan) -> bool:
        if bundle.service is Service.RELIABLE and bundle.stamp > self._hole_line:
            return bundle.origin in plan.commit
        return right(self, bundle, plan)  # type: ignore[no-any-return]

    return survives


def _safe_waits_for_one_more(right: Any) -> Any:
    return lambda self: min(self._lines.values()) - 1


def _forget_plan(right: Any) -> Any:
    def make_plan(self: Exchange) -> None:
        right(self)
        self._missing = {}

    return make_plan


def _fifo_like_reliable(right: Any) -> Any:
    def early(self: ViewOrder, bundle: Bundle) -> list[Delivery]:
        session = self._session(bundle)
        delivery = session.whole(bundle)
        if delivery is None:
            return []
        session.finish(delivery)
        return [self._note_early(delivery)]

    return early


def _agreed_counts_as_done(right: Any) -> Any:
    def hold(self: SessionOrder, bundle: Bundle) -> bool:
        held = right(self, bundle)
        if bundle.service >= Service.CAUSAL:
            self._mark(bundle.fifo_number)
        return bool(held)

    return hold


def _one_visit(right: Any) -> Any:
    def see(self: floors.TwoVisits, value: int) -> int:
        self.usable = max(self.usable, value)
        return self.usable

    return see


def _accept_when_frozen(right: Any) -> Any:
    def on_view_frame(self: EvsEngine, sender: Life, frame: Any, data: bytes, now_us: int) -> list[Effect | Dropped]:
        if frame.view == self.machine.view and isinstance(frame, Data) and self.operation.order.frozen:
            self.operation.order.frozen = False
            effects = self.operation.on_data(sender, frame, data, now_us)
            self.operation.order.frozen = True
            return effects
        return right(self, sender, frame, data, now_us)  # type: ignore[no-any-return]

    return on_view_frame


def _announce_despite_gap(right: Any) -> Any:
    def announce(self: SiteLog, announcement: Announcement) -> None:
        self.frontier = max(self.frontier, announcement.last)

    return announce


def _heard_is_enough(right: Any) -> Any:
    def two_way(self: Hearing, rank: int, now_us: int) -> bool:
        peer = self.peers.get(rank)
        return peer is not None and now_us - peer.heard_us <= peer.timeout_us

    return two_way


def _highest_frontier(right: Any) -> Any:
    return lambda self: max(*(log.frontier for log in self.logs.values()), self._highest)


def _one_word_is_enough(right: Any) -> Any:
    def add(near: dict[int, frozenset[int]], chosen: list[int], more: list[int]) -> None:
        pairs = [(one, other) for one in more for other in chosen]
        if set(more).isdisjoint(chosen) and all(b in near.get(a, ()) or a in near.get(b, ()) for a, b in pairs):
            chosen.extend(more)

    return add


def _token_without_stamp(right: Any) -> Any:
    def hold(self: Ring, token: Token, now_us: int, deadlines: DeadlineTable) -> None:
        right(self, msgspec.structs.replace(token, stamp=0), now_us, deadlines)

    return hold


def _forget_high(right: Any) -> Any:
    def on_stated(self: Exchange, sender: Life, stated: Stated, now_us: int) -> list[FrameOutcome]:
        declaration = msgspec.structs.replace(stated.declaration, high=0)
        forgetful = msgspec.structs.replace(stated, declaration=declaration)
        return right(self, sender, forgetful, now_us)  # type: ignore[no-any-return]

    return on_stated


def _deaf_to_clocks(right: Any) -> Any:
    def on_alive(self: Machine, sender: Life, alive: Alive, now_us: int) -> list[Effect]:
        return right(self, sender, msgspec.structs.replace(alive, clock=0), now_us)  # type: ignore[no-any-return]

    return on_alive


def _declare_without_commit(right: Any) -> Any:
    def declare(self: ViewOrder, high: int, commit: frozenset[Life]) -> Declaration:
        return right(self, high, [self._me])  # type: ignore[no-any-return]

    return declare


MUTANTS: dict[str, Mutant] = {
    "unreliable sent without a view": Mutant(
        "S1", "no view is needed to send", EvsEngine, "send_unreliable", _unreliable_without_view
    ),
    "self left out of the view": Mutant(
        "S2", "a representative proposes only those it has gathered", Machine, "_propose", _propose_for_others
    ),
    "view id reused": Mutant("S3", "proposals use small counters again and again", Machine, "_propose", _small_ballots),
    "view id without its proposer": Mutant(
        "S4", "two parts of the network count alike", Machine, "_propose", _nobody_proposes
    ),
    "in both views is moved together": Mutant(
        "S5", "the transitional set is an intersection of members", Exchange, "_make_plan", _moved_if_member_of_both
    ),
    "early delivery forgotten": Mutant(
        "S6", "what came early comes again at its place", SessionOrder, "finish", _forget_early
    ),
    "fragments in reverse": Mutant(
        "S7", "a large message is put together backwards", SessionOrder, "whole", _reversed_fragments
    ),
    "recovered data dropped": Mutant("S8", "resent bundles are thrown away", ViewOrder, "recover", _always(None)),
    "done without recovery": Mutant("S8", "DONE is said with bundles missing", Exchange, "_make_plan", _forget_plan),
    "originals taken when frozen": Mutant(
        "S8", "delayed data changes the frozen set", EvsEngine, "_on_view_frame", _accept_when_frozen
    ),
    "rest after the view": Mutant(
        "S9", "leftovers are delivered in the next view", EvsEngine, "_install", _install_as(_rest_after_view)
    ),
    "new data in the old view": Mutant(
        "S10", "data of the next view is delivered too soon", EvsEngine, "_on_view_frame", _new_data_in_old_view
    ),
    "signal at the ARU": Mutant(
        "S11", "what co-movers delivered does not move the signal", recovery, "_signal_position", _aru_alone
    ),
    "commit forgotten": Mutant(
        "S12", "above a hole our own agreed messages are dropped", ViewOrder, "_survives", _nothing_above_hole
    ),
    "retransmission skipped": Mutant(
        "S13", "nobody answers requests", Ring, "_answer", lambda right: lambda self, token: ([], token.requests)
    ),
    "safe waits for one more": Mutant(
        "S13", "the last safe message is never delivered", Stability, "safe_line", _safe_waits_for_one_more
    ),
    "never merge": Mutant("S14", "strangers are ignored", Merging, "is_possible", _always(False)),
    "heard is enough": Mutant("S15", "one-way links count as links", Hearing, "two_way", _heard_is_enough),
    "unreliable twice": Mutant(
        "M1", "repeated datagrams are delivered again", UnreliableStreams, "is_new", _always(True)
    ),
    "reliable needs commit": Mutant(
        "M2", "reliable messages above a hole are dropped", ViewOrder, "_survives", _reliable_needs_commit
    ),
    "fifo like reliable": Mutant("M3", "fifo does not wait for its session", ViewOrder, "_early", _fifo_like_reliable),
    "past not awaited": Mutant(
        "M4", "agreed is stamped without its past", ViewOrder, "past_is_complete", _always(True)
    ),
    "token without stamp": Mutant("M5", "a stamp may fall below one already used", Ring, "hold", _token_without_stamp),
    "stamps not raised for a new view": Mutant(
        "M5", "what co-movers have seen is forgotten in the next view", Exchange, "_on_stated", _forget_high
    ),
    "what waits is forgotten": Mutant(
        "S15", "a new view begins with an empty queue", SubmitQueue, "begin_again", _forget_what_waits
    ),
    "nothing is stamped": Mutant("S15", "what waits is never sent", Flow, "may_stamp", _always(False)),
    "delivered after a hole": Mutant(
        "M5", "agreed does not wait for what is missing", ViewOrder, "line", _highest_frontier
    ),
    "announcement despite a gap": Mutant(
        "M5", "an announcement counts before its bundles are here", SiteLog, "announce", _announce_despite_gap
    ),
    "safe at agreed": Mutant(
        "M6", "safe does not wait for stability", ViewOrder, "safe_line", lambda right: lambda self: self.line()
    ),
    "one token's ARU": Mutant("M6", "one visit is trusted instead of two", floors.TwoVisits, "see", _one_visit),
    "fifo overtakes agreed": Mutant(
        "M7", "agreed messages do not hold up their session", SessionOrder, "hold", _agreed_counts_as_done
    ),
}

COMPANIONS: dict[str, Mutant] = {
    "stamps not raised for a new view": Mutant(
        "M5", "clocks do not follow ALIVEs", Machine, "on_alive", _deaf_to_clocks
    ),
    "view id reused": Mutant("S3", "any proposal is accepted", Machine, "on_new_memb", _any_ballot),
    "view id without its proposer": Mutant(
        "S4", "a proposal of anybody counts", Machine, "on_new_memb", _whoever_proposes
    ),
    "heard is enough": Mutant("S15", "one daemon's word is enough", gathering, "_add_if_mutual", _one_word_is_enough),
}
"""Second halves of bugs that need two places."""

MUTANTS |= {
    "announced one too early": Mutant(
        "M6", "the token's word covers a stamp whose bundle is missing", token, "Announcement", _one_less
    ),
    "no word is overdue": Mutant(
        "steadiness", "what was lost is said again at the usual time only", Hearing, "is_overdue", _always(False)
    ),
    "any data shows the token": Mutant(
        "steadiness", "a packet of anybody ends the wait for the successor", Ring, "on_data", _any_data_will_do
    ),
    "nobody asks for the token": Mutant("progress", "a parked token stays where it is", Ring, "hurry", _always([])),
    "sixty go first": Mutant(
        "progress", "one session is passed over, though others have turns", SubmitQueue, "_peek", _sixty_go_first
    ),
    "two turns are two visits": Mutant(
        "M6", "what is sent while the token stays is believed to be everywhere", floors.TwoVisits, "revise", _seen_again
    ),
    "one line will do": Mutant(
        "M6", "a safe message is delivered when one other has told its line", Lines, "least", _one_line_will_do
    ),
    "an honest token is refused": Mutant(
        "blame", "a few lost packets make a token impossible", Ring, "_is_possible", _no_window
    ),
}
"""Bugs of what no trace tells, and one that needs a daemon from which data is kept."""

STORY_MUTANTS: dict[str, tuple[Mutant, str]] = {
    "commit not exchanged": (
        Mutant(
            "M6", "what an attempt promised is forgotten in the next", ViewOrder, "declare", _declare_without_commit
        ),
        "committed_to_one_who_is_gone",
    ),
    "frontiers not raised when done": (
        Mutant("M6", "what an attempt knew of the sites is forgotten", ViewOrder, "be_done", _always(None)),
        "cut_between_the_dones",
    ),
    "announced one too early": (MUTANTS["announced one too early"], "safe_kept_from_one"),
    "received is held": (
        Mutant("M6", "a line is told despite a gap", token.TokenStamper, "_say_to_who_keeps_it", _received_is_held),
        "safe_behind_a_gap",
    ),
}
"""Bugs that show in a chain of events too rare for fifty seeds: each is caught by `check` at the end of a story."""
