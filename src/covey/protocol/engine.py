"""One daemon, pure: `step(now, inputs) -> effects`, once per wake-up with everything that arrived.

In:        inputs.py.  Out: effects.py, in the order to perform them; `next_deadline_us()`; `snapshot()`.
Not here:  sockets, clocks, randomness. Time and the seed are arguments.

The engine alone calls the layers: it routes frames by the view or attempt they carry, lets membership decide, and
carries out what it decided (change.py, operation.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from covey import config
from covey.config import COUNT_MAX, FRAME_SLACK, GROUPS_BYTES_MAX, GROUPS_MAX, Cluster, Settings, digest
from covey.errors import FrameError, OutsiderError
from covey.ids import Ballot, Instant, Life

from .change import Change, part_bytes
from .clients import Clients
from .clock import StampClock
from .deadlines import WORKING, Deadline, DeadlineTable
from .effects import Deliver, Effect, Installed, Refused, Send, Signal, Stopped
from .groups.exchange import Tables
from .inputs import ClientBytes, ClientConnected, ClientGone, Datagram, Input, PeerRefused, Submit
from .kit import Kit
from .membership.machine import Machine
from .operation import Operation
from .outsiders import UNLISTED, Outsiders
from .portions import PORTIONS, Portions
from .states import Reason, State
from .transport.queue import SubmitQueue, Waiting, cost
from .values import Count, Delivery, Kind, Payload, Service
from .wire.codec import Codec
from .wire.frames import (
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
from .wire.group_names import groups_bytes
from .wire.sizes import check_sizes

ACCEPTED = "accepted"

AttemptFrame = StateTrans | Want | WantGroups | GroupPart | Resend | Done
ViewFrame = Data | Unreliable | Announce | Parked | Hurry | Token


class Engine:
    def __init__(
        self,
        cluster: Cluster,
        me: Life,
        settings: Settings,
        start: Instant,
        seed: int,
        budget_bytes: int = 0,
        portions: Portions = PORTIONS,
    ) -> None:
        """`budget_bytes` is what may wait for all clients together, where the settings leave that to the machine."""
        check_sizes(cluster, settings)
        codec = Codec(cluster.name, digest(cluster, settings), me)
        clock = StampClock(start, settings.skew_max_ms * 1_000)
        self.kit = Kit(me, cluster, settings, codec, clock, Count(), DeadlineTable())
        self.machine = Machine(self.kit, counter=start.wall_us // 1_000_000, seed=seed)
        self._queue = SubmitQueue(
            me, self.kit.site, settings.submit_queue_bytes, settings.bundle_bytes, settings.session_send_bytes
        )
        patience = self.machine.damping.token
        self.operation = Operation(self.kit, self.machine.view, self.machine.members, self._queue, 0, patience)
        self.operation.end()
        self.clients = Clients(
            self.kit, self._queue, self._submit_now, lambda: self.machine.active, budget_bytes, portions
        )
        self._tables = Tables()
        self._produced: list[Effect] = []
        self._now_us = start.mono_us
        self.change: Change | None = None
        self._commit = frozenset([me])
        self._first = True
        self._stopping = False
        self._stopped = False
        self._outsiders = Outsiders(cluster)
        # What became of each datagram: accepted, or the reason for which it was dropped, whole or in part.
        self.outcomes = Count()
        self.outcomes_unlisted = Count()

    # --- the door

    def start(self, now: Instant) -> list[Effect]:
        return self.machine.start(now.mono_us)

    def step(self, now: Instant, inputs: list[Input]) -> list[Effect]:
        """Take everything that arrived, data before tokens, then act on deadlines that have run out."""
        effects: list[Effect] = []
        if self._stopped:
            return effects
        now_us = self._now_us = now.mono_us
        self.clients.begin(now_us)
        tokens: list[tuple[Datagram, Life, Token]] = []
        for one in inputs:
            if not isinstance(one, Datagram):
                self._emit(effects, self._take(one, now_us))
            elif (new := self._on_datagram(one, tokens, now_us)) or self._produced:
                self._emit(effects, new)
        self.operation.behind = self.clients.behind
        self._emit(effects, self._progress(now_us))
        for one, sender, token in tokens:
            self._emit(effects, self._on_token(one, sender, token, now_us))
        for deadline in self.kit.deadlines.due(now_us):
            if self.kit.deadlines.take(deadline, now_us):
                self._emit(effects, self._on_deadline(deadline, now_us) + self._carry_out(now_us))
        if self.clients.work(now_us):
            self._emit(effects, [])
        return effects + self._maybe_say_goodbye()

    def pull(self, connection: int, room: int) -> list[Payload]:
        """The second door: what to write to a client whose stream has room."""
        return self.clients.pull(connection, room)

    def _emit(self, effects: list[Effect], new: list[Effect]) -> None:
        """Clients see what the daemon did, at once and in order; what that leads to is done too."""
        while True:
            effects += new
            self.clients.observe(new, self._now_us)
            new, self._produced = self._produced + self.clients.take_effects(), []
            if not new:
                return

    def next_deadline_us(self) -> int | None:
        return None if self._stopped else self.kit.deadlines.next_us()

    def snapshot(self, now_us: int) -> dict[str, Any]:
        """What a person wants to know about this daemon now."""
        machine = self.machine
        return {
            "name": self.kit.name(self.kit.me.rank),
            "boot": self.kit.me.boot,
            "state": machine.state.value,
            "reason": machine.reason.value,
            "view": str(machine.view),
            "members": [self.kit.name(life.rank) for life in machine.members],
            "working": machine.active,
            "waiting_bytes": self._queue.bytes_waiting,
            "link": self.operation.snapshot(),
            "peers": machine.hearing.snapshot(now_us, self.kit.name),
            "clients": self.clients.snapshot(now_us),
            "strangers": machine.strangers(now_us),
            "outsiders": self._outsiders.snapshot(now_us),
            "count": dict(sorted(self.kit.count.items())),
            "outcomes": dict(sorted(self.outcomes.items())),
            "outcomes_unlisted": dict(sorted(self.outcomes_unlisted.items())),
        }

    def groups_snapshot(self, wanted: str, groups_max: int, members_max: int) -> Iterator[dict[str, Any] | None]:
        """Who is in which group, as this daemon's view has it: a portion at a time, None until it is done."""
        machine = self.machine
        for listed in self.clients.groups.roster.listing_in_portions(wanted, groups_max, members_max):
            yield listed and {
                "name": self.kit.name(self.kit.me.rank),
                "view": str(machine.view),
                "working": machine.active,
                "daemons": [self.kit.name(life.rank) for life in machine.members],
                **listed,
            }

    def check(self, full: bool) -> None:
        """Invariants of every layer: cheap ones after each step, all at state changes."""
        if self._stopped:
            return  # It waits for nothing any more.
        self.machine.check(full)
        self.operation.check(full)
        self.clients.check(full)
        assert (self.change is None) == (self.machine.attempt is None)
        if self.change is not None:
            self.change.check()

    # --- inputs

    def _take(self, one: Input, now_us: int) -> list[Effect]:
        if isinstance(one, Submit):
            return self._on_submit(one, now_us)
        if isinstance(one, PeerRefused):
            return self.machine.on_peer_refused(one.rank, now_us) + self._carry_out(now_us)
        if isinstance(one, ClientBytes):
            self.clients.on_bytes(one.connection, one.data, now_us)
        elif isinstance(one, ClientConnected):
            self.clients.on_connected(one.connection, now_us)
        elif isinstance(one, ClientGone):
            self.clients.on_gone(one.connection, now_us)
        else:
            return self._on_stop(now_us)
        return []

    def _on_datagram(self, one: Datagram, tokens: list[tuple[Datagram, Life, Token]], now_us: int) -> list[Effect]:
        self.kit.count.dropped = ""
        try:
            sender, frame = self.kit.codec.decode(one.data)
            if sender.rank >= len(self.kit.cluster.daemons):
                effects = self._reject(FrameError("unknown daemon", f"number {sender.rank}"), one, now_us)
            elif isinstance(frame, Token) and sender.rank != self.kit.me.rank:
                tokens.append((one, sender, frame))  # Its outcome is noted when its turn has come.
                return []
            else:
                effects = self._on_frame(sender, frame, one.data, now_us)
        except FrameError as error:
            effects = self._reject(error, one, now_us)
        return effects + self._note_outcome(one, now_us)

    def _on_token(self, one: Datagram, sender: Life, token: Token, now_us: int) -> list[Effect]:
        self.kit.count.dropped = ""
        effects = self._on_view_frame(sender, token, b"", now_us)
        return effects + self._note_outcome(one, now_us)

    def _note_outcome(self, one: Datagram, now_us: int) -> list[Effect]:
        """Every datagram is counted once, under what became of it."""
        outcome = self.kit.count.dropped or ACCEPTED
        if not one.unlisted:
            self.outcomes.add(outcome)
            return []
        self.outcomes_unlisted.add(outcome)
        return self._outsiders.see(UNLISTED, one.source, now_us) if outcome is ACCEPTED else []

    def _reject(self, error: FrameError, one: Datagram, now_us: int) -> list[Effect]:
        """A peer's bad frame is data: counted, and its sender is named to the operator if it does not belong here."""
        self.kit.count.drop(f"frame rejected: {error.reason}")
        return self._outsiders.see(error, one.source, now_us) if isinstance(error, OutsiderError) else []

    def _on_submit(self, submit: Submit, now_us: int) -> list[Effect]:
        problem = self._problem(submit)
        if problem:
            self.kit.count.add(f"submission refused: {problem}")
            return [Refused(submit.session, submit.session_seq, problem)]
        return self._accept(submit, now_us)

    def _submit_now(self, submit: Submit) -> str:
        """From a client: why it is refused, or nothing."""
        problem = "" if submit.kind > Kind.MESSAGES else self._problem(submit)
        if problem:
            self.kit.count.add(f"submission refused: {problem}")
        else:
            self._produced += self._accept(submit, self._now_us)
        return problem

    def _accept(self, submit: Submit, now_us: int) -> list[Effect]:
        s = submit
        if s.service is Service.UNRELIABLE:
            if not self.machine.active:
                self.kit.count.add("unreliable dropped: no view")
                return []
            bundle = self.operation.unreliable.make(
                s.session, s.session_seq, s.count, s.groups, s.payload, s.kind, s.flags
            )
            return self.operation.send_unreliable(Unreliable(self.machine.view, bundle))
        self._queue.put(
            Waiting(s.session, s.session_seq, s.count, s.service, s.groups, s.payload, s.kind, s.flags, s.priority)
        )
        return self.operation.send_waiting(now_us) if self.machine.active else []

    def _problem(self, submit: Submit) -> str:
        if self._stopping:
            return "the daemon is stopping"
        slack = FRAME_SLACK if submit.kind is Kind.MESSAGES else 0
        if len(submit.payload) > self.kit.settings.message_bytes_max + slack:
            return "the message is too large"
        if not 0 < submit.count <= COUNT_MAX or len(submit.groups) > GROUPS_MAX:
            return "too many messages or groups, or none"
        names_bytes = groups_bytes(submit.groups)
        if names_bytes > GROUPS_BYTES_MAX:
            return "the group names are too long"
        if submit.service is Service.UNRELIABLE:
            too_large = len(submit.payload) > config.part_bytes(self.kit.settings.bundle_bytes, names_bytes)
            return "an unreliable message must fit one bundle" if too_large else ""
        fits = self._queue.has_room(cost(len(submit.payload), names_bytes))
        return "" if fits or submit.kind is Kind.MESSAGES else "the send queue is full"

    def _on_stop(self, now_us: int) -> list[Effect]:
        self._stopping = True
        self.clients.end_all("the daemon stops", now_us)
        self.kit.deadlines.set_if_clear(Deadline.GOODBYE, now_us + self.kit.settings.goodbye_wait_ms * 1_000)
        return []

    def _maybe_say_goodbye(self) -> list[Effect]:
        """Goodbye follows the stability of our own bundles."""
        if not self._stopping or self._stopped or not self.machine.active or not self.operation.is_settled():
            return []
        return self._say_goodbye()

    def _say_goodbye(self) -> list[Effect]:
        self._stopped = True
        self.kit.deadlines.clear(*Deadline)
        to = tuple(rank for rank in range(len(self.kit.cluster.daemons)) if rank != self.kit.me.rank)
        if not to:
            return [Stopped()]
        data = self.kit.codec.encode(Goodbye(self.machine.view, self.machine.promised))
        return [Send(to, data), Send(to, data), Stopped()]

    # --- frames, routed by what they carry

    def _on_frame(self, sender: Life, frame: Frame, data: bytes, now_us: int) -> list[Effect]:
        if sender.rank == self.kit.me.rank:
            self.kit.count.drop("frame dropped: our own, retransmitted")
            return []
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
            return [] if frame.reply else [self._send((sender.rank,), Done(frame.attempt, reply=True))]
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
            effects += self.operation.on_data(frame, data, now_us)
            if self.machine.active:
                self.operation.want_announcement(now_us)
            return effects
        if not self.machine.active:
            self.kit.count.drop("frame dropped: the view is lost")
            return effects
        return effects + self._on_working_view_frame(sender, frame, now_us)

    def _on_working_view_frame(self, sender: Life, frame: ViewFrame, now_us: int) -> list[Effect]:
        operation = self.operation
        if isinstance(frame, Token):
            return operation.on_token(frame, now_us)
        if isinstance(frame, Unreliable):
            return operation.on_unreliable(sender, frame)
        if isinstance(frame, Announce):
            return operation.on_announce(frame, now_us)
        if isinstance(frame, Parked):
            return operation.on_parked(frame, now_us)
        assert isinstance(frame, Hurry)
        return operation.on_hurry(now_us)

    def _progress(self, now_us: int) -> list[Effect]:
        """In a view that no longer works nothing is stamped or promised; what has come may still be delivered."""
        return self.operation.progress(now_us) if self.machine.active else self.operation.deliver_and_discard()

    # --- deadlines

    def _on_deadline(self, deadline: Deadline, now_us: int) -> list[Effect]:
        machine = self.machine
        membership = {
            Deadline.ALIVE: machine.on_alive_deadline,
            Deadline.SEGMENT: machine.on_segment_deadline,
            Deadline.GATHER: machine.on_gather_deadline,
            Deadline.FOLLOW: machine.on_follow_deadline,
        }
        if deadline in membership:
            return membership[deadline](now_us)
        if deadline is Deadline.ATTEMPT:
            return machine.lost(Reason.ATTEMPT_STUCK, "", now_us)
        if deadline is Deadline.EXCHANGE:
            return self._repeat_exchange(now_us)
        if deadline is Deadline.GOODBYE:
            return self._say_goodbye()
        if deadline is Deadline.TOKEN_LOST:
            self.kit.count.add("token lost")
            return machine.lost(Reason.TOKEN_LOST, "", now_us)
        if deadline is Deadline.CLIENTS:
            self.clients.on_deadline(now_us)
            return []
        if deadline is Deadline.CLIENT_WORK:
            return []  # It has brought us here: `work` is done in every step.
        if deadline is Deadline.ANNOUNCE:
            return self.operation.send_announcement(now_us)
        return self.operation.on_token_deadline(deadline, now_us)

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
            mine = self.clients.declared.frozen(part_bytes(self.kit))
            self.change = Change(self.kit, attempt, self.operation, self._commit, mine, self._tables)
            self.kit.deadlines.set(Deadline.EXCHANGE, now_us + self.kit.settings.exchange_resend_ms * 1_000)
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

    def _send(self, to: tuple[int, ...], frame: Frame) -> Send:
        return Send(to, self.kit.codec.encode(frame))
