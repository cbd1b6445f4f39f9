"""The measurement of throughput, in short runs with real processes: batches, and one message at a time."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from covey.cli.main import app

pytestmark = [pytest.mark.live]


@pytest.mark.parametrize("how", [[], ["--one-by-one"]])
def test_what_is_sent_arrives(how: list[str]) -> None:
    ran = CliRunner().invoke(app, ["bench", "throughput", "--size", "100", "--seconds", "0.1", "--json", *how])
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["messages_per_s"] > 0
