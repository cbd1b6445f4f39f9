"""Programs at the far ends of streams, played by hand: they say words, send messages, and read what waits for them."""

from __future__ import annotations

from covey.cluster import one_site
from covey.config import Settings
from covey.protocol.asked import Sending
from covey.protocol.effects import ClientClosed, Effect, Notice
from covey.protocol.inputs import ClientBytes, ClientConnected
from covey.protocol.notices import Difference
from covey.protocol.portions import PORTIONS, Portions
from covey.protocol.values import Policy, Service
from covey.protocol.wire.bodies import record_parts, sender_prefix
from covey.protocol.wire.session import Splitter, encode_word, read_from_daemon, sending_parts
from covey.protocol.wire.words import MAGIC, VERSION, FromDaemon, GroupDifferences, GroupView, Hello, Welcome, Word
from tests.unit.protocol.network import TinyNetwork

FRAME_MAX = 1 << 26


class Peer:
    """The far end of one stream."""

    def __init__(self, network: TinyNetwork, rank: int = 0, connection: int = 1) -> None:
        self.network = network
        self.rank = rank
        self.connection = connection
        self.effects: list[Effect] = []
        self.process = ""
        self.seq = 0
        self._splitter = Splitter(FRAME_MAX)
        self.give(ClientConnected(connection))

    def give(self, *inputs: object) -> None:
        self.effects += self.network.give(self.rank, *inputs)  # type: ignore[arg-type]

    def write(self, data: bytes) -> None:
        self.give(ClientBytes(self.connection, data))

    def say(self, *words: Word) -> None:
        self.write(b"".join(encode_word(word) for word in words))

    def hello(
        self,
        name: str = "alice",
        priority: int = 1,
        policy: Policy = "disconnect",
        *,
        daemon_timeout_ms: int = 0,
        alive_timeout_ms: int = 0,
        lag_max_ms: int = 0,
    ) -> Welcome:
        self.say(Hello(MAGIC, VERSION, name, priority, policy, daemon_timeout_ms, alive_timeout_ms, lag_max_ms))
        [welcome] = self.read()
        assert isinstance(welcome, Welcome)
        self.process = welcome.process
        return welcome

    def send(self, *groups: str, payload: bytes = b"hi", service: Service = Service.AGREED, flags: int = 0) -> None:
        self.write(self.sending(*groups, payload=payload, service=service, flags=flags))

    def sending(self, *groups: str, payload: bytes = b"hi", service: Service = Service.AGREED, flags: int = 0) -> bytes:
        """The bytes of the next message."""
        self.seq += 1
        body = b"".join([sender_prefix(self.process), *record_parts(0, payload)])
        return b"".join(sending_parts(Sending(service, flags, 1, self.seq, groups, body)))

    def apart(self, number: int, *groups: str, payload: bytes = b"hi") -> bytes:
        """The bytes of the next message, by turns agreed and causal: no two neighbours may travel in one bundle."""
        return self.sending(*groups, payload=payload, service=Service.CAUSAL if number % 2 else Service.AGREED)

    def read(self, milliseconds: int = 50) -> list[FromDaemon]:
        """Everything that waits, after some time."""
        self.network.run(milliseconds * 1_000)
        return self.pull(1 << 30)

    def pull(self, room: int) -> list[FromDaemon]:
        data = b"".join(self.network.daemons[self.rank].pull(self.connection, room))
        return [read_from_daemon(kind, body) for kind, body in self._splitter.feed(data)]

    def texts(self, kind: type[Notice]) -> list[str]:
        return [effect.text for effect in self.network.effects[self.rank] if isinstance(effect, kind)]

    @property
    def is_closed(self) -> bool:
        return any(
            isinstance(effect, ClientClosed) and effect.connection == self.connection
            for effect in self.network.effects[self.rank]
        )


def network(count: int = 1, settings: Settings | None = None, portions: Portions = PORTIONS) -> TinyNetwork:
    made = TinyNetwork(one_site(count), settings, portions)
    made.form_view()
    return made


def kinds(words: list[FromDaemon]) -> list[str]:
    """Each word, and each view by its cause."""
    return [kind for word in words for kind in _kinds(word)]


def _kinds(word: FromDaemon) -> list[str]:
    if isinstance(word, GroupDifferences):
        return [difference.cause for difference in word.differences]
    return [word.cause if isinstance(word, GroupView) else type(word).__name__]


def differences(words: list[FromDaemon]) -> list[Difference]:
    """All views that came as differences."""
    return [difference for word in words if isinstance(word, GroupDifferences) for difference in word.differences]


class Seen:
    """What a member of one group knows of it: views as whole lists, whichever way they came."""

    def __init__(self) -> None:
        self.members: tuple[str, ...] = ()
        self.views: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []
        """Cause, members and transitional set."""

    def see(self, word: object) -> None:
        if isinstance(word, GroupView):
            self._add(word.cause, word.members, word.transitional)
        for difference in word.differences if isinstance(word, GroupDifferences) else ():
            stayed = [one for one in self.members if one not in difference.gone]
            assert len(stayed) == len(self.members) - len(difference.gone), "somebody went who was not there"
            assert not set(stayed) & set(difference.came), "somebody came who was there"
            together = tuple(one for one in stayed if one not in difference.apart)
            self._add(difference.cause, (*stayed, *difference.came), together)

    def _add(self, cause: str, members: tuple[str, ...], transitional: tuple[str, ...]) -> None:
        self.members = tuple(sorted(members))
        self.views.append((cause, self.members, tuple(sorted(transitional))))
