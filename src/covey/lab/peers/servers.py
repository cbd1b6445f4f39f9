"""Servers of other systems, as processes of ours: started in a session of their own, awaited, and always ended.

In:        a command, and how it can be seen that it serves.
Out:       its process number; LiveError with its last words if it does not serve in time.
Not here:  which servers a system has (systems/).
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from covey.lab.cluster import HOST, LiveError

WITHIN_S: Final = 20.0
LOOK_EVERY_S: Final = 0.01
PYTHON_EXTRA: Final = "pip install 'covey[bench]'"


class ServerProcess:
    """Whoever starts one closes it. A session of its own keeps it out of our share of the processors."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._log = log
        self._command = command
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_until(self, serves: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not serves():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise LiveError(f"{self._command[0]} does not serve: {self.said().strip()[-500:]}")
            time.sleep(LOOK_EVERY_S)

    def close(self) -> None:
        """At once: it holds nothing that anybody wants."""
        self._process.kill()
        self._process.wait()


@contextmanager
def serving(command: Sequence[str], log: Path, serves: Callable[[], bool]) -> Iterator[ServerProcess]:
    """A server, until the block ends; it serves when the block begins."""
    server = ServerProcess(command, log)
    try:
        server.wait_until(serves)
        yield server
    finally:
        server.close()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


# --- what there is on this machine


def program_path(name: str) -> str | None:
    """Servers are where the paths of most users do not lead."""
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"]))


def missing(programs: Mapping[str, str], modules: Sequence[str] = (), files: Mapping[str, str] = {}) -> str | None:
    """What is not installed, and the command that would; None if nothing is missing.

    `programs` and `files`: the Debian package of each. `modules`: what the extra `bench` brings.
    """
    no_program = {name: package for name, package in programs.items() if program_path(name) is None}
    no_program |= {name: package for name, package in files.items() if not Path(name).exists()}
    no_module = [name for name in modules if importlib.util.find_spec(name) is None]
    if not no_program and not no_module:
        return None
    steps = [f"apt-get install {' '.join(dict.fromkeys(no_program.values()))}"] if no_program else []
    steps += [PYTHON_EXTRA] if no_module else []
    return f"there is no {', '.join([*no_program, *no_module])}; install: {' && '.join(steps)}"


def version_of(*command: str) -> str:
    """The first number of the form 1.2 that it says of itself."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=WITHIN_S)
    words = (done.stdout + done.stderr).replace("=", " ").replace("'", " ").split()
    return next((word.strip("v,") for word in words if "." in word and word.strip("v,")[:1].isdigit()), "unknown")
