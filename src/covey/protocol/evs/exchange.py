"""One attempt to end a view and begin the next: declare, resend, done (docs/protocol/recovery.md).

In:        STATETRANS, WANT, RESEND and DONE of this attempt; the operation of the old view.
Out:       the same frames to send; decisions: everyone has declared, we are done, everyone is done.
Not here:  when to give up (membership/), what the new view does (operation.py), how declarations are cut
           (declarations.py), which way frames go (ways.py).

Invariants: E1 only bundles of the declared union are taken; E2 DONE is sent only when the whole union is held.
"""

from __future__ import annotations

from collections.abc import Iterable

from covey.ids import Life
from covey.protocol.counters import Counter, Dropped
from covey.protocol.evs.ordering.recovery import Holdings, RecoveryPlan, make_plan, missing
from covey.protocol.groups.declared import Frozen
from covey.protocol.groups.exchange import PARTS_BATCH_MAX, Collected, StayTables, batch_parts
from covey.protocol.values import Bundle, Declaration, Stay
from covey.protocol.wire.bundles import bundle_parts

from .codec import RESEND_OVERHEAD, encode_stated
from .deadlines import EvsDeadline
from .decisions import Attempt, Completed, Contradicted, FrameOutcome, Outcome, Planned, SaidDone
from .declarations import Declarations
from .frames import AttemptFrame, Done, GroupPart, Proceeding, Resend, Stated, StateTrans, Want, WantGroups, WantState
from .kit import EvsKit
from .operation import Operation
from .sizes import declaration_parts_max, part_bytes, passing_bytes
from .ways import Ways

Key = tuple[int, int]
"""A bundle of the old view: its site and its number."""

OWED_MAX = 10_000
"""Bundles that site-mates may have asked for before it is known here what is missing."""


class Exchange:
    def __init__(
        self,
        kit: EvsKit,
        attempt: Attempt,
        old: Operation,
        commit: frozenset[Life],
        mine: Frozen,
        tables: StayTables,
        ways: Ways,
    ) -> None:
        self.kit = kit
        self.attempt = attempt
        self._old = old
        old.end()
        self._ways = ways
        self._declaration = old.order.declare(kit.clock.high, commit)
        self._states = Declarations(attempt.ballot, self._say(mine), part_bytes(kit), declaration_parts_max(kit))
        self._declared: dict[Life, Declaration] = {kit.me: self._declaration}
        self._done: set[Life] = set()
        self.plan: RecoveryPlan | None = None
        self._missing: dict[Key, list[Life]] = {}
        """And who has it, or will have: the nearest first."""
        self._asked: set[Key] = set()
        self._asked_us = self._asked_groups_us = 0
        """When bundles, or parts of groups, were last asked for, or came."""
        self._owed: dict[Key, dict[Life, None]] = {}
        """Site-mates that have asked us for what is missing here too."""
        self._received = False
        # What our sessions have joined, for those from other views; what theirs have joined.
        self._mine = mine
        self._tables = tables
        self._collected: dict[Life, Collected] = {}
        self._batch_parts = batch_parts(part_bytes(kit))

    def _say(self, mine: Frozen) -> Stated:
        """With the only part of what our sessions have joined, if all of it fits one packet."""
        said = Stated(self._declaration, mine.version, mine.count, b"")
        if mine.count != 1:
            return said
        whole = Stated(self._declaration, mine.version, mine.count, mine.part(0).data)
        return whole if len(encode_stated(whole)) <= part_bytes(self.kit) else said

    @property
    def is_complete(self) -> bool:
        return self.kit.me in self._done and len(self._done) == len(self.attempt.members)

    @property
    def is_done_here(self) -> bool:
        return self.kit.me in self._done

    @property
    def _all_have_declared(self) -> bool:
        return len(self._declared) >= len(self.attempt.members)

    def start(self, now_us: int) -> list[Outcome]:
        said = self._say_state(self._others(), (), now_us)
        if not self._all_have_declared:
            return said
        self._make_plan()  # We are alone, and miss nothing.
        return [*said, Planned(), *self._finish(now_us)]

    # --- frames

    def on_frame(self, sender: Life, frame: AttemptFrame, now_us: int) -> list[FrameOutcome]:
        """Of a member of this attempt."""
        if isinstance(frame, StateTrans):
            return self._on_state_trans(sender, frame, now_us)
        if isinstance(frame, WantState):
            return [*self._say_state((sender,), frame.parts, now_us)]
        if isinstance(frame, Done):
            return self._on_done(sender, frame, now_us)
        if isinstance(frame, Want):
            return self._on_want(sender, frame, now_us)
        if isinstance(frame, WantGroups):
            return self._on_want_groups(sender, frame, now_us)
        if isinstance(frame, GroupPart):
            return self._on_group_part(sender, frame, now_us)
        if isinstance(frame, Resend):
            return self._on_resend(sender, frame, now_us)
        return []  # Proceeding: that it came is all it says.

    def _on_state_trans(self, sender: Life, frame: StateTrans, now_us: int) -> list[FrameOutcome]:
        if sender in self._declared:
            return []
        said = self._states.add(sender, frame)
        if isinstance(said, Dropped):
            contradicts = said.counter is Counter.DECLARATION_CONTRADICTS
            return [said, Contradicted(sender)] if contradicts else [said]
        return self._on_stated(sender, said, now_us) if said is not None else []

    def _on_stated(self, sender: Life, stated: Stated, now_us: int) -> list[FrameOutcome]:
        declaration = stated.declaration
        if not self._is_possible(declaration) or self.kit.clock.is_of_another_age(declaration.high, now_us):
            self._states.forget(sender)
            return [Dropped(Counter.DECLARATION_IMPOSSIBLE)]
        if declaration.view != self._old.view:
            collected = self._tables.of(sender, stated.groups_version, stated.group_parts)
            self.kit.count.add(Counter.GROUP_PARTS_KEPT, int(collected.has_some))
            if stated.first_part:
                collected.add(0, stated.first_part, ends_page=True)
            self._collected[sender] = collected
        self._declared[sender] = declaration
        self.kit.count.add(Counter.DECLARED_IN_PARTS, int(self._states.parts_of(sender) > 1))
        self.kit.clock.see(declaration.high)
        return self._look(now_us)

    def _is_possible(self, theirs: Declaration) -> bool:
        """Of our own view, a declaration is about the same sites and within what the windows allow."""
        if theirs.view != self._old.view:
            return True
        logs = self._old.order.logs
        return [entry.site for entry in theirs.sites] == list(logs) and all(
            entry.low <= min(entry.gap_free, logs[entry.site].received)
            and entry.highest <= logs[entry.site].received + self._old.ahead_max
            for entry in theirs.sites
        )

    def _on_want(self, sender: Life, frame: Want, now_us: int) -> list[FrameOutcome]:
        """A co-mover asks for bundles; what we hold is answered now, what we miss too when we have it."""
        if self.kit.site_of(sender) == self.kit.site:
            for site, first, _ in frame.ranges[: self.kit.settings.recovery_batch_bundles]:
                if (site, first) in self._missing or (self.plan is None and self._may_lack(site, first)):
                    self._owed.setdefault((site, first), {})[sender] = None
        return [*self._resend(sender, self._wanted(frame), now_us)]

    def _may_lack(self, site: int, number: int) -> bool:
        log = self._old.order.logs.get(site)
        is_held = log is not None and number in log.bundles and number not in log.heads
        return log is not None and not is_held and len(self._owed) < OWED_MAX

    def _resend(self, to: Life, bundles: list[Bundle], now_us: int) -> list[Outcome]:
        """In datagrams of moderate size."""
        effects: list[Outcome] = []
        batch: list[Bundle] = []
        head = self.kit.codec.overhead + RESEND_OVERHEAD + passing_bytes(self.kit.cluster)
        size, limit = 0, self.kit.settings.packet_bytes - head
        for bundle in bundles:
            length = sum(map(len, bundle_parts(bundle)))
            if batch and size + length > limit:
                effects += self._ways.send((to,), Resend(self.attempt.ballot, tuple(batch)), now_us)
                batch, size = [], 0
            batch.append(bundle)
            size += length
        if batch:
            effects += self._ways.send((to,), Resend(self.attempt.ballot, tuple(batch)), now_us)
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

    def _on_resend(self, sender: Life, frame: Resend, now_us: int) -> list[FrameOutcome]:
        before = len(self._missing)
        dropped: list[FrameOutcome] = []
        taken: dict[Life, list[Bundle]] = {}
        for bundle in frame.bundles:
            if (why := self._old.why_impossible(bundle) or self._take(bundle)) is not None:
                dropped.append(why)
                continue
            for life in self._owed.pop((bundle.site, bundle.number), ()):
                taken.setdefault(life, []).append(bundle)
        if len(self._missing) == before:
            return dropped
        near = self.kit.site_of(sender) == self.kit.site
        self.kit.count.add(Counter.RESENT_NEXT_DOOR if near else Counter.RESENT_FROM_AFAR, before - len(self._missing))
        self._received, self._asked_us = True, now_us
        for life, bundles in taken.items():
            dropped += self._resend(life, bundles, now_us)
        if self._missing and self._asked & set(self._missing):
            return dropped
        return dropped + self._look(now_us)

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

    def _on_want_groups(self, sender: Life, frame: WantGroups, now_us: int) -> list[FrameOutcome]:
        wanted = [number for number in frame.parts if number < self._mine.count][:PARTS_BATCH_MAX]
        effects: list[FrameOutcome] = []
        for number in wanted:
            part = GroupPart(self.attempt.ballot, number, *self._mine.part(number))
            effects += self._ways.send((sender,), part, now_us)
        return effects

    def _on_group_part(self, sender: Life, frame: GroupPart, now_us: int) -> list[FrameOutcome]:
        collected = self._collected.get(sender)
        if collected is None or not collected.add(frame.part, frame.data, frame.ends_page):
            return [Dropped(Counter.GROUP_PART_NOT_WANTED)]
        self._received, self._asked_groups_us = True, now_us
        return self._look(now_us) if collected.is_answered() else []

    def _on_done(self, sender: Life, frame: Done, now_us: int) -> list[FrameOutcome]:
        """Somebody has everything. A member that is done again after us has not heard our own DONE."""
        if sender in self._done and self.is_done_here and not frame.reply:
            return [*self._ways.send((sender,), Done(self.attempt.ballot, reply=True), now_us)]
        return [*self._note_done([sender])]

    def everyone_is_done(self) -> list[Outcome]:
        """A member works in the new view already, so it has heard that everyone is done."""
        return self._note_done(self.attempt.members) if self.is_done_here else []

    def _note_done(self, members: Iterable[Life]) -> list[Outcome]:
        was_complete = self.is_complete
        self._done.update(members)
        return [Completed()] if self.is_complete and not was_complete else []

    # --- progress

    def _look(self, now_us: int) -> list[FrameOutcome]:
        """Plan when all have declared, ask for what is missing, say when nothing is."""
        if not self._all_have_declared:
            return []
        planned: list[FrameOutcome] = []
        if self.plan is None:
            self._make_plan()
            planned = [Planned()]
        asking = self._ask(now_us) if self._missing and not self._asked & self._missing.keys() else []
        asking += self._ask_for_groups(now_us, again=bool(planned))
        collected = self._collected.values()
        if self._missing or asking or self.is_done_here:
            return [*planned, *asking]
        if any(one.problem is not None for one in collected):
            return [*planned, Dropped(Counter.DECLARATION_IMPOSSIBLE_GROUPS)]
        return [*planned, *(self._finish(now_us) if all(one.is_complete for one in collected) else [])]

    def _ask_for_groups(self, now_us: int, again: bool = False) -> list[Outcome]:
        """Of those who have answered all that was asked, or of all."""
        asking: list[Outcome] = []
        for life, collected in sorted(self._collected.items(), key=lambda one: one[0]):
            if (again or collected.is_answered()) and (parts := collected.ask(self._batch_parts)):
                self.kit.count.add(Counter.GROUP_PARTS_ASKED)
                self._asked_groups_us = now_us
                asking += self._ways.send((life,), WantGroups(self.attempt.ballot, parts), now_us)
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
        asker = min(life for life in movers if self.kit.site_of(life) == self.kit.site)
        for key in missing(self.plan, self._declaration):
            holders = sorted(holdings.holders(*key), key=self._ways.distance)
            is_far = self.kit.site_of(holders[0]) != self.kit.site
            self._missing[key] = [asker] if is_far and asker != self.kit.me else holders

    def _ask(self, now_us: int) -> list[Outcome]:
        """Ask each bundle's nearest holder, a bounded number at a time."""
        wanted: dict[Life, list[tuple[int, int, int]]] = {}
        self._asked_us = now_us
        self._asked = set(list(self._missing)[: self.kit.settings.recovery_batch_bundles])
        for site, number in sorted(self._asked):
            wanted.setdefault(self._missing[site, number][0], []).append((site, number, number))
        effects: list[Outcome] = []
        for holder, ranges in sorted(wanted.items()):
            effects += self._ways.send((holder,), Want(self.attempt.ballot, tuple(ranges)), now_us)
        return effects

    def _ask_others(self) -> None:
        """Who was asked has not answered: it is the next one's turn."""
        for key in self._asked:
            holders = self._missing.get(key, [])
            if len(holders) > 1:
                self.kit.count.add(Counter.NEXT_HOLDER_ASKED)
                holders.append(holders.pop(0))

    def _finish(self, now_us: int) -> list[Outcome]:
        assert self.plan is not None
        self._old.order.be_done(self.plan)
        completed = self._note_done([self.kit.me])
        return [SaidDone(self.plan.commit), *self._say_done(self._others(), now_us), *completed]

    def repeat(self, now_us: int) -> list[Outcome]:
        """Ask again for what may have been lost, and say again that we are done."""
        self.kit.deadlines.set(EvsDeadline.EXCHANGE, now_us + self.kit.settings.exchange_resend_ms * 1_000)
        effects: list[Outcome] = []
        for life in self.undeclared():
            effects += self._ways.send((life,), self._states.ask(life), now_us)
        if self._received:
            self._received = False
            effects += self._ways.send(self._others(), Proceeding(self.attempt.ballot), now_us)
        asked_before_us = now_us - self.kit.settings.exchange_resend_ms * 1_000
        if self._missing and self._asked_us <= asked_before_us:
            self._ask_others()
            effects += self._ask(now_us)
        if self.plan is not None and self._asked_groups_us <= asked_before_us:
            effects += self._ask_for_groups(now_us, again=True)
        if self.is_done_here:
            effects += self._say_done(tuple(life for life in self._others() if life not in self._done), now_us)
        return effects

    def undeclared(self) -> tuple[Life, ...]:
        return tuple(life for life in self.attempt.members if life not in self._declared)

    # --- sending

    def _others(self) -> tuple[Life, ...]:
        return tuple(life for life in self.attempt.members if life != self.kit.me)

    def _say_state(self, to: tuple[Life, ...], wanted: tuple[int, ...], now_us: int) -> list[Outcome]:
        effects: list[Outcome] = []
        for part in self._states.mine(wanted):
            effects += self._ways.send(to, part, now_us)
        return effects

    def _say_done(self, to: tuple[Life, ...], now_us: int) -> list[Outcome]:
        return [*self._ways.send(to, Done(self.attempt.ballot, reply=False), now_us)]

    def check(self) -> None:
        assert not self.is_done_here or not self._missing, "E2"
        assert self.kit.me in self._declared
