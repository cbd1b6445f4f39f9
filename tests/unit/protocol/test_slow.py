"""Silent and slow clients by themselves: what is done about whom, one by one and all together."""

from __future__ import annotations

import pytest

from covey.config import Settings
from covey.protocol.asked import Open
from covey.protocol.deadlines import Deadline
from covey.protocol.dialects.entries import Entry
from covey.protocol.dialects.native import NATIVE
from covey.protocol.inputs import ClientConnected
from covey.protocol.notices import DaemonSpoke
from covey.protocol.session.outbox import Total
from covey.protocol.session.session import ClientSession, Phase
from covey.protocol.session.slow import BLOCK_GROUPS, LARGE_BYTES, LOOK_US, REMEDIES_MAX, Remedy, SlowClients, requests
from covey.protocol.values import Policy
from tests.unit.protocol.builders import kit

LIMIT = 24_000
BUDGET = 50_000
KIT = kit(settings=Settings(session_receive_bytes=LIMIT, message_bytes_max=3_000))
TOTAL = Total()


@pytest.fixture
def slow() -> SlowClients:
    KIT.deadlines.clear(*Deadline)
    TOTAL.size = 0
    return SlowClients(KIT, TOTAL, BUDGET)


def session(waiting: int = 0, policy: Policy = "block", since_us: int = 0, connection: int = 1) -> ClientSession:
    """An open session for which so many bytes wait."""
    one = ClientSession(ClientConnected(connection), 100 + connection, NATIVE, since_us, TOTAL)
    one.open(Open("slow", policy=policy), "slow@a:1.101", 3_000, 8_192)
    one.outbox.put(Entry(DaemonSpoke(), waiting, (bytes(waiting),)), since_us)
    return one


@pytest.mark.parametrize(
    ("waiting", "policy", "remedy"),
    [
        (LIMIT // 4, "block", None),
        (LIMIT // 4 + 1, "block", Remedy.BLOCK),
        (LIMIT, "disconnect", None),
        (LIMIT + 1, "disconnect", Remedy.END),
        (LIMIT + 1, "block", Remedy.END),
    ],
)
def test_how_much_may_wait(slow: SlowClients, waiting: int, policy: Policy, remedy: Remedy | None) -> None:
    assert slow.after_put(session(waiting, policy), now_us=1) is remedy


def test_what_came_in_this_step_ends_nobody(slow: SlowClients) -> None:
    one = session(LIMIT + 1, "disconnect", since_us=7)
    assert slow.after_put(one, now_us=7) is None
    slow.check([one])


def test_what_came_over_several_steps_and_is_beyond_the_bound_breaks_a_rule(slow: SlowClients) -> None:
    one = session(LIMIT, "disconnect")
    one.outbox.put(Entry(DaemonSpoke(), 1, (b"x",)), 1)
    slow.after_put(one, now_us=1)
    with pytest.raises(AssertionError, match="W1"):
        slow.check([one])


def test_who_blocks_is_looked_at_until_it_has_caught_up(slow: SlowClients) -> None:
    one = session(LIMIT // 2)
    assert slow.after_put(one, now_us=5) is Remedy.BLOCK
    assert slow.after_put(one, now_us=6) is None
    assert slow.blocking() == [one]
    assert KIT.deadlines.at(Deadline.CLIENTS) == 5 + LOOK_US
    assert slow.look(now_us=LOOK_US) == []
    one.outbox.pull(LIMIT)
    slow.after_pull(one)
    assert KIT.deadlines.at(Deadline.CLIENTS) == 0
    assert slow.look(now_us=LOOK_US) == [(one, Remedy.UNBLOCK)]
    assert slow.look(now_us=LOOK_US) == []
    assert slow.blocking() == []


def test_who_blocks_for_too_long_is_ended(slow: SlowClients) -> None:
    one = session(LIMIT // 2)
    slow.after_put(one, now_us=0)
    limit_us = KIT.settings.block_max_ms * 1_000
    assert slow.look(limit_us - 1) == []
    assert slow.look(limit_us) == [(one, Remedy.END)]


def test_who_says_nothing_is_rejected(slow: SlowClients) -> None:
    one, said_hello = ClientSession(ClientConnected(1), 101, NATIVE, 0, TOTAL), session(connection=2)
    slow.on_connected(said_hello, 0)
    slow.on_connected(one, 0)
    limit_us = KIT.settings.hello_timeout_ms * 1_000
    assert slow.look(limit_us - 1) == []
    assert slow.look(limit_us) == [(one, Remedy.REJECT)]


def test_nobody_is_looked_at_where_all_keep_up(slow: SlowClients) -> None:
    slow.after_put(session(), now_us=0)
    slow.look_again(now_us=0)
    assert not KIT.deadlines.is_set(Deadline.CLIENTS)
    slow.on_connected(ClientSession(ClientConnected(1), 101, NATIVE, 0, TOTAL), 0)
    slow.look_again(now_us=0)
    assert KIT.deadlines.is_set(Deadline.CLIENTS)


def test_who_is_gone_is_looked_at_no_more(slow: SlowClients) -> None:
    one = session(LIMIT // 2)
    one.lag_max_us = 1
    slow.on_connected(one, 0)
    slow.after_put(one, now_us=0)
    slow.on_gone(one)
    KIT.deadlines.clear(Deadline.CLIENTS)
    slow.look_again(now_us=0)
    assert not KIT.deadlines.is_set(Deadline.CLIENTS)
    assert not slow.has_large


def test_of_many_who_said_nothing_a_step_rejects_a_bounded_number(slow: SlowClients) -> None:
    many = [
        ClientSession(ClientConnected(number), 100 + number, NATIVE, 0, TOTAL)
        for number in range(2 * REMEDIES_MAX + 10)
    ]
    for one in many:
        slow.on_connected(one, 0)
    now_us = KIT.settings.hello_timeout_ms * 1_000
    counts, found = [], []
    for _ in range(3):
        KIT.deadlines.clear(Deadline.CLIENTS)
        remedies = slow.look(now_us)
        counts.append((len(remedies), KIT.deadlines.at(Deadline.CLIENTS)))
        found += [one for one, remedy in remedies if remedy is Remedy.REJECT]
    assert counts == [(REMEDIES_MAX, now_us), (REMEDIES_MAX, now_us), (10, None)]
    assert found == many


# --- how long it may wait


def test_what_waits_for_longer_than_allowed_ends_a_session_however_little_it_is(slow: SlowClients) -> None:
    one = session(1)
    one.lag_max_us = 700_000
    assert slow.after_put(one, now_us=0) is None
    assert KIT.deadlines.at(Deadline.CLIENTS) == LOOK_US
    assert slow.look(699_999) == []
    slow.look_again(699_999)
    assert KIT.deadlines.is_set(Deadline.CLIENTS)
    assert slow.look(700_000) == [(one, Remedy.END)]


def test_who_reads_in_time_may_go_on(slow: SlowClients) -> None:
    one = session(1)
    one.lag_max_us = 700_000
    slow.after_put(one, now_us=0)
    one.outbox.pull(1)
    one.outbox.put(Entry(DaemonSpoke(), 1, (b"x",)), 600_000)
    assert slow.look(700_000) == []
    one.outbox.pull(1)
    assert slow.look(1_300_000) == []
    KIT.deadlines.clear(Deadline.CLIENTS)
    slow.look_again(1_300_000)
    assert not KIT.deadlines.is_set(Deadline.CLIENTS)


# --- all together


def test_the_longest_backlog_is_found(slow: SlowClients) -> None:
    sessions = [session(size, connection=at) for at, size in enumerate((5_000, 9_000, 9_000, LARGE_BYTES - 1))]
    for one in sessions:
        slow.after_put(one, now_us=0)
    slow.check(sessions)
    assert slow.longest(1) == [sessions[1]]
    assert slow.longest(9) == [sessions[1], sessions[2], sessions[0]]
    sessions[1].outbox.pull(9_000)
    slow.after_pull(sessions[1])
    sessions[2].phase = Phase.ENDING
    assert slow.longest(9) == [sessions[0]]


def test_who_has_drained_is_no_longer_among_the_large_ones(slow: SlowClients) -> None:
    one = session(LARGE_BYTES)
    slow.after_put(one, now_us=0)
    assert slow.longest(9) == [one]
    one.outbox.pull(LARGE_BYTES)
    slow.after_pull(one)
    assert slow.longest(9) == []
    assert not slow.has_large


def test_what_a_session_has_said_makes_its_backlog_longer(slow: SlowClients) -> None:
    told, talker = session(9_000, connection=1), session(1, connection=2)
    slow.after_put(told, now_us=0)
    talker.words_bytes = 10_000
    slow.note_backlog(talker)
    assert slow.longest(9) == [talker, told]
    slow.check([told, talker])
    talker.words_bytes = 0
    slow.note_backlog(talker)
    assert slow.longest(9) == [told]


def test_a_large_backlog_that_nobody_knows_breaks_a_rule(slow: SlowClients) -> None:
    with pytest.raises(AssertionError, match="W3"):
        slow.check([session(LARGE_BYTES)])


@pytest.mark.parametrize(("size", "is_over"), [(BUDGET, False), (BUDGET + 1, True)])
def test_the_bound_of_all_together(slow: SlowClients, size: int, is_over: bool) -> None:
    TOTAL.size = size
    assert slow.is_over_budget is is_over


def test_a_configured_bound_goes_before_that_of_the_machine() -> None:
    configured = kit(settings=Settings(clients_bytes_max=LIMIT, session_receive_bytes=LIMIT, message_bytes_max=3_000))
    total = Total()
    slow = SlowClients(configured, total, BUDGET)
    total.size = LIMIT + 1
    assert slow.is_over_budget


def test_one_request_names_few_groups() -> None:
    groups = [f"g{number:03}" for number in range(2 * BLOCK_GROUPS + 1)]
    assert [len(one) for one in requests(groups)] == [BLOCK_GROUPS, BLOCK_GROUPS, 1]
    assert [group for one in requests(reversed(groups)) for group in one] == groups
