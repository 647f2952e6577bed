"""Who leads: what a lease says, when a stand-by takes over, and until when a leader may act.

All of it is told the time (seconds of a clock that never goes back and that counts while the process or the
machine is stopped, :func:`lasting`) and does no I/O.

================  ==========================================================================
stand-by          reads the leader's lease. It takes over when the leader gave the lease up,
                  or has not renewed it for ``patience`` seconds
leader            renews its lease, and acts only while the last renewal is younger than
                  :data:`PART` of ``patience``: older, it must renew first
given up          the lease could not be renewed, or is another daemon's: nothing is done
                  any more. No way leads from here to another role
================  ==========================================================================

The pause between a look at the lease and the command that follows it is nothing that a lease can close: a
process may be stopped there for any time. That is what the epoch in each write is for.
"""

from __future__ import annotations

import enum
import time

import msgspec

from headway.errors import Held

#: Of the patience: how long a leader acts after a renewal, and how often it renews.
PART, OFTEN = 0.8, 0.1


def lasting() -> float:
    """Seconds of a clock that goes on while the process is stopped or the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Role(enum.StrEnum):
    """What a daemon is."""

    #: It runs without a lease: there is no stand-by.
    ALONE = "alone"
    STANDBY = "stand-by"
    LEADER = "leader"
    GAVE_UP = "gave up"


class Word(msgspec.Struct, frozen=True):
    """What a lease says."""

    #: Of the leader; of a stand-by, the highest that it knows of.
    epoch: int
    #: The process that wrote it, for a person, and to tell processes apart.
    holder: str
    #: How often it was renewed.
    beats: int = 0
    #: Whether its holder leads; else it stands by.
    leads: bool = True
    #: Whether its holder ended in good order.
    released: bool = False


class Deposed(Held):
    """This daemon does not lead any more."""


class Watch:
    """A stand-by's view of the leader."""

    def __init__(self, patience: float, now: float) -> None:
        """``patience``: seconds without a sign of life after which the leader is given up."""
        self.patience = patience
        #: The last word, None: none was ever read.
        self.word: Word | None = None
        self._alive = now

    def hear(self, word: Word | None, now: float) -> None:
        """The lease was read at ``now``; it said ``word``, or there was none."""
        if word is not None and word != self.word:
            self.word, self._alive = word, max(self._alive, now)

    def blind(self, now: float) -> None:
        """What both daemons keep the lease in did not answer: the leader could not renew it either, so this
        time does not count as silence."""
        self._alive = now

    def silent(self, now: float) -> float:
        """Seconds since the last sign of life."""
        return max(0.0, now - self._alive)

    def is_over(self, now: float) -> bool:
        """Whether the leader gave up its lease, or was silent for too long."""
        if self.word is not None and self.word.released:
            return True
        return self.silent(now) >= self.patience


class Tenure:
    """A leader's view of its own lease."""

    def __init__(self, word: Word, patience: float, now: float) -> None:
        """``word``: what the lease says since ``now``, the time before it was written."""
        self.word = word
        self.role = Role.LEADER
        #: Why it leads no more.
        self.why = ""
        self._length = PART * patience
        self._renewed = now

    def renewed(self, word: Word, asked: float) -> None:
        """The lease was renewed; ``asked``: the time before that was begun."""
        if self.role is Role.LEADER:
            self.word, self._renewed = word, max(self._renewed, asked)

    def is_overdue(self, now: float) -> bool:
        """Whether the leader must renew its lease before it acts."""
        return now - self._renewed > self._length

    def since_renewal(self, now: float) -> float:
        return max(0.0, now - self._renewed)

    def give_up(self, why: str) -> None:
        """It leads no more, for good; the first reason stays."""
        if self.role is Role.LEADER:
            self.role, self.why = Role.GAVE_UP, why

    def check(self) -> None:
        """Raises :class:`Deposed` once it was given up."""
        if self.role is not Role.LEADER:
            raise Deposed(self.why)
