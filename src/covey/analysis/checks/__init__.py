"""The checks: one file a family of guarantees, each a pure function from tables to findings.

To add a family, write a file with `check(tables) -> findings` and name it here. Nothing below this folder starts a job,
runs Python on rows or looks at data itself: plans only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import DataFrame

from covey.analysis.checks import agreed, changes, cohorts, delivery, groups, liveness, order, rest, safe, views
from covey.analysis.tables.build import Tables

FAMILIES: Final[dict[str, Callable[[Tables], DataFrame]]] = {
    "views": views.check,
    "liveness": liveness.check,
    "delivery": delivery.check,
    "cohorts": cohorts.check,
    "rest": rest.check,
    "order": order.check,
    "agreed": agreed.check,
    "safe": safe.check,
    "changes": changes.check,
    "groups": groups.check,
}
