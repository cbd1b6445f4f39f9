"""Stories: text scenarios with transcripts, for the named situations of the protocol.

A story is a list of blocks: commands, a line `----`, and what the daemons did until the next block. Playing a story
gives the same text with the transcripts as they really are; a test compares the two.

In:        the text of a story.
Out:       the same text with its transcripts; a StoryError with the line that cannot be played, and why.
Not here:  what programs do (story_clients.py), what the words of a command mean (story_words.py).

The commands, as in docs/simulation.md, "Stories":

    daemons 3                  a cluster of one site, nobody started; `daemons 3 packet_bytes=600` with other settings
    sites 2,2,1 0-1:5,1-2      several sites with so many daemons each (or: sites 3, of one each), and their links
    running daemons 3          the same with all started and in one view, untold
    start a b c                start, also again after a crash or a stop; `a+90` with its clock 90 s ahead
    run 200                    let so many virtual milliseconds pass
    until b statetrans         run until a daemon enters a state (five seconds at most)
    send a agreed hello        submit at a daemon; `a/2` is its session 2; a number at the end pads to that size
    crash a · stop a · pause a · resume a
    partition a b | c          nothing passes between the sides
    cut a>b · heal             one direction only; end all cuts
    flap a>b 500 500 20        cut both ways and mend so often, for so many milliseconds each, while everybody sends ten
                               messages a second; tells only how many views each daemon had
    lose a>b data 2            lose the next two datagrams of a kind; `*` stands for any daemon or kind
    delay a>b newmemb 300 2    hold the next two datagrams of a kind for so many milliseconds
    client alice a             a program connects to a daemon, also again after it left; `client alice a block` makes
                               senders wait when it is slow
    join alice room · leave alice room
    say alice room agreed hi   to groups or programs (`room,bob@a`); `hi 2000 5`: padded to that size, so often
    stall alice · read alice   it stops reading; it reads on
    bye alice · kill alice     it leaves in good order; it is killed
    show a                     where a daemon is, and why; or how a program is
    count token-lost           how often something was counted, over all daemons
    rest                       nothing goes wrong any more: run until nothing happens; what must come to pass is
                               judged by `check` then
    check                      every guarantee on the trace so far
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec

from covey.cluster import Cluster, one_site
from covey.config import SWITCHES, Settings, bounds, lan, wan
from covey.errors import CoveyError
from covey.guarantees.checkers import check
from covey.protocol.clients import FIRST_SESSION
from covey.protocol.evs.codec import frame_name
from covey.protocol.inputs import Stop, Submit
from covey.trace.record import Row

from .network import NetworkOptions
from .node import Clocks, Node
from .rest import calm, end, longest_silence, settle
from .story_clients import RUN, StoryClients
from .story_words import (
    ANY,
    PAGE,
    StoryError,
    check_words,
    counter,
    kind_of,
    milliseconds,
    number,
    service_of,
    sites_of,
    state_of,
    switch,
    times,
)
from .transcript import tell
from .world import World

MS = 1_000
SECOND = 1_000_000
UNTIL_MAX_US = 5 * SECOND

DAEMONS_MAX = 30
SESSION_MAX = FIRST_SESSION - 1
"""Sessions of programs have higher numbers."""
AHEAD_MAX_S = 1_000_000

BEGINNING = "a story begins with its cluster: `daemons 3`, `sites 3` or `running daemons 3`"


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
            and self.kind in (ANY, kind)
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

    def play_block(self, commands: list[tuple[int, str]]) -> list[str]:
        """What the daemons did, one line an event. Each command comes with the number of its line."""
        self._said = []
        for at, line in commands:
            try:
                self._play(line.split())
            except CoveyError as error:
                raise StoryError(f"line {at}, {line.strip()!r}: {error}") from error
        told = [tell(row) for row in self._rows[self._told :]]
        self._told = len(self._rows)
        return told + self._said or ["nothing happens"]

    def _play(self, words: list[str]) -> None:
        command = self._command(words[0])
        check_words(command, words)
        command(*words[1:])

    def _command(self, word: str) -> Callable[..., None]:
        for player in (self, self._clients):
            command: Callable[..., None] | None = getattr(player, f"do_{word}", None)
            if command is not None:
                return command
        if hasattr(StoryClients, f"do_{word}"):
            raise StoryError(BEGINNING)
        raise StoryError(f"there is no command {word!r}: {PAGE}")

    @property
    def world(self) -> World:
        if self._world is None:
            raise StoryError(BEGINNING)
        return self._world

    def _names(self) -> list[str]:
        return [daemon.name for daemon in self.world.cluster.daemons]

    def _rank(self, name: str) -> int:
        names = self._names()
        if name not in names:
            raise StoryError(f"no daemon is called {name!r}: there are {' '.join(names)}")
        return names.index(name)

    def _node(self, name: str) -> Node:
        """A daemon that runs."""
        node = self.world.nodes.get(self._rank(name))
        if node is None or not node.alive:
            raise StoryError(f"{name} does not run: `start {name}` starts it")
        return node

    def _make(self, cluster: Cluster, far: bool, words: tuple[str, ...]) -> None:
        if self._world is not None:
            raise StoryError("a story has one cluster, and this one has it already: write another story")
        sites = tuple(daemon.site for daemon in cluster.daemons) if far else ()
        options = NetworkOptions(sites=sites, delay_min_us=MS, delay_mean_us=0)
        settings = _changed(wan() if far else lan(len(cluster.daemons)), words)
        self._world = World(cluster, settings, options, Random(1), RUN, self._rows.append)
        self._clients = StoryClients(self._world, self._rows.append)
        send = self._world.network.send

        def filtered(now: int, source: int, to: int, data: bytes, reliable: bool) -> None:
            kind = frame_name(data)
            rule = next((one for one in self._rules if one.matches(source, to, kind)), None)
            if rule is None or (reliable and rule.delay_us is None):  # A link between sites loses nothing.
                send(now, source, to, data, reliable)
                return
            rule.left -= 1
            if rule.delay_us is not None:
                self.world.at(now + rule.delay_us, lambda: send(self.world.now, source, to, data, reliable))

        self._world.send = filtered

    # --- commands

    def do_daemons(self, count: str, *settings: str) -> None:
        self._make(one_site(number(count, "number of daemons", 1, DAEMONS_MAX)), False, settings)

    def do_sites(self, daemons: str, *settings: str) -> None:
        cluster, rest = sites_of(daemons, settings)
        self._make(cluster, True, rest)

    def do_running(self, kind: str, count: str, *settings: str) -> None:
        if kind not in ("daemons", "sites"):
            raise StoryError(f"{kind!r} cannot run: write `running daemons {count}` or `running sites {count}`")
        (self.do_daemons if kind == "daemons" else self.do_sites)(count, *settings)
        self.do_start(*self._names())
        self.do_run("600" if kind == "daemons" else "2000")
        self._told = len(self._rows)
        self._said.append(f"all in one view at {self.world.now // MS} ms")

    def do_start(self, *daemons: str) -> None:
        for one in daemons:
            name, plus, ahead = one.partition("+")
            rank = self._rank(name)
            if rank in self.world.nodes and self.world.nodes[rank].alive:
                raise StoryError(f"{name} runs already: `crash {name}` or `stop {name}` ends it first")
            ahead_s = number(ahead, "seconds ahead", 0, AHEAD_MAX_S) if plus else 0
            self.world.start(rank, Clocks(0, 0, (100 + ahead_s) * SECOND))

    def do_run(self, ms: str) -> None:
        self.world.run_until(self.world.now + milliseconds(ms) * MS)

    def do_until(self, daemon: str, state: str) -> None:
        wanted, node, deadline = state_of(state), self._node(daemon), self.world.now + UNTIL_MAX_US
        while (now_in := node.core.engine.report(0).state) != wanted.value:
            if self.world.now >= deadline:
                raise StoryError(f"{daemon} is in {now_in}, and did not enter {state} for {UNTIL_MAX_US // SECOND} s")
            self.world.run_until(self.world.now + 100)

    def do_send(self, daemon: str, service: str, text: str, size: str = "0") -> None:
        name, slash, session = daemon.partition("/")
        key = (self._node(name).rank, number(session, "session", 0, SESSION_MAX) if slash else 0)
        payload = text.encode().ljust(number(size, "size", 0, self.world.settings.message_bytes_max), b".")
        submit = Submit(key[1], self._sent.get(key, 0) + 1, service_of(service), payload)
        self._sent[key] = submit.session_seq
        self.world.give(key[0], submit)
        self.world.run_until(self.world.now + 1)

    def do_crash(self, daemon: str) -> None:
        self.world.crash(self._node(daemon).rank)

    def do_stop(self, daemon: str) -> None:
        self.world.give(self._node(daemon).rank, Stop())

    def do_pause(self, daemon: str) -> None:
        self.world.pause(self._node(daemon).rank)

    def do_resume(self, daemon: str) -> None:
        if not self._node(daemon).paused:
            raise StoryError(f"{daemon} is not paused: `pause {daemon}` pauses it")
        self.world.resume(self._rank(daemon))

    def do_partition(self, *sides: str) -> None:
        parts = [[self._rank(name) for name in side.split()] for side in " ".join(sides).split("|")]
        ranks = [rank for part in parts for rank in part]
        if len(parts) < 2 or len(set(ranks)) < len(ranks):
            raise StoryError("it needs two sides or more, and each daemon on one of them: `partition a b | c`")
        self.world.network.partition(parts)

    def do_cut(self, pair: str) -> None:
        self.world.network.cut(*self._two(pair))

    def do_heal(self) -> None:
        self.world.network.heal(self.world.now)

    def do_flap(self, pair: str, down_ms: str, up_ms: str, count: str) -> None:
        source, to = self._two(pair)
        since, network = len(self._rows), self.world.network
        for _ in range(times(count, "number of cuts")):
            for one, other in ((source, to), (to, source)):
                network.cut(one, other)
            self._run_busy(milliseconds(down_ms))
            for one, other in ((source, to), (to, source)):
                network.mend(self.world.now, one, other)
            self._run_busy(milliseconds(up_ms))
        views = [row.process.split(":")[0] for row in self._rows[since:] if row.event == "view"]
        told = ", ".join(f"{daemon.name} {views.count(daemon.name)}" for daemon in self.world.cluster.daemons)
        self._said.append(f"the link came and went {count} times until {self.world.now // MS} ms; views: {told}")
        self._told = len(self._rows)

    def _run_busy(self, ms: int) -> None:
        """Let time pass while every daemon sends."""
        end = self.world.now + ms * MS
        while self.world.now < end:
            for node in self.world.living():
                self.do_send(self.world.cluster.daemons[node.rank].name, "agreed", "busy")
            self.world.run_until(min(end, self.world.now + 100 * MS))

    def do_lose(self, pair: str, kind: str = ANY, count: str = "1") -> None:
        self._rules.append(Rule(*self._pair(pair), kind_of(kind), times(count, "number of datagrams"), None))

    def do_delay(self, pair: str, kind: str, ms: str, count: str = "1") -> None:
        left, delay_us = times(count, "number of datagrams"), milliseconds(ms) * MS
        self._rules.append(Rule(*self._pair(pair), kind_of(kind), left, delay_us))

    def do_show(self, *names: str) -> None:
        for name in names:
            if self._clients is not None and (said := self._clients.show(name)) is not None:
                self._said.append(said)
                continue
            if name not in self._names():
                raise StoryError(f"no daemon and no program is called {name!r}")
            node = self._node(name)
            seen = node.core.snapshot(node.clocks.at(self.world.now).mono_us)
            self._said.append(f"{name} is in {seen['state']}: {seen['reason']}; view {{{' '.join(seen['members'])}}}")
            self._said += [f"{name} cannot merge with {stranger}" for stranger in seen["strangers"]]

    def do_count(self, *words: str) -> None:
        name = counter(words)
        counts = [node.core.kit.count.in_words().get(name, 0) for node in self.world.nodes.values()]
        self._said.append(f"{name}: {sum(counts)}")

    def do_rest(self) -> None:
        calm(self.world)
        if settle(self.world, longest_silence(self.world)):
            end(self.world)
            self._said.append(f"at rest at {self.world.now // MS} ms")
        else:
            self._said.append("it never comes to rest")

    def do_check(self) -> None:
        if self._world is None:
            raise StoryError(BEGINNING)
        verdicts = check(self._rows)
        broken = [f"{one.guarantee} {one.process}: {one.detail}" for v in verdicts for one in v.violations]
        held = [verdict.guarantee for verdict in verdicts if verdict.premises]
        self._said += broken or [f"no violation; something to check for {' '.join(held)}"]

    def _pair(self, text: str) -> tuple[int | None, int | None]:
        source, arrow, to = text.partition(">")
        if not arrow:
            raise StoryError(f"{text!r} is no direction: write `a>b`, from a to b, or `*` for any daemon")
        return (
            None if source == ANY else self._rank(source),
            None if to == ANY else self._rank(to),
        )

    def _two(self, text: str) -> tuple[int, int]:
        source, to = self._pair(text)
        if source is None or to is None or source == to:
            raise StoryError(f"{text!r} does not name two daemons: write `a>b`, from a to b")
        return source, to


def _changed(settings: Settings, words: tuple[str, ...]) -> Settings:
    """With what a story says of them."""
    other = dict[str, int | bool]()
    for word in words:
        name, _, value = word.partition("=")
        if name not in Settings.__struct_fields__:
            raise StoryError(f"no setting is called {name!r}: docs/configuration.md lists all, written as NAME=VALUE")
        other[name] = switch(value, name) if name in SWITCHES else number(value, name, *bounds(name))
    return msgspec.structs.replace(settings, **other)


def play_story(text: str) -> str:
    """The same story with the transcripts as they are now."""
    story, lines = Story(), []
    written = text.strip("\n")
    at = 1 + text.index(written[:1])
    for block in written.split("\n\n"):
        commands, _, _ = block.partition("\n----")
        wanted = [
            (number, line)
            for number, line in enumerate(commands.splitlines(), at)
            if line.strip() and not line.startswith("#")
        ]
        lines.append(commands)
        if wanted:
            lines += ["----", *story.play_block(wanted)]
        lines.append("")
        at += len(block.split("\n")) + 1
    return "\n".join(lines)


def builtin_stories() -> list[Path]:
    return sorted((Path(__file__).parent / "stories").glob("*.txt"))
