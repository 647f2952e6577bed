"""Plain emulations with one account: the scheduler's own.

The emulated cluster keeps an account of what runs and waits, apart from the scheduler's, so that each can be
wrong without the other. Of jobs that only wait for processors of a flat pool, and of starts of such jobs, a
second account says nothing new: what the scheduler's guard lets start, runs. Here the scheduler's state is
the only account. State, view, guard, policies and hooks are the real ones.

This goes on while all that happens is plain. Before anything else happens, or when something else is decided
than plain starts, the emulated cluster takes over what there is by then (:class:`Course`) and goes on from
there. A run is the same whether it began here or not (``tests/properties/test_direct_emulation.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TypeGuard

from headway.adapter import Outcome
from headway.decisions import Decision, Start
from headway.events import Event, JobEnded, JobStarted, JobSubmitted
from headway.model import JobDescription
from headway.results import JobResult
from headway.scheduler import Scheduler
from headway.state import Job, PoolState, State, Status
from headway.state.plain import come, go
from headway.workload.jobs import TraceJob

_INF = float("inf")
_RUNNING = Status.RUNNING
_ACCEPTED = Outcome(accepted=True)


@dataclass(slots=True)
class Course:
    """How far a run is: what an emulated cluster must know to go on from there."""

    #: Seconds of the run's clock; before anything happened the first submission.
    now: float
    #: How many jobs of the workload have arrived.
    arrived: int = 0
    #: The positions in the workload of the jobs that wait, by id, in order of submission.
    waiting: dict[str, int] = field(default_factory=dict)
    #: ``(end, number of the start, position, job)`` of what runs: a heap.
    running: list[tuple[float, int, int, Job]] = field(default_factory=list)
    #: The records of the jobs that have ended, by position.
    ended: dict[int, JobResult] = field(default_factory=dict)
    #: The jobs that were started at the last instant: their starts are told at the next instant.
    begun: list[Job] = field(default_factory=list)


class Direct:
    """The beginning of an emulation on flat pools, up to what is not plain."""

    def __init__(
        self,
        jobs: Sequence[TraceJob],
        scheduler: Scheduler,
        *,
        report: Callable[[], None],
        decided: Callable[[float, Sequence[Decision], Sequence[Outcome]], None] | None,
        stepped: Callable[[float], None] | None,
    ) -> None:
        """``jobs`` in order of submission. ``report`` tells the log of the scheduler's problems and notices.
        ``decided`` is told of a step's decisions and what became of them, ``stepped`` of each step's end."""
        self.course = Course(jobs[0].job.submit_time if jobs else 0.0)
        #: What was decided at the last instant, where something in it is no plain start: to be carried out.
        self.left: list[Decision] = []
        self._jobs = jobs
        self._scheduler = scheduler
        self._report = report
        self._decided = decided
        self._stepped = stepped
        state = scheduler.state
        self._pools: dict[str, PoolState] = dict(state.pools)
        #: The name of the only pool, which jobs need not name.
        self._only = ""
        if len(self._pools) == 1:
            (self._only,) = self._pools
            self._pools[""] = self._pools[self._only]
        self._until, bare = self._judged(jobs)
        #: Every job, and what the state does with it, is as :mod:`headway.state.plain` says.
        self._bare = bare and _asks_nothing(state)

    @staticmethod
    def applies(scheduler: Scheduler) -> bool:
        """Whether the scheduler's cluster is one of flat pools that only jobs change."""
        cluster = scheduler.state.cluster
        return (
            all(pool.flat and pool.open and pool.bounds is None for pool in cluster.pools)
            and not (cluster.nodes or cluster.reservations or cluster.licences)
            and cluster.energy is None
            and cluster.wiring is None
            and cluster.sites is None
            and not (cluster.numbered or cluster.shares_out or cluster.moves_take_time)
        )

    def _judged(self, jobs: Sequence[TraceJob]) -> tuple[float, bool]:
        """When the first job comes that only the emulated cluster can judge (seconds; infinity: never),
        and whether all jobs before it ask for processors alone."""
        pools, known, bare = self._pools, set[str](), True
        for trace in jobs:
            job = trace.job
            if job.dependencies or job.further_pools or job.reservation or job.id in known:
                return job.submit_time, bare
            pool = pools.get(job.pool)
            if pool is None:
                return job.submit_time, bare
            known.add(job.id)
            bare = bare and _is_bare(job, pool)
        return _INF, bare

    def run(self) -> None:
        """Run until something is not plain, or nothing runs or comes any more."""
        course, scheduler = self.course, self._scheduler
        known, jobs, waiting, running = scheduler.state.jobs, self._jobs, course.waiting, course.running
        problems, notices, stepped = scheduler.problems, scheduler.notices, self._stepped
        number = 0
        for now, decisions in self._steps():
            if decisions:
                if not _are_plain(decisions):
                    self.left = decisions
                    return
                for decision in decisions:
                    job = known[decision.job_id]
                    index = waiting.pop(job.id)
                    runtime, limit = jobs[index].runtime, job.estimate
                    number += 1
                    heappush(running, (now + (runtime if runtime < limit else limit), number, index, job))
                    course.begun.append(job)
                if self._decided is not None:
                    self._decided(now, decisions, [_ACCEPTED] * len(decisions))
            if problems or notices:
                self._report()
            if stepped is not None:
                stepped(now)

    # ------------------------------------------------------------------ instant by instant

    def _steps(self) -> Iterator[tuple[float, list[Decision]]]:
        """The instants at which something happens, one after another, and what is decided at each."""
        course, jobs, scheduler, bare = self.course, self._jobs, self._scheduler, self._bare
        running, waiting, ended, at = course.running, course.waiting, course.ended, 0
        state, pools, until, count = scheduler.state, self._pools, self._until, len(jobs)
        told = scheduler.looks_at_jobs_events or not bare
        # Of bare jobs the state is changed here, as the events would change it.
        decide = scheduler.decide if bare else scheduler.step
        arrival = jobs[0].job.submit_time if jobs else _INF
        while (now := self._next(arrival)) < until:
            events: list[Event] = [JobStarted(course.now, job.id) for job in course.begun] if told else []
            course.now = now
            if bare:
                state.now = now
                for job in course.begun:
                    job.status = _RUNNING
            course.begun = []
            while running and running[0][0] <= now:
                _, _, index, job = heappop(running)
                ended[index] = record = self._record(jobs[index], job, now)
                if told:
                    late = "its time limit" if jobs[index].runtime > job.estimate else ""
                    events.append(JobEnded(now, job.id, record.state, late))
                if bare:
                    go(state, job)
            while arrival <= now:
                description = jobs[at].job
                waiting[description.id] = at
                if told:
                    events.append(JobSubmitted(arrival, description))
                if bare:
                    come(state, description, pools[description.pool])
                at += 1
                arrival = jobs[at].job.submit_time if at < count else _INF
            course.arrived = at
            yield now, decide(now, events)

    def _next(self, arrival: float) -> float:
        """When something happens next; infinity if nothing does but what plugins want to be woken for."""
        course, running = self.course, self.course.running
        now = running[0][0] if running and running[0][0] < arrival else arrival
        due = self._scheduler.next_wakeup(now)
        if due is not None and due < now < _INF:
            now = due
        return now if now > course.now else course.now

    def _record(self, trace: TraceJob, job: Job, now: float) -> JobResult:
        """What became of a job that ends now."""
        start, description = job.start_time, job.description
        assert start is not None
        state = "timed out" if trace.runtime > job.estimate else trace.outcome
        pool = description.pool or self._only
        return JobResult(description, start, now, state, now - start, (), pool, trace.row)


def _is_bare(job: JobDescription, pool: PoolState) -> bool:
    """Whether a job asks for nothing but processors of its pool, which has so many, as soon as there are
    some."""
    return not (
        job.held
        or job.begin_time is not None
        or job.array_id
        or job.attributes is not None
        or job.request.licences
        or job.request.processors > pool.total
    )


def _asks_nothing(state: State) -> bool:
    """Whether plugins are asked nothing about a job that arrives but how long it runs, and are not told what
    it takes and gives back."""
    asked = (state.queue_key, state.admit, state.bars, state.bar_kind)
    return all(hook is None for hook in asked) and not state.watchers


def _are_plain(decisions: Sequence[Decision]) -> TypeGuard[Sequence[Start]]:
    """Whether they start jobs, as jobs start where nothing else is decided."""
    for decision in decisions:
        if (
            type(decision) is not Start
            or decision.tier != "foreground"
            or decision.frequency is not None
            or decision.placement
            or decision.pool
        ):
            return False
    return True
