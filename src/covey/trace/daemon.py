"""From a daemon's effects to trace rows of level S."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from covey.cluster import Cluster
from covey.errors import FrameError
from covey.ids import Life
from covey.protocol.effects import Deliver, Effect, Entered, Installed, InterestSaid, Signal, Stamped, Stopped
from covey.protocol.values import Bundle, Kind, Payload, Service
from covey.protocol.wire.bodies import read_sender

from .record import Row, payload_digest

Sink = Callable[[Row], None]

_SERVICES = {service: service.name.lower() for service in Service}


def process_name(cluster: Cluster, life: Life) -> str:
    """One life of a daemon, as traces call it.

    >>> from covey.cluster import one_site
    >>> process_name(one_site(3), Life(1, 4))
    'b:4'
    """
    return f"{cluster.daemons[life.rank].name}:{life.boot}"


class DaemonRecorder:
    """Writes the history of one life of one daemon."""

    def __init__(self, run: str, cluster: Cluster, life: Life, sink: Sink) -> None:
        self.process = process_name(cluster, life)
        self._run = run
        self._cluster = cluster
        self._name = cluster.daemons[life.rank].name
        self._sink = sink
        self._index = 0
        self._view: str | None = None
        self._view_sites: list[int] = []

    def event(self, event: str, time_ns: int, step: int | None = None, **columns: object) -> None:
        """One row, at the next index of this process."""
        self._sink(
            Row(
                run=self._run, level="S", process=self.process, name=self._name, daemon=self.process,
                index=self._index, step=step, time_ns=time_ns, event=event, **columns,  # type: ignore[arg-type]
            )
        )  # fmt: skip
        self._index += 1

    def effects(self, effects: Iterable[Effect], time_ns: int, step: int | None = None) -> None:
        for effect in effects:
            if isinstance(effect, Deliver):
                self._message("deliver", effect, time_ns, step)
            elif isinstance(effect, Stamped):
                self._message("send", effect, time_ns, step)
            elif isinstance(effect, InterestSaid):
                cause = "asked" if effect.is_asked else "withdrawn"
                self.event("interest", time_ns, step, view=str(effect.view), group=effect.group, cause=cause)
            elif isinstance(effect, Entered):
                self.event("state", time_ns, step, view=self._view, detail=_state_text(effect))
            elif isinstance(effect, Signal):
                self.event("transitional", time_ns, step, view=str(effect.view))
            elif isinstance(effect, Installed):
                self._installed(effect, time_ns, step)
            elif isinstance(effect, Stopped):
                self.event("stop", time_ns, step, view=self._view)

    def _installed(self, effect: Installed, time_ns: int, step: int | None) -> None:
        self._view = str(effect.view)
        self._view_sites = sorted({self._cluster.daemons[life.rank].site for life in effect.members})
        self.event(
            "view",
            time_ns,
            step,
            view=None if effect.previous is None else str(effect.previous),
            view_new=self._view,
            view_rank=tuple(effect.view),
            members=self._names(effect.members),
            transitional=self._names(effect.transitional),
            sites=self._sites(effect),
            links=tuple(f"{one}-{other}:{cost}" for one, other, cost in effect.links),
            cause=effect.cause,
            detail=effect.reason.value + (f" ({effect.detail})" if effect.detail else ""),
        )

    def _sites(self, effect: Installed) -> tuple[int, ...]:
        """Of each member, in the order of their names; empty where there is one site."""
        if not effect.links:
            return ()
        by_name = sorted(
            (process_name(self._cluster, life), self._cluster.daemons[life.rank].site) for life in effect.members
        )
        return tuple(site for _, site in by_name)

    def _names(self, lives: Iterable[Life]) -> tuple[str, ...]:
        return tuple(sorted(process_name(self._cluster, life) for life in lives))

    def _sender(self, bundle: Bundle, payload: Payload) -> str:
        """A client's process for its messages; for changes of groups, the daemon's, with the session they are about."""
        origin = process_name(self._cluster, bundle.origin)
        if bundle.kind is Kind.MESSAGES:
            try:
                return read_sender(payload)
            except FrameError:
                return f"?@{origin}"  # No daemon takes that from a client: it was damaged or forged on its way.
        if bundle.kind is not Kind.RAW:
            return f"{origin}/{bundle.session}"
        return origin if bundle.session == 0 else f"s{bundle.session}@{origin}"

    def _message(self, event: str, effect: Deliver | Stamped, time_ns: int, step: int | None) -> None:
        bundle = effect.bundle
        payload = effect.payloads[0] if len(effect.payloads) == 1 else b"".join(effect.payloads)
        sender = self._sender(bundle, payload)
        ordered = bundle.number > 0
        view = str(effect.view)
        self.event(
            event,
            time_ns,
            step,
            view=view,
            message=f"{sender}#{bundle.session_seq}",
            count=bundle.count,
            sender=sender,
            session_seq=bundle.session_seq,
            service=_SERVICES[bundle.service],
            order_view=view,
            order_stamp=bundle.stamp if ordered else None,
            order_site=bundle.site if ordered else None,
            order_index=0 if ordered else None,
            size=None if bundle.is_meta else len(payload),
            digest=None if bundle.is_meta else payload_digest(payload),
            content_sites=self._content_sites(bundle) if event == "send" else (),
        )

    def _content_sites(self, bundle: Bundle) -> tuple[int, ...]:
        """The sites that get the payload; none, where all do."""
        return tuple(site for at, site in enumerate(self._view_sites) if bundle.content >> at & 1)


def _state_text(effect: Entered) -> str:
    return f"{effect.state.value}: {effect.reason.value}" + (f" ({effect.detail})" if effect.detail else "")
