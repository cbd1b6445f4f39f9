"""Where a judgement works: tables in between are stored and read back, in a way that fits the size of the trace.

In:        a Spark session, a directory, and whether there is little to do.
Out:       `keep`, which stores a table under a name and gives it back as stored; and settings for a small trace.
Not here:  which tables there are (tables/), what is concluded from them (checks/).

A small trace costs nothing but plans and jobs. So all its rows stay in one partition: then little is moved, a query has
few stages, and several can be planned at the same time. Its tables stay in memory: for each one stored in a file,
Hadoop would start a dozen processes that set permissions. Code is not generated, since compiling it takes longer than
the work, and the optimiser is spared the rules that grow fastest with the plan.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

ROWS_SMALL: Final = 60_000
"""Up to here plans and jobs cost more than rows."""
ROWS_SCREENED: Final = 600_000
"""From here on it pays to look first which runs are good at one glance."""
# Rules that find nothing in these plans: they have no limits, subqueries, objects, decimals, JSON or statistics.
RULES_SPARED: Final = (
    "CheckCartesianProducts",
    "CombineTypedFilters",
    "ConvertToLocalRelation",
    "CostBasedJoinReorder",
    "DecimalAggregates",
    "EliminateAggregateFilter",
    "EliminateLimits",
    "EliminateMapObjects",
    "EliminateSerialization",
    "GenerateOptimization",
    "InferFiltersFromGenerate",
    "LikeSimplification",
    "LimitPushDown",
    "LimitPushDownThroughWindow",
    "NullDownPropagation",
    "ObjectSerializerPruning",
    "OptimizeCsvJsonExprs",
    "OptimizeJoinCondition",
    "OptimizeOneRowPlan",
    "OptimizeRand",
    "OptimizeUpdateFields",
    "OptimizeWindowFunctions",
    "PushExtraPredicateThroughJoin",
    # These move joins below the step that brings all rows together, and so need an exchange.
    "PushDownLeftSemiAntiJoin",
    "PushFoldableIntoBranches",
    "PushLeftSemiLeftAntiThroughJoin",
    "ReassignLambdaVariableID",
    "RemoveDispensableExpressions",
    "ReorderJoin",
    "SimplifyCaseConversionExpressions",
    "SimplifyDateTimeConversions",
    "TransposeWindow",
    "UnwrapCastInBinaryComparison",
)
SMALL_SETTINGS: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # A broadcast is a job of its own, and saves nothing where all rows are in one place.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.expression.nestedPruning.enabled": "false",
    "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.optimizer.excludedRules": ",".join(f"org.apache.spark.sql.catalyst.optimizer.{r}" for r in RULES_SPARED),
    # Otherwise each change that a rule makes to a plan is checked.
    "spark.sql.lightweightPlanChangeValidation": "false",
}

Progress = Callable[[str], None]


class Workshop:
    """Stores tables in a directory. `small`: for a while, everything is done as fits a small trace."""

    def __init__(self, spark: SparkSession, directory: str, progress: Progress) -> None:
        self._spark = spark
        self._directory = directory
        self._progress = progress
        self._is_small = False

    def keep(self, name: str, frame: DataFrame) -> DataFrame:
        self._progress(name)
        if self._is_small:
            return frame.coalesce(1).localCheckpoint()
        path = f"{self._directory}/{name}"
        frame.write.mode("overwrite").parquet(path)
        # Without the schema, Spark would look for it in the files: one more job.
        return self._spark.read.schema(frame.schema).parquet(path)

    def keep_few(self, name: str, frame: DataFrame) -> DataFrame:
        """The same, in memory, for a table that is small, though what it is made from is not."""
        self._progress(name)
        return frame.localCheckpoint()

    @contextmanager
    def small(self, applies: bool) -> Iterator[None]:
        with _settings(self._spark, SMALL_SETTINGS if applies else {}):
            self._is_small = applies
            try:
                yield
            finally:
                self._is_small = False


@contextmanager
def workshop(spark: SparkSession, work: str | None, *, progress: Progress) -> Iterator[Workshop]:
    """A place to keep tables, for a while. `work`: a directory, on a cluster one that all its nodes share."""
    with _directory(work) as directory:
        yield Workshop(spark, directory, progress)


@contextmanager
def _directory(work: str | None) -> Iterator[str]:
    made = tempfile.mkdtemp(prefix="covey-work-") if work is None else None
    try:
        yield made or str(work)
    finally:
        if made is not None:
            shutil.rmtree(Path(made), ignore_errors=True)


@contextmanager
def _settings(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """These settings for a while, then what was before."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value_before in before.items():
            if value_before is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value_before)
