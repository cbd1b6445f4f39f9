"""Whether datagrams leave this host, and what an operator is told when they do not.

In:        now and then, how many datagrams could not be sent so far, by error, and how many were sent.
Out:       sentences for the log, at the beginning, once a minute, and at the end; one for the status.
Not here:  the socket (endpoint.py), the clock: the time is an argument.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import Final

LOST_FEW: Final = 3
"""Fewer are not worth a word: a datagram that is lost is sent again."""
LOOKS_FULL: Final = 3
"""A socket that is full for a moment is ordinary. One that is full at so many looks one after the other is not."""
LOOKS_WELL: Final = 3
"""After so many looks without a loss, it works again."""
REPEAT_US: Final = 60_000_000

REMEDIES: Final = {
    "EAGAIN": "the socket stays full: raise net.core.wmem_max, or send less than the network carries",
    "ENOBUFS": "the system has no room for them: look at its memory, and at the network card's queue (tc -s qdisc)",
    "ENOMEM": "the system has no room for them: look at its memory",
    "EPERM": "a firewall of this host refuses them: look at its rules for UDP",
    "EACCES": "a firewall of this host refuses them: look at its rules for UDP",
    "ENETUNREACH": "there is no way to that network: look at the addresses and routes of this host",
    "EHOSTUNREACH": "there is no way to that host: look at the addresses and routes of this host",
    "ENETDOWN": "the network card is down: look at `ip link`",
    "EADDRNOTAVAIL": "this host has lost the daemon's own address: look at `ip address`",
    "EINVAL": "this host may have lost the daemon's own address: look at `ip address`",
    "EMSGSIZE": "they are larger than the network carries: lower packet_bytes, at all daemons",
}
OTHERWISE: Final = "look at the network of this host"


class SendingWatch:
    """The sentence of the moment is in `problem`; empty if all is well."""

    def __init__(self) -> None:
        self.problem = ""
        self._before: dict[str, int] = {}
        self._sent_before = 0
        self._looks_bad = self._looks_well = 0
        self._lost: dict[str, int] = {}
        """Since the trouble began, by error."""
        self._since_us = self._told_us = 0

    def look(self, lost: Mapping[str, int], sent: int, to: str, now_us: int) -> list[str]:
        """What is new; `to` is where the last lost one was to go."""
        grown = {error: count - self._before.get(error, 0) for error, count in lost.items()}
        self._before = dict(lost)
        sent, self._sent_before = sent - self._sent_before, sent
        if any(grown.values()):
            return self._bad(grown, to, now_us)
        return self._well(sent, now_us) if self._lost else []

    def _bad(self, grown: dict[str, int], to: str, now_us: int) -> list[str]:
        if not self._lost:
            self._since_us = now_us
        for error, count in grown.items():
            if count:
                self._lost[error] = self._lost.get(error, 0) + count
        self._looks_bad += 1
        self._looks_well = 0
        if self.problem:
            is_due = now_us - self._told_us >= REPEAT_US
        else:
            full_only = self._lost.keys() == {"EAGAIN"}
            is_due = sum(self._lost.values()) >= LOST_FEW and (not full_only or self._looks_bad >= LOOKS_FULL)
        if not self.problem and not is_due:
            return []
        self.problem = self._sentence(to, now_us)
        if not is_due:
            return []
        self._told_us = now_us
        return [self.problem]

    def _well(self, sent: int, now_us: int) -> list[str]:
        self._looks_bad = 0
        self._looks_well += bool(sent)
        if self.problem and self._looks_well < LOOKS_WELL:
            return []
        was_told, total = bool(self.problem), sum(self._lost.values())
        self.problem, self._lost, self._looks_well = "", {}, 0
        seconds = (now_us - self._since_us) / 1_000_000
        return [f"datagrams leave again: {total:,} were lost in {seconds:.0f} s"] if was_told else []

    def _sentence(self, to: str, now_us: int) -> str:
        error = max(self._lost, key=lambda one: (self._lost[one], one))
        total, seconds = sum(self._lost.values()), (now_us - self._since_us) / 1_000_000
        return (
            f"datagrams cannot be sent ({error}: {_said(error)}): {total:,} lost in {seconds:.0f} s, the last one to "
            f"{to}; {REMEDIES.get(error, OTHERWISE)}"
        )


def _said(error: str) -> str:
    """
    >>> _said("ENOBUFS")
    'No buffer space available'
    """
    number = getattr(errno, error, None)
    return os.strerror(number) if isinstance(number, int) else "unknown"
