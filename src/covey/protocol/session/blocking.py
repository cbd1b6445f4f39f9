"""Which groups' senders must wait for slow receivers, and for which share of the time that is allowed.

In:        the ordered requests of the sessions of all daemons; the time.
Out:       whether a sender must wait.
Not here:  when a receiver asks (slow.py), who waits (clients.py).

Each group has an allowance: waiting uses it up, and it comes back at `block_percent` of the time, up to that share of
`block_max_ms`. When it is used up, senders go on, requests or not, until half of it is back. So the receivers of a
group, however many and however new, hold it up for no more than that share of the time. Each sender has such an
allowance too: one that sends to several groups waits no longer for all of them.

Invariant: W2 a group is blocked while some session asks for it, and no request outlives its view.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from covey.ids import Life
from covey.protocol.values import Bundle, Kind

Asker = tuple[Life, int]

LOOKED_AT_MAX: Final = 500
"""Allowances looked at in one step."""


class Allowance:
    """How much of its time a group has spent waiting lately."""

    def __init__(self, now_us: int) -> None:
        self.spent_us = 0.0
        self.is_used_up = False
        self._at_us = now_us

    def note(self, now_us: int, waiting: bool, share: float, most_us: float) -> None:
        """Since the last time, its senders were, or were not, made to wait."""
        passed = now_us - self._at_us
        self._at_us = now_us
        self.spent_us = max(0.0, self.spent_us + passed * ((1.0 if waiting else 0.0) - share))
        if self.spent_us >= most_us and share < 1.0:
            self.is_used_up = True
        elif self.spent_us <= most_us / 2:
            self.is_used_up = False


class Blocked:
    def __init__(self, percent: int, block_max_ms: int) -> None:
        self._share = percent / 100
        self._most_us = self._share * block_max_ms * 1_000
        self._askers: dict[str, dict[Asker, None]] = {}
        self._groups_of: dict[Asker, dict[str, None]] = {}
        self._allowances: dict[str, Allowance] = {}
        self._senders: dict[int, Allowance] = {}
        self._waiting: set[int] = set()
        """Sessions that wait."""
        self.has_news = False
        """Since somebody last looked: who waits may try again."""

    def on_ordered(self, bundle: Bundle, now_us: int) -> None:
        """Something other than messages, of any session, at its place in the order."""
        asker = (bundle.origin, bundle.session)
        if bundle.kind is Kind.BLOCK:
            for group in bundle.groups:
                self._note(group, now_us)
                self._askers.setdefault(group, {})[asker] = None
                self._groups_of.setdefault(asker, {})[group] = None
        elif bundle.kind in (Kind.UNBLOCK, Kind.DISCONNECT):
            for group in self._groups_of.pop(asker, ()):
                self._note(group, now_us)
                del self._askers[group][asker]
                if not self._askers[group]:
                    del self._askers[group]
                    self.has_news = True

    def on_view(self, now_us: int) -> None:
        """Requests end with their view: who still blocks asks again."""
        for group in self._askers:
            self._note(group, now_us)
        self.has_news = self.has_news or bool(self._askers)
        self._askers.clear()
        self._groups_of.clear()

    def must_wait(self, sender: int, groups: tuple[str, ...], now_us: int) -> bool:
        """Whether this session must, that sends to these groups. It tries again now and then."""
        if not self._askers and sender not in self._waiting:
            return False
        blocked = False
        for group in groups:
            if group in self._askers:
                self._note(group, now_us)
                blocked = blocked or self._is_blocked(group)
        return self._note_sender(sender, blocked, now_us)

    def _note_sender(self, sender: int, blocked: bool, now_us: int) -> bool:
        """Who sends to several groups waits no longer for all of them than for one."""
        allowance = self._senders.get(sender)
        if allowance is None:
            if blocked:
                self._senders[sender] = Allowance(now_us)
                self._waiting.add(sender)
            return blocked
        allowance.note(now_us, sender in self._waiting, self._share, self._most_us)
        blocked = blocked and not allowance.is_used_up
        (self._waiting.add if blocked else self._waiting.discard)(sender)
        if not blocked and not allowance.spent_us:
            del self._senders[sender]
        return blocked

    def forget(self, sender: int) -> None:
        """The session is over."""
        self._senders.pop(sender, None)
        self._waiting.discard(sender)

    def look(self, now_us: int) -> None:
        """What has come back whole is forgotten: some at a time."""
        for group in list(islice(self._allowances, LOOKED_AT_MAX)):
            self._note(group, now_us)
            allowance = self._allowances.pop(group)
            if allowance.spent_us or group in self._askers:
                self._allowances[group] = allowance  # Behind the others: they have their turn.

    @property
    def is_idle(self) -> bool:
        return not self._allowances

    def groups(self) -> list[str]:
        return sorted(group for group in self._askers if self._is_blocked(group))

    def _is_blocked(self, group: str) -> bool:
        return group in self._askers and not self._allowances[group].is_used_up

    def _note(self, group: str, now_us: int) -> None:
        allowance = self._allowances.get(group)
        if allowance is None:
            self._allowances[group] = Allowance(now_us)
        else:
            allowance.note(now_us, self._is_blocked(group), self._share, self._most_us)

    def check(self) -> None:
        assert all(self._askers.values()), "W2"
        assert self._askers.keys() <= self._allowances.keys(), "W2"
