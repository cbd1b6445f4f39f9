"""A trace as text: one row is one line of JSON, with the columns of the schema by their names, in order.

In:        a directory with segments, NDJSON files, or both.
Out:       rows, and their lines.
Not here:  the command line (covey.cli.trace), the segments themselves (reading.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from .errors import TraceError
from .reading import read_rows
from .record import ADDED, COLUMNS, EVENTS, LEVELS, SCHEMA, SERVICES, Row
from .segments import NAMES_SUFFIX, SEGMENT_SUFFIX

NDJSON_SUFFIX = ".ndjson"

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Row)
# A row has defaults, a line has none: one that lacks a column would be judged as if it said that there was nothing.
_whole = msgspec.json.Decoder(
    msgspec.defstruct(
        "Line",
        [(one, msgspec.Raw, msgspec.Raw()) if one in ADDED else (one, msgspec.Raw) for one in COLUMNS],
        kw_only=True,
    )
)
_events, _services = frozenset(EVENTS), frozenset([*SERVICES, None])


def to_json_line(row: Row) -> str:
    """One line without its end. Every column is there; one that does not apply is null or an empty list."""
    return _encoder.encode(row).decode()


def from_json_line(line: str | bytes) -> Row:
    """The row of a line. Columns unknown to this version are passed over; another schema is an error.

    So is a line that lacks a column, or has a level, an event or a service that the schema does not know.
    """
    try:
        _whole.decode(line)
        row = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(_why_no_row(line, error)) from error
    if row.schema != SCHEMA:
        raise TraceError(f"a row of schema {row.schema}: read it with the version that wrote it, this reads {SCHEMA}.")
    if row.level not in LEVELS or row.event not in _events or row.service not in _services:
        raise TraceError(f"{_unknown(row)}: correct the line, or read it with the version that wrote it.")
    return row


def _why_no_row(line: str | bytes, error: Exception) -> str:
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = None
    missing = [one for one in COLUMNS if one not in found and one not in ADDED] if isinstance(found, dict) else []
    if not missing:
        return f"not a row of a trace ({error}): correct the line or take it out."
    several = "s" if len(missing) > 1 else ""
    return (
        f"not a row of a trace (it lacks the column{several} {', '.join(missing)}): print the trace again with "
        "`covey trace cat`, which writes every column; what does not apply is null, or an empty list."
    )


def _unknown(row: Row) -> str:
    columns = (("level", row.level, LEVELS), ("event", row.event, EVENTS), ("service", row.service, SERVICES))
    name, value, known = next(one for one in columns if one[1] not in one[2] and one[1] is not None)
    return f"{name} {value!r} is none of {', '.join(known)}"


def read_trace(directory: Path) -> Iterator[Row]:
    """The rows of all segments, then those of all NDJSON files, sorted by name.

    A directory without a trace is an error: to find nothing wrong in nothing would be no finding.
    """
    names = sorted(path.name for path in directory.iterdir())
    if not any(name.endswith((NAMES_SUFFIX, SEGMENT_SUFFIX, NDJSON_SUFFIX)) for name in names):
        raise TraceError(f"{directory} holds no trace: name the directory that the trace was written to.")
    yield from read_rows(directory)
    for name in names:
        if name.endswith(NDJSON_SUFFIX):
            yield from _read_ndjson(directory / name)


def select(rows: Iterable[Row], level: str | None = None, run: str | None = None) -> Iterator[Row]:
    """The rows of one level, of one run, or of both; None takes all."""
    for row in rows:
        if level in (None, row.level) and run in (None, row.run):
            yield row


def _read_ndjson(path: Path) -> Iterator[Row]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield from_json_line(line)
            except TraceError as error:
                raise TraceError(f"{path}, line {number}: {error}") from error
