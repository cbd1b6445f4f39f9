"""First-in first-out within each session of one view: which fifo numbers are done, which bundles wait.

A fifo number is *done* when its bundle has left the order. Reliable bundles may be done ahead of earlier ones, so what
is done is a prefix plus a set. Fragments of a message stay held until the message is delivered as one unit.

Invariants: F1 the set of what is done ahead does not touch the prefix; F2 what is held and done is an earlier fragment.
"""

from __future__ import annotations

from typing import Final

import msgspec

from covey.protocol.values import Bundle, Delivery, Service

EARLY: Final = (Service.RELIABLE, Service.FIFO)
"""What need not wait for its place in the agreed order."""


class SessionOrder:
    def __init__(self) -> None:
        self.done_to = 0
        self._done_ahead: set[int] = set()
        self.held: dict[int, Bundle] = {}
        """By fifo number: what waits, and earlier fragments of what waits."""
        self._delivered_ahead: set[int] = set()
        """Messages in fragments that were delivered while something before them was not done."""

    def hold(self, bundle: Bundle) -> bool:
        """Keep a bundle until its message is delivered; False if its fifo number is taken already."""
        number, held = bundle.fifo_number, self.held
        if number <= self.done_to or number in held or number in self._done_ahead:
            return False
        held[number] = bundle
        return True

    def has_prefix_of(self, bundle: Bundle) -> bool:
        """Whether everything this session sent before the bundle is done."""
        return self.done_to >= bundle.fifo_number - 1

    def next_held(self) -> Bundle | None:
        return self.held.get(self.done_to + 1)

    def whole(self, bundle: Bundle) -> Delivery | None:
        """The message this bundle belongs to, if all its fragments are here."""
        if bundle.fragments == 1:
            return Delivery(bundle, (bundle.payload,))
        first = bundle.fifo_number - bundle.fragment
        last = self.held.get(first + bundle.fragments - 1)
        if last is None or len(self.held) < bundle.fragments:
            return None
        payloads, has_heads = [], False
        for fragment in range(bundle.fragments):
            part = self.held.get(first + fragment)
            if part is None or (part.fragment, part.fragments) != (fragment, bundle.fragments):
                return None
            payloads.append(part.payload)
            has_heads = has_heads or part.is_meta
        if has_heads and not last.is_meta:  # Heads that counted here, and others whose content was recovered.
            last = msgspec.structs.replace(last, is_meta=True)
        return Delivery(last, tuple(payloads))

    def _drop_unfinished(self) -> None:
        for number in [number for number, one in self.held.items() if one.passed]:
            del self.held[number]

    def finish(self, delivery: Delivery) -> None:
        """The message is delivered: its fragments are done and no longer held."""
        last = delivery.bundle
        if last.fragments == 1 and last.fifo_number == self.done_to + 1 and not self._done_ahead:
            del self.held[last.fifo_number]  # The common case, at once.
            last.passed = True
            self.done_to += 1
            return
        for number in range(last.fifo_number - last.fragments + 1, last.fifo_number + 1):
            self.held.pop(number).passed = True
            self._mark(number)
        if last.fragments > 1:
            self._let_go_of_earlier(last)

    def _let_go_of_earlier(self, last: Bundle) -> None:
        """A message that was begun again may have left fragments of its first beginning, or they come later (W15)."""
        for number in [number for number, one in self.held.items() if one.passed]:
            if self.held[number].session_seq == last.session_seq:
                del self.held[number]
        if self._done_ahead:
            self._delivered_ahead.add(last.session_seq)
        else:
            self._delivered_ahead.clear()

    def go_past(self, bundle: Bundle) -> None:
        """An earlier fragment leaves the order silently; it stays held until its message is delivered.

        What is held of a message that was begun again is let go when the next one begins (rule W15).
        """
        if bundle.fragment == 0:
            self._drop_unfinished()
        bundle.passed = True
        self._mark(bundle.fifo_number)
        if bundle.session_seq in self._delivered_ahead:
            del self.held[bundle.fifo_number]
        if not self._done_ahead:
            self._delivered_ahead.clear()

    def is_within_a_message(self) -> bool:
        """Whether earlier fragments of a message have left the order, and its last has not."""
        return any(bundle.passed for bundle in self.held.values())

    def check(self) -> None:
        assert all(number > self.done_to + 1 for number in self._done_ahead), "F1"
        assert all(bundle.passed for number, bundle in self.held.items() if self._is_done(number)), "F2"

    def _is_done(self, number: int) -> bool:
        return number <= self.done_to or number in self._done_ahead

    def _mark(self, number: int) -> None:
        ahead = self._done_ahead
        if number > self.done_to + 1:
            ahead.add(number)
        elif number > self.done_to:
            self.done_to = number
            while ahead and self.done_to + 1 in ahead:
                self.done_to += 1
                ahead.remove(self.done_to)
