"""Which of several daemons drives a cluster: the numbers that they have."""

from __future__ import annotations

import msgspec


class Seen(msgspec.Struct, frozen=True):
    """The highest epoch that a cluster shows: the number of the daemon that took it over last."""

    #: 0: no daemon has left a trace.
    epoch: int = 0
    #: What shows that this daemon is alive, for a person; "": nothing does.
    alive: str = ""


class Led:
    """A cluster that daemons drive one after another. This one refuses nothing."""

    def highest_epoch(self, *, above: int | None) -> Seen:
        """The number of the daemon that took this cluster over last, as the cluster shows it; and whether
        that daemon is alive, if its number is higher than ``above`` (None: that does not matter). Called
        after :meth:`describe`, where this run is to drive; may take some seconds.

        Raises :class:`headway.errors.Failure` where it cannot be found out just now."""
        return Seen()

    def lead(self, epoch: int, name: str) -> None:
        """Drive from now on as the daemon of this number, which is higher than all before. Called before the
        first :meth:`wait` of a run that drives, and by no other run; again with the same number and name in
        the next run of the same daemon.

        ``name``: letters and digits that no other daemon has. What is written to the cluster carries the
        number, so that what a daemon with a lower number writes can be refused. A daemon that finds a higher
        number changes nothing any more, and its :meth:`wait` raises
        :class:`headway.errors.Superseded`. So does this method where another daemon has the number already.
        """

    def leave(self) -> None:
        """The daemon ends, and is not to be taken for alive any more. Raises nothing."""
