"""What docs/analysis.md shows runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from covey.drivers.simulation.run import run_seed

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(2_400)]

PAGE = Path(__file__).parents[2] / "docs" / "analysis.md"


def test_the_programs_of_the_page_run(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found
    monkeypatch.chdir(tmp_path)
    run_seed(5, trace=Path("demo/trace"))
    names: dict[str, Any] = {}
    for program in found:
        exec(compile(program, str(PAGE), "exec"), names)
    assert names["verdict"].rows_checked
    assert names["trace"].count() == names["read_trace"](spark, tmp_path / "compacted").count() > 0
