"""The cluster as the scheduler knows it: a fold over events.

:class:`State` holds every job that is not over, every pool with its queue and its running jobs,
and the nodes. Events change it (:meth:`State.apply`), and so do the decisions that the scheduler
has taken (:meth:`State.begin`): from the decision to the confirming event a job is *starting* and
its processors count as taken.

The state is kept so that each event costs work in proportion to what it changes: queues and
running lists stay sorted, free processors are counted up and down, and a pool that nothing
touched is not scheduled again.
"""

from __future__ import annotations

import enum
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from headway import events as ev
from headway.decisions import Reserve, Resize, SetTimeLimit, Start
from headway.energy import EnergyModel
from headway.errors import StateError
from headway.model import (
    FOR_JOB,
    ClusterDescription,
    Dependency,
    JobDescription,
    Placement,
    PoolDescription,
    Request,
    Reservation,
)
from headway.nodes import NodeTable
from headway.profile import Profile, next_after
from headway.sizes import JobsBySize

if TYPE_CHECKING:
    from headway.view import View

_INF = float("inf")
_order = attrgetter("order")


class Status(enum.Enum):
    """Where a job is in its life."""

    #: In its pool's queue: it may be started.
    PENDING = "pending"
    #: Not startable yet: held, a dependency, a begin time, or a start that failed just now.
    WAITING = "waiting"
    #: A start was decided and is not confirmed yet.
    STARTING = "starting"
    RUNNING = "running"
    SUSPENDED = "suspended"
    ENDED = "ended"


_PENDING, _WAITING, _STARTING = Status.PENDING, Status.WAITING, Status.STARTING
_RUNNING, _SUSPENDED, _ENDED = Status.RUNNING, Status.SUSPENDED, Status.ENDED
_ON_NODES = (_STARTING, _RUNNING, _SUSPENDED)


class Job(msgspec.Struct, eq=False, weakref=True):
    """A job as the scheduler knows it. Policies read it; only the state changes it."""

    id: str
    description: JobDescription
    pool: PoolState
    #: Order of arrival over the whole cluster: breaks every tie.
    seq: int
    submit_time: float
    #: The processors that it counts for.
    processors: int
    #: The user's estimate; ``expected_runtime`` is the predictor's answer, else the estimate.
    #: Both in seconds.
    estimate: float
    expected_runtime: float
    #: Sort key of its place in the queue.
    order: tuple[Any, ...]
    held: bool = False
    status: Status = Status.WAITING
    start_time: float | None = None
    expected_end: float = _INF
    placement: Placement = ()
    tier: str = "foreground"
    frequency: float | None = None
    #: Why it is held, or why its last start failed.
    hold_reason: str = ""
    #: After a start that failed: not to be tried again before this time.
    not_before: float = 0.0
    failures: int = 0
    #: Why a plugin refused it; "" if none did.
    refusal: str = ""
    #: Why a plugin vetoed its last start; "" if none did.
    veto: str = ""
    #: Seconds that it was suspended since its start; and since when it is, if it is now.
    paused: float = 0.0
    suspended_since: float | None = None
    #: The request as it was when its nodes were taken, so that exactly that is given back.
    taken: Request | None = None
    #: Its entries in the running lists of the pools whose processors it takes.
    entries: Sequence[tuple[PoolState, RunningEntry]] | None = None

    @classmethod
    def arrived(cls, description: JobDescription, pool: PoolState, seq: int) -> Job:
        """A job that nothing has happened to yet."""
        request = description.request
        submit, walltime = description.submit_time, request.walltime
        return cls(
            description.id, description, pool, seq, submit, request.processors, walltime, walltime,
            (submit, seq), description.held,
        )  # fmt: skip

    @property
    def request(self) -> Request:
        return self.description.request

    @property
    def user(self) -> str:
        return self.description.user

    @property
    def account(self) -> str:
        return self.description.account

    @property
    def name(self) -> str:
        return self.description.name

    def attribute(self, name: str, default: Any = None) -> Any:
        """One of the description's attributes."""
        attributes = self.description.attributes
        return default if attributes is None else attributes.get(name, default)

    def __repr__(self) -> str:
        return f"Job({self.id!r}, {self.processors} processors, {self.estimate:g} s, {self.status.value})"


#: ``(expected end, seq, processors in this pool, job)``
RunningEntry = tuple[float, int, int, Job]


class PoolState:
    """One pool: its queue, what runs in it, and what is free."""

    __slots__ = (
        "arrivals", "by_size", "changed", "description", "flat", "free", "fresh", "name", "open", "queue",
        "reservations", "running", "total", "view",
    )  # fmt: skip

    def __init__(self, description: PoolDescription) -> None:
        self.description = description
        self.name: str = description.name
        self.flat: bool = description.flat
        self.open: bool = description.open
        #: Usable processors (nodes that are down do not count), and how many of them are free.
        self.total: int = description.processors
        self.free: int = description.processors
        #: Startable jobs in service order.
        self.queue: list[Job] = []
        #: Running and starting jobs by expected end.
        self.running: list[RunningEntry] = []
        #: Reservations that are not over and take something from this pool, by start.
        self.reservations: list[Reservation] = []
        #: Something happened since the last cycle.
        self.changed: bool = False
        #: Jobs appended to the queue's tail since the last cycle, or -1 if anything else changed too.
        self.fresh: int = -1
        #: Jobs that came into the queue since the last cycle, wherever in it, if nothing else changed.
        self.arrivals: list[Job] | None = None
        #: The queue by the jobs' sizes; there once a policy has asked for it.
        self.by_size: JobsBySize | None = None
        #: What its policy sees of it: bookings, and whether a start may take longer.
        self.view: View | None = None

    def touch(self) -> None:
        """Something changed that may let other jobs start: the next cycle looks at everything."""
        self.changed = True
        self.fresh = -1
        self.arrivals = None

    def __repr__(self) -> str:
        return f"PoolState({self.name!r}, {self.free} of {self.total} free, {len(self.queue)} queued)"


def _nothing(event: ev.Event) -> None:
    """News that only plugins care about."""


class State:
    """All that the scheduler knows about one cluster."""

    def __init__(self, cluster: ClusterDescription) -> None:
        self.cluster = cluster
        #: What nodes draw and how fast they are; None: nobody said.
        self.energy = EnergyModel(cluster) if cluster.energy is not None else None
        self.now: float = float("-inf")
        #: Seconds from the epoch to time 0 of this clock: what makes ``now`` an hour of the day.
        self.epoch: float = 0.0
        self.pools: dict[str, PoolState] = {p.name: PoolState(p) for p in cluster.pools}
        self.jobs: dict[str, Job] = {}
        self.reservations: dict[str, Reservation] = {}
        self.nodes = NodeTable()
        #: Things in events that made no sense, for the log; drained by the scheduler.
        self.anomalies: list[str] = []
        #: Called for each job that arrives, before it is queued.
        self.admit: Callable[[Job], None] | None = None
        #: Called for each pool that appears later.
        self.pool_made: Callable[[PoolState], None] | None = None
        #: Gives a job's place in the queue, where a plugin defines one.
        self.queue_key: Callable[[Job], tuple[Any, ...]] | None = None
        #: Expected runtime of a job in seconds, where a predictor answers.
        self.predict: Callable[[Job], float | None] | None = None
        #: Schedule a pool at every arrival, even if the new job needs more than is free.
        self.ask_always = False
        self._seq = 0
        #: Jobs that wait for other jobs: id of the other -> jobs to look at when it ends or starts.
        self._dependants: dict[str, list[Job]] = {}
        #: Outcomes of ended jobs that somebody depends on.
        self._outcomes: dict[str, str] = {}
        #: A heap of (time, seq, what): when to look again at a pool or a job.
        self.wakeups: list[tuple[float, int, PoolState | Job]] = []
        self._nodes_of: dict[str, set[Job]] = {}
        #: Reservations that were decided and that the cluster has not confirmed -> what was there before.
        self._foreseen: dict[str, Reservation | None] = {}
        #: Where running jobs were whose growth is foreseen.
        self._before: dict[str, Placement] = {}
        #: Starts and frequencies of jobs that ran when an earlier run ended.
        self._remembered: dict[str, tuple[float, float | None]] = {}
        for node in cluster.nodes:
            self.nodes.put(node)
        self._recount(self.pools)
        for reservation in cluster.reservations:
            self._put_reservation(reservation)
        #: What each event does to the state.
        self.handlers: dict[type, Callable[[Any], None]] = {
            ev.JobSubmitted: self._submitted,
            ev.JobStarted: self._started,
            ev.JobEnded: self._ended,
            ev.JobRequeued: self._requeued,
            ev.JobHeld: self._held,
            ev.JobReleased: self._released,
            ev.JobReleasing: self._releasing,
            ev.JobChanged: self._job_changed,
            ev.JobSuspended: self._suspended,
            ev.JobResumed: self._resumed,
            ev.JobMigrated: self._migrated,
            ev.JobTierChanged: self._tier_changed,
            ev.JobFrequencyChanged: self._frequency_changed,
            ev.PoolChanged: self._pool_changed,
            ev.NodeUp: self._node_up,
            ev.NodeDown: self._node_down,
            ev.ReservationMade: self._reservation_made,
            ev.ReservationStarted: self._reservation_started,
            ev.ReservationEnded: self._reservation_ended,
            ev.DecisionFailed: self._decision_failed,
            ev.JobCheckpointed: _nothing,
            ev.ElasticCommandReceived: _nothing,
            ev.ReservationRequested: _nothing,
            ev.ReservationReturned: _nothing,
            ev.NodeFrequencyChanged: _nothing,
            ev.NodePowerChanged: self._power_changed,
            ev.Tick: _nothing,
        }

    # ------------------------------------------------------------------ questions

    def pool_of(self, description: JobDescription) -> PoolState | None:
        """The pool that a job was sent to; the only one if it names none."""
        if description.pool:
            return self.pools.get(description.pool)
        return next(iter(self.pools.values())) if len(self.pools) == 1 else None

    def running_jobs(self) -> Iterator[Job]:
        """Jobs that take processors now (starting, running, suspended)."""
        return (job for job in self.jobs.values() if job.status in _ON_NODES)

    def kept_for(self, job: Job) -> Reservation | None:
        """The reservation that headway keeps for this job alone. The job may use it, and other nodes too."""
        found = self.reservations.get(FOR_JOB + job.id) if self.reservations else None
        return found if found is not None and found.ours else None

    def inside(self, job: Job) -> str:
        """The reservation that takes nothing from the job: the one that it names, or that is kept for it."""
        named = job.description.reservation
        if named or not self.reservations:
            return named
        kept = self.kept_for(job)
        return kept.id if kept is not None else ""

    def why_waiting(self, job: Job, clock: Callable[[float], str] = "{:.0f}".format) -> str:
        """Why a job that is not in a queue cannot be started; "" if it can. ``clock`` writes times."""
        if job.refusal:
            return f"refused: {job.refusal}"
        if job.held:
            return "held" + (
                f" ({job.hold_reason})" if job.hold_reason else " by its user or an administrator"
            )
        begin = job.description.begin_time
        if begin is not None and begin > self.now:
            return f"its begin time {clock(begin)} has not come"
        if unmet := self._unmet(job):
            return unmet
        if job.not_before > self.now:
            why = f"its last start failed ({job.hold_reason})" if job.failures else job.hold_reason
            return f"{why}; it is tried again at {clock(job.not_before)}"
        reservation = job.description.reservation
        if reservation:
            kept = self.reservations.get(reservation)
            if kept is None:
                return f"it asks for reservation {reservation!r}, which does not exist"
            if kept.job_id not in ("", job.id):
                return f"reservation {reservation!r} is kept for job {kept.job_id} alone"
            if kept.start > self.now:
                return f"its reservation {reservation!r} begins at {clock(kept.start)}"
        if not job.pool.open:
            return f"pool {job.pool.name!r} is closed"
        return ""

    def next_wakeup(self) -> float | None:
        """When something becomes due by the clock alone (begin times, reservations, retries)."""
        return self.wakeups[0][0] if self.wakeups else None

    # ------------------------------------------------------------------ the fold

    def apply(self, events: Iterable[ev.Event]) -> None:
        """Fold events in, in the order given."""
        for event in events:
            self.handlers[type(event)](event)

    def advance(self, now: float) -> None:
        """Look at what became due by ``now``."""
        wakeups = self.wakeups
        while wakeups and wakeups[0][0] <= now:
            due = heappop(wakeups)[2]
            if isinstance(due, Job):
                if due.status is _WAITING:
                    self._queue_or_wait(due)
                    # It was known before: plugins may have booked something for it.
                    due.pool.touch()
            else:
                due.touch()

    def wake_at(self, time: float, pool: PoolState) -> None:
        """Look at ``pool`` again at ``time`` even if nothing happens."""
        self._seq += 1
        heappush(self.wakeups, (time, self._seq, pool))

    def set_aside(self, job: Job, until: float, reason: str) -> None:
        """Leave a job out of its queue until then, because nothing can let it start before.

        Policies do not try it meanwhile, so it takes no processors from those behind it.
        """
        if job.status is _PENDING and until > self.now:
            self._leave_queue(job)
            job.not_before, job.hold_reason = until, reason
            self._queue_or_wait(job)

    def frequencies(self) -> dict[str, tuple[float, float]]:
        """Job -> start and frequency of its run, where that is not the nodes' own.

        Batch systems do not tell it, so it must be remembered over a restart."""
        return {
            job.id: (job.start_time, job.frequency)
            for job in self.jobs.values()
            if job.frequency is not None and job.start_time is not None and job.entries is not None
        }

    def remember_frequencies(self, known: Mapping[str, Sequence[float]]) -> None:
        """Take up what :meth:`frequencies` of an earlier run said, for jobs that still run."""
        self._remembered = {job: (start, frequency) for job, (start, frequency) in known.items()}

    def overdue(self, pool: PoolState) -> None:
        """Jobs that outlive a prediction fall back to their estimate; then their end is "any moment"."""
        pool.touch()
        for _, _, _, job in list(pool.running):
            if job.expected_end > self.now:
                break
            limit = (job.start_time if job.start_time is not None else self.now) + job.paused + job.estimate
            if limit > self.now and limit > job.expected_end:
                self.set_expected_end(job, limit)

    def _submitted(self, event: ev.JobSubmitted) -> None:
        description = event.job
        job_id = description.id
        if job_id in self.jobs:
            self.anomalies.append(f"job {job_id} was submitted twice; the second is taken as a change")
            self._job_changed(ev.JobChanged(time=event.time, job=description))
            return
        pool = self.pool_of(description)
        if pool is None:
            self.anomalies.append(
                f"job {job_id} is in pool {description.pool!r}, which does not exist; ignored"
            )
            return
        self._seq += 1
        job = Job.arrived(description, pool, self._seq)
        self.jobs[job_id] = job
        if self.predict is not None:
            self._predict(job)
        if self.queue_key is not None:
            job.order = (self.queue_key(job), description.submit_time, job.seq)
        if self.admit is not None:
            self.admit(job)
        if (
            pool.open
            and not job.held
            and not description.dependencies
            and description.begin_time is None
            and not description.reservation
            and not job.refusal
        ):
            self._enqueue(job)
        else:
            self._queue_or_wait(job)

    def _predict(self, job: Job) -> None:
        assert self.predict is not None
        seconds = self.predict(job)
        if seconds is not None:
            job.expected_runtime = min(max(seconds, 1.0), job.estimate) if job.estimate > 0 else seconds

    def _enqueue(self, job: Job) -> None:
        pool = job.pool
        queue = pool.queue
        job.status = _PENDING
        try:
            last = not queue or queue[-1].order < job.order
            if not last:
                insort(queue, job, key=_order)
        except TypeError as error:
            self.anomalies.append(f"job {job.id} has a queue key that compares with no other: {error}")
            job.order = ((1,), job.submit_time, job.seq)
            insort(queue, job, key=_order)
            last = False
        if pool.arrivals is not None:
            pool.arrivals.append(job)
        if pool.by_size is not None:
            pool.by_size.add(job)
        if last:
            queue.append(job)
            if pool.fresh >= 0:
                pool.fresh += 1
                # Nothing else changed, so if this one cannot start, nobody can.
                if job.processors <= pool.free or self.ask_always:
                    pool.changed = True
                return
        else:
            pool.fresh = -1
        pool.changed = True

    def _queue_or_wait(self, job: Job) -> None:
        """Put a job that is not on nodes where it belongs now."""
        if job.refusal or job.held or not job.pool.open:
            job.status = _WAITING
            return
        wake = _INF
        description = job.description
        if description.begin_time is not None and description.begin_time > self.now:
            wake = description.begin_time
        if job.not_before > self.now:
            wake = min(wake, job.not_before) if wake == _INF else max(wake, job.not_before)
        if description.reservation:
            kept = self.reservations.get(description.reservation)
            if kept is None or kept.job_id not in ("", job.id):
                job.status = _WAITING
                return
            if kept.start > self.now:
                wake = kept.start if wake == _INF else max(wake, kept.start)
        if wake != _INF:
            job.status = _WAITING
            self._seq += 1
            heappush(self.wakeups, (wake, self._seq, job))
            return
        if self._unmet(job):
            job.status = _WAITING
            return
        self._enqueue(job)

    def _unmet(self, job: Job) -> str:
        """What a job still depends on, as a sentence; "" if nothing. Registers for the news."""
        description = job.description
        if not description.dependencies:
            return ""
        unmet = []
        for dependency in description.dependencies:
            met = self._met(job, dependency)
            if met and description.any_dependency:
                return ""
            if not met:
                unmet.append(dependency)
        if not unmet:
            return ""
        for dependency in unmet:
            waiting = self._dependants.setdefault(dependency.job_id, [])
            if job not in waiting:
                waiting.append(job)
        words = " or " if description.any_dependency else " and "
        return "it waits for " + words.join(
            f"job {d.job_id} ({d.kind})" if d.job_id else "its namesakes" for d in unmet
        )

    def _met(self, job: Job, dependency: Dependency) -> bool:
        kind = dependency.kind
        if kind == "singleton":
            return not any(
                other is not job
                and other.name == job.name
                and other.user == job.user
                and (other.status in _ON_NODES or other.seq < job.seq)
                for other in self.jobs.values()
            )
        other = self.jobs.get(dependency.job_id)
        if other is not None:
            return kind == "started" and other.status in (_RUNNING, _SUSPENDED)
        outcome = self._outcomes.get(dependency.job_id)
        if outcome is None:
            # Unknown to us: it ended before we came (the batch system forgot it), so only the
            # kinds that any end satisfies can be called met.
            return kind in ("ended", "started")
        if kind == "completed":
            return outcome == "completed"
        if kind == "failed":
            return outcome in ("failed", "timed out", "node failure")
        return kind in ("ended", "started")

    def _news_for_dependants(self, job: Job) -> None:
        for key in (job.id, ""):
            waiting = self._dependants.pop(key, None)
            if waiting:
                for other in waiting:
                    if other.status is _WAITING:
                        self._queue_or_wait(other)

    def _started(self, event: ev.JobStarted) -> None:
        job = self.jobs.get(event.job_id)
        if job is None:
            self.anomalies.append(f"job {event.job_id} started but was never submitted; ignored")
            return
        if job.status is _STARTING:
            if job.start_time != event.time:
                job.start_time = event.time
                self.set_expected_end(job, event.time + job.expected_runtime)
            if event.placement != job.placement and event.placement:
                self._release(job)
                self._occupy(job, event.placement, event.time)
        elif job.status in (_PENDING, _WAITING):
            # Started by somebody else, or seen for the first time.
            self._leave_queue(job)
            self._occupy(job, event.placement, event.time)
        else:
            self.anomalies.append(
                f"job {event.job_id} started again while {job.status.value}; the news is kept"
            )
            self._release(job)
            self._occupy(job, event.placement, event.time)
        job.status = _RUNNING
        if event.tier != job.tier or event.frequency != job.frequency:
            job.tier = event.tier
            job.frequency = event.frequency
        if self._remembered:
            start, frequency = self._remembered.pop(event.job_id, (_INF, None))
            if event.frequency is None and abs(start - event.time) < 1.0:
                job.frequency = frequency
        if job.failures:
            job.failures = 0
        if self._dependants:
            self._news_for_dependants(job)

    def _ended(self, event: ev.JobEnded) -> None:
        job = self.jobs.pop(event.job_id, None)
        if job is None:
            self.anomalies.append(f"job {event.job_id} ended but is not known; ignored")
            return
        if job.entries is not None:
            self._release(job)
        else:
            self._leave_queue(job)
        job.status = _ENDED
        self._before.pop(job.id, None)
        if self._dependants:
            if job.id in self._dependants:
                self._outcomes[job.id] = event.outcome
            self._news_for_dependants(job)

    def _requeued(self, event: ev.JobRequeued) -> None:
        job = self._known(event.job_id, "requeued")
        if job is None:
            return
        if job.status in _ON_NODES:
            self._release(job)
            self._expect_again(job)
            job.paused, job.suspended_since = 0.0, None
            self._queue_or_wait(job)

    def _held(self, event: ev.JobHeld) -> None:
        job = self._known(event.job_id, "held")
        if job is not None:
            job.held, job.hold_reason = True, event.reason
            if job.status is _PENDING:
                self._leave_queue(job)
                job.status = _WAITING

    def _released(self, event: ev.JobReleased) -> None:
        job = self._known(event.job_id, "released")
        if job is not None:
            job.held, job.hold_reason = False, ""
            if job.status is _WAITING:
                self._queue_or_wait(job)

    def _releasing(self, event: ev.JobReleasing) -> None:
        job = self._known(event.job_id, "on its way")
        if job is not None and job.status in (_PENDING, _WAITING):
            self._leave_queue(job)
            self._occupy(job, event.placement, event.time)
            job.status = _STARTING

    def _job_changed(self, event: ev.JobChanged) -> None:
        job = self._known(event.job.id, "changed")
        if job is None:
            return
        new = event.job
        pool = self.pool_of(new)
        if pool is None:
            self.anomalies.append(f"job {job.id} moved to pool {new.pool!r}, which does not exist")
            pool = job.pool
        on_nodes = job.status in _ON_NODES
        if not on_nodes:
            self._leave_queue(job)
        job.description = new
        job.processors = new.request.processors
        job.estimate = job.expected_runtime = new.request.walltime
        job.held = new.held
        job.pool = pool
        if self.predict is not None:
            self._predict(job)
        if on_nodes:
            start = job.start_time if job.start_time is not None else self.now
            if job.pool.flat:
                self._before.pop(job.id, None)
                if job.entries and job.entries[0][1][2] != job.processors:
                    self._move(job, ())
            self.set_expected_end(job, start + job.paused + job.expected_runtime)
            return
        tail = (new.submit_time, job.seq)
        job.order = tail if self.queue_key is None else (self.queue_key(job), *tail)
        if self.admit is not None:
            job.refusal = ""
            self.admit(job)
        pool.touch()
        self._queue_or_wait(job)

    def _suspended(self, event: ev.JobSuspended) -> None:
        job = self._known(event.job_id, "suspended")
        if job is not None and job.status in _ON_NODES:
            job.status = _SUSPENDED
            job.suspended_since = event.time

    def _resumed(self, event: ev.JobResumed) -> None:
        job = self._known(event.job_id, "resumed")
        if job is not None and job.status is _SUSPENDED:
            job.status = _RUNNING
            if job.suspended_since is not None:
                pause = event.time - job.suspended_since
                job.paused += pause
                job.suspended_since = None
                self.set_expected_end(job, job.expected_end + pause)

    def _migrated(self, event: ev.JobMigrated) -> None:
        job = self._known(event.job_id, "migrated")
        if job is not None and job.start_time is not None:
            self._before.pop(job.id, None)
            self._move(job, event.placement)

    def _tier_changed(self, event: ev.JobTierChanged) -> None:
        job = self._known(event.job_id, "moved between tiers")
        if job is not None:
            job.tier = event.tier

    def _frequency_changed(self, event: ev.JobFrequencyChanged) -> None:
        job = self._known(event.job_id, "set to another frequency")
        if job is not None:
            job.frequency = event.frequency

    def _decision_failed(self, event: ev.DecisionFailed) -> None:
        if isinstance(event.decision, SetTimeLimit | Resize | Reserve):
            self.take_back(event.decision)
        if not isinstance(event.decision, Start):
            return
        job = self.jobs.get(event.decision.job_id)
        if job is None or job.status is not _STARTING:
            return
        self._release(job)
        self._expect_again(job)
        job.failures += 1
        job.hold_reason = event.message
        # A start that keeps failing must not be asked for at every poll.
        job.not_before = event.time + min(15.0 * 2 ** (job.failures - 1), 600.0)
        self._queue_or_wait(job)

    def _as_described(self, job: Job | None) -> None:
        """A change that was foreseen did not happen: the job is what its description says."""
        if job is not None:
            job.estimate = job.request.walltime
            job.processors = job.request.processors
            job.pool.by_size = None
            if job.id in self._before and job.entries is not None:
                self._move(job, self._before.pop(job.id))
            self._set_expectation(job)
            job.pool.touch()

    def _pool_changed(self, event: ev.PoolChanged) -> None:
        description = event.pool
        pool = self.pools.get(description.name)
        if pool is None:
            pool = self.pools[description.name] = PoolState(description)
            if self.pool_made is not None:
                self.pool_made(pool)
            for reservation in self.reservations.values():
                self._keep_from(pool, reservation)
        elif pool.flat is not description.flat:
            kind = "flat" if description.flat else "one of nodes"
            self.anomalies.append(f"pool {pool.name!r} cannot become {kind}; ignored")
            return
        else:
            if pool.flat:
                pool.total += description.processors - pool.description.processors
                pool.free += description.processors - pool.description.processors
            pool.description = description
            if pool.open is not description.open:
                pool.open = description.open
                for job in [job for job in self.jobs.values() if job.pool is pool]:
                    if job.status is _PENDING:
                        self._leave_queue(job)
                        job.status = _WAITING
                    if job.status is _WAITING:
                        self._queue_or_wait(job)
        self._recount((pool.name,))
        pool.touch()

    def _node_up(self, event: ev.NodeUp) -> None:
        node, old = event.node, self.nodes.descriptions.get(event.node.name)
        if old is not None:
            # These the configuration said; a batch system that describes the node anew does not know them.
            kind, wake = node.node_class or old.node_class, node.wake_time or old.wake_time
            node = msgspec.structs.replace(node, node_class=kind, wake_time=wake)
        if self.energy is not None:
            node = self.energy.learned(node)
        self.nodes.put(node)
        self._recount((*node.pools, *(old.pools if old is not None else ())))
        # The table may have grown, so no pool may keep arrays of the old size.
        for pool in self.pools.values():
            if not pool.flat:
                pool.touch()

    def _node_down(self, event: ev.NodeDown) -> None:
        description = self.nodes.descriptions.get(event.node)
        if description is None:
            self.anomalies.append(f"node {event.node} went down but is not known; ignored")
            return
        self.nodes.set_available(event.node, False)
        self._recount(description.pools)

    def _power_changed(self, event: ev.NodePowerChanged) -> None:
        description = self.nodes.descriptions.get(event.node)
        if description is None:
            self.anomalies.append(f"node {event.node} is {event.power} but is not known; ignored")
            return
        self.nodes.set_power(event.node, event.power, event.time)
        for name in description.pools:
            if name in self.pools:
                self.pools[name].touch()

    def _recount(self, pools: Iterable[str]) -> None:
        for name in pools:
            pool = self.pools.get(name)
            if pool is not None and not pool.flat:
                pool.total, pool.free = self.nodes.count(name)
                pool.touch()

    def _reservation_made(self, event: ev.ReservationMade) -> None:
        self._foreseen.pop(event.reservation.id, None)
        self._drop_reservation(event.reservation.id)
        self._put_reservation(event.reservation)

    def _reservation_started(self, event: ev.ReservationStarted) -> None:
        if event.reservation_id not in self.reservations:
            self.anomalies.append(f"reservation {event.reservation_id} began but is not known; ignored")
        for pool in self.pools.values():
            if any(r.id == event.reservation_id for r in pool.reservations):
                pool.touch()

    def _reservation_ended(self, event: ev.ReservationEnded) -> None:
        if event.reservation_id not in self.reservations:
            self.anomalies.append(f"reservation {event.reservation_id} ended but is not known; ignored")
        self._foreseen.pop(event.reservation_id, None)
        self._drop_reservation(event.reservation_id)

    def _put_reservation(self, reservation: Reservation) -> None:
        self.reservations[reservation.id] = reservation
        for pool in self.pools.values():
            self._keep_from(pool, reservation)
        if reservation.nodes:
            self.nodes.set_reservations(self.reservations.values())
        for job in self.jobs.values():
            if job.description.reservation == reservation.id and job.status is _WAITING:
                self._queue_or_wait(job)

    def _keep_from(self, pool: PoolState, reservation: Reservation) -> None:
        """Take a reservation from a pool if it is made of something there."""
        mine = (
            reservation.pool == pool.name or (not reservation.pool and len(self.pools) == 1)
            if pool.flat
            else self.nodes.any_in(pool.name, reservation.nodes)
        )
        if mine:
            insort(pool.reservations, reservation, key=lambda r: (r.start, r.id))
            pool.touch()
            for time in (reservation.start, reservation.end):
                if time > self.now:
                    self.wake_at(time, pool)

    def _drop_reservation(self, reservation_id: str) -> None:
        gone = self.reservations.pop(reservation_id, None)
        if gone is None:
            return
        for pool in self.pools.values():
            if gone in pool.reservations:
                pool.reservations.remove(gone)
                pool.touch()
            for job in [job for job in pool.queue if job.description.reservation == reservation_id]:
                self._leave_queue(job)
                job.status = _WAITING
        if gone.nodes:
            self.nodes.set_reservations(self.reservations.values())

    def _known(self, job_id: str, what: str) -> Job | None:
        job = self.jobs.get(job_id)
        if job is None:
            self.anomalies.append(f"job {job_id} was {what} but is not known; ignored")
        return job

    # ------------------------------------------------------------------ changes by decision

    def begin(self, job: Job, placement: Placement, tier: str, frequency: float | None) -> None:
        """A start was decided: the job takes its processors from now on.

        This is the guard that nothing switches off: raises :class:`StateError`, and changes
        nothing, if the job is not pending, if a processor would be given twice, or if a
        reservation would be broken. The queue is cleaned by :meth:`sweep`, once a cycle.
        """
        if job.status is not _PENDING:
            raise StateError(f"job {job.id} is {job.status.value}, not pending")
        pool = job.pool
        if job.processors > pool.free:
            raise StateError(f"job {job.id} needs {job.processors} processors, {pool.free} are free")
        if pool.flat:
            if pool.reservations:
                self._guard_reservations(job, pool)
            if frequency is not None or tier != "foreground":
                job.tier = tier
                job.frequency = frequency
            job.status = _STARTING
            job.start_time = now = self.now
            job.expected_end = end = now + job.expected_runtime
            processors = job.processors
            pool.free -= processors
            entry = (end, job.seq, processors, job)
            insort(pool.running, entry)
            job.entries = ((pool, entry),)
            return
        self.nodes.guard(job.request, placement, pool.name)
        end = self.now + job.expected_runtime
        broken = self.nodes.broken(placement, self.now, end, self.inside(job))
        if broken is not None:
            raise StateError(f"job {job.id} would break reservation {broken.id} on its nodes")
        job.tier = tier
        job.frequency = frequency
        job.status = _STARTING
        fresh, changed, arrivals = pool.fresh, pool.changed, pool.arrivals
        self._occupy(job, placement, self.now)
        # Only the other pools on these nodes have something to look at: this one is being looked at.
        pool.fresh, pool.changed, pool.arrivals = fresh, changed, arrivals

    def foresee(self, decision: SetTimeLimit | Resize | Reserve) -> None:
        """A change was decided: count with it until the cluster says what became of it."""
        if isinstance(decision, Reserve):
            name = decision.reservation.id
            self._foreseen.setdefault(name, self.reservations.get(name))
            self._drop_reservation(decision.reservation.id)
            self._put_reservation(decision.reservation)
            return
        job = self.jobs.get(decision.job_id)
        if job is None:
            return
        if isinstance(decision, SetTimeLimit):
            job.estimate = decision.walltime
            self._set_expectation(job)
        elif job.entries is None:
            job.processors = decision.processors
            job.pool.by_size = None
        elif decision.processors > job.processors:
            # What it gives back, in turn, is free when the cluster says so.
            self._before.setdefault(job.id, job.placement)
            job.processors = decision.processors
            self._move(job, decision.placement)
        job.pool.touch()

    def take_back(self, decision: SetTimeLimit | Resize | Reserve) -> None:
        """What was foreseen does not come: the state is what the cluster said last."""
        if not isinstance(decision, Reserve):
            self._as_described(self.jobs.get(decision.job_id))
            return
        name = decision.reservation.id
        if name in self._foreseen:
            before = self._foreseen.pop(name)
            self._drop_reservation(name)
            if before is not None:
                self._put_reservation(before)

    def _expect_again(self, job: Job) -> None:
        """A start is off: its frequency, and how long it would have taken at that, are forgotten."""
        job.start_time, job.frequency = None, None
        self._set_expectation(job)

    def _set_expectation(self, job: Job) -> None:
        """The expected runtime and end that follow from the job's estimate."""
        job.expected_runtime = job.estimate
        if self.predict is not None:
            self._predict(job)
        if job.entries is not None:
            start = job.start_time if job.start_time is not None else self.now
            self.set_expected_end(job, start + job.paused + job.expected_runtime)

    def undo(self, job: Job) -> None:
        """Take back a :meth:`begin`; the job is in its queue again."""
        self._release(job)
        self._expect_again(job)
        job.pool.touch()
        if job in job.pool.queue:
            job.status = _PENDING
        else:
            self._enqueue(job)

    def profile(self, pool: PoolState, *, without: Collection[str] = ()) -> Profile:
        """Free processors of ``pool`` over time: now, the expected ends, the reservations.

        ``without`` names reservations that are left out (for jobs that may use them).
        """
        profile = Profile.of_releases(self.now, pool.free, ((e[0], e[2]) for e in pool.running))
        for reservation in pool.reservations:
            end = reservation.end
            if reservation.id in without or end <= self.now:
                continue
            start = max(reservation.start, self.now)
            profile.reserve(start, end, self.size(pool, reservation))
            for expected_end, _, processors, job in pool.running:
                if self.inside(job) == reservation.id:
                    # It runs on what is reserved, and what it leaves is kept again.
                    profile.release(start, min(max(expected_end, next_after(self.now)), end), processors)
        return profile

    def kept(self, pool: PoolState, reservation: Reservation) -> int:
        """Processors of ``pool`` that a reservation still keeps from others."""
        inside = sum(e[2] for e in pool.running if self.inside(e[3]) == reservation.id)
        return max(self.size(pool, reservation) - inside, 0)

    def size(self, pool: PoolState, reservation: Reservation) -> int:
        """Processors of ``pool`` that a reservation is made of."""
        if pool.flat:
            return reservation.processors
        return sum(
            self.nodes.descriptions[name].processors
            for name in reservation.nodes
            if name in self.nodes.descriptions and pool.name in self.nodes.descriptions[name].pools
        )

    def _guard_reservations(self, job: Job, pool: PoolState) -> None:
        own = self.reservations.get(job.description.reservation)
        end = self.now + job.expected_runtime
        if own is not None:
            if not own.start <= self.now < own.end:
                raise StateError(f"job {job.id} would run outside the time of reservation {own.id}")
            if job.processors > self.kept(pool, own):
                raise StateError(f"job {job.id} does not fit in what reservation {own.id} has left")
            if end > own.end and self.profile(pool).minimum(own.end, end) < job.processors:
                raise StateError(f"job {job.id} would run on after reservation {own.id} into another one")
            return
        if self.profile(pool, without=(self.inside(job),)).minimum(self.now, end) < job.processors:
            names = ", ".join(r.id for r in pool.reservations if r.start < end and r.end > self.now)
            raise StateError(f"job {job.id} would break reservation {names}")

    def sweep(self, pool: PoolState, started: Sequence[Job]) -> None:
        """Take jobs that began out of the queue."""
        queue = pool.queue
        if pool.by_size is not None:
            for job in started:
                pool.by_size.remove(job)
        count = len(started)
        if count > 1 and queue[:count] == started:
            del queue[:count]
            return
        # To walk along the queue costs as much as to close dozens of gaps in it.
        if count > 4 and 64 * count > len(queue):
            pool.queue = [job for job in queue if job.status is _PENDING]
            return
        for job in started:
            if queue[0] is job:
                del queue[0]
            else:
                self._drop(queue, job)

    @staticmethod
    def _drop(queue: list[Job], job: Job) -> None:
        at = bisect_left(queue, job.order, key=_order)
        if at < len(queue) and queue[at] is job:
            del queue[at]
        else:
            queue.remove(job)

    def _occupy(self, job: Job, placement: Placement, start: float) -> None:
        pool = job.pool
        job.start_time = start
        job.expected_end = start + job.paused + job.expected_runtime
        if pool.flat:
            entry = (job.expected_end, job.seq, job.processors, job)
            insort(pool.running, entry)
            job.entries = ((pool, entry),)
            pool.free -= job.processors
            pool.touch()
            return
        job.placement = placement
        job.taken = job.request
        shares = self.nodes.take(job.taken, placement)
        entries = []
        for name, (processors, usable) in shares.items():
            other = self.pools.get(name)
            if other is None:
                continue
            entry = (job.expected_end, job.seq, processors, job)
            insort(other.running, entry)
            entries.append((other, entry))
            other.free -= usable
            other.touch()
        job.entries = entries

    def _move(self, job: Job, placement: Placement) -> None:
        """A running job is on other nodes, or has another size."""
        start = job.start_time if job.start_time is not None else self.now
        self._release(job)
        self._occupy(job, placement, start)

    def _release(self, job: Job) -> None:
        entries = job.entries
        if entries is None:
            return
        job.entries = None
        for pool, entry in entries:
            running = pool.running
            del running[bisect_left(running, entry)]
            if pool.flat:
                pool.free += entry[2]
            pool.touch()
        if job.taken is not None:
            shares = self.nodes.give_back(job.taken, job.placement)
            job.taken = None
            for name, (_, usable) in shares.items():
                if name in self.pools:
                    self.pools[name].free += usable
            job.placement = ()

    def set_expected_end(self, job: Job, end: float) -> None:
        """Move a running job's expected end (absolute seconds)."""
        job.expected_end = end
        if job.entries is None:
            return
        moved = []
        for pool, entry in job.entries:
            running = pool.running
            del running[bisect_left(running, entry)]
            entry = (end, *entry[1:])
            insort(running, entry)
            moved.append((pool, entry))
            pool.touch()
        job.entries = moved

    def expect(self, job: Job, runtime: float) -> None:
        """A job that begins at this instant is expected to run for ``runtime`` seconds.

        Its own pool is being looked at and need not look again; others on its nodes must.
        """
        pool = job.pool
        looked = pool.changed, pool.fresh, pool.arrivals
        job.expected_runtime = runtime
        self.set_expected_end(job, self.now + runtime)
        pool.changed, pool.fresh, pool.arrivals = looked

    def _leave_queue(self, job: Job) -> None:
        if job.status is _PENDING:
            self._drop(job.pool.queue, job)
            if job.pool.by_size is not None:
                job.pool.by_size.remove(job)
            job.pool.touch()
