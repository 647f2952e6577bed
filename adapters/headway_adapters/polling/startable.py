"""Whether a job may be started: asked once more before a command that obeys without a word.

``qrun`` and ``brun`` start held jobs and jobs that are not headway's, and Slurm is given a job only if it
then starts. So each start is checked against the last look, in one order for all batch systems.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from headway import decisions as d
from headway_adapters.polling.agents import BACKGROUND, FOREGROUND
from headway_adapters.polling.overlay import Overlay
from headway_adapters.polling.snapshot import SnapshotJob
from headway_adapters.polling.system import BatchSystem
from headway_adapters.polling.words import Unfit


class _Managed(Protocol):
    """What every batch system's detail of a job says."""

    @property
    def managed(self) -> bool:
        """The job is headway's to start."""


ManagedT = TypeVar("ManagedT", bound=_Managed)


def nothing_more(job: Any, detail: Any) -> str:
    """No barrier besides the barriers of every batch system."""
    return ""


class Guard(Generic[ManagedT]):
    """Lets a start through, or says why not."""

    def __init__(
        self, system: BatchSystem[ManagedT, Any], overlay: Overlay[ManagedT], *, agents: bool
    ) -> None:
        """``agents``: there are agents on the nodes, and so a background."""
        self._system = system
        self._overlay = overlay
        self._agents = agents

    def startable(
        self, start: d.Start, waits: Callable[[SnapshotJob, ManagedT], str] = nothing_more
    ) -> tuple[SnapshotJob, ManagedT]:
        """The job as the last look showed it, and its detail. ``waits``: what the batch system knows that
        keeps the job from starting now, "" for nothing.

        Raises :class:`Unfit` if the job is not to be started.
        """
        job_id = start.job_id
        if self._system.oversubscribes and (why := self._no_tier(start)):
            raise Unfit(why)
        if start.frequency is not None and d.SetFrequency not in self._system.capabilities:
            raise Unfit(f"job {job_id}: {self._system.lacks(d.SetFrequency)}")
        job, detail = self._overlay.known(job_id), self._overlay.detail(job_id)
        if job is None or detail is None:
            raise Unfit(f"job {job_id} is not pending in the last listing")
        if not detail.managed:
            raise Unfit(f"job {job_id} is not managed by headway")
        if job.job.held:
            raise Unfit(f"job {job_id} is not startable: {job.reason or 'it is held'}")
        if why := waits(job, detail):
            raise Unfit(f"job {job_id} is not startable: {why}")
        return job, detail

    def _no_tier(self, start: d.Start) -> str:
        """Why a job cannot start in its tier on a batch system that oversubscribes when told to; "" if it
        can."""
        if start.tier == FOREGROUND or (start.tier == BACKGROUND and self._agents):
            return ""
        if start.tier != BACKGROUND:
            return f"job {start.job_id}: there is no tier {start.tier!r}"
        return f"job {start.job_id}: the background needs cluster.options.agents"


def lies_ahead(job: SnapshotJob, now: float) -> str:
    """That a job's begin time is not reached, "" if it is; by the clock and not by the last look: at the very
    second it is due."""
    begin = job.job.begin_time
    return "its begin time has not come" if begin is not None and begin > now else ""
