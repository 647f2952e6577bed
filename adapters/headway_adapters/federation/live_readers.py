"""Which running jobs read which datasets: such a copy is not removed under them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headway import decisions as d
from headway import events as ev
from headway.model import JobDescription
from headway.model.sites import datasets_of


class Readers:
    """The jobs that have datasets, as the clusters tell of them."""

    def __init__(self, site_of: Callable[[str], str]) -> None:
        """``site_of``: the cluster that has a job."""
        self.site_of = site_of
        self._needs: dict[str, tuple[str, ...]] = {}
        #: Jobs with datasets that run, or were told to start.
        self._running: set[str] = set()

    def note(self, events: Iterable[ev.Event]) -> None:
        """What has happened."""
        for event in events:
            match event:
                case ev.JobSubmitted() | ev.JobChanged():
                    self._describe(event.job)
                case ev.JobStarted() | ev.JobReleasing():
                    self.starts(event.job_id)
                case ev.JobEnded():
                    self._running.discard(event.job_id)
                    self._needs.pop(event.job_id, None)
                case ev.JobRequeued():
                    self._running.discard(event.job_id)
                case ev.DecisionFailed(decision=d.Start() as start):
                    self._running.discard(start.job_id)

    def _describe(self, job: JobDescription) -> None:
        if needs := datasets_of(job.attributes):
            self._needs[job.id] = needs
        else:
            self._needs.pop(job.id, None)

    def starts(self, job: str) -> None:
        """A job is about to start."""
        if job in self._needs:
            self._running.add(job)

    def needs(self, job: str) -> tuple[str, ...]:
        """The datasets that a job reads."""
        return self._needs.get(job, ())

    def of(self, dataset: str, site: str) -> str | None:
        """A running job that reads a dataset at a site; None if none does."""
        return next(
            (job for job in self._running if dataset in self.needs(job) and self.site_of(job) == site), None
        )
