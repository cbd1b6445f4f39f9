"""The order of one view at one daemon: what may be delivered when (rules R2 to R5).

In:        bundles and announcements from links, the lines of the sites (stability), the plan of a recovery.
Out:       deliveries, in order.
Not here:  stamping (the engine, with the token), how bundles travel (links/).

Invariants: Z1 nothing is delivered above the line unless it may come early; Z2 safe never above the safe line;
            Z3 the position never falls; Z4 of each daemon at most one message is half delivered, so what is kept of
            unfinished messages is bounded by the largest message for each member; Z5 what all are known to have, we
            have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush

from covey.ids import Ballot, Life
from covey.protocol.counters import Count, Counter, Dropped
from covey.protocol.values import (
    START,
    Announcement,
    Bundle,
    Declaration,
    Delivery,
    Kind,
    Service,
)

from .log import SiteLog
from .recovery import RecoveryPlan
from .sessions import EARLY, SessionOrder
from .stability import Stability


class ViewOrder:
    def __init__(self, view: Ballot, sites: tuple[int, ...], me: Life, count: Count) -> None:
        self.view = view
        self._me = me
        self.logs = {site: SiteLog(site) for site in sites}
        self._first, *more = self.logs.values()
        self._is_one_site = not more
        self.stability = Stability(sites)
        self.position = START
        self.frozen = False
        self._aru_when_frozen = 0
        self._count = count
        self._sessions: dict[tuple[Life, int], SessionOrder] = {}
        # Everything that has not left the order, by place: stamp, site, number, and what is there.
        self._heap: list[tuple[int, int, int, Bundle]] = []
        self._highest = 0
        self._ready: list[Delivery] = []  # What came early because a head counts now.
        self._safe_waiting = 0
        self._safe_position = START
        self._checked_position = START
        # Once the view is over: up to here nothing is missing, above it holes may precede anything.
        self._hole_line = 0
        # Rule R8: the highest stamp of others that was delivered ahead of the line, and whether that is halted.
        self.early_high = 0
        self.hold_early = False

    # --- in a working view

    def add(self, bundle: Bundle) -> list[Delivery] | Dropped:
        """Take a new bundle; returns what it allows to be delivered ahead of the order."""
        log = self.logs.get(bundle.site)
        counts = not bundle.is_meta or self._counts(bundle)
        if self.frozen or log is None or not log.add(bundle, counts):
            return Dropped(Counter.BUNDLE_KNOWN)
        early = self._enter_held(bundle) if counts else []
        if not self._ready or isinstance(early, Dropped):
            return early
        ready, self._ready = self._ready, []
        return ready + early

    def _enter_held(self, bundle: Bundle) -> list[Delivery] | Dropped:
        if (dropped := self._enter(bundle)) is not None:
            return dropped
        if bundle.service not in EARLY or (self.hold_early and bundle.origin != self._me):
            return []
        return self._early(bundle)

    def _counts(self, head: Bundle) -> bool:
        """Whether every site that needs its content has it (rule W10)."""
        source, number, stability = head.site, head.number, self.stability
        return all(
            stability.has_received(site, source, number)
            for bit, site in enumerate(self.logs)
            if head.content >> bit & 1
        )

    def raise_received(self, site: int, source: int, number: int) -> None:
        """Every daemon of the site has the source's bundles up to this number: heads may count by that."""
        if self.stability.has_received(site, source, number):
            return
        self.stability.raise_received(site, source, number)
        log = self.logs[source]
        if not log.heads or self.frozen:
            return
        for head in log.count(self._counts):
            self._count.add(Counter.HEAD_WAITED)
            early = self._enter_held(head)
            if isinstance(early, Dropped):
                self._count.add(early.counter)
            else:
                self._ready += early

    def past_is_complete(self) -> bool:
        """Whether everything that may have happened before what was delivered early is here (rule R8).

        Only then may a causal or stronger message be stamped: the daemon will have to deliver it itself, and must not
        do so without its past. While it waits, nothing of others comes early, so the wait ends.
        """
        self.hold_early = self.early_high > self.line()
        return not self.hold_early

    def announce(self, site: int, announcement: Announcement) -> None:
        if not self.frozen and site in self.logs:
            self.logs[site].announce(announcement)

    def line(self) -> int:
        """Everything up to this stamp is here, from every site."""
        return self._first.frontier if self._is_one_site else min([log.frontier for log in self.logs.values()])

    def safe_line(self) -> int:
        return self.stability.safe_line()

    def deliver(self) -> list[Delivery]:
        """Everything whose turn has come in the agreed order."""
        deliveries, self._ready = self._ready, []
        if self.frozen or not self._heap:
            return deliveries
        line, safe_line = self.line(), self.stability.safe_line()
        heap, last = self._heap, None
        while heap:
            bundle = heap[0][3]
            if not bundle.passed:
                is_safe = bundle.service is Service.SAFE
                if bundle.stamp > (safe_line if is_safe else line):
                    break
                deliveries += self._take(bundle)
                last = bundle
                if is_safe:
                    self._safe_position = bundle.position
                    self._safe_waiting -= 1
            heappop(heap)
        if last is not None:
            self.position = last.position
        return deliveries

    def discard(self) -> None:
        """Let go of what everyone has received and we have delivered. What is frozen was declared: it stays."""
        if self.frozen:
            return
        everywhere = self.stability.received_everywhere
        for site, log in self.logs.items():
            if log.low < everywhere[site]:
                log.discard(everywhere[site])

    @property
    def undelivered(self) -> int:
        """Bundles that have not left the order."""
        return len(self._heap)

    @property
    def safe_waits(self) -> bool:
        """Whether a safe message waits until everybody is known to have it."""
        return self._safe_waiting > 0

    def has_unstable(self) -> bool:
        """Whether anything is not yet delivered here, or not yet known to be everywhere."""
        if self._heap or self._highest > self.safe_line():
            return True
        return any(self.stability.received_by_all(site) < log.received for site, log in self.logs.items())

    # --- ending the view

    def freeze(self) -> None:
        """From here on only what co-movers resend is taken (docs/protocol/recovery.md, 1)."""
        if not self.frozen:
            self.frozen = True
            self._aru_when_frozen = self.safe_line()

    def declare(self, high: int, commit: Iterable[Life]) -> Declaration:
        sites = tuple(log.declaration() for log in self.logs.values())
        return Declaration(self.view, self.position, self._aru_when_frozen, high, tuple(sorted(commit)), sites)

    def recover(self, bundle: Bundle) -> Dropped | None:
        """Take a bundle that a co-mover resent. It waits for its place: nothing comes early any more."""
        return self._enter(bundle) if self.logs[bundle.site].recover(bundle) else Dropped(Counter.RESEND_NOT_WANTED)

    def count_heads(self, lows: Mapping[int, int]) -> None:
        """Somebody has let go of what is numbered up to here: so every site has received it, and heads of it count."""
        for site, low in lows.items():
            for head in self.logs[site].count(lambda one, low=low: one.number <= low):  # type: ignore[misc]
                if (dropped := self._enter(head)) is not None:
                    self._count.add(dropped.counter)

    def be_done(self, plan: RecoveryPlan) -> None:
        """We are done with an attempt: what it knew stays known (docs/protocol/recovery.md, 5).

        Somebody may install it, and show what comes before its signal: then that comes before our signal too.
        """
        for site, frontier in plan.frontiers.items():
            self.logs[site].raise_frontier(frontier)
        self.position = max(self.position, plan.position)

    def finish(self, plan: RecoveryPlan) -> tuple[list[Delivery], list[Delivery]]:
        """The rest of the view: what comes before the signal, and what after it (docs/protocol/recovery.md, 6)."""
        before, self._ready = self._ready, []
        after: list[Delivery] = []
        self._hole_line = min(max(log.frontier, plan.frontiers.get(site, 0)) for site, log in self.logs.items())
        while self._heap:
            bundle = heappop(self._heap)[3]
            if not bundle.passed and self._survives(bundle, plan):
                (before if bundle.position <= plan.position else after).extend(self._take(bundle))
        self._count.add(Counter.SAFE_AFTER_SIGNAL, sum(one.bundle.service is Service.SAFE for one in after))
        return before, after

    def check(self, full: bool) -> None:
        line, safe_line = self.line(), self.safe_line()
        assert self.position.stamp <= line or self.frozen, "Z1"
        assert self._safe_position.stamp <= safe_line, "Z2"
        assert self.position >= self._checked_position, "Z3"
        self._checked_position = self.position
        assert safe_line <= line, "Z5"
        if full:
            self._check_logs_and_sessions()

    def _check_logs_and_sessions(self) -> None:
        for site, log in self.logs.items():
            log.check()
            assert self.stability.received_by_all(site) <= log.received, "Z5"
        for session in self._sessions.values():
            session.check()
        unfinished = [origin for (origin, _), session in self._sessions.items() if session.is_within_a_message()]
        assert len(unfinished) == len(set(unfinished)) or self.frozen, "Z4"

    # --- helpers

    def _enter(self, bundle: Bundle) -> Dropped | None:
        """A bundle takes its place. A second one with the same fifo number never leaves the order."""
        if not self._session(bundle).hold(bundle):
            bundle.passed = True
            return Dropped(Counter.BUNDLE_PLACE_TAKEN)
        stamp = bundle.stamp
        heappush(self._heap, (stamp, bundle.site, bundle.number, bundle))
        self._highest = max(self._highest, stamp)
        self._safe_waiting += bundle.service is Service.SAFE
        return None

    def _session(self, bundle: Bundle) -> SessionOrder:
        key = (bundle.origin, bundle.session)
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = SessionOrder()
        return session

    def _take(self, bundle: Bundle) -> list[Delivery]:
        """A bundle's turn has come: deliver its message, or go past an earlier fragment of one."""
        session = self._session(bundle)
        if bundle.fragment + 1 < bundle.fragments:
            session.go_past(bundle)
            return []
        delivery = session.whole(bundle)
        if delivery is None:
            return []  # A fragment is lost for good: only possible above a hole.
        session.finish(delivery)
        if bundle.kind is Kind.DISCONNECT:
            self._sessions.pop((bundle.origin, bundle.session), None)  # It was the session's last word.
        if not session.held or self.frozen or self.hold_early:
            return [delivery]
        return [delivery, *self._next_fifo(session)]

    def _early(self, bundle: Bundle) -> list[Delivery]:
        session = self._session(bundle)
        deliveries: list[Delivery] = []
        if bundle.service is Service.RELIABLE:
            delivery = session.whole(bundle)
            if delivery is not None:
                session.finish(delivery)
                deliveries.append(self._note_early(delivery))
        return deliveries + self._next_fifo(session)

    def _next_fifo(self, session: SessionOrder) -> list[Delivery]:
        """What of a session may go now because everything it sent before has gone."""
        deliveries: list[Delivery] = []
        while (bundle := session.next_held()) is not None and bundle.service in EARLY:
            delivery = session.whole(bundle)
            if delivery is None:
                break
            session.finish(delivery)
            deliveries.append(self._note_early(delivery))
        return deliveries

    def _note_early(self, delivery: Delivery) -> Delivery:
        if delivery.bundle.origin != self._me:
            self.early_high = max(self.early_high, delivery.bundle.stamp)
        return delivery

    def _survives(self, bundle: Bundle, plan: RecoveryPlan) -> bool:
        """Up to the hole line everything; above it only what no lost bundle can precede for its service."""
        if bundle.stamp <= self._hole_line or bundle.service is Service.RELIABLE:
            return True
        if bundle.service is Service.FIFO:
            return self._session(bundle).has_prefix_of(bundle)
        return bundle.origin in plan.commit
