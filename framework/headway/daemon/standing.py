"""What a daemon is beside another that could schedule the same cluster."""

from __future__ import annotations

from headway.journal import Journal
from headway.service.protocol import Leadership


class Standing:
    """Of a daemon that has no other beside it."""

    #: How long a run's beginning may take to look for damage in the journal, seconds.
    look_for_damage = 5.0
    #: For how long the first run's beginning asks a cluster that does not answer, seconds.
    asks_for = 0.0
    #: Whether it drives even if another daemon, with another journal, still seems to.
    takes_over = False
    #: The number that it drives with, at least; 0: whatever comes next.
    epoch = 0

    def open(self, journal: str) -> Journal:
        """The journal of this file or URL, for writing."""
        return Journal.open(journal)

    def drives_as(self, epoch: int) -> None:
        """The daemon drives with this number."""

    def check(self) -> None:
        """Raises a :class:`headway.errors.Failure` if nothing may be done to the cluster any more: another
        daemon leads. Called right before anything is done."""

    def release(self) -> None:
        """Nothing is done to the cluster or written to the journal any more: the other daemon may lead.
        Calling it again does nothing."""

    def leadership(self) -> Leadership:
        """For a person. Called by any thread."""
        return Leadership()


ALONE = Standing()
