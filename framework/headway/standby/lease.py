"""A lease: one small record that the leader renews and stand-bys read.

Every change compares with what was read before, so of two daemons that want to lead one gets it.
"""

from __future__ import annotations

import abc

from headway.standby.leadership import Word


class Lease(abc.ABC):
    """Where the word of the leader stands. All methods raise :class:`headway.errors.Failure` if it cannot be
    read or written in time."""

    #: Whether both daemons read and write the same one. Else a stand-by reads the leader's by other means.
    shared: bool
    #: What messages call it.
    name: str

    @abc.abstractmethod
    def read(self) -> Word | None:
        """What it says; None: nothing was ever written."""

    @abc.abstractmethod
    def replace(self, seen: Word | None, by: Word) -> bool:
        """Write ``by`` if it still says ``seen``; whether it did."""

    @abc.abstractmethod
    def close(self) -> None:
        """Give back what it takes to reach it."""
