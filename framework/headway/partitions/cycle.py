"""What a job goes through on a machine of partitions: its stages, their owners, and what goes wrong.

The stages are the stages of the paper's open job management (section 3.2):

=====  ==========================================
1      a look at the machine
2      ``add_partition``
3      ``create_partition``
4      wait until it is READY
5      ``add_job``
6      ``start_job``
7      wait until the job has ended
8      ``remove_job``
9      ``destroy_partition``
10     wait until it is FREE, ``remove_partition``
=====  ==========================================

The *proxy* of a job sees to some of them (:data:`PRESETS`), the scheduler to the others. A scheduler that
sees to stage 2 or 3 is held up by :attr:`PartitionTimes.prepare`, one that sees to stage 4 until the boot
has ended; stages 9 and 10 are ordered and then looked at, and hold no job up. Proxy and job are one: a proxy
that dies takes its job with it, wherever that is, and the stages from 8 on follow. A job on a *kept*
partition leaves out stages 9 and 10: the partition was booted outside this course, and it stays.

A :class:`Course` is one job's way. It can be advanced at any time and any number of times: it looks at the
bridge and does what there is to do. So its caller may poll, or advance it when something changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from headway.partitions.bridge import (
    Bridge,
    JobSpec,
    JobState,
    PartitionSpec,
    PartitionState,
    Status,
)

#: Which stages the proxy sees to, by the name of the system that divides labour so.
PRESETS: dict[str, tuple[int, ...]] = {
    "loadleveler": (4, 5, 6, 7, 8),
    "all": (2, 3, 4, 5, 6, 7, 8, 9, 10),
    "minimal": (6, 7),
    "slurm": (5, 6, 7, 8),
}

#: Boots after the first one that are tried before the partition's nodes count as broken.
BOOT_RETRIES = 3
#: How often a call is repeated that failed inside of the bridge.
CALL_RETRIES = 220
#: In these a course waits for what another one has.
_WAITS = (3, 5)
#: Seconds from one look of a proxy to the next.
POLL = 3.0

#: How a course can end beside the exit code of its job.
ENDED, BOOT_FAILED, PROXY_DIED, STOPPED, LOST, BRIDGE_FAILED = (
    "ended", "boot failed", "proxy died", "stopped", "lost", "bridge failed",
)  # fmt: skip


class Course:
    """One job's way through the stages."""

    __slots__ = ("boots", "code", "errors", "job", "keep", "outcome", "partition", "ready", "stage")

    def __init__(self, job: str, partition: PartitionSpec, *, keep: bool = False, stage: int = 2) -> None:
        self.job = job
        self.partition = partition
        #: The partition stays when the job has ended.
        self.keep = keep
        #: The stage that is to be done next; 11: all are.
        self.stage = stage
        #: Boots that were ordered.
        self.boots = 0
        self.errors = 0
        #: Why it will not run (any more); "" while it may.
        self.outcome = ""
        #: The job's exit code.
        self.code: int | None = None
        #: Its partition was seen to be ready.
        self.ready = stage > 4

    @property
    def done(self) -> bool:
        return self.stage > 10

    def advance(self, bridge: Bridge) -> None:
        """Do all that can be done now."""
        while self.stage <= 10 and self._step(bridge):
            pass

    def stop(self, bridge: Bridge, outcome: str) -> None:
        """The job is not to run (any more): cancel it and clean up."""
        if self.stage >= 8:
            return
        self.outcome = outcome
        if self.stage == 7:
            # If it runs it has to die first; if it waits its record goes in stage 8.
            bridge.cancel_job(self.job)
        else:
            self.stage = 8
        self.advance(bridge)

    def _failed(self, status: Status) -> bool:
        """Whether a call is to be repeated; after too many failures it is given up."""
        if status is Status.INTERNAL_ERROR:
            self.errors += 1
            if self.errors > CALL_RETRIES:
                self._give_up(BRIDGE_FAILED)
            return True
        self.errors = 0
        return False

    def _give_up(self, outcome: str) -> None:
        self.outcome = self.outcome or outcome
        self.stage = 11 if self.stage >= 8 else 8

    def _step(self, bridge: Bridge) -> bool:
        """One stage, or a part of it; whether there may be more to do at once."""
        partition = self.partition.id
        if self.stage <= 3:
            return self._provision(bridge, partition)
        if self.stage == 4:
            return self._wait_until_ready(bridge, partition)
        if self.stage == 5:
            status = bridge.add_job(JobSpec(self.job, partition)).status
            if self._failed(status):
                return self.stage == 8
            if status is Status.EXISTS:
                # Its record of another partition, where it ran before, is not gone yet.
                return False
            self.stage = 6 if status is Status.OK else 8
            self.outcome = self.outcome if self.stage == 6 else LOST
            return True
        if self.stage == 6:
            reply = bridge.start_job(self.job)
            if self._failed(reply.status):
                return self.stage == 8
            if reply.status is Status.NOT_FOUND:
                self._give_up(LOST)
            elif reply.ok:
                self.stage = 7
            return reply.status is not Status.INCOMPATIBLE_STATE
        if self.stage == 7:
            return self._wait_for_its_end(bridge)
        return self._clean_up(bridge, partition)

    def _provision(self, bridge: Bridge, partition: str) -> bool:
        if self.stage < 3:
            status = bridge.add_partition(self.partition).status
            if not self._failed(status):
                if status is Status.OK:
                    self.stage = 3
                else:
                    self._give_up(LOST)
                return True
            return self.stage == 8
        status = bridge.create_partition(partition).status
        if self._failed(status):
            return self.stage == 8
        if status is Status.OK:
            self.stage = 4
            self.boots += 1
        elif status is Status.NOT_FOUND:
            self.stage = 2
        elif status is not Status.CONFLICT:
            found = bridge.get_partition(partition)
            if found is not None and found.state in (PartitionState.DEALLOCATING, PartitionState.ERROR):
                bridge.destroy_partition(partition)
                return False
            self._give_up(BOOT_FAILED)
        return status is not Status.CONFLICT

    def _wait_until_ready(self, bridge: Bridge, partition: str) -> bool:
        found = bridge.get_partition(partition)
        if found is None:
            self._give_up(LOST)
        elif found.state in (PartitionState.READY, PartitionState.BUSY):
            self.ready = True
            self.stage = 5
        elif found.state is PartitionState.FREE:
            if self.keep:
                # The partition's provisioner tries again, or stops this.
                return False
            # Its boot has failed.
            if self.boots > BOOT_RETRIES:
                self._give_up(BOOT_FAILED)
            else:
                self.stage = 3
        elif found.state is PartitionState.ERROR:
            bridge.destroy_partition(partition)
            found = bridge.get_partition(partition)
            return found is not None and found.state is not PartitionState.ERROR
        else:
            return False
        return True

    def _wait_for_its_end(self, bridge: Bridge) -> bool:
        job = bridge.get_job(self.job)
        if job is None:
            self._give_up(LOST)
        elif job.state in (JobState.TERMINATED, JobState.ERROR):
            self.code = job.exit_code
            self.outcome = self.outcome or (ENDED if job.state is JobState.TERMINATED else BOOT_FAILED)
            self.stage = 8
        elif self.outcome and job.state is JobState.STARTING:
            # Cancelling what does not run yet has no effect: its record goes, unless it is just being loaded.
            if bridge.remove_job(self.job).ok:
                self.stage = 8
                return True
            return False
        elif self.outcome and job.state is JobState.RUNNING:
            return bridge.cancel_job(self.job).changed
        else:
            return False
        return True

    def _clean_up(self, bridge: Bridge, partition: str) -> bool:
        if self.stage == 8:
            status = bridge.remove_job(self.job).status
            if status not in (Status.OK, Status.NOT_FOUND) or self._failed(status):
                self._failed(status)
                return self.stage == 11
            self.stage = 11 if self.keep else 9
            return True
        if self.stage == 9:
            status = bridge.destroy_partition(partition).status
            if self._failed(status):
                return False
            if status is Status.INCOMPATIBLE_STATE:
                return False
            self.stage = 10
            return True
        status = bridge.remove_partition(partition).status
        if status in (Status.OK, Status.NOT_FOUND):
            self.stage = 11
        else:
            self._failed(status)
        return False


class JobManager:
    """Sees all courses through, and keeps the order in which a single-threaded scheduler begins them."""

    def __init__(
        self,
        bridge: Bridge,
        later: Callable[[float, Callable[[object], None], object], None],
        prepare: Callable[[PartitionSpec], float],
        proxy_stages: Iterable[int],
        changed: Callable[[Course], None],
    ) -> None:
        """``later(seconds, function, argument)`` calls a function after so many seconds; ``prepare``: how
        long stages 1 to 3 take for a partition; ``changed`` is told of each course that was advanced."""
        self._bridge = bridge
        self._later = later
        self._prepare = prepare
        stages = frozenset(proxy_stages)
        #: Until which stage a course holds the scheduler up.
        self._own = 0 if 2 in stages and 3 in stages else 3 if 4 in stages else 4
        self._changed = changed
        #: The latest of each job; in the order in which they began.
        self.courses: dict[str, Course] = {}
        #: Courses whose job has begun another course, and courses of partitions without a job: what they have
        #: is on its way to be given back.
        self._left: list[Course] = []
        #: All of these by partition; and the courses that wait for what others have (:data:`_WAITS`).
        self._there: dict[str, list[Course]] = {}
        self._waiting: set[Course] = set()
        self._line: deque[Course] = deque()
        #: The course that holds the scheduler up now.
        self._holder: Course | None = None

    def begin(self, job: str, partition: PartitionSpec) -> Course:
        """Have a partition made for a job, run it, and give the partition back."""
        course = Course(job, partition)
        self.adopt(course)
        self._line.append(course)
        self._serve()
        return course

    def begin_on(self, job: str, partition: PartitionSpec) -> Course:
        """Run a job on a partition that was provisioned elsewhere, and leave it as it is."""
        course = Course(job, partition, keep=True, stage=4)
        self.adopt(course)
        self.advance(course)
        return course

    def adopt(self, course: Course) -> None:
        """See to a course, perhaps one that began before. An earlier one of the same job is seen to its end
        beside it."""
        self._there.setdefault(course.partition.id, []).append(course)
        if course.stage in _WAITS:
            self._waiting.add(course)
        if not course.job:
            self._left.append(course)
            return
        earlier = self.courses.pop(course.job, None)
        if earlier is not None:
            self._left.append(earlier)
        self.courses[course.job] = course

    def _forget(self, course: Course) -> None:
        """A course is done."""
        if self._left and course in self._left:
            self._left.remove(course)
        elif self.courses.get(course.job) is course:
            del self.courses[course.job]
        there = self._there.get(course.partition.id, [])
        if course in there:
            there.remove(course)
        if not there:
            self._there.pop(course.partition.id, None)

    def has_job(self, partition: str) -> bool:
        """Whether the course of some job is on this partition."""
        there = self._there.get(partition, ())
        return any(self.courses.get(course.job) is course for course in there)

    def advance(self, course: Course) -> None:
        """Something may have changed for a job."""
        if (self._line and course in self._line) or (
            course is self._holder and course.stage <= 2 and not course.outcome
        ):
            # Its stages 1 to 3 have not been done.
            return
        course.advance(self._bridge)
        self._after(course)

    def advance_on(self, partition: str) -> None:
        """A partition has changed: look after its job, and the jobs that wait for what it had."""
        concerned = self._there.get(partition, ())
        if self._waiting:
            concerned = [*self._left, *self.courses.values()]
        for course in tuple(concerned):
            if course.partition.id == partition or course in self._waiting:
                self.advance(course)

    def stop(self, job: str, outcome: str = STOPPED) -> Course | None:
        """A job is not to run (any more); its proxy may have died."""
        course = self.courses.get(job)
        if course is None or course.outcome:
            return None
        if course in self._line:
            self._line.remove(course)
        course.stop(self._bridge, outcome)
        self._after(course)
        return course

    def _after(self, course: Course) -> None:
        if course is self._holder and (course.stage > self._own or course.outcome):
            self._holder = None
            self._serve()
        if course.stage in _WAITS:
            self._waiting.add(course)
        else:
            self._waiting.discard(course)
        if course.done:
            self._forget(course)
        self._changed(course)

    def _serve(self) -> None:
        """The scheduler turns to the next job."""
        while self._line and self._holder is None:
            course = self._line.popleft()
            seconds = self._prepare(course.partition)
            if self._own:
                self._holder = course
            if seconds > 0:
                self._later(seconds, self._prepared, course)
            else:
                self._prepared(course)

    def _prepared(self, course: object) -> None:
        assert isinstance(course, Course)
        if course.outcome or course.stage > 2:
            return
        course.advance(self._bridge)
        self._after(course)


def reconcile(bridge: Bridge, proxies: Iterable[str], *, keep: Iterable[str] = ()) -> list[Course]:
    """What a job manager that begins again has to see to, from the bridge's own records alone.

    ``proxies``: the jobs whose proxies are alive; each gets a course where it stands. The jobs of all others
    are cancelled and removed. Partitions without a job are destroyed and removed, except the partitions of
    ``keep`` (ids).
    """
    kept, alive = frozenset(keep), frozenset(proxies)
    snapshot = bridge.get_machine()
    specs = {partition.spec.id: partition.spec for partition in snapshot.partitions}
    courses, used = [], set()
    for job in snapshot.jobs:
        used.add(job.spec.partition)
        spec = specs[job.spec.partition]
        stage = 6 if job.state is JobState.IDLE else 7
        course = Course(job.spec.id, spec, keep=spec.id in kept, stage=stage)
        course.boots = 1
        if job.spec.id not in alive:
            course.stop(bridge, PROXY_DIED)
        else:
            course.advance(bridge)
        if not course.done:
            courses.append(course)
    for name, spec in specs.items():
        if name not in used and name not in kept:
            course = Course("", spec, stage=9)
            course.outcome = LOST
            course.advance(bridge)
            if not course.done:
                courses.append(course)
    return courses
