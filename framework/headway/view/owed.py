"""How many of the bookings that are owed are made before an answer is given.

A policy gets all of them. A question between two steps gets those that can be made in a short time, from the
head of the queue on, and does not make the scheduler wait for the others. Where one alone would take long,
because of the size of the machine, none is made for a question.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, thread_time

#: Called before each booking that is owed; raises :class:`Enough` once no more are to be made.
Check = Callable[[], object]


class Enough(Exception):
    """No more work is to be done for this answer."""


class TooLarge(Enough):
    """Of this machine, as it is now, no booking is made for an answer: one alone takes long."""


def all_of_them() -> None:
    """No booking is left out."""


def none_more() -> None:
    """No further booking is made."""
    raise Enough


def short_of_time(seconds: float) -> Check:
    """A check that allows so many seconds of this thread's processor time, from now on."""
    end, passed = thread_time() + seconds, perf_counter() + seconds

    def check() -> None:
        # To ask for the thread's own time takes longer than many a booking.
        if perf_counter() >= passed and thread_time() >= end:
            raise Enough

    return check
