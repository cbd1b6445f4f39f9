"""The exceptions that programs and daemons raise on purpose; those of a tool stand beside it, in the same tree.

CoveyError
    ConfigError         the configuration is wrong; the text says which field, and what to write instead
    LocalProtocolError  our own caller broke a rule of the engine, or used a session where it must not be used
    FrameError          bytes from the network are not a frame of ours; `reason` is the name it is counted under
        OutsiderError   they come from a daemon of another cluster, version or configuration; `remedy` says what to do
    ArgumentError       a program asked a session for something that makes no sense; the text says what to write instead
        MessageTooLargeError  `limit` is the most that this session takes
    MembershipError     joining twice, or leaving what was not joined
    ConnectError        no daemon could be reached; the text says for each address why
        RefusedError    the daemon was reached and does not let us in
        ReconnectError  a lost connection was not replaced for as long as the program wanted to try
    SessionOverError    the session has ended, or its connection is lost
    TraceError          a trace on disk is not whole, or a row cannot be stored (covey.trace.errors)
"""

from __future__ import annotations


class CoveyError(Exception):
    """Base of all errors raised by Covey."""


class ConfigError(CoveyError):
    """The configuration is wrong."""

    def __init__(self, rule: str, location: str = "") -> None:
        super().__init__(rule)
        self.location = location
        """Which field of a file says so, as `link[2].cost`; empty if it is not one field."""


class LocalProtocolError(CoveyError):
    """The caller of the engine broke one of its rules; or a session is used by a thread or loop that must not."""


class FrameError(CoveyError):
    """Bytes from the network that are not a frame of ours. A peer's mistake is data: it is counted, never fatal."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class OutsiderError(FrameError):
    """A datagram of somebody who does not belong to this cluster as we know it."""

    def __init__(self, reason: str, detail: str, remedy: str, rank: int | None = None) -> None:
        super().__init__(reason, detail)
        self.remedy = remedy
        self.rank = rank
        """Its number in the list of daemons, if that list should be ours too."""


class ArgumentError(CoveyError, ValueError):
    """A program asked a session for something that makes no sense."""


class MessageTooLargeError(ArgumentError):
    """A message is larger than this session takes."""

    def __init__(self, size: int, limit: int, remedy: str) -> None:
        super().__init__(f"a message of {size} bytes is too large, at most {limit} are taken: {remedy}")
        self.size = size
        self.limit = limit


class MembershipError(CoveyError):
    """A session joins what it has joined, or leaves what it has not."""


class ConnectError(CoveyError):
    """No daemon could be reached."""


class RefusedError(ConnectError):
    """A daemon was reached, and does not let us in."""


class ReconnectError(ConnectError):
    """No daemon let us in again for as long as the program wanted to try."""


class SessionOverError(CoveyError):
    """The session has ended, or its connection is lost."""
