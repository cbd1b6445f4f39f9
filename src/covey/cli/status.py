"""How daemons are, as a table for people."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table


def print_statuses(answers: dict[str, dict[str, Any] | None]) -> None:
    screen = Console()
    table = Table("daemon", "state", "view", "members", "token", "waiting", "msg/s", "up", box=None, pad_edge=False)
    for name, answer in answers.items():
        table.add_row(name, *(_row(answer) if answer else ("not running", "", "", "", "", "", "")))
    screen.print(table)
    for name, answer in answers.items():
        if answer:
            _print_why(screen, name, answer)


def _row(answer: dict[str, Any]) -> tuple[str, ...]:
    link = answer["link"]
    token = "-" if link["kind"] == "mesh" else f"{link['token']}{' here' if link['token_is_here'] else ''}"
    waiting = f"{answer['waiting_bytes']:,} B"
    rate, up = f"{answer['delivered_per_s']:g}", f"{answer['uptime_s']:g} s"
    view = answer["view"].rpartition(".")[0]
    return (answer["state"], view, " ".join(answer["members"]), token, waiting, rate, up)


def _print_why(screen: Console, name: str, answer: dict[str, Any]) -> None:
    screen.print(f"{name}: {answer['state']} because {answer['reason']}", markup=False, highlight=False)
    for peer in answer["peers"]:
        if not peer["two_way"]:
            why = peer["gone"] or f"silent for {peer['silent_ms']} ms, or it does not hear us"
            screen.print(f"  {peer['name']} is not connected both ways: {why}", markup=False, highlight=False)
    for stranger in answer["strangers"]:
        screen.print(f"  rejected datagrams from {stranger}", markup=False, highlight=False)
    for host in answer["unsealed"]:
        screen.print(f"  warning: datagrams to {host} are not sealed", markup=False, highlight=False)
    drops = {what: count for what, count in answer["count"].items() if "dropped" in what or "rejected" in what}
    for what, count in sorted(drops.items()):
        screen.print(f"  {count:>8} {what}", markup=False, highlight=False)
