"""One attempt to end a view and begin the next: declare, resend, done (docs/protocol/recovery.md).

In:        STATETRANS, WANT, RESEND and DONE of this attempt; the operation of the old view.
Out:       the same frames to send; decisions: everyone has declared, we are done, everyone is done.
Not here:  when to give up (membership/), what the new view does (operation.py).

Invariants: E1 only bundles of the declared union are taken; E2 DONE is sent only when the whole union is held.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from covey.ids import Life
from covey.protocol.counters import Counter, Dropped
from covey.protocol.effects import Send
from covey.protocol.evs.ordering.recovery import Holdings, RecoveryPlan, make_plan, missing
from covey.protocol.groups.declared import Frozen
from covey.protocol.groups.exchange import PART_OVERHEAD, PARTS_BATCH_MAX, Collected, StayTables, batch_parts
from covey.protocol.values import Bundle, Declaration, Stay
from covey.protocol.wire.bundles import bundle_parts

from .codec import RESEND_OVERHEAD
from .deadlines import EvsDeadline
from .decisions import Attempt, Completed, FrameOutcome, Outcome, Planned, SaidDone
from .frames import Done, GroupPart, Resend, StateTrans, Want, WantGroups
from .kit import EvsKit
from .operation import Operation

FIRST_PART_HEAD = 4
"""What the length of a part takes more than that of an empty one."""


def part_bytes(kit: EvsKit) -> int:
    """How much of what sessions have joined fits one packet."""
    return kit.settings.packet_bytes - kit.codec.overhead - PART_OVERHEAD


class Exchange:
    def __init__(
        self,
        kit: EvsKit,
        attempt: Attempt,
        old: Operation,
        commit: frozenset[Life],
        mine: Frozen,
        tables: StayTables,
    ) -> None:
        self.kit = kit
        self.attempt = attempt
        self._old = old
        old.end()
        self._declaration = old.order.declare(kit.clock.high, commit)
        self._declared: dict[Life, Declaration] = {kit.me: self._declaration}
        self._has_ours: set[Life] = {kit.me}
        self._done: set[Life] = set()
        self.plan: RecoveryPlan | None = None
        self._missing: dict[tuple[int, int], list[Life]] = {}
        self._asked: set[tuple[int, int]] = set()
        self._received = False
        # What our sessions have joined, for those from other views; what theirs have joined.
        self._mine = mine
        self._tables = tables
        self._collected: dict[Life, Collected] = {}
        self._batch_parts = batch_parts(part_bytes(kit))

    @property
    def is_complete(self) -> bool:
        return self.kit.me in self._done and len(self._done) == len(self.attempt.members)

    @property
    def is_done_here(self) -> bool:
        return self.kit.me in self._done

    @property
    def _all_have_declared(self) -> bool:
        return len(self._declared) >= len(self.attempt.members)

    def start(self) -> list[Outcome]:
        said = self._say_state(self._others())
        if not self._all_have_declared:
            return said
        self._make_plan()  # We are alone, and miss nothing.
        return [*said, Planned(), *self._finish()]

    # --- frames

    def on_state_trans(self, sender: Life, frame: StateTrans, now_us: int) -> list[FrameOutcome]:
        if self.kit.me in frame.have:
            self._has_ours.add(sender)
        if sender in self._declared:
            return []
        if not self._is_possible(frame.declaration) or self.kit.clock.is_of_another_age(frame.declaration.high, now_us):
            return [Dropped(Counter.DECLARATION_IMPOSSIBLE)]
        if frame.declaration.view != self._old.view:
            collected = self._tables.of(sender, frame.groups_version, frame.group_parts)
            if frame.first_part:
                collected.add(0, frame.first_part, ends_page=True)
            self._collected[sender] = collected
        self._declared[sender] = frame.declaration
        self.kit.clock.see(frame.declaration.high)
        return self._look()

    def _is_possible(self, theirs: Declaration) -> bool:
        """Of our own view, a declaration is about the same sites and within what the windows allow."""
        if theirs.view != self._old.view:
            return True
        logs = self._old.order.logs
        return [entry.site for entry in theirs.sites] == list(logs) and all(
            entry.low <= min(entry.gap_free, logs[entry.site].received)
            and entry.gap_free <= logs[entry.site].received + self._old.ahead_max
            for entry in theirs.sites
        )

    def on_want(self, sender: Life, frame: Want) -> list[Outcome]:
        """A co-mover asks for bundles; answer what we hold, in datagrams of moderate size."""
        effects: list[Outcome] = []
        batch: list[Bundle] = []
        size, limit = 0, self.kit.settings.packet_bytes - self.kit.codec.overhead - RESEND_OVERHEAD
        for bundle in self._wanted(frame):
            length = sum(map(len, bundle_parts(bundle)))
            if batch and size + length > limit:
                effects.append(self.kit.send((sender.rank,), Resend(self.attempt.ballot, tuple(batch))))
                batch, size = [], 0
            batch.append(bundle)
            size += length
        if batch:
            effects.append(self.kit.send((sender.rank,), Resend(self.attempt.ballot, tuple(batch))))
        return effects

    def _wanted(self, frame: Want) -> list[Bundle]:
        """No more than anybody asks for at a time: one datagram must not make us send a thousand."""
        most = self.kit.settings.recovery_batch_bundles
        bundles: dict[tuple[int, int], Bundle] = {}
        for site, first, last in frame.ranges[:most]:
            log = self._old.order.logs.get(site)
            for number in range(first, min(last, first + most) + 1):
                if len(bundles) == most:
                    break
                if log is not None and number in log.bundles and number not in log.heads:
                    bundles[site, number] = log.bundles[number]
        return list(bundles.values())

    def on_resend(self, frame: Resend) -> list[FrameOutcome]:
        before = len(self._missing)
        dropped: list[FrameOutcome] = []
        for bundle in frame.bundles:
            if (why := self._old.why_impossible(bundle) or self._take(bundle)) is not None:
                dropped.append(why)
        if len(self._missing) == before:
            return dropped
        self._received = True
        if self._missing and self._asked & set(self._missing):
            return dropped
        return dropped + self._look()

    def _take(self, bundle: Bundle) -> Dropped | None:
        held_by = self._missing.pop((bundle.site, bundle.number), None)
        if held_by is None:
            return Dropped(Counter.RESEND_NOT_WANTED)
        assert self.plan is not None
        assert bundle.number in self.plan.unions[bundle.site], "E1"
        if not bundle.is_meta and bundle.number in self._old.order.logs[bundle.site].heads:
            self.kit.count.add(Counter.CONTENT_RECOVERED)
        if len(held_by) == 1 and bundle.origin not in self.plan.movers:
            self.kit.count.add(Counter.RECOVERED_FROM_SINGLE_HOLDER)
        return self._old.order.recover(bundle)

    def on_want_groups(self, sender: Life, frame: WantGroups) -> list[Outcome]:
        wanted = [number for number in frame.parts if number < self._mine.count][:PARTS_BATCH_MAX]
        return [
            self.kit.send((sender.rank,), GroupPart(self.attempt.ballot, number, *self._mine.part(number)))
            for number in wanted
        ]

    def on_group_part(self, sender: Life, frame: GroupPart) -> list[FrameOutcome]:
        collected = self._collected.get(sender)
        if collected is None or not collected.add(frame.part, frame.data, frame.ends_page):
            return [Dropped(Counter.GROUP_PART_NOT_WANTED)]
        self._received = True
        return self._look() if collected.is_answered() else []

    def on_done(self, sender: Life, frame: Done) -> list[Outcome]:
        """Somebody has everything. A member that is done again after us has not heard our own DONE."""
        if sender in self._done and self.is_done_here and not frame.reply:
            return [self.kit.send((sender.rank,), Done(self.attempt.ballot, reply=True))]
        self._has_ours.add(sender)
        return self._note_done([sender])

    def everyone_is_done(self) -> list[Outcome]:
        """A member works in the new view already, so it has heard that everyone is done."""
        return self._note_done(self.attempt.members) if self.is_done_here else []

    def _note_done(self, members: Iterable[Life]) -> list[Outcome]:
        was_complete = self.is_complete
        self._done.update(members)
        return [Completed()] if self.is_complete and not was_complete else []

    # --- progress

    def _look(self) -> list[FrameOutcome]:
        """Plan when all have declared, ask for what is missing, say when nothing is."""
        if not self._all_have_declared:
            return []
        planned: list[FrameOutcome] = []
        if self.plan is None:
            self._make_plan()
            planned = [Planned()]
        asking = self._ask() if self._missing else []
        asking += self._ask_for_groups()
        if asking or self.is_done_here:
            return [*planned, *asking]
        if any(collected.problem is not None for collected in self._collected.values()):
            return [*planned, Dropped(Counter.DECLARATION_IMPOSSIBLE_GROUPS)]
        has_groups = all(collected.is_complete for collected in self._collected.values())
        return [*planned, *(self._finish() if has_groups else [])]

    def _ask_for_groups(self) -> list[Outcome]:
        asking: list[Outcome] = []
        for life, collected in sorted(self._collected.items(), key=lambda one: one[0]):
            if parts := collected.ask(self._batch_parts):
                self.kit.count.add(Counter.GROUP_PARTS_ASKED)
                asking.append(self.kit.send((life.rank,), WantGroups(self.attempt.ballot, parts)))
        return asking

    @property
    def joined(self) -> tuple[tuple[Life, tuple[tuple[Stay, ...], ...]], ...]:
        """What the sessions of those from other views have joined."""
        return tuple((life, tuple(collected.pages)) for life, collected in sorted(self._collected.items()))

    def _make_plan(self) -> None:
        movers = {life: one for life, one in self._declared.items() if one.view == self._old.view}
        old_members = self._old.members
        strangers = {self.kit.site_of(life) for life in old_members if life not in movers}
        whole = sorted({self.kit.site_of(life) for life in old_members} - strangers)
        self.plan = make_plan(movers, whole)
        self._old.order.count_heads(self.plan.lows)
        holdings = Holdings(movers)
        self._missing = {key: holdings.holders(*key) for key in missing(self.plan, self._declaration)}

    def _ask(self) -> list[Outcome]:
        """Ask each bundle's lowest-ranked holder, a bounded number at a time."""
        wanted: dict[Life, list[tuple[int, int, int]]] = {}
        self._asked = set(list(self._missing)[: self.kit.settings.recovery_batch_bundles])
        for site, number in sorted(self._asked):
            wanted.setdefault(self._missing[site, number][0], []).append((site, number, number))
        return [
            self.kit.send((holder.rank,), Want(self.attempt.ballot, tuple(ranges)))
            for holder, ranges in sorted(wanted.items())
        ]

    def _finish(self) -> list[Outcome]:
        assert self.plan is not None
        self._old.order.be_done(self.plan)
        completed = self._note_done([self.kit.me])
        return [SaidDone(self.plan.commit), *self._say_done(self._others()), *completed]

    def repeat(self, now_us: int) -> list[Outcome]:
        """Send again what may have been lost: our state, our wants, our DONE."""
        self.kit.deadlines.set(EvsDeadline.EXCHANGE, now_us + self.kit.settings.exchange_resend_ms * 1_000)
        lacking = (
            self._others() if self._received else tuple(one for one in self._others() if one not in self._has_ours)
        )
        effects = self._say_state(lacking) if lacking or not self._all_have_declared else []
        if self._missing:
            effects += self._ask()
        if self.plan is not None:
            effects += self._ask_for_groups()
        if self.is_done_here:
            effects += self._say_done(tuple(life for life in self._others() if life not in self._done))
        return effects

    def undeclared(self) -> tuple[Life, ...]:
        return tuple(life for life in self.attempt.members if life not in self._declared)

    # --- sending

    def _others(self) -> tuple[Life, ...]:
        return tuple(life for life in self.attempt.members if life != self.kit.me)

    def _say_state(self, to: tuple[Life, ...]) -> list[Outcome]:
        if not to:
            to = self.undeclared()
        progress, self._received = self._received, False
        return [Send(tuple(life.rank for life in to), self._state(progress))] if to else []

    def _state(self, progress: bool) -> bytes:
        """STATETRANS; with the only part of what our sessions have joined, if both fit a packet."""
        have, mine = tuple(sorted(self._declared)), self._mine
        frame = StateTrans(self.attempt.ballot, self._declaration, have, mine.version, mine.count, b"", progress)
        alone = self.kit.codec.encode(frame)
        if mine.count != 1:
            return alone
        first = mine.part(0).data
        if len(alone) + len(first) + FIRST_PART_HEAD > self.kit.settings.packet_bytes:
            return alone
        return self.kit.codec.encode(msgspec.structs.replace(frame, first_part=first))

    def _say_done(self, to: tuple[Life, ...]) -> list[Outcome]:
        frame = Done(self.attempt.ballot, reply=False)
        return [self.kit.send(tuple(life.rank for life in to), frame)] if to else []

    def check(self) -> None:
        assert not self.is_done_here or not self._missing, "E2"
        assert self.kit.me in self._declared
