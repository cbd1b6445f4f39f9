"""Storing rows: fixed-size records in memory-mapped segment files, with a side table of names.

In:        rows, in the order of their histories.
Out:       STEM.names and STEM.000000.segment, STEM.000001.segment, ... in one directory.
Not here:  the bytes of a record (layout.py), reading them (reading.py).

Invariants:
  W1  a row is in the file when `append` returns, so a killed process loses none (a crash of the machine may)
  W2  a record is marked after its body and after its names are written: no reader sees half a row
  W3  a segment file appears whole: it is made under another name, allocated in full, and renamed
  W4  the same rows in the same order give the same bytes
  W5  a disk that is full, or fails otherwise, costs rows and never raises out of `append`
  W6  rows that were lost and not told of by a gap row have left a mark: each segment has room for it behind its last
      record, and the first segment is there before the first row. A disk that is full at the start is an error then
"""

from __future__ import annotations

import logging
import mmap
import os
import struct
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from .errors import TraceError
from .gaps import Gaps
from .layout import COMMITTED, HEADER, LOST, LOST_COUNT, RECORD, names_of, pack_header, pack_row
from .record import SCHEMA, Row
from .side_table import SideTableWriter

NAMES_SUFFIX: Final = ".names"
SEGMENT_SUFFIX: Final = ".segment"
PARTIAL_SUFFIX: Final = ".partial"  # A segment in the making; readers pass it over.

RECORDS_PER_SEGMENT: Final = 8192

_log = logging.getLogger(__name__)


class SegmentWriter:
    """Appends the rows of one stem. One writer for a stem, ever: a restarted process takes a new stem.

    When the disk is full a row is lost and counted. Once writing works again, a row with event `gap` and detail
    `N rows lost` is stored first, for each process that lost rows, at the index of its first lost row: the `index`
    of the process then shows the gap too.
    """

    def __init__(self, directory: Path, stem: str, *, records_per_segment: int = RECORDS_PER_SEGMENT) -> None:
        assert records_per_segment > 0
        if not stem or Path(stem).name != stem:
            raise TraceError(f"{stem!r} cannot be the name of trace files: use a name without slashes.")
        self._directory = directory
        self._stem = stem
        self._records_per_segment = records_per_segment
        # The segment being filled.
        self._mapping: mmap.mmap | None = None
        self._segment_path = Path()
        self._segments_made = 0
        self._offset = 0
        self._offset_end = 0
        self._gaps = Gaps()
        self._closed = False
        self._names = _open_names(directory, stem)
        self._make_first()

    def append(self, row: Row) -> None:
        """Store a row, or count it as lost. TraceError: the row itself does not fit the schema."""
        assert not self._closed
        if self._gaps.open:
            self._append_after_loss(row)
            return
        try:
            self._store(row)
        except OSError as error:
            _log.warning("trace %s: rows are being lost: %s", self._directory / self._stem, error)
            self._gaps.failed(row)
            self._mark_loss()

    def close(self) -> None:
        """Give back the unused end of the last segment. Losses are told now; on a disk still full, their mark stays."""
        if self._closed:
            return
        try:
            self._tell_gaps()
        except OSError as error:
            _log.warning("trace %s: the last rows are lost: %s", self._directory / self._stem, error)
            self._mark_loss()
        self._closed = True
        self._names.close()
        if self._mapping is not None:
            self._seal(self._mapping)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _append_after_loss(self, row: Row) -> None:
        if not self._gaps.is_due(row):
            self._gaps.count(row)
            self._mark_loss()
            return
        try:
            self._tell_gaps()
            self._store(row)
        except OSError:
            self._gaps.failed(row)
            self._mark_loss()

    def _mark_loss(self) -> None:
        """Behind the last record; the gap row will take its place."""
        mapping = self._mapping
        assert mapping is not None
        LOST_COUNT.pack_into(mapping, self._offset, sum(gap.count for gap in self._gaps.open.values()))
        mapping[self._offset] = LOST

    def _tell_gaps(self) -> None:
        while self._gaps.open:
            self._store(self._gaps.first())
            self._gaps.first_told()

    def _store(self, row: Row) -> None:
        offset = self._offset
        if offset == self._offset_end:
            offset = self._next_segment()
        mapping = self._mapping
        assert mapping is not None
        try:
            self._pack(mapping, offset, row)
        except (struct.error, UnicodeError) as error:
            raise TraceError(f"a row cannot be stored ({error}): keep to the types of the schema: {row}") from error
        mapping[offset] = COMMITTED
        self._offset = offset + RECORD.size

    def _pack(self, mapping: mmap.mmap, offset: int, row: Row) -> None:
        if row.schema != SCHEMA:
            raise TraceError(f"a row of schema {row.schema} cannot be stored: this version writes schema {SCHEMA}.")
        try:
            pack_row(mapping, offset, row, self._names.ids)
        except KeyError:  # A name is new. This is rare, so asking first would cost more.
            self._names.learn(names_of(row))
            pack_row(mapping, offset, row, self._names.ids)

    def _make_first(self) -> None:
        """Before the first row: who cannot record says so at once. TraceError: there is no room."""
        try:
            self._names.begin()
            self._next_segment()
        except OSError as error:
            self._names.close()
            path = self._directory / f"{self._stem}{NAMES_SUFFIX}"
            with suppress(OSError):
                path.unlink()
            raise TraceError(
                f"{path} cannot be written ({error.strerror}): free some space, or choose another directory."
            ) from error

    def _next_segment(self) -> int:
        """Map a new segment and give the offset of its first record. OSError: all is as before."""
        path = self._directory / f"{self._stem}.{self._segments_made:06}{SEGMENT_SUFFIX}"
        mapping = _make_segment(path, self._records_per_segment)
        if self._mapping is not None:
            self._mapping.close()
            self._cut(self._offset_end)
        self._mapping = mapping
        self._segment_path = path
        self._segments_made += 1
        self._offset = HEADER.size
        self._offset_end = len(mapping) - RECORD.size
        return self._offset

    def _seal(self, mapping: mmap.mmap) -> None:
        # The header first: a file longer than its header says is whole, a shorter one is not.
        mapping[: HEADER.size] = pack_header((self._offset - HEADER.size) // RECORD.size)
        mapping.close()
        self._cut(self._offset + (RECORD.size if self._gaps.open else 0))

    def _cut(self, size: int) -> None:
        with suppress(OSError):  # A failing disk keeps the unused end; no reader minds it.
            os.truncate(self._segment_path, size)


def _open_names(directory: Path, stem: str) -> SideTableWriter:
    path = directory / f"{stem}{NAMES_SUFFIX}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        return SideTableWriter(path)
    except FileExistsError as error:
        raise TraceError(f"{path} exists: give every writer a new name or a new directory.") from error
    except OSError as error:
        raise TraceError(f"{path} cannot be created ({error.strerror}): choose a directory to write to.") from error


def _make_segment(path: Path, records: int) -> mmap.mmap:
    partial = path.with_name(path.name + PARTIAL_SUFFIX)
    size = HEADER.size + (records + 1) * RECORD.size  # One for the mark of a loss.
    file = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        # Allocated now, a full disk is an error here. Later it would be a bus error at the touch of a page.
        os.posix_fallocate(file, 0, size)
        mapping = mmap.mmap(file, size, flags=mmap.MAP_SHARED)
        mapping[: HEADER.size] = pack_header(records)
        partial.rename(path)
        return mapping
    except OSError:
        partial.unlink()
        raise
    finally:
        os.close(file)
