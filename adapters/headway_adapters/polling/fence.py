"""What keeps a daemon that was paused from changing a cluster that another daemon has taken over.

Each daemon has a number, its epoch, which is higher than that of all before it
(:class:`headway.adapter.leadership.Led`). Where a batch system can compare it, its commands carry it: then
the batch system refuses those with a lower number, whenever they come. A batch system extends :class:`Fence`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from headway.errors import Failure
from headway_adapters.polling.words import Argv
from headway_adapters.transport import Result

#: A batch system that was heard so many seconds ago is not asked again before a command that it lets pass.
SURE = 1.0


class Fence:
    """The epoch of one daemon. This one is for a batch system that compares none."""

    def __init__(self) -> None:
        #: 0: it leads nothing, and what it writes carries none.
        self.epoch = 0
        #: A word that no other daemon has.
        self.name = ""
        #: Whether the batch system compares epochs.
        self.is_known = False
        #: It could not be told yet.
        self._is_due = False
        #: When it was heard last (monotonic clock).
        self._heard = float("-inf")

    # ------------------------------------------------------------------ a batch system's own

    def tell(self) -> bool:
        """Tell the batch system the epoch; whether it compares epochs. Raises :class:`Failure` where it does
        not answer, :class:`headway.errors.Superseded` where another daemon has this number or a higher
        one."""
        return False

    def stamped(self, argv: Sequence[str]) -> Argv:
        """A command with the epoch; as it is where it can carry none."""
        return tuple(argv)

    def is_compared(self, argv: Sequence[str]) -> bool:
        """Whether the batch system would refuse this command of a lower epoch."""
        return False

    def is_refusal(self, result: Result) -> bool:
        """Whether it refused a command because of its epoch."""
        return False

    def higher(self) -> int:
        """The epoch of the daemon that has taken over, asked of the batch system; 0: nobody has, as far as
        can be told."""
        return 0

    def leave(self) -> None:
        """Tell the batch system that the daemon ends. Raises :class:`Failure` where it does not answer."""

    # ------------------------------------------------------------------ for all

    def is_over(self, epoch: int, leader: str) -> bool:
        """Whether another daemon leads, by the highest number that the batch system knows and the word of its
        daemon. A number without a word, such as marks of jobs tell, is this daemon's if it is the same."""
        return epoch > self.epoch or (epoch == self.epoch and leader not in ("", self.name))

    def lead(self, epoch: int, name: str) -> None:
        """Be the daemon of this epoch. Raises as :meth:`tell` does."""
        self.epoch, self.name, self._is_due = epoch, name, True
        self._heard = time.monotonic()
        self.is_known = self.tell()
        self._is_due = False

    def try_again(self) -> None:
        """Tell the batch system what it could not be told before."""
        if self._is_due and time.monotonic() > self._heard + SURE:
            with contextlib.suppress(Failure):
                self.lead(self.epoch, self.name)

    def overtaken(self, argvs: Sequence[Sequence[str]]) -> int:
        """Before commands: the epoch of the daemon that has taken over, if some of them are such as the batch
        system lets pass; 0: nobody has."""
        if not self.is_known or time.monotonic() < self._heard + SURE or all(map(self.is_compared, argvs)):
            return 0
        found = self.higher()
        self._heard = time.monotonic()
        return found
