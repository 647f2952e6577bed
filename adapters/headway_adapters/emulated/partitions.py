"""Jobs on a machine that is handed out in wired partitions, which have to be booted.

A start on nodes that are not booted is the paper's cycle for a partition per job: the partition is made
and booted for it, the job is loaded and runs (that is its start time), and the partition is given back; the
job's end is told when its nodes can be used again, and recorded when it was. A start on a partition that was
ordered with ``PowerUp`` waits until that is ready, and leaves it booted; ``PowerDown`` gives it back.

What is claimed here at a start or an order is what the control system is told to wire then or a little
later; so no start is accepted that the wires have no room for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from headway import decisions as dec
from headway import events as ev
from headway.model import ClusterDescription, JobDescription, Placement
from headway.partitions.bridge import Partition, PartitionSpec, PartitionState, Status
from headway.partitions.cycle import (
    BOOT_FAILED,
    BOOT_RETRIES,
    PROXY_DIED,
    STOPPED,
    Course,
    JobManager,
)
from headway.partitions.torus import Box, Geometry, Wires, name_of
from headway.results import PartitionStep
from headway.workload.jobs import TraceJob
from headway_adapters.emulated.control import KILLED, ControlSystem
from headway_adapters.emulated.ends import Ends
from headway_adapters.emulated.execution import FOREGROUND, Execution
from headway_adapters.emulated.failures import Failures
from headway_adapters.emulated.faults import Faults
from headway_adapters.emulated.guard import Guard
from headway_adapters.emulated.machine import Machine
from headway_adapters.emulated.starts import Starts

#: What a machine of partitions cannot do with a job: it has no checkpoints, and a job's partition is its own.
UNABLE = (dec.Suspend, dec.Resume, dec.Migrate, dec.SwapTiers, dec.Resize, dec.SubmitSubjob)
#: Of so many placements it is remembered which boxes they are.
_KEPT = 4096


def dedicated(cluster: ClusterDescription, jobs: Sequence[TraceJob]) -> Sequence[TraceJob]:
    """The jobs as a machine of partitions sees them: each has whole nodes for itself."""
    if cluster.wiring is None:
        return jobs
    replace = msgspec.structs.replace
    return [
        replace(trace, job=replace(trace.job, request=replace(trace.job.request, exclusive=True)))
        for trace in jobs
    ]


class _Claim:
    """A job between the start that was accepted and its first instruction."""

    __slots__ = ("decision", "index", "job", "requeue", "why")

    def __init__(self, index: int, job: JobDescription, decision: dec.Start) -> None:
        self.index, self.job, self.decision = index, job, decision
        #: What is to become of it, if it was stopped by a decision: the outcome, and the reason.
        self.why = ("", "")
        self.requeue = False


class _Kept:
    """A partition that was ordered, and stays until it is given back."""

    __slots__ = ("boots", "masks", "spec", "wanted")

    def __init__(self, spec: PartitionSpec, masks: tuple[int, int]) -> None:
        self.spec, self.masks = spec, masks
        self.boots = 0
        #: False: it is on its way to be free, and its record goes then.
        self.wanted = True


class Partitions:
    """The machine's partitions, between the scheduler's decisions and the control system."""

    def __init__(
        self,
        machine: Machine,
        starts: Starts,
        ends: Ends,
        guard: Guard,
        failures: Failures,
        faults: Faults,
        rng: np.random.Generator,
    ) -> None:
        wiring = machine.cluster.wiring
        assert wiring is not None
        self._machine, self._starts, self._ends, self._guard = machine, starts, ends, guard
        self._failures, self._faults, self._rng = failures, faults, rng
        self._default = wiring.connection
        self.geometry = Geometry(wiring)
        self.control = ControlSystem(
            self.geometry,
            self._later,
            changed=self._changed,
            launched=self._launch,
            boot_fails=self._boot_fails,
        )
        self.control.watch = self._watch
        times = wiring.times
        self.manager = JobManager(
            self.control,
            self._later,
            lambda spec: self.control.seconds(times.prepare, spec),
            wiring.proxy_stages,
            self._advanced,
        )
        self._boxes: dict[tuple[int, str], tuple[Placement, Box | str]] = {}
        #: What is promised: from a start or an order until the partition is free, or given back.
        self._wires = Wires(self.geometry)
        self._masks: dict[str, tuple[int, int]] = {}
        self._claims: dict[str, _Claim] = {}
        #: Jobs that have run, whose partition is on its way to be free: what is told then.
        self._leaving: dict[str, tuple[ev.Event, JobDescription, Placement]] = {}
        #: Where in the workload a job stands that goes back to the queue.
        self._index: dict[str, int] = {}
        self._kept: dict[str, _Kept] = {}
        #: The ids of boxes that were asked for.
        self._ids: dict[Box, str] = {}
        #: Counts the jobs' proxies: the same job may have several, one after another; and which each has now.
        self._made = 0
        self._proxies: dict[str, int] = {}
        #: What became of every partition, in order of time.
        self.steps: list[PartitionStep] = []
        #: The job of each partition that goes with its job, and the partition's last step.
        self._made_for: dict[str, tuple[str, str]] = {}
        ends.held_back = self._left
        failures.broken = self._broken
        failures.mended = self.control.midplane_up
        for node in machine.cluster.nodes:
            if not node.available:
                self.control.midplane_down(node.name)

    def _later(self, seconds: float, happens: Callable[[Any], object], argument: Any) -> None:
        self._machine.agenda.at(self._machine.now + seconds, happens, argument)

    @property
    def busy(self) -> bool:
        """A job is on the way in or out."""
        return bool(self._claims or self._leaving)

    def _boot_fails(self) -> bool:
        rate = self._faults.boot_failure_rate
        return rate > 0 and bool(self._rng.random() < rate)

    # ------------------------------------------------------------------ starts

    def start(self, decision: dec.Start) -> str:
        """Begin a job's way to its nodes. Returns why not, or ""."""
        machine, job_id = self._machine, decision.job_id
        known = machine.submitted.get(job_id)
        if known is None:
            return f"job {job_id} is not waiting"
        if decision.tier != FOREGROUND:
            return "a partition is for one job alone: there is no background"
        index, job = known
        refusal = self._guard.refusal(job, decision.placement, pool=decision.pool)
        if refusal:
            return refusal
        said = (job.attributes or {}).get("connection") or self._default
        box = self._box_of_start(decision.placement, str(said))
        if isinstance(box, str):
            return f"job {job_id}: {box}"
        kept = self._kept.get(self._id_of(box)) if self._kept else None
        on_kept = kept is not None and kept.wanted
        masks = self.geometry.masks(box)
        if not on_kept and not self._wires.fits(*masks):
            return f"job {job_id}: {self._conflict(box)}"
        del machine.submitted[job_id]
        machine.nodes.take(job.request, decision.placement)
        self._claims[job_id] = _Claim(index, job, decision)
        self._made += 1
        self._proxies[job_id] = self._made
        if self._faults.proxy_mtbf:
            self._later(
                self._rng.exponential(self._faults.proxy_mtbf), self._proxy_dies, (job_id, self._made)
            )
        if on_kept:
            assert kept is not None
            self.manager.begin_on(job_id, kept.spec)
        else:
            self._wires.take(*masks)
            self._masks[job_id] = masks
            spec = PartitionSpec(f"{job_id}.{self._made}", self.geometry.nodes_of(box), box.connection)
            self._made_for[spec.id] = (job_id, "")
            self._step(spec, "promised", job_id)
            self.manager.begin(job_id, spec)
        return ""

    def _box(self, placement: Placement, connection: object) -> Box | str:
        return self.geometry.box_of([name for name, _ in placement], str(connection))

    def _box_of_start(self, placement: Placement, connection: str) -> Box | str:
        """The box that a start's placement is, or why it is none; remembered, since one job after another is
        given the same placement."""
        key = id(placement), connection
        known = self._boxes.get(key)
        if known is None:
            if len(self._boxes) >= _KEPT:
                self._boxes.clear()
            # With the placement, so that no other object has its identity.
            known = self._boxes[key] = placement, self._box(placement, connection)
            self._machine.nodes.keep(placement)
        return known[1]

    def _id_of(self, box: Box) -> str:
        """The id of a partition that stays, such as ``2x2x1-mesh-m0-0-2``."""
        known = self._ids.get(box)
        if known is None:
            shape = "x".join(map(str, box.shape))
            known = self._ids[box] = f"{shape}-{box.connection}-{name_of(box.origin)}"
        return known

    def _conflict(self, box: Box) -> str:
        nodes, _ = self.geometry.masks(box)
        if nodes & self._wires.busy:
            return f"{box}: another partition is booted there and must be given back first"
        return f"{box}: links are in use by other partitions"

    def begin_with(self, jobs: Sequence[str]) -> None:
        """Have the partitions of jobs that run already."""
        for job_id in jobs:
            execution = self._machine.running[job_id]
            job = execution.job
            box = self._box(execution.placement, (job.attributes or {}).get("connection") or self._default)
            if isinstance(box, str):
                continue
            self._made += 1
            self._proxies[job_id] = self._made
            spec = PartitionSpec(f"{job_id}.{self._made}", self.geometry.nodes_of(box), box.connection)
            self._masks[job_id] = self.geometry.masks(box)
            self._wires.take(*self._masks[job_id])
            self.control.adopt(spec, job_id)
            self._made_for[spec.id] = (job_id, "")
            self._step(spec, "busy", job_id)
            self.manager.adopt(Course(job_id, spec, stage=7))

    def _launch(self, job_id: str) -> None:
        """A job's first instruction: its execution begins."""
        claim = self._claims.pop(job_id)
        self._step(self.manager.courses[job_id].partition, "busy", job_id)
        self._starts.begin(claim.index, claim.job, claim.decision, has_nodes=True)

    # ------------------------------------------------------------------ ends

    def _left(self, execution: Execution, told: ev.Event) -> bool:
        """An execution is over, and ``told`` would say so; whether it keeps its nodes, and that has to wait
        until they are free."""
        job_id = execution.job.id
        course = self.manager.courses.get(job_id)
        if course is None:
            return False
        done = isinstance(told, ev.JobEnded) and told.outcome == "completed"
        self.control.job_ended(job_id, 0 if done else KILLED)
        if course.keep:
            self.manager.advance(course)
            return False
        self._leaving[job_id] = (told, execution.job, execution.placement)
        self._index[job_id] = execution.index
        self.manager.advance(course)
        return True

    def stop(self, job_id: str, outcome: str, reason: str, *, requeue: bool = False) -> str | None:
        """A job that is on its way to its nodes, or from them, is not wanted there (any more). Returns why
        that cannot be, "" if it is done, None if the job is not on its way."""
        if job_id in self._leaving:
            return f"job {job_id} has ended and gives its partition back"
        claim = self._claims.get(job_id)
        if claim is None:
            return None
        claim.why, claim.requeue = (outcome, reason), requeue
        self.manager.stop(job_id, STOPPED)
        return ""

    def actions(self, ends: Ends) -> dict[type[dec.Decision], Callable[[Any], str]]:
        """What carries out the decisions that partitions have a say in."""

        def end(decision: dec.Kill | dec.Cancel) -> str:
            """Ends or removes a job also while it is on its way to its nodes."""
            stopped = self.stop(decision.job_id, "cancelled", decision.reason)
            return ends.kill(decision) if stopped is None else stopped

        def back(decision: dec.Requeue) -> str:
            """Sends a job back also while it is on its way to its nodes."""
            stopped = self.stop(decision.job_id, "cancelled", decision.reason, requeue=True)
            return ends.requeue(decision) if stopped is None else stopped

        return {
            dec.Start: self.start,
            dec.Kill: end,
            dec.Cancel: end,
            dec.Requeue: back,
            dec.PowerUp: self.power_up,
            dec.PowerDown: self.power_down,
        }

    def _advanced(self, course: Course) -> None:
        """A job came further on its way; if that is over, so is its claim."""
        if not course.done or not course.job:
            return
        job_id, machine = course.job, self._machine
        self._proxies.pop(job_id, None)
        masks = self._masks.pop(job_id, None)
        if masks is not None:
            self._wires.give_back(*masks)
            if self._made_for[course.partition.id][1] == "promised":
                self._step(course.partition, "free", job_id)
            del self._made_for[course.partition.id]
        left = self._leaving.pop(job_id, None)
        if left is not None:
            told, job, placement = left
            machine.nodes.give_back(job.request, placement)
            index = self._index.pop(job_id)
            if isinstance(told, ev.JobRequeued):
                machine.submitted[job_id] = (index, job)
            machine.news.append(msgspec.structs.replace(told, time=machine.now))
            return
        claim = self._claims.pop(job_id, None)
        if claim is None:
            return
        machine.nodes.give_back(claim.job.request, claim.decision.placement)
        self._never_ran(claim, course)

    def _never_ran(self, claim: _Claim, course: Course) -> None:
        """A job's way is over, and it has executed nothing."""
        machine, job = self._machine, claim.job
        outcome, reason = claim.why
        requeue = claim.requeue
        if not outcome:
            outcome, requeue = "failed", self._faults.requeue
            if course.outcome == PROXY_DIED:
                reason = "its proxy died before it ran"
            elif course.boots > BOOT_RETRIES and not course.ready:
                reason = f"its partition did not boot in {course.boots} tries"
                self._drain(course.partition)
            else:
                outcome, reason = "node failure", f"its partition was lost before it ran ({course.outcome})"
        if requeue:
            machine.submitted[job.id] = (claim.index, job)
            machine.refuse(claim.decision, reason)
            return
        machine.end(claim.index, machine.never_started(claim.index, job, machine.now, outcome))
        machine.news.append(ev.JobEnded(machine.now, job.id, outcome, reason))

    # ------------------------------------------------------------------ partitions that stay

    def power_up(self, decision: dec.PowerUp) -> str:
        """Have these nodes booted as one partition, and keep it. Returns why not, or ""."""
        box = self.geometry.box_of(decision.nodes, self._default)
        if isinstance(box, str):
            return box
        name = self._id_of(box)
        kept = self._kept.get(name)
        if kept is not None and kept.wanted:
            return ""
        masks = self.geometry.masks(box)
        if not self._wires.fits(*masks):
            return self._conflict(box)
        for node in decision.nodes:
            at = self._machine.nodes.index[node]
            if not self._machine.nodes.available[at]:
                return f"node {node} is not available"
        self._wires.take(*masks)
        if kept is None:
            spec = PartitionSpec(name, self.geometry.nodes_of(box), box.connection)
            kept = self._kept[name] = _Kept(spec, masks)
            self.control.add_partition(spec)
        self._step(kept.spec, "promised", "")
        kept.wanted, kept.boots = True, 0
        self._boot(kept)
        return ""

    def power_down(self, decision: dec.PowerDown) -> str:
        """Give a partition back that was ordered and has no job. Returns why not, or ""."""
        box = self.geometry.box_of(decision.nodes, self._default)
        if isinstance(box, str):
            return box
        kept = self._kept.get(self._id_of(box))
        if kept is None or not kept.wanted:
            return ""
        if self.manager.has_job(kept.spec.id):
            return f"{box}: a job is there"
        self._give_back(kept)
        return ""

    def _boot(self, kept: _Kept) -> None:
        """Order its boot if that can be now; while others halt on its nodes or wires it is tried again."""
        if self.control.create_partition(kept.spec.id).changed:
            kept.boots += 1

    def _give_back(self, kept: _Kept) -> None:
        self._wires.give_back(*kept.masks)
        kept.wanted = False
        if not self.control.destroy_partition(kept.spec.id).changed:
            self._step(kept.spec, "free", "")
        self._forget(kept)

    def _forget(self, kept: _Kept) -> None:
        if not kept.wanted and self.control.remove_partition(kept.spec.id).status is Status.OK:
            del self._kept[kept.spec.id]

    def _step(self, spec: PartitionSpec, state: str, job_id: str) -> None:
        made = self._made_for.get(spec.id)
        if made is not None:
            job_id = made[0]
            self._made_for[spec.id] = (job_id, state)
        self.steps.append(
            PartitionStep(self._machine.now, spec.id, spec.nodes, spec.connection, state, job_id)
        )

    def _watch(self, partition: Partition) -> None:
        """What is told of partitions: each change of partitions that stay, and failed boots of all others."""
        state = "loading" if partition.state is PartitionState.BUSY else str(partition.state)
        self._step(partition.spec, state, partition.job)
        failed = partition.message and partition.state is PartitionState.DEALLOCATING
        if partition.spec.id in self._kept or failed:
            self._machine.news.append(
                ev.PartitionChanged(
                    self._machine.now,
                    partition.spec.id,
                    partition.spec.nodes,
                    str(partition.state),
                    partition.message if failed else "",
                )
            )

    def _changed(self, partition: str) -> None:
        """A partition came to another state by itself, or its job did."""
        self.manager.advance_on(partition)
        found = self.control.get_partition(partition)
        kept = self._kept.get(partition)
        free = found is None or found.state is PartitionState.FREE
        if not free:
            return
        if kept is not None:
            if not kept.wanted:
                self._forget(kept)
            elif kept.boots > BOOT_RETRIES or self._has_down(kept.spec):
                self._lose(kept)
        for other in list(self._kept.values()):
            if other.wanted:
                self._boot(other)

    def _has_down(self, spec: PartitionSpec) -> bool:
        nodes = self._machine.nodes
        return any(not nodes.available[nodes.index[name]] for name in spec.nodes)

    def _lose(self, kept: _Kept) -> None:
        """A partition that was to stay cannot be booted."""
        tired = kept.boots > BOOT_RETRIES and not self._has_down(kept.spec)
        self._give_back(kept)
        for course in list(self.manager.courses.values()):
            if course.partition.id == kept.spec.id:
                self.manager.stop(course.job, BOOT_FAILED)
        if tired:
            self._drain(kept.spec)

    # ------------------------------------------------------------------ faults

    def _drain(self, spec: PartitionSpec) -> None:
        """Midplanes that do not boot take no jobs until they are mended."""
        for name in spec.nodes:
            at = self._machine.nodes.index[name]
            if self._machine.nodes.available[at]:
                self.control.midplane_down(name)
                self._failures.drain(name, "did not boot")

    def _broken(self, name: str) -> None:
        """A midplane failed, and the executions on it are gone."""
        self.control.midplane_down(name)
        for kept in list(self._kept.values()):
            found = self.control.get_partition(kept.spec.id)
            if name in kept.spec.nodes and kept.wanted and found is not None:
                self._lose(kept)

    def _proxy_dies(self, proxy: tuple[str, int]) -> None:
        """A proxy dies, and its job with it; after the job's end this has no effect."""
        job_id, number = proxy
        if self._proxies.get(job_id) != number:
            return
        execution = self._machine.running.get(job_id)
        self.control.proxy_died(job_id)
        if execution is not None:
            if self._faults.requeue:
                execution.book(self._machine.now)
                self._ends.back_to_queue(execution, "its proxy died")
            else:
                self._ends.cut_off(execution, "failed", "its proxy died")
        elif job_id in self._claims:
            self.manager.stop(job_id, PROXY_DIED)
