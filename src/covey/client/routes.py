"""What a program asks to send: checked once for each combination, and remembered.

In:        destinations and options as a program writes them; payloads.
Out:       a `Route`, bytes; or an ArgumentError that says what to write instead.
Not here:  the queue (outbox.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, cast

from covey.config import GROUPS_BYTES_MAX, GROUPS_MAX, part_bytes
from covey.errors import ArgumentError, MessageTooLargeError
from covey.names import destination_problem
from covey.protocol.values import Service
from covey.protocol.wire.bodies import RECORD_BYTES, SELF_DISCARD
from covey.protocol.wire.group_names import groups_bytes

from .options import SendOptions
from .outbox import Route

KIND_MAX: Final = 65_535
ROUTES_MAX: Final = 1_024
"""Beyond so many combinations all are forgotten, and checked again when they return."""

BATCH_BUNDLES: Final = 4
"""So many bundles of messages travel as one unit, in fragments, when so much waits: their ends are what costs most."""

FORMS: Final = "write the name of a group or `name@daemon` as str, or a list of them"

Destinations = str | Sequence[str]
Data = bytes | bytearray | memoryview


class Routes:
    """What a daemon takes: messages of so many bytes, of which bundles hold so many, each behind the same prefix."""

    def __init__(self, message_bytes_max: int, bundle_bytes: int, prefix: bytes) -> None:
        self._known: dict[tuple[str | tuple[str, ...], int, bool], Route] = {}
        self._message_bytes_max = message_bytes_max
        self._batch_bytes = min(BATCH_BUNDLES * bundle_bytes, message_bytes_max)
        self._bundle_bytes = bundle_bytes
        self._prefix_bytes = len(prefix)

    def route(self, groups: Destinations, options: SendOptions) -> Route:
        """The route of these and of all messages that may travel with them, which may be of another kind."""
        try:
            key = (groups if isinstance(groups, str) else tuple(groups), options.service, options.self_discard)
            route = self._known.get(key)
        except TypeError:
            _checked_service(options.service)
            raise ArgumentError(f"{groups!r} is no destination: {FORMS}") from None
        if route is None:
            route = self._learn(*key)
        kind: object = options.kind
        if not isinstance(kind, int) or not 0 <= kind <= KIND_MAX:
            raise ArgumentError(f"the kind of a message is {kind!r}: write a number from 0 to {KIND_MAX}")
        return route

    def _learn(self, groups: str | tuple[str, ...], service: int, self_discard: bool) -> Route:
        checked = _checked_service(service)
        flags = SELF_DISCARD if self_discard else 0
        names = (groups,) if isinstance(groups, str) else tuple(dict.fromkeys(groups))
        _check_destinations(names)
        largest, together = self._message_bytes_max, self._batch_bytes
        if checked is Service.UNRELIABLE:  # It travels in one bundle or not at all.
            together = part_bytes(self._bundle_bytes, groups_bytes(names))
            largest = max(0, together - self._prefix_bytes - RECORD_BYTES)
        if len(self._known) >= ROUTES_MAX:
            self._known.clear()
        route = self._known[groups, service, self_discard] = Route(names, checked, flags, largest, together)
        return route


def checked_payload(payload: Data, route: Route) -> bytes:
    """Its bytes, which nobody changes any more."""
    if type(payload) is not bytes:
        payload = _as_bytes(payload)
    if len(payload) > route.payload_bytes_max:
        raise _too_large(len(payload), route)
    return payload


def listed(payloads: Iterable[Data]) -> list[Data]:
    """All of them, made by the program now if it makes them one by one."""
    try:
        each = iter(payloads)
    except TypeError:
        raise ArgumentError(f"{payloads!r} is no list of payloads: write several bytes objects") from None
    return list(each)  # An error of the program's own, in making them, stays what it is.


def checked_payloads(payloads: Iterable[Data], route: Route) -> list[bytes]:
    """All of them; many that need no change cost little more than one."""
    found = listed(payloads)
    if set(map(type, found)) <= {bytes} and max(map(len, found), default=0) <= route.payload_bytes_max:
        return cast("list[bytes]", found)
    return [checked_payload(payload, route) for payload in found]


def _check_destinations(names: tuple[str, ...]) -> None:
    if not 0 < len(names) <= GROUPS_MAX:
        raise ArgumentError(f"a message has 1 to {GROUPS_MAX} destinations, not {len(names)}: send it in several parts")
    for name in names:
        if not isinstance(name, str):
            raise ArgumentError(f"{name!r} is no destination: {FORMS}")
        if problem := destination_problem(name):
            raise ArgumentError(f"nothing can be sent to {name!r}: {problem}")
    size = groups_bytes(names)
    if size > GROUPS_BYTES_MAX:
        raise ArgumentError(
            f"the names of the destinations take {size} bytes, 2 of them beside each name, and at most "
            f"{GROUPS_BYTES_MAX} fit a message: send it to fewer at a time"
        )


def _checked_service(service: int) -> Service:
    try:
        return Service(service)
    except ValueError:
        names = ", ".join(f"covey.{one.name}" for one in Service)
        raise ArgumentError(f"{service!r} is no service: write one of {names}") from None


def _as_bytes(payload: Data) -> bytes:
    try:
        return bytes(memoryview(payload))
    except TypeError:
        given = type(payload).__name__
        raise ArgumentError(f"a payload is bytes, not {given}: encode it first, text with text.encode()") from None


def _too_large(size: int, route: Route) -> MessageTooLargeError:
    if route.service is Service.UNRELIABLE:
        remedy = "an unreliable message travels in one bundle or not at all; use a reliable service, or send less"
    else:
        remedy = "send it in parts, or raise message_bytes_max in the cluster's configuration"
    return MessageTooLargeError(size, route.payload_bytes_max, remedy)
