"""``squeue --json`` -> jobs.

Choices that Slurm leaves to us:

* A job that is COMPLETING still has its nodes and counts as running until they are free.
* A pending job that we cannot start faithfully (a dependency or constraint that we cannot express, a
  partition that we do not manage) is shown as held, with the reason.
* Each pending element of a job array is a job of its own, ``123_4``.
* A user's comment (``sbatch --comment=headway:dedicated``) says what Slurm has no word for:
  ``dedicated``: the job must start at its begin time; ``malleable``: it may lose processors while it
  runs; more in :mod:`headway_adapters.polling.marks`; with commas between.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from headway.errors import Failure
from headway_adapters.polling.snapshot import SnapshotJob
from headway_adapters.slurm import values
from headway_adapters.slurm.reader.brief import Brief
from headway_adapters.slurm.reader.dependencies import Conditions, read_dependencies
from headway_adapters.slurm.reader.detail import Detail
from headway_adapters.slurm.reader.documents import raw_jobs
from headway_adapters.slurm.reader.fates import Fates
from headway_adapters.slurm.reader.heterogeneous import Component, combined, how_many
from headway_adapters.slurm.reader.nodes import Nodes
from headway_adapters.slurm.reader.partitions import Partition, told
from headway_adapters.slurm.reader.record import Records
from headway_adapters.slurm.reader.remembered import Among, Item, Reading, Remembered, Taken
from headway_adapters.slurm.reader.site import Site
from headway_adapters.slurm.reader.topology import Bounds

#: Why a heterogeneous job is not started.
_NEEDS_BACKFILL = "a heterogeneous job: headway starts it with sched/backfill and bf_interval=1 (to 5)"
#: Of a job that depends on nothing.
_NONE = Conditions()
#: Of one that waits, on which no other record bears.
_ALONE = Among(_NONE)


@dataclass
class Jobs:
    """All jobs of a listing."""

    jobs: dict[str, SnapshotJob] = field(default_factory=dict)
    #: Pending jobs only.
    details: dict[str, Detail] = field(default_factory=dict)
    #: Arrays of which the listing shows something: what is left of one whose pending elements were ended
    #: together, None for the others.
    arrays: dict[str, SnapshotJob | None] = field(default_factory=dict)
    #: Jobs on nodes that are not held: Slurm would start them again by itself if they were requeued.
    loose: set[str] = field(default_factory=set)
    #: Jobs on nodes that headway has held for the case of a requeue.
    kept: set[str] = field(default_factory=set)
    #: Jobs, or arrays, that are listed but cannot be read.
    unread: set[str] = field(default_factory=set)


def read_jobs(
    data: bytes,
    now: float,
    site: Site,
    partitions: Mapping[str, Partition],
    nodes: Nodes,
    notes: set[str],
    bounds: Bounds | None = None,
    remembered: Remembered | None = None,
) -> Jobs:
    """``squeue --json``; ``now`` is when it was asked for (seconds). ``notes`` takes what was odd.
    ``bounds``: jobs' bounds on switches that the JSON does not have. ``remembered``: what the listing before
    was read as, which becomes what this one is."""
    listing = raw_jobs(data, "squeue: the listing of jobs", notes)
    if listing is None:
        raise Failure("squeue: the listing of jobs holds no jobs")
    remembered = remembered if remembered is not None else Remembered()
    remembered.begin_on(nodes.nodes, (site, partitions, nodes.threads))
    items = [remembered.item(raw, now) for raw in listing]
    found = _Reading(now, site, partitions, nodes, notes, bounds or {}, remembered).read(items)
    remembered.end()
    return found


class _Reading:
    """One reading of one listing."""

    def __init__(
        self, now: float, site: Site, partitions: Mapping[str, Partition], nodes: Nodes, notes: set[str],
        bounds: Bounds, remembered: Remembered,
    ) -> None:  # fmt: skip
        self.now = now
        self.site = site
        self.partitions = partitions
        self.notes = notes
        self.bounds = bounds
        self.remembered = remembered
        self.found = Jobs()
        self.records = Records(now, site, partitions, nodes, bounds)
        #: Array -> how many of its elements are not over; elements that take a place under its limit.
        self.elements: dict[int, int] = {}
        self.active: dict[int, int] = {}
        self.briefs: list[Brief] = []

    @cached_property
    def fates(self) -> Fates:
        """Asked for where a job depends on others."""
        managed = frozenset(self.site.managed)
        return Fates(self.briefs, told(self.partitions, managed) | self.site.behind.keys())

    def read(self, items: Sequence[Item]) -> Jobs:
        briefs = [self._brief(item) for item in items]
        self.briefs = [brief for brief in briefs if brief is not None]
        late: list[tuple[Item, Brief]] = []
        together: list[tuple[Item, Brief]] = []
        heterogeneous: dict[int, list[tuple[Item, Brief]]] = {}
        for item, brief in zip(items, briefs, strict=True):
            if brief is None:
                continue
            if brief.leader:
                heterogeneous.setdefault(brief.leader, []).append((item, brief))
            elif not self._is_one(brief):
                pass
            elif brief.state != "pending":
                self._take(item, brief)
            elif brief.tasks is None:
                late.append((item, brief))
            else:
                together.append((item, brief))
        # What waits of an array comes last: its places depend on the others.
        for _, brief in together:
            self.elements[brief.shared] = self.elements.get(brief.shared, 0) + len(brief.tasks or ())
        for item, brief in (*late, *together):
            self._take(item, brief)
        for leader, components in heterogeneous.items():
            try:
                self._heterogeneous(leader, components)
            except Exception as error:
                for _, brief in components:
                    self._odd(brief.job_id, error)
                self.found.unread.add(str(leader))
        return self.found

    def _brief(self, item: Item) -> Brief | None:
        if item.known is not None:
            return item.known.brief
        record = item.record
        notes: set[str] = set()
        try:
            return Brief.of(record, self.site.array_limit, notes)
        except Exception as error:
            self._odd(str(values.integer(record.job_id)), error)
            return None
        finally:
            item.notes = frozenset(notes)

    def _is_one(self, brief: Brief) -> bool:
        """Count what a record says of its array; whether it is that of a job at all."""
        if brief.number <= 0:
            self.notes.add("a job without a number was left out")
            return False
        if brief.array:
            self.found.arrays.setdefault(str(brief.array), None)
            if brief.task is not None and brief.state != "ended":
                self.elements[brief.array] = self.elements.get(brief.array, 0) + 1
                self.active[brief.array] = self.active.get(brief.array, 0) + brief.active
        return True

    def _take(self, item: Item, brief: Brief) -> None:
        """Take in what a record says."""
        try:
            taken = self._read(item, brief)
        except Exception as error:
            self._odd(brief.job_id, error)
            return
        found = self.found
        for job_id, job, detail in taken.jobs:
            found.jobs[job_id] = job
            if detail is not None:
                found.details[job_id] = detail
        if taken.loose:
            found.loose.add(brief.job_id)
        if taken.kept:
            found.kept.add(brief.job_id)
        if taken.rest is not None:
            found.arrays[brief.job_id] = taken.rest

    def _read(self, item: Item, brief: Brief) -> Taken:
        """What a record was read as, now or before."""
        among = self._among(brief) if brief.state == "pending" else None
        reading = item.known
        if reading is None or reading.among != among:
            self.notes |= item.notes
            records = self.records
            records.until, records.requests.went_by_nodes = math.inf, False
            if among is None:
                taken = records.not_pending(item.record, brief)
            else:
                taken = records.pending(item.record, brief, among)
            notes = item.notes if reading is None else reading.notes
            reading = Reading(brief, taken, among, notes, records.until, records.requests.went_by_nodes)
        elif reading.notes:
            self.notes |= reading.notes
        if item.key:
            self.remembered.keep(item.key, reading)
        return reading.taken

    def _among(self, brief: Brief) -> Among:
        """What the other records mean for one of what waits."""
        bound = self.bounds.get(brief.number) if self.bounds else None
        if brief.tasks is None and not brief.dependency and bound is None:
            return _ALONE
        if brief.tasks is None:
            return Among(self._conditions(brief, brief.task, several=False), bound=bound)
        several = len(brief.tasks) > 1
        conditions: Conditions = _NONE
        each: tuple[Conditions, ...] = ()
        # Elements may depend on an element each.
        if "aftercorr" in brief.dependency:
            each = tuple(self._conditions(brief, task, several=several) for task in brief.tasks)
        else:
            conditions = self._conditions(brief, None, several=several)
        room = brief.most - self.active.get(brief.shared, 0) if brief.most else math.inf
        return Among(conditions, each, room, self.elements[brief.shared] > len(brief.tasks), bound)

    def _conditions(self, brief: Brief, index: int | None, *, several: bool) -> Conditions:
        """What a job, or an element with this ``index``, depends on."""
        if not brief.dependency:
            return _NONE
        return read_dependencies(brief, index, self.fates, self.now, self.notes, several=several)

    def _heterogeneous(self, leader: int, components: Sequence[tuple[Item, Brief]]) -> None:
        """One job of all components, each of which is read like a job first."""
        read: list[Component] = []
        key = str(leader)
        loose = kept = False
        for item, brief in components:
            if self._is_one(brief):
                taken = self._read(item, brief)
                loose, kept = loose or taken.loose, kept or taken.kept
                if taken.rest is not None:
                    self.found.arrays[brief.job_id] = taken.rest
                offset = values.integer(item.record.het_job_offset)
                read += [Component(own, offset, job, detail) for own, job, detail in taken.jobs]
        if not read:
            return
        # All of them, or what is held of them, with one command.
        if loose:
            self.found.loose.add(key)
        if kept:
            self.found.kept.add(key)
        expected = how_many(values.text(components[0][0].record.het_job_id_set))
        never = "" if self.site.backfills else _NEEDS_BACKFILL
        self.found.jobs[key], detail = combined(key, read, expected=expected, never=never)
        if detail is not None:
            self.found.details[key] = detail

    def _odd(self, job_id: str, error: Exception) -> None:
        """Whatever is odd about a job costs that job this look, and no other."""
        self.found.unread.add(job_id)
        self.found.jobs.pop(job_id, None)
        self.found.details.pop(job_id, None)
        self.notes.add(f"job {job_id} cannot be read and stays as it was: {error}")
