"""The trace store: what goes in comes out, and a file that cannot be trusted is named, with the remedy."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from covey.analysis import read_trace
from covey.analysis.judging import Judgement, LevelVerdict, TracedGap
from covey.analysis.reading import of_run
from covey.analysis.schema import ARROW_SCHEMA, LOGICAL_SCHEMA, SCHEMA_KEY
from covey.analysis.store import compact, write_parquet
from covey.analysis.tables.lives import gaps_in
from covey.analysis.trace_file import TraceFile
from covey.cli import trace_check
from covey.cli.main import app
from covey.drivers.simulation.options import Asked
from covey.trace.cat import to_json_line
from covey.trace.errors import TraceError
from covey.trace.record import COLUMNS, Row
from covey.trace.segments import SegmentWriter
from tests.unit.checkers.clients.ideal import IdealClients

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(2_400)]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return IdealClients(5, daemons=2, steps=20).world.rows


def as_rows(spark: SparkSession, directory: Path) -> set[str]:
    found = [row.asDict() for row in read_trace(spark, directory).collect()]
    return {to_json_line(msgspec.convert(row, Row)) for row in found}


def test_segments_ndjson_and_parquet_give_the_same_rows(spark: SparkSession, rows: list[Row], tmp_path: Path) -> None:
    expected = {to_json_line(row) for row in rows}
    with SegmentWriter(tmp_path / "segments" / "below", "stem") as writer:
        for row in rows:
            writer.append(row)
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.ndjson").write_text("".join(to_json_line(row) + "\n" for row in rows))
    (tmp_path / "parquet").mkdir()
    write_parquet(rows, tmp_path / "parquet" / "a.parquet")
    compact(read_trace(spark, tmp_path / "parquet"), tmp_path / "compact", files=2)
    for form in ("segments", "text", "parquet", "compact"):
        assert as_rows(spark, tmp_path / form) == expected, form


def test_a_file_in_the_making_is_passed_over(spark: SparkSession, rows: list[Row], tmp_path: Path) -> None:
    write_parquet(rows, tmp_path / "a.parquet")
    (tmp_path / ".b.parquet.inprogress").write_bytes(b"half a file")
    assert read_trace(spark, tmp_path).count() == len(rows)


def test_views_and_ends_stand_apart_from_messages(rows: list[Row], tmp_path: Path) -> None:
    """Who looks for the few rows between the many passes over whole row groups."""
    write_parquet(rows, tmp_path / "a.parquet")
    with pq.ParquetFile(tmp_path / "a.parquet") as file:
        groups = [file.read_row_group(number, ["level", "event"]).to_pylist() for number in range(file.num_row_groups)]
    of_daemons = {("S", "send"), ("S", "deliver")}
    for group in groups:
        kinds = {(row["level"], row["event"]) for row in group}
        assert len(kinds) == 1 or not kinds & of_daemons
    assert {(row["level"], row["event"]) for group in groups for row in group} > of_daemons


def test_a_row_without_an_event_is_kept(rows: list[Row], tmp_path: Path) -> None:
    write_parquet(rows, tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet", columns=LOGICAL_SCHEMA.names)
    nameless = table.set_column(table.schema.get_field_index("event"), "event", pa.nulls(len(rows), pa.string()))
    with TraceFile(tmp_path / "b.parquet") as file:
        file.add(nameless)
    assert pq.read_metadata(tmp_path / "b.parquet").num_rows == len(rows)


def refused(spark: SparkSession, directory: Path) -> str:
    with pytest.raises(TraceError) as error:
        read_trace(spark, directory)
    return str(error.value)


def test_a_torn_file_is_named(spark: SparkSession, rows: list[Row], tmp_path: Path) -> None:
    write_parquet(rows, tmp_path / "a.parquet")
    write_parquet(rows, tmp_path / "b.parquet")
    torn = (tmp_path / "b.parquet").read_bytes()[:-100]
    (tmp_path / "b.parquet").write_bytes(torn)
    said = refused(spark, tmp_path)
    assert "b.parquet is torn" in said
    assert "copy it again" in said


def test_missing_columns_are_named(spark: SparkSession, rows: list[Row], tmp_path: Path) -> None:
    write_parquet(rows, tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet").drop_columns(["views", "digest"])
    pq.write_table(table, tmp_path / "a.parquet")
    assert "a.parquet lacks the columns views, digest: convert it again" in refused(spark, tmp_path)


def test_an_unknown_schema_number_is_named(spark: SparkSession, rows: list[Row], tmp_path: Path) -> None:
    write_parquet(rows, tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet").cast(ARROW_SCHEMA.with_metadata({SCHEMA_KEY: b"7"}))
    pq.write_table(table, tmp_path / "a.parquet")
    said = refused(spark, tmp_path)
    assert "a.parquet has trace schema 7" in said
    assert "the version that wrote it" in said


@pytest.mark.parametrize("column", ["run", "process"])
def test_a_row_that_belongs_to_nobody_is_named(
    spark: SparkSession, rows: list[Row], tmp_path: Path, column: str
) -> None:
    write_parquet(rows, tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    values = pa.array([None, *table[column].to_pylist()[1:]])
    table = table.set_column(table.schema.get_field_index(column), table.schema.field(column), values)
    pq.write_table(table, tmp_path / "a.parquet")
    assert f"a.parquet has a row without {column}: convert it again" in refused(spark, tmp_path)


def test_two_forms_in_one_directory_would_count_twice(spark: SparkSession, rows: list[Row], tmp_path: Path) -> None:
    write_parquet(rows, tmp_path / "a.parquet")
    (tmp_path / "a.ndjson").write_text(to_json_line(rows[0]) + "\n")
    assert "would count twice" in refused(spark, tmp_path)


def test_a_directory_without_a_trace_is_no_good_trace(spark: SparkSession, tmp_path: Path) -> None:
    assert "holds no trace" in refused(spark, tmp_path)


def test_missing_rows_are_noticed(rows: list[Row], spark: SparkSession, tmp_path: Path) -> None:
    lost = next(row for row in rows if row.event == "deliver")
    told = msgspec.structs.replace(rows[0], process="z:1", index=0, event="gap", detail="3 rows lost")
    write_parquet([told, *(row for row in rows if row is not lost)], tmp_path / "a.parquet")
    found = {row["process"]: row["detail"] for row in gaps_in(read_trace(spark, tmp_path)).collect()}
    assert found == {lost.process: f"row {lost.index} is missing", "z:1": "3 rows lost"}


def test_a_missing_row_is_noticed_also_where_another_one_is_there_twice(
    rows: list[Row], spark: SparkSession, tmp_path: Path
) -> None:
    process = next(row.process for row in rows if row.event == "deliver")
    mine = [row for row in rows if row.process == process]
    others = [row for row in rows if row.process != process]
    # Sums and sums of squares are what they were.
    kept = [row for row in mine if row.index not in (1, 5, 6)] + [row for row in mine if row.index in (2, 3, 7)]
    write_parquet([*kept, *others], tmp_path / "a.parquet")
    (found,) = gaps_in(read_trace(spark, tmp_path)).collect()
    assert (found["process"], found["detail"]) == (
        process,
        "3 rows are missing, the first is row 1, 3 rows are there twice, the first is row 2",
    )


def test_missing_rows_never_pass_as_no_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = Judgement(gaps=[TracedGap("demo", "S", "a:1", "3 rows lost")])
    monkeypatch.setattr(trace_check, "_judge", lambda *_: (judged, None))
    for options in ([], ["--json"]):
        found = CliRunner().invoke(app, ["trace", "check", "anywhere", *options])
        assert found.exit_code == 2
        assert "3 rows lost" in found.output
    assert "proves nothing" in CliRunner().invoke(app, ["trace", "check", "anywhere"]).output


def test_what_judges_nothing_never_passes_as_no_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = Judgement(verdicts=[LevelVerdict("S1", "demo", "S", rows_checked=0, violations=0)])
    monkeypatch.setattr(trace_check, "_judge", lambda *_: (judged, None))
    for options in ([], ["--json"]):
        found = CliRunner().invoke(app, ["trace", "check", "anywhere", *options])
        assert (found.exit_code, found.stdout) == (2, "")
        assert "no guarantee was put to the test" in found.stderr


def test_an_unknown_run_is_named_with_those_there_are(spark: SparkSession, rows: list[Row], tmp_path: Path) -> None:
    others = [msgspec.structs.replace(rows[0], run=f"r{number}") for number in range(9)]
    write_parquet(others, tmp_path / "a.parquet")
    assert of_run(read_trace(spark, tmp_path), "r7").count() == 1
    found = CliRunner().invoke(app, ["trace", "check", str(tmp_path), "--run", "nope"])
    assert (found.exit_code, found.stdout) == (2, "")
    assert "the trace has no run nope" in found.stderr
    assert "(r0, r1, r2, r3, r4 and more)" in found.stderr


@pytest.mark.parametrize("column", ["index", "service"])
def test_a_damaged_page_is_no_violation(spark: SparkSession, rows: list[Row], tmp_path: Path, column: str) -> None:
    """The end of the file, which says what is in it, is whole: only who reads this column notices."""
    write_parquet(rows, tmp_path / "a.parquet")
    group = pq.read_metadata(tmp_path / "a.parquet").row_group(0)
    chunk = next(one for at in range(group.num_columns) if (one := group.column(at)).path_in_schema == column)
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    first = chunk.dictionary_page_offset or chunk.data_page_offset
    data[first : first + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    (tmp_path / "a.parquet").write_bytes(data)
    found = CliRunner().invoke(app, ["trace", "check", str(tmp_path)])
    assert found.exit_code == 2
    assert f"covey trace check: {tmp_path / 'a.parquet'} is " in found.stderr
    assert "copy it" in found.stderr


def test_a_bad_trace_at_the_command_line(
    judgement: Judgement,
    small_runs: dict[str, list[Row]],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    twice = next(one for one in judgement.violations if one.run in small_runs and one.detail.endswith(" twice"))
    mine = Judgement(
        verdicts=[replace(one, run="seed-5") for one in judgement.verdicts if one.run == twice.run],
        violations=[replace(one, run="seed-5") for one in judgement.violations if one.run == twice.run],
    )
    command = Asked(clients=4).command(5)
    rows = [
        msgspec.structs.replace(row, run="seed-5", detail=command if row.event == "recover" else row.detail)
        for row in small_runs[twice.run]
    ]
    write_parquet(rows, tmp_path / "a.parquet")
    monkeypatch.setattr(trace_check, "_judge", lambda *_: (mine, read_trace(spark, tmp_path)))
    found = CliRunner().invoke(app, ["trace", "check", str(tmp_path)])
    assert found.exit_code == 1
    assert f"{twice.process} delivered {twice.message} twice" in found.output
    for proof in twice.evidence:
        assert f"{proof.process} row {proof.index}: deliver, message {twice.message}" in found.output
    assert "To see run seed-5 again: covey sim run --seed 5 --clients 4\n" in found.output
    printed = CliRunner().invoke(app, ["trace", "check", str(tmp_path), "--json"]).stdout
    told = [one for line in printed.splitlines() for one in json.loads(line)["first"] if one["detail"] == twice.detail]
    assert told[0]["replay"] == command
    assert [(row["process"], row["index"]) for row in told[0]["rows"]] == [
        (proof.process, proof.index) for proof in twice.evidence
    ]
    assert {row["message"] for row in told[0]["rows"]} == {twice.message}
    assert all(tuple(row) == COLUMNS for row in told[0]["rows"])
