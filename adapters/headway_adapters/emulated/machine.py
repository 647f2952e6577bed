"""What all parts of the emulated cluster share: the clock, what runs and waits, and what is free.

The ideas stand in files of their own beside this one (starts, ends, limits, sizes, reservations, sleep,
failures, ...). Each is a class that is made with the machine and keeps what it alone needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headway import events as ev
from headway.adapter import Outcome
from headway.errors import StateError
from headway.model import ClusterDescription, JobDescription, processors_of
from headway.resources import NodeTable
from headway.results import Activity, CapacityChange, JobResult, Occupation
from headway.workload.jobs import Follows, TraceJob
from headway_adapters.emulated.agenda import Agenda
from headway_adapters.emulated.arrivals import Arrivals
from headway_adapters.emulated.chains import ChainedArrivals
from headway_adapters.emulated.execution import FOREGROUND, Execution
from headway_adapters.emulated.power import Power, activity


class Moves:
    """How often a job was moved with its progress, began again elsewhere, and came to the front where it
    was."""

    __slots__ = ("migrations", "promotions", "restarts")

    def __init__(self) -> None:
        self.migrations = self.restarts = self.promotions = 0


_UNMOVED = Moves()


class Machine:
    """The emulated cluster's state, and the few steps that several ideas take."""

    def __init__(
        self,
        cluster: ClusterDescription,
        jobs: Sequence[TraceJob],
        start: float | None,
        chains: Mapping[str, Follows] | None = None,
    ) -> None:
        """``start``: when the emulation begins, seconds; None: with the first submission. ``chains``: the
        job that each job follows, by id."""
        self.cluster = cluster
        self.arrivals: Arrivals = ChainedArrivals(jobs, chains) if chains else Arrivals(jobs)
        self.now = start if start is not None else (jobs[0].job.submit_time if jobs else 0.0)
        self.agenda = Agenda()
        #: Events that are true already and are told by the next wait.
        self.news: list[ev.Event] = []
        #: What waits, by id: its position in the workload and its description as it is now.
        self.submitted: dict[str, tuple[int, JobDescription]] = {}
        self.running: dict[str, Execution] = {}
        #: The record of each job that has ended, by its position in the workload.
        self.ended: dict[int, JobResult] = {}
        #: Jobs that are no part of the workload, the first at position -1, the next at -2, ...
        self.further: list[TraceJob] = []
        #: Positions of further jobs that came from another cluster: they have results.
        self.guests: list[int] = []
        #: Positions of jobs that have gone to another cluster: they have none.
        self.gone: set[int] = set()
        #: The record of a job that runs as a bundle, by id; None: it does not. There once there was one.
        self.bundled: Callable[[str], JobResult | None] | None = None
        #: How often a job of the workload went back to the queue, by position.
        self.restarts: dict[int, int] = {}
        #: Work that is left of jobs that had saved themselves before they went back, by position, seconds.
        self.left_over: dict[int, float] = {}
        #: Says of an execution that is over what work is left of what it has saved; None: it has not.
        self.saved: Callable[[Execution], float | None] | None = None
        #: How running jobs were moved, by position in the workload.
        self.moves: dict[int, Moves] = {}
        #: Told of each execution that gives back what it had; made once a job is in the background.
        self.left: Callable[[Execution], None] | None = None
        #: Jobs whose limit or size was changed.
        self.altered: set[str] = set()
        #: The only pool, whose jobs need not name it; "" if there are several.
        self.only = cluster.pools[0].name if len(cluster.pools) == 1 else ""
        #: Free processors of the flat pools.
        self.free = {p.name: p.processors for p in cluster.pools if p.flat}
        self.nodes = NodeTable()
        for node in cluster.nodes:
            self.nodes.put(node)
        #: Changes of the usable processors, for the metrics.
        self.capacity: list[CapacityChange] = []
        self.power = Power(cluster) if cluster.energy is not None else None
        #: What jobs did before they changed, where there is an energy profile.
        self.activities: list[Activity] = []

    def trace(self, index: int) -> TraceJob:
        """The job at this position."""
        return self.arrivals.jobs[index] if index >= 0 else self.further[~index]

    def pool_of(self, job: JobDescription | Execution) -> str:
        """The pool that a job was sent to first, or that an execution is in."""
        return job.pool or self.only

    def refuse(self, decision: Any, message: str) -> Outcome:
        """A decision is not carried out, and the next wait says why."""
        self.news.append(ev.DecisionFailed(self.now, decision, message))
        return Outcome(accepted=False, message=message)

    # ------------------------------------------------------------------ what runs

    def occupy(self, execution: Execution) -> None:
        """A job takes its processors, in its tier."""
        request = execution.job.request
        pool = execution.pool or self.only
        if pool in self.free:
            if execution.tier == FOREGROUND:
                self.free[pool] -= request.processors
        elif execution.tier == FOREGROUND:
            self.nodes.take(request, execution.placement)
        else:
            self.nodes.take_behind(request, execution.placement)

    def vacate(self, execution: Execution) -> None:
        """What a job had is free again."""
        if self.left is not None:
            self.left(execution)
        pool = execution.pool or self.only
        if execution.lends:
            execution.lends = False
            if pool not in self.free:
                self.nodes.end_lending(execution.job.request, execution.placement)
        elif execution.tier != FOREGROUND:
            if pool not in self.free:
                self.nodes.give_back_behind(execution.job.request, execution.placement)
        elif pool in self.free:
            self.free[pool] += execution.job.request.processors
        else:
            self.nodes.give_back(execution.job.request, execution.placement)

    def lend(self, execution: Execution) -> None:
        """A suspended job keeps what it has but its processors."""
        pool = execution.pool or self.only
        if execution.tier == FOREGROUND and not execution.lends:
            execution.lends = True
            execution.spans = (*execution.spans, self._span(execution, self.now))
            if pool in self.free:
                self.free[pool] += execution.job.request.processors
            else:
                self.nodes.lend(execution.job.request, execution.placement)

    def take_again(self, execution: Execution) -> str:
        """What it lends is its own again; why that cannot be, or ""."""
        if not execution.lends:
            return ""
        job, pool = execution.job, execution.pool or self.only
        if pool in self.free:
            if job.request.processors > self.free[pool]:
                return f"job {job.id} had {job.request.processors} processors, {self.free[pool]} are free"
            self.free[pool] -= job.request.processors
        else:
            try:
                self.nodes.guard_return(job.request, execution.placement, pool)
            except StateError as error:
                return str(error)
            self.nodes.end_lending(job.request, execution.placement)
            self.nodes.take(job.request, execution.placement)
        execution.lends = False
        execution.held_since = self.now
        return ""

    def _span(self, execution: Execution, end: float | None) -> Occupation:
        """The last span in which a job had its processors, up to ``end``; None: it still has them."""
        since = execution.start if execution.held_since is None else execution.held_since
        processors = processors_of(execution.placement) or execution.job.request.processors
        return Occupation(since, end, processors, execution.placement)

    def _spans(self, execution: Execution, end: float | None) -> tuple[Occupation, ...]:
        """When a job that was suspended had its processors."""
        spans = execution.spans
        return spans if execution.lends else (*spans, self._span(execution, end))

    def moves_of(self, execution: Execution) -> Moves:
        """Where the moves of a job are counted."""
        return self.moves.setdefault(execution.index, Moves())

    def cut(self, execution: Execution) -> None:
        """The job will run otherwise from now on: note what it did until now."""
        if self.power is not None:
            done = activity(execution, self.now, self.pool_of(execution))
            if done is not None:
                self.activities.append(done)
            execution.active_since = self.now

    def tell_changed(self, job: JobDescription) -> None:
        """A job has another description."""
        self.altered.add(job.id)
        self.news.append(ev.JobChanged(self.now, job))

    # ------------------------------------------------------------------ nodes

    def set_available(self, node: str, available: bool, reason: str = "") -> None:
        """A node takes new jobs from now on, or none; ``reason`` says why it takes none."""
        self.nodes.set_available(node, available)
        if available:
            self.news.append(ev.NodeUp(self.now, self.nodes.descriptions[node]))
        else:
            self.news.append(ev.NodeDown(self.now, node, reason))
        for pool in self.nodes.descriptions[node].pools:
            self.capacity.append(CapacityChange(self.now, pool, self.nodes.count(pool)[0]))

    # ------------------------------------------------------------------ results

    def end(self, index: int, record: JobResult) -> None:
        """A job is gone for good: the users of the jobs that follow it begin their think times."""
        self.ended[index] = record
        if self.arrivals.chained:
            self.arrivals.ended(record.job.id, self.now)

    def record(self, execution: Execution, end: float | None, state: str) -> JobResult:
        """What became of an execution."""
        job = execution.job
        record = JobResult(
            job,
            execution.start,
            end,
            state,
            execution.consumed,
            execution.placement,
            execution.pool or self.only,
            execution.trace.row,
            1,
            execution.frequency,
            execution.active_since,
        )
        if self.restarts:
            record.starts += self.restarts.get(execution.index, 0)
        if self.moves:
            moves = self.moves.get(execution.index, _UNMOVED)
            record.migrations, record.restarts = moves.migrations, moves.restarts
            record.promotions = moves.promotions
        if execution.suspended and end is not None:
            # While it is suspended it does nothing.
            record.active_since = end
        if execution.spans:
            record.spans = self._spans(execution, end)
        return record

    def never_started(self, index: int, job: JobDescription, end: float | None, state: str) -> JobResult:
        """The record of a job that does not run."""
        return JobResult(
            job,
            None,
            end,
            state,
            0.0,
            row=self.trace(index).row,
            starts=self.restarts.get(index, 0),
            pool=self.pool_of(job),
        )

    def results(self) -> list[JobResult]:
        """One record for each job submitted so far, in order of submission."""
        there: Sequence[int] = range(self.arrivals.next)
        if self.gone or self.guests:
            there = [index for index in (*there, *self.guests) if index not in self.gone]
        ended = self.ended
        return [ended[index] if index in ended else self._result(index) for index in there]

    def _result(self, index: int) -> JobResult:
        """What became of a job that has not ended."""
        record = self.bundled(self.trace(index).job.id) if self.bundled is not None else None
        if record is None:
            job = self.trace(index).job
            execution = self.running.get(job.id)
            if execution is None:
                return self.never_started(index, job, None, "pending")
            record = self.record(execution, None, "running")
            if not execution.suspended:
                record.runtime += self.now - execution.booked_at
        return record
