"""What waits to be stamped at this daemon, bounded in bytes, cut into bundles as it is taken.

What waits of one session goes first in, first out. Sessions of equal priority take turns; a session of higher priority
goes before all lower ones, except that a priority which was passed over `PASSED_OVER_MAX` times has a turn. So priority
orders sessions against each other and never messages inside a session, and nobody waits for ever.

Whoever finds no room is put on the wait list, and nobody passes: a large message at its head keeps what becomes free
until it fits. A session that has its share waiting already waits for its own messages to be stamped, and is not on it.

A message stays in the queue until its last fragment is stamped, and is finished before another begins. If the view ends
before, an engine lets it start again from its first fragment in the next view (`begin_again`); the others drop the
incomplete one (docs/protocol/ordering.md, "What is ordered"). Each bundle has its fifo number; an engine that counts
them in each view says when one begins (`count_anew`).

Invariants: Q1 the bytes waiting never exceed the bound, but for one message and for what the daemon itself must say;
Q2 who waits for room is on the wait list or over its share, not both; Q3 `ready` counts what is not put aside;
Q4 the joins that wait are counted by their groups.
"""

from __future__ import annotations

from collections import Counter, deque

from covey.config import part_bytes
from covey.ids import Life
from covey.protocol.values import Bundle, Kind, Payload, Service
from covey.protocol.wire.bundles import BUNDLE_OVERHEAD
from covey.protocol.wire.group_names import pack_groups

PRIORITIES = 3
PASSED_OVER_MAX = 8
"""Messages of other priorities that may go first while one waits."""


class Waiting:
    """One submission in the queue."""

    __slots__ = (
        "cost", "count", "everywhere", "flags", "groups", "kind", "names_bytes", "part_bytes", "payload", "priority",
        "service", "session", "session_seq", "taken",
    )  # fmt: skip

    def __init__(
        self,
        session: int,
        session_seq: int,
        count: int,
        service: Service,
        groups: tuple[str, ...],
        payload: Payload,
        kind: Kind = Kind.RAW,
        flags: int = 0,
        priority: int = 1,
    ) -> None:
        self.session = session
        self.session_seq = session_seq
        self.count = count
        self.service = service
        self.groups = groups
        self.payload = payload
        self.kind = kind
        self.flags = flags
        self.priority = priority
        self.names_bytes = len(pack_groups(groups))
        self.cost = cost(len(payload), self.names_bytes)
        self.part_bytes = len(payload)
        self.taken = 0  # Fragments already stamped in this view.
        self.everywhere = False  # It has begun again since more sites want it: nobody goes before it now.


MESSAGE_BYTES = 64
"""What a waiting message counts for besides its payload and its names: empty ones fill a queue too."""


def cost(payload_bytes: int, names_bytes: int) -> int:
    """What a message counts for while it waits.

    >>> cost(100, 9)
    173
    """
    return MESSAGE_BYTES + payload_bytes + names_bytes


class SubmitQueue:
    def __init__(self, me: Life, bytes_max: int, bundle_bytes: int, share_bytes: int = 1 << 62) -> None:
        self._me = me
        self._bytes_max = bytes_max
        self._share_bytes = share_bytes
        """What of one session may wait."""
        self._wait_list: dict[int, int] = {}
        """Sessions that wait for room, the first in front, and what each needs."""
        self._over_share: set[int] = set()
        self._relieved: dict[int, None] = {}
        self._bundle_bytes = bundle_bytes
        self._of_session: dict[int, deque[Waiting]] = {}
        self._turns: tuple[deque[int], ...] = tuple(deque() for _ in range(PRIORITIES))
        self._next: Waiting | None = None
        self._priority = 0  # Whose turn `_next` is.
        self._passed_over = [0] * PRIORITIES
        self._fifo_numbers: dict[int, int] = {}
        self._bytes_of: dict[int, int] = {}
        self.length = 0
        """How many wait: `len` for those who ask several times a step."""
        self.ready = 0
        """How many of them are not put aside."""
        self.notes_joins = False
        """An engine wants to know of joins before their turn comes."""
        self.joins: dict[str, None] = {}
        """Groups that are to be joined, as far as it was not told."""
        self._joins_of: dict[str, int] = {}
        """How many joins of each group wait."""
        self._aside: dict[str, list[tuple[int, int]]] = {}
        """Sessions, with their priorities, whose next is a join that may not be stamped yet, by its group."""
        self._sessions_aside: set[int] = set()
        self.bytes_waiting = 0

    def __len__(self) -> int:
        return self.length

    # --- admission

    def has_room(self, needed: int) -> bool:
        """For somebody who is on no wait list: not while others are."""
        return not self._wait_list and self._fits(needed)

    def admits(self, session: int, needed: int) -> bool:
        """Whether a message of this session may be put now; if not, the session waits until `to_try` names it."""
        mine = self._bytes_of.get(session, 0)
        if mine and mine + needed > self._share_bytes:
            self._wait_list.pop(session, None)
            self._over_share.add(session)
            return False
        if next(iter(self._wait_list), session) == session and self._fits(needed):
            self._wait_list.pop(session, None)
            return True
        self._wait_list[session] = needed
        return False

    @property
    def has_news(self) -> bool:
        """Somebody waits for room, or has found some."""
        return bool(self._wait_list or self._relieved)

    @property
    def is_to_try(self) -> bool:
        """Somebody who waits may find room now."""
        return bool(self._relieved) or (bool(self._wait_list) and self._fits(next(iter(self._wait_list.values()))))

    def to_try(self) -> list[int]:
        """Sessions that may find room now: those whose own messages made some, and the first on the list."""
        found, self._relieved = self._relieved, {}
        for session, needed in self._wait_list.items():
            if not self._fits(needed):
                break
            found[session] = None
            break
        return list(found)

    def give_up(self, session: int) -> None:
        """It waits no longer: it has ended, or waits for something else."""
        self._wait_list.pop(session, None)
        self._over_share.discard(session)
        self._relieved.pop(session, None)

    def knows(self, session: int) -> bool:
        """Whether it waits for room, and will be named when there is some."""
        return session in self._wait_list or session in self._over_share or session in self._relieved

    def _fits(self, needed: int) -> bool:
        return self.bytes_waiting + needed <= self._bytes_max or not self.length

    def bytes_of(self, session: int) -> int:
        """How much of one session waits."""
        return self._bytes_of.get(session, 0)

    def put(self, waiting: Waiting) -> None:
        mine = self._of_session.get(waiting.session)
        if mine is None:
            mine = self._of_session[waiting.session] = deque()
            self._turns[waiting.priority].append(waiting.session)
        mine.append(waiting)
        if self.notes_joins and waiting.kind is Kind.JOIN:
            self._note_join(waiting.groups[0])
        self.ready += waiting.session not in self._sessions_aside
        waiting.part_bytes = part_bytes(self._bundle_bytes, waiting.names_bytes)
        if self._next is not None and self._next.taken == 0 and not self._next.everywhere:
            self._next = None  # Whoever comes now may go first.
        self.length += 1
        self.bytes_waiting += waiting.cost
        self._bytes_of[waiting.session] = self._bytes_of.get(waiting.session, 0) + waiting.cost

    def next_bytes(self) -> int:
        """The encoding of the next bundle, names and all, in bytes; 0 if nothing waits."""
        waiting = self._peek()
        if waiting is None:
            return 0
        part = min(waiting.part_bytes, len(waiting.payload) - waiting.taken * waiting.part_bytes)
        return BUNDLE_OVERHEAD + waiting.names_bytes + part

    def next_service(self) -> Service | None:
        """What the next bundle asks for, or None if nothing waits."""
        waiting = self._peek()
        return None if waiting is None else waiting.service

    # --- joins that wait for something

    def note_joins(self, notes: bool) -> None:
        """Tell of joins from now on, and of those that wait already; whatever was put aside may have its turn."""
        self.bring_back(*list(self._aside))
        self.notes_joins = notes
        self.joins, self._joins_of = {}, {}
        for one in [one for mine in self._of_session.values() for one in mine] if notes else ():
            if one.kind is Kind.JOIN:
                self._note_join(one.groups[0])

    def _note_join(self, group: str) -> None:
        self.joins[group] = None
        self._joins_of[group] = self._joins_of.get(group, 0) + 1

    def has_join_of(self, group: str) -> bool:
        """Whether some join of this group waits."""
        return group in self._joins_of

    def next_join(self) -> str | None:
        """The group of the next, if it is a join."""
        waiting = self._peek()
        return waiting.groups[0] if waiting is not None and waiting.kind is Kind.JOIN else None

    @property
    def groups_aside(self) -> list[str]:
        return list(self._aside)

    def is_aside(self, session: int) -> bool:
        return session in self._sessions_aside

    def put_aside(self) -> None:
        """The next may not be stamped yet, nor what its session sent after it; others have their turn."""
        waiting = self._peek()
        assert waiting is not None
        assert not waiting.taken
        self._turns[self._priority].popleft()
        self._aside.setdefault(waiting.groups[0], []).append((waiting.session, self._priority))
        self._sessions_aside.add(waiting.session)
        self.ready -= len(self._of_session[waiting.session])
        self._next = None

    def bring_back(self, *groups: str) -> None:
        """Those who are to join these groups have their turn again, before the others."""
        if self._next is not None and self._next.taken == 0 and not self._next.everywhere:
            self._next = None
        for group in groups:
            for session, priority in reversed(self._aside.pop(group, [])):
                self._sessions_aside.discard(session)
                is_busy = self._next is not None and priority == self._priority  # It is finished before another begins.
                self._turns[priority].insert(int(is_busy), session)
                self.ready += len(self._of_session[session])

    # --- taking

    def content_of_next(self) -> tuple[Kind, tuple[str, ...], int] | None:
        """Kind, destinations and bytes of the next message; None if nothing has its turn."""
        waiting = self._peek()
        return None if waiting is None else (waiting.kind, waiting.groups, len(waiting.payload))

    def fragments_taken(self) -> int:
        """How many bundles of the next message are stamped already."""
        return 0 if self._next is None else self._next.taken

    def take(self, source: int, number: int, stamp: int) -> tuple[Bundle, Payload | None]:
        """The next bundle, stamped; with the whole payload when it completes its message.

        `source` is whose numbers these are, as the engine counts: a site, a daemon.
        """
        waiting = self._peek()
        assert waiting is not None
        size = waiting.part_bytes
        fragments = max(1, -(-len(waiting.payload) // size))
        part = waiting.payload[waiting.taken * size : (waiting.taken + 1) * size]
        fifo_number = self._fifo_numbers[waiting.session] = self._fifo_numbers.get(waiting.session, 0) + 1
        bundle = Bundle(
            source, number, stamp, self._me, waiting.session, waiting.session_seq, waiting.count, fifo_number,
            waiting.service, waiting.taken, fragments, waiting.groups, part, waiting.kind, waiting.flags,
        )  # fmt: skip
        waiting.taken += 1
        if waiting.taken < fragments:
            return bundle, None
        self._done(waiting)
        if waiting.kind is Kind.DISCONNECT:
            self._fifo_numbers.pop(waiting.session, None)  # It was the session's last word.
        return bundle, waiting.payload

    def count_anew(self) -> None:
        """From here on the fifo numbers of every session are counted from 1 again."""
        self._fifo_numbers.clear()

    def begin_again(self) -> bool:
        """A message of which only some fragments were stamped starts from its first one: whether there is one."""
        again = self._next is not None and self._next.taken > 0
        if self._next is not None:
            self._next.taken, self._next.everywhere = 0, False
        return again

    def go_everywhere(self) -> None:
        """The same in the middle of a view, for more sites. Others have fragments of it: nothing goes before it."""
        assert self._next is not None
        self._next.taken, self._next.everywhere = 0, True

    @property
    def goes_everywhere(self) -> bool:
        return self._next is not None and self._next.everywhere

    def check(self) -> None:
        waiting = [one for mine in self._of_session.values() for one in mine]
        assert self.length == len(waiting)
        aside = {session for some in self._aside.values() for session, _ in some}
        assert aside == self._sessions_aside, "Q3"
        assert self.ready == self.length - sum(len(self._of_session[session]) for session in aside), "Q3"
        assert self.bytes_waiting == sum(one.cost for one in waiting) == sum(self._bytes_of.values())
        asked = [one.cost for one in waiting if one.kind <= Kind.LEAVE]
        assert sum(asked) <= self._bytes_max or len(asked) <= 1, "Q1"
        assert not self._over_share & self._wait_list.keys(), "Q2"
        assert all((one.taken == 0 and not one.everywhere) or one is self._next for one in waiting)
        assert not self.notes_joins or self._joins_of == Counter(
            one.groups[0] for one in waiting if one.kind is Kind.JOIN
        ), "Q4"

    # --- whose turn it is

    def _peek(self) -> Waiting | None:
        if self._next is None and self.ready:
            self._priority = self._choose()
            self._next = self._of_session[self._turns[self._priority][0]][0]
        return self._next

    def _choose(self) -> int:
        """The priority to serve next."""
        waiting = [priority for priority, turns in enumerate(self._turns) if turns]
        if len(waiting) == 1:
            return waiting[0]
        longest = max(waiting, key=lambda priority: self._passed_over[priority])
        return longest if self._passed_over[longest] >= PASSED_OVER_MAX else waiting[0]

    def _done(self, waiting: Waiting) -> None:
        self._next = None
        for priority, turns in enumerate(self._turns):
            self._passed_over[priority] = self._passed_over[priority] + 1 if turns else 0
        self._passed_over[self._priority] = 0
        turns, mine = self._turns[self._priority], self._of_session[waiting.session]
        mine.popleft()
        turns.popleft()
        if mine:
            turns.append(waiting.session)
        else:
            del self._of_session[waiting.session]
        self._count_out(waiting)

    def _count_out(self, waiting: Waiting) -> None:
        if self.notes_joins and waiting.kind is Kind.JOIN:
            left = self._joins_of.pop(waiting.groups[0]) - 1
            if left:
                self._joins_of[waiting.groups[0]] = left
        self.length -= 1
        self.ready -= 1
        session = waiting.session
        self.bytes_waiting -= waiting.cost
        left = self._bytes_of[session] - waiting.cost
        if left:
            self._bytes_of[session] = left
        else:
            del self._bytes_of[session]
        if session in self._over_share:
            self._over_share.discard(session)
            self._relieved[session] = None
