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

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from covey.trace.errors import TraceError

from .schema import SPARK_SCHEMA
from .store import PARQUET, PARQUET_SUFFIX, convert, inspect, one_form

RUNS_NAMED = 5


def read_trace(spark: SparkSession, directory: Path | str, *, work: Path | None = None) -> DataFrame:
    """The rows of a trace. Segments and NDJSON are converted on the way, into `work` or a directory that goes away.

    OSError: it cannot be read. TraceError: it holds no trace, or a file in it that must not be passed over.
    """
    return load(spark, parquet_files(Path(directory), work))


def load(spark: SparkSession, files: list[Path]) -> DataFrame:
    """The rows of Parquet files that were inspected."""
    # Spark's own working directory may be another: it keeps the one in which it was started.
    return spark.read.schema(SPARK_SCHEMA).parquet(*(str(path.absolute()) for path in files))


def of_run(trace: DataFrame, run: str) -> DataFrame:
    """The rows of one run. TraceError: there is none of that name."""
    found = trace.where(F.col("run") == run)
    if not found.isEmpty():
        return found
    runs = [row["run"] for row in trace.select("run").distinct().orderBy("run").limit(RUNS_NAMED + 1).collect()]
    named = ", ".join(map(str, runs[:RUNS_NAMED])) + (" and more" if len(runs) > RUNS_NAMED else "")
    raise TraceError(f"the trace has no run {run}: name one that it has, for example with --run {runs[0]} ({named}).")


def parquet_files(directory: Path, work: Path | None = None) -> list[Path]:
    """The Parquet files of a trace, each inspected; made from its segments or NDJSON files if it has such."""
    found = _found(directory)
    if not found:
        raise TraceError(f"{directory} holds no trace: name the directory that the trace was written to.")
    files = found.get(PARQUET, [])
    for path in files:
        inspect(path)
    if not files:
        files = _converted(sorted({path.parent for some in found.values() for path in some}), work or _scratch())
    if rows_in(files) == 0:
        raise TraceError(f"{directory} holds no rows: was it copied before it was written? Name one that has rows.")
    return files


def rows_in(files: list[Path]) -> int:
    """How many rows these Parquet files have, as they say themselves."""
    return sum(int(pq.read_metadata(path).num_rows) for path in files)


def _found(directory: Path) -> dict[str, list[Path]]:
    """The files of a trace by their form, of which there is one; hidden ones are in the making."""
    paths = sorted(directory.rglob("*") if directory.is_dir() else directory.iterdir())
    files = [path for path in paths if not path.is_dir()]  # Spark names directories like files.
    return one_form(directory, [path for path in files if not _is_hidden(path.relative_to(directory))])


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _converted(sources: list[Path], work: Path) -> list[Path]:
    targets = [work / f"part-{number:05}{PARQUET_SUFFIX}" for number in range(len(sources))]
    for source, target in zip(sources, targets, strict=True):
        convert(source, target)
    return targets


def _scratch() -> Path:
    work = Path(tempfile.mkdtemp(prefix="covey-trace-"))
    atexit.register(shutil.rmtree, work, ignore_errors=True)
    return work
