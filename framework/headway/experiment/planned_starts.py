"""Planned starts beside real ones, from a journal; and what a campaign takes along from a real cluster.

E. Frachtenberg and D. G. Feitelson, "Pitfalls in parallel job scheduling evaluation", JSSPP 2005, pitfall 32:
what was only simulated is not known to hold. A daemon has both sides in its journal: when its policy decided
to start a job (the plan), and when the batch system says that the job began. A run that drives has its plans
carried out; a run that watches (monitor) makes plans that are not carried out, and the batch system's own
scheduler starts the jobs. Both are counted apart.

Of a job the first plan counts, until it begins, ends, is held, is requeued, or the start fails. What a run
finds running when it begins was not started under its eyes and is not counted, unless a run of the same kind
before it had planned it. So a real start is never earlier than its plan; a job that began before there was
a plan for it is ``unplanned``: the scheduler that started it was faster than the policy, or the policy would
not have started it yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from headway.decisions import Start
from headway.errors import UserError
from headway.events import (
    DecisionFailed,
    Event,
    JobEnded,
    JobHeld,
    JobRequeued,
    JobStarted,
    JobSubmitted,
)
from headway.journal.latencies import LONGEST, Latencies, measured, moment, together
from headway.journal.latency_summary import QUANTILES
from headway.model import Placement

if TYPE_CHECKING:
    from headway.journal import CycleRecord, Journal

#: When a start was planned (absolute seconds), and where.
Plan = tuple[float, Placement]

#: Runs whose starts are real: their plans are carried out, or only written down.
DRIVE, MONITOR = "drive", "monitor"


class PlannedStarts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of the plans of runs of one kind. Seconds, and numbers of plans or jobs."""

    planned: int = 0
    #: The job began; then this much later than planned, at the quantiles of
    #: :data:`headway.journal.latencies.QUANTILES`, and in the mean.
    began: int = 0
    later: tuple[float, ...] = ()
    mean: float = 0.0
    #: Of these: on other nodes than planned.
    elsewhere: int = 0
    #: The batch system refused the start, or it failed.
    failed: int = 0
    #: The job ended, was held or requeued first.
    withdrawn: int = 0
    #: Not known yet.
    open: int = 0
    #: Jobs that began without a plan.
    unplanned: int = 0

    def __str__(self) -> str:
        """For a person, in a line."""
        said = [f"{self.began} of {self.planned} planned starts took place"]
        if self.later:
            half, most, last = self.later
            said.append(f"half within {half:.1f} s, 95 % within {most:.1f} s, all within {last:.1f} s")
        for count, what in (
            (self.elsewhere, "on other nodes"),
            (self.failed, "failed"),
            (self.withdrawn, "withdrawn"),
            (self.open, "open"),
            (self.unplanned, "jobs began unplanned"),
        ):
            if count:
                said.append(f"{count} {what}")
        return ", ".join(said)


class RealCluster(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a campaign takes along from a real cluster: a file that ``headway starts --out`` writes."""

    cluster: str
    #: When the last thing in it happened, absolute seconds; None: there is nothing.
    until: float | None = None
    latencies: Latencies = Latencies()
    #: By :data:`DRIVE` and :data:`MONITOR`.
    starts: dict[str, PlannedStarts] = {}


class _Tally:
    """The plans of runs of one kind, as they meet what happens."""

    def __init__(self, since: float, earlier: Callable[[str], Plan | None]) -> None:
        """``earlier``: the plan that a job had at ``since``."""
        self._since, self._earlier = since, earlier
        #: The jobs of which their earlier plan is known.
        self._met: set[str] = set()
        #: Job -> when its start was planned, also before, and where.
        self._plans: dict[str, Plan] = {}
        self.later: list[float] = []
        self.elsewhere = self.failed = self.withdrawn = self.unplanned = 0

    def run(self, cycles: Iterable[CycleRecord], begun: float, *, carried_out: bool) -> None:
        """Count a run that began at ``begun``, from :attr:`_since` on."""
        for cycle in cycles:
            for event in cycle.events:
                if isinstance(event, JobSubmitted) and event.job.submit_time >= self._since:
                    # There was no plan for it.
                    self._met.add(event.job.id)
                else:
                    self._told(event, begun, cycle.now)
            for decision, outcome in zip(cycle.decisions, cycle.outcomes, strict=True):
                if isinstance(decision, Start):
                    self.planned(decision, cycle.now)
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
        if job_id not in self._met:
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
        self.later.append(max(0.0, moment(event.time, [planned], now) - planned))
        if where and event.placement:
            self.elsewhere += {name for name, _ in where} != {name for name, _ in event.placement}

    def _dropped(self, job_id: str) -> int:
        """1 if there was a plan that counts for the job; there is none any more."""
        plan = self._plans.pop(job_id, None)
        return plan is not None and plan[0] >= self._since

    def summary(self) -> PlannedStarts:
        later: Sequence[float] = self.later
        still = sum(planned >= self._since for planned, _ in self._plans.values())
        return PlannedStarts(
            planned=len(later) + self.failed + self.withdrawn + still,
            began=len(later),
            later=tuple(round(float(np.quantile(later, q)), 3) for q in QUANTILES) if later else (),
            mean=round(float(np.mean(later)), 3) if later else 0.0,
            elsewhere=self.elsewhere,
            failed=self.failed,
            withdrawn=self.withdrawn,
            open=still,
            unplanned=self.unplanned,
        )


def _none(job_id: str) -> None:
    """Nothing was planned before."""


def _open_plan(journal: Journal, last: Mapping[int, int], carried_out: bool, job_id: str) -> Plan | None:
    """The plan that a job still had after these cycles, the ``last`` of each run that counts: from its
    history alone."""
    plan: Plan | None = None
    for entry in journal.job_history(job_id):
        what, refused = entry.what, entry.outcome is not None and not entry.outcome.accepted
        if entry.seq > last.get(entry.run_id, -1):
            continue
        if isinstance(what, JobStarted | JobEnded | JobHeld | JobRequeued):
            plan = None
        elif isinstance(what, DecisionFailed):
            plan = None if isinstance(what.decision, Start) else plan
        elif isinstance(what, Start):
            plan = None if carried_out and refused else plan or (entry.time, what.placement)
    return plan


def planned_starts(journal: Journal, since: float = 0.0) -> RealCluster | None:
    """What the daemon of this journal has planned and measured; None: it has no run of a real cluster.

    ``since``: plans from then on, absolute seconds; what is older is read only of jobs that were there then.
    Latencies are the newest, however old they are.
    """
    tallies: dict[str, _Tally] = {}
    counted: set[str] = set()
    name, until = None, None
    runs = [run for run in journal.runs() if run.info.mode in (DRIVE, MONITOR)]
    at = {run.id: journal.last_before(run.id, since) for run in runs}
    last = {run_id: seq for run_id, seq in at.items() if seq is not None}
    for run in runs:
        mode, driven = run.info.mode, run.info.mode == DRIVE
        name = run.info.cluster.name
        if mode not in tallies:
            # Jobs of an earlier run may begin in a later one.
            before = {one.id: last[one.id] for one in runs if one.info.mode == mode and one.id in last}
            tallies[mode] = _Tally(since, partial(_open_plan, journal, before, driven) if before else _none)
        span = journal.span(run.id)
        if span is not None and span[1] >= since:
            tallies[mode].run(journal.cycles(run.id, last.get(run.id)), span[0], carried_out=driven)
        if run.ended_at is None or run.ended_at >= since:
            counted.add(mode)
            until = span[1] if span is not None else until
    if name is None:
        return None
    starts = {mode: tally.summary() for mode, tally in sorted(tallies.items()) if mode in counted}
    return RealCluster(name, until, together(measured(journal)), starts)


def encoded(found: RealCluster) -> str:
    """The text of its file."""
    return msgspec.json.format(msgspec.json.encode(found), indent=1).decode() + "\n"


def read_real_cluster(path: Path, where: str) -> RealCluster:
    """What :func:`encoded` made; :class:`UserError`, led by ``where``, if the file is something else."""
    expected = "expected a file of `headway starts -c CONFIG --out FILE`"
    try:
        found = msgspec.json.decode(path.read_bytes(), type=RealCluster)
    except OSError as error:
        raise UserError(f"{where}: {path}: {expected}, found {error.strerror or error}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UserError(f"{where}: {path}: {expected}, found something else ({error})") from error
    one = found.latencies
    if any(not 0 <= seconds <= LONGEST for seconds in (*one.start, *one.end, *one.look)):
        raise UserError(f"{where}: {path}: expected latencies from 0 to {LONGEST:g} s, found others")
    if any(len(starts.later) not in (0, len(QUANTILES)) for starts in found.starts.values()):
        raise UserError(f"{where}: {path}: expected {len(QUANTILES)} quantiles (later), found others")
    return found
