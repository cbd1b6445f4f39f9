"""Segment files: every row comes back, whatever kills the writer, and damage is reported and never read as rows."""

from __future__ import annotations

import errno
import logging
import os
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.trace import side_table
from covey.trace.errors import TraceError
from covey.trace.gaps import RETRY_AFTER_NS
from covey.trace.layout import HEADER, NAME_COLUMNS, NULLABLE_COLUMNS, RECORD
from covey.trace.reading import read_rows, read_whole
from covey.trace.record import COLUMNS, Row
from covey.trace.segments import SegmentWriter

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=6)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
MESSAGE = TEXT | st.builds("{}#{}".format, TEXT, st.integers(-1, 10**20)) | st.sampled_from(["#", "a#01", "a#٣", "7"])

ROWS = st.builds(
    Row,
    run=TEXT,
    level=st.sampled_from("SCV"),
    process=TEXT,
    name=TEXT,
    daemon=TEXT,
    index=INT64,
    step=st.none() | INT64,
    time_ns=INT64,
    event=TEXT,
    group=st.none() | TEXT,
    groups=TEXTS,
    view=st.none() | TEXT,
    views=TEXTS,
    view_new=st.none() | TEXT,
    view_rank=st.lists(INT64, max_size=3).map(tuple),
    members=TEXTS,
    transitional=TEXTS,
    cause=st.none() | TEXT,
    message=st.none() | MESSAGE,
    count=st.none() | INT32,
    sender=st.none() | TEXT,
    session_seq=st.none() | INT64,
    service=st.none() | TEXT,
    order_view=st.none() | TEXT,
    order_stamp=st.none() | INT64,
    order_site=st.none() | INT32,
    order_index=st.none() | INT32,
    size=st.none() | INT32,
    digest=st.none() | INT64,
    item=st.none() | TEXT,
    obsoletes=st.lists(MESSAGE, max_size=3).map(tuple),
    by=st.none() | MESSAGE,
    variant=st.none() | TEXT,
    detail=st.none() | TEXT,
)


def make_row(index: int, **columns: Any) -> Row:
    row = Row(
        run="seed-1",
        level="S",
        process="alpha.1",
        name="alpha",
        daemon="alpha.1",
        index=index,
        time_ns=index * RETRY_AFTER_NS,
        event="deliver",
        message=f"alpha.1#{index}",
    )
    return msgspec.structs.replace(row, **columns)


def write(directory: Path, rows: list[Row], stem: str = "alpha") -> None:
    with SegmentWriter(directory, stem, records_per_segment=3) as writer:
        for row in rows:
            writer.append(row)


# ---------------------------------------------------------------------------------------------------------- round trip


@given(st.lists(ROWS, max_size=8))
def test_every_row_comes_back_as_it_was(rows: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), rows)
        assert list(read_rows(Path(name))) == rows


def test_a_record_has_a_place_for_every_column() -> None:
    places = (*NAME_COLUMNS, *NULLABLE_COLUMNS, "schema", "index", "time_ns", "message", "by")
    assert sorted(places) == sorted(COLUMNS)


def test_no_value_is_neither_zero_nor_empty(tmp_path: Path) -> None:
    rows = [make_row(0, message=None), make_row(0, message="", group="", detail="", by="", size=0, step=0)]
    write(tmp_path, rows)
    assert list(read_rows(tmp_path)) == rows


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    rows = [make_row(index, members=("b", "a"), detail=f"detail {index % 3}") for index in range(10)]
    for directory in ("one", "two"):
        write(tmp_path / directory, rows)
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two
    assert sorted(one) == [*(f"alpha.00000{number}.segment" for number in range(4)), "alpha.names"]


def test_a_closed_writer_leaves_no_unused_space(tmp_path: Path) -> None:
    write(tmp_path, [make_row(index) for index in range(4)])
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("*.segment"))]
    assert sizes == [HEADER.size + 3 * RECORD.size, HEADER.size + RECORD.size]


def test_stems_are_read_by_name_and_each_in_order(tmp_path: Path) -> None:
    for stem in ("beta", "alpha.1", "alpha"):
        write(tmp_path, [make_row(index, name=stem) for index in range(4)], stem)
    found = [(row.name, row.index) for row in read_rows(tmp_path)]
    assert found == [(stem, index) for stem in ("alpha", "alpha.1", "beta") for index in range(4)]


def test_a_writer_without_rows_leaves_a_trace_without_rows(tmp_path: Path) -> None:
    write(tmp_path / "made" / "on demand", [])
    assert list(read_rows(tmp_path / "made" / "on demand")) == []


def test_names_that_were_forgotten_are_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_table, "NAMES_KNOWN_MAX", 40)
    rows = [make_row(index, detail=f"detail {index}") for index in range(100)]
    write(tmp_path, rows)
    assert list(read_rows(tmp_path)) == rows
    assert (tmp_path / "alpha.names").read_text().splitlines().count('"seed-1"') > 1


def test_a_trace_is_read_while_it_is_written(tmp_path: Path) -> None:
    with SegmentWriter(tmp_path, "alpha", records_per_segment=2) as writer:
        for index in range(3):
            writer.append(make_row(index, detail=f"detail {index}"))
        reader = read_rows(tmp_path)
        first = next(reader)
        writer.append(make_row(3, detail="a name the reader has not seen"))
        assert [row.index for row in (first, *reader)] == [0, 1, 2, 3]


# --------------------------------------------------------------------------------------------------------------- kills


def start_writer(directory: Path, after_each_row: str, rows: str) -> subprocess.Popen[str]:
    """A process that appends rows, each with a name of its own so that the side table grows as well."""
    program = f"""
import itertools, os, signal
from pathlib import Path
from covey.trace.record import Row
from covey.trace.segments import SegmentWriter
writer = SegmentWriter(Path({str(directory)!r}), "alpha", records_per_segment=7)
for index in {rows}:
    writer.append(Row(run="r", level="S", process="p", name="n", daemon="p", index=index, time_ns=0, event="state",
                      detail=f"detail {{index}}"))
    {after_each_row}
os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)


def test_a_killed_writer_loses_no_row(tmp_path: Path) -> None:
    with start_writer(tmp_path, after_each_row="pass", rows="range(1000)") as process:
        assert process.wait() == -signal.SIGKILL
    rows = list(read_rows(tmp_path))
    assert [row.index for row in rows] == list(range(1000))
    assert {row.detail for row in rows} == {f"detail {index}" for index in range(1000)}


@pytest.mark.parametrize("rows_seen", [1, 50, 500])
def test_a_writer_killed_at_any_moment_leaves_whole_rows(tmp_path: Path, rows_seen: int) -> None:
    with start_writer(tmp_path, after_each_row="print(flush=True)", rows="itertools.count()") as process:
        assert process.stdout is not None
        for _ in range(rows_seen):
            process.stdout.readline()
        process.kill()
    rows = list(read_rows(tmp_path))
    assert len(rows) >= rows_seen
    assert [(row.index, row.detail) for row in rows] == [(index, f"detail {index}") for index in range(len(rows))]


# ------------------------------------------------------------------------------------------------------------ full disk


class Disk:
    """A disk that can be full: allocation fails, and writing fails after a part."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        self.tries = 0
        self._allocate, self._write = os.posix_fallocate, os.pwrite
        monkeypatch.setattr(os, "posix_fallocate", self.allocate)
        monkeypatch.setattr(os, "pwrite", self.write)

    def allocate(self, file: int, offset: int, length: int) -> None:
        self.tries += 1
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._allocate(file, offset, length)

    def write(self, file: int, data: bytes, offset: int) -> int:
        if not self.full:
            return self._write(file, data, offset)
        if len(data) == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._write(file, data[: len(data) // 2], offset)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def history(directory: Path) -> list[tuple[str, int, str, str | None]]:
    return [(row.process, row.index, row.event, row.detail) for row in read_rows(directory)]


@pytest.mark.parametrize("full_from", [0, 1, 3])  # The first segment, the side table, the second segment.
def test_rows_lost_to_a_full_disk_are_told_by_a_gap_row(tmp_path: Path, disk: Disk, full_from: int) -> None:
    with SegmentWriter(tmp_path, "alpha", records_per_segment=3) as writer:
        for index in range(8):
            disk.full = full_from <= index < 6
            writer.append(make_row(index, detail=f"detail {index}"))
    told = [("alpha.1", index, "deliver", f"detail {index}") for index in range(8)]
    told[full_from:6] = [("alpha.1", full_from, "gap", f"{6 - full_from} rows lost")]
    assert history(tmp_path) == told
    assert not list(tmp_path.glob("*.partial"))


def test_a_gap_row_carries_the_history_it_belongs_to(tmp_path: Path, disk: Disk) -> None:
    with SegmentWriter(tmp_path, "alpha") as writer:
        disk.full = True
        writer.append(make_row(4, step=9, level="V", run="other"))
        disk.full = False
    expected = make_row(4, step=9, level="V", run="other", event="gap", message=None, detail="1 rows lost")
    assert list(read_rows(tmp_path)) == [expected]


def test_each_history_has_its_own_gap(tmp_path: Path, disk: Disk) -> None:
    with SegmentWriter(tmp_path, "alpha") as writer:
        disk.full = True
        for index in range(2):
            writer.append(make_row(index, process="b"))
        writer.append(make_row(0, process="a"))
        disk.full = False
        writer.append(make_row(2, process="b"))
    gaps = [("b", 0, "gap", "2 rows lost"), ("a", 0, "gap", "1 rows lost")]
    assert history(tmp_path) == [*gaps, ("b", 2, "deliver", None)]


def test_a_full_disk_is_asked_again_only_after_a_while(tmp_path: Path, disk: Disk) -> None:
    with SegmentWriter(tmp_path, "alpha", records_per_segment=1) as writer:
        writer.append(make_row(0))
        disk.full, disk.tries = True, 0
        for index in range(1, 1000):
            writer.append(make_row(index, time_ns=RETRY_AFTER_NS + index))
        assert disk.tries == 1
        writer.append(make_row(1000, time_ns=3 * RETRY_AFTER_NS))
        writer.append(make_row(1001, time_ns=0))  # The clock was set back.
        assert disk.tries == 3
        disk.full = False
    assert history(tmp_path)[1:] == [("alpha.1", 1, "gap", "1001 rows lost")]


def test_a_disk_that_stays_full_costs_rows_and_one_warning_at_each_end(
    tmp_path: Path, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    with SegmentWriter(tmp_path, "alpha", records_per_segment=3) as writer:
        for index in range(9):
            disk.full = index >= 3
            writer.append(make_row(index))
    told = [("alpha.1", index, "deliver", None) for index in range(3)]
    assert history(tmp_path) == [*told, ("alpha.1", 3, "gap", "6 rows lost")]
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.WARNING]


def test_a_segment_whose_end_could_not_be_given_back_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, length: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "truncate", refuse)
    write(tmp_path, [make_row(0)])
    assert (tmp_path / "alpha.000000.segment").stat().st_size > HEADER.size + 3 * RECORD.size
    assert list(read_rows(tmp_path)) == [make_row(0)]


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_a_writer_killed_while_the_disk_is_full_has_left_a_mark(tmp_path: Path, disk: Disk, rows: int) -> None:
    writer = SegmentWriter(tmp_path, "alpha", records_per_segment=3)
    for index in range(rows + 5):
        disk.full = index >= rows
        writer.append(make_row(index, detail=f"detail {index}"))
    told = [("alpha.1", index, "deliver", f"detail {index}") for index in range(rows)]
    assert history(tmp_path) == [*told, ("alpha.1", rows, "gap", "5 rows lost")]
    with pytest.raises(TraceError, match=r"lacks rows of alpha\.1"):
        read_whole(tmp_path)
    writer.close()
    assert history(tmp_path) == [*told, ("alpha.1", rows, "gap", "5 rows lost")]


def test_a_mark_gives_way_to_the_gap_row(tmp_path: Path, disk: Disk) -> None:
    with SegmentWriter(tmp_path, "alpha", records_per_segment=3) as writer:
        for index in range(20):
            disk.full = index % 5 in (3, 4)
            writer.append(make_row(index, detail=f"detail {index}"))
        disk.full = False
        found = history(tmp_path)
    assert [(index, detail) for _, index, event, detail in found if event == "gap"] == [
        (index, "2 rows lost") for index in (3, 8, 13, 18)
    ]
    assert len(found) == 12 + 4


def test_a_stem_that_lost_every_row_is_told_by_name(tmp_path: Path, disk: Disk) -> None:
    write(tmp_path, [make_row(0)])
    with SegmentWriter(tmp_path, "beta") as writer:
        disk.full = True
        writer.append(make_row(0))
    with pytest.raises(TraceError, match="all 1 rows of beta are lost"):
        list(read_rows(tmp_path))


def test_who_cannot_record_at_all_says_so_at_the_start_and_leaves_nothing(tmp_path: Path, disk: Disk) -> None:
    disk.full = True
    with pytest.raises(TraceError, match="free some space"):
        SegmentWriter(tmp_path, "alpha")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real one, of a few pages."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"a disk cannot be mounted here: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_on_a_real_full_disk_no_row_is_lost_untold(small_disk: Path) -> None:
    (small_disk / "other").write_bytes(bytes(32_768))
    with SegmentWriter(small_disk, "alpha", records_per_segment=20) as writer:
        for index in range(1_000):
            writer.append(make_row(index, detail=f"detail {index}", time_ns=index))
    *rows, gap = read_rows(small_disk)
    assert [row.index for row in rows] == list(range(len(rows)))
    assert 20 <= len(rows) < 1_000
    assert (gap.event, gap.index, gap.detail) == ("gap", len(rows), f"{1_000 - len(rows)} rows lost")


def test_on_a_real_disk_without_room_a_writer_is_refused(small_disk: Path) -> None:
    (small_disk / "other").write_bytes(bytes(60_000))
    with pytest.raises(TraceError, match="No space left"):
        SegmentWriter(small_disk, "alpha")
    assert [path.name for path in small_disk.iterdir()] == ["other"]


# -------------------------------------------------------------------------------------------------- the caller's errors


@pytest.mark.parametrize(
    "columns", [{"size": 2**31}, {"step": 2**63}, {"digest": -(2**63) - 1}, {"detail": "\ud800"}, {"schema": 2}]
)
def test_a_row_that_does_not_fit_is_refused_and_spoils_nothing(tmp_path: Path, columns: dict[str, Any]) -> None:
    with SegmentWriter(tmp_path, "alpha") as writer:
        writer.append(make_row(0))
        with pytest.raises(TraceError, match="cannot be stored"):
            writer.append(make_row(1, **columns))
        writer.append(make_row(2, detail="after"))
    assert list(read_rows(tmp_path)) == [make_row(0), make_row(2, detail="after")]


def test_a_stem_has_one_writer_only(tmp_path: Path) -> None:
    write(tmp_path, [make_row(0)])
    with pytest.raises(TraceError, match=r"alpha\.names exists: give every writer a new name"):
        SegmentWriter(tmp_path, "alpha")
    assert list(read_rows(tmp_path)) == [make_row(0)]


@pytest.mark.parametrize("stem", ["", "a/b", "../a", "/"])
def test_a_stem_is_a_plain_name(tmp_path: Path, stem: str) -> None:
    with pytest.raises(TraceError, match="use a name without slashes"):
        SegmentWriter(tmp_path, stem)


def test_a_directory_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceError, match="choose a directory"):
        SegmentWriter(tmp_path / "file" / "trace", "alpha")


# -------------------------------------------------------------------------------------------------------- damaged files


def assert_refused(directory: Path, text: str, file: str = "alpha.000000.segment") -> None:
    with pytest.raises(TraceError) as raised:
        list(read_rows(directory))
    assert str(directory / file) in str(raised.value)
    assert text in str(raised.value)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    write(tmp_path, [make_row(index, detail=f"detail {index}") for index in range(5)])
    return tmp_path


@pytest.mark.parametrize("size", [0, HEADER.size - 1, HEADER.size, HEADER.size + 3 * RECORD.size - 1])
def test_a_segment_cut_short_is_refused(written: Path, size: int) -> None:
    os.truncate(written / "alpha.000000.segment", size)
    assert_refused(written, "cut short")


@pytest.mark.parametrize(
    ("offset", "text"),
    [(0, "is not a trace segment"), (8, "format 99, schema 1"), (12, "schema 99"), (16, "records of 99 bytes")],
)
def test_a_foreign_header_is_refused(written: Path, offset: int, text: str) -> None:
    path = written / "alpha.000000.segment"
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, offset, 99)
    path.write_bytes(data)
    assert_refused(written, text)


@pytest.mark.parametrize("segment", [0, 1])
def test_a_record_that_is_not_marked_before_others_is_refused(written: Path, segment: int) -> None:
    path = written / f"alpha.00000{segment}.segment"
    data = bytearray(path.read_bytes())
    data[HEADER.size] = 0
    path.write_bytes(data)
    assert_refused(written, "record 0 is not marked, but later ones are", path.name)


def test_a_last_record_that_is_not_marked_ends_the_last_segment_only(written: Path) -> None:
    for segment, last in ((1, 1), (0, 2)):
        path = written / f"alpha.00000{segment}.segment"
        data = bytearray(path.read_bytes())
        data[HEADER.size + last * RECORD.size] = 0
        path.write_bytes(data)
        if segment == 1:
            assert [row.index for row in read_rows(written)] == [0, 1, 2, 3]
    assert_refused(written, "record 2 is not marked")


def test_two_files_of_one_segment_are_refused(written: Path) -> None:
    (written / "alpha.0.segment").write_bytes((written / "alpha.000000.segment").read_bytes())
    with pytest.raises(TraceError, match="are the same segment"):
        list(read_rows(written))


def test_a_whole_trace_lacks_no_row(tmp_path: Path) -> None:
    write(tmp_path / "whole", [make_row(index) for index in range(4)])
    assert len(read_whole(tmp_path / "whole")) == 4
    write(tmp_path / "hole", [make_row(index) for index in (0, 1, 3)])
    write(tmp_path / "told", [make_row(0), make_row(1, event="gap")])
    for name in ("hole", "told"):
        with pytest.raises(TraceError, match=r"lacks rows of alpha\.1"):
            read_whole(tmp_path / name)
    write(tmp_path / "none", [])
    with pytest.raises(TraceError, match="holds no rows"):
        read_whole(tmp_path / "none")


def test_a_side_table_cut_short_is_refused(written: Path) -> None:
    table = written / "alpha.names"
    os.truncate(table, table.stat().st_size - 1)
    assert_refused(written, "does not fit its side table", "alpha.000001.segment")


def test_names_of_the_wrong_kind_are_refused(written: Path) -> None:
    table = written / "alpha.names"
    table.write_bytes(table.read_bytes().replace(b'"seed-1"', b'[1,2,"x"]'))
    assert_refused(written, "record 0 does not fit its side table")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"alice\nbob\n", "not a side table"),
        (side_table.TITLE + b"{\n", "is damaged"),
        (side_table.TITLE + b'"\xff"\n', "is damaged"),
    ],
)
def test_a_foreign_side_table_is_refused(written: Path, content: bytes, text: str) -> None:
    (written / "alpha.names").write_bytes(content)
    assert_refused(written, text, "alpha.names")


def test_a_missing_side_table_is_reported(written: Path) -> None:
    (written / "alpha.names").unlink()
    with pytest.raises(TraceError, match=r"lacks alpha\.names beside it"):
        list(read_rows(written))


def test_a_missing_segment_is_reported(written: Path) -> None:
    (written / "alpha.000000.segment").unlink()
    assert_refused(written, "is missing")


def test_a_segment_of_a_strange_name_is_reported(written: Path) -> None:
    (written / "notes.segment").write_text("")
    assert_refused(written, "is not named like a trace segment", "notes.segment")


def test_a_segment_in_the_making_is_passed_over(written: Path) -> None:
    (written / "alpha.000002.segment.partial").write_bytes(b"")
    assert [row.index for row in read_rows(written)] == list(range(5))


def test_names_without_a_segment_are_missing_rows(written: Path) -> None:
    write(written, [make_row(0)], "beta")
    (written / "beta.000000.segment").unlink()
    assert_refused(written, "the rows of beta are missing", "beta.names")


def test_names_that_are_empty_are_missing_rows(written: Path) -> None:
    write(written, [], "beta")
    for size in (5, 0):
        os.truncate(written / "beta.names", size)
        assert_refused(written, "the rows of beta are missing", "beta.names")
