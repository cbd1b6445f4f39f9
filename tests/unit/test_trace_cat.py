"""A trace as text: the columns of the schema, all of them, by name and in order; and the command that prints them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from typer.testing import CliRunner

from covey.cli.trace import app
from covey.trace.cat import from_json_line, read_trace, select, to_json_line
from covey.trace.errors import TraceError
from covey.trace.record import ADDED, COLUMNS, LEVELS, Row
from covey.trace.segments import SegmentWriter


def make_row(index: int, **columns: Any) -> Row:
    row = Row(run="r", level="C", process="p.1", name="p", daemon="d.1", index=index, time_ns=7, event="view")
    return msgspec.structs.replace(row, **columns)


def write_segments(directory: Path, rows: list[Row]) -> None:
    with SegmentWriter(directory, "p") as writer:
        for row in rows:
            writer.append(row)


def write_lines(path: Path, rows: list[Row]) -> None:
    path.write_text("".join(to_json_line(row) + "\n" for row in rows), encoding="utf-8")


# --------------------------------------------------------------------------------------------------------------- lines


def test_a_line_has_every_column_in_order() -> None:
    line = to_json_line(make_row(3, members=("a", "ü"), view_rank=(1, 2), size=0, digest=-(2**63)))
    assert "\n" not in line
    columns = json.loads(line)
    assert tuple(columns) == COLUMNS
    shown = {name: columns[name] for name in ("schema", "members", "view_rank", "size", "digest", "groups", "group")}
    assert shown == {
        "schema": 1,
        "members": ["a", "ü"],
        "view_rank": [1, 2],
        "size": 0,
        "digest": -(2**63),
        "groups": [],
        "group": None,
    }


def test_a_line_comes_back_as_its_row() -> None:
    row = make_row(0, message="a#1", views=("", "v"), detail="two\nlines", order_stamp=2**62)
    assert from_json_line(to_json_line(row)) == row


def test_columns_of_a_later_version_are_passed_over() -> None:
    line = to_json_line(make_row(0)).replace("{", '{"new_column":1,', 1)
    assert from_json_line(line) == make_row(0)


@pytest.mark.parametrize("line", ["", "{", "[]", "{}", '{"schema":1}', to_json_line(make_row(0)).replace('"p"', "5")])
def test_a_line_that_is_no_row_is_refused(line: str) -> None:
    with pytest.raises(TraceError, match="not a row of a trace"):
        from_json_line(line)


def test_a_line_of_another_schema_is_refused() -> None:
    line = to_json_line(make_row(0)).replace('"schema":1', '"schema":2')
    with pytest.raises(TraceError, match="a row of schema 2: read it with the version that wrote it"):
        from_json_line(line)


@pytest.mark.parametrize("column", [one for one in COLUMNS if one not in ADDED])
def test_a_line_that_lacks_a_column_is_refused(column: str) -> None:
    columns = json.loads(to_json_line(make_row(0)))
    del columns[column]
    with pytest.raises(TraceError, match=f"it lacks the column {column}\\).*covey trace cat"):
        from_json_line(json.dumps(columns))


@pytest.mark.parametrize("column", sorted(ADDED))
def test_a_line_of_an_earlier_version_may_lack_what_was_added(column: str) -> None:
    columns = json.loads(to_json_line(make_row(0)))
    del columns[column]
    assert getattr(from_json_line(json.dumps(columns)), column) == ()


@pytest.mark.parametrize(("column", "value"), [("level", "X"), ("event", "delivr"), ("service", "fast")])
def test_a_line_with_an_unknown_value_is_refused(column: str, value: str) -> None:
    with pytest.raises(TraceError, match=f"{column} '{value}' is none of .*: correct the line"):
        from_json_line(to_json_line(make_row(0, **{column: value})))


@pytest.mark.parametrize(("column", "value"), [("digest", 2**64), ("order_site", 2**31), ("index", -(2**63) - 1)])
def test_a_number_out_of_range_is_refused(column: str, value: int) -> None:
    columns = json.loads(to_json_line(make_row(0))) | {column: value}
    with pytest.raises(TraceError, match=f"not a row of a trace .*{column}"):
        from_json_line(json.dumps(columns))


# --------------------------------------------------------------------------------------------------------- directories


def test_segments_are_read_before_text(tmp_path: Path) -> None:
    write_segments(tmp_path, [make_row(0), make_row(1)])
    write_lines(tmp_path / "b.ndjson", [make_row(3)])
    write_lines(tmp_path / "a.ndjson", [make_row(2)])
    assert list(read_trace(tmp_path)) == [make_row(index) for index in range(4)]


@pytest.mark.parametrize("damage", ["{\n", "\xff", "\n"])
def test_a_damaged_line_is_named(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(to_json_line(make_row(0)).encode() + b"\n" + damage.encode("latin-1"))
    with pytest.raises(TraceError, match=r"a\.ndjson, line 2: not a row"):
        list(read_trace(tmp_path))


def test_a_directory_without_a_trace_is_no_empty_trace(tmp_path: Path) -> None:
    (tmp_path / "readme.txt").write_text("nothing here")
    with pytest.raises(TraceError, match="holds no trace"):
        list(read_trace(tmp_path))


@pytest.mark.parametrize(
    ("level", "run", "chosen"),
    [(None, None, [0, 1, 2]), ("C", None, [0, 2]), (None, "s", [1, 2]), ("C", "s", [2]), ("V", None, [])],
)
def test_rows_are_chosen_by_level_and_run(level: str | None, run: str | None, chosen: list[int]) -> None:
    rows = [make_row(0), make_row(1, level="S", run="s"), make_row(2, run="s")]
    assert [row.index for row in select(rows, level, run)] == chosen


# -------------------------------------------------------------------------------------------------------- command line


class Output(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


def run_cat(*arguments: str) -> Output:
    result = CliRunner().invoke(app, ["cat", *arguments])
    return Output(result.exit_code, result.stdout, result.stderr)


def test_cat_prints_one_row_a_line(tmp_path: Path) -> None:
    rows = [make_row(0, detail="ü"), make_row(1)]
    write_segments(tmp_path, rows)
    result = run_cat(str(tmp_path))
    assert result.exit_code == 0
    assert result.stdout == "".join(to_json_line(row) + "\n" for row in rows)


@pytest.mark.parametrize("level", LEVELS)
def test_cat_prints_the_level_and_run_asked_for(tmp_path: Path, level: str) -> None:
    rows = [make_row(0, level=each, run=run) for each in LEVELS for run in ("1", "2")]
    write_segments(tmp_path, rows)
    result = run_cat(str(tmp_path), "--level", level, "--run", "2")
    assert result.stdout == to_json_line(make_row(0, level=level, run="2")) + "\n"


def test_cat_refuses_a_run_that_is_not_there_and_names_those_that_are(tmp_path: Path) -> None:
    write_segments(tmp_path, [make_row(0, run=run) for run in ("1", "2")])
    result = run_cat(str(tmp_path), "--run", "nope")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{tmp_path} has no run 'nope': it has 1 2." in result.stderr


def test_cat_fails_with_a_remedy(tmp_path: Path) -> None:
    for directory, remedy in ((tmp_path, "name the directory"), (tmp_path / "absent", "name a directory")):
        result = run_cat(str(directory))
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"covey trace cat: {directory}" in result.stderr
        assert remedy in result.stderr


def test_cat_refuses_a_level_that_is_none(tmp_path: Path) -> None:
    result = run_cat(str(tmp_path), "--level", "X")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--level" in result.stderr


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    write_segments(tmp_path, [make_row(index, detail="x" * 100) for index in range(5000)])
    command = [sys.executable, "-c", "from covey.cli.trace import app; app()", "cat", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["index"] == 0
        process.stdout.close()  # Far more is to come than a pipe holds.
        assert process.stderr.read() == b""
        assert process.wait() == 0
