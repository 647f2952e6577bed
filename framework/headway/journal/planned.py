"""Planned starts as they meet real ones: counted cycle by cycle, from a journal or by the daemon as it goes.

Of a job the first plan counts, until it begins, ends, is held, is requeued, or the start fails
(:mod:`headway.experiment.planned_starts`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headway.adapter import Outcome
from headway.decisions import Decision, Start
from headway.events import DecisionFailed, Event, JobEnded, JobHeld, JobRequeued, JobStarted, JobSubmitted
from headway.journal.latencies import moment
from headway.journal.latency_summary import QUANTILES, LatencySummary
from headway.journal.starts_report import PlannedStarts, StartsReport
from headway.model import Placement

if TYPE_CHECKING:
    from headway.journal import CycleRecord

#: When a start was planned (absolute seconds), and where.
Plan = tuple[float, Placement]

#: Starts that a daemon remembers, the newest.
KEPT = 10_000


class Tally:
    """The plans of runs of one kind, as they meet what happens."""

    def __init__(
        self, since: float, earlier: Callable[[str], Plan | None] | None = None, kept: int | None = None
    ) -> None:
        """``earlier``: the plan that a job had at ``since``; None: no job had one. ``kept``: so many starts
        are remembered, the newest; None: all."""
        self._since, self._earlier = since, earlier
        #: The jobs of which their earlier plan is known.
        self._met: set[str] = set()
        #: Job -> when its start was planned, also before, and where.
        self._plans: dict[str, Plan] = {}
        self.later: deque[float] = deque(maxlen=kept)
        self.began = 0
        self.elsewhere = self.failed = self.withdrawn = self.unplanned = 0

    def run(self, cycles: Iterable[CycleRecord], begun: float, *, carried_out: bool) -> None:
        """Count a run that began at ``begun``, from :attr:`_since` on."""
        for cycle in cycles:
            self.cycle(
                cycle.now, cycle.events, cycle.decisions, cycle.outcomes, begun, carried_out=carried_out
            )

    def cycle(
        self,
        now: float,
        events: Iterable[Event],
        decisions: Sequence[Decision],
        outcomes: Sequence[Outcome | None],
        begun: float,
        *,
        carried_out: bool,
    ) -> None:
        """Count a cycle of a run that began at ``begun``."""
        for event in events:
            if isinstance(event, JobSubmitted) and event.job.submit_time >= self._since:
                # There was no plan for it.
                if self._earlier is not None:
                    self._met.add(event.job.id)
            else:
                self._told(event, begun, now)
        for decision, outcome in zip(decisions, outcomes, strict=True):
            if isinstance(decision, Start):
                self.planned(decision, now)
                if carried_out and outcome is not None and not outcome.accepted:
                    self.failed += self._dropped(decision.job_id)

    def _told(self, event: Event, begun: float, now: float) -> None:
        if isinstance(event, JobStarted):
            self._meet(event.job_id)
            self._started(event, begun, now)
        elif isinstance(event, JobEnded | JobHeld | JobRequeued):
            self._meet(event.job_id)
            self.withdrawn += self._dropped(event.job_id)
        elif isinstance(event, DecisionFailed) and isinstance(event.decision, Start):
            self._meet(event.decision.job_id)
            self.failed += self._dropped(event.decision.job_id)

    def _meet(self, job_id: str) -> None:
        """What was planned for a job before is in its history."""
        if self._earlier is not None and job_id not in self._met:
            self._met.add(job_id)
            if (plan := self._earlier(job_id)) is not None:
                self._plans[job_id] = plan

    def planned(self, start: Start, now: float) -> None:
        """The first plan of a job counts."""
        self._meet(start.job_id)
        self._plans.setdefault(start.job_id, (now, start.placement))

    def _started(self, event: JobStarted, begun: float, now: float) -> None:
        plan = self._plans.pop(event.job_id, None)
        if plan is None:
            self.unplanned += event.time >= max(begun, self._since)
            return
        planned, where = plan
        if planned < self._since:
            return
        self.began += 1
        self.later.append(max(0.0, moment(event.time, [planned], now) - planned))
        if where and event.placement:
            self.elsewhere += {name for name, _ in where} != {name for name, _ in event.placement}

    def _dropped(self, job_id: str) -> int:
        """1 if there was a plan that counts for the job; there is none any more."""
        plan = self._plans.pop(job_id, None)
        return plan is not None and plan[0] >= self._since

    def summary(self) -> PlannedStarts:
        later = list(self.later)
        still = sum(planned >= self._since for planned, _ in self._plans.values())
        return PlannedStarts(
            planned=self.began + self.failed + self.withdrawn + still,
            began=self.began,
            later=tuple(round(float(np.quantile(later, q)), 3) for q in QUANTILES) if later else (),
            mean=round(float(np.mean(later)), 3) if later else 0.0,
            elsewhere=self.elsewhere,
            failed=self.failed,
            withdrawn=self.withdrawn,
            open=still,
            unplanned=self.unplanned,
        )


class LivePlans:
    """The plans of a daemon since it began, of which :data:`KEPT` starts are remembered.

    What an earlier run planned is not known. So a job that was there when the daemon began, and begins
    without a plan of this daemon, is not counted.
    """

    def __init__(self, cluster: str, mode: str, *, carried_out: bool) -> None:
        self._cluster, self._mode, self._carried_out = cluster, mode, carried_out
        self._tally: Tally | None = None
        self._began = self._now = 0.0
        #: Jobs that an earlier run may have planned.
        self._inherited: set[str] = set()

    def cycle(
        self, now: float, events: Sequence[Event], decisions: Sequence[Decision], outcomes: Sequence[Outcome]
    ) -> None:
        """A cycle is over."""
        self._now = now
        if self._tally is None:
            self._tally, self._began = Tally(-np.inf, kept=KEPT), now
            self._inherited = {event.job.id for event in events if isinstance(event, JobSubmitted)}
        elif self._inherited:
            events = [event for event in events if not self._is_of_before(event)]
        self._inherited -= {one.job_id for one in decisions if isinstance(one, Start)}
        self._tally.cycle(now, events, decisions, outcomes, self._began, carried_out=self._carried_out)

    def _is_of_before(self, event: Event) -> bool:
        """Whether it tells of a job that an earlier run may have planned; then no more is thought of it."""
        if not isinstance(event, JobStarted | JobEnded) or event.job_id not in self._inherited:
            return False
        self._inherited.discard(event.job_id)
        return True

    def report(self, latencies: Mapping[str, LatencySummary]) -> StartsReport:
        """What is known now."""
        if self._tally is None:
            return StartsReport(self._cluster, None, None, {}, dict(latencies))
        starts = {self._mode: self._tally.summary()}
        return StartsReport(self._cluster, self._began, self._now, starts, dict(latencies))
