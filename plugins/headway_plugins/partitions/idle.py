"""What of a machine of partitions stands idle while a job waits, and why.

At each moment the first waiting job of the queue is asked about. If it needs more midplanes than are free,
nothing is lost. If enough are free and no box of them fits it even where all links are free, what is free is
lost to *shape*; if a box fits but for its links, it is lost to *wiring*; if it fits, the policy keeps them
free (a booking, a window). Midplane-seconds of each; and the moment at which most midplanes were lost to
shape or wiring (where none ever were: at which most were in use), for a picture of the machine.
"""

from __future__ import annotations

import msgspec

CAUSES = ("no demand", "too few", "shape", "wiring", "policy")


class Moment(msgspec.Struct, frozen=True):
    """How a machine stood: ``idle`` midplanes for this cause, ``busy`` in use."""

    #: Seconds of the run's clock.
    time: float
    #: The id of the first waiting job; "": no job waits.
    job: str
    cause: str
    idle: int
    busy: int


def _rank(cause: str, idle: int, busy: int) -> tuple[int, int]:
    """Which moment to remember: what is lost counts before what is used."""
    return (idle if cause in ("shape", "wiring") else 0), busy


class IdleTime:
    """Midplane-seconds that were idle, by cause."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(CAUSES, 0.0)
        self.busy = 0.0
        self._since: float | None = None
        self._job = ""
        self._now = ("no demand", 0, 0)
        #: The moment for a picture; None before the first change.
        self.worst: Moment | None = None
        self._rank = (-1, -1)

    def change(self, time: float, cause: str, idle: int, busy: int, job: str = "") -> None:
        """From ``time`` on so many midplanes are idle for this cause, and so many in use; ``job``: the first
        waiting job."""
        if self._since is not None and time > self._since:
            was, count, used = self._now
            self.seconds[was] += count * (time - self._since)
            self.busy += used * (time - self._since)
            rank = _rank(was, count, used)
            if rank > self._rank:
                # A cause that lasted.
                self._rank = rank
                self.worst = Moment(self._since, self._job, was, count, used)
        self._since = time
        self._now = (cause, idle, busy)
        self._job = job

    def figures(self) -> dict[str, float]:
        """The same as midplane-hours."""
        found = {f"idle_by_{cause.replace(' ', '_')}": s / 3600.0 for cause, s in self.seconds.items()}
        return {"busy": self.busy / 3600.0, **found}
