"""Who reads which dataset where: when each was read last, and how long jobs waited for theirs."""

from __future__ import annotations

from collections.abc import Mapping

from headway.state import Job, State
from headway.state.catalogue import Catalogue

_INF = float("inf")


class Reading:
    """A watcher (:class:`headway.state.Watcher`) of the jobs that read datasets."""

    def __init__(self, state: State, catalogue: Catalogue, needs: Mapping[str, tuple[str, ...]]) -> None:
        """``needs``: job -> what it reads; it may change."""
        self._state, self._catalogue, self._needs = state, catalogue, needs
        #: By dataset and site: when a job began or ended to read it there last (absolute seconds).
        self.used: dict[tuple[str, str], float] = {}
        #: Jobs that have started -> datasets that were there when they came, that were not, and seconds that
        #: they waited for these.
        self._started: dict[str, tuple[int, int, float]] = {}
        #: The same, of all jobs that are over.
        self.replica_hits = self.replica_misses = 0
        self.seconds_waited = 0.0

    def took(self, job: Job) -> None:
        """See :class:`headway.state.Watcher`."""
        if needs := self._needs.get(job.id):
            site, came = self._catalogue.site_of(job.pool.name), job.submit_time
            if job.independent is not None:
                came = max(came, job.independent)
            replicas = self._catalogue.replicas
            arrivals = [replicas[name].get(site, -_INF) if name in replicas else -_INF for name in needs]
            hits = sum(arrival <= came for arrival in arrivals)
            self._started[job.id] = hits, len(arrivals) - hits, max(0.0, max(arrivals) - came)
            self._touch(needs, site)

    def gave(self, job: Job) -> None:
        """See :class:`headway.state.Watcher`."""
        if needs := self._needs.get(job.id):
            self._touch(needs, self._catalogue.site_of(job.pool.name))

    def _touch(self, needs: tuple[str, ...], site: str) -> None:
        for dataset in needs:
            self.used[dataset, site] = self._state.now

    def over(self, job: str) -> None:
        """A job is over: it counts."""
        if job in self._started:
            hits, misses, waited = self._started.pop(job)
            self.replica_hits += hits
            self.replica_misses += misses
            self.seconds_waited += waited
