"""The analysis of traces with Spark: `pip install 'covey[spark]'`.

`read_trace(spark, DIR)` gives the rows of a trace as a DataFrame, `judge(trace)` the verdict on every guarantee, and
`session()` a Spark session that works here. The checks themselves are in `covey.analysis.checks`.
"""

from __future__ import annotations

from .judging import judge
from .reading import read_trace
from .session import session

__all__ = ["judge", "read_trace", "session"]
