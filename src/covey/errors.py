"""Every exception Covey raises on purpose.

CoveyError
    ConfigError         the configuration is wrong; the text says which field, and what to write instead
    LocalProtocolError  our own caller broke a rule of the engine
    FrameError          bytes from the network are not a frame of ours; `reason` is the name it is counted under
"""

from __future__ import annotations


class CoveyError(Exception):
    """Base of all errors raised by Covey."""


class ConfigError(CoveyError):
    """The configuration is wrong."""


class LocalProtocolError(CoveyError):
    """The caller of the engine broke one of its rules."""


class FrameError(CoveyError):
    """Bytes from the network that are not a frame of ours. A peer's mistake is data: it is counted, never fatal."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail
