"""Extended virtual synchrony: frames routed by the view or attempt they carry, and what membership decides.

In:        frames, deadlines, and what waits in the queue.  Out: effects.
Not here:  clients, admission, and datagrams that are no frames (the daemon around it).

The engine alone calls its layers: it lets membership decide, and carries out what it decided (exchange.py,
operation.py).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from covey.ids import Ballot, Instant, Life
from covey.protocol.boundary import EngineReport, Header
from covey.protocol.effects import Deliver, Effect, Installed, Signal
from covey.protocol.groups.declared import Declared
from covey.protocol.groups.exchange import Tables
from covey.protocol.inputs import Submit
from covey.protocol.kit import Kit
from covey.protocol.transport.queue import SubmitQueue
from covey.protocol.values import Delivery

from .deadlines import WORKING, EvsDeadline
from .exchange import Change, part_bytes
from .frames import (
    Alive,
    Announce,
    Data,
    Done,
    Frame,
    Goodbye,
    GroupPart,
    Hurry,
    Join,
    NewMemb,
    Parked,
    Refuse,
    Resend,
    StateTrans,
    Token,
    Unreliable,
    Want,
    WantGroups,
)
from .kit import evs_kit
from .membership.machine import Machine
from .operation import Operation
from .sizes import check_sizes
from .states import Reason, State

AttemptFrame = StateTrans | Want | WantGroups | GroupPart | Resend | Done
ViewFrame = Data | Unreliable | Announce | Parked | Hurry | Token


class EvsEngine:
    def __init__(self, kit: Kit, queue: SubmitQueue, declared: Declared, start: Instant, seed: int) -> None:
        check_sizes(kit.cluster, kit.settings)
        self.kit = evs_kit(kit, start)
        self.machine = Machine(self.kit, counter=start.wall_us // 1_000_000, seed=seed)
        self._queue = queue
        self._declared = declared
        patience = self.machine.damping.token
        self.operation = Operation(self.kit, self.machine.view, self.machine.members, queue, 0, patience)
        self.operation.end()
        self._tables = Tables()
        self.change: Change | None = None
        self._commit = frozenset([kit.me])
        self._first = True

    @property
    def is_working(self) -> bool:
        return self.machine.active

    @property
    def is_settled(self) -> bool:
        return self.operation.is_settled()

    def start(self, now_us: int) -> list[Effect]:
        return self.machine.start(now_us)

    def report(self, now_us: int) -> EngineReport:
        machine, change = self.machine, self.change
        return EngineReport(
            state=machine.state.value,
            reason=machine.reason.value,
            view=machine.view,
            members=machine.members,
            working=machine.active,
            link=self.operation.snapshot(),
            peers=machine.hearing.snapshot(now_us, self.kit.name),
            strangers=machine.strangers(now_us),
            undelivered=self.operation.order.undelivered,
            joining=change.attempt.members if change is not None and change.plan is not None else (),
            held_down_us=machine.held_down_us(now_us),
        )

    def check(self, full: bool) -> None:
        self.machine.check(full)
        self.operation.check(full)
        assert (self.change is None) == (self.machine.attempt is None)
        if self.change is not None:
            self.change.check()

    # --- what the daemon around it asks for

    def decode(self, data: bytes) -> Header:
        return self.kit.codec.decode(data)

    def comes_last(self, frame: Frame) -> bool:
        """Data before tokens: who passes the token on says what it has."""
        return isinstance(frame, Token)

    def submitted(self, now_us: int) -> list[Effect]:
        return self.operation.submitted(now_us) if self.machine.active else []

    def send_unreliable(self, submit: Submit) -> list[Effect]:
        if not self.machine.active:
            self.kit.count.add("unreliable dropped: no view")
            return []
        s = submit
        bundle = self.operation.unreliable.make(s.session, s.session_seq, s.count, s.groups, s.payload, s.kind, s.flags)
        return self.operation.send_unreliable(Unreliable(self.machine.view, bundle))

    def hold_back(self, behind: bool) -> None:
        self.operation.flow.behind = behind

    def on_peer_refused(self, rank: int, now_us: int) -> list[Effect]:
        return self.machine.on_peer_refused(rank, now_us) + self._carry_out(now_us)

    def last_words(self) -> list[Effect]:
        """Twice: one may be lost."""
        to = tuple(rank for rank in range(len(self.kit.cluster.daemons)) if rank != self.kit.me.rank)
        if not to:
            return []
        goodbye = self.kit.send(to, Goodbye(self.machine.view, self.machine.promised))
        return [goodbye, goodbye]

    # --- frames, routed by what they carry

    def on_frame(self, sender: Life, frame: Frame, data: bytes, now_us: int) -> list[Effect]:
        if isinstance(frame, ViewFrame):
            return self._on_view_frame(sender, frame, data, now_us)
        if isinstance(frame, AttemptFrame):
            return self._on_attempt_frame(sender, frame, now_us) + self._carry_out(now_us)
        return self._on_membership_frame(sender, frame, now_us) + self._carry_out(now_us)

    def _on_membership_frame(self, sender: Life, frame: Frame, now_us: int) -> list[Effect]:
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

    def _on_alive(self, sender: Life, frame: Alive | Join, now_us: int) -> list[Effect]:
        alive = frame.alive if isinstance(frame, Join) else frame
        change = self.change
        if change is not None and alive.view == change.attempt.ballot and sender in change.attempt.members:
            change.everyone_is_done()
        if isinstance(frame, Join):
            return self.machine.on_join(sender, frame, now_us)
        return self.machine.on_alive(sender, frame, now_us)

    def _on_attempt_frame(self, sender: Life, frame: AttemptFrame, now_us: int) -> list[Effect]:
        change = self.change
        if change is None or frame.attempt != change.attempt.ballot or sender not in change.attempt.members:
            return self._on_other_attempt(sender, frame)
        if isinstance(frame, StateTrans):
            if frame.progress:
                self.machine.extend_attempt(now_us)
            return change.on_state_trans(sender, frame, now_us)
        if isinstance(frame, Done):
            return change.on_done(sender, frame)
        self.machine.extend_attempt(now_us)
        if isinstance(frame, Want):
            return change.on_want(sender, frame)
        if isinstance(frame, WantGroups):
            return change.on_want_groups(sender, frame)
        if isinstance(frame, GroupPart):
            return change.on_group_part(sender, frame)
        return change.on_resend(frame)

    def _on_other_attempt(self, sender: Life, frame: AttemptFrame) -> list[Effect]:
        """An installed member answers a late DONE, unless it has promised more; the rest is old."""
        installed = self.machine.view if self.machine.promised == self.machine.view else None
        if isinstance(frame, Done) and frame.attempt == installed and sender in self.machine.members:
            return [] if frame.reply else [self.kit.send((sender.rank,), Done(frame.attempt, reply=True))]
        older = frame.attempt < self.machine.promised
        self.kit.count.drop("older attempt dropped" if older else "attempt frame dropped: not ours")
        return []

    def _on_view_frame(self, sender: Life, frame: ViewFrame, data: bytes, now_us: int) -> list[Effect]:
        effects: list[Effect] = []
        change = self.change
        if change is not None and frame.view == change.attempt.ballot and sender in change.attempt.members:
            change.everyone_is_done()
            effects = self._carry_out(now_us)
        if frame.view != self.machine.view or sender not in self.machine.members:
            self.kit.count.drop("frame dropped: of another view")
            return effects
        if isinstance(frame, Data):
            if self.operation.order.frozen:
                self.kit.count.drop("frame dropped: the view is frozen")
                return effects
            effects += self.operation.on_data(sender, frame, data, now_us)
            if self.machine.active:
                self.operation.want_announcement(now_us)
            return effects
        if not self.machine.active:
            self.kit.count.drop("frame dropped: the view is lost")
            return effects
        return effects + self._on_working_view_frame(sender, frame, now_us)

    def _on_working_view_frame(self, sender: Life, frame: ViewFrame, now_us: int) -> list[Effect]:
        operation = self.operation
        if isinstance(frame, Token | Parked | Hurry):
            return operation.on_site_frame(frame, now_us)
        if isinstance(frame, Unreliable):
            return operation.on_unreliable(sender, frame)
        assert isinstance(frame, Announce)
        return operation.on_announce(frame, now_us)

    def progress(self, now_us: int) -> list[Effect]:
        """In a view that no longer works nothing is stamped or promised; what has come may still be delivered."""
        return self.operation.progress(now_us) if self.machine.active else self.operation.deliver()

    # --- deadlines

    def on_deadline(self, deadline: Enum, now_us: int) -> list[Effect]:
        return self._on_deadline(deadline, now_us) + self._carry_out(now_us)

    def _on_deadline(self, deadline: Enum, now_us: int) -> list[Effect]:
        machine = self.machine
        membership: dict[Enum, Callable[[int], list[Effect]]] = {
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
            self.kit.count.add("token lost")
            return machine.lost(Reason.TOKEN_LOST, "", now_us)
        return self.operation.on_deadline(deadline, now_us)

    def _repeat_exchange(self, now_us: int) -> list[Effect]:
        if self.change is None:
            return []
        effects = self.change.repeat(now_us)
        if self.change.attempt.ballot[1:] == self.kit.me:
            effects += self.machine.proposal(self.change.undeclared())
        return effects

    # --- carrying out what membership decided

    def _carry_out(self, now_us: int) -> list[Effect]:
        """Begin, drop or complete the exchange that membership's attempt asks for."""
        effects: list[Effect] = []
        attempt = self.machine.attempt
        if not self.machine.active:
            self._quieten()
        if attempt is None:
            self.change = None
        elif self.change is None or self.change.attempt != attempt:
            if not self.operation.order.frozen:
                self._commit = frozenset([self.kit.me])
            mine = self._declared.frozen(part_bytes(self.kit))
            self.change = Change(self.kit, attempt, self.operation, self._commit, mine, self._tables)
            self.kit.deadlines.set(EvsDeadline.EXCHANGE, now_us + self.kit.settings.exchange_resend_ms * 1_000)
            effects += self.change.start()
        change = self.change
        if change is None:
            return effects
        if change.plan is not None and self.machine.state is State.STATETRANS:
            effects += self.machine.exchanged(now_us)
        if change.is_done_here and change.plan is not None:
            self._commit = change.plan.commit
        return effects + (self._install(change, now_us) if change.is_complete else [])

    def _quieten(self) -> None:
        """The view no longer works: its token and announcements are of no use."""
        self.kit.deadlines.clear(*WORKING)

    def _install(self, change: Change, now_us: int) -> list[Effect]:
        """Signal, rest and view: one atomic step."""
        plan, old = change.plan, self.operation
        assert plan is not None
        before, after = old.order.finish(plan)
        previous = None if self._first else old.view
        effects: list[Effect] = [self._delivery(old.view, one) for one in before]
        if previous is not None:
            effects.append(Signal(old.view))
        effects += [self._delivery(old.view, one) for one in after]
        view, members = change.attempt
        reason = self.machine.change_reason
        cause = self._cause(plan.movers, members, reason)
        who = "" if previous is None else self._who(old.members, plan.movers, members)
        detail = who or self.machine.change_detail
        effects.append(Installed(previous, view, members, plan.movers, cause, reason, detail, change.joined))
        self._tables.clear()
        patience = self.machine.damping.token
        self.operation = Operation(self.kit, view, members, self._queue, self.kit.clock.high, patience)
        self.change, self._first = None, False
        effects += self.machine.installed(now_us)
        return effects + self.operation.start(now_us)

    def _cause(self, movers: tuple[Life, ...], members: tuple[Life, ...], reason: Reason) -> str:
        if self._first:
            return "start"
        if any(life not in movers for life in members):
            return "merge"  # Also of those who were together before, and parted without our notice.
        return "goodbye" if reason is Reason.PEER_GOODBYE else "loss"

    def _who(self, old: tuple[Life, ...], movers: tuple[Life, ...], members: tuple[Life, ...]) -> str:
        """Who is gone and who has come, whatever it was that made us look for a new view."""
        gone = {self.kit.name(life.rank) for life in old if life not in members}
        come = {self.kit.name(life.rank) for life in members if life not in movers}
        told = {"without": gone - come, "with": come - gone, "again with": come & gone}
        return ", ".join(f"{word} {' '.join(sorted(names))}" for word, names in told.items() if names)

    def _delivery(self, view: Ballot, delivery: Delivery) -> Deliver:
        return Deliver(view, delivery.bundle, delivery.payloads)
