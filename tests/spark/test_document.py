"""What docs/analysis.md shows runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from covey.drivers.simulation.run import run_seed

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

PAGE = Path(__file__).parents[2] / "docs" / "analysis.md"


def test_the_program_of_the_page_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found
    monkeypatch.chdir(tmp_path)
    run_seed(5, trace=Path("demo/trace"))
    exec(compile(found[1], str(PAGE), "exec"), {})
    assert "S8" in capsys.readouterr().out
    assert list(tmp_path.glob("compacted/*.parquet"))
