"""Silent and slow clients by themselves: what is done about whom, and which senders wait."""

from __future__ import annotations

import msgspec
import pytest

from covey.config import Settings
from covey.ids import Life
from covey.protocol.deadlines import Deadline
from covey.protocol.session.session import Phase, Session
from covey.protocol.session.slow import BLOCK_GROUPS, LOOK_US, Remedy, SlowClients, requests
from covey.protocol.values import Bundle, Kind
from covey.protocol.wire.session import Policy
from tests.unit.protocol.builders import A, B, bundle, kit

LIMIT = 24_000
KIT = kit(settings=Settings(session_receive_bytes=LIMIT, message_bytes_max=3_000))


@pytest.fixture
def slow() -> SlowClients:
    KIT.deadlines.clear(*Deadline)
    return SlowClients(KIT)


def session(waiting: int = 0, policy: Policy = "block", since_us: int = 0) -> Session:
    """An open session for which so many bytes wait."""
    one = Session(1, 101, since_us)
    one.open("slow", "slow@a:1.101", 1, policy, 3_000)
    one.outbox.put((bytes(waiting),), waiting, since_us)
    return one


def change(kind: Kind, *groups: str, origin: Life = A) -> Bundle:
    return msgspec.structs.replace(bundle(1, origin=origin, session=101, groups=groups), kind=kind)


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


def test_who_blocks_is_looked_at_until_it_has_caught_up(slow: SlowClients) -> None:
    one = session(LIMIT // 2)
    assert slow.after_put(one, now_us=5) is Remedy.BLOCK
    assert slow.after_put(one, now_us=6) is None
    assert KIT.deadlines.at(Deadline.CLIENTS) == 5 + LOOK_US
    assert slow.look(one, now_us=LOOK_US) is None
    one.outbox.pull(LIMIT)
    slow.after_pull(one)
    assert KIT.deadlines.at(Deadline.CLIENTS) == 0
    assert slow.look(one, now_us=LOOK_US) is Remedy.UNBLOCK
    assert slow.look(one, now_us=LOOK_US) is None


def test_who_blocks_for_too_long_is_ended(slow: SlowClients) -> None:
    one = session(LIMIT // 2)
    slow.after_put(one, now_us=0)
    limit_us = KIT.settings.block_max_ms * 1_000
    assert slow.look(one, limit_us - 1) is None
    assert slow.look(one, limit_us) is Remedy.END


def test_who_says_nothing_is_rejected(slow: SlowClients) -> None:
    one = Session(1, 101, 0)
    limit_us = KIT.settings.hello_timeout_ms * 1_000
    assert slow.look(one, limit_us - 1) is None
    assert slow.look(one, limit_us) is Remedy.REJECT


def test_nobody_is_looked_at_where_all_keep_up(slow: SlowClients) -> None:
    over = session()
    over.phase = Phase.ENDING
    slow.look_again([session(), over], now_us=0)
    assert not KIT.deadlines.is_set(Deadline.CLIENTS)
    slow.look_again([Session(1, 101, 0)], now_us=0)
    assert KIT.deadlines.is_set(Deadline.CLIENTS)


@pytest.mark.parametrize("kind", [Kind.UNBLOCK, Kind.DISCONNECT])
def test_senders_wait_for_the_last_of_those_who_asked(slow: SlowClients, kind: Kind) -> None:
    slow.on_change(change(Kind.BLOCK, "room", "hall"))
    slow.on_change(change(Kind.BLOCK, "room", origin=B))
    slow.on_change(change(kind))
    slow.check([])
    assert slow.blocked() == ["room"]
    assert slow.must_wait(("hall", "room"))
    assert not slow.must_wait(("hall",))
    slow.on_change(change(kind, origin=B))
    assert slow.blocked() == []


def test_requests_end_with_their_view(slow: SlowClients) -> None:
    slow.on_change(change(Kind.BLOCK, "room"))
    slow.on_view()
    assert not slow.must_wait(("room",))


def test_one_request_names_few_groups() -> None:
    groups = [f"g{number:03}" for number in range(2 * BLOCK_GROUPS + 1)]
    assert [len(one) for one in requests(groups)] == [BLOCK_GROUPS, BLOCK_GROUPS, 1]
    assert [group for one in requests(reversed(groups)) for group in one] == groups
