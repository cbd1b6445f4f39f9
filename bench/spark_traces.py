"""Make large traces of imaginary daemons that keep every promise: input for bench/spark_checks.py.

    python bench/spark_traces.py DIR --rows 1000000 [--members 16] [--sites 16] [--rows-a-view 75000] [--crash]

One run; all members are in every view; each message is delivered by all. Services: 70 % agreed, 10 % each of reliable,
fifo and safe. Reliable and fifo messages come early at some members, and the last few of a view after the signal. One
Parquet file a member, as the trace store writes it. `--rows` counts delivery rows. With fewer sites than members,
places in the order are to be looked up.

With --crash the last member crashes in the middle of the middle view. What it would have sent from there on does not
exist, and the later views are without it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from covey.analysis.schema import LOGICAL_SCHEMA
from covey.analysis.trace_file import TraceFile

SERVICES = np.array(["agreed"] * 7 + ["reliable", "fifo", "safe"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--members", type=int, default=16)
    parser.add_argument("--sites", type=int, default=16)
    parser.add_argument("--rows-a-view", type=int, default=75_000)
    parser.add_argument("--crash", action="store_true", help="the last member crashes in the middle view")
    asked = parser.parse_args()
    asked.directory.mkdir(parents=True, exist_ok=True)
    members = [f"d{number:02}:1" for number in range(asked.members)]
    views = max(1, asked.rows // asked.rows_a_view)
    messages = asked.rows // asked.members // views // asked.members * asked.members
    crash = views // 2 if asked.crash else None
    delivered = 0
    for number, process in enumerate(members):
        path = asked.directory / f"{process.partition(':')[0]}.parquet"
        with TraceFile(path) as file:
            index = 0
            for view in range(views):
                if crash is not None and view > crash and number == len(members) - 1:
                    break
                table = one_view(members, asked.sites, number, view, messages, index, crash, last=view == views - 1)
                delivered += pc.sum(pc.equal(table["event"], "deliver")).as_py()
                index += table.num_rows
                file.add(table)
    print(f"{views} views, up to {messages} messages each, {delivered} delivery rows")


def one_view(
    members: list[str], sites: int, own: int, view: int, messages: int, index: int, crash: int | None, last: bool
) -> pa.Table:
    """The rows of one member in one view: the view itself, its sends and all deliveries."""
    rng = np.random.default_rng(view)
    number = np.arange(messages)
    origin = number % len(members)
    base = view * messages
    stamp = (base + number + 1) * 10
    service = SERVICES[rng.integers(len(SERVICES), size=messages)]
    digest = rng.integers(-(2**62), 2**62, size=messages)
    size = rng.integers(10, 1400, size=messages)
    # Own sends stand right before the delivery that the order gives them.
    when = moments(number, service, own)
    mine = np.flatnonzero(origin == own)
    signal = signal_time(service)
    times = np.concatenate([when, np.minimum(when[mine] - 2.9, signal - 0.1)])
    order = np.argsort(times, kind="stable")
    if crash is not None and view >= crash:
        order = order[_is_there(number, service, origin, len(members) - 1, own, view == crash, times)[order]]
    early = int((times[order] < signal).sum())
    which = np.concatenate([number, mine])[order]
    is_send = np.concatenate([np.zeros(messages, bool), np.ones(len(mine), bool)])[order]
    site = (origin % sites).astype(np.int32)
    return _table(
        members, own, view, index, which, is_send, origin, site, stamp, service, digest, size, base, crash, last, early
    )


def signal_time(service: np.ndarray) -> float:
    """Before the last messages of a view, where nothing comes early: so it is between the same ones at all members."""
    ordered = np.isin(service, ["agreed", "safe"])
    apart = np.flatnonzero(ordered[:-2] & ordered[1:-1] & ordered[2:])
    return float(apart[apart < len(service) - 20][-1]) * 4.0 + 2.0


def _is_there(
    number: np.ndarray, service: np.ndarray, origin: np.ndarray, gone: int, own: int, is_crash: bool, times: np.ndarray
) -> np.ndarray:
    """Which rows there are, if one member crashes in the middle: its own up to there, and of others what was sent."""
    until = len(number) // 2 * 4.0
    if own == gone:
        return times < until
    sent_at = moments(number, service, gone) - 2.9
    is_sent = (origin != gone) | (is_crash & (sent_at < until))
    return np.concatenate([is_sent, is_sent[origin == own]])


def moments(number: np.ndarray, service: np.ndarray, own: int) -> np.ndarray:
    """When a member delivers each message: in their order, but for early ones, which move up by a few places."""
    early = np.isin(service, ["reliable", "fifo"]) & ((number + own) % 3 == 0)
    return number * 4.0 + np.where(early, -6.5, 0.0)


def _table(
    members: list[str],
    own: int,
    view: int,
    index: int,
    which: np.ndarray,
    is_send: np.ndarray,
    origin: np.ndarray,
    site: np.ndarray,
    stamp: np.ndarray,
    service: np.ndarray,
    digest: np.ndarray,
    size: np.ndarray,
    base: int,
    crash: int | None,
    last: bool,
    early: int,
) -> pa.Table:
    process = members[own]
    count = len(which)
    senders = np.array([f"s1@{member}" for member in members])[origin[which]]
    sequence = base // len(members) + which // len(members) + 1
    name = f"v{view + 1}"
    columns: dict[str, np.ndarray] = {
        "event": np.where(is_send, "send", "deliver"),
        "view": np.full(count, name),
        "message": np.char.add(np.char.add(senders, "#"), sequence.astype(str)),
        "count": np.ones(count, np.int32),
        "sender": senders,
        "session_seq": sequence,
        "service": service[which],
        "order_view": np.full(count, name),
        "order_stamp": stamp[which],
        "order_site": site[which],
        "order_index": np.zeros(count, np.int32),
        "size": size[which].astype(np.int32),
        "digest": digest[which],
    }
    is_crash, is_after = view == crash, crash is not None and view > crash
    present = members[:-1] if is_after else members
    head: dict[str, object] = {
        "event": "view",
        "view": f"v{view}" if view else None,
        "view_new": name,
        "view_rank": [view + 1, 0, 1],
        "members": present,
        "transitional": present if view else [process],
        "cause": "merge",
    }
    ends: dict[int, list[dict[str, object]]] = {early: [{"event": "transitional", "view": name}], count: []}
    if last:
        ends = {count: [{"event": "calm", "members": present}, {"event": "end"}]}
    elif is_crash and own == len(members) - 1:
        ends = {count: [{"event": "crash"}]}
    return _assembled(process, index, head, columns, ends)


def _assembled(
    process: str,
    index: int,
    head: dict[str, object],
    columns: dict[str, np.ndarray],
    ends: dict[int, list[dict[str, object]]],
) -> pa.Table:
    """`ends`: other rows, by how many messages are before them."""
    rows = len(columns["event"])
    total = 1 + rows + sum(map(len, ends.values()))
    fixed = {"schema": 1, "run": "bench", "level": "S", "process": process, "name": process[:-2], "daemon": process}
    arrays = []
    for field in LOGICAL_SCHEMA:
        if field.name in fixed:
            arrays.append(pa.array([fixed[field.name]] * total, type=field.type))
        elif field.name in ("index", "time_ns"):
            arrays.append(pa.array(np.arange(index, index + total), type=field.type))
        else:
            empty: list[object] | None = [] if pa.types.is_list(field.type) else None
            middle = (
                pa.array(columns[field.name], type=field.type)
                if field.name in columns
                else pa.array([empty] * rows, type=field.type)
            )
            parts, start = [pa.array([head.get(field.name, empty)], type=field.type)], 0
            for stop, others in ends.items():
                parts.append(middle.slice(start, stop - start))
                parts.extend(pa.array([one.get(field.name, empty)], type=field.type) for one in others)
                start = stop
            arrays.append(pa.concat_arrays(parts))
    return pa.Table.from_arrays(arrays, schema=LOGICAL_SCHEMA)


if __name__ == "__main__":
    main()
