"""From what a client asked and what happened to it, to trace rows of level C.

In:        requests and events of one client, in the order of its history; the time, and the step of a simulator.
Out:       rows. Each session of the client is a process of its own, with its own count.
Not here:  the events of the client library and which row each becomes (client/recording.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from covey.ids import Ballot
from covey.names import is_private
from covey.protocol.values import Service

from .daemon import Sink
from .record import PRIVATE, Row, payload_digest

_SERVICES = {service: service.name.lower() for service in Service}

IndexedPlace = tuple[Ballot, int, int, int]
"""The daemons' view, stamp, site and index of an ordered message; a change has the index 0."""


class ClientRecorder:
    """Writes the history of a client. A new session of it begins a new history.

    >>> rows = []
    >>> recorder = ClientRecorder("live", rows.append)
    >>> recorder.connect("alice@b:7.3", time_ns=1)
    >>> recorder.send(("room",), b"hi", 1, Service.AGREED, time_ns=2)
    >>> [(row.index, row.event, row.name, row.daemon, row.message) for row in rows]
    [(0, 'connect', 'alice@b', 'b:7', None), (1, 'send', 'alice@b', 'b:7', 'alice@b:7.3#1')]
    """

    def __init__(self, run: str, sink: Sink) -> None:
        self._run = run
        self._sink = sink
        self._begin("", "", "")

    def event(self, event: str, time_ns: int, step: int | None = None, **columns: object) -> None:
        """One row, at the next index of this process."""
        self._sink(
            Row(
                run=self._run, level="C", process=self.process, name=self._name, daemon=self._daemon,
                index=self._index, step=step, time_ns=time_ns, event=event, **columns,  # type: ignore[arg-type]
            )
        )  # fmt: skip
        self._index += 1

    # --- the life of a session

    def connect(self, process: str, time_ns: int, step: int | None = None) -> None:
        """The daemon has let us in, under this name for ever."""
        name = process.rpartition(":")[0]
        daemon = process.partition("@")[2].rpartition(".")[0]
        self._begin(process, name, daemon)
        self.event("connect", time_ns, step)

    def refused(self, name: str, cause: str, time_ns: int, step: int | None = None) -> None:
        """A daemon, which did not say who it is, did not let us in: a history of one row, told apart by its time."""
        self._begin(f"{name}@?.refused{time_ns}", f"{name}@?", "?")
        self.event("refused", time_ns, step, cause=cause)

    def disconnect(self, cause: str, time_ns: int, step: int | None = None) -> None:
        self.event("disconnect", time_ns, step, cause=cause)

    def _begin(self, process: str, name: str, daemon: str) -> None:
        self.process = process
        self._name = name
        self._daemon = daemon
        self._index = 0
        self._views: dict[str, str] = {}

    # --- groups

    def join(self, group: str, time_ns: int, step: int | None = None) -> None:
        self.event("join", time_ns, step, group=group)

    def leave(self, group: str, time_ns: int, step: int | None = None) -> None:
        self.event("leave", time_ns, step, group=group, view=self._views.get(group))

    def view(
        self,
        group: str,
        view: str,
        rank: tuple[int, ...],
        members: tuple[str, ...],
        transitional: tuple[str, ...],
        cause: str,
        detail: str,
        place: IndexedPlace | None,
        time_ns: int,
        step: int | None = None,
    ) -> None:
        """A view of a group; with the place of the change, if a join, leave or disconnect caused it."""
        previous, self._views[group] = self._views.get(group), view
        self.event(
            "view",
            time_ns,
            step,
            group=group,
            view=previous,
            view_new=view,
            view_rank=rank,
            members=members,
            transitional=transitional,
            cause=cause,
            detail=detail or None,
            **_change_columns(place),
        )

    def transitional(self, group: str, time_ns: int, step: int | None = None) -> None:
        self.event("transitional", time_ns, step, group=group, view=self._views.get(group))

    def self_leave(self, group: str, place: IndexedPlace | None, time_ns: int, step: int | None = None) -> None:
        view = self._views.pop(group, None)
        self.event("self_leave", time_ns, step, group=group, view=view, **_change_columns(place))

    # --- messages

    def send(
        self,
        destinations: Sequence[str],
        payload: bytes,
        session_seq: int,
        service: Service,
        time_ns: int,
        step: int | None = None,
    ) -> None:
        self._message("send", destinations, payload, self.process, session_seq, service, None, time_ns, step)

    def deliver(
        self,
        destinations: Sequence[str],
        payload: bytes,
        sender: str,
        session_seq: int,
        service: Service,
        place: IndexedPlace | None,
        time_ns: int,
        step: int | None = None,
    ) -> None:
        """A message of the process `sender`; an unreliable one has no place."""
        self._message("deliver", destinations, payload, sender, session_seq, service, place, time_ns, step)

    def discarded(
        self,
        destinations: Sequence[str],
        session_seq: int,
        messages: int,
        service: Service,
        place: IndexedPlace,
        time_ns: int,
        step: int | None = None,
    ) -> None:
        """Own messages that did not come back, at the place where they would have."""
        view, stamp, site, _ = place
        for index in range(messages):
            columns = _place_columns(None if service is Service.UNRELIABLE else (view, stamp, site, index))
            self.event(
                "discard",
                time_ns,
                step,
                message=f"{self.process}#{session_seq + index}",
                count=1,
                sender=self.process,
                session_seq=session_seq + index,
                service=_SERVICES[service],
                **self._destination_columns(destinations),
                **columns,
            )

    def _message(
        self,
        event: str,
        destinations: Sequence[str],
        payload: bytes,
        sender: str,
        session_seq: int,
        service: Service,
        place: IndexedPlace | None,
        time_ns: int,
        step: int | None,
    ) -> None:
        self.event(
            event,
            time_ns,
            step,
            message=f"{sender}#{session_seq}",
            count=1,
            sender=sender,
            session_seq=session_seq,
            service=_SERVICES[service],
            size=len(payload),
            digest=payload_digest(payload),
            **self._destination_columns(destinations),
            **_place_columns(place),
        )

    def _destination_columns(self, destinations: Sequence[str]) -> dict[str, object]:
        groups = tuple(one for one in destinations if not is_private(one))
        private = [one for one in destinations if is_private(one)]
        single = groups[0] if len(groups) == 1 else None
        return {
            "group": single,
            "groups": groups,
            "view": None if single is None else self._views.get(single),
            "views": tuple(self._views.get(group, "") for group in groups),
            "detail": PRIVATE + ", ".join(private) if private else None,
        }


def _change_columns(place: IndexedPlace | None) -> dict[str, object]:
    """A change is no message of a bundle: it has no index."""
    return {} if place is None else {"order_view": str(place[0]), "order_stamp": place[1], "order_site": place[2]}


def _place_columns(place: IndexedPlace | None) -> dict[str, object]:
    return {} if place is None else _change_columns(place) | {"order_index": place[3]}
