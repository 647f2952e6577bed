"""What is told of jobs that go from one cluster to another: one job, under one name, all the time.

A copy is not told before it is the job. The end of an original is held back until it is known whether its
copy is the job; then it is forgotten, or told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headway import events as ev
from headway.model import JobDescription
from headway_adapters.federation.live_routes import Settled
from headway_adapters.federation.names import Names
from headway_adapters.federation.route_pairs import Place
from headway_adapters.polling.resubmission import CAME_FROM, COPY_OF, GOES_TO


class Passage:
    """Events of the clusters on their way to the engine. On the engine's thread."""

    def __init__(
        self, names: Names, *, trusted: Callable[[str], bool], is_open: Callable[[str, str], bool],
        noticed: Callable[[], None],
    ) -> None:  # fmt: skip
        """``trusted``: whether a cluster's attributes of routes are marks. ``is_open``: whether a route of
        that job was ordered. ``noticed``: a mark was seen, of a route that may have to go on."""
        self._names = names
        self._trusted = trusted
        self._is_open = is_open
        self._noticed = noticed
        self._hidden: set[Place] = set()
        self._leaving: set[Place] = set()
        self._held_back: dict[Place, list[ev.Event]] = {}
        #: Names of jobs that were told and have not ended.
        self._told: set[str] = set()

    def settled(self, news: Settled) -> None:
        """A copy has become the job."""
        self._names.job_is(news.name, *news.copy)
        self._forget(news.original)

    def stays(self, original: Place) -> list[ev.Event]:
        """An original is the job: what was held back of it, in the names for all."""
        self._leaving.discard(original)
        found = self._held_back.pop(original, [])
        return [self._told_as_it_is(original[0], event) for event in found]

    def through(self, cluster: str, events: Iterable[ev.Event]) -> list[ev.Event]:
        """The events of a cluster as they are told, in the names for all."""
        outward = self._names.outward(cluster)
        if not self._trusted(cluster):
            return [outward.renamed(event) for event in events]
        found: list[ev.Event] = []
        for event in events:
            described = event.job if isinstance(event, ev.JobSubmitted | ev.JobChanged) else None
            local = described.id if described is not None else getattr(event, "job_id", "")
            if local:
                found += self._of_job(cluster, local, event, described)
            else:
                found.append(outward.renamed(event))
        return found

    # ------------------------------------------------------------------ one job

    def _of_job(
        self, cluster: str, local: str, event: ev.Event, described: JobDescription | None
    ) -> list[ev.Event]:
        place = cluster, local
        if described is not None and self._is_hidden(place, described):
            return []
        if described is not None and place in self._hidden:
            self._hidden.discard(place)
            return self._appears(cluster, described, event)
        if place in self._hidden:
            if isinstance(event, ev.JobEnded):
                self._hidden.discard(place)
                if self._names.job_outward(cluster, local) in self._told:
                    # It ended before a look showed that it is the job.
                    return [self._told_as_it_is(cluster, event)]
            return []
        if self._is_past(place):
            name = self._names.job_outward(cluster, local)
            if described is None or GOES_TO in (described.attributes or {}) or name in self._told:
                return []
            # The job that went is over, and its number belongs to another.
            self._names.job_is(name, cluster, local)
        if isinstance(event, ev.JobEnded) and (place in self._leaving or self._is_open(cluster, local)):
            self._held_back.setdefault(place, []).append(event)
            self._noticed()
            return []
        if isinstance(event, ev.JobSubmitted) and self._names.job_outward(cluster, local) in self._told:
            return self._appears(cluster, event.job, event)
        return [self._told_as_it_is(cluster, event)]

    def _is_hidden(self, place: Place, described: JobDescription) -> bool:
        """Take in the marks of a description; whether it is of a copy that is not the job."""
        attributes = described.attributes or {}
        if name := attributes.get(CAME_FROM):
            before = self._names.job_place(name)
            if before != place:
                self._names.job_is(name, *place)
                self._forget(before)
        if GOES_TO in attributes:
            self._leaving.add(place)
            self._noticed()
        else:
            self._leaving.discard(place)
        if COPY_OF not in attributes:
            return False
        self._hidden.add(place)
        self._noticed()
        return True

    def _appears(self, cluster: str, job: JobDescription, event: ev.Event) -> list[ev.Event]:
        """A copy is the job from now on."""
        described = self._names.outward(cluster).renamed(job)
        time = event.time
        if described.id not in self._told:
            return [self._told_as_it_is(cluster, ev.JobSubmitted(min(time, job.submit_time), job))]
        changed = ev.JobChanged(time, described)
        return [ev.JobRouted(time, described.id, described.pool), changed]

    def _is_past(self, place: Place) -> bool:
        """Whether the name that it would have is that of a job elsewhere now."""
        name = self._names.job_outward(*place)
        return self._names.job_place(name) != place

    def _told_as_it_is(self, cluster: str, event: ev.Event) -> ev.Event:
        renamed = self._names.outward(cluster).renamed(event)
        if isinstance(renamed, ev.JobSubmitted):
            self._told.add(renamed.job.id)
        elif isinstance(renamed, ev.JobEnded):
            self._told.discard(renamed.job_id)
        return renamed

    def _forget(self, original: Place) -> None:
        self._leaving.discard(original)
        self._held_back.pop(original, None)
