"""The trace store: rows to Parquet files, and many small files to a few large ones.

In:        rows, or a directory with segments or NDJSON; for compaction, a directory with Parquet files.
Out:       closed Parquet files with the logical columns.
Not here:  how a file is laid out (trace_file.py), reading them into Spark (reading.py).

Invariants:
  P1  a file has its name only when it is whole: it is written under a hidden name, which Spark passes over, and renamed
  P2  one bad input stops the conversion with its name: nothing is ever left out in silence
  P3  compaction writes a new directory, which appears under its name when it is whole; the old one stays
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from covey.trace.cat import NDJSON_SUFFIX
from covey.trace.cat import read_trace as read_rows
from covey.trace.errors import TraceError
from covey.trace.record import COLUMNS, EVENTS, LEVELS, SCHEMA, SERVICES, Row
from covey.trace.segments import NAMES_SUFFIX, SEGMENT_SUFFIX

from .schema import LOGICAL_SCHEMA, SCHEMA_KEY
from .trace_file import TraceFile

PARQUET_SUFFIX: Final = ".parquet"
PARQUET: Final = "Parquet files"
FORMS: Final = {
    PARQUET: (PARQUET_SUFFIX,),
    "segments": (NAMES_SUFFIX, SEGMENT_SUFFIX),
    "NDJSON files": (NDJSON_SUFFIX,),
}
ROWS_A_BATCH: Final = 65_536
KNOWN: Final[dict[str, frozenset[str | None]]] = {
    "level": frozenset(LEVELS),
    "event": frozenset(EVENTS),
    "service": frozenset([*SERVICES, None]),
}

NEVER_NULL: Final = ("run", "process")


def write_parquet(rows: Iterable[Row], path: Path) -> int:
    """Write rows as one file, which appears when it is whole; the number of rows."""
    written = 0
    with TraceFile(path) as file:
        for batch in _batches(rows):
            file.add(_table(batch))
            written += len(batch)
    return written


def convert(source: Path, target: Path) -> int:
    """The segments or the NDJSON files of one directory, as one Parquet file; the number of rows.

    TraceError: one of the files cannot be read, or there are both, and no file is written.
    """
    one_form(source, [path for path in sorted(source.iterdir()) if path.suffix != PARQUET_SUFFIX])
    target.parent.mkdir(parents=True, exist_ok=True)
    return write_parquet(read_rows(source), target)


def compact(trace: DataFrame, target: Path, files: int = 1) -> None:
    """Write a trace anew in a few large files, the rows of a run and a process side by side: a Spark job."""
    if target.exists():
        raise TraceError(f"{target} exists: name a new directory to compact into.")
    partial = target.absolute().with_name(f".{target.name}.inprogress")  # Spark's working directory may be another.
    sorted_rows = (
        trace.select(*COLUMNS)
        .repartitionByRange(files, "run", "level", "process")
        .sortWithinPartitions("run", "level", "process", "index")
    )
    sorted_rows.write.mode("overwrite").parquet(str(partial))
    for path in sorted(partial.glob(f"*{PARQUET_SUFFIX}")):
        _finish(path)
    partial.rename(target)


def _finish(path: Path) -> None:
    """Spark writes neither the schema number nor what stands beside the logical columns: write the file once more."""
    whole = path.with_name(f"whole-{path.name}")
    with pq.ParquetFile(path) as found, TraceFile(whole) as file:
        for batch in found.iter_batches(ROWS_A_BATCH):
            file.add(pa.Table.from_batches([batch]).cast(LOGICAL_SCHEMA))
    whole.rename(path)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # Spark's checksum of what was there before.


def one_form(directory: Path, paths: Iterable[Path]) -> dict[str, list[Path]]:
    """These files by their form, which is one at most; others are left out. TraceError: there are several forms."""
    found: dict[str, list[Path]] = {}
    for path in paths:
        for form, suffixes in FORMS.items():
            if path.suffix in suffixes:
                found.setdefault(form, []).append(path)
    if len(found) > 1:
        named = " and ".join(f"{form} ({some[0].relative_to(directory)})" for form, some in found.items())
        raise TraceError(
            f"{directory} holds {named}: their rows would count twice, so keep one form and move the other away."
        )
    return found


def inspect(path: Path) -> None:
    """TraceError, naming the file and the remedy: it is torn, of another schema, lacks columns, has unknown values."""
    try:
        with pq.ParquetFile(path, read_dictionary=list(KNOWN)) as file:
            _judge_schema(path, file.schema_arrow)
            for number in range(file.num_row_groups):
                _judge_values(path, file, number)
    except (pa.ArrowException, OSError) as error:
        said = " ".join(str(error).split())
        raise TraceError(
            f"{path} is torn, damaged or no Parquet file ({said}): copy it again, or take it away."
        ) from error


def _judge_schema(path: Path, found: pa.Schema) -> None:
    number = (found.metadata or {}).get(SCHEMA_KEY, b"none").decode(errors="replace")
    if number != str(SCHEMA):
        raise TraceError(
            f"{path} has trace schema {number}, this version reads {SCHEMA}: read it with the version that wrote it."
        )
    if missing := [column for column in COLUMNS if column not in found.names]:
        raise TraceError(f"{path} lacks the columns {', '.join(missing)}: convert it again from its segments.")
    for column in COLUMNS:
        found_type, expected = found.field(column).type, LOGICAL_SCHEMA.field(column).type
        if (found_type.value_type if pa.types.is_dictionary(found_type) else found_type) != expected:
            raise TraceError(
                f"{path}: column {column} is {found_type}, not {expected}: convert it again from its segments."
            )


def _judge_values(path: Path, file: pq.ParquetFile, number: int) -> None:
    """What no check knows would be passed over by all of them, and so would what belongs to nobody."""
    group = file.metadata.row_group(number)
    for name in NEVER_NULL:
        if not _has_no_null(group, name) and file.read_row_group(number, [name]).column(0).null_count:
            raise TraceError(f"{path} has a row without {name}: convert it again from its segments.")
    doubtful = [column for column in KNOWN if not _is_known(group, column)]
    for name, values in zip(doubtful, file.read_row_group(number, doubtful).columns, strict=True):
        for value in values.unique().to_pylist():
            if value not in KNOWN[name]:
                known = ", ".join(sorted(filter(None, KNOWN[name])))
                raise TraceError(
                    f"{path} has a row with {name} {value!r}, which is none of {known}: convert it again from its "
                    "segments, or read it with the version that wrote it."
                )


def _is_known(group: pq.RowGroupMetaData, column: str) -> bool:
    """Whether the statistics say so, which is enough for most rows: only one value is there."""
    found = _statistics(group, column)
    is_one = found is not None and found.has_min_max and found.min == found.max and found.min in KNOWN[column]
    return is_one and (None in KNOWN[column] or _has_no_null(group, column))


def _has_no_null(group: pq.RowGroupMetaData, column: str) -> bool:
    found = _statistics(group, column)
    return found is not None and found.has_null_count and found.null_count == 0


def _statistics(group: pq.RowGroupMetaData, column: str) -> pq.Statistics | None:
    at = next(at for at in range(group.num_columns) if group.column(at).path_in_schema == column)
    return group.column(at).statistics


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    source = iter(rows)
    while batch := list(islice(source, ROWS_A_BATCH)):
        yield batch


def _table(rows: list[Row]) -> pa.Table:
    columns = zip(*map(msgspec.structs.astuple, rows), strict=True)
    arrays = [pa.array(values, type=field.type) for values, field in zip(columns, LOGICAL_SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=LOGICAL_SCHEMA)
