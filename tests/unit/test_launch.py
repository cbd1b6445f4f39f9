"""How a daemon process is started: what it is told arrives, and what it cannot read is refused with what to do."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from covey.drivers.live import daemon
from covey.drivers.live.launch import DaemonOptions, command, from_arguments
from covey.lab.daemon import MODULE, LabOptions


def test_what_a_daemon_is_told_arrives() -> None:
    options = DaemonOptions(config="covey.toml", name="a", trace="dir", seed=7, json=True, control=True)
    *_, told = command(options)
    assert from_arguments([told], DaemonOptions) == options


def test_a_daemon_of_the_lab_is_told_more() -> None:
    options = LabOptions(config="covey.toml", name="a", load=1.5, bursts=True)
    *_, boot, told = command(options, MODULE)
    assert from_arguments([told], LabOptions) == options
    assert f"from {MODULE} import main" in boot
    with pytest.raises(msgspec.ValidationError, match="load"):
        from_arguments([told], DaemonOptions)


@pytest.mark.parametrize("arguments", [[], ["{}"], ["--help"], ['{"config":"x","name":"a","colour":1}'], ["{}", "{}"]])
def test_options_that_cannot_be_read_are_refused(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["daemon", *arguments])
    assert daemon.main() == 2
    assert "start it with `covey daemon NAME`" in capsys.readouterr().err


def test_a_missing_file_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    *_, told = command(DaemonOptions(config=str(tmp_path / "covey.toml"), name="a"))
    monkeypatch.setattr(sys, "argv", ["daemon", told])
    assert daemon.main() == 2
    assert "make one with `covey init`" in capsys.readouterr().err
