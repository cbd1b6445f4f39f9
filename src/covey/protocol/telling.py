"""What this daemon's clients are still to be told: the daemon's deliveries and views, worked off in portions.

In:        deliveries and installed views, in their order.
Out:       `Told`: something for some sessions; `Passed`: all that a change shows has been told.
Not here:  handing it to sessions (clients.py), what is shown to whom (groups/).

Telling may take much longer than ordering: a join is one small message, and thousands may have to hear of it. So it is
cut into portions, and a step does only so many. Order is kept: nothing is begun before what came earlier is done.
Joins and leaves of one group that wait here one after the other are told together, each still a view of its own.

A session that is gone may have been in thousands of groups. Where nobody here is told of it, leaving them is put off:
messages do not wait for that, because no receiver here is concerned. Whatever else changes groups does.

Invariant: T1 `bytes_waiting` is the sum of the payloads that wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from covey.protocol.dialects.dialect import Shared
from covey.protocol.groups.layer import Groups, Out
from covey.protocol.groups.step import NetworkStep

from .effects import Deliver, Installed
from .portions import Portions
from .values import Kind


class Told(NamedTuple):
    """For these sessions."""

    sessions: Collection[int]
    what: Shared | None
    """None: a breath, for nobody."""
    messages: int


class Passed(NamedTuple):
    """An ordered change, or a view, is told; what depends on it may happen now."""

    effect: Deliver | Installed


class NextView(NamedTuple):
    """A view of the daemons, and what was delivered after the signal before it."""

    after: list[Deliver]
    installed: Installed


BREATH: Final = Told((), None, 0)


class Telling:
    def __init__(self, groups: Groups, portions: Portions) -> None:
        self._groups = groups
        self._at_most = portions
        self._waiting: deque[Deliver | NextView] = deque()
        self._portions: Iterator[Told | Passed] | None = None
        self._put_off: deque[Iterator[None]] = deque()
        """Groups to be left by who is gone, of which nobody is told."""
        self.bytes_waiting = 0

    def __bool__(self) -> bool:
        return self._portions is not None or bool(self._waiting or self._put_off)

    @property
    def is_behind(self) -> bool:
        most = self._at_most
        return len(self._waiting) > most.behind or self.bytes_waiting > most.behind_bytes

    def put(self, item: Deliver | NextView) -> None:
        self._waiting.append(item)
        self.bytes_waiting += _bytes_of(item)

    def next(self) -> Told | Passed | None:
        """The next portion; None if there is none."""
        while self._portions is not None or self._waiting:
            if self._portions is None:
                self._portions = self._begin()
            portion = next(self._portions, None)
            if portion is not None:
                return portion
            self._portions = None
        return next(self._catch_up(), None)

    # --- one item after the other

    def _begin(self) -> Iterator[Told | Passed]:
        item = self._take()
        if isinstance(item, NextView):
            return self._next_view(item)
        if item.bundle.kind is Kind.MESSAGES:
            return self._all(iter(self._groups.message(item)))
        return self._light_change(item)

    def _take(self) -> Deliver | NextView:
        item = self._waiting.popleft()
        self.bytes_waiting -= _bytes_of(item)
        return item

    def _catch_up(self) -> Iterator[Told]:
        """What was put off is done."""
        while self._put_off:
            for _ in self._put_off[0]:
                yield BREATH
            self._put_off.popleft()

    def _light_change(self, first: Deliver) -> Iterator[Told | Passed]:
        kind, run = first.bundle.kind, [first]
        if kind in (Kind.JOIN, Kind.LEAVE, Kind.DISCONNECT):
            run = self._run(first)
            if any(effect.bundle.kind is not Kind.DISCONNECT for effect in run):
                yield from self._catch_up()  # Who joins is shown who is there, and nobody else.
            yield from self._all(self._groups.changed(run))
        for effect in run:
            yield Passed(effect)
        if kind is Kind.DISCONNECT and len(run) == 1:
            self._put_off.append(self._groups.forgotten(first.bundle))

    def _run(self, first: Deliver) -> list[Deliver]:
        """With those that follow at once and are about the same group alone."""
        run, group = [first], self._groups.only_group(first.bundle)
        while group is not None and self._waiting and len(run) < self._at_most.run:
            item = self._waiting[0]
            if isinstance(item, NextView) or self._groups.only_group(item.bundle) != group:
                break
            self._take()
            run.append(item)
        return run

    def _next_view(self, coming: NextView) -> Iterator[Told | Passed]:
        yield from self._catch_up()
        yield from self._all(NetworkStep(self._groups, *coming).told())
        for effect in coming.after:
            if effect.bundle.kind > Kind.MESSAGES:
                yield Passed(effect)
        for _ in self._groups.where.begin(coming.installed):
            yield BREATH
        yield Passed(coming.installed)

    def _all(self, outs: Iterator[Out] | Iterator[Out | None]) -> Iterator[Told]:
        for out in outs:
            if out is None:
                yield BREATH
            elif len(out.sessions) <= self._at_most.at_once:
                yield told(out)
            else:
                yield from self._in_portions(out)

    def _in_portions(self, out: Out) -> Iterator[Told]:
        _, what, messages = told(out)
        sessions = tuple(out.sessions)
        for at in range(0, len(sessions), self._at_most.at_once):
            yield Told(sessions[at : at + self._at_most.at_once], what, messages)

    def check(self) -> None:
        assert self.bytes_waiting == sum(map(_bytes_of, self._waiting)), "T1"


def told(out: Out) -> Told:
    what = out.what
    return Told(out.sessions, Shared(what), what.bundle.count if isinstance(what, Deliver) else 0)


def _bytes_of(item: Deliver | NextView) -> int:
    effects = item.after if isinstance(item, NextView) else (item,)
    return sum(len(payload) for effect in effects for payload in effect.payloads)
