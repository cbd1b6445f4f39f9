"""One daemon, pure: `step(now, inputs) -> effects`, once per wake-up with everything that arrived.

In:        inputs.py.  Out: effects.py, in the order to perform them; `next_deadline_us()`; `snapshot()`.
Not here:  sockets, clocks, randomness: time and the seed are arguments. How messages are ordered (boundary.py).

The daemon is the door: it hands frames to its ordering engine, words of clients to the client side, and what the engine
delivers to the clients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Generic, TypeVar

from covey.cluster import Cluster
from covey.config import Settings
from covey.ids import Instant, Life
from covey.protocol.dialects.dialect import Dialect
from covey.protocol.dialects.known import DIALECTS
from covey.protocol.groups.declared import Declared
from covey.protocol.status import DaemonStatus, GroupsStatus
from covey.protocol.transport.queue import SubmitQueue

from .admission import Admission
from .boundary import OrderingEngine
from .clients import Clients
from .counters import Count
from .datagrams import Datagrams
from .deadlines import Deadline, DeadlineTable
from .driven import check_submit
from .effects import Effect, Refused, Stopped
from .inputs import ClientBytes, ClientConnected, ClientGone, Datagram, Input, PeerRefused, Submit
from .kit import Kit
from .portions import PORTIONS, Portions
from .values import Payload

E = TypeVar("E", bound=OrderingEngine)


class Daemon(Generic[E]):
    def __init__(
        self,
        cluster: Cluster,
        me: Life,
        settings: Settings,
        start: Instant,
        make_engine: Callable[[Kit, SubmitQueue, Declared], E],
        budget_bytes: int = 0,
        portions: Portions = PORTIONS,
        dialects: Mapping[str, Dialect] = DIALECTS,
    ) -> None:
        """`budget_bytes` is what may wait for all clients together, where the settings leave that to the machine."""
        self.kit = Kit(me, cluster, settings, Count(), DeadlineTable())
        self._queue = SubmitQueue(me, settings.submit_queue_bytes, settings.bundle_bytes, settings.session_send_bytes)
        self._admission = Admission(settings, self._queue, self.kit.count)
        declared = Declared()
        self.engine = make_engine(self.kit, self._queue, declared)
        self.clients = Clients(self.kit, self._admission, declared, dialects, budget_bytes, portions)
        self.datagrams = Datagrams(self.kit, self.engine)
        self._now_us = start.mono_us
        self._stopped = False
        self._worked = False
        self._sent: list[Effect] = []
        """What the step under way has sent of what waited, and clients have not been told."""

    # --- the door

    def start(self, now: Instant) -> list[Effect]:
        return self.engine.start(now.mono_us)

    def step(self, now: Instant, inputs: list[Input]) -> list[Effect]:
        """Take everything that arrived, data before tokens; act on deadlines that have run out; send what waits."""
        return self.step_until_sent(now, inputs) + self.finish_step()

    def step_until_sent(self, now: Instant, inputs: list[Input]) -> list[Effect]:
        """The step up to its datagrams: whoever sends them before it calls `finish_step` lets others wait less."""
        if self._stopped:
            return []
        effects: list[Effect] = []
        now_us, engine = now.mono_us, self.engine
        self._now_us = now_us
        self.clients.begin(now_us, engine.is_working)
        for one in inputs:
            if new := self.datagrams.take(one, now_us) if isinstance(one, Datagram) else self._take(one, now_us):
                self._emit(effects, new)
        engine.hold_back(self.clients.behind)
        self._tell_engine(now_us)
        if new := engine.progress(now_us):
            self._emit(effects, new)
        for late in self.datagrams.take_late():
            self._emit(effects, self.datagrams.on_late(late, now_us))
        for deadline in self.kit.deadlines.due(now_us):
            if self.kit.deadlines.take(deadline, now_us):
                self._emit(effects, self._on_deadline(deadline, now_us))
        self._worked = self.clients.work()
        self._tell_engine(now_us)
        self._sent = self._send(now_us)
        effects += self._sent
        return effects

    def finish_step(self) -> list[Effect]:
        """The rest of it: what the step has sent is delivered here too."""
        delivered: list[Effect] = []
        if self._worked or self._sent:
            delivered = self.engine.progress(self._now_us) if self._sent else []
            unsent = self._queue.length
            self.clients.observe(self._sent + delivered, self._now_us)
            self.clients.go_on_soon(self._now_us, has_submitted=self._queue.length > unsent)
            self._worked, self._sent = False, []
        effects = delivered + self.clients.take_effects()
        return effects + self._maybe_say_goodbye() if self._admission.stopping else effects

    def _emit(self, effects: list[Effect], new: list[Effect]) -> None:
        """Clients see what the engine did, at once and in order."""
        effects += new
        self.clients.observe(new, self._now_us)

    def _tell_engine(self, now_us: int) -> None:
        """Who is in which group, where that matters to it."""
        if self.clients.groups.where.has_news:
            for news in self.clients.groups.where.take_news():
                self.engine.on_group_news(news, now_us)

    def _send(self, now_us: int) -> list[Effect]:
        """What clients and the driver have submitted in this step goes out together."""
        effects: list[Effect] = []
        for submit in self._admission.take_unreliable():
            effects += self.engine.send_unreliable(submit)
        if self._queue.length:
            effects += self.engine.submitted(now_us)
        return effects

    def pull(self, connection: int, room: int) -> list[Payload]:
        """The second door: what to write to a client whose stream has room."""
        return self.clients.pull(connection, room)

    def next_deadline_us(self) -> int | None:
        return None if self._stopped else self.kit.deadlines.next_us()

    @property
    def is_at_rest(self) -> bool:
        """Whether no change is under way, nothing waits, and everybody has what was sent."""
        return not self.engine.is_changing and self.engine.is_settled

    # --- what it tells of itself

    def snapshot(self, now_us: int) -> DaemonStatus:
        """What a person wants to know about this daemon now."""
        report, datagrams = self.engine.report(now_us), self.datagrams
        return {
            "name": self.kit.name(self.kit.me.rank),
            "boot": self.kit.me.boot,
            "state": report.state,
            "reason": report.reason,
            "view": str(report.view),
            "members": self._names(report.members),
            "working": report.working,
            "waiting_bytes": self._queue.bytes_waiting,
            "link": report.link,
            "peers": report.peers,
            "clients": self.clients.snapshot(now_us),
            "strangers": report.strangers,
            "outsiders": datagrams.outsiders.snapshot(now_us),
            "count": _sorted(self.kit.count),
            "outcomes": _sorted(datagrams.outcomes),
            "outcomes_unlisted": _sorted(datagrams.outcomes_unlisted),
        }

    def groups_snapshot(self, wanted: str, groups_max: int, members_max: int) -> Iterator[GroupsStatus | None]:
        """Who is in which group, as this daemon's view has it: a portion at a time, None until it is done."""
        for listed in self.clients.groups.roster.listing_in_portions(wanted, groups_max, members_max):
            if listed is None:
                yield None
                continue
            report = self.engine.report(self._now_us)
            yield {
                "name": self.kit.name(self.kit.me.rank),
                "view": str(report.view),
                "working": report.working,
                "daemons": self._names(report.members),
                "groups": listed["groups"],
                "group_count": listed["group_count"],
            }

    def _names(self, lives: tuple[Life, ...]) -> list[str]:
        return [self.kit.name(life.rank) for life in lives]

    def check(self, full: bool) -> None:
        """Invariants of every layer: cheap ones after each step, all at state changes."""
        if self._stopped:
            return  # It waits for nothing any more.
        self.engine.check(full)
        self.clients.check(full)

    # --- inputs

    def _take(self, one: Input, now_us: int) -> list[Effect]:
        if isinstance(one, Submit):
            return self._on_submit(one)
        if isinstance(one, PeerRefused):
            return self.engine.on_peer_refused(one.rank, now_us)
        if isinstance(one, ClientBytes):
            self.clients.on_bytes(one.connection, one.data, now_us)
        elif isinstance(one, ClientConnected):
            self.clients.on_connected(one, now_us)
        elif isinstance(one, ClientGone):
            self.clients.on_gone(one.connection, now_us)
        else:
            return self._on_stop(now_us)
        return []

    def _on_deadline(self, deadline: Enum, now_us: int) -> list[Effect]:
        if not isinstance(deadline, Deadline):
            return self.engine.on_deadline(deadline, now_us)
        if deadline is Deadline.GOODBYE:
            return self._say_goodbye()
        if deadline is Deadline.CLIENTS:
            self.clients.on_deadline(now_us)
        return []  # CLIENT_WORK has brought us here: `work` is done in every step.

    def _on_submit(self, submit: Submit) -> list[Effect]:
        check_submit(submit)
        refused = self._admission.take(submit)
        return [Refused(submit.session, submit.session_seq, refused)] if refused else []

    # --- the end

    def _on_stop(self, now_us: int) -> list[Effect]:
        self._admission.stopping = True
        self.clients.end_all("the daemon stops", now_us)
        self.kit.deadlines.set_if_clear(Deadline.GOODBYE, now_us + self.kit.settings.goodbye_wait_ms * 1_000)
        return self.engine.hasten(now_us)

    def _maybe_say_goodbye(self) -> list[Effect]:
        """Goodbye follows the stability of our own bundles."""
        if not self._admission.stopping or self._stopped or not self.engine.is_working or not self.engine.is_settled:
            return []
        return self._say_goodbye()

    def _say_goodbye(self) -> list[Effect]:
        self._stopped = True
        self.kit.deadlines.clear_all()
        return [*self.engine.last_words(), Stopped()]


def _sorted(count: Count) -> dict[str, int]:
    return dict(sorted(count.in_words().items()))
