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
from tests.spark.holes import hidden_runs
from tests.spark.opinions import Opinions, opinions_on, together
from tests.spark.processes import in_processes
from tests.spark.screenings import TORN, Screening, torn_run, with_claims, without_claims

SEEDS = range(55)
DAMAGED_SEED = 2
DAMAGES = ("lost end", "lost signal", "fewer members", "another digest", "moved delivery", "fifo too early")
"""What the screen is shown beside good runs."""

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
def damaged_runs(small_runs: dict[str, Rows]) -> dict[str, Rows]:
    return {f"{DAMAGED_SEED} {damage}": small_runs[f"{DAMAGED_SEED} {damage}"] for damage in DAMAGES}


@pytest.fixture(scope="session")
def daemon_runs(small_runs: dict[str, Rows]) -> dict[str, Rows]:
    """Of every fourth seed: they are judged twice, with and without the screen."""
    of_daemons = {run: rows for run, rows in small_runs.items() if all(row.level == "S" for row in rows)}
    return {run: rows for run, rows in of_daemons.items() if int(run.split()[0]) % 4 == 0}


@pytest.fixture(scope="session")
def screenings(
    starting_spark: Future[SparkSession],
    lossless_runs: dict[str, Rows],
    damaged_runs: dict[str, Rows],
    daemon_runs: dict[str, Rows],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Future[Screening]]]:
    """Beside the judgement: while one of them makes plans, the other has the cores."""
    spark, directory = starting_spark.result(), tmp_path_factory.mktemp("screened")
    torn = torn_run(next(iter(lossless_runs.values())))
    many = lossless_runs | daemon_runs | hidden_runs() | {TORN: torn}
    few = lossless_runs | damaged_runs | hidden_runs()
    with ThreadPoolExecutor(1) as pool:
        yield {
            "with claims": pool.submit(with_claims, spark, many, directory / "with"),
            "without claims": pool.submit(without_claims, spark, few, directory / "without"),
        }


@pytest.fixture(scope="session")
def judgement(
    starting_spark: Future[SparkSession],
    screenings: dict[str, Future[Screening]],
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
