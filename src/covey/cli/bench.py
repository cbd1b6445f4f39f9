"""`covey bench`: measure, with real processes. Every number says what it was measured from and to."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from .bench_peers import peers
from .bench_tables import show_failover, tell_hostile, tell_slow, tell_traffic
from .common import finite

if TYPE_CHECKING:
    from covey.lab.hostile.outcome import Outcome
    from covey.lab.hostile.plan import HostilePlan
    from covey.lab.traffic.measure import Measurement, TrafficPlan
    from covey.lab.traffic.slow import SlowMeasurement, SlowPlan

app = typer.Typer(name="bench", help="Measure with real processes.", no_args_is_help=True, rich_markup_mode=None)


app.command()(peers)


@app.callback()
def bench() -> None:
    """Measure with real processes."""


@app.command()
def failover(
    daemons: Annotated[int, typer.Option(min=2, max=9, help="Daemons in the cluster.")] = 3,
    trials: Annotated[int, typer.Option(min=1, help="How often each is measured.")] = 10,
    pause_trials: Annotated[int, typer.Option(min=0, help="How many of the trials have a pause too.")] = 3,
    pause_seconds: Annotated[
        float, typer.Option(callback=finite, min=1, max=600, help="How long a pause lasts.")
    ] = 5.0,
    seed: Annotated[int, typer.Option(help="Decides the victims.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Standard output holds one JSON object.")] = False,
) -> None:
    """How long until the last daemon has the new view: after start, kill -9, SIGTERM, restart and a pause.

    The trace of each trial is checked; exits 1 if a guarantee is violated, or if the daemons do not come to one view.
    """
    from covey.lab.cluster import LiveError
    from covey.lab.failover import FailoverPlan, measure_failover

    from .tables import progress

    plan = FailoverPlan(daemons, trials, pause_trials, pause_seconds, seed)
    try:
        *_, result = progress(measure_failover(plan), trials, "trials")
    except LiveError as error:
        print(f"covey bench failover: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    if as_json:
        print(json.dumps(result.summary()))
    show_failover(result, as_json)
    raise typer.Exit(1 if result.violations else 0)


Service = Annotated[str, typer.Option(help="unreliable, reliable, fifo, causal, agreed or safe.")]
Daemons = Annotated[int, typer.Option(min=1, max=20, help="Daemons in the cluster.")]
Senders = Annotated[int, typer.Option(min=1, max=100, help="Programs that send, spread over the daemons.")]
Receivers = Annotated[int, typer.Option(min=1, max=100, help="Programs that receive, spread over the daemons.")]
Size = Annotated[int, typer.Option(min=8, help="Bytes of a message.")]
Seconds = Annotated[float, typer.Option(callback=finite, min=0.1, max=3_600, help="How long senders send.")]
Json = Annotated[bool, typer.Option("--json", help="Standard output holds one JSON object.")]


@app.command()
def throughput(
    daemons: Daemons = 3,
    senders: Senders = 1,
    receivers: Receivers = 3,
    size: Size = 1_000,
    service: Service = "agreed",
    seconds: Seconds = 3.0,
    one_by_one: Annotated[
        bool, typer.Option("--one-by-one", help="One send call and one write for each message, instead of batches.")
    ] = False,
    as_json: Json = False,
) -> None:
    """How many messages arrive, as fast as senders can send, at the slowest receiver.

    Every receiver checks count and order; a mismatch exits 1.
    """
    plan = _plan(
        daemons=daemons,
        senders=senders,
        receivers=receivers,
        size=size,
        service=service,
        seconds=seconds,
        one_by_one=one_by_one,
    )
    result = _measured("throughput", plan)
    told = {"messages_per_s": result.messages_per_s, "mb_per_s": result.mb_per_s, "cpu_share": result.cpu_share}
    tell_traffic(plan, told, as_json)


@app.command()
def latency(
    daemons: Daemons = 3,
    senders: Senders = 1,
    receivers: Receivers = 3,
    size: Size = 100,
    service: Service = "agreed",
    rate: Annotated[float, typer.Option(callback=finite, min=1, help="Messages a second of each sender.")] = 1_000.0,
    seconds: Seconds = 3.0,
    as_json: Json = False,
) -> None:
    """How long a message takes from the sender's call to the receiver's, at a rate that the daemons keep up with.

    Every receiver checks count and order; a mismatch exits 1.
    """
    plan = _plan(
        daemons=daemons, senders=senders, receivers=receivers, size=size, service=service, seconds=seconds, rate=rate
    )
    result = _measured("latency", plan)
    told = {"p50_us": result.p50_us, "p99_us": result.p99_us, "messages_per_s": result.messages_per_s}
    tell_traffic(plan, told | {"cpu_share": result.cpu_share}, as_json)


@app.command("slow-receiver")
def slow_receiver(
    stall: Annotated[
        float, typer.Option(callback=finite, min=0.1, max=600, help="For how many seconds one receiver reads nothing.")
    ] = 3.0,
    mb_per_s: Annotated[
        float, typer.Option(callback=finite, min=0.1, max=10_000, help="What the sender sends, in messages of 1 KB.")
    ] = 40.0,
    obsolete: Annotated[
        float, typer.Option(callback=finite, min=0, max=1, help="Share of messages that later ones make obsolete; 0.")
    ] = 0.0,
    policy: Annotated[str, typer.Option(help="What a slow receiver asks for: disconnect or block.")] = "disconnect",
    as_json: Json = False,
) -> None:
    """What a receiver that stops reading does to two healthy ones and to the sender, with three daemons.

    Every receiver checks count and order; a mismatch exits 1.
    """
    from covey.lab.traffic.slow import SlowPlan

    if policy not in ("disconnect", "block"):
        _refuse("slow-receiver", f"--policy {policy}: write disconnect or block")
    if obsolete:
        _refuse(
            "slow-receiver",
            f"--obsolete {obsolete:g}: messages cannot be declared obsolete yet; write 0, or leave it out",
        )
    plan = SlowPlan(stall_s=stall, mb_per_s=mb_per_s, policy=policy)  # type: ignore[arg-type]
    if problem := plan.problem():
        _refuse("slow-receiver", f"--stall {stall:g}: {problem}")
    result = _measured_slow(plan)
    tell_slow(plan, result, as_json)
    raise typer.Exit(1 if result.problems else 0)


@app.command()
def hostile(
    scenario: Annotated[
        list[str] | None,
        typer.Option(help="storm, groups, silent, flap, large, names or blocker; may be repeated; all of them."),
    ] = None,
    preset: Annotated[
        str, typer.Option(help="loopback, lan or wan, where a scenario needs none of its own.")
    ] = "loopback",
    sessions: Annotated[int, typer.Option(min=1, max=9_990, help="Sessions of the storm.")] = 4_000,
    groups: Annotated[int, typer.Option(min=10, max=100_000, help="Groups that ten sessions join.")] = 100_000,
    silent: Annotated[int, typer.Option(min=1, max=1_000, help="Members that never read.")] = 20,
    seconds: Seconds = 10.0,
    flap_seconds: Annotated[
        float, typer.Option(callback=finite, min=1, max=600, help="How long the link flaps.")
    ] = 30.0,
    patience: Annotated[
        float,
        typer.Option(
            callback=finite, min=1, max=600, help="How many seconds a crowd may take to get what it asks for."
        ),
    ] = 60.0,
    later: Annotated[
        float,
        typer.Option(
            callback=finite, min=0, max=600, help="How many seconds after the trouble memory is looked at again."
        ),
    ] = 5.0,
    as_json: Json = False,
) -> None:
    """What programs that stay within every limit do to a daemon, to its memory, and to one that is not concerned.

    Three daemons for each scenario. A bystander sends a small message every 5 ms at the daemon in trouble; exits 1 if
    one of them is lost or out of order, or a daemon dies.
    """
    from covey.lab.hostile.outcome import summary
    from covey.lab.hostile.plan import HostilePlan
    from covey.lab.hostile.scenarios import SCENARIOS

    names = scenario or list(SCENARIOS)
    for name in names:
        if name not in SCENARIOS:
            _refuse("hostile", f"--scenario {name}: write one of {' '.join(SCENARIOS)}")
    if preset not in ("loopback", "lan", "wan"):
        _refuse("hostile", f"--preset {preset}: write loopback, lan or wan")
    plan = HostilePlan(
        preset=preset,  # type: ignore[arg-type]
        sessions=sessions,
        groups=groups,
        silent=silent,
        seconds=seconds,
        flap_seconds=flap_seconds,
        patience_s=patience,
        later_s=later,
    )
    told = summary(_measured_hostile(names, plan))
    tell_hostile(told, as_json)
    raise typer.Exit(1 if told["problems"] else 0)


def _measured_hostile(names: list[str], plan: HostilePlan) -> dict[str, Outcome]:
    from covey.lab.cluster import LiveError
    from covey.lab.hostile.measure import measure_hostile

    found: dict[str, Outcome] = {}
    try:
        for number, name in enumerate(names, start=1):
            print(f"{name} ({number} of {len(names)}) …", file=sys.stderr, flush=True)
            found |= measure_hostile([name], plan)
    except LiveError as error:
        print(f"covey bench hostile: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    return found


def _refuse(command: str, text: str) -> NoReturn:
    print(f"covey bench {command}: {text}", file=sys.stderr)
    raise typer.Exit(2)


def _measured_slow(plan: SlowPlan) -> SlowMeasurement:
    from covey.lab.cluster import LiveError
    from covey.lab.traffic.slow import measure_slow_receiver

    from .tables import console

    try:
        with console().status(f"one receiver reads nothing for {plan.stall_s:g} s"):
            return measure_slow_receiver(plan)
    except LiveError as error:
        print(f"covey bench slow-receiver: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def _plan(**fields: float | str) -> TrafficPlan:
    from covey.lab.traffic.measure import TrafficPlan
    from covey.protocol.values import Service as Services

    names = [service.name.lower() for service in Services]
    if fields["service"] not in names:
        print(f"--service {fields['service']}: write one of {' '.join(names)}", file=sys.stderr)
        raise typer.Exit(2)
    return TrafficPlan(**fields)  # type: ignore[arg-type]


def _measured(command: str, plan: TrafficPlan) -> Measurement:
    from covey.lab.cluster import LiveError
    from covey.lab.traffic.measure import measure

    from .tables import console

    try:
        with console().status(f"measuring for {plan.seconds:g} s"):
            return measure(plan)
    except LiveError as error:
        print(f"covey bench {command}: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
