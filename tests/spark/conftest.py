"""One Spark session, and one judgement of everything, for all tests of the analysis.

What costs time in Spark is a query, not its rows. So all traces that any test asks about are judged together, each as a
run of its own, and the tests look at the verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from covey.analysis import judge, read_trace, session
from covey.analysis.judging import Judgement
from covey.analysis.store import write_parquet
from covey.trace.record import Row
from tests.spark import recorded
from tests.spark.opinions import Opinions, opinions_on, together
from tests.spark.processes import in_processes

SEEDS = range(32)

Rows = list[Row]


@pytest.fixture(scope="session")
def starting_spark() -> Iterator[Future[SparkSession]]:
    """Java starts while traces are recorded in other processes."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(session, "local[2]", partitions=2, memory="3g", brief=True)


@pytest.fixture(scope="session")
def spark(starting_spark: Future[SparkSession]) -> Iterator[SparkSession]:
    made = starting_spark.result()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def opinions() -> Opinions:
    return together(in_processes(opinions_on, SEEDS))


@pytest.fixture(scope="session")
def small_runs(opinions: Opinions) -> dict[str, Rows]:
    return opinions.runs


@pytest.fixture(scope="session")
def simulated_runs() -> dict[str, Rows]:
    return recorded.good_runs()


@pytest.fixture(scope="session")
def lossless_runs() -> dict[str, Rows]:
    return recorded.lossless_runs()


@pytest.fixture(scope="session")
def broken_runs() -> dict[str, Rows]:
    """By the name of the mutant, the trace in which it broke the guarantee it names."""
    return recorded.mutated_runs()


@pytest.fixture(scope="session")
def judgement(
    starting_spark: Future[SparkSession],
    small_runs: dict[str, Rows],
    simulated_runs: dict[str, Rows],
    broken_runs: dict[str, Rows],
    lossless_runs: dict[str, Rows],
    tmp_path_factory: pytest.TempPathFactory,
) -> Judgement:
    directory: Path = tmp_path_factory.mktemp("traces")
    spark = starting_spark.result()
    for number, runs in enumerate((small_runs, simulated_runs, broken_runs, lossless_runs)):
        write_parquet((row for rows in runs.values() for row in rows), directory / f"{number}.parquet")
    return judge(read_trace(spark, directory))
