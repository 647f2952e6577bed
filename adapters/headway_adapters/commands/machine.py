"""The cluster behind the emulated commands: jobs, nodes and the clock, without any batch system's words.

Jobs run on the emulated cluster (:class:`~headway_adapters.emulated.EmulatedAdapter`): it keeps their
time, ends them at their limit, suspends them and sends them back to the queue. What we decided:

- It is given one flat pool that is never full. Which job is on which node is counted here, because PBS
  and LSF start a job on a full node without a word, which the emulated cluster would refuse. Jobs of the
  emulation sleep, so sharing a processor costs them nothing.
- Jobs go ``speed`` times faster than the clock on the wall. The clock itself stays right: a job of an hour
  that runs at speed 60 starts and ends at the wall times that a listing shows, one minute apart. A
  scheduler that watches sees jobs that end before their limit.
- Nothing happens between two commands that could not be seen later: :meth:`Machine.advance` goes from
  instant to instant up to now, and lets the batch system's own scheduler start jobs at each.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from headway import decisions as dec
from headway import events as ev
from headway.model import ClusterDescription, JobDescription, Request
from headway.workload.jobs import TraceJob
from headway_adapters.emulated import EmulatedAdapter

#: Processors of the flat pool that is never full.
_ENDLESS = 1 << 40
#: How long a job without any limit runs if nothing says so, seconds.
_RUNTIME_WITHOUT_LIMIT = 3600.0


@dataclass
class Share:
    """What a job has on one node: one chunk of PBS, the slots of LSF on one host."""

    node: str
    processors: int
    #: Bytes.
    memory: int = 0


@dataclass(eq=False)
class Node:
    """A node with what is given to jobs; more may be given than there is."""

    name: str
    processors: int
    #: Bytes.
    memory: int
    host: str
    #: Closed to new jobs by an administrator.
    closed: bool = False
    #: Does not answer.
    down: bool = False
    comment: str = ""
    #: Jobs that an administrator suspended here (PBS puts the node in maintenance meanwhile).
    maintenance: list[str] = field(default_factory=list)
    #: Job id -> its shares.
    given: dict[str, list[Share]] = field(default_factory=dict)
    #: Wall times.
    changed: float = 0.0
    used: float | None = None
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def takes_jobs(self) -> bool:
        """Whether the batch system would start something there by itself."""
        return not (self.closed or self.down or self.maintenance)

    @property
    def assigned(self) -> int:
        return sum(share.processors for shares in self.given.values() for share in shares)

    @property
    def assigned_memory(self) -> int:
        return sum(share.memory for shares in self.given.values() for share in shares)


@dataclass(eq=False)
class Job:
    """A job or one element of an array. Times are of the emulation unless they say wall."""

    id: str
    number: int
    user: str
    group: str
    name: str
    queue: str
    #: Seconds; infinite where no limit was given.
    walltime: float
    #: Seconds of work.
    runtime: float
    #: What it returns when it is not cut short.
    exit_code: int = 0
    index: int | None = None
    #: "queued", "starting", "running", "suspended" or "ended"; "leaving": it was sent back to the queue
    #: and is not there yet.
    state: str = "queued"
    #: Its holder, in the batch system's letters.
    holds: set[str] = field(default_factory=set)
    #: Wall time before which it does not start.
    begin: float | None = None
    #: ("ended" | "completed" | "failed" | "started", job id), all needed.
    dependencies: list[tuple[str, str]] = field(default_factory=list)
    shares: list[Share] = field(default_factory=list)
    #: One of :data:`headway.events.OUTCOMES` once it has ended.
    outcome: str = ""
    #: Wall times.
    submitted: float = 0.0
    modified: float = 0.0
    started: float | None = None
    #: When it came to its end or went back to the queue.
    stopped: float | None = None
    executions: int = 0
    #: Position in the queue; smaller is sooner.
    rank: float = 0.0
    #: An administrator suspended it.
    by_administrator: bool = False
    #: It shall run again as soon as the batch system's scheduler gives it its place.
    resuming: bool = False
    #: A start is under way: its number, so that an overtaken start is void.
    attempt: int = 0
    #: Seconds that it ran, up to ``since``.
    ran: float = 0.0
    since: float = 0.0
    #: What the batch system alone knows, in its own words.
    words: dict[str, Any] = field(default_factory=dict)


class Machine:
    """Jobs on nodes. Not safe for threads; the server takes turns."""

    def __init__(
        self,
        nodes: Iterable[Node],
        *,
        speed: float = 1.0,
        start_delay: float = 0.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``start_delay``: seconds on the wall from the order to start a job until it runs."""
        self.nodes: dict[str, Node] = {node.name: node for node in nodes}
        self.jobs: dict[str, Job] = {}
        #: Jobs that have not ended, by id, in order of submission.
        self.alive: dict[str, Job] = {}
        self.speed = speed
        self.start_delay = start_delay
        self._clock = clock
        self._began = clock()
        self._rank = 0.0
        #: The time of the emulation, seconds since it began.
        self.now = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._cluster = EmulatedAdapter(ClusterDescription.flat(_ENDLESS), [], start=0.0)
        #: The batch system's own scheduler; called whenever something may have become possible.
        self.scheduler: Callable[[], None] | None = None
        #: Told of each execution that begins, and of each job that ended.
        self.began: Callable[[Job], None] = lambda job: None
        self.ended: Callable[[Job], None] = lambda job: None
        self._disturbed = False
        for node in self.nodes.values():
            node.changed = self._began

    # ------------------------------------------------------------------ time

    def wall(self, instant: float | None = None) -> float:
        """The wall time of an instant of the emulation (now)."""
        return self._began + (self.now if instant is None else instant) / self.speed

    def instant(self, wall: float) -> float:
        """The instant of a wall time."""
        return (wall - self._began) * self.speed

    def advance(self) -> None:
        """Let everything happen that is due by now."""
        target = max(self.instant(self._clock()), self.now)
        while True:
            until = min(target, self._due[0][0]) if self._due else target
            answer = self._cluster.wait(until)
            if answer is None:
                self.now = until
            else:
                self.now = max(self.now, answer[0])
                self._note(answer[1])
            while self._due and self._due[0][0] <= self.now:
                heappop(self._due)[2]()
            self._schedule()
            if self.now >= target and not (self._due and self._due[0][0] <= target):
                return

    def at(self, instant: float, action: Callable[[], None]) -> None:
        """Do something at an instant of the emulation, or now if that is past."""
        self._count += 1
        heappush(self._due, (max(instant, self.now), self._count, action))

    def disturb(self) -> None:
        """Something changed that may let a job start."""
        self._disturbed = True

    def _schedule(self) -> None:
        while self._disturbed:
            self._disturbed = False
            if self.scheduler is not None:
                self.scheduler()

    def settle(self) -> None:
        """After a command: take in what it did, and let the scheduler act on it."""
        answer = self._cluster.wait(self.now)
        if answer is not None:
            self._note(answer[1])
        self._schedule()

    # ------------------------------------------------------------------ what the cluster tells

    def _note(self, events: Sequence[ev.Event]) -> None:
        for event in events:
            if isinstance(event, ev.JobEnded):
                job = self.jobs[event.job_id]
                if job.state != "ended":
                    self._end(job, event.outcome)
            if not isinstance(event, ev.JobSubmitted):
                self._disturbed = True

    def _end(self, job: Job, outcome: str) -> None:
        self._leave(job)
        job.state, job.outcome = "ended", outcome
        job.stopped = job.modified = self.wall()
        self.alive.pop(job.id, None)
        self._disturbed = True
        self.ended(job)

    def _leave(self, job: Job) -> None:
        """Take a job from its nodes; what it had stays written in its shares."""
        if job.state == "running":
            job.ran += self.now - job.since
        for share in job.shares:
            node = self.nodes[share.node]
            if node.given.pop(job.id, None) is not None:
                node.used = self.wall()
            if job.id in node.maintenance:
                node.maintenance.remove(job.id)
                node.changed = self.wall()

    def _occupy(self, job: Job) -> None:
        for share in job.shares:
            node = self.nodes[share.node]
            node.given.setdefault(job.id, []).append(share)
            node.used = self.wall()

    def _tell(self, decision: dec.Decision) -> None:
        self._cluster.apply(self.now, [decision])

    # ------------------------------------------------------------------ what commands do

    def submit(self, job: Job) -> None:
        """A new job."""
        job.submitted = job.modified = self.wall()
        self._rank += 1.0
        job.rank = self._rank
        request = Request(processors=1, walltime=job.walltime)
        description = JobDescription(id=job.id, submit_time=self.now, request=request)
        self._cluster.submit(TraceJob(description, job.runtime))
        self.jobs[job.id] = self.alive[job.id] = job
        if job.begin is not None:
            self.at(self.instant(job.begin), self.disturb)
        self._disturbed = True
        self.settle()

    def elapsed(self, job: Job) -> float:
        """Seconds of the emulation that the job ran in this execution, suspension not counted."""
        return job.ran + (self.now - job.since if job.state == "running" else 0.0)

    def dependency(self, job: Job) -> bool | None:
        """Whether what it depends on has come true; None if it never will."""
        met: bool | None = True
        for kind, other_id in job.dependencies:
            other = self.jobs.get(other_id)
            ended = other is None or other.state == "ended"
            well = other is None or (other.outcome == "completed" and other.exit_code == 0)
            if kind == "started":
                true = ended or (other is not None and other.executions > 0)
            elif not ended:
                true = False
            else:
                true = kind == "ended" or well == (kind == "completed")
                if not true:
                    return None
            if not true:
                met = False
        return met

    def startable(self, job: Job) -> bool:
        """Queued, not held, its time come and its dependencies met."""
        early = job.begin is not None and job.begin > self.wall()
        return job.state == "queued" and not job.holds and not early and self.dependency(job) is True

    def queued(self) -> list[Job]:
        """What may start, in service order."""
        return sorted((job for job in self.alive.values() if self.startable(job)), key=lambda job: job.rank)

    def start(self, job: Job, shares: Sequence[Share]) -> None:
        """Run a queued job on these nodes, whatever else is there."""
        job.shares = list(shares)
        job.attempt += 1
        if self.start_delay <= 0:
            self._run(job)
            return
        job.state = "starting"
        self._occupy(job)
        attempt = job.attempt

        def begin() -> None:
            if job.state == "starting" and job.attempt == attempt:
                self._leave(job)
                self._run(job)

        self.at(self.now + self.start_delay * self.speed, begin)

    def _run(self, job: Job) -> None:
        self._tell(dec.Start(job.id))
        job.state = "running"
        job.started = job.modified = self.wall()
        job.stopped = None
        job.executions += 1
        job.ran, job.since = 0.0, self.now
        self._occupy(job)
        self._disturbed = True
        self.began(job)

    def suspend(self, job: Job, *, keep: bool) -> None:
        """Stop a running job; ``keep``: its processors stay its own."""
        self._tell(dec.Suspend(job.id))
        job.ran += self.now - job.since
        job.state = "suspended"
        job.modified = self.wall()
        if not keep:
            self._leave(job)
        self._disturbed = True

    def resume(self, job: Job) -> None:
        """Let a suspended job run on."""
        self._tell(dec.Resume(job.id))
        job.since = self.now
        job.state = "running"
        job.modified = self.wall()
        job.resuming = False
        if job.id not in self.nodes[job.shares[0].node].given:
            self._occupy(job)

    def requeue(self, job: Job, *, delay: float = 0.0, back: Callable[[], None] = lambda: None) -> None:
        """Send a job that has been started back to the queue.

        ``delay``: seconds on the wall that it is on its way; ``back`` is called when it is there. What it had
        stays written in its shares until then.
        """
        if job.state != "starting":
            self._tell(dec.Requeue(job.id))
        self._leave(job)
        job.state = "leaving"
        job.by_administrator = job.resuming = False
        job.stopped = job.modified = self.wall()
        self._disturbed = True

        def arrive() -> None:
            if job.state == "leaving":
                job.shares = []
                job.state = "queued"
                job.modified = self.wall()
                self._disturbed = True
                back()

        if delay <= 0:
            arrive()
        else:
            self.at(self.now + delay * self.speed, arrive)

    def kill(self, job: Job, outcome: str = "cancelled") -> None:
        """End a job, whatever it does."""
        self._end(job, outcome)
        self._tell(dec.Kill(job.id))
        self.settle()

    def set_limit(self, job: Job, walltime: float) -> None:
        """Change a job's limit; one that has run longer ends now."""
        job.walltime = walltime
        job.modified = self.wall()
        self._tell(dec.SetTimeLimit(job.id, walltime))
        self.settle()


def runtime_of(given: float | None, walltime: float) -> float:
    """Seconds that a job runs: as given, else half of its limit."""
    if given is not None:
        return given
    return _RUNTIME_WITHOUT_LIMIT if math.isinf(walltime) else walltime / 2
