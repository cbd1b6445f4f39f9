"""Whether views come to rest as connectivity allows: S14 and S15, of daemons only.

In:        Tables; connectivity is what the `calm` rows say.
Out:       findings.

  S14  stable and transitive connectivity: one view of exactly the connected set
  S15  any stable connectivity: views stop, and hold only daemons connected both ways
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from covey.analysis.findings import listed, text, union, weighed
from covey.analysis.tables.build import Tables
from covey.analysis.tables.columns import PROCESS, every, is_client, whole


def check(tables: Tables) -> DataFrame:
    last = (
        tables.stays.where(F.col("is_last"))
        .groupBy(*PROCESS)
        .agg(F.max_by(F.struct("stay", "view", "members"), "stay").alias("last"))
    )
    calm = tables.lives.where(~is_client() & F.col("calm").isNotNull() & ~F.col("departed"))
    calm = calm.join(last, PROCESS, "left")
    return union([precision(calm), rest(calm)])


def precision(calm: DataFrame) -> DataFrame:
    """S14. Connectivity is transitive for a set if everybody in it reports that very set."""
    group = ["run", "level", "calm"]
    calm = calm.withColumn("reporting", F.array_sort(F.collect_set("process").over(whole(group))))
    judged = calm.where((F.col("calm") == F.col("reporting")) & F.col("ended"))
    first = F.first("last", ignorenulls=True).over(every(group, "process"))
    judged = judged.withColumn("first", first)
    wrong = (
        F.col("last").isNull() | (F.col("last.members") != F.col("calm")) | (F.col("last.view") != F.col("first.view"))
    )
    return weighed(
        judged,
        "S14",
        wrong,
        [
            F.col("process"),
            " ended in ",
            text("last.view"),
            " of ",
            listed(F.coalesce("last.members", F.array())),
            ", connected ",
            listed("calm"),
            ", others in ",
            text("first.view"),
        ],
        view=F.col("last.view"),
        evidence=[("process", F.col("last.stay")), ("process", "calm_at")],
    )


def rest(calm: DataFrame) -> DataFrame:
    """S15."""
    strangers = F.array_except(F.coalesce("last.members", F.array()), F.col("calm"))
    judged = calm.withColumn("strangers", strangers)
    wrong = ~F.col("ended") | F.col("last").isNull() | (F.size("strangers") > 0)
    why = (
        F.when(~F.col("ended"), F.lit(" never came to rest after the faults stopped"))
        .when(F.col("last").isNull(), F.lit(" ended without any view"))
        .otherwise(
            F.concat(
                F.lit(" ended in a view with "),
                listed("strangers"),
                F.lit(", but is connected both ways only with "),
                listed("calm"),
            )
        )
    )
    return weighed(
        judged,
        "S15",
        wrong,
        [F.col("process"), why],
        view=F.col("last.view"),
        evidence=[("process", F.col("last.stay")), ("process", "calm_at")],
    )
