"""Time the checks on a large trace of daemons: Spark, and beside it DuckDB on the same questions.

    python bench/spark_checks.py DIR [--engine spark|duckdb] [--memory 6g] [--warm DIR]

Spark: `judge`, everything included but the start of the session: counting, gaps, screening, views, rest, verdicts.
With --warm the same session has judged another trace before: most of what Java compiles is compiled by then.
Where others use the machine too, the time that Java was on a core says more than the clock.
DuckDB: the conditions of checks/screen.py as SQL (integrity, duplicates, virtual synchrony, safe, agreed, fifo).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--engine", choices=["spark", "duckdb"], default="spark")
    parser.add_argument("--memory", default="6g")
    parser.add_argument("--warm", type=Path, help="a trace to judge first, untimed")
    asked = parser.parse_args()
    found = (
        with_spark(asked.directory, asked.memory, asked.warm)
        if asked.engine == "spark"
        else with_duckdb(asked.directory, asked.memory)
    )
    print(json.dumps({"engine": asked.engine, "load": os.getloadavg()[0]} | found))


def with_spark(directory: Path, memory: str, warm: Path | None) -> dict[str, object]:
    from covey.analysis import judge, read_trace, session

    spark = session("local[2]", partitions=16, memory=memory)
    if warm is not None:
        judge(read_trace(spark, warm))
    trace = read_trace(spark, directory)
    rows = trace.where("event = 'deliver'").count()
    before = java_usage().get("java_cpu_s", 0)
    started = time.perf_counter()
    steps: list[tuple[str, float]] = []
    judgement = judge(trace, progress=lambda what: steps.append((what, round(time.perf_counter() - started, 1))))
    seconds = time.perf_counter() - started
    violated = sorted({one.guarantee for one in judgement.verdicts if one.violations})
    tested = {one.guarantee: one.rows_checked for one in judgement.verdicts}
    return {
        "rows": rows,
        "warm": warm is not None,
        "seconds": round(seconds, 1),
        "rows_per_s": round(rows / seconds),
        "violated": violated,
        "gaps": len(judgement.gaps),
        "tested": tested,
        "steps": steps,
        "judging_cpu_s": java_usage().get("java_cpu_s", 0) - before,
    } | java_usage()


def java_usage() -> dict[str, int]:
    """The most memory that the Java process, our child, has had, and its time on a core, from its start on."""
    for one in Path("/proc").iterdir():
        try:
            status = (one / "status").read_text()
            if f"PPid:\t{os.getpid()}\n" in status and "Name:\tjava" in status:
                ticks = sum(int(part) for part in (one / "stat").read_text().rsplit(")", 1)[1].split()[11:13])
                memory = int(status.split("VmHWM:")[1].split()[0]) // 1024
                return {"java_mb": memory, "java_cpu_s": ticks // os.sysconf("SC_CLK_TCK")}
        except OSError:
            continue
    return {}


def with_duckdb(directory: Path, memory: str) -> dict[str, object]:
    import duckdb

    engine = duckdb.connect()
    engine.execute(f"set threads=2; set memory_limit='{memory.upper()}B'")
    engine.execute(f"create view trace as select * from read_parquet('{directory}/*.parquet')")
    (rows,) = engine.execute("select count(*) from trace where event = 'deliver'").fetchone() or (0,)
    started = time.perf_counter()
    stays = engine.execute(PER_STAY).fetchall()
    seconds = time.perf_counter() - started
    unequal = [row for row in stays if row[2]]
    return {
        "rows": rows,
        "seconds": round(seconds, 1),
        "rows_per_s": round(rows / seconds),
        "unequal_views": len(unequal),
        "own_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


PER_STAY = """
with messages as (
  select run, process, "index" as moment, event = 'send' as sent, view, sender, session_seq, service,
         struct_pack(stamp := order_stamp, site := order_site, place := order_index) as key,
         hash(message, digest, size, service, sender, session_seq, "count", order_view, order_stamp, order_site) as one,
         hash(order_site, order_stamp, order_view, "count", session_seq, sender, service, size, digest, message) as two,
         service in ('causal', 'agreed', 'safe') as agreed
  from trace where level = 'S' and event in ('send', 'deliver')
), ordered as (
  select *, max(case when agreed and not sent then key end) over before as top_agreed, max(key) over before as top_all,
         max(case when not sent and service <> 'reliable' then session_seq end) over session as top_seq
  from messages
  window before as (partition by run, process order by moment rows between unbounded preceding and 1 preceding),
         session as (partition by run, process, sender order by moment rows between unbounded preceding and 1 preceding)
), stays as (
  select run, process, view,
         bool_or(coalesce(case when sent then key <= top_all else key <= top_agreed or session_seq <= top_seq end,
                          false)) as wrong,
         count(*) filter (sent) as sent, bit_xor(one) filter (sent) as sent_one, bit_xor(two) filter (sent) as sent_two,
         count(*) filter (not sent) as got, bit_xor(one) filter (not sent) as got_one,
         bit_xor(two) filter (not sent) as got_two
  from ordered group by all
)
select run, view,
       bool_or(wrong) or min(got) <> max(got) or min(got_one) <> max(got_one) or min(got_two) <> max(got_two)
       or min(got) <> sum(sent) or min(got_one) <> bit_xor(sent_one) or min(got_two) <> bit_xor(sent_two) as unequal
from stays group by all
"""


if __name__ == "__main__":
    main()
