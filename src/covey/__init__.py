"""Covey: wide-area group communication with extended virtual synchrony.

`connect` is the door for asyncio programs, `blocking.connect` the one for others:

>>> import covey
>>> covey.SAFE > covey.AGREED > covey.UNRELIABLE
True

What is exported is imported when it is first used: a daemon carries nothing of the client library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from covey.client.connection import connect as connect
    from covey.client.events import Batch as Batch
    from covey.client.events import Disconnected as Disconnected
    from covey.client.events import Event as Event
    from covey.client.events import Failure as Failure
    from covey.client.events import Message as Message
    from covey.client.events import Order as Order
    from covey.client.events import Reconnected as Reconnected
    from covey.client.events import Reconnecting as Reconnecting
    from covey.client.events import SelfLeave as SelfLeave
    from covey.client.events import Transitional as Transitional
    from covey.client.events import View as View
    from covey.client.session import Session as Session
    from covey.protocol.values import Policy as Policy
    from covey.protocol.values import Service as Service

    from .client import blocking as blocking
    from .embedding import embedded as embedded
    from .errors import ArgumentError as ArgumentError
    from .errors import ConfigError as ConfigError
    from .errors import ConnectError as ConnectError
    from .errors import CoveyError as CoveyError
    from .errors import LocalProtocolError as LocalProtocolError
    from .errors import MembershipError as MembershipError
    from .errors import MessageTooLargeError as MessageTooLargeError
    from .errors import ReconnectError as ReconnectError
    from .errors import RefusedError as RefusedError
    from .errors import SessionOverError as SessionOverError

    UNRELIABLE: Final = Service.UNRELIABLE
    RELIABLE: Final = Service.RELIABLE
    FIFO: Final = Service.FIFO
    CAUSAL: Final = Service.CAUSAL
    AGREED: Final = Service.AGREED
    SAFE: Final = Service.SAFE

__version__ = "0.1.0"

_SERVICES: Final = ("UNRELIABLE", "RELIABLE", "FIFO", "CAUSAL", "AGREED", "SAFE")
_EXPORTS: Final = {
    "covey.client.connection": ("connect",),
    "covey.client.session": ("Session",),
    "covey.client.events": (
        "Batch", "Disconnected", "Event", "Failure", "Message", "Order", "Reconnected", "Reconnecting", "SelfLeave",
        "Transitional", "View",
    ),
    "covey.errors": (
        "ArgumentError", "ConfigError", "ConnectError", "CoveyError", "LocalProtocolError", "MembershipError",
        "MessageTooLargeError", "ReconnectError", "RefusedError", "SessionOverError",
    ),
    "covey.embedding": ("embedded",),
    "covey.protocol.values": ("Policy", "Service"),
}  # fmt: skip
_HOME: Final = {name: module for module, names in _EXPORTS.items() for name in names}

__all__ = ["__version__", "blocking", *_SERVICES, *sorted(_HOME)]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name == "blocking":
        value: Any = import_module("covey.client.blocking")
    elif name in _SERVICES:
        value = import_module("covey.protocol.values").Service[name]
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'covey' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
