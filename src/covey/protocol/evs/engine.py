"""Extended virtual synchrony: frames routed by the view or attempt they carry, and what membership decides.

In:        frames, deadlines, and what waits in the queue.  Out: effects.
Not here:  clients, admission, and datagrams that are no frames (the daemon around it).

The engine alone calls its layers: it lets membership decide, and carries out what it decided (exchange.py,
operation.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final

from covey.ids import Ballot, Instant, Life
from covey.protocol.boundary import EngineReport, Header
from covey.protocol.counters import Counter, Dropped
from covey.protocol.effects import Effect, Installed, Signal
from covey.protocol.evs.membership.machine import Machine
from covey.protocol.groups.declared import Declared
from covey.protocol.groups.exchange import StayTables
from covey.protocol.inputs import Submit
from covey.protocol.kit import Kit
from covey.protocol.transport.queue import SubmitQueue
from covey.protocol.values import GroupNews

from .causes import why_it_came
from .deadlines import WORKING, EvsDeadline
from .decisions import Attempt, Begin, Completed, Contradicted, Decision, FrameOutcome, Outcome, Planned, SaidDone
from .exchange import Exchange
from .frames import (
    Ack,
    Alive,
    Announce,
    AttemptFrame,
    Data,
    Done,
    Frame,
    Goodbye,
    GroupPart,
    Hurry,
    Join,
    NewMemb,
    Parked,
    PassedOn,
    Proceeding,
    Refuse,
    Resend,
    Token,
    Unreliable,
    Want,
    WantGroups,
)
from .kit import evs_kit
from .links.link import IdealLink
from .operation import Operation
from .sizes import check_sizes, part_bytes
from .states import Reason, State
from .ways import Ways

ViewFrame = Data | Unreliable | Announce | Parked | Hurry | Ack | Token
_OF_A_VIEW: Final = (Token, Data, Ack, Parked, Hurry, Unreliable, Announce)
_OF_A_SITE: Final = (Token, Ack, Parked, Hurry)
"""The most frequent first."""
_SHOWS_PROGRESS: Final = (Proceeding, Want, WantGroups, GroupPart, Resend)
"""Who says this gets on with the attempt: it is given its time again."""


class EvsEngine:
    def __init__(self, kit: Kit, queue: SubmitQueue, declared: Declared, start: Instant, seed: int) -> None:
        check_sizes(kit.cluster, kit.settings)
        self.kit = evs_kit(kit, start)
        self.decode: Callable[[bytes], Header] = self.kit.codec.decode
        self.machine = Machine(self.kit, counter=start.wall_us // 1_000_000, seed=seed)
        self._queue = queue
        self._declared = declared
        patience = self.machine.damping.token
        self.operation = Operation(self.kit, self.machine.view, self.machine.members, queue, 0, patience)
        self.operation.end()
        self._tables = StayTables()
        self.exchange: Exchange | None = None
        self._ways: Ways | None = None
        """Of the attempt under way, or of the view."""
        self._commit = frozenset([kit.me])
        self._first = True
        self._in_haste = False

    @property
    def is_working(self) -> bool:
        return self.machine.active

    @property
    def is_changing(self) -> bool:
        return self.machine.state is not State.OP

    @property
    def is_settled(self) -> bool:
        return self.operation.is_settled()

    def start(self, now_us: int) -> list[Effect]:
        return self._carry_out(self.machine.start(now_us), now_us)

    def report(self, now_us: int) -> EngineReport:
        machine, merging, exchange = self.machine, self.machine.merging, self.exchange
        return EngineReport(
            state=machine.state.value,
            reason=machine.reason.value,
            view=machine.view,
            members=machine.members,
            working=machine.active,
            link=self.operation.snapshot(),
            peers=machine.hearing.snapshot(now_us, self.kit.name),
            strangers=machine.kept_out.told() + (merging.told(machine.members, now_us) if machine.active else []),
            undelivered=self.operation.order.undelivered,
            joining=exchange.attempt.members if exchange is not None and exchange.plan is not None else (),
            held_down_us=merging.held_down_us(machine.members, now_us) if machine.active else 0,
        )

    def check(self, full: bool) -> None:
        self.machine.check(full)
        self.operation.check(full)
        assert (self.exchange is None) == (self.machine.attempt is None)
        if self.exchange is not None:
            self.exchange.check()

    # --- what the daemon around it asks for

    def comes_last(self, frame: Frame) -> bool:
        """Data before tokens: who passes the token on says what it has."""
        return isinstance(frame, Token)

    def submitted(self, now_us: int) -> list[Effect]:
        return self.operation.submitted(now_us) if self.machine.active else []

    def send_unreliable(self, submit: Submit) -> list[Effect]:
        if not self.machine.active:
            self.kit.count.add(Counter.UNRELIABLE_NO_VIEW)
            return []
        s = submit
        bundle = self.operation.unreliable.make(s.session, s.session_seq, s.count, s.groups, s.payload, s.kind, s.flags)
        return self.operation.send_unreliable(Unreliable(self.machine.view, bundle))

    def on_group_news(self, news: GroupNews, now_us: int) -> None:
        if self.machine.active:  # A view that is over wants nothing any more.
            self.operation.on_group_news(news, now_us)

    def hold_back(self, behind: bool) -> None:
        self.operation.flow.behind = behind

    def hasten(self, now_us: int) -> list[Effect]:
        self._in_haste = self.operation.flow.in_haste = True
        return self.operation.stamper.hasten(now_us) if self.machine.active and not self.is_settled else []

    def on_peer_refused(self, rank: int, now_us: int) -> list[Effect]:
        return self._carry_out(self.machine.on_peer_refused(rank, now_us), now_us)

    def last_words(self) -> list[Effect]:
        """Twice: one may be lost."""
        to = tuple(rank for rank in range(len(self.kit.cluster.daemons)) if rank != self.kit.me.rank)
        if not to:
            return []
        goodbye = self.kit.send(to, Goodbye(self.machine.view, self.machine.promised))
        return [goodbye, goodbye]

    # --- frames, routed by what they carry

    def on_frame(self, sender: Life, frame: Frame, data: bytes, now_us: int) -> list[Effect | Dropped]:
        if isinstance(frame, _OF_A_VIEW):
            return self._on_view_frame(sender, frame, data, now_us)
        if isinstance(frame, AttemptFrame):
            return self._carry_out_keeping_drops(self._on_attempt_frame(sender, frame, now_us), now_us)
        if isinstance(frame, PassedOn):
            return self._carry_out_keeping_drops(self._on_passed(sender, frame, now_us), now_us)
        return self._carry_out_keeping_drops(self._on_membership_frame(sender, frame, now_us), now_us)

    def _on_membership_frame(self, sender: Life, frame: Frame, now_us: int) -> list[FrameOutcome]:
        machine = self.machine
        if isinstance(frame, Alive | Join):
            effects = self._on_alive(sender, frame, now_us)
        elif isinstance(frame, NewMemb):
            effects = machine.on_new_memb(sender, frame, now_us)
        elif isinstance(frame, Refuse):
            effects = machine.on_refuse(sender, frame, now_us)
        else:
            assert isinstance(frame, Goodbye)
            effects = machine.on_goodbye(sender, now_us)
        return effects

    def _on_alive(self, sender: Life, frame: Alive | Join, now_us: int) -> list[FrameOutcome]:
        alive = frame.alive if isinstance(frame, Join) else frame
        installed = self._on_news_of(alive.view, sender, now_us)
        if isinstance(frame, Join):
            return [*installed, *self.machine.on_join(sender, frame, now_us)]
        return [*installed, *self.machine.on_alive(sender, frame, now_us)]

    def _on_news_of(self, view: Ballot, sender: Life, now_us: int) -> list[Effect]:
        """Whoever works in the view that we are forming has heard that everyone is done: then we may install it too."""
        exchange = self.exchange
        if exchange is None or view != exchange.attempt.ballot or sender not in exchange.attempt.members:
            return []
        return self._carry_out(exchange.everyone_is_done(), now_us)

    def _on_attempt_frame(self, sender: Life, frame: AttemptFrame, now_us: int) -> Sequence[FrameOutcome]:
        exchange = self.exchange
        if exchange is None or frame.attempt != exchange.attempt.ballot or sender not in exchange.attempt.members:
            return self._on_other_attempt(sender, frame, now_us)
        if isinstance(frame, _SHOWS_PROGRESS):
            self.machine.extend_attempt(now_us)
        return exchange.on_frame(sender, frame, now_us)

    def _on_passed(self, sender: Life, frame: PassedOn, now_us: int) -> Sequence[FrameOutcome]:
        """On its way between sites: to others, or to us."""
        ways, current = self._ways, self.machine.attempt
        ballot = self.machine.view if current is None else current.ballot
        if ways is None or frame.attempt != ballot or ways.ballot != ballot or sender not in ways.members:
            return [Dropped(self._why_of_another(frame.attempt))]
        handed = ways.passed(sender, frame, now_us)
        if isinstance(handed, Dropped):
            return [handed]
        if handed.frame is None:
            return handed.effects
        return [*handed.effects, *self._on_attempt_frame(handed.sender, handed.frame, now_us)]

    def _on_other_attempt(self, sender: Life, frame: AttemptFrame, now_us: int) -> list[FrameOutcome]:
        """An installed member answers a late DONE, unless it has promised more; the rest is old."""
        installed = self.machine.view if self.machine.promised == self.machine.view else None
        if isinstance(frame, Done) and frame.attempt == installed and sender in self.machine.members:
            assert self._ways is not None
            return [] if frame.reply else [*self._ways.send((sender,), Done(frame.attempt, reply=True), now_us)]
        return [Dropped(self._why_of_another(frame.attempt))]

    def _why_of_another(self, attempt: Ballot) -> Counter:
        return Counter.ATTEMPT_OLDER if attempt < self.machine.promised else Counter.ATTEMPT_NOT_OURS

    def _on_view_frame(self, sender: Life, frame: ViewFrame, data: bytes, now_us: int) -> list[Effect | Dropped]:
        installed = self._on_news_of(frame.view, sender, now_us) if self.exchange is not None else []
        if frame.view != self.machine.view or sender not in self.machine.members:
            return [*installed, Dropped(Counter.FRAME_OF_ANOTHER_VIEW)]
        taken = self._on_frame_of_our_view(sender, frame, data, now_us)
        return [*installed, *taken] if installed else taken

    def _on_frame_of_our_view(self, sender: Life, frame: ViewFrame, data: bytes, now_us: int) -> list[Effect | Dropped]:
        operation = self.operation
        if isinstance(frame, Data):
            if operation.order.frozen:
                return [Dropped(Counter.FRAME_VIEW_FROZEN)]
            taken = operation.on_data(sender, frame, data, now_us)
            if operation.relay.speaks and self.machine.active:
                operation.want_announcement(now_us)
            return taken
        if not self.machine.active:
            return [Dropped(Counter.FRAME_VIEW_LOST)]
        if isinstance(frame, _OF_A_SITE):
            return operation.on_site_frame(sender, frame, now_us)
        if isinstance(frame, Unreliable):
            return operation.on_unreliable(sender, frame)
        assert isinstance(frame, Announce)
        return operation.on_announce(sender, frame, now_us)

    def progress(self, now_us: int) -> list[Effect]:
        """In a view that no longer works nothing is stamped or promised; what has come may still be delivered."""
        return self.operation.progress(now_us) if self.machine.active else self.operation.deliver()

    # --- deadlines

    def on_deadline(self, deadline: Enum, now_us: int) -> list[Effect]:
        return self._carry_out(self._on_deadline(deadline, now_us), now_us)

    def _on_deadline(self, deadline: Enum, now_us: int) -> list[Outcome]:
        machine = self.machine
        membership: dict[Enum, Callable[[int], list[Outcome]]] = {
            EvsDeadline.ALIVE: machine.on_alive_deadline,
            EvsDeadline.SEGMENT: machine.on_segment_deadline,
            EvsDeadline.GATHER: machine.on_gather_deadline,
            EvsDeadline.FOLLOW: machine.on_follow_deadline,
        }
        if deadline in membership:
            return membership[deadline](now_us)
        if deadline is EvsDeadline.ATTEMPT:
            return machine.lost(Reason.ATTEMPT_STUCK, "", now_us)
        if deadline is EvsDeadline.EXCHANGE:
            return self._repeat_exchange(now_us)
        if deadline is EvsDeadline.TOKEN_LOST:
            self.kit.count.add(Counter.TOKEN_LOST)
            return machine.lost(Reason.TOKEN_LOST, "", now_us)
        effects = list[Outcome](self.operation.on_deadline(deadline, now_us))
        if deadline is EvsDeadline.LINK and (failed := self.operation.links.failed()) is not None:
            detail = f"{self.kit.name(failed.peer)}: {failed.failed}"
            return effects + machine.lost(Reason.LINK_FAILED, detail, now_us)
        return effects

    def _repeat_exchange(self, now_us: int) -> list[Outcome]:
        if self.exchange is None:
            return []
        effects = self.exchange.repeat(now_us)
        if self.exchange.attempt.ballot.proposer_life == self.kit.me:
            effects += self.machine.proposal(self.exchange.undeclared())
        return effects

    # --- carrying out what was decided

    def _carry_out_keeping_drops(self, outcomes: Sequence[FrameOutcome], now_us: int) -> list[Effect | Dropped]:
        """The same for what follows from a frame: what was dropped of it stays in its place too."""
        taken: list[Effect | Dropped] = []
        for one in outcomes:
            taken += [one] if isinstance(one, Dropped) else self._carry_out([one], now_us)
        return taken

    def _carry_out(self, outcomes: Sequence[Outcome], now_us: int) -> list[Effect]:
        """Effects stay in their place; each decision is replaced by what it leads to."""
        effects: list[Effect] = []
        for one in outcomes:
            if isinstance(one, Decision):
                effects += self._carry_out(self._follow(one, now_us), now_us)
            else:
                effects.append(one)
        return effects

    def _follow(self, decision: Decision, now_us: int) -> list[Outcome]:
        if isinstance(decision, Begin):
            return self._begin(decision.attempt, now_us)
        if isinstance(decision, Planned):
            return self.machine.exchanged(now_us)
        if isinstance(decision, Completed):
            return self._install(now_us)
        if isinstance(decision, Contradicted):
            detail = f"{self.kit.name(decision.sender.rank)} has declared two things"
            return self.machine.lost(Reason.ATTEMPT_STUCK, detail, now_us)
        if isinstance(decision, SaidDone):
            self._commit = decision.commit
        else:
            self.exchange = None
            self.kit.deadlines.clear(*WORKING)  # The token and announcements of a lost view are of no use.
        return []

    def _begin(self, attempt: Attempt, now_us: int) -> list[Outcome]:
        """End the view, if it still works, and tell the others what we hold of it."""
        if not self.operation.order.frozen:
            self._commit = frozenset([self.kit.me])
        mine = self._declared.frozen(part_bytes(self.kit))
        self._ways = Ways(self.kit, attempt, IdealLink)
        self.exchange = Exchange(self.kit, attempt, self.operation, self._commit, mine, self._tables, self._ways)
        self.kit.deadlines.set(EvsDeadline.EXCHANGE, now_us + self.kit.settings.exchange_resend_ms * 1_000)
        return self.exchange.start(now_us)

    def _install(self, now_us: int) -> list[Outcome]:
        """Signal, rest and view: one atomic step."""
        exchange, old = self.exchange, self.operation
        assert exchange is not None
        assert exchange.plan is not None
        movers = exchange.plan.movers
        before, after = old.order.finish(exchange.plan)
        previous = None if self._first else old.view
        effects: list[Outcome] = [*old.flow.deliveries(before)]
        if previous is not None:
            effects.append(Signal(old.view))
        effects += old.flow.deliveries(after)
        view, members, links = exchange.attempt
        why = why_it_came(self._first, old.members, movers, members, self.machine.ending, self.kit.name)
        effects.append(Installed(previous, view, members, movers, *why, exchange.joined, links))
        self._tables.clear()
        patience = self.machine.damping.token
        self.operation = Operation(self.kit, view, members, self._queue, self.kit.clock.high, patience, links)
        self.operation.flow.in_haste = self._in_haste
        self.exchange, self._first = None, False
        effects += self.machine.installed(now_us)
        return effects + list[Outcome](self.operation.start(now_us))
