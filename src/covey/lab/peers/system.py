"""What a system must offer to be measured beside others: the one interface of the files in systems/.

In:        a directory for what it writes, and the case to be measured.
Out:       why it cannot run here, or its servers, and what programs do at its two ends.
Not here:  the programs themselves (program.py), when which system runs (measure.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol

import msgspec

from .audit import Audit
from .plan import PeerCase
from .task import PeerTask, Role

QUIET_S: Final = 0.2
"""So long nothing may come after the last message."""
PATIENCE_MS: Final = 60_000
"""What is under way at the end may take so long to leave a sender."""


TOGETHER_MAX: Final = 256


def together(task: PeerTask) -> int:
    """How many messages a receiver may take before it checks them: what is stamped is looked at when it comes."""
    return 1 if task.rate else TOGETHER_MAX


class SendingEnd(Protocol):
    def send_chunks(self, chunks: Iterable[list[bytes]]) -> None:
        """As the system is fastest; all of it is on its way when this returns."""

    def send_singles(self, singles: Iterable[bytes]) -> None:
        """One call of the library for each, and nothing kept back for the next: it may join only what already waits."""


class CallEach:
    """For systems that batch by themselves: chunks are one call a message too."""

    def __init__(self, send: Callable[[bytes], object]) -> None:
        self._send = send

    def send_chunks(self, chunks: Iterable[list[bytes]]) -> None:
        for chunk in chunks:
            self.send_singles(chunk)

    def send_singles(self, singles: Iterable[bytes]) -> None:
        send = self._send
        for payload in singles:
            send(payload)


class ReceivingEnd(Protocol):
    def receive(self, audit: Audit) -> None:
        """Until the audit is over, and then what comes within QUIET_S."""


class RunningSystem(msgspec.Struct, frozen=True):
    """What runs, and where programs meet it."""

    addresses: Callable[[Role, int], list[str]]
    """For a program of this role and number."""
    servers: tuple[int, ...] = ()
    """Processes between the programs."""
    command: Callable[[PeerTask], list[str]] | None = None
    """How its programs are started, where they are not our program.py."""


class PeerSystem(Protocol):
    @property
    def has_servers(self) -> bool:
        """Something runs between the programs."""

    @property
    def is_agreed(self) -> bool:
        """All receivers get the messages of all senders in one order."""

    @property
    def services(self) -> tuple[str, ...]: ...

    def unavailable(self) -> str | None:
        """Why it cannot run here, with the command that would install it; None if it can."""

    def version(self) -> str: ...

    def running(self, directory: Path, case: PeerCase) -> AbstractContextManager[RunningSystem]: ...

    def sending(self, task: PeerTask) -> AbstractContextManager[SendingEnd]:
        """Entered, everything is connected that this sender needs."""

    def receiving(self, task: PeerTask, audit: Audit) -> AbstractContextManager[ReceivingEnd]:
        """Entered, whatever is sent from then on arrives."""


def system_named(name: str) -> PeerSystem:
    """Loaded when it is asked for: a program needs no system but its own."""
    found: PeerSystem = import_module(f"{__package__}.systems.{name}_system").SYSTEM
    return found
