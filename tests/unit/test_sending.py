"""Datagrams that cannot be sent: the operator is told at once, now and then, and when it is over."""

from __future__ import annotations

from covey.drivers.live.sending import LOOKS_FULL, LOOKS_WELL, LOST_FEW, REPEAT_US, SendingWatch

SECOND = 1_000_000
TO = "10.0.0.2:4801"


def test_what_is_lost_for_good_is_told_at_once_and_then_once_a_minute() -> None:
    sending = SendingWatch()
    told = {second: sending.look({"ENOBUFS": 20 * second}, 0, TO, second * SECOND) for second in range(1, 131)}
    said = {second: texts for second, texts in told.items() if texts}
    assert list(said) == [1, 61, 121]
    assert said[1][0].startswith(
        "datagrams cannot be sent (ENOBUFS: No buffer space available): 20 lost in 0 s, the last one to "
        "10.0.0.2:4801; the system has no room for them: look at its memory"
    )
    assert "1,220 lost in 60 s" in said[61][0]
    assert "2,600 lost in 129 s" in sending.problem, "the status is always of now"


def test_when_it_works_again_that_is_told_once() -> None:
    sending = SendingWatch()
    sending.look({"EPERM": 9}, 0, TO, SECOND)
    told = [sending.look({"EPERM": 9}, 10 * look, TO, (1 + look) * SECOND) for look in range(1, 9)]
    assert told[: LOOKS_WELL - 1] == [[]] * (LOOKS_WELL - 1)
    assert told[LOOKS_WELL - 1] == [f"datagrams leave again: 9 were lost in {LOOKS_WELL} s"]
    assert told[LOOKS_WELL:] == [[]] * (8 - LOOKS_WELL)
    assert sending.problem == ""


def test_nothing_lost_because_nothing_was_sent_is_no_recovery() -> None:
    sending = SendingWatch()
    sending.look({"EPERM": 9}, 0, TO, SECOND)
    assert [sending.look({"EPERM": 9}, 0, TO, look * SECOND) for look in range(2, 20)] == [[]] * 18
    assert sending.problem


def test_a_few_are_not_worth_a_word() -> None:
    sending = SendingWatch()
    assert sending.look({"EPERM": LOST_FEW - 1}, 5, TO, SECOND) == []
    assert sending.look({"EPERM": LOST_FEW - 1}, 9, TO, 2 * SECOND) == []
    assert sending.look({"EPERM": LOST_FEW}, 20, TO, 90 * SECOND) == [], "another few, much later"
    assert sending.problem == ""


def test_a_socket_that_is_full_for_a_moment_is_ordinary() -> None:
    sending = SendingWatch()
    looks = [sending.look({"EAGAIN": 100 * look}, 1_000 * look, TO, look * SECOND) for look in range(1, LOOKS_FULL)]
    assert looks == [[]] * (LOOKS_FULL - 1)
    (text,) = sending.look({"EAGAIN": 100 * LOOKS_FULL}, 9_999, TO, LOOKS_FULL * SECOND)
    assert "net.core.wmem_max" in text


def test_the_error_with_most_losses_is_named_and_one_that_is_unknown_too() -> None:
    sending = SendingWatch()
    (text,) = sending.look({"EAGAIN": 1, "EMSGSIZE": 7}, 0, TO, SECOND)
    assert "EMSGSIZE" in text
    assert "packet_bytes" in text
    (text,) = SendingWatch().look({"unknown error": 7}, 0, TO, SECOND)
    assert "look at the network" in text


def test_trouble_that_comes_again_is_told_again() -> None:
    sending = SendingWatch()
    assert sending.look({"EPERM": 9}, 0, TO, SECOND)
    for look in range(LOOKS_WELL):
        sending.look({"EPERM": 9}, 10 * (look + 1), TO, (2 + look) * SECOND)
    assert sending.look({"EPERM": 19}, 100, TO, REPEAT_US // 2)
