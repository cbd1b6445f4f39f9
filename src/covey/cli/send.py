"""`covey send`: messages from the command line or from standard input, and what became of them.

In:        destinations, a text or lines.
Out:       one line, or one JSON object: how many messages, delivered or not, and how many members there are.
Not here:  the session (covey.blocking).

How it knows: its last word is a message to itself. When that one is delivered, so is all that it sent before.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from .common import BROKEN, At, GroupName, Json, ServiceName, fail, finite, session_name, telling
from .complete import group_names

if TYPE_CHECKING:
    from covey.client.address import Endpoint
    from covey.client.blocking import Session
    from covey.protocol.values import Service

PROMISE: Final = {
    "unreliable": "sent; nothing is promised",
    "reliable": "delivered, in any order",
    "fifo": "delivered, in the order sent",
    "causal": "delivered, after what its sender had seen",
    "agreed": "delivered, in one order for all",
    "safe": "delivered; every daemon of the view has it",
}

EXAMPLES = (
    'covey send room "hello everybody"',
    'covey send room "in both, once" --also kitchen --service safe',
    "seq 1000 | covey send room --rate 100",
    'covey send alice@a "for you alone"',
)


def send(
    group: GroupName,
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="The message. Without it, every line of standard input is one."),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option("--also", metavar="GROUP", help="Another group, or name@daemon.", autocompletion=group_names),
    ] = None,
    service: Annotated[ServiceName, typer.Option(help="What is promised of it.")] = ServiceName.AGREED,
    kind: Annotated[int, typer.Option(min=0, max=65_535, help="Your own number for what this is.")] = 0,
    count: Annotated[int, typer.Option(min=1, help="Send the text so many times.")] = 1,
    rate: Annotated[
        float, typer.Option(callback=finite, min=0, help="At most so many messages a second; 0: as fast as can be.")
    ] = 0,
    timeout: Annotated[
        float,
        typer.Option(callback=finite, min=0.1, max=86_400, help="Seconds to wait for the last delivery."),
    ] = 10.0,
    name: Annotated[str | None, typer.Option(help="Who sends: unique at its daemon.")] = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Send messages, and say when they are delivered.

    They go to groups, or to one program as name@daemon. Whoever sends need not be a member. Exits 1 if no daemon is
    reached, if they are not delivered in time, or if the daemon of a program is not in the view.
    """
    from covey.client import blocking
    from covey.client.address import endpoints
    from covey.protocol.values import Service

    groups = list(dict.fromkeys([group, *(also or [])]))
    with telling("send"):
        where = endpoints(at)
        me, addresses = session_name(name, "send"), [str(one) for one in where]
        with _sending(), blocking.connect(me, addresses, reconnect=False, timeout=timeout) as session:
            members, daemons = _there(session.name, where, groups)
            start = time.monotonic()
            told = _send_all(session, groups, _payloads(text, count), Service[service.name], kind, rate)
            told["delivered"] = _is_delivered(session, Service[service.name], timeout)
            told |= {"seconds": round(time.monotonic() - start, 6), "members": members}
    lost = _unreachable(groups, daemons)
    if as_json or not lost:
        _tell(told, groups, service.value, as_json)
    if lost:
        known = f"the daemons of the view are {' '.join(daemons)}"
        fail("send", f"{' '.join(lost)} cannot have got it: {known}; see: covey status", BROKEN)
    if not told["delivered"] and service is not ServiceName.UNRELIABLE:
        fail("send", f"not delivered within {timeout:g} s: see how the daemons are with: covey status", BROKEN)


@contextmanager
def _sending() -> Iterator[None]:
    """We are not to go on at another daemon: it could not tell us what the lost one has done."""
    from covey.errors import SessionOverError

    try:
        yield
    except SessionOverError as error:
        why = str(error).removesuffix(": connect again")
        fail("send", f"{why}: how much was delivered is not known. See how the daemons are with: covey status", BROKEN)


def _payloads(text: str | None, count: int) -> Iterator[bytes]:
    if text is not None:
        yield from (text.encode() for _ in range(count))
        return
    if sys.stdin.isatty():
        print("every line is a message; Ctrl-D ends", file=sys.stderr)
    for line in sys.stdin.buffer:
        yield line.removesuffix(b"\n").removesuffix(b"\r")


def _send_all(
    session: Session, groups: list[str], payloads: Iterator[bytes], service: Service, kind: int, rate: float
) -> dict[str, Any]:
    messages = size = 0
    start = time.monotonic()
    for payload in payloads:
        session.send(groups, payload, service, kind)
        messages += 1
        size += len(payload)
        if rate:
            time.sleep(max(0.0, start + messages / rate - time.monotonic()))
    told = {"groups": groups, "service": service.name.lower(), "messages": messages, "bytes": size}
    return told | {"from": session.name}


def _is_delivered(session: Session, service: Service, timeout_s: float) -> bool:
    """Whether all that was sent has been delivered in order: for unreliable messages nobody can tell."""
    from covey.client.events import Disconnected, Failure, Message
    from covey.errors import SessionOverError
    from covey.protocol.values import Service

    if service is Service.UNRELIABLE:
        return False
    last = session.send(session.name, b"", max(service, Service.AGREED))
    deadline = time.monotonic() + timeout_s
    while (left := deadline - time.monotonic()) > 0:
        try:
            event = session.receive(left)
        except TimeoutError:
            return False
        if isinstance(event, Failure | Disconnected):
            raise SessionOverError(f"the daemon did not take it: {event.reason}")
        if isinstance(event, Message) and (event.process, event.session_seq) == (session.process, last):
            return True
    return False


def _there(me: str, where: list[Endpoint], groups: list[str]) -> tuple[dict[str, int], list[str]]:
    """How many there are in each group, and the daemons of the view, where our daemon can be asked."""
    from covey.client.address import Unix
    from covey.drivers.live.status import NotRunningError, Question, ask

    from .where import asked

    here = [asked(one) for one in where if isinstance(one, Unix)]
    found: dict[str, int] = {}
    daemons: list[str] = []
    for one in [one for one in here if me.endswith(f"@{one.name}")][:1]:
        for group in groups:
            try:
                answer = ask(one.path, Question("groups", group))
            except NotRunningError:
                return found, daemons
            daemons = answer["daemons"]
            if "@" not in group:
                found[group] = answer["groups"][0]["size"] if answer["groups"] else 0
    return found, daemons


def _unreachable(groups: list[str], daemons: list[str]) -> list[str]:
    """Programs at daemons that are not there.

    >>> _unreachable(["room", "bob@b", "eve@z"], ["a", "b"]), _unreachable(["eve@z"], [])
    (['eve@z'], [])
    """
    return [group for group in groups if "@" in group and daemons and group.rpartition("@")[2] not in daemons]


def _tell(told: dict[str, Any], groups: list[str], service: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps(told))
        return
    members = told["members"]
    to = ", ".join(_destination(group, members) for group in groups)
    if not told["messages"]:
        print("covey send: no message: standard input was empty", file=sys.stderr)
    elif told["delivered"] or service == ServiceName.UNRELIABLE:
        print(f"{_count(told['messages'], f'{service} message')} to {to}: {PROMISE[service]}")
    for group, number in members.items():
        if not number:
            print(f"covey send: nobody was in {group!r}; see who is where with: covey groups", file=sys.stderr)


def _destination(group: str, members: dict[str, int]) -> str:
    """A group with its members. Of a program nobody tells us whether it is there.

    >>> _destination("room", {"room": 2}), _destination("bob@b", {})
    ('room (2 members)', 'bob@b (if it is there)')
    """
    if group in members:
        return f"{group} ({_count(members[group], 'member')})"
    return f"{group} (if it is there)" if "@" in group else group


def _count(number: int, what: str) -> str:
    """
    >>> _count(1, "message"), _count(2_000, "message")
    ('1 message', '2,000 messages')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
