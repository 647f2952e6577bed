"""Where a stand-by hears of the leader: the database that both share, or the other daemon's machine."""

from __future__ import annotations

import abc

from headway.standby.leadership import Watch, Word


class Source(abc.ABC):
    """What a stand-by hears of the leader, and what it does to the leader before it leads itself."""

    @abc.abstractmethod
    def hear(self, watch: Watch) -> None:
        """Tell ``watch`` what is known by now, with the time at which it was heard: the leader may have
        renewed its lease just before. Returns soon."""

    @abc.abstractmethod
    def may_lead(self, watch: Watch, now: float) -> bool:
        """Whether the leader is over, by ``now``."""

    @abc.abstractmethod
    def take(self, watch: Watch, word: Word) -> bool:
        """Write ``word`` into the lease; whether this daemon leads now. Raises :class:`Failure`."""

    @abc.abstractmethod
    def free(self) -> None:
        """Take the journal from the leader before, if it still has it."""

    @abc.abstractmethod
    def lag(self, now: float) -> float | None:
        """How old what is known of the leader's journal is at ``now``, at most, seconds; None: not known."""

    @abc.abstractmethod
    def epoch(self) -> int:
        """The highest epoch that the journal knows of. Raises :class:`Failure`."""

    @property
    @abc.abstractmethod
    def trouble(self) -> str:
        """What is in the way of hearing; "": nothing."""

    @abc.abstractmethod
    def close(self, *, leads: bool) -> None:
        """Listen no more. ``leads``: this daemon has the lease."""
