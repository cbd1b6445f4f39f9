"""The bytes of a segment file: a header, then records of one fixed size, little-endian throughout.

In:        a row and the ids of its names, or the fields of a record and the names.
Out:       the bytes of a record, or the row again.
Not here:  files (segments.py, reading.py), the strings themselves (side_table.py).

Header of 64 bytes: magic, format number, schema number, record size, number of records the file has room for.
Record of 204 bytes, in this order:
  mark       1 once the record is whole; it is written last, so a killed writer never shows half a record
  is null    one flag for each nullable number: its 0 is then no value
  numbers    the int64 columns, the session sequences of `message` and `by`, the int32 columns
  names      every string and every list as its line in the side table; 0 is null, an empty list has a line of its own
A message id is unique, so it is not a name: its sender process is one, its sequence is a number beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from mmap import mmap
from operator import attrgetter
from struct import Struct
from typing import Any, Final

import msgspec

from .record import SCHEMA, Row

Name = str | tuple[str, ...] | tuple[int, ...] | None

MAGIC: Final = b"COVEYSEG"
FORMAT: Final = 3
HEADER: Final = Struct("<8s4I40x")

UNCOMMITTED: Final = 0
COMMITTED: Final = 1
# In place of COMMITTED, in the record behind the last one: rows were lost here. The body begins with how many.
LOST: Final = 2
LOST_COUNT: Final = Struct("<xQ")

NULLABLE_COLUMNS: Final = (
    "step",
    "session_seq",
    "order_stamp",
    "digest",
    "count",
    "order_site",
    "order_index",
    "size",
)
NAME_COLUMNS: Final = (
    "run",
    "level",
    "process",
    "name",
    "daemon",
    "event",
    "group",
    "groups",
    "view",
    "views",
    "view_new",
    "view_rank",
    "members",
    "transitional",
    "cause",
    "sender",
    "service",
    "order_view",
    "item",
    "obsoletes",
    "variant",
    "links",
    "sites",
    "content_sites",
    "detail",
)
RECORD: Final = Struct("<B8?7x 2q2q4q 4i 25I2I")

# A message id that is not `process#sequence` is kept whole, as a name, with this in place of a sequence.
WHOLE: Final = -1
# Longer numbers would not surely fit an int64.
SEQUENCE_DIGITS_MAX: Final = 18

_names_of = attrgetter(*NAME_COLUMNS)
_pack_into = RECORD.pack_into


def pack_header(records: int) -> bytes:
    return HEADER.pack(MAGIC, FORMAT, SCHEMA, RECORD.size, records)


def names_of(row: Row) -> tuple[Name, ...]:
    """Every name that the record of a row refers to."""
    return (*_names_of(row), _split_message(row.message)[0], _split_message(row.by)[0])


def pack_row(buffer: mmap, offset: int, row: Row, ids: dict[Name, int]) -> None:
    """Write a record, all but its mark. KeyError: a name has no id, and nothing is written.

    This runs for every row of a live daemon. Spelled out it takes half the time of a loop over the columns.
    """
    message, message_seq = _split_message(row.message)
    by, by_seq = _split_message(row.by)
    _pack_into(
        buffer,
        offset,
        UNCOMMITTED,
        row.step is None,
        row.session_seq is None,
        row.order_stamp is None,
        row.digest is None,
        row.count is None,
        row.order_site is None,
        row.order_index is None,
        row.size is None,
        row.index,
        row.time_ns,
        message_seq,
        by_seq,
        row.step or 0,
        row.session_seq or 0,
        row.order_stamp or 0,
        row.digest or 0,
        row.count or 0,
        row.order_site or 0,
        row.order_index or 0,
        row.size or 0,
        ids[row.run],
        ids[row.level],
        ids[row.process],
        ids[row.name],
        ids[row.daemon],
        ids[row.event],
        ids[row.group],
        ids[row.groups],
        ids[row.view],
        ids[row.views],
        ids[row.view_new],
        ids[row.view_rank],
        ids[row.members],
        ids[row.transitional],
        ids[row.cause],
        ids[row.sender],
        ids[row.service],
        ids[row.order_view],
        ids[row.item],
        ids[row.obsoletes],
        ids[row.variant],
        ids[row.links],
        ids[row.sites],
        ids[row.content_sites],
        ids[row.detail],
        ids[message],
        ids[by],
    )


def join_row(fields: Sequence[Any], names: Sequence[Name]) -> Row:
    """The row of an unpacked record. IndexError or msgspec.ValidationError: the record does not fit the names."""
    is_null, numbers, ids = fields[1:9], fields[9:21], fields[21:]
    index, time_ns, message_seq, by_seq, *nullable = numbers
    columns = {"schema": SCHEMA, "index": index, "time_ns": time_ns}
    for column, null, value in zip(NULLABLE_COLUMNS, is_null, nullable, strict=True):
        columns[column] = None if null else value
    *values, message, by = [names[identity] for identity in ids]
    columns.update(zip(NAME_COLUMNS, values, strict=True))
    columns["message"] = _join_message(message, message_seq)
    columns["by"] = _join_message(by, by_seq)
    return msgspec.convert(columns, Row)


def _split_message(message: str | None) -> tuple[str | None, int]:
    """The sender process of a message id and its sequence.

    >>> _split_message("alpha.1#42"), _split_message("alpha.1#042"), _split_message(None)
    (('alpha.1', 42), ('alpha.1#042', -1), (None, -1))
    """
    if message is None:
        return None, WHOLE
    process, separator, digits = message.rpartition("#")
    if separator and digits.isdecimal() and len(digits) <= SEQUENCE_DIGITS_MAX:
        sequence = int(digits)
        if str(sequence) == digits:  # Leading zeros and digits of other scripts would not come back.
            return process, sequence
    return message, WHOLE


def _join_message(name: Name, sequence: int) -> Name:
    return name if sequence == WHOLE else f"{name}#{sequence}"
