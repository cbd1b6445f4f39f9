"""How measurements are shown: tables for people, one JSON object for programs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from covey.lab.failover import Failover
    from covey.lab.traffic.measure import TrafficPlan
    from covey.lab.traffic.slow import SlowMeasurement, SlowPlan

HOSTILE_COLUMNS = {
    "longest_step_ms": "longest step, ms",
    "bystander_longest_wait_ms": "bystander waited, ms",
    "views_lost": "views lost",
    "peak_memory_mb": "peak MB",
    "later_memory_mb": "later MB",
}


def show_failover(result: Failover, as_json: bool) -> None:
    """For people: the times, unless JSON has told them; and what was violated in any case."""
    from rich.table import Table

    from covey.lab.failover import TROUBLES

    from .tables import console

    screen, summary = console(), result.summary()
    table = Table("what", "trials", "median ms", "worst ms")
    for trouble, meaning in TROUBLES.items():
        if times := result.times[trouble]:
            table.add_row(
                meaning, str(len(times)), f"{summary[f'{trouble}_ms']:.0f}", f"{summary[f'{trouble}_worst_ms']:.0f}"
            )
    if not as_json:
        screen.print(table)
    for one in result.violations[:20]:
        screen.print(f"{one.guarantee} {one.process}: {one.detail}", markup=False, highlight=False)
    for directory in result.kept:
        screen.print(f"see: covey trace cat {directory / 'trace'}", markup=False, highlight=False)
    if not as_json and not result.violations:
        screen.print(f"{result.events:,} events checked: every guarantee held", highlight=False)


def tell_traffic(plan: TrafficPlan, told: dict[str, object], as_json: bool) -> None:
    if as_json:
        print(json.dumps(told))
        return
    from rich.table import Table

    from .tables import console

    table = Table("what", "value", title=f"{plan.service}, {plan.size:,} bytes, {plan.seconds:g} s")
    for name, value in told.items():
        if isinstance(value, dict):
            for process, share in value.items():
                table.add_row(f"cpu of {process}", f"{share:.0%}")
        else:
            table.add_row(name.replace("_", " "), f"{value:,}")
    console().print(table)


def tell_slow(plan: SlowPlan, result: SlowMeasurement, as_json: bool) -> None:
    import msgspec

    told = msgspec.structs.asdict(result)
    if as_json:
        print(json.dumps(told))
    else:
        from rich.table import Table

        from .tables import console

        table = Table("what", "value", title=f"{plan.policy}, {plan.mb_per_s:g} MB/s, stall of {plan.stall_s:g} s")
        for name, value in told.items():
            if name != "problems":
                table.add_row(name.replace("_", " "), str(value))
        console().print(table)
    for problem in result.problems:
        print(f"covey bench slow-receiver: {problem}", file=sys.stderr)


def tell_hostile(told: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(told))
    else:
        from rich.table import Table

        from .tables import console

        table = Table("scenario", *HOSTILE_COLUMNS.values(), "besides", title="hostile programs", title_justify="left")
        for name, one in told["scenarios"].items():
            table.add_row(name, *(_cell(one[column]) for column in HOSTILE_COLUMNS), _besides(one))
        table.add_row("all", *(_cell(told[column]) for column in HOSTILE_COLUMNS), "")
        console().print(table)
    for problem in told["problems"]:
        print(f"covey bench hostile: {problem}", file=sys.stderr)


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:,}"


def _besides(one: dict[str, Any]) -> str:
    """What a scenario tells of itself alone."""
    rest = {name: value for name, value in one.items() if name not in HOSTILE_COLUMNS and name != "problems"}
    return "\n".join(f"{name.replace('_', ' ')}: {value}" for name, value in rest.items())
