"""Traces of which a careless screen would prove too much: each breaks one guarantee, and hardly anything shows it.

In:   nothing.
Out:  rows by run; a run is named by what is wrong in it, and HOLES says which guarantee that breaks.
"""

from __future__ import annotations

import msgspec

from covey.trace.record import Row
from tests.unit.checkers.builder import Trace

HOLES = {"one place for two": "M5", "an id sent again": "S7", "a service not told": "M5"}


def hidden_runs() -> dict[str, list[Row]]:
    traces = zip(HOLES, (_one_place(), _same_id(), _no_service()), strict=True)
    return {name: [msgspec.structs.replace(row, run=name) for row in trace.rows] for name, trace in traces}


def _one_place() -> Trace:
    """Two reliable messages have one place in the order. Everybody delivers both."""
    trace = Trace("a b").install("v1", "a b")
    messages = [trace.send("a", "reliable"), trace.send("b", "reliable", order_stamp=1)]
    for message in messages:
        trace.deliver(message, "a b")
    return trace.settle("a b")


def _same_id() -> Trace:
    """An unreliable message, which nobody delivers, has the id of a reliable one of the view before."""
    trace = Trace("a b").install("v1", "a b")
    message = trace.multicast("a", "reliable", "a b")
    trace.install("v2", "a b")
    trace.send("a", "unreliable", message=message, session_seq=1)
    return trace.settle("a b")


def _no_service() -> Trace:
    """A message is ordered below what was delivered in the view before, by rows that do not say that it is ordered."""
    trace = Trace("a b c").install("v1", "a b").install("w1", "c")
    message = trace.send("a", "agreed", order_stamp=10)
    trace.deliver(message, "a b").install("v2", "a b c")
    message = trace.send("c", "agreed", order_stamp=5)
    return trace.deliver(message, "c").deliver(message, "a b", service=None).settle("a b c")
