"""Traces of which a careless screen would prove too much: each breaks one guarantee, and hardly anything shows it.

In:   nothing.
Out:  rows by run; a run is named by what is wrong in it, and HOLES says which guarantee that breaks.

Of each there is one condition of the screen, or a part of one, that keeps it from being proven.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from covey.trace.record import Row
from tests.unit.checkers.builder import Trace


def hidden_runs() -> dict[str, list[Row]]:
    traces = {name: written() for name, (_, written) in STORIES.items()}
    return {name: [msgspec.structs.replace(row, run=name) for row in trace.rows] for name, trace in traces.items()}


def _pair() -> Trace:
    return Trace("a b").install("v1", "a b")


# ------------------------------------------------------------------------------------------------------------ messages


def _one_place() -> Trace:
    """Two reliable messages have one place in the order. Everybody delivers both."""
    trace = _pair()
    messages = [trace.send("a", "reliable"), trace.send("b", "reliable", order_stamp=1)]
    for message in messages:
        trace.deliver(message, "a b")
    return trace.settle("a b")


def _same_id() -> Trace:
    """An unreliable message, which nobody delivers, has the id of a reliable one of the view before."""
    trace = _pair()
    message = trace.multicast("a", "reliable", "a b")
    trace.install("v2", "a b")
    trace.send("a", "unreliable", message=message, session_seq=1)
    return trace.settle("a b")


def _another_id() -> Trace:
    """A daemon delivers what was sent, in its place and with its content, but under an id that nobody gave."""
    trace = _pair()
    message = trace.send("a", "agreed")
    return trace.deliver(message, "a").deliver(_also(trace, message, "a:1#7"), "b").settle("a b")


def _no_service() -> Trace:
    """A message is ordered below what was delivered in the view before, by rows that do not say that it is ordered."""
    trace = Trace("a b c").install("v1", "a b").install("w1", "c")
    message = trace.send("a", "agreed", order_stamp=10)
    trace.deliver(message, "a b").install("v2", "a b c")
    message = trace.send("c", "agreed", order_stamp=5)
    return trace.deliver(message, "c").deliver(message, "a b", service=None).settle("a b c")


def _two_origins() -> Trace:
    """Two daemons send in one session: its second message is ordered before the first."""
    trace = _pair()
    for daemon, number in (("b", 2), ("a", 1)):
        name = f"s@a:1#{number}"
        message = trace.send(daemon, "agreed", sender="s@a:1", session_seq=number, message=name, order_site=number)
        trace.deliver(_also(trace, message, name), "a b")
    return trace.settle("a b")


def _also(trace: Trace, message: str, name: str) -> str:
    """Another name by which a message can be delivered."""
    trace.sends[name] = trace.sends[message]
    return name


def _later_life() -> Trace:
    """After a view with the second life of a daemon comes one with its first, in which that sends something."""
    trace = _pair().restart("a").install("v2", "a b").crash("a").install("v3", "a:1 b")
    trace.multicast("a:1", "fifo", "a:1 b")
    return trace.settle("a:1 b")


def _absent_member() -> Trace:
    """A safe message is delivered in a view of which one member, who lives on, has never heard."""
    trace = Trace("a b c").install("w1", "c").install("v1", "a b", members=("a:1", "b:1", "c:1"))
    trace.multicast("a", "safe", "a b")
    return trace.install("v2", "a b").settle("a b").settle("c")


# --------------------------------------------------------------------------------------------------------------- views


def _two_signals() -> Trace:
    return _pair().signal("a b").signal("a").install("v2", "a b").settle("a b")


def _another_view_before() -> Trace:
    """A view follows one that its daemon was never in."""
    return _pair().install("v2", "a b", view="v0").settle("a b")


def _not_a_member() -> Trace:
    """A daemon installs a view, to which nobody sends anything, that it is no member of."""
    return _pair().install("v2", "a b", members=("a:1",)).install("v3", "a b").settle("a b")


def _two_ranks() -> Trace:
    """A view, to which nobody sends anything, has a rank at each of its members."""
    trace = _pair().install_at("a", "v2", "a b", "a b", view_rank=(3, 0, 1))
    trace.install_at("b", "v2", "a b", "a b", view_rank=(4, 0, 1))
    trace.counter = 9
    return trace.install("v3", "a b").settle("a b")


def _members_like_ranks() -> Trace:
    """A view has another member at one daemon, and at the other one a rank that looks like its name, byte by byte."""
    trace = Trace("a b")
    trace.install_at("a", "v1", "a b zzzzzz:1", "a", view_rank=(1,))
    return trace.install_at("b", "v1", "a b", "b", view_rank=(int.from_bytes(b"zzzzzz:1", "little"), 1))


def _set_without_one() -> Trace:
    """Three come along from one view to the next, and all say that only two did."""
    trace = Trace("a b c").install("v1", "a b c").install("v2", "a b c", transitional=("a:1", "b:1"))
    return trace.settle("a b c")


def _connected_with_fewer() -> Trace:
    """Two end in a view of both, and are told that only one of them is connected."""
    return _pair().calm("a b", "a").end("a b")


def _never_in_a_view() -> Trace:
    return Trace("a b c").install("v1", "a b").settle("a b").settle("c")


def _apart_at_rest() -> Trace:
    """Two daemons, connected with each other, end in two views of both."""
    trace = _pair()
    trace.counter = 9
    trace.install_at("a", "v2", "a b", "a").install_at("b", "v3", "a b", "b")
    return trace.settle("a b")


STORIES: dict[str, tuple[str, Callable[[], Trace]]] = {
    "one place for two": ("M5", _one_place),
    "an id sent again": ("S7", _same_id),
    "delivered as another": ("S7", _another_id),
    "a service not told": ("M5", _no_service),
    "one session of two daemons": ("M3", _two_origins),
    "a life after the next": ("S10", _later_life),
    "a member who was not there": ("M6", _absent_member),
    "two signals": ("S11", _two_signals),
    "after another view": ("S1", _another_view_before),
    "no member of its view": ("S2", _not_a_member),
    "two ranks of one view": ("S4", _two_ranks),
    "a member that looks like a rank": ("S4", _members_like_ranks),
    "a set without one": ("S5", _set_without_one),
    "connected with fewer": ("S15", _connected_with_fewer),
    "at rest in no view": ("S15", _never_in_a_view),
    "at rest in two views": ("S14", _apart_at_rest),
}
HOLES = {name: guarantee for name, (guarantee, _) in STORIES.items()}
