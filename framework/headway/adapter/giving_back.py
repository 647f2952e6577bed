"""Giving a cluster back: its batch system schedules again as if headway had never been there.

An adapter that drives a real batch system names in :attr:`headway.adapter.ClusterAdapter.gives_back` the
class that does it. It needs no daemon, no scheduler and no journal: what headway did stands in the batch
system.
"""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import msgspec

#: What became of a thing: it is given back; it stays as it is, and why; it could not be given back.
Result = Literal["given back", "left", "failed"]


class Given(msgspec.Struct, frozen=True):
    """One thing that was given back, or would be."""

    #: Such as ``job``, ``reservation``, ``queue``, and its name in the batch system.
    kind: str
    name: str
    result: Result
    #: For a person: what was done (``released``), or why not.
    said: str
    #: Of several clusters, which; else "".
    cluster: str = ""

    @property
    def line(self) -> str:
        """This for a person."""
        where = f"{self.cluster}: " if self.cluster else ""
        return f"{where}{self.kind} {self.name}: {self.said}"


class GivingBack(contextlib.AbstractContextManager["GivingBack"], abc.ABC):
    """What gives one cluster back. Made as ``kind(options, dry_run=...)`` with the adapter's options.

    With ``dry_run`` nothing is changed, and what would be done is told. Methods raise
    :class:`headway.errors.Failure` when the batch system does not answer, :class:`headway.errors.UserError`
    for a pool that it does not have.
    """

    #: The pools that headway drives, as the options name them.
    pools: tuple[str, ...]

    @abc.abstractmethod
    def __init__(self, options: Any, *, dry_run: bool = False) -> None:
        """``options``: validated."""

    @abc.abstractmethod
    def give_back(self, pools: Sequence[str], go_on: Callable[[], bool]) -> Iterator[Given]:
        """Give these pools back, little by little. ``go_on`` is asked before each thing is changed: False
        ends it. It can be done again, and goes on where it was."""

    def is_silent(self) -> bool | None:
        """Whether the daemon has given no sign of life for longer than the options say; None: they say
        nothing of it, or never. Raises :class:`headway.errors.Failure` if that cannot be found out."""
        return None

    def was_heard(self) -> bool:
        """Whether a daemon has ever given a sign of life that is still there."""
        return False

    def stand_down(self) -> None:
        """Tell those that hold jobs for headway that it does not drive any more."""

    def left_to_do(self, pools: Sequence[str]) -> Sequence[str]:
        """What only an administrator can do after that, in sentences."""
        return ()

    def close(self) -> None:
        """Give back what it took (connections)."""

    def __exit__(self, *exc: object) -> None:
        self.close()
