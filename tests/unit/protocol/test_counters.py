"""What is counted, and under which words."""

from __future__ import annotations

from covey.protocol.counters import Count, Counter, Family


def test_a_count_names_only_what_happened() -> None:
    count = Count()
    count.add(Counter.TOKEN_RESENT, 0)
    count.add(Counter.TOKEN_RESENT, 2)
    count.add(Counter.TOKEN_LOST)
    assert count == {Counter.TOKEN_RESENT: 2, Counter.TOKEN_LOST: 1}
    count.add(Counter.TOKEN_PARKED, 0)
    assert Counter.TOKEN_PARKED not in count


def test_a_family_is_counted_by_reason_and_together() -> None:
    count, family = Count(), Family.FRAME_REJECTED
    for reason, amount in (("another cluster", 2), ("another version", 1), ("another cluster", 1)):
        count.add(family.of(reason), amount)
    count.add(Family.CLIENT_ENDED.of("another version"))
    assert (count[family.of("another cluster")], count.of(family)) == (3, 4)


def test_words_say_the_counter_and_its_reason() -> None:
    count = Count()
    count.add(Family.DATAGRAM_NOT_SENT.of("EPERM"), 2)
    count.add(Counter.PORT_REFUSED)
    assert count.in_words() == {"datagram not sent: EPERM": 2, "port refused": 1}


def test_no_two_counters_have_the_same_words() -> None:
    words = [one.value for one in (*Counter, *Family)]
    assert len(words) == len(set(words)) == len(Counter.__members__) + len(Family.__members__)
