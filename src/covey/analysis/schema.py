"""The columns of a trace as Parquet and Spark types: those of covey.trace.record, exactly, and claims beside them.

In:        nothing.
Out:       the Arrow schema of rows, that of files, and the latter for Spark.
Not here:  what the columns mean (covey.trace.record, claims.py).

The schema number stands in the metadata of each file, so that a file can be refused before a row is read.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from covey.trace.record import COLUMNS, SCHEMA

from .claims import CLAIMS

SCHEMA_KEY: Final = b"covey.trace.schema"
METADATA: Final = {SCHEMA_KEY: str(SCHEMA).encode()}

INT32: Final = frozenset({"schema", "count", "order_site", "order_index", "size"})
INT64: Final = frozenset({"index", "step", "time_ns", "session_seq", "order_stamp", "digest"})
INT32_LISTS: Final = frozenset({"sites", "content_sites"})
INT64_LISTS: Final = frozenset({"view_rank"})
STRING_LISTS: Final = frozenset({"groups", "views", "members", "transitional", "obsoletes", "links"})


def _arrow_type(column: str) -> pa.DataType:
    if column in INT32:
        return pa.int32()
    if column in INT64:
        return pa.int64()
    if column in INT32_LISTS | INT64_LISTS:
        return pa.list_(pa.int32() if column in INT32_LISTS else pa.int64())
    return pa.list_(pa.string()) if column in STRING_LISTS else pa.string()


def _spark_type(column: str) -> DataType:
    if column in INT32:
        return IntegerType()
    if column in INT64:
        return LongType()
    if column in INT32_LISTS | INT64_LISTS:
        return ArrayType(IntegerType() if column in INT32_LISTS else LongType())
    return ArrayType(StringType()) if column in STRING_LISTS else StringType()


LOGICAL_SCHEMA: Final = pa.schema([(column, _arrow_type(column)) for column in COLUMNS], metadata=METADATA)
ARROW_SCHEMA: Final = pa.schema([*LOGICAL_SCHEMA, *((column, pa.int64()) for column in CLAIMS)], metadata=METADATA)
SPARK_SCHEMA: Final = StructType(
    [
        *(StructField(column, _spark_type(column)) for column in COLUMNS),
        *(StructField(column, LongType()) for column in CLAIMS),
    ]
)
