"""The screen and the exact checks say the same of every run: what holds, what does not, and how often it was asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from covey.analysis import judge, judging, read_trace
from covey.analysis.store import write_parquet
from covey.analysis.tables.columns import RELIABLE
from covey.trace.record import SERVICES, Row
from tests.spark.corpus import corpus
from tests.unit.checkers.ideal import IdealRun, Sent

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

SEEDS = range(8)
DAMAGED_SEED = 2
DAMAGES = ("good", "lost end", "lost signal", "fewer members", "another digest", "moved delivery", "fifo too early")


class Lossless(IdealRun):
    """Nobody crashes, and all who part have delivered the same: what the screen is made for."""

    def crash(self) -> None:
        self.split()

    def what_a_part_delivers(self, batch: list[Sent], part: list[str]) -> list[Sent]:
        return batch

    def send_batch(self, component: list[str]) -> list[Sent]:
        batch = []
        for _ in range(self.random.randint(0, self.batch)):
            name, service = self.random.choice(component), self.random.choice(SERVICES[RELIABLE:])
            session = self.random.choice(["s1", "s2"])
            batch.append(Sent(self.trace.send(name, service, session), name, f"{session}@{name}", service))
        return batch


def several_runs() -> Iterator[Row]:
    for run, rows in corpus(range(DAMAGED_SEED, DAMAGED_SEED + 1)):
        if run.endswith(DAMAGES):
            yield from rows
    for seed in SEEDS:
        yield from Lossless(seed, daemons=2 + seed % 4, steps=6, batch=12).trace.rows


def test_the_screen_and_the_exact_checks_agree(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trace").mkdir()
    write_parquet(several_runs(), tmp_path / "trace" / "all.parquet")
    trace = read_trace(spark, tmp_path / "trace")
    exact = judge(trace)
    monkeypatch.setattr(judging, "ROWS_SCREENED", 0)
    screened = judge(trace, work=str(tmp_path / "work"))
    proven = {row["run"] for row in spark.read.parquet(str(tmp_path / "work" / "screen-proven")).collect()}
    broken = {one.run for one in exact.violations if one.guarantee in ("S6", "S7", "M3", "M4", "M5")}
    assert {f"seed {seed}" for seed in SEEDS} <= proven
    assert broken
    assert not proven & broken
    assert screened == exact
