"""One session seen from the program, without a socket: what it asks becomes bytes, what the daemon says becomes events.

In:        requests of the program; bytes from the daemon, however they were cut; that the stream broke.
Out:       `take`: bytes to write now; `feed`: events. Nothing the daemon sends makes it raise.
Not here:  sockets and waiting (stream.py), bundles (outbox.py), what may be sent (routes.py), what an observer makes of
           what it is told (recording.py).

Bounded: one unfinished frame is kept. What waits to be written is `waiting_bytes`, and the caller's to limit.

Invariants:
  D1  after `Disconnected`, and after `bye`, there are no more events
  D2  when it is over it is in no group, has no views, and nothing waits
  D3  a roll is kept for each group that has a view, and for no other
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final

from covey.config import FRAME_SLACK
from covey.errors import ArgumentError, FrameError, LocalProtocolError, MembershipError, SessionOverError
from covey.names import group_problem, name_problem
from covey.protocol.notices import OwnDiscarded
from covey.protocol.values import Payload, Policy
from covey.protocol.wire.bodies import sender_prefix
from covey.protocol.wire.session import ARRIVED, HELLO_BYTES_MAX, Splitter, encode_word, read_arrived, read_from_daemon
from covey.protocol.wire.words import (
    MAGIC,
    VERSION,
    Bye,
    ClientAlive,
    DaemonAlive,
    Discarded,
    Ended,
    Failed,
    FromDaemon,
    GroupDifferences,
    GroupLeft,
    GroupSignal,
    GroupView,
    Hello,
    JoinGroup,
    LeaveGroup,
    Rejected,
    Welcome,
)

from .events import Disconnected, Event, Failure, Transitional, batch_or_failure, self_leave_of
from .observer import Observer
from .options import PLAIN, SendOptions
from .outbox import Outbox
from .roll import Roll, name_of
from .routes import Data, Destinations, Routes, checked_payload, checked_payloads
from .view import next_view, view_of

PRIORITIES: Final = range(3)
POLICIES: Final[tuple[Policy, ...]] = ("disconnect", "block")

WE_LEFT: Final = "we left"
_ALIVE: Final = encode_word(ClientAlive())

MESSAGE_BYTES_MAX: Final = 1 << 30
"""However much a daemon says it takes."""
VIEW_BYTES_MAX: Final = 32 * 1024 * 1024
"""A frame may be so large also where messages are small: it may name all members of a group."""


class ClientState(Enum):
    """Where a session is."""

    GREETING = "the daemon has not let us in yet"
    OPEN = "it works"
    LEAVING = "we have said goodbye; what waits is still written"
    OVER = "it has ended"


class ClientProtocol:
    """
    >>> client = ClientProtocol("alice")
    >>> client.join("room")
    >>> hello = client.take(65_536)
    >>> client.feed(encode_word(Welcome(VERSION, "alice@a:7.3", 8_192, 1 << 24)))
    []
    >>> client.name, client.is_open
    ('alice@a', True)
    >>> client.send("room", b"one"), client.send("room", b"two")
    (1, 2)
    >>> sum(map(len, client.take(65_536)))  # the request, and both messages in one bundle
    68
    """

    def __init__(
        self,
        name: str,
        priority: int = 1,
        policy: Policy = "disconnect",
        *,
        daemon_timeout_ms: int = 0,
        alive_timeout_ms: int = 0,
        lag_max_ms: int = 0,
        observer: Observer | None = None,
    ) -> None:
        _check_arguments(name, priority, policy)
        self._state = ClientState.GREETING
        self._observer = observer
        self._asked_name = name
        bounds = (daemon_timeout_ms, alive_timeout_ms, lag_max_ms)
        self._hello = encode_word(Hello(MAGIC, VERSION, name, priority, policy, *bounds))
        self._splitter = Splitter(HELLO_BYTES_MAX)
        self._outbox = Outbox()
        self._routes = Routes(0, 0, b"")
        self._groups: dict[str, None] = {}
        self._views: dict[str, str] = {}
        self._rolls: dict[str, Roll] = {}
        """Who is in each group that has a view: what the next difference builds on."""
        self.process: str | None = None
        """Who we are for ever, `alice@a:7.3`; None until the daemon has let us in."""
        self.refusal = ""
        """Why the daemon does not let us in."""
        self.end = ""
        """Why the session is over."""
        self.alive_interval_ms = 0
        """The daemon promised to say something at least this often; 0: it did not."""
        self.alive_timeout_ms = 0
        """The daemon gives us up after so long a silence of ours; 0: never."""
        self.owes_life = False
        """The next bytes that are taken say that we are alive."""

    # --- how it is

    @property
    def name(self) -> str:
        """Who we are to others, `alice@a`; what we asked to be called until the daemon has let us in."""
        return self._asked_name if self.process is None else name_of(self.process)

    @property
    def is_open(self) -> bool:
        return self._state is ClientState.OPEN

    @property
    def is_over(self) -> bool:
        return self._state is ClientState.OVER

    @property
    def has_left(self) -> bool:
        """We said goodbye, and all that was asked before was taken."""
        return self.is_over and self.end == WE_LEFT

    @property
    def has_more_to_say(self) -> bool:
        """Besides what waits: that we are here, that we live, that we leave."""
        return self._state is not ClientState.OPEN or self.owes_life

    @property
    def outbox(self) -> Outbox:
        """What waits: always the same one."""
        return self._outbox

    @property
    def waiting_bytes(self) -> int:
        """What the program has asked for and the stream has not taken."""
        return self._outbox.size

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups asked for and not left, in that order."""
        return tuple(self._groups)

    @property
    def views(self) -> Mapping[str, str]:
        """The current view id of each group that we are a member of."""
        return self._views

    # --- what the program asks

    def join(self, group: str) -> None:
        self._check_alive()
        if problem := group_problem(group):
            raise ArgumentError(f"{group!r} cannot be joined: {problem}")
        if group in self._groups:
            raise MembershipError(f"{group!r} is joined already: leave it first, or join another")
        self._groups[group] = None
        self._outbox.put_request(encode_word(JoinGroup(group)))
        if self._observer is not None:
            self._observer.on_join(group)

    def leave(self, group: str) -> None:
        self._check_alive()
        if group not in self.groups:
            raise MembershipError(f"{group!r} was not joined: there is nothing to leave")
        del self._groups[group]
        self._outbox.put_request(encode_word(LeaveGroup(group)))
        if self._observer is not None:
            self._observer.on_leave(group)

    def send(self, groups: Destinations, payload: Data, options: SendOptions = PLAIN) -> int:
        """Queue one message for groups and private addresses; its number in this session."""
        if self._state is not ClientState.OPEN:
            self._check_open()
        route = self._routes.route(groups, options)
        if type(payload) is not bytes or len(payload) > route.payload_bytes_max:  # Seldom: a call for each one costs.
            payload = checked_payload(payload, route)
        seq = self._outbox.put(route, options, payload)
        if self._observer is not None:
            self._observer.on_send(seq, route.groups, (payload,), options)
        return seq

    def send_many(self, groups: Destinations, payloads: Iterable[Data], options: SendOptions = PLAIN) -> int:
        """Queue many messages, all or, if one is impossible, none; the number of the first."""
        self._check_open()
        route = self._routes.route(groups, options)
        data = checked_payloads(payloads, route)
        first = self._outbox.put_many(route, options, data)
        if self._observer is not None:
            self._observer.on_send(first, route.groups, data, options)
        return first

    def say_alive(self) -> None:
        """Say so with the next bytes that are taken, before what waits: once, however often it is asked."""
        self.owes_life = self._state is ClientState.OPEN

    def bye(self) -> None:
        """Leave in good order, after all that was asked before. No more events come."""
        if self._state is ClientState.OPEN:
            self._enter_leaving()
        elif self._state is ClientState.GREETING:
            self._enter_over("we left before the daemon had let us in")

    # --- the stream

    def take(self, room: int) -> list[Payload]:
        """About `room` bytes to write now, and at least one frame if any can be written."""
        taken: list[Payload] = []
        if self._hello and self._state is ClientState.GREETING:
            taken.append(self._hello)
            self._hello = b""
        if self.owes_life:
            taken.append(_ALIVE)
            self.owes_life = False
        if self._state is ClientState.OPEN:
            return taken + self._outbox.take(room) if taken else self._outbox.take(room)
        if self._state is not ClientState.LEAVING:
            return taken
        taken += self._outbox.take(room)
        if not self._outbox.size:
            self._enter_over(WE_LEFT)
        return taken

    def feed(self, data: Data) -> list[Event]:
        """What happened, from what the daemon sent."""
        events: list[Event] = []
        try:
            whole = bytes(data)  # Batches may keep it: it must not change.
            is_open = self._state is ClientState.OPEN
            for code, body in self._splitter.feed(whole) if is_open else self._frames(whole):
                if self._state is ClientState.OPEN and code == ARRIVED:  # Most are: a call for each one costs.
                    happened: list[Event] = [batch_or_failure(read_arrived(body))]
                elif self._state is ClientState.OPEN or self._state is ClientState.GREETING:
                    happened = self._on_word(read_from_daemon(code, body))
                else:
                    break
                if self._observer is not None:  # Word by word, whatever came in one read.
                    self._observer.on_events(happened)
                events += happened
            problem = self._splitter.problem
        except FrameError as error:
            problem = error
        if problem is not None:
            events += self.lost(f"the daemon sent something that is no frame of ours ({problem})")
        return events

    def lost(self, reason: str) -> list[Event]:
        """The stream broke, or was closed by the daemon."""
        events = self._ended(reason)
        if self._observer is not None:
            self._observer.on_events(events)
        return events

    def _frames(self, data: bytes) -> Iterator[tuple[int, memoryview]]:
        """The first frame tells how large the others may be, so nothing behind it is looked at before it is done."""
        at = 0
        while self._state is ClientState.GREETING and at < len(data):
            yield from self._splitter.feed(data[at : at + 1])
            at += 1
        if self._state is ClientState.OPEN and at < len(data):
            yield from self._splitter.feed(data[at:] if at else data)

    # --- what the daemon says

    def _on_word(self, word: FromDaemon) -> list[Event]:
        if self._state is ClientState.GREETING:
            return self._on_greeting(word)
        if isinstance(word, GroupView):
            return [self._on_view(word)]
        if isinstance(word, GroupDifferences):
            return self._on_differences(word)
        if isinstance(word, GroupSignal):
            return [Transitional(word.group)]
        if isinstance(word, GroupLeft):
            self._views.pop(word.group, None)
            self._rolls.pop(word.group, None)
            return [self_leave_of(word)]
        if isinstance(word, Failed):
            return [self._on_failed(word)]
        if isinstance(word, Discarded):
            return self._on_discarded(word)
        if isinstance(word, DaemonAlive):
            if self.alive_timeout_ms:
                self.say_alive()
            return []
        if isinstance(word, Ended):
            return self._ended(word.reason, word.lag_bytes, word.lag_us / 1_000_000)
        return self._ended(f"the daemon broke the protocol: {type(word).__name__} in an open session")

    def _on_greeting(self, word: FromDaemon) -> list[Event]:
        if isinstance(word, Rejected):
            self.refusal = word.reason
            if self._observer is not None:
                self._observer.on_refusal(self.name, word.reason)
            return self._ended(word.reason)
        if isinstance(word, Ended):
            return self._ended(word.reason)
        if not isinstance(word, Welcome):
            return self._ended(f"the daemon broke the protocol: {type(word).__name__} before its welcome")
        if word.version != VERSION:
            return self._ended(f"the daemon speaks version {word.version} and we {VERSION}: install the same Covey")
        self._enter_open(word)
        return []

    def _enter_open(self, word: Welcome) -> None:
        message_bytes_max = min(word.message_bytes_max, MESSAGE_BYTES_MAX)
        prefix = sender_prefix(word.process)
        self.process = word.process
        self.alive_interval_ms = word.alive_interval_ms
        self.alive_timeout_ms = word.alive_timeout_ms
        self._splitter.frame_bytes_max = max(message_bytes_max, VIEW_BYTES_MAX) + FRAME_SLACK
        self._outbox.open(prefix)
        self._routes = Routes(message_bytes_max, word.bundle_bytes, prefix)
        self._state = ClientState.OPEN
        if self._observer is not None:
            self._observer.on_open(word.process)

    def _enter_leaving(self) -> None:
        self._outbox.put_request(encode_word(Bye()))
        self._state = ClientState.LEAVING
        if self._observer is not None:
            self._observer.on_bye()

    def _on_view(self, word: GroupView) -> Event:
        view, self._rolls[word.group] = view_of(word)
        self._views[word.group] = view.id
        return view

    def _on_differences(self, word: GroupDifferences) -> list[Event]:
        group, roll = word.group, self._rolls.get(word.group)
        if roll is None:
            return self._ended(f"the daemon broke the protocol: changes of {group!r}, of which we have no view")
        views: list[Event] = []
        for difference in word.differences:
            view, roll = next_view(group, roll, difference)
            views.append(view)
            self._views[group] = view.id
        self._rolls[group] = roll
        return views

    def _on_discarded(self, word: Discarded) -> list[Event]:
        """The program did not want these messages back, and hears nothing of them."""
        if self._observer is not None:
            w = word
            discarded = OwnDiscarded(w.service, w.messages, w.session_seq, w.view, w.stamp, w.site, w.groups)
            self._observer.on_discarded(discarded)
        return []

    def _on_failed(self, word: Failed) -> Event:
        request, _, group = word.asked.partition(" ")
        if request == "join" and group not in self._views:
            self._groups.pop(group, None)
        return Failure(word.asked, word.reason)

    def _ended(self, reason: str, lag_bytes: int = 0, lag_seconds: float = 0.0) -> list[Event]:
        if self._state is ClientState.OVER:
            return []
        groups, asked_for = tuple(sorted(self._groups)), self._state is ClientState.LEAVING
        self._enter_over(reason)
        return [] if asked_for else [Disconnected(reason, lag_bytes, lag_seconds, groups)]

    def _enter_over(self, reason: str) -> None:
        self._state = ClientState.OVER
        self.end = reason
        self.owes_life = False
        self._outbox.clear()
        self._groups.clear()
        self._views.clear()
        self._rolls.clear()

    def check(self) -> None:
        self._outbox.check()
        if self._state is ClientState.OVER:
            assert len(self._groups) + len(self._views) + self.waiting_bytes == 0, "D2"
        assert self._rolls.keys() == self._views.keys(), "D3"

    # --- may it be asked

    def _check_alive(self) -> None:
        if self._state in {ClientState.LEAVING, ClientState.OVER}:
            raise SessionOverError(f"the session has ended ({self.end or WE_LEFT}): connect again")

    def _check_open(self) -> None:
        self._check_alive()
        if self._state is ClientState.GREETING:
            raise LocalProtocolError("the daemon has not let us in yet: send when `is_open`")


def _check_arguments(name: str, priority: int, policy: str) -> None:
    if problem := name_problem(name):
        raise ArgumentError(f"{name!r} cannot be the name of a session: {problem}")
    if type(priority) is not int or priority not in PRIORITIES:
        raise ArgumentError(f"priority is {priority!r}: write 0 (first), 1 or 2 (last)")
    if policy not in POLICIES:
        raise ArgumentError(
            f"policy is {policy!r}: write 'disconnect', or 'block' to make senders wait for this session"
        )
