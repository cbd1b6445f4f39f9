"""Whom we hear and who hears us: two-way or not at all, one life at a time, with patience for false alarms."""

from __future__ import annotations

import pytest

from covey.config import Settings
from covey.ids import Life
from covey.protocol.evs.frames import Heard
from covey.protocol.evs.membership.hearing import Hearing, News
from covey.protocol.evs.states import Reason
from tests.unit.protocol.builders import A, B, C, alive

SETTINGS = Settings()
TIMEOUT = SETTINGS.peer_timeout_ms * 1_000
DECAY = SETTINGS.suspicion_decay_ms * 1_000


class Listener:
    """A daemon that listens, with the numbers of its peers' words counted for it."""

    def __init__(self, settings: Settings = SETTINGS) -> None:
        self.hearing = Hearing(A, settings)
        self.number = 0

    def hear(self, now_us: int, *, life: Life = B, echo: int | None = None, boot: int = A.boot) -> News:
        """A word of a peer; with `echo`, it says that it heard this number of ours."""
        self.number += 1
        hears = [] if echo is None else [Heard(A.rank, boot, echo, two_way=False)]
        return self.hearing.on_alive(life, alive(self.number, hears=hears), now_us)

    def suspect_falsely(self, now_us: int) -> None:
        self.hearing.suspect(B)
        self.hear(now_us)

    def patience_us(self) -> int:
        """How long after its last word the peer still counts as heard."""
        heard_us = self.hearing.peers[B.rank].heard_us
        waits = [TIMEOUT * growth for growth in (1, 2, 4, 8, 16)]
        return next(wait for wait in waits if not self.hearing.heard(heard_us + wait + 1))


@pytest.fixture
def listener() -> Listener:
    return Listener()


# --- two-way


def test_a_peer_that_does_not_hear_us_is_not_two_way(listener: Listener) -> None:
    listener.hear(0)
    assert not listener.hearing.two_way(B.rank, 0)


def test_a_peer_that_repeats_a_recent_number_of_ours_is_two_way(listener: Listener) -> None:
    number = listener.hearing.next_number(0)
    listener.hear(10, echo=number)
    assert listener.hearing.two_way(B.rank, 10)


def test_a_number_that_nobody_reaches_shuts_a_peer_out_for_one_timeout_only(listener: Listener) -> None:
    listener.hear(0)
    listener.hearing.on_alive(B, alive(2**62 - 1), 10)
    assert listener.hear(10 + TIMEOUT) is News.STALE
    assert listener.hear(11 + TIMEOUT) is News.FRESH
    assert listener.hear(12 + TIMEOUT) is News.FRESH


def test_an_unknown_peer_is_not_two_way(listener: Listener) -> None:
    assert not listener.hearing.two_way(C.rank, 0)


def test_a_number_counts_from_when_we_sent_it(listener: Listener) -> None:
    number = listener.hearing.next_number(0)
    listener.hear(10, echo=number)
    listener.hear(TIMEOUT, echo=number)
    assert listener.hearing.two_way(B.rank, TIMEOUT)
    listener.hear(TIMEOUT + 1, echo=number)
    assert not listener.hearing.two_way(B.rank, TIMEOUT + 1)


def test_a_silent_peer_is_no_longer_two_way(listener: Listener) -> None:
    listener.hear(0, echo=listener.hearing.next_number(0))
    assert listener.hearing.two_way(B.rank, TIMEOUT)
    assert not listener.hearing.two_way(B.rank, TIMEOUT + 1)


def test_a_number_that_we_never_sent_proves_nothing(listener: Listener) -> None:
    listener.hearing.next_number(0)
    listener.hear(0, echo=77)
    assert not listener.hearing.two_way(B.rank, 0)


def test_a_number_of_our_earlier_life_proves_nothing(listener: Listener) -> None:
    listener.hear(0, echo=listener.hearing.next_number(0), boot=A.boot + 1)
    assert not listener.hearing.two_way(B.rank, 0)


def test_an_older_number_that_comes_later_takes_nothing_back(listener: Listener) -> None:
    old, new = listener.hearing.next_number(0), listener.hearing.next_number(TIMEOUT)
    listener.hear(TIMEOUT, echo=new)
    listener.hear(TIMEOUT + 1, echo=old)
    assert listener.hearing.two_way(B.rank, 2 * TIMEOUT)


def test_numbers_sent_long_ago_are_forgotten(listener: Listener) -> None:
    number = listener.hearing.next_number(0)
    later = TIMEOUT * SETTINGS.peer_timeout_growth_max + 1
    listener.hearing.next_number(later)
    listener.hear(later, echo=number)
    assert not listener.hearing.two_way(B.rank, later)


def test_our_own_list_says_whom_we_hear_and_who_hears_us(listener: Listener) -> None:
    number = listener.hearing.next_number(0)
    listener.hear(0, life=C)
    listener.hear(0, echo=number)
    assert listener.hearing.heard(0) == (
        Heard(B.rank, B.boot, 2, two_way=True),
        Heard(C.rank, C.boot, 1, two_way=False),
    )
    assert listener.hearing.heard(TIMEOUT + 1) == ()


def test_neighbours_are_what_each_says_of_itself(listener: Listener) -> None:
    number = listener.hearing.next_number(0)
    ours = Heard(A.rank, A.boot, number, two_way=True)
    listener.hearing.on_alive(B, alive(hears=[ours, Heard(C.rank, C.boot, 1, two_way=True)]), 0)
    listener.hearing.on_alive(C, alive(hears=[ours, Heard(B.rank, B.boot, 1, two_way=False)]), 0)
    near = listener.hearing.neighbours(0)
    assert near[A.rank] == {B.rank, C.rank}
    assert C.rank in near[B.rank]
    assert B.rank not in near[C.rank]


# --- lives and numbers


def test_the_first_word_of_a_life_is_news_and_the_next_is_fresh(listener: Listener) -> None:
    assert [listener.hear(0), listener.hear(1)] == [News.NEW_LIFE, News.FRESH]


def test_a_word_that_was_overtaken_is_stale(listener: Listener) -> None:
    hearing = listener.hearing
    assert [hearing.on_alive(B, alive(number), 0) for number in (5, 5, 4, 6)] == [
        News.NEW_LIFE,
        News.STALE,
        News.STALE,
        News.FRESH,
    ]
    assert hearing.peers[B.rank].alive.number == 6


def test_an_older_life_is_ignored(listener: Listener) -> None:
    reborn = Life(B.rank, B.boot + 1)
    listener.hear(0, life=reborn)
    assert listener.hear(1, life=B) is News.STALE
    assert listener.hearing.peers[B.rank].life == reborn


def test_a_lower_boot_id_is_believed_once_the_later_life_has_long_been_silent(listener: Listener) -> None:
    listener.hear(0, life=Life(B.rank, B.boot + 1))
    assert listener.hear(TIMEOUT, life=B) is News.STALE
    assert listener.hear(TIMEOUT + 1, life=B) is News.NEW_LIFE


def test_a_new_life_does_not_displace_a_well_connected_one_without_proof(listener: Listener) -> None:
    listener.hear(0, echo=listener.hearing.next_number(0))
    assert listener.hear(1, life=Life(B.rank, B.boot + 1)) is News.UNPROVEN
    assert listener.hearing.peers[B.rank].life == B
    assert listener.hearing.two_way(B.rank, 1)


def test_a_new_life_that_echoes_a_recent_number_takes_the_place_of_the_old_one(listener: Listener) -> None:
    number = listener.hearing.next_number(0)
    listener.hear(0, echo=number)
    assert listener.hear(1, life=Life(B.rank, B.boot + 1), echo=number) is News.NEW_LIFE
    assert listener.hearing.peers[B.rank].life == Life(B.rank, B.boot + 1)


def test_a_new_life_that_echoes_an_old_number_proves_nothing(listener: Listener) -> None:
    old = listener.hearing.next_number(0)
    listener.hear(2 * TIMEOUT, echo=listener.hearing.next_number(2 * TIMEOUT))
    assert listener.hear(2 * TIMEOUT, life=Life(B.rank, B.boot + 1), echo=old) is News.UNPROVEN


def test_a_new_life_that_echoes_a_number_of_our_earlier_life_proves_nothing(listener: Listener) -> None:
    number = listener.hearing.next_number(0)
    listener.hear(0, echo=number)
    assert listener.hear(1, life=Life(B.rank, B.boot + 1), echo=number, boot=A.boot + 1) is News.UNPROVEN


def test_a_new_life_of_a_silent_daemon_needs_no_proof(listener: Listener) -> None:
    listener.hear(0, echo=listener.hearing.next_number(0))
    assert listener.hear(2 * TIMEOUT, life=Life(B.rank, B.boot + 1)) is News.NEW_LIFE
    assert not listener.hearing.two_way(B.rank, 2 * TIMEOUT)


# --- hints


def test_a_hint_ends_two_way_at_once(listener: Listener) -> None:
    listener.hear(0, echo=listener.hearing.next_number(0))
    assert listener.hearing.hint_gone(B, Reason.PEER_GOODBYE)
    assert not listener.hearing.two_way(B.rank, 0)


def test_a_hint_is_void_after_a_later_word(listener: Listener) -> None:
    listener.hear(0, echo=listener.hearing.next_number(0))
    listener.hearing.hint_gone(B, Reason.PEER_REFUSED)
    listener.hear(1)
    assert listener.hearing.two_way(B.rank, 1)


def test_a_hint_is_not_void_after_a_stale_word(listener: Listener) -> None:
    hearing = listener.hearing
    number = hearing.next_number(0)
    hearing.on_alive(B, alive(5, hears=[Heard(A.rank, A.boot, number, two_way=True)]), 0)
    hearing.hint_gone(B, Reason.PEER_GOODBYE)
    hearing.on_alive(B, alive(5), 1)
    assert not hearing.two_way(B.rank, 1)


def test_a_hint_about_another_life_is_ignored(listener: Listener) -> None:
    listener.hear(0)
    assert not listener.hearing.hint_gone(Life(B.rank, B.boot + 1), Reason.PEER_REFUSED)
    assert not listener.hearing.hint_gone(C, Reason.PEER_REFUSED)


# --- patience


def test_a_false_suspicion_doubles_the_patience_up_to_its_bound(listener: Listener) -> None:
    listener.hear(0)
    waits = [listener.patience_us()]
    for now in range(1, 6):
        listener.suspect_falsely(now)
        waits.append(listener.patience_us())
    assert waits == [TIMEOUT * growth for growth in (1, 2, 4, 8, 8, 8)]


def test_a_suspicion_of_an_earlier_life_was_not_false(listener: Listener) -> None:
    listener.hear(0)
    listener.hearing.suspect(B)
    reborn = Life(B.rank, B.boot + 1)
    listener.hear(1, life=reborn)
    assert listener.hearing.heard(1 + TIMEOUT + 1) == ()


def test_one_suspicion_counts_once(listener: Listener) -> None:
    listener.hear(0)
    listener.suspect_falsely(1)
    listener.hear(2)
    assert listener.patience_us() == 2 * TIMEOUT


def test_patience_shrinks_one_step_for_each_quiet_period(listener: Listener) -> None:
    listener.hear(0)
    for now in (1, 2, 3):
        listener.suspect_falsely(now)
    waits = []
    for period in range(1, 6):
        listener.hearing.decay([B.rank], 3 + period * DECAY)
        waits.append(listener.patience_us())
    assert waits == [TIMEOUT * growth for growth in (4, 2, 1, 1, 1)]


def test_a_link_whose_numbers_come_back_late_is_given_more_time(listener: Listener) -> None:
    number = listener.hearing.next_number(0)
    listener.hear(TIMEOUT, echo=number)
    assert listener.hearing.two_way(B.rank, TIMEOUT + 1)


def test_the_time_given_to_a_slow_link_is_bounded(listener: Listener) -> None:
    late, most = 3 * TIMEOUT, TIMEOUT * SETTINGS.peer_timeout_growth_max
    for now in range(0, 20 * late, late):
        number = listener.hearing.next_number(now)
        listener.hear(now + late, echo=number)
    last = listener.hearing.peers[B.rank].heard_us
    assert listener.hearing.heard(last + late) != ()
    assert listener.hearing.heard(last + most + 1) == ()


def test_patience_does_not_shrink_while_its_peer_is_away(listener: Listener) -> None:
    """Otherwise who is held down for long would be suspected as soon as it is back."""
    listener.hear(0)
    listener.suspect_falsely(1)
    for now in range(0, 5 * DECAY, DECAY // 4):
        listener.hearing.decay([], now)
    assert listener.patience_us() == 2 * TIMEOUT
    listener.hearing.decay([B.rank], 6 * DECAY)
    assert listener.patience_us() == TIMEOUT


def test_patience_does_not_shrink_before_its_time(listener: Listener) -> None:
    listener.hear(0)
    listener.suspect_falsely(1)
    listener.hearing.decay([B.rank], DECAY)
    assert listener.patience_us() == 2 * TIMEOUT


# --- overdue


def echo_every(listener: Listener, interval_us: int, times: int) -> int:
    """A peer that answers each of our words after half an interval; when the last answer came."""
    for turn in range(times):
        number = listener.hearing.next_number(turn * interval_us)
        listener.hear(turn * interval_us + interval_us // 2, echo=number)
    return (times - 1) * interval_us + interval_us // 2


INTERVAL = SETTINGS.alive_interval_ms * 1_000


def test_words_that_come_in_time_are_not_overdue(listener: Listener) -> None:
    last = echo_every(listener, INTERVAL, 10)
    assert not listener.hearing.is_overdue([B], last + INTERVAL)


def test_a_word_is_overdue_when_half_the_timeout_is_over(listener: Listener) -> None:
    last = echo_every(listener, INTERVAL, 10)
    assert listener.hearing.is_overdue([B], last + TIMEOUT // 2)


def test_an_echo_is_overdue_where_words_come_without_one(listener: Listener) -> None:
    last = echo_every(listener, INTERVAL, 10)
    listener.hear(last + TIMEOUT // 2)
    assert listener.hearing.is_overdue([B], last + TIMEOUT // 2)


def test_nobody_waits_for_a_word_of_a_stranger(listener: Listener) -> None:
    echo_every(listener, INTERVAL, 10)
    assert not listener.hearing.is_overdue([A, C], TIMEOUT * 10)


def test_where_words_take_long_they_are_overdue_later(listener: Listener) -> None:
    slow = 3 * INTERVAL
    last = echo_every(listener, slow, 20)
    assert not listener.hearing.is_overdue([B], last - slow // 2 + TIMEOUT // 2 + 1)


def test_who_does_not_name_our_last_word_has_lost_it_and_waits_for_us(listener: Listener) -> None:
    last = echo_every(listener, INTERVAL, 10)
    number = listener.hearing.next_number(last)
    listener.hear(last + INTERVAL, echo=number - 1)
    assert listener.hearing.waits_for_us(B, last + INTERVAL)
    listener.hear(last + INTERVAL + 1, echo=number)
    assert not listener.hearing.waits_for_us(B, last + INTERVAL + 1)


def test_our_last_word_may_be_on_its_way_for_twice_the_shortest_time(listener: Listener) -> None:
    last = echo_every(listener, INTERVAL, 10)
    number = listener.hearing.next_number(last)
    listener.hear(last + INTERVAL - 1, echo=number - 1)
    assert not listener.hearing.waits_for_us(B, last + INTERVAL - 1)


def test_who_has_never_heard_us_is_not_waited_for(listener: Listener) -> None:
    listener.hearing.next_number(0)
    listener.hear(TIMEOUT)
    assert not listener.hearing._misses_our_last(B, TIMEOUT)


def test_where_words_begin_to_take_long_nobody_waits_for_us_after_a_while(listener: Listener) -> None:
    slow_us = 4 * SETTINGS.alive_fast_ms * 1_000
    for turn in range(200):
        now_us = turn * INTERVAL
        number = listener.hearing.next_number(now_us)
        age_us = 1_000 if turn < 20 else slow_us
        listener.hear(now_us + age_us, echo=number)
    number = listener.hearing.next_number(200 * INTERVAL)
    listener.hear(200 * INTERVAL + slow_us, echo=number - 1)
    assert not listener.hearing.waits_for_us(B, 200 * INTERVAL + slow_us)


def test_a_member_that_was_never_heard_is_silent(listener: Listener) -> None:
    assert listener.hearing.why_gone(B.rank, 0) is Reason.PEER_SILENT
