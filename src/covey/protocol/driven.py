"""What a driver may hand over: its own mistakes are told to it at once, before they are on the wire.

In:        a life that shall begin; a submission of the driver's own.
Out:       nothing, or a LocalProtocolError that says what to write instead.
Not here:  what is refused for want of room, size or names (admission.py): that is an effect, `Refused`.
"""

from __future__ import annotations

from typing import Final

from covey.cluster import Cluster
from covey.errors import LocalProtocolError
from covey.ids import INFINITE, Life
from covey.protocol.transport.queue import PRIORITIES

from .clients import FIRST_SESSION
from .inputs import Submit

FLAGS_MAX: Final = 63


def check_life(cluster: Cluster, me: Life) -> None:
    if not 0 <= me.rank < len(cluster.daemons):
        raise LocalProtocolError(
            f"rank {me.rank}: write 0 to {len(cluster.daemons) - 1}, a place in the cluster's list"
        )
    if not 0 <= me.boot < INFINITE:
        raise LocalProtocolError(f"boot id {me.boot}: write one from 0 to 2**62 - 1, larger than those before")


def check_submit(submit: Submit) -> None:
    _check("session", submit.session, FIRST_SESSION - 1)
    _check("session_seq", submit.session_seq, INFINITE - 1 - max(0, submit.count))
    _check("flags", submit.flags, FLAGS_MAX)
    _check("priority", submit.priority, PRIORITIES - 1)
    try:
        "".join(submit.groups).encode()
    except UnicodeEncodeError:
        raise LocalProtocolError(f"groups {submit.groups!r} of a submission: write names that UTF-8 can hold") from None


def _check(field: str, value: int, most: int) -> None:
    if not 0 <= value <= most:
        raise LocalProtocolError(f"{field} {value} of a submission: write 0 to {most}")
