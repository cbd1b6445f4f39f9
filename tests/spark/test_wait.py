"""`covey trace check --wait` gets ready until its input ends, and then goes on."""

from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession

from covey.cli.trace_wait import be_ready

pytestmark = pytest.mark.spark


def test_it_stops_getting_ready_when_the_input_ends(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"whatever is said before the end does not matter")
    os.close(writer)
    with os.fdopen(reader) as said:
        monkeypatch.setattr("sys.stdin", said)
        be_ready("local[2]", "3g")
        assert said.read() == ""
    assert spark.range(3).count() == 3
