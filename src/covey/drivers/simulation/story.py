"""Stories: text scenarios with transcripts, for the named situations of the protocol.

A story is a list of blocks: commands, a line `----`, and what the daemons did until the next block. Playing a story
gives the same text with the transcripts as they really are; a test compares the two.

    daemons 3                  a cluster of one site (or: sites 3), nobody started; `daemons 3 packet_bytes=600` with
                               other settings
    running daemons 3          the same with all started and in one view, untold
    start a b c                start, also again after a crash; `a+90` with its clock 90 s ahead
    run 200                    let so many virtual milliseconds pass
    until b statetrans         run until a daemon enters a state (five seconds at most)
    send a agreed hello        submit at a daemon; `a/2` is its session 2; a number at the end pads to that size
    crash a · stop a · pause a · resume a
    partition a b | c          nothing passes between the sides
    cut a>b · heal             one direction only; end all cuts
    flap a>b 500 500 20        cut both ways and mend so often, for so many milliseconds each, while everybody sends ten
                               messages a second; tells only how many views each daemon had
    lose a>b data 2            lose the next two datagrams of a kind; `*` stands for any daemon or kind
    delay a>b newmemb 300      hold the next datagram of a kind for so many milliseconds
    client alice a             a program connects to a daemon, also again after it left; `client alice a block` makes
                               senders wait when it is slow
    join alice room · leave alice room
    say alice room agreed hi   to groups or programs (`room,bob@a`); `hi 2000 5`: padded to that size, so often
    stall alice · read alice   it stops reading; it reads on
    bye alice · kill alice     it leaves in good order; it is killed
    show a                     where a daemon is, and why; or how a program is
    count token-lost           how often something was counted, over all daemons
    check                      every guarantee on the trace so far
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec

from covey.config import Cluster, lan, one_daemon_sites, one_site, wan
from covey.errors import CoveyError
from covey.guarantees.checkers import check
from covey.protocol.evs.codec import frame_name
from covey.protocol.evs.states import State
from covey.protocol.inputs import Stop, Submit
from covey.protocol.values import Service
from covey.trace.record import Row

from .network import NetworkOptions
from .node import Clocks
from .story_clients import RUN, StoryClients
from .transcript import tell
from .world import World

MS = 1_000
SECOND = 1_000_000
UNTIL_MAX_US = 5 * SECOND


class StoryError(CoveyError):
    """A story asks for something that cannot be played."""


class Rule(msgspec.Struct):
    """What happens to the next datagrams of a kind between two daemons."""

    source: int | None
    to: int | None
    kind: str
    left: int
    delay_us: int | None
    """None: lost."""

    def matches(self, source: int, to: int, kind: str) -> bool:
        return (
            self.left > 0
            and self.source in (None, source)
            and self.to in (None, to)
            and self.kind in ("*", kind)
        )  # fmt: skip


class Story:
    def __init__(self) -> None:
        self._world: World | None = None
        self._clients: StoryClients | None = None
        self._rules: list[Rule] = []
        self._rows: list[Row] = []
        self._told = 0
        self._sent: dict[tuple[int, int], int] = {}
        self._said: list[str] = []

    # --- playing

    def play_block(self, commands: list[str]) -> list[str]:
        """What the daemons did, one line an event."""
        self._said = []
        for line in commands:
            words = line.split()
            command = self._command(words[0])
            if command is None:
                raise StoryError(f"no such command: {line!r}")
            try:
                command(*words[1:])
            except (TypeError, ValueError, KeyError, AttributeError) as error:
                raise StoryError(f"{line!r} cannot be played ({error}): see docs/simulation.md") from error
        told = [tell(row) for row in self._rows[self._told :]]
        self._told = len(self._rows)
        return told + self._said or ["nothing happens"]

    def _command(self, word: str) -> Callable[..., None] | None:
        for player in (self, self._clients):
            command: Callable[..., None] | None = getattr(player, f"do_{word}", None)
            if command is not None:
                return command
        return None

    @property
    def world(self) -> World:
        if self._world is None:
            raise StoryError("a story begins with `daemons N` or `sites N`")
        return self._world

    def _rank(self, name: str) -> int:
        return self.world.cluster.rank_of(name)

    def _make(self, cluster: Cluster, far: bool, words: tuple[str, ...]) -> None:
        options = NetworkOptions(delay_min_us=20 * MS if far else MS, delay_mean_us=0)
        base = wan() if far else lan(len(cluster.daemons))
        other = {name: int(value) for name, _, value in (word.partition("=") for word in words)}
        settings = msgspec.structs.replace(base, **other)
        self._world = World(cluster, settings, options, Random(1), RUN, self._rows.append)
        self._clients = StoryClients(self._world, self._rows.append)
        send = self._world.network.send

        def filtered(now: int, source: int, to: int, data: bytes, reliable: bool) -> None:
            kind = frame_name(data)
            rule = next((one for one in self._rules if one.matches(source, to, kind)), None)
            if rule is None:
                send(now, source, to, data, reliable)
                return
            rule.left -= 1
            if rule.delay_us is not None:
                self.world.at(now + rule.delay_us, lambda: send(self.world.now, source, to, data, reliable))

        self._world.send = filtered

    # --- commands

    def do_daemons(self, count: str, *settings: str) -> None:
        self._make(one_site(int(count)), False, settings)

    def do_sites(self, count: str, *settings: str) -> None:
        self._make(one_daemon_sites(int(count)), True, settings)

    def do_running(self, kind: str, count: str, *settings: str) -> None:
        getattr(self, f"do_{kind}")(count, *settings)
        self.do_start(*(daemon.name for daemon in self.world.cluster.daemons))
        self.do_run("600" if kind == "daemons" else "2000")
        self._told = len(self._rows)
        self._said.append(f"all in one view at {self.world.now // MS} ms")

    def do_start(self, *names: str) -> None:
        for one in names:
            name, _, ahead_s = one.partition("+")
            self.world.start(self._rank(name), Clocks(0, 0, (100 + int(ahead_s or 0)) * SECOND))

    def do_run(self, milliseconds: str) -> None:
        if int(milliseconds) < 0:
            raise StoryError(f"run {milliseconds}: time goes forward only")
        self.world.run_until(self.world.now + int(milliseconds) * MS)

    def do_until(self, name: str, state: str) -> None:
        wanted, deadline = State(state), self.world.now + UNTIL_MAX_US
        while self.world.nodes[self._rank(name)].core.engine.report(0).state != wanted.value:
            if self.world.now >= deadline:
                raise StoryError(f"{name} never came to {state}")
            self.world.run_until(self.world.now + 100)

    def do_send(self, name: str, service: str, text: str, size: str = "0") -> None:
        daemon, _, session = name.partition("/")
        key = (self._rank(daemon), int(session or 0))
        seq = self._sent[key] = self._sent.get(key, 0) + 1
        payload = text.encode().ljust(int(size), b".")
        self.world.give(key[0], Submit(key[1], seq, Service[service.upper()], payload))
        self.world.run_until(self.world.now + 1)

    def do_crash(self, name: str) -> None:
        self.world.crash(self._rank(name))

    def do_stop(self, name: str) -> None:
        self.world.give(self._rank(name), Stop())

    def do_pause(self, name: str) -> None:
        self.world.pause(self._rank(name))

    def do_resume(self, name: str) -> None:
        self.world.resume(self._rank(name))

    def do_partition(self, *words: str) -> None:
        sides = [side.split() for side in " ".join(words).split("|")]
        self.world.network.partition([[self._rank(name) for name in side] for side in sides])

    def do_cut(self, pair: str) -> None:
        source, to = self._pair(pair)
        if source is None or to is None:
            raise StoryError("cut names both daemons: cut a>b")
        self.world.network.cut(source, to)

    def do_heal(self) -> None:
        self.world.network.heal(self.world.now)

    def do_flap(self, pair: str, down: str, up: str, times: str) -> None:
        source, to = self._pair(pair)
        if source is None or to is None:
            raise StoryError("flap names both daemons: flap a>b 500 500 20")
        since, network = len(self._rows), self.world.network
        for _ in range(int(times)):
            for one, other in ((source, to), (to, source)):
                network.cut(one, other)
            self._run_busy(int(down))
            for one, other in ((source, to), (to, source)):
                network.mend(self.world.now, one, other)
            self._run_busy(int(up))
        views = [row.process.split(":")[0] for row in self._rows[since:] if row.event == "view"]
        told = ", ".join(f"{daemon.name} {views.count(daemon.name)}" for daemon in self.world.cluster.daemons)
        self._said.append(f"the link came and went {times} times until {self.world.now // MS} ms; views: {told}")
        self._told = len(self._rows)

    def _run_busy(self, milliseconds: int) -> None:
        """Let time pass while every daemon sends."""
        end = self.world.now + milliseconds * MS
        while self.world.now < end:
            for node in self.world.living():
                self.do_send(self.world.cluster.daemons[node.rank].name, "agreed", "busy")
            self.world.run_until(min(end, self.world.now + 100 * MS))

    def do_lose(self, pair: str, kind: str = "*", count: str = "1") -> None:
        self._rules.append(Rule(*self._pair(pair), kind, int(count), None))

    def do_delay(self, pair: str, kind: str, milliseconds: str, count: str = "1") -> None:
        self._rules.append(Rule(*self._pair(pair), kind, int(count), int(milliseconds) * MS))

    def do_show(self, *names: str) -> None:
        for name in names:
            if self._clients is not None and (said := self._clients.show(name)) is not None:
                self._said.append(said)
                continue
            node = self.world.nodes[self._rank(name)]
            seen = node.core.snapshot(node.clocks.at(self.world.now).mono_us)
            self._said.append(f"{name} is in {seen['state']}: {seen['reason']}; view {{{' '.join(seen['members'])}}}")
            self._said += [f"{name} cannot merge with {stranger}" for stranger in seen["strangers"]]

    def do_count(self, *words: str) -> None:
        name = " ".join(words).replace("-", " ")
        counts = [node.core.kit.count.in_words().get(name, 0) for node in self.world.nodes.values()]
        self._said.append(f"{name}: {sum(counts)}")

    def do_check(self) -> None:
        verdicts = check(self._rows)
        broken = [f"{one.guarantee} {one.process}: {one.detail}" for v in verdicts for one in v.violations]
        held = [verdict.guarantee for verdict in verdicts if verdict.premises]
        self._said += broken or [f"no violation; something to check for {' '.join(held)}"]

    def _pair(self, text: str) -> tuple[int | None, int | None]:
        source, _, to = text.partition(">")
        return (
            None if source == "*" else self._rank(source),
            None if to == "*" else self._rank(to),
        )


def play_story(text: str) -> str:
    """The same story with the transcripts as they are now."""
    story, lines = Story(), []
    for block in text.strip("\n").split("\n\n"):
        commands, _, _ = block.partition("\n----")
        wanted = [line for line in commands.splitlines() if line.strip() and not line.startswith("#")]
        lines.append(commands)
        if wanted:
            lines += ["----", *story.play_block(wanted)]
        lines.append("")
    return "\n".join(lines)


def builtin_stories() -> list[Path]:
    return sorted((Path(__file__).parent / "stories").glob("*.txt"))
