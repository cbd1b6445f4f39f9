"""Corosync: three daemons, each on a host of its own on a bridge, and closed process groups through libcpg.

Not here:  the interface (system.py), the hosts (hosts.py), what its programs do (cpg_client.c).

Its programs are in C, compiled when they are needed: that is what Corosync's users have, and Python between the library
and a callback for each message would be measured instead of Corosync. They send and check the same messages as
program.py, and speak with us alike. Daemons run without encryption, and without the priority of real time that they
take by default: on two cores it starves their own programs, and costs Corosync two thirds of its throughput. Packets
may be as large as those of Covey's daemons on loopback: with the 1,500 bytes of an Ethernet, Corosync delivers half as
many messages of 1,000 bytes.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

from covey.lab.cluster import LiveError
from covey.lab.peers import hosts
from covey.lab.peers.audit import Audit
from covey.lab.peers.plan import PeerCase
from covey.lab.peers.servers import ServerProcess, missing, program_path, version_of
from covey.lab.peers.system import QUIET_S, RunningSystem
from covey.lab.peers.task import PeerTask

DAEMONS: Final = 3
SOURCE: Final = Path(__file__).with_name("cpg_client.c")
TO_COMPILE: Final = {"cc": "gcc"}
TO_LINK: Final = {"/usr/include/corosync/cpg.h": "libcpg-dev"}
FOUND_ALL: Final = f"Members[{DAEMONS}]"
PACKET_BYTES: Final = re.compile(r"Global data MTU changed to: (\d+)")
HEADERS_MAX: Final = 200

CONFIGURATION: Final = """\
totem {{
  version: 2
  cluster_name: bench
  transport: knet
  crypto_cipher: none
  crypto_hash: none
}}
nodelist {{
{nodes}}}
quorum {{
  provider: corosync_votequorum
}}
logging {{
  to_stderr: yes
  to_syslog: no
  to_logfile: no
}}
system {{
  state_dir: {state}
  sched_rr: no
}}
"""
NODE: Final = """\
  node {{
    ring0_addr: {address}
    nodeid: {number}
    name: n{number}
  }}
"""


class CorosyncSystem:
    has_servers = True
    is_agreed = True
    services = ("agreed",)

    def unavailable(self) -> str | None:
        return missing({"corosync": "corosync", **TO_COMPILE, **hosts.NEEDED}, files=TO_LINK) or hosts.unavailable()

    def version(self) -> str:
        return f"corosync {version_of(program_path('corosync') or 'corosync', '-v')}, three daemons, programs in C"

    @contextmanager
    def running(self, directory: Path, case: PeerCase) -> Iterator[RunningSystem]:
        del case
        client = compiled(directory)
        with hosts.bridged_hosts(DAEMONS) as words, ExitStack() as daemons:
            started = []
            for number in range(DAEMONS):
                started.append(_started(directory, number, words[number]))
                daemons.callback(started[-1].close)
            for daemon in started:
                daemon.wait_until(partial(serves, daemon))

            def command(task: PeerTask) -> list[str]:
                return [*words[task.number % DAEMONS], str(client), *arguments(task)]

            yield RunningSystem(lambda *_: [], tuple(daemon.pid for daemon in started), command)

    def sending(self, task: PeerTask) -> NoReturn:
        raise NotImplementedError(f"{task.name} is a program in C")

    def receiving(self, task: PeerTask, audit: Audit) -> NoReturn:
        raise NotImplementedError(f"{task.name} is a program in C, with an audit of its own instead of {audit}")


def serves(daemon: ServerProcess) -> bool:
    return is_complete(daemon.said())


def is_complete(log: str) -> bool:
    """This daemon has found the others, and that a packet holds as much as it may.

    >>> is_complete("Global data MTU changed to: 65481; Members[3]: 1 2 3"), is_complete("Members[3]: 1 2 3")
    (True, False)
    """
    largest = max(map(int, PACKET_BYTES.findall(log)), default=0)
    return FOUND_ALL in log and largest > hosts.PACKET_BYTES_MAX - HEADERS_MAX


def arguments(task: PeerTask) -> list[str]:
    """In the order in which cpg_client.c reads them."""
    numbers = (task.number, task.senders, task.receivers, task.size, task.seconds, task.rate, QUIET_S)
    return [task.role, task.name, *map(str, numbers)]


def configuration(state: Path) -> str:
    nodes = "".join(NODE.format(address=hosts.address_of(rank), number=rank + 1) for rank in range(DAEMONS))
    return CONFIGURATION.format(nodes=nodes, state=state)


def _started(directory: Path, number: int, words: list[str]) -> ServerProcess:
    state, file = directory / f"state{number}", directory / f"corosync{number}.conf"
    state.mkdir()
    file.write_text(configuration(state))
    command = [*words, program_path("corosync") or "corosync", "-f", "-c", str(file)]
    return ServerProcess(command, directory / f"corosync{number}.log")


def compiled(directory: Path) -> Path:
    made = directory / "cpg_client"
    done = subprocess.run(
        ["cc", "-O2", "-Wall", "-o", str(made), str(SOURCE), "-lcpg"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise LiveError(f"cc could not compile {SOURCE.name}: {done.stderr[-1_000:]}")
    return made


SYSTEM = CorosyncSystem()
