"""What a journal of mode ``monitor`` tells of a cluster: which job came, started and ended when, and on what.

The record is made of *stretches*. Within a stretch nothing was missed. A stretch ends where the record does:
at the end of the time that is asked for, where no daemon watched, or where the batch system was silent. A gap
of at most :data:`BRIDGED` seconds ends no stretch if it provably hid nothing: no job that was there before it
is missing after it, and the cluster is as it was. Every gap is kept for the report, bridged or not.

A job that is in two stretches is in each as that stretch knows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headway import events as ev
from headway.emulation.live_copy import begun_now
from headway.errors import UserError
from headway.journal import CycleRecord, Journal, RunRecord
from headway.journal.latencies import Latencies, LatencyMeter
from headway.model import ClusterDescription, JobDescription, Placement
from headway.model.modes import Mode
from headway.state import State
from headway.state.records import ON_NODES
from headway.state.retold import cluster_now, description_now
from headway.workload.jobs import Begun

#: Seconds: batch systems list ended jobs for longer than this, so a short gap need not hide any.
BRIDGED = 120.0

_INF = float("inf")
#: Changes of the cluster, which happen again in an emulation.
_CHANGES = (
    ev.NodeDown, ev.NodeUp, ev.PoolChanged, ev.LicencesChanged, ev.ReservationMade, ev.ReservationEnded,
    ev.JobHeld, ev.JobReleased, ev.SitePolicyChanged,
)  # fmt: skip


class Course(msgspec.Struct):
    """What became of a job, as far as a stretch knows it. Times are seconds since the epoch."""

    #: As it was when it started, or as it is known last; with its last time limit.
    job: JobDescription
    #: When it was submitted; of a job that went back to the queue, when that was.
    submit: float
    #: None: it did not start.
    start: float | None = None
    #: None: it was not over.
    end: float | None = None
    placement: Placement = ()
    #: The pool that it ran in; "": its only one.
    pool: str = ""
    #: One of :data:`headway.events.OUTCOMES`; "": it was not over.
    outcome: str = ""
    #: Seconds since its start in which it was suspended.
    paused: float = 0.0
    suspended_since: float | None = None
    #: It ran, or waited, when the stretch began.
    begun: bool = False
    waited: bool = False
    #: It was held for some time, and not by headway; it went back to the queue; its user or an administrator
    #: changed it while it waited.
    held: bool = False
    requeued: bool = False
    changed: bool = False

    @property
    def runtime(self) -> float | None:
        """Seconds that it ran; None: that is not known."""
        if self.start is None or self.end is None or self.outcome == "vanished":
            return None
        return max(self.end - self.start - self.paused, 0.0)


@dataclass(frozen=True)
class Gap:
    """A time of which the journal says nothing. Seconds since the epoch."""

    begin: float
    end: float
    why: str
    #: Nothing was missed in it.
    bridged: bool


@dataclass(frozen=True)
class Stretch:
    """A time in which nothing was missed. Times are seconds since the epoch."""

    begin: float
    end: float
    #: The cluster as it was at the beginning.
    cluster: ClusterDescription
    #: All jobs that were there, those of the beginning first, then by submission.
    courses: Sequence[Course]
    #: The jobs that ran at the beginning.
    running: Sequence[Begun]
    #: What changed on the cluster, in order.
    changes: Sequence[ev.Event]
    #: What plugins knew when the run began in which the stretch begins, by name.
    states: Mapping[str, Any]


@dataclass
class Record:
    """What was recorded, oldest first."""

    #: The cluster's name.
    cluster: str
    #: The last of the runs that it is made of.
    run: RunRecord
    runs: int = 0
    stretches: list[Stretch] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    #: What watching shows of latencies: how long ends take to be known.
    latencies: Latencies = field(default_factory=Latencies)


def read_record(journal: Journal, since: float = -_INF, until: float = _INF) -> Record:
    """What ``journal`` recorded of a watched cluster from ``since`` to ``until`` (seconds since the epoch).

    Only reads; the daemon may write meanwhile. Raises :class:`UserError` if no run of that time watched.
    """
    runs = journal.runs()
    watching = [run for run in runs if run.info.mode == Mode.MONITOR]
    spans = {run.id: span for run in runs if run.info.mode != Mode.DRY_RUN and (span := journal.span(run.id))}
    there = [run for run in watching if run.id in spans]
    chosen = [run for run in there if spans[run.id][0] <= until and _end(run, spans) >= since]
    if not chosen:
        raise UserError(_none_of(journal.name, runs, there))
    if any(run.info.cluster.sites is not None for run in chosen):
        raise UserError(
            f"{journal.name}: expected the record of one cluster, found that of several clusters with sites, "
            "which are not emulated together with measured latencies"
        )
    driven = [spans[run.id] for run in runs if run.info.mode == Mode.DRIVE and run.id in spans]
    record = Record(chosen[-1].info.cluster.name, chosen[-1], len(chosen))
    reader = _Reader(record, since, until, driven)
    for run in chosen:
        reader.read(run, journal.cycles(run.id), min(_end(run, spans), until))
    reader.finish()
    return record


def _end(run: RunRecord, spans: dict[int, tuple[float, float]]) -> float:
    """The last moment of which a run knows something: its end or, of one that was killed, its last cycle."""
    last = spans[run.id][1]
    return last if run.ended_at is None else max(run.ended_at, last)


def _none_of(journal: str, runs: Sequence[RunRecord], watched: Sequence[RunRecord]) -> str:
    """Why there is nothing to report on."""
    expected = f"{journal}: expected a run of mode monitor (`headway run --monitor`)"
    if watched:
        return f"{expected} in the time that was asked for, found none; it has {len(watched)} at other times"
    if not runs:
        return f"{expected}, found an empty journal"
    modes = ", ".join(sorted({str(run.info.mode) for run in runs}))
    if any(run.info.mode == Mode.DRIVE for run in runs):
        return (
            f"{expected}, found runs of mode {modes}. What headway drove is no shadow of what the batch "
            "system would have done: compare policies with `headway compare`, and planned with real "
            "starts with `headway starts`"
        )
    return f"{expected}, found runs of mode {modes}, or runs in which nothing happened"


class _Reader:
    """Reads runs one after another into a record."""

    def __init__(
        self, record: Record, since: float, until: float, driven: Sequence[tuple[float, float]]
    ) -> None:
        self._record = record
        self._since, self._until = since, until
        #: When headway drove the cluster.
        self._driven = driven
        self._state: State
        self._states: Mapping[str, Any] = {}
        #: The jobs that are there, by id, and the jobs that are over and may be told of again.
        self._there: dict[str, Course] = {}
        self._over: dict[str, Course] = {}
        #: The stretch that is open: its jobs and changes.
        self._open: _Open | None = None
        #: The site's policy as it was told last.
        self._policy: ev.SitePolicyChanged | None = None
        #: Up to when the runs so far know everything; None: none was read.
        self._known_to: float | None = None
        self._silent_since: float | None = None
        self._meter = LatencyMeter()

    def read(self, run: RunRecord, cycles: Iterator[CycleRecord], end: float) -> None:
        """A further run, which ends at ``end``."""
        self._state = State(run.info.cluster)
        self._states = run.info.plugin_states
        self._silent_since = None
        meter, first = LatencyMeter(self._meter.saved()), True
        for cycle in cycles:
            if cycle.now > self._until:
                break
            meter.cycle(cycle.now, cycle.events, ())
            if first:
                self._first(run, cycle)
                first = False
            else:
                self._cycle(cycle)
        self._meter = meter
        self._known_to = end if self._silent_since is None else min(end, self._silent_since)

    def finish(self) -> None:
        """All runs were read."""
        if self._open is not None and self._known_to is not None:
            self._close(min(self._known_to, self._until))
        self._record.latencies = next(iter(self._meter.latencies().values()), Latencies())

    # ------------------------------------------------------------------ cycles

    def _first(self, run: RunRecord, cycle: CycleRecord) -> None:
        """The first cycle of a run tells all that there is."""
        before, alive = self._open, set(self._there)
        events = ev.in_order(cycle.events)
        self._fold(cycle.now, events)
        gap_begin = self._known_to
        if before is None or gap_begin is None:
            self._there.clear()
            self._note(events)
            self._maybe_open(cycle.now)
            return
        told_over = {event.job_id for event in events if isinstance(event, ev.JobEnded)}
        lost = alive - self._state.jobs.keys() - told_over
        bridged = (
            cycle.now - gap_begin <= BRIDGED
            and not lost
            and not self._drove(gap_begin, cycle.now)
            and before.same_cluster(cluster_now(run.info.cluster, self._state))
        )
        self._gap(gap_begin, cycle.now, "no daemon watched", bridged=bridged)
        if not bridged:
            self._close(gap_begin)
            self._there.clear()
        self._note(events)
        self._maybe_open(cycle.now)

    def _cycle(self, cycle: CycleRecord) -> None:
        events = ev.in_order(cycle.events)
        answers = any(isinstance(event, ev.ClusterAnswers) for event in events)
        if answers and self._silent_since is not None:
            since, self._silent_since = self._silent_since, None
            vanished = any(isinstance(e, ev.JobEnded) and e.outcome == "vanished" for e in events)
            bridged = cycle.now - since <= BRIDGED and not vanished
            if self._open is not None:
                self._gap(since, cycle.now, "the batch system did not answer", bridged=bridged)
                if not bridged:
                    self._close(since)
        self._fold(cycle.now, events)
        self._note(events)
        for event in events:
            if isinstance(event, ev.ClusterSilent) and self._silent_since is None:
                self._silent_since = event.time
        if self._silent_since is None:
            self._maybe_open(cycle.now)

    def _fold(self, now: float, events: Sequence[ev.Event]) -> None:
        self._state.now = now
        self._state.apply(events)
        self._state.anomalies.clear()
        self._state.notices.clear()

    def _drove(self, begin: float, end: float) -> bool:
        return any(first < end and last > begin for first, last in self._driven)

    def _gap(self, begin: float, end: float, why: str, *, bridged: bool) -> None:
        if self._drove(begin, end):
            why = "headway drove the cluster"
        self._record.gaps.append(Gap(min(begin, end), end, why, bridged))

    # ------------------------------------------------------------------ stretches

    def _maybe_open(self, now: float) -> None:
        """Begin a stretch, unless there is one or its time has not come."""
        if self._open is not None or now < self._since:
            return
        state = self._state
        running = []
        for job_id, course in self._there.items():
            job = state.jobs.get(job_id)
            on_nodes = job is not None and job.status in ON_NODES
            course.begun, course.waited = on_nodes, not on_nodes
            if job is None:
                continue
            course.job = description_now(state, job)
            if on_nodes:
                running.append(begun_now(state, job))
        courses = [*self._there.values()]
        cluster = cluster_now(state.cluster, state)
        self._open = _Open(now, cluster, courses, running, self._states)
        if self._policy is not None:
            self._open.changes.append(self._policy)

    def _close(self, end: float) -> None:
        """End the stretch that is open; what is known of later moments does not belong to it."""
        opened, self._open = self._open, None
        assert opened is not None
        if end > opened.begin:
            self._record.stretches.append(opened.closed(end))

    # ------------------------------------------------------------------ jobs

    def _note(self, events: Sequence[ev.Event]) -> None:
        """What events say of jobs, and of the cluster."""
        for event in events:
            if isinstance(event, ev.SitePolicyChanged):
                self._policy = event
            if isinstance(event, _CHANGES) and self._open is not None:
                self._open.changes.append(event)
            kind = type(event)
            if kind is ev.JobSubmitted or kind is ev.JobChanged:
                self._described(event)
            elif (handle := _OF_JOBS.get(kind)) is not None:
                course = self._there.get(event.job_id)  # type: ignore[attr-defined]
                if course is not None:
                    handle(course, event)
                    if course.outcome:
                        self._over[event.job_id] = self._there.pop(event.job_id)  # type: ignore[attr-defined]

    def _described(self, event: ev.Event) -> None:
        assert isinstance(event, ev.JobSubmitted | ev.JobChanged)
        job = event.job
        course = self._there.get(job.id)
        if course is None:
            over = self._over.get(job.id)
            if over is not None and over.job.submit_time == job.submit_time:
                return
            course = self._there[job.id] = Course(job, job.submit_time, held=job.held)
            if self._open is not None:
                self._open.courses.append(course)
        elif course.start is None:
            asks = job.request != course.job.request or job.pools != course.job.pools
            course.changed = course.changed or asks
            kept = {"held": course.job.held, "dependencies": course.job.dependencies}
            course.job = msgspec.structs.replace(job, submit_time=course.job.submit_time, **kept)
        else:
            limit = job.request.walltime
            request = msgspec.structs.replace(course.job.request, walltime=limit)
            course.job = msgspec.structs.replace(course.job, request=request)


def _started(course: Course, event: ev.JobStarted) -> None:
    course.start, course.placement, course.pool = event.time, event.placement, event.pool


def _ended(course: Course, event: ev.JobEnded) -> None:
    if course.suspended_since is not None:
        course.paused += max(event.time - course.suspended_since, 0.0)
    course.end, course.outcome = event.time, event.outcome


def _requeued(course: Course, event: ev.JobRequeued) -> None:
    course.submit, course.start, course.placement = event.time, None, ()
    course.paused, course.suspended_since, course.requeued = 0.0, None, True


def _held(course: Course, event: ev.JobHeld) -> None:
    course.held = True


def _suspended(course: Course, event: ev.JobSuspended) -> None:
    course.suspended_since = event.time


def _resumed(course: Course, event: ev.JobResumed) -> None:
    if course.suspended_since is not None:
        course.paused += max(event.time - course.suspended_since, 0.0)
        course.suspended_since = None


#: What events do to a job's course.
_OF_JOBS: Mapping[type, Callable[[Course, Any], None]] = {
    ev.JobStarted: _started,
    ev.JobEnded: _ended,
    ev.JobRequeued: _requeued,
    ev.JobHeld: _held,
    ev.JobSuspended: _suspended,
    ev.JobResumed: _resumed,
}


class _Open:
    """A stretch that is being read."""

    def __init__(
        self, begin: float, cluster: ClusterDescription, courses: list[Course], running: list[Begun],
        states: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.states = states
        self.begin = begin
        self.cluster = cluster
        self.courses = courses
        self.running = running
        self.changes: list[ev.Event] = []

    def same_cluster(self, now: ClusterDescription) -> bool:
        """Whether the cluster is now as the changes so far have left it."""
        state = State(self.cluster)
        state.apply([event for event in self.changes if not isinstance(event, ev.JobHeld | ev.JobReleased)])
        mine = cluster_now(self.cluster, state)
        return _parts(mine) == _parts(now)

    def closed(self, end: float) -> Stretch:
        """The stretch, which ends at ``end``."""
        # A first look tells of jobs that were over before, too.
        there = [_until(one, end) for one in self.courses if one.end is None or one.end > self.begin]
        came = [one for one in there if one.begun or one.submit <= end]
        order = sorted(came, key=lambda one: (not one.begun, not one.waited, one.submit))
        changes = [event for event in self.changes if event.time <= end]
        return Stretch(self.begin, end, self.cluster, order, self.running, changes, self.states)


def _parts(cluster: ClusterDescription) -> tuple[frozenset[object], ...]:
    """What jobs can have of a cluster."""
    nodes = [msgspec.structs.replace(node, reason="") for node in cluster.nodes]
    return tuple(frozenset(part) for part in (cluster.pools, nodes, cluster.reservations, cluster.licences))


def _until(course: Course, end: float) -> Course:
    """A job's course as it was at ``end``."""
    known = msgspec.structs.replace(course)
    if known.end is not None and known.end > end:
        known.end, known.outcome = None, ""
    if known.start is not None and known.start > end:
        known.start, known.placement = None, ()
    return known
