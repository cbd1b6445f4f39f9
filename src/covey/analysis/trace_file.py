"""One Parquet file of a trace in the making: what Spark asks for together stands together.

In:        tables with the logical columns, the rows of a process in its order.
Out:       a file that appears under its name when it is whole.
Not here:  where rows come from (store.py), what the columns beside the logical ones are (claims.py).

The deliveries of daemons, their sends, and all other rows have row groups of their own: who looks for views and ends,
which are few, passes over the rest without reading it.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .claims import CLAIMS, MESSAGES, NAMED, Claimant
from .schema import ARROW_SCHEMA

ROWS_A_GROUP: Final = 65_536
# Numbers that grow are stored as differences, which is read twice as fast as a dictionary of what hardly comes twice.
GROWING: Final = ("index", "step", "time_ns", "session_seq", "order_stamp", *CLAIMS)
UNIQUE: Final = ("message", "digest")
REST: Final = "rest"


class TraceFile:
    """To be closed by `with`; if that ends with an error, no file appears."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._partial = path.with_name(f".{path.name}.inprogress")
        self._writer = pq.ParquetWriter(
            self._partial,
            ARROW_SCHEMA,
            compression="zstd",
            use_dictionary=[name for name in ARROW_SCHEMA.names if name not in (*GROWING, *UNIQUE)],
            column_encoding=dict.fromkeys(GROWING, "DELTA_BINARY_PACKED"),
        )
        self._claimant = Claimant()
        self._waiting: dict[str, list[pa.Table]] = {event: [] for event in (*MESSAGES, REST)}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if error_type is None:
            self._flush(1)
        self._writer.close()
        if error_type is None:
            self._partial.rename(self._path)

    def add(self, rows: pa.Table) -> None:
        rows = self._with_claims(rows)
        for event, some in _parted(rows).items():
            self._waiting[event].append(some)
        self._flush(ROWS_A_GROUP)

    def _with_claims(self, rows: pa.Table) -> pa.Table:
        claims = self._claimant.claims(zip(*(rows[name].to_pylist() for name in NAMED), strict=True))
        columns = [pa.array(values, type=pa.int64()) for values in zip(*claims, strict=True)]
        for name, column in zip(CLAIMS, columns, strict=True):
            rows = rows.append_column(name, column)
        return rows

    def _flush(self, least: int) -> None:
        for tables in self._waiting.values():
            if sum(one.num_rows for one in tables) >= least:
                self._writer.write_table(pa.concat_tables(tables))
                tables.clear()


def _parted(rows: pa.Table) -> dict[str, pa.Table]:
    """Each row in one part: also one without a level or an event, which foreign files may have."""
    of_daemons = pc.equal(rows["level"], "S")
    masks = {event: pc.fill_null(pc.and_(of_daemons, pc.equal(rows["event"], event)), False) for event in MESSAGES}
    masks[REST] = pc.invert(pc.or_(*masks.values()))
    return {event: rows.filter(mask) for event, mask in masks.items()}
