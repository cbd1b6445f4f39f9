"""A directory with a trace, in whatever form, as a DataFrame with the logical schema.

In:        a directory: Parquet files, segments, or NDJSON files, also in directories below it.
Out:       the rows, and for people what was read.
Not here:  the files themselves (store.py, covey.trace), what the rows mean.

A directory is read as a whole or not at all: one file that is torn, foreign or of another schema is an error that
names it. (Spark could be told to pass over such files; then half a trace would be judged as if it were all.)
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from covey.analysis.schema import SPARK_SCHEMA
from covey.analysis.store import PARQUET_SUFFIX, convert, inspect
from covey.trace.cat import NDJSON_SUFFIX
from covey.trace.errors import TraceError
from covey.trace.segments import NAMES_SUFFIX, SEGMENT_SUFFIX

RAW_SUFFIXES: Final = (NAMES_SUFFIX, SEGMENT_SUFFIX, NDJSON_SUFFIX)


def read_trace(spark: SparkSession, directory: Path | str, *, work: Path | None = None) -> DataFrame:
    """The rows of a trace. Segments and NDJSON are converted on the way, into `work` or a directory that goes away.

    OSError: it cannot be read. TraceError: it holds no trace, or a file in it that must not be passed over.
    """
    return load(spark, parquet_files(Path(directory), work))


def load(spark: SparkSession, files: list[Path]) -> DataFrame:
    """The rows of Parquet files that were inspected."""
    # Spark's own working directory may be another: it keeps the one in which it was started.
    return spark.read.schema(SPARK_SCHEMA).parquet(*(str(path.absolute()) for path in files))


def parquet_files(directory: Path, work: Path | None = None) -> list[Path]:
    """The Parquet files of a trace, each inspected; made from its segments and NDJSON files if it has such."""
    parquet, raw = _found(directory)
    if parquet and raw:
        raise TraceError(
            f"{directory} holds Parquet files ({parquet[0].name}) and segments or NDJSON files ({raw[0]}): "
            "their rows would count twice, so keep one form and move the other away."
        )
    if not parquet and not raw:
        raise TraceError(f"{directory} holds no trace: name the directory that the trace was written to.")
    for path in parquet:
        inspect(path)
    return parquet or _converted(raw, work or _scratch())


def rows_in(files: list[Path]) -> int:
    """How many rows these Parquet files have, as they say themselves."""
    return sum(int(pq.read_metadata(path).num_rows) for path in files)


def _found(directory: Path) -> tuple[list[Path], list[Path]]:
    """The Parquet files, and the directories that have segments or NDJSON files; hidden ones are in the making."""
    parquet, raw = [], set()
    for path in sorted(directory.rglob("*") if directory.is_dir() else directory.iterdir()):
        if any(part.startswith((".", "_")) for part in path.relative_to(directory).parts):
            continue
        if path.suffix == PARQUET_SUFFIX:
            parquet.append(path)
        elif path.suffix in RAW_SUFFIXES:
            raw.add(path.parent)
    return parquet, sorted(raw)


def _converted(sources: list[Path], work: Path) -> list[Path]:
    targets = [work / f"part-{number:05}{PARQUET_SUFFIX}" for number in range(len(sources))]
    for source, target in zip(sources, targets, strict=True):
        convert(source, target)
    return targets


def _scratch() -> Path:
    work = Path(tempfile.mkdtemp(prefix="covey-trace-"))
    atexit.register(shutil.rmtree, work, ignore_errors=True)
    return work
