"""One client's stream: who it is, what it has said and we have not done yet, and what waits for it."""

from __future__ import annotations

from enum import Enum

from covey.protocol.asked import Open
from covey.protocol.dialects.dialect import Dialect
from covey.protocol.dialects.entries import Entry
from covey.protocol.inputs import ClientConnected
from covey.protocol.status import SessionStatus
from covey.protocol.values import Policy
from covey.protocol.wire.bodies import sender_prefix

from .outbox import SessionOutbox, Total


class Phase(Enum):
    """Where a session is."""

    GREETING = "it has not said who it is"
    OPEN = "it works"
    ENDING = "it has been told that it is over; what waits is still written"


class ClientSession:
    def __init__(self, connected: ClientConnected, number: int, dialect: Dialect, now_us: int, total: Total) -> None:
        self.connection = connected.connection
        self.identity = connected.identity
        self.dialect = dialect
        self.number = number
        self.phase = Phase.GREETING
        self.since_us = now_us
        self.name = ""
        self.process = ""
        self.prefix = b""
        self.priority = 1
        self.policy: Policy = "disconnect"
        self.words = dialect.reader()
        """What it has said and was not done yet."""
        self.words_bytes = 0
        """What of it is counted in what waits at this daemon."""
        self.is_gone = False
        """Its stream is over; what it said before is still done."""
        self.next_seq = 1
        self.asked: set[str] = set()
        """The groups it has asked to be in."""
        self.changes = 0
        """How many joins, leaves and other changes of it were submitted."""
        self.late: list[Entry] = []
        """Views that it is still to be told; whatever else it is told comes behind them."""
        self.outbox = SessionOutbox(total)
        self.reading = True
        self.ready = False
        """The driver knows that something waits."""
        self.blocking_us: int | None = None
        """Since when it makes the senders of its groups wait."""
        self.delivered = 0
        self.lag_max_us = 0
        self.interval_us = 0
        """It is to hear from us at least this often; 0 where it does not mind."""
        self.silence_max_us = 0
        """It is given up after so long a silence; 0: never."""
        self.spoken_us = now_us
        """When something was last written to it."""
        self.heard_us = 0
        """When something was last read from it, by the clock of silence."""

    def open(self, asked: Open, process: str, message_bytes_max: int, bundle_bytes: int) -> None:
        self.phase = Phase.OPEN
        self.name = asked.name
        self.process = process
        self.prefix = sender_prefix(process)
        self.priority = asked.priority
        self.policy = asked.policy
        self.words.open(process, message_bytes_max, bundle_bytes)

    @property
    def backlog(self) -> int:
        """Bytes that wait for it, and of it."""
        return self.outbox.size + self.words_bytes

    def snapshot(self, now_us: int) -> SessionStatus:
        return {
            "name": self.name,
            "process": self.process,
            "policy": self.policy,
            "phase": self.phase.name.lower(),
            "groups": len(self.asked),
            "backlog_bytes": self.outbox.size,
            "lag_ms": self.outbox.lag_us(now_us) // 1_000,
            "delivered": self.delivered,
            "blocking": self.blocking_us is not None,
            "reading": self.reading,
        }
