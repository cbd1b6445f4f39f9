"""Covey beside others: what is planned, what a receiver calls a problem, who is skipped and why, what rounds say."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from covey.cli.bench_peers_markdown import UNITS, markdown
from covey.cli.bench_peers_tables import COLUMNS, figure_text, ratio_text
from covey.cli.main import app
from covey.lab.cluster import LiveError
from covey.lab.peers import hosts, measure, servers
from covey.lab.peers.audit import Audit
from covey.lab.peers.content import Source, end_message, stamped_message
from covey.lab.peers.leftovers import children, nothing_left
from covey.lab.peers.measure import PeerSample, count_turns, expected_s, offers, raise_problems, skipped
from covey.lab.peers.plan import RECEIVERS, START_S, SYSTEMS, WORKLOADS, PeerCase, PeersPlan, problem, turns
from covey.lab.peers.servers import ServerProcess, missing, serving, version_of
from covey.lab.peers.statistics import FIGURES, Spread, summaries
from covey.lab.peers.system import system_named
from covey.lab.peers.systems.corosync_system import TO_COMPILE, TO_LINK, arguments, compiled, configuration
from covey.lab.peers.task import PeerTask
from covey.lab.processor_time import cpu_seconds
from covey.lab.traffic.pattern import Pattern
from covey.lab.traffic.task import TrafficResult

TASK = PeerTask(
    system="covey",
    role="receive",
    name="receive0",
    number=0,
    addresses=[],
    size=100,
    seconds=0.01,
    rate=0,
    singly=False,
    service="agreed",
    is_agreed=True,
    senders=1,
    receivers=RECEIVERS,
)
PACED = msgspec.structs.replace(TASK, rate=1_000)
COUNT = 20

# --- what is sent passes


def flat_out(sender: int = 0) -> list[bytes]:
    return [*Pattern(TASK.size, COUNT, sender).payloads(1, COUNT), end_message(sender, COUNT, TASK.size)]


def paced(sender: int = 0) -> list[bytes]:
    stamps = [stamped_message(sender, number, TASK.size) for number in range(1, COUNT + 1)]
    return [*stamps, end_message(sender, COUNT, TASK.size)]


def audited(messages: list[bytes], task: PeerTask = TASK) -> Audit:
    audit = Audit(task)
    for one in messages:
        audit.take(one)
    return audit


@pytest.mark.parametrize(("messages", "task"), [(flat_out(), TASK), (paced(), PACED)])
def test_what_was_sent_is_no_problem(messages: list[bytes], task: PeerTask) -> None:
    audit = audited(messages, task)
    assert (audit.problem, audit.is_over) == ("", True)
    result = audit.result()
    assert (result.messages, len(result.latencies_us)) == (COUNT, COUNT if task.rate else 0)
    assert result.seconds >= 0


@pytest.mark.parametrize("task", [TASK, PACED, msgspec.structs.replace(TASK, number=2, senders=3)])
@pytest.mark.parametrize("singly", [False, True])
def test_what_a_source_gives_is_what_an_audit_expects(task: PeerTask, singly: bool) -> None:
    source = Source(task)
    audit = Audit(task)
    if singly or task.rate:
        for payload in source.singles():
            audit.take(payload)
    else:
        for chunk in source.chunks():
            audit.take_run(chunk)
    assert (audit.problem, audit.result().messages) == ("", source.sent)
    assert source.sent > 0


def test_a_run_may_hold_the_end_too() -> None:
    audit = Audit(TASK)
    audit.take_run(flat_out())
    assert (audit.problem, audit.is_over, audit.result().messages) == ("", True, COUNT)


# --- what is planted is found


def lost(messages: list[bytes]) -> list[bytes]:
    return messages[:5] + messages[6:]


def lost_at_the_end(messages: list[bytes]) -> list[bytes]:
    return messages[:-2] + messages[-1:]


def doubled(messages: list[bytes]) -> list[bytes]:
    return messages[:6] + messages[5:]


def reordered(messages: list[bytes]) -> list[bytes]:
    return [*messages[:5], messages[6], messages[5], *messages[7:]]


def corrupted(messages: list[bytes]) -> list[bytes]:
    return [*messages[:5], messages[5][:-1] + b"!", *messages[6:]]


def shortened(messages: list[bytes]) -> list[bytes]:
    return [*messages[:5], messages[5][:-1], *messages[6:]]


def emptied(messages: list[bytes]) -> list[bytes]:
    return [*messages[:5], b"", *messages[6:]]


def of_a_stranger(messages: list[bytes]) -> list[bytes]:
    return [*messages[:5], messages[5][:7] + b"\x05" + messages[5][8:], *messages[6:]]


def after_the_end(messages: list[bytes]) -> list[bytes]:
    return [*messages, messages[0]]


def with_two_ends(messages: list[bytes]) -> list[bytes]:
    return [*messages, messages[-1]]


PLANTED: dict[Callable[[list[bytes]], list[bytes]], str] = {
    lost: "message 7 of sender 0 came instead of 6",
    lost_at_the_end: "sender 0 has sent 20 messages, 19 came",
    doubled: "message 6 of sender 0 came instead of 7",
    reordered: "message 7 of sender 0 came instead of 6",
    corrupted: "message 6 of sender 0 does not hold what was sent",
    shortened: "message 6 of sender 0 does not hold what was sent",
    emptied: "that no sender has sent",
    of_a_stranger: "that no sender has sent",
    after_the_end: "sender 0 came after its end",
    with_two_ends: "sender 0 came after its end",
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
@pytest.mark.parametrize(("messages", "task"), [(flat_out(), TASK), (paced(), PACED)], ids=["flat out", "paced"])
def test_what_is_planted_is_found(
    plant: Callable[[list[bytes]], list[bytes]], messages: list[bytes], task: PeerTask
) -> None:
    audit = audited(plant(messages), task)
    assert PLANTED[plant] in audit.problem
    assert audit.is_over
    assert audit.result().problem == audit.problem


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_what_is_planted_in_a_run_is_found(plant: Callable[[list[bytes]], list[bytes]]) -> None:
    audit = Audit(TASK)
    planted = plant(flat_out())
    audit.take_run(planted[:4])
    audit.take_run(planted[4:])
    assert PLANTED[plant] in audit.problem


@pytest.fixture(scope="module")
def client_in_c(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if reason := missing(TO_COMPILE, files=TO_LINK):
        pytest.skip(reason)
    return compiled(tmp_path_factory.mktemp("cpg"))


def audited_in_c(client: Path, messages: list[bytes], task: PeerTask) -> TrafficResult:
    _, *rest = arguments(task)
    given = b"".join(len(one).to_bytes(4, "little") + one for one in messages)
    done = subprocess.run([client, "audit", *rest], input=given, capture_output=True, check=True)
    return msgspec.json.decode(done.stdout, type=TrafficResult)


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
@pytest.mark.parametrize("task", [TASK, PACED], ids=["flat out", "paced"])
def test_what_is_planted_is_found_in_c(
    plant: Callable[[list[bytes]], list[bytes]], task: PeerTask, client_in_c: Path
) -> None:
    assert PLANTED[plant] in audited_in_c(client_in_c, plant(paced()), task).problem


def test_what_was_sent_is_no_problem_in_c(client_in_c: Path) -> None:
    result = audited_in_c(client_in_c, paced(), PACED)
    assert (result.problem, result.messages, len(result.latencies_us)) == ("", COUNT, COUNT)
    both = msgspec.structs.replace(TASK, senders=2)
    orders = [audited_in_c(client_in_c, paced(one) + paced(1 - one), both) for one in (0, 0, 1)]
    assert [one.problem for one in orders] == [""] * 3
    assert orders[0].order == orders[1].order != orders[2].order


def test_messages_of_others_in_between_are_no_problem_and_each_sender_has_its_end() -> None:
    task = msgspec.structs.replace(TASK, senders=2)
    both = [one for pair in zip(flat_out(0), flat_out(1), strict=True) for one in pair]
    assert audited(both[:-1], task).is_over is False
    assert (audited(both, task).problem, audited(both, task).is_over) == ("", True)
    assert "of sender 1 came instead" in audited(both[:5] + both[6:], task).problem


def test_the_digest_is_that_of_the_order_however_runs_were_cut() -> None:
    task = msgspec.structs.replace(TASK, senders=2)
    one, two = flat_out(0)[:10], flat_out(1)[:10]
    whole, cut, other = Audit(task), Audit(task), Audit(task)
    whole.take_run(one)
    whole.take_run(two)
    cut.take_run(one[:3])
    for payload in one[3:]:
        cut.take(payload)
    cut.take_run(two)
    other.take_run(two)
    other.take_run(one)
    assert whole.result().order == cut.result().order != other.result().order


def mixed() -> list[bytes]:
    """What two senders have sent, without their ends."""
    return [one for pair in zip(flat_out(0)[:-1], flat_out(1)[:-1], strict=True) for one in pair]


UNORDERED = msgspec.structs.replace(TASK, senders=2, is_agreed=False)


@pytest.mark.parametrize("at", [1, 2, 7, 40])
def test_messages_of_several_senders_may_be_checked_together(at: int) -> None:
    messages = [*mixed(), flat_out(1)[-1], flat_out(0)[-1]]
    audit = Audit(UNORDERED)
    audit.take_mixed(messages[:at])
    audit.take_mixed(messages[at:])
    assert (audit.problem, audit.is_over, audit.result().messages) == ("", True, 2 * COUNT)


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_what_is_planted_among_messages_of_several_senders_is_found(
    plant: Callable[[list[bytes]], list[bytes]],
) -> None:
    audit = Audit(UNORDERED)
    planted = plant(flat_out(0))
    audit.take_mixed([*planted[:5], *flat_out(1), *planted[5:]])
    assert PLANTED[plant] in audit.problem


def test_who_promises_an_order_must_not_be_checked_without_it() -> None:
    with pytest.raises(AssertionError):
        Audit(msgspec.structs.replace(UNORDERED, is_agreed=True)).take_mixed(mixed())


def test_who_promises_no_order_is_not_asked_for_one() -> None:
    task = msgspec.structs.replace(TASK, senders=2, is_agreed=False)
    assert audited(flat_out(0) + flat_out(1), task).result().order == audited(flat_out(1), task).result().order


# --- the plan


def test_each_system_has_one_turn_at_each_case_of_each_round() -> None:
    cases = PeersPlan(workloads=("one-to-three", "idle"), sizes=(100, 1_000)).cases()
    assert cases == [PeerCase("one-to-three", 100), PeerCase("one-to-three", 1_000), PeerCase("idle", 100)]
    made = list(turns(cases, ["a", "b", "c"], 2))
    assert len(set(made)) == len(made) == 2 * 3 * 3
    assert [system for number, case, system in made if case == cases[0]] == ["a", "b", "c", "b", "c", "a"]


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        (PeersPlan(), ""),
        (PeersPlan(systems=("covey", "kafka")), "--systems kafka: write one or several of covey,corosync"),
        (PeersPlan(systems=()), "--systems : write one"),
        (PeersPlan(systems=("covey", "covey")), "--systems covey,covey: write each once"),
        (PeersPlan(workloads=("busy",)), "--workloads busy: write one or several of one-to-three,"),
        (PeersPlan(sizes=(8,)), "--sizes: write each once, in bytes, 16 or more"),
        (PeersPlan(sizes=()), "--sizes"),
    ],
    ids=range(7),
)
def test_a_plan_that_cannot_be_is_told(plan: PeersPlan, told: str) -> None:
    assert problem(plan).startswith(told)
    assert bool(problem(plan)) == bool(told)


def test_only_covey_has_safe_messages() -> None:
    assert [name for name in SYSTEMS if offers(system_named(name), PeerCase("safe", 100))] == ["covey"]
    plan = PeersPlan(workloads=("safe", "single"), rounds=2, seconds=3)
    assert count_turns(plan, ["covey", "redis"]) == 2 + 4
    assert expected_s(plan, ["covey", "redis"]) == 6 * 3 + 4 * START_S["covey"] + 2 * START_S["redis"]
    assert list(START_S) == list(SYSTEMS)


def test_who_has_no_servers_is_not_measured_idle() -> None:
    assert [name for name in SYSTEMS if not offers(system_named(name), PeerCase("idle", 100))] == ["pyzmq", "zenoh"]


@pytest.mark.parametrize(
    "arguments", [["--systems", "kafka"], ["--sizes", "big"], ["--workloads", "x"], ["--json", "--markdown"]]
)
def test_what_is_asked_wrongly_exits_2(arguments: list[str]) -> None:
    ran = CliRunner().invoke(app, ["bench", "peers", *arguments])
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert arguments[0] in ran.stderr


# --- who is skipped


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nothing is installed."""
    monkeypatch.setattr(servers, "program_path", lambda _: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("pyzmq", "there is no zmq; install: pip install 'covey[bench]'"),
        ("zenoh", "there is no zenoh; install: pip install 'covey[bench]'"),
        ("nats", "there is no nats-server, nats; install: apt-get install nats-server && pip install 'covey[bench]'"),
        ("redis", "there is no redis-server, redis; install: apt-get install redis-server && pip install"),
        ("corosync", "there is no corosync, cc, ip, unshare, nsenter"),
    ],
)
def test_what_is_missing_is_told_with_the_command_that_installs_it(name: str, told: str) -> None:
    assert (system_named(name).unavailable() or "").startswith(told)
    assert system_named("covey").unavailable() is None
    assert list(skipped(PeersPlan(systems=("covey", name)))) == [name]


def test_of_two_parts_only_the_missing_one_is_told() -> None:
    assert missing({"sh": "dash"}, ["json"]) is None
    assert missing({"sh": "dash", "no-such-program": "it"}, ["json"]) == (
        "there is no no-such-program; install: apt-get install it"
    )
    assert missing({"sh": "dash"}, files={"/no/such/file": "its-dev"}) == (
        "there is no /no/such/file; install: apt-get install its-dev"
    )


def test_who_may_not_make_hosts_is_told_what_would_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1_000)
    assert "run it with sudo" in (hosts.unavailable() or "")


# --- servers


def test_a_server_that_ends_is_told_with_its_last_words(tmp_path: Path) -> None:
    with (
        pytest.raises(LiveError, match=r"sh does not serve: no such port"),
        serving(["sh", "-c", "echo no such port; exit 3"], tmp_path / "log", lambda: False),
    ):
        pass


def test_a_server_has_a_session_of_its_own_and_ends(tmp_path: Path) -> None:
    server = ServerProcess(["sleep", "100"], tmp_path / "log")
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    assert int(fields[3]) == server.pid
    server.close()
    assert not Path(f"/proc/{server.pid}").exists()


@pytest.mark.parametrize(
    ("said", "found"), [("nats-server: v2.9.10", "2.9.10"), ("Redis server v=7.0.15 sha=0", "7.0.15"), ("-", "unknown")]
)
def test_a_version_is_read(said: str, found: str) -> None:
    assert version_of("echo", said) == found


def test_processor_time_is_that_of_the_process(tmp_path: Path) -> None:
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"], start_new_session=True)
    try:
        while cpu_seconds(busy.pid) < 0.02:
            pass
    finally:
        busy.kill()
        busy.wait()
    assert cpu_seconds(1) >= 0


def test_corosync_is_told_where_everybody_is() -> None:
    text = configuration(Path("/somewhere"))
    assert [f"ring0_addr: {hosts.address_of(rank)}\n" in text for rank in range(3)] == [True] * 3
    assert "state_dir: /somewhere\n" in text
    assert text.count("{") == text.count("}")
    assert arguments(TASK) == ["receive", "receive0", "0", "1", "3", "100", "0.01", "0", "0.2"]


def test_what_an_interrupted_block_has_started_ends_with_it() -> None:
    before, started = children(), []

    def interrupted() -> None:
        with nothing_left():
            started.append(subprocess.Popen(["sleep", "100"], start_new_session=True))
            assert children() - before == {started[0].pid}
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert children() == before
    started[0].wait()


# --- what rounds say


def sample(number: int, system: str, rate: float | None, workload: str = "single") -> PeerSample:
    return PeerSample(round=number, workload=workload, size=100, system=system, messages_per_s=rate)


def test_ratios_are_those_of_a_round() -> None:
    rates = {"covey": (100.0, 200.0, 400.0), "redis": (50.0, 400.0, 100.0)}
    found = summaries([sample(at, name, rate) for name in rates for at, rate in enumerate(rates[name])])
    assert [(one.system, one.rounds) for one in found] == [("covey", 3), ("redis", 3)]
    assert found[0].figures == {"messages_per_s": Spread(200, 100, 400)}
    assert found[0].ratios == {"messages_per_s": Spread(1, 1, 1)}
    assert found[1].figures == {"messages_per_s": Spread(100, 50, 400)}
    assert found[1].ratios == {"messages_per_s": Spread(0.5, 0.25, 2)}


@pytest.mark.parametrize(
    "ours", [[], [sample(1, "covey", None)], [sample(1, "covey", 0.0)], [sample(2, "covey", 5.0)]], ids=range(4)
)
def test_without_covey_in_the_same_round_there_is_no_ratio(ours: list[PeerSample]) -> None:
    *_, theirs = summaries([*ours, sample(1, "redis", 7.0)])
    assert (theirs.figures, theirs.ratios) == ({"messages_per_s": Spread(7, 7, 7)}, {})


def test_cases_are_kept_apart() -> None:
    found = summaries([sample(1, "covey", 1.0), sample(1, "covey", 5.0, "asked"), sample(2, "covey", 3.0)])
    assert [(one.workload, one.figures["messages_per_s"].median) for one in found] == [("single", 2), ("asked", 5)]


def test_figures_are_shown_as_one_reads_them() -> None:
    assert [figure_text(Spread(value, 0, 0)) for value in (1_234_567.8, 99.96, 0.5123)] == ["1,234,568", "100", "0.512"]
    assert (figure_text(None), ratio_text(None)) == ("–", "–")
    assert ratio_text(Spread(0.5, 0.25, 2)) == "0.50 (0.25–2.00)"


# --- the command, with samples of our own


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def samples(plan: PeersPlan, systems: list[str]) -> Iterator[PeerSample]:
        for number, case, name in turns(plan.cases(), systems, plan.rounds):
            yield PeerSample(round=number, workload=case.workload, size=case.size, system=name, p50_us=5.0)

    monkeypatch.setattr(measure, "measure_peers", samples)


@pytest.mark.usefixtures("measured", "bare")
def test_json_is_all_that_standard_output_holds() -> None:
    arguments = ["--systems", "covey,redis", "--workloads", "latency,idle", "--rounds", "2", "--json"]
    ran = CliRunner().invoke(app, ["bench", "peers", *arguments])
    assert ran.exit_code == 0, ran.output
    said = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [one["what"] for one in said] == ["measurement"] * 4 + ["summary"] * 2 + ["machine"]
    assert said[-1].keys() >= {"cores", "load_before", "load_after", "systems", "skipped"}
    assert "apt-get install redis-server" in said[-1]["skipped"]["redis"]
    assert "redis is skipped: there is no redis-server" in ran.stderr
    assert "4 measurements, about 0.23 minutes" in ran.stderr
    assert "round 1 of 2\nround 2 of 2\n" in ran.stderr
    assert "load before" in ran.stderr


@pytest.mark.usefixtures("measured", "bare")
def test_markdown_is_all_that_standard_output_holds() -> None:
    ran = CliRunner().invoke(app, ["bench", "peers", "--workloads", "latency", "--rounds", "1", "--markdown"])
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.startswith("|  | covey |\n| --- | --- |\n| latency, 100 bytes: p50, µs | 5 |\n")
    assert "\nMedians of 1 round of 2 s; " in ran.stdout
    assert "\nWithout redis: there is no redis-server, redis; install: apt-get install redis-server" in ran.stdout


def test_a_markdown_table_has_medians_and_in_brackets_ratios() -> None:
    rates = {"covey": (100.0, 200.0, 400.0), "redis": (50.0, 400.0, 100.0)}
    found = summaries([sample(at, name, rate) for name in rates for at, rate in enumerate(rates[name])])
    machine = {"systems": {"covey": "covey 1", "nats": "nats 2", "redis": "redis 3"}, "skipped": {}, "cores": 2}
    assert markdown(found, PeersPlan(), machine).splitlines() == [
        "|  | covey | nats | redis |",
        "| --- | --- | --- | --- |",
        "| single, 100 bytes: messages/s | 200 | – | 100 (0.50) |",
        "| single, 100 bytes: CPU of servers, µs a message | – | – | – |",
        "",
        "Medians of 7 rounds of 2 s; in brackets the median of the ratios to Covey in the same round.",
        "2 cores. covey 1; nats 2; redis 3.",
    ]


@pytest.mark.usefixtures("bare")
def test_where_nothing_can_be_measured_it_exits_1() -> None:
    ran = CliRunner().invoke(app, ["bench", "peers", "--systems", "redis", "--json"])
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert "nothing was measured" in ran.stderr


def test_what_was_measured_before_a_failure_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Iterator[PeerSample]:
        yield sample(1, "covey", 123_456.0)
        raise LiveError("covey, single: a gap")

    monkeypatch.setattr(measure, "measure_peers", fail)
    ran = CliRunner().invoke(app, ["bench", "peers", "--systems", "covey", "--rounds", "1", "--markdown"])
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert "123,456" in ran.stderr
    assert ran.stderr.rstrip().endswith("covey, single: a gap")


class Answering:
    """A program that says this, or is silent."""

    def __init__(self, problem: str | None) -> None:
        self._problem = problem

    def answer(self, wanted: type[TrafficResult], within_s: float) -> TrafficResult:
        if self._problem is None:
            raise LiveError(f"has said nothing for {within_s} s")
        return wanted(name="receive1", messages=0, seconds=0, cpu_seconds=0, problem=self._problem)


def test_of_a_sender_that_waits_for_a_receiver_with_a_problem_the_problem_is_told() -> None:
    raise_problems([Answering(None), Answering("")])
    with pytest.raises(LiveError, match=r"^receive1: a gap$"):
        raise_problems([Answering(None), Answering("a gap")])


ENDS: list[tuple[BaseException, int]] = [(LiveError("redis, single: receive0: a gap"), 1), (KeyboardInterrupt(), 130)]


@pytest.mark.parametrize(("end", "code"), ENDS, ids=["a gap", "Ctrl-C"])
def test_whatever_ends_it_has_its_code(end: BaseException, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Iterator[PeerSample]:
        yield sample(1, "covey", 5.0)
        raise end

    monkeypatch.setattr(measure, "measure_peers", fail)
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    ran = CliRunner().invoke(app, ["bench", "peers", "--systems", "covey", "--rounds", "1"])
    assert ran.exit_code == code
    assert ran.stdout == ""
    assert "covey bench peers: " in ran.stderr
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_every_workload_says_what_it_is_and_tells_figures_that_have_a_name() -> None:
    for work in WORKLOADS.values():
        assert work.meaning
        assert set(work.tells) <= UNITS.keys() <= COLUMNS.keys() == set(FIGURES)
