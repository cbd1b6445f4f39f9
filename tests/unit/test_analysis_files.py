"""Which files the analysis takes for a trace, and which it refuses: without Spark, since none of it needs one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from covey.analysis.reading import parquet_files, rows_in
from covey.analysis.store import convert, write_parquet
from covey.trace.cat import to_json_line
from covey.trace.errors import TraceError
from covey.trace.record import LEVELS, SERVICES, Row
from covey.trace.segments import SegmentWriter


def make_row(index: int, **columns: object) -> Row:
    row = Row(run="r", level="S", process="p:1", name="p", daemon="p:1", index=index, time_ns=7, event="send")
    return msgspec.structs.replace(row, **columns)


def write_segments(directory: Path, rows: int) -> None:
    with SegmentWriter(directory, "p") as writer:
        for index in range(rows):
            writer.append(make_row(index))


def write_lines(directory: Path, rows: int) -> None:
    (directory / "a.ndjson").write_text("".join(to_json_line(make_row(index)) + "\n" for index in range(rows)))


def write_file(directory: Path, rows: int) -> None:
    write_parquet((make_row(index) for index in range(rows)), directory / "a.parquet")


FORMS: dict[str, Callable[[Path, int], None]] = {
    "Parquet files": write_file,
    "segments": write_segments,
    "NDJSON files": write_lines,
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_read(tmp_path: Path, form: str) -> None:
    FORMS[form](tmp_path, 3)
    assert rows_in(parquet_files(tmp_path)) == 3


@pytest.mark.parametrize("below", ["", "below"])
@pytest.mark.parametrize(("one", "other"), [(one, other) for one in FORMS for other in FORMS if one < other])
def test_two_forms_are_refused(tmp_path: Path, below: str, one: str, other: str) -> None:
    (tmp_path / below).mkdir(exist_ok=True)
    FORMS[one](tmp_path, 3)
    FORMS[other](tmp_path / below, 3)
    with pytest.raises(TraceError, match=f"(?s)(?=.*{one})(?=.*{other}).*would count twice, so keep one form"):
        parquet_files(tmp_path)


def test_two_forms_are_not_converted_either(tmp_path: Path) -> None:
    write_segments(tmp_path, 3)
    write_lines(tmp_path, 3)
    with pytest.raises(TraceError, match="would count twice"):
        convert(tmp_path, tmp_path / "a.parquet")


@pytest.mark.parametrize("form", FORMS)
def test_a_trace_without_rows_is_refused(tmp_path: Path, form: str) -> None:
    FORMS[form](tmp_path, 0)
    with pytest.raises(TraceError, match="holds no rows"):
        parquet_files(tmp_path)


def test_names_alone_are_no_trace(tmp_path: Path) -> None:
    write_segments(tmp_path, 3)
    for path in tmp_path.glob("*.segment"):
        path.unlink()
    with pytest.raises(TraceError, match="the rows of p are missing"):
        parquet_files(tmp_path)


@pytest.mark.parametrize(("column", "value"), [("level", "X"), ("event", "delivr"), ("service", "fast"), ("level", "")])
@pytest.mark.parametrize("everywhere", [True, False])
def test_a_value_that_no_check_knows_is_refused(tmp_path: Path, column: str, value: str, everywhere: bool) -> None:
    rows = [make_row(index, **({column: value} if everywhere or index == 2 else {})) for index in range(4)]
    write_parquet(rows, tmp_path / "a.parquet")
    with pytest.raises(TraceError, match=rf"a\.parquet has a row with {column} '{value}', which is none of"):
        parquet_files(tmp_path)


def test_every_level_and_service_is_known(tmp_path: Path) -> None:
    kinds = [(level, service) for level in LEVELS for service in (*SERVICES, None)]
    write_parquet(
        (make_row(index, level=level, service=service) for index, (level, service) in enumerate(kinds)),
        tmp_path / "a.parquet",
    )
    assert rows_in(parquet_files(tmp_path)) == len(kinds)
