"""An adapter in use, and every event that it told."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest

from headway import decisions as d
from headway import events as ev
from headway.adapter import Outcome
from headway.conformance.site import Site
from headway.conformance.waiting import limit
from headway.model import Placement

EventT = TypeVar("EventT", bound=ev.Event)


def about(event: ev.Event) -> str:
    """The job, node or reservation that an event is about."""
    if isinstance(event, ev.DecisionFailed):
        return str(getattr(event.decision, "job_id", ""))
    if isinstance(event, ev.JobSubmitted | ev.JobChanged):
        return event.job.id
    if isinstance(event, ev.NodeUp):
        return event.node.name
    if isinstance(event, ev.ReservationMade):
        return event.reservation.id
    for key in ("job_id", "node", "reservation_id"):
        if hasattr(event, key):
            return str(getattr(event, key))
    return ""


class Driven:
    """An adapter on a site."""

    def __init__(self, site: Site, **options: Any) -> None:
        self.site = site
        self.adapter = site.adapter(**options)
        self.description = self.adapter.describe()
        self.events: list[ev.Event] = []
        #: Nodes with processors, by name.
        self.size = {node.name: node.processors for node in self.description.nodes if node.processors}
        self.nodes = sorted(self.size)

    @property
    def whole(self) -> int:
        """Processors of the first node."""
        return self.size[self.nodes[0]]

    def first(self) -> list[ev.Event]:
        """What the first wait tells."""
        moment = self.adapter.wait(self.site.now() + self.site.patience)
        assert moment is not None
        return self._take(moment[1])

    def _take(self, told: Sequence[ev.Event]) -> list[ev.Event]:
        """The events without the jobs of earlier tests, which some systems go on listing."""
        jobs = (ev.JobSubmitted, ev.JobStarted, ev.JobEnded)
        kept = [e for e in told if not isinstance(e, jobs) or about(e) in self.site.mine]
        self.events += kept
        return kept

    def wait(self, seconds: float) -> list[ev.Event]:
        """All that is told within so many seconds."""
        end = self.site.now() + seconds
        found: list[ev.Event] = []
        while self.site.now() < end:
            moment = self.adapter.wait(end)
            if moment is None:
                break
            now, events = moment
            assert all(event.time <= now for event in events), events
            found += self._take(events)
        return found

    def until(
        self, kind: type[EventT] | tuple[type[ev.Event], ...], subject: str = "", seconds: float = 0.0
    ) -> EventT:
        """The next event of a kind (about something) that was not asked for before."""
        end = time.monotonic() + limit(seconds)
        seen = 0
        while True:
            for event in self.events[seen:]:
                if isinstance(event, kind) and (not subject or about(event) == subject):
                    self.events.remove(event)
                    return event  # type: ignore[return-value]
            seen = len(self.events)
            assert time.monotonic() < end, f"no {kind} about {subject!r}; told: {self.events[-12:]}"
            moment = self.adapter.wait(self.site.now() + 1.0)
            assert moment is not None, f"no {kind} about {subject!r} will come"
            self._take(moment[1])

    def able(self, *kinds: type[d.Decision]) -> None:
        """Skip the test unless the adapter can carry these decisions out."""
        for kind in kinds:
            if kind not in self.adapter.capabilities:
                pytest.skip(f"{self.site.name}: {kind.__name__} is not among the adapter's capabilities")

    def apply(self, *decisions: d.Decision) -> list[Outcome]:
        return list(self.adapter.apply(self.site.now(), decisions))

    def accepted(self, decision: d.Decision) -> None:
        """Apply a decision that must be taken."""
        (outcome,) = self.apply(decision)
        assert outcome.accepted, outcome.message

    def refused(self, decision: d.Decision) -> str:
        """Apply a decision that must come to nothing; why."""
        (outcome,) = self.apply(decision)
        failed = self.until(ev.DecisionFailed, getattr(decision, "job_id", ""))
        assert type(failed.decision) is type(decision)
        return outcome.message or failed.message

    def end(self, job_id: str) -> ev.JobEnded:
        """End a running job: by the adapter if it can, else by the job's user."""
        if d.Kill in self.adapter.capabilities:
            self.accepted(d.Kill(job_id, "conformance"))
        else:
            self.site.cancel(job_id)
        return self.until(ev.JobEnded, job_id)

    def start(self, job_id: str, placement: Placement) -> ev.JobStarted:
        self.accepted(d.Start(job_id, placement, reason="conformance"))
        return self.until(ev.JobStarted, job_id)

    def start_once_seen(self, job_id: str, placement: Placement) -> ev.JobStarted:
        """Start a job that was released: refused until a look has told the adapter so."""
        end = time.monotonic() + limit()
        while not (outcome := self.apply(d.Start(job_id, placement, reason="conformance"))[0]).accepted:
            assert time.monotonic() < end, outcome.message
            self.wait(0.4)
        return self.until(ev.JobStarted, job_id)

    def submitted(self, job_id: str) -> ev.JobSubmitted:
        return self.until(ev.JobSubmitted, job_id)

    def all_up(self) -> None:
        """Wait until every node that was told to be down is told to be up again: a batch system that
        comes back asks its nodes first."""
        end = time.monotonic() + limit()
        while True:
            last = {about(e): e for e in self.events if isinstance(e, ev.NodeDown | ev.NodeUp)}
            if not any(isinstance(event, ev.NodeDown) for event in last.values()):
                return
            assert time.monotonic() < end, last
            self.wait(0.3)

    def used(self) -> dict[str, int]:
        """Processors given on each node, as the cluster itself says."""
        counts: dict[str, int] = {}
        for placement in self.site.running().values():
            for node, count in placement:
                counts[node] = counts.get(node, 0) + count
        return counts

    def nothing_oversubscribed(self) -> None:
        assert all(count <= self.size[node] for node, count in self.used().items()), self.site.running()
