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

from covey.analysis.schema import LOGICAL_SCHEMA, SCHEMA_KEY
from covey.analysis.trace_file import TraceFile
from covey.trace.cat import read_trace as read_rows
from covey.trace.errors import TraceError
from covey.trace.record import COLUMNS, SCHEMA, Row

PARQUET_SUFFIX: Final = ".parquet"
ROWS_A_BATCH: Final = 65_536


def write_parquet(rows: Iterable[Row], path: Path) -> int:
    """Write rows as one file, which appears when it is whole; the number of rows."""
    written = 0
    with TraceFile(path) as file:
        for batch in _batches(rows):
            file.add(_table(batch))
            written += len(batch)
    return written


def convert(source: Path, target: Path) -> int:
    """The segments and NDJSON files of one directory, as one Parquet file; the number of rows.

    TraceError: one of the files cannot be read, and no file is written.
    """
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


def inspect(path: Path) -> None:
    """TraceError, naming the file and the remedy: it is torn, of another schema, or lacks columns."""
    try:
        found = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise TraceError(f"{path} is torn or no Parquet file ({error}): copy it again, or take it away.") from error
    _judge_schema(path, found)


def _judge_schema(path: Path, found: pa.Schema) -> None:
    number = (found.metadata or {}).get(SCHEMA_KEY, b"none").decode(errors="replace")
    if number != str(SCHEMA):
        raise TraceError(
            f"{path} has trace schema {number}, this version reads {SCHEMA}: read it with the version that wrote it."
        )
    if missing := [column for column in COLUMNS if column not in found.names]:
        raise TraceError(f"{path} lacks the columns {', '.join(missing)}: convert it again from its segments.")
    for column in COLUMNS:
        if found.field(column).type != LOGICAL_SCHEMA.field(column).type:
            raise TraceError(
                f"{path}: column {column} is {found.field(column).type}, not {LOGICAL_SCHEMA.field(column).type}: "
                "convert it again from its segments."
            )


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    source = iter(rows)
    while batch := list(islice(source, ROWS_A_BATCH)):
        yield batch


def _table(rows: list[Row]) -> pa.Table:
    columns = zip(*map(msgspec.structs.astuple, rows), strict=True)
    arrays = [pa.array(values, type=field.type) for values, field in zip(columns, LOGICAL_SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=LOGICAL_SCHEMA)
