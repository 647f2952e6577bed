"""Copies of one job at several sites, of which one runs to its end: which copy is the job.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 2, the picture of Disneyland taken at its word: a family stands in
every line, and leaves the others when one of them is in. The paper has no algorithm for it. Ours:

- A copy that has come to its end by itself is the job. Of several it is the copy with the lower start time,
  and the others have run in vain.
- Otherwise the copy that runs is the job. Of several it is the copy with the lower start time.
- At one start time the copy of the site that is named first is the job.
- A copy that was ordered to go is never the job again, because the order may still reach it. Once the site
  has refused all orders, the copy counts again. A copy that came to its end all the same counts, too.
- A copy that its user cancels while it waits, or that its site refuses, is out; the others stay. A copy that
  its user cancels while it runs was the job.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

#: How a copy ended of which no site tells any more.
UNKNOWN = "unknown"


class Copy(msgspec.Struct):
    """A copy of the job; times are seconds since the epoch."""

    machine: str
    job: str
    pool: str
    #: When its run began, as its site says; None: it waits, or never ran.
    start: float | None = None
    #: How it ended (:data:`headway.events.OUTCOMES`, or :data:`UNKNOWN`); "": it has not.
    ended: str = ""
    #: How often headway has ordered it to go without a refusal of its site.
    orders: int = 0

    def appeared(self) -> None:
        """Its site lists it; what it does is told next."""
        self.start, self.ended = None, ""

    def began(self, time: float) -> None:
        """It runs."""
        self.start, self.ended = time, ""

    def went_back(self) -> None:
        """It waits again."""
        self.start = None

    def over(self, outcome: str) -> None:
        """It is gone. A copy that came to its end was faster than the order to go."""
        self.ended = outcome
        if outcome == "completed":
            self.orders = 0

    @property
    def ran(self) -> bool:
        """Whether it ran, and not only until it was ordered to go."""
        return bool(self.ended) and self.start is not None and not self.orders


def the_job(copies: Sequence[Copy], chosen: str) -> Copy | None:
    """The copy that is the job; ``copies`` in the order of the sites.

    ``chosen``: the id of the copy that was the job until now, or is being started. It stays while no copy
    runs or ran.
    """
    ran = [copy for copy in copies if copy.ran]
    runs = [copy for copy in copies if copy.start is not None and not copy.ended and not copy.orders]
    found = min(ran or runs, key=_start, default=None)
    if found is not None:
        return found
    return next((copy for copy in copies if copy.job == chosen and not copy.orders), None)


def in_vain(copies: Sequence[Copy]) -> list[Copy]:
    """The copies that came to their end beside the job."""
    return sorted((copy for copy in copies if copy.ran), key=_start)[1:]


def _start(copy: Copy) -> float:
    assert copy.start is not None
    return copy.start
