"""Reading the rows back from segment files.

In:        a directory that segments.py wrote to, at rest or still being written.
Out:       rows: stems sorted by name, each in the order of appending; and whether any are missing.
Not here:  other forms of a trace, and choosing among rows (cat.py).

What a killed writer leaves is whole and is read to its last row. Where it had lost rows for want of room and no gap row
tells of them, its mark does, and becomes one. Anything else that does not fit (a foreign file, one cut short, one of
another version, a stem without segments) raises TraceError: a checker must not judge half a trace as if it were all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec

from .errors import TraceError
from .gaps import Gap
from .layout import COMMITTED, FORMAT, HEADER, LOST, LOST_COUNT, MAGIC, RECORD, join_row
from .record import SCHEMA, Row
from .segments import NAMES_SUFFIX, SEGMENT_SUFFIX
from .side_table import SideTableReader


def read_rows(directory: Path) -> Iterator[Row]:
    """All rows of a directory. OSError: it cannot be read. TraceError: one of its files cannot."""
    for stem, paths in sorted(_segments_of_stems(directory).items()):
        table = SideTableReader(directory / f"{stem}{NAMES_SUFFIX}")
        table.refresh()
        if not paths or table.is_empty:
            raise TraceError(
                f"{directory / stem}{NAMES_SUFFIX} {'is empty' if paths else 'has no segment beside it'}: the rows of "
                f"{stem} are missing. Was the disk full? Free some space and run again, or copy all its files."
            )
        last: Row | None = None
        for path in paths:
            for last in _read_segment(path, table, is_last=path is paths[-1]):
                yield last
        if lost := _lost_after(paths[-1]):
            yield _gap_row(stem, last, lost)


def read_whole(directory: Path) -> list[Row]:
    """All rows of a directory that lacks none. TraceError: it holds none, or rows of some process are missing."""
    rows = list(read_rows(directory))
    if not rows:
        raise TraceError(f"{directory} holds no rows: was the disk full when it was written?")
    indexes: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for row in rows:
        indexes[row.run, row.level, row.process].add(-1 if row.event == "gap" else row.index)
    for (_, _, process), seen in indexes.items():
        if seen != set(range(len(seen))):
            raise TraceError(f"{directory} lacks rows of {process}: was the disk full? Free some space and run again.")
    return rows


def _segments_of_stems(directory: Path) -> dict[str, list[Path]]:
    files = [path for path in directory.iterdir() if path.is_file()]
    stems: dict[str, dict[int, Path]] = {
        path.name.removesuffix(NAMES_SUFFIX): {} for path in files if path.name.endswith(NAMES_SUFFIX)
    }
    for path in files:
        if path.name.endswith(SEGMENT_SUFFIX):
            stem, number = _parse_name(path)
            if stem not in stems:
                raise TraceError(f"{path} lacks {stem}{NAMES_SUFFIX} beside it: copy that file here too.")
            if number in stems[stem]:
                raise TraceError(f"{path} and {stems[stem][number].name} are the same segment: keep one of them.")
            stems[stem][number] = path
    return {stem: _in_order(directory / stem, numbered) for stem, numbered in stems.items()}


def _parse_name(path: Path) -> tuple[str, int]:
    stem, _, number = path.name.removesuffix(SEGMENT_SUFFIX).rpartition(".")
    if not (stem and number.isdecimal()):
        raise TraceError(f"{path} is not named like a trace segment: move it to another directory.")
    return stem, int(number)


def _in_order(stem: Path, numbered: dict[int, Path]) -> list[Path]:
    for number in range(len(numbered)):
        if number not in numbered:
            raise TraceError(f"{stem}.{number:06}{SEGMENT_SUFFIX} is missing: copy all segments of the trace here.")
    return [numbered[number] for number in range(len(numbered))]


def _gap_row(stem: str, last: Row | None, lost: int) -> Row:
    """What a writer could not store for want of room: a row that tells of those it lost at last."""
    if last is None:
        raise TraceError(f"all {lost} rows of {stem} are lost: was the disk full? Free some space and run again.")
    return Gap(msgspec.structs.replace(last, index=last.index + 1), lost).to_row()


def _lost_after(path: Path) -> int:
    """How many rows were lost behind the last record of a stem, as its mark says; 0 without a mark."""
    data, records = _stored(path, is_last=True)
    at = HEADER.size + records * RECORD.size
    if len(data) < at + RECORD.size or data[at] != LOST:
        return 0
    return int(LOST_COUNT.unpack_from(data, at)[0])


def _read_segment(path: Path, table: SideTableReader, is_last: bool) -> Iterator[Row]:
    data, records = _stored(path, is_last)
    end = HEADER.size + records * RECORD.size
    # After the records, so that a table still growing has the names of all of them.
    table.refresh()
    for number, fields in enumerate(RECORD.iter_unpack(memoryview(data)[HEADER.size : end])):
        try:
            yield join_row(fields, table.names)
        except (IndexError, msgspec.ValidationError) as error:
            raise TraceError(
                f"{path}: record {number} does not fit its side table ({error}): copy both files again."
            ) from error


def _stored(path: Path, is_last: bool) -> tuple[bytes, int]:
    """The bytes of a segment, and how many records it holds: those before the first that is not marked."""
    records = 0
    for _ in range(2):  # One that was marked while we read on may be followed by marked ones: then look again.
        data = path.read_bytes()
        room = _records_in(path, data)
        marks = data[HEADER.size : HEADER.size + room * RECORD.size : RECORD.size]
        records = len(marks) - len(marks.lstrip(bytes([COMMITTED])))
        if COMMITTED not in marks[records:] and (is_last or records == room):
            return data, records
    raise TraceError(f"{path}: record {records} is not marked, but later ones are: copy the files again.")


def _records_in(path: Path, data: bytes) -> int:
    """The room for records that the header promises, once the header is known to be ours and the file to be whole."""
    if len(data) < HEADER.size:
        raise TraceError(f"{path} is cut short in its header: copy it again from where it was written.")
    magic, form, schema, record_size, records = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise TraceError(f"{path} is not a trace segment: move it to another directory.")
    if (form, schema, record_size) != (FORMAT, SCHEMA, RECORD.size):
        raise TraceError(
            f"{path} has format {form}, schema {schema} and records of {record_size} bytes, this version reads "
            f"{FORMAT}, {SCHEMA} and {RECORD.size}: read it with the version that wrote it."
        )
    needed = HEADER.size + records * RECORD.size
    if len(data) < needed:
        raise TraceError(
            f"{path} is cut short, {len(data)} of {needed} bytes: copy it again from where it was written."
        )
    return int(records)
