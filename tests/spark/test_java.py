"""Where there is no Java, the one that comes with the wheel starts as Spark's launcher would start it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from covey.analysis.session import JAVA_OLDEST, ensure_java, java_version, major_version

pytestmark = pytest.mark.spark


def test_java_versions_are_read() -> None:
    assert major_version('openjdk version "21.0.2" 2024-01-16') == 21
    assert major_version("no Java here") == 0
    assert ensure_java()


def test_the_java_of_the_wheel_is_used_where_there_is_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", "")
    home = ensure_java()
    assert home == os.environ["JAVA_HOME"]
    java = Path(home, "bin", "java")
    assert java_version(java) >= JAVA_OLDEST
    # The wheel lacks this module, and Spark always asks for it.
    subprocess.run([java, "--add-modules=jdk.incubator.vector", "-version"], check=True, capture_output=True)


def test_an_old_java_home_does_not_hide_a_good_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, good = tmp_path / "old" / "bin" / "java", tmp_path / "good" / "java"
    for path, version in ((old, "1.8.0_202"), (good, "21.0.2")):
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(good.parent))
    monkeypatch.setenv("JAVA_HOME", str(old.parent.parent))
    assert ensure_java() == "PATH"
    assert "JAVA_HOME" not in os.environ
