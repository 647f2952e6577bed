"""The control system of an emulated machine of partitions: the truth behind the bridge.

Boots, wires, launches and kills, each after the time that it takes. It calls only the callers that ask to be
told when something changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headway.model.wiring import Times
from headway.partitions.bridge import (
    ACTIVE,
    Bridge,
    BridgeJob,
    JobSpec,
    JobState,
    Partition,
    PartitionSpec,
    PartitionState,
    Reply,
    Snapshot,
    Status,
)
from headway.partitions.timing import seconds_at
from headway.partitions.torus import Geometry, Wires

_OK = Reply(Status.OK, changed=True)
_NO_EFFECT = Reply(Status.OK)
#: What a job returns that was cancelled or died with a part of its partition.
KILLED = 137


class _Block:
    """A partition's record."""

    __slots__ = ("held", "job", "links", "message", "nodes", "order", "spec", "state")

    def __init__(self, spec: PartitionSpec, nodes: int, links: int) -> None:
        self.spec = spec
        #: It has its midplanes and links.
        self.held = False
        self.nodes, self.links = nodes, links
        self.state = PartitionState.FREE
        self.message = ""
        #: The job that is on it, or that waits for it.
        self.job = ""
        #: Counts what was begun with it: what ends later and was begun before is void.
        self.order = 0


class _Task:
    """A job's record."""

    __slots__ = ("code", "loading", "signals", "spec", "state")

    def __init__(self, spec: JobSpec) -> None:
        self.spec = spec
        self.state = JobState.IDLE
        self.code: int | None = None
        #: Its partition is ready and it is being loaded.
        self.loading = False
        self.signals: list[int] = []


class ControlSystem(Bridge):
    """Owns midplanes and links. Times come from the torus' description."""

    def __init__(
        self,
        geometry: Geometry,
        later: Callable[[float, Callable[[Any], None], Any], None],
        *,
        changed: Callable[[str], None] = lambda partition: None,
        launched: Callable[[str], None] = lambda job: None,
        boot_fails: Callable[[], bool] = lambda: False,
    ) -> None:
        """``later(seconds, function, argument)`` has something happen after so many seconds. ``changed`` is
        told of each partition that came to another state by itself, or whose job did, ``launched`` when a
        job's first instruction is due; ``boot_fails`` says of each boot that is over whether it has
        failed."""
        self.geometry = geometry
        self._later = later
        self._told = changed
        self._launched = launched
        self._boot_fails = boot_fails
        self._blocks: dict[str, _Block] = {}
        self._tasks: dict[str, _Task] = {}
        self._wires = Wires(geometry)
        self._down: set[str] = set()
        #: Seconds of a step at a number of midplanes.
        self._seconds: dict[tuple[Times, int], float] = {}
        #: Told of each state that a partition comes to.
        self.watch: Callable[[Partition], None] = lambda partition: None

    # ------------------------------------------------------------------ queries

    def get_machine(self) -> Snapshot:
        return Snapshot(
            tuple(self.geometry.names),
            frozenset(self._down),
            tuple(self._partition(block) for block in self._blocks.values()),
            tuple(self._job(task) for task in self._tasks.values()),
        )

    def get_partition(self, partition: str) -> Partition | None:
        block = self._blocks.get(partition)
        return self._partition(block) if block is not None else None

    def get_job(self, job: str) -> BridgeJob | None:
        task = self._tasks.get(job)
        return self._job(task) if task is not None else None

    def _partition(self, block: _Block) -> Partition:
        return Partition(block.spec, block.state, block.message, block.job)

    def _job(self, task: _Task) -> BridgeJob:
        return BridgeJob(task.spec, task.state, task.code)

    # ------------------------------------------------------------------ partitions

    def add_partition(self, spec: PartitionSpec) -> Reply:
        known = self._blocks.get(spec.id)
        if known is not None:
            if known.spec == spec:
                return _NO_EFFECT
            return Reply(Status.EXISTS, message=f"another partition {spec.id} exists")
        for name in spec.nodes:
            if name not in self.geometry.index:
                return Reply(Status.NOT_FOUND, message=f"no midplane is called {name}")
        box = self.geometry.box_of(spec.nodes, spec.connection)
        if isinstance(box, str):
            return Reply(Status.INCOMPATIBLE_STATE, message=box)
        self._blocks[spec.id] = _Block(spec, *self.geometry.masks(box))
        return _OK

    def remove_partition(self, partition: str) -> Reply:
        block = self._blocks.get(partition)
        if block is None:
            return _not_found("partition", partition)
        if block.state is not PartitionState.FREE:
            return Reply(Status.INCOMPATIBLE_STATE, message=f"partition {partition} is {block.state}")
        del self._blocks[partition]
        return _OK

    def create_partition(self, partition: str) -> Reply:
        block = self._blocks.get(partition)
        if block is None:
            return _not_found("partition", partition)
        if block.state in (PartitionState.CONFIGURING, PartitionState.READY, PartitionState.BUSY):
            return _NO_EFFECT
        if block.state is not PartitionState.FREE:
            return Reply(Status.INCOMPATIBLE_STATE, message=f"partition {partition} is {block.state}")
        if down := sorted(self._down.intersection(block.spec.nodes)):
            return Reply(Status.INCOMPATIBLE_STATE, message=f"midplane {down[0]} is down")
        if not self._wires.fits(block.nodes, block.links):
            return Reply(Status.CONFLICT, message=self._conflict(block))
        self._wires.take(block.nodes, block.links)
        block.held = True
        self._to(block, PartitionState.CONFIGURING)
        self._after(block, self.geometry.torus.times.boot, self._booted)
        return _OK

    def _conflict(self, block: _Block) -> str:
        for other in self._blocks.values():
            if other.held and other.nodes & block.nodes:
                return f"partition {other.spec.id} has midplanes of partition {block.spec.id}"
        return f"links of partition {block.spec.id} are in use"

    def _booted(self, block: _Block) -> None:
        if self._boot_fails():
            block.message = "the boot failed"
            self._halt(block)
            self._told(block.spec.id)
            return
        block.message = ""
        self._to(block, PartitionState.READY)
        waiting = self._tasks.get(block.job)
        if waiting is not None:
            self._load(block, waiting)
        self._told(block.spec.id)

    def destroy_partition(self, partition: str, *, force: bool = False) -> Reply:
        block = self._blocks.get(partition)
        if block is None:
            return _not_found("partition", partition)
        if block.state in (PartitionState.FREE, PartitionState.DEALLOCATING):
            return _NO_EFFECT
        if block.state is PartitionState.ERROR:
            self._free(block)
            return _OK
        if block.state is PartitionState.BUSY and not force:
            return Reply(Status.INCOMPATIBLE_STATE, message=f"job {block.job} is on partition {partition}")
        self._halt(block)
        return _OK

    def _halt(self, block: _Block) -> None:
        """Its hardware is given back; a job on it dies, a job that waits for it will not run."""
        self._abandon(block)
        self._to(block, PartitionState.DEALLOCATING)
        self._after(block, self.geometry.torus.times.halt, self._halted)

    def _halted(self, block: _Block) -> None:
        self._free(block)
        self._told(block.spec.id)

    def _free(self, block: _Block) -> None:
        if block.held:
            self._wires.give_back(block.nodes, block.links)
            block.held = False
        self._to(block, PartitionState.FREE)

    def _abandon(self, block: _Block) -> None:
        task = self._tasks.get(block.job)
        block.job = ""
        if task is None:
            return
        if task.state is JobState.STARTING and not task.loading:
            task.state = JobState.ERROR
        elif task.state not in (JobState.TERMINATED, JobState.ERROR):
            task.state, task.code = JobState.TERMINATED, KILLED
        task.loading = False

    def _to(self, block: _Block, state: PartitionState) -> None:
        block.state = state
        block.order += 1
        self.watch(self._partition(block))

    def _after(self, block: _Block, times: Times, happens: Callable[[_Block], None]) -> None:
        order = block.order

        def then(_: Any) -> None:
            if block.order == order:
                happens(block)

        seconds = self.seconds(times, block.spec)
        if seconds > 0:
            self._later(seconds, then, None)
        else:
            then(None)

    def seconds(self, times: Times, spec: PartitionSpec) -> float:
        """How long a step takes for a partition."""
        key = times, len(spec.nodes)
        known = self._seconds.get(key)
        if known is None:
            known = self._seconds[key] = seconds_at(times, len(spec.nodes) * self.geometry.torus.unit)
        return known

    # ------------------------------------------------------------------ jobs

    def add_job(self, spec: JobSpec) -> Reply:
        known = self._tasks.get(spec.id)
        if known is not None:
            if known.spec == spec:
                return _NO_EFFECT
            return Reply(Status.EXISTS, message=f"another job {spec.id} exists")
        if spec.partition not in self._blocks:
            return _not_found("partition", spec.partition)
        self._tasks[spec.id] = _Task(spec)
        return _OK

    def remove_job(self, job: str) -> Reply:
        task = self._tasks.get(job)
        if task is None:
            return _not_found("job", job)
        if task.loading or task.state in (JobState.RUNNING, JobState.DYING):
            return Reply(Status.INCOMPATIBLE_STATE, message=f"job {job} is {task.state}")
        block = self._blocks.get(task.spec.partition)
        if block is not None and block.job == job:
            block.job = ""
        del self._tasks[job]
        return _OK

    def start_job(self, job: str) -> Reply:
        task = self._tasks.get(job)
        if task is None:
            return _not_found("job", job)
        if task.state in (JobState.STARTING, JobState.RUNNING):
            return _NO_EFFECT
        if task.state is not JobState.IDLE:
            return Reply(Status.INCOMPATIBLE_STATE, message=f"job {job} is {task.state}")
        block = self._blocks.get(task.spec.partition)
        if block is None:
            return _not_found("partition", task.spec.partition)
        if block.job not in ("", job) or block.state is PartitionState.ERROR:
            return Reply(Status.INCOMPATIBLE_STATE, message=f"partition {block.spec.id} has job {block.job}")
        block.job = job
        task.state = JobState.STARTING
        if block.state is PartitionState.READY:
            self._load(block, task)
        return _OK

    def _load(self, block: _Block, task: _Task) -> None:
        task.loading = True
        self._to(block, PartitionState.BUSY)
        order = block.order

        def begins(_: Any) -> None:
            if block.order == order and task.loading:
                task.loading = False
                task.state = JobState.RUNNING
                self._launched(task.spec.id)
                self._told(block.spec.id)

        seconds = self.seconds(self.geometry.torus.times.load, block.spec)
        if seconds > 0:
            self._later(seconds, begins, None)
        else:
            begins(None)

    def signal_job(self, job: str, signal: int) -> Reply:
        task = self._tasks.get(job)
        if task is None:
            return _not_found("job", job)
        if task.state is not JobState.RUNNING:
            return Reply(Status.INCOMPATIBLE_STATE, message=f"job {job} is {task.state}")
        task.signals.append(signal)
        return _OK

    def cancel_job(self, job: str) -> Reply:
        task = self._tasks.get(job)
        if task is None:
            return _not_found("job", job)
        if task.state is JobState.DYING:
            return _NO_EFFECT
        if task.state is not JobState.RUNNING:
            return Reply(Status.INCOMPATIBLE_STATE, message=f"job {job} is {task.state}")
        task.state = JobState.DYING
        self._later(0.0, self._died, task)
        return _OK

    def _died(self, task: _Task) -> None:
        if task.state is JobState.DYING:
            self._terminated(task, KILLED)
            self._told(task.spec.partition)

    def job_ended(self, job: str, code: int) -> None:
        """A running job's program has returned, or one of its processes died."""
        task = self._tasks.get(job)
        if task is not None and task.state in (JobState.RUNNING, JobState.DYING):
            self._terminated(task, code)

    def proxy_died(self, job: str) -> None:
        """The job of a proxy that died is orphaned: if it runs, or is about to, it dies."""
        task = self._tasks.get(job)
        if task is None:
            return
        if task.loading:
            task.loading = False
            self._terminated(task, KILLED)
        else:
            self.cancel_job(job)

    def _terminated(self, task: _Task, code: int) -> None:
        task.state, task.code = JobState.TERMINATED, code
        block = self._blocks.get(task.spec.partition)
        if block is not None and block.job == task.spec.id:
            block.job = ""
            if block.state is PartitionState.BUSY:
                self._to(block, PartitionState.READY)

    def adopt(self, spec: PartitionSpec, job: str) -> None:
        """A partition that is booted already, and the job that runs on it."""
        self.add_partition(spec)
        block = self._blocks[spec.id]
        self._wires.take(block.nodes, block.links)
        block.held = True
        block.state, block.job = PartitionState.BUSY, job
        task = self._tasks[job] = _Task(JobSpec(job, spec.id))
        task.state = JobState.RUNNING

    # ------------------------------------------------------------------ faults

    def midplane_down(self, name: str) -> None:
        """A midplane breaks: what is booted or booting on it is given back, and the job there dies."""
        self._down.add(name)
        for block in list(self._blocks.values()):
            if name in block.spec.nodes and block.state in ACTIVE - {PartitionState.DEALLOCATING}:
                block.message = f"midplane {name} went down"
                self._halt(block)
                self._told(block.spec.id)

    def midplane_up(self, name: str) -> None:
        """A midplane can be used again."""
        self._down.discard(name)

    def database_error(self, partition: str) -> None:
        """The record of a partition is in disorder: ERROR, until it is destroyed. Its job dies."""
        block = self._blocks[partition]
        self._abandon(block)
        block.message = "database error"
        self._to(block, PartitionState.ERROR)
        self._told(partition)


def _not_found(kind: str, name: str) -> Reply:
    return Reply(Status.NOT_FOUND, message=f"no {kind} is called {name}")
