"""Is a busy machine taken for a failure? And what does an idle daemon cost?

    python bench/busy_machine.py [SECONDS]

First an idle cluster of three for a while: CPU share and memory of each daemon. Then every core is kept busy by other
processes for SECONDS (60), with messages flowing: no view may change.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from covey.lab.cluster import LocalCluster

IDLE_S = 15.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def idle() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory, LocalCluster(Path(directory), 3) as cluster:
        cluster.start("a", "b", "c")
        cluster.wait_for_view("a", "b", "c")
        before = {child.name: cpu_s(child.pid) for child in cluster.living()}
        time.sleep(IDLE_S)
        share = {child.name: round((cpu_s(child.pid) - before[child.name]) / IDLE_S, 4) for child in cluster.living()}
        return {"idle_cpu_share": share, "idle_kb": {child.name: child.resident_kb() for child in cluster.living()}}


def busy(seconds: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory, LocalCluster(Path(directory), 3, load=20) as cluster:
        cluster.start("a", "b", "c")
        views = {view.view for view in cluster.wait_for_view("a", "b", "c")}
        loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
        try:
            time.sleep(seconds)
            cluster.wait_for_traffic(20)
            after = {child.view.view for child in cluster.living() if child.view}
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
        return {"busy_s": seconds, "view_changed": after != views}


if __name__ == "__main__":
    result = idle() | busy(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
    print(json.dumps(result))
    heavy = max(result["idle_cpu_share"].values()) >= 0.01 or max(result["idle_kb"].values()) >= 60_000
    sys.exit(1 if result["view_changed"] or heavy else 0)
