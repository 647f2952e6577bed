"""One record of ``squeue --json`` -> the job, or the elements of an array, that it stands for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway.model import FOR_JOB, JobDescription, Request
from headway_adapters.polling.marks import marks
from headway_adapters.polling.remarks import CANNOT_BE_TOLD, noted, remarks, unwritable
from headway_adapters.polling.resubmission import ATTRIBUTES
from headway_adapters.polling.snapshot import SnapshotJob
from headway_adapters.slurm import marker, values
from headway_adapters.slurm.reader.arrays import task_list
from headway_adapters.slurm.reader.dependencies import Conditions
from headway_adapters.slurm.reader.detail import Detail
from headway_adapters.slurm.reader.documents import JobRecord, node_names
from headway_adapters.slurm.reader.holds import Hold, hold_of, said_by_user
from headway_adapters.slurm.reader.licences import licences
from headway_adapters.slurm.reader.nodes import Nodes
from headway_adapters.slurm.reader.partitions import Partition
from headway_adapters.slurm.reader.placement import placement_of
from headway_adapters.slurm.reader.remembered import Among, Brief, Taken
from headway_adapters.slurm.reader.request import Requests, forgets_nodes, nodes_asked
from headway_adapters.slurm.reader.reservations import RESERVATION_PREFIX
from headway_adapters.slurm.reader.routed import marks_of, route_barrier, routed, submitted_first
from headway_adapters.slurm.reader.site import Site
from headway_adapters.slurm.reader.topology import Bounds

#: Slurm's reasons of a job that depends on others.
_DEPENDS = frozenset({"Dependency", "DependencyNeverSatisfied"})
#: Slurm's reason of a job that no node that it may have can run, whatever ends on it.
NEVER = "BadConstraints"


@dataclass(frozen=True)
class _Wanted:
    """The nodes that a job's user named, and how many, where headway's pin may stand in their place."""

    #: The pin, if it holds.
    pin: marker.Pin | None
    asked: tuple[str, ...]
    excluded: tuple[str, ...]
    least: int
    most: int


@dataclass(frozen=True)
class _Waiting:
    """What a record says of a job that waits, or of each of the elements that it stands for."""

    record: JobRecord
    pools: tuple[str, ...]
    request: Request
    attributes: dict[str, Any] | None
    detail: Detail
    #: What keeps it from starting, and its holder.
    blocked: str
    held_by: str
    #: A start that headway asked for is on its way.
    releasing: bool


class Records:
    """Reads the records of one listing, each by itself."""

    def __init__(
        self, now: float, site: Site, partitions: Mapping[str, Partition], nodes: Nodes, bounds: Bounds
    ) -> None:
        """``now``: when the listing was asked for (seconds)."""
        self._now = now
        self.site = site
        self.partitions = partitions
        self.nodes = nodes
        self.managed = frozenset(site.managed)
        self.requests = Requests(site, partitions, nodes, bounds)
        #: Until when the record that was read last is read as it was (seconds).
        self.until = math.inf

    @property
    def now(self) -> float:
        """When the listing was asked for, for a record that is to be read anew at the next look."""
        self.until = self._now
        return self._now

    def _pools(self, record: JobRecord, listed: tuple[str, ...]) -> tuple[str, ...]:
        """The pools in which it may run, in its user's order; ``listed``: the partitions of its user's list.

        headway starts it in none that it does not manage, and Slurm does not start it while it is held.
        """
        if not listed:
            named = values.text(record.partition).partition(",")[0]
            return (self.site.behind.get(named, named),)
        choices = tuple(dict.fromkeys(self.site.behind.get(name, name) for name in listed))
        return tuple(name for name in choices if name in self.managed) or choices[:1]

    def _description(
        self, record: JobRecord, pools: tuple[str, ...], request: Request, *,
        held: bool, pending: bool, ranked: bool, job_id: str, array_id: str, index: int | None,
        conditions: Conditions | None = None, attributes: dict[str, Any] | None = None,
    ) -> JobDescription:  # fmt: skip
        conditions = conditions or Conditions()
        begins = (self._begin(record) if pending else None, conditions.begin)
        begin = max((each for each in begins if each is not None), default=None)
        priority = values.number(record.priority) if ranked else None
        return JobDescription(
            id=job_id,
            submit_time=submitted_first(record) or values.seconds(record.submit_time) or self.now,
            request=request,
            pool=pools[0],
            further_pools=pools[1:],
            name=values.text(record.name),
            user=values.text(record.user_name),
            group=values.text(record.group_name),
            account=values.text(record.account),
            qos=values.text(record.qos),
            # A held job's priority is 0: that says nothing about its order.
            priority=None if not priority or math.isinf(priority) else float(priority),
            array_id=array_id,
            array_index=index,
            dependencies=conditions.dependencies,
            any_dependency=conditions.either,
            begin_time=begin,
            held=held,
            reservation=self._reservation(record, job_id),
            attributes=self._marked(record, attributes),
        )

    def _begin(self, record: JobRecord) -> float | None:
        """The begin time that its user asked for, if it has not come."""
        begin = _due(record)
        if begin is None or begin <= self._now or _begins_for_us(record):
            return None
        self.until = min(self.until, begin)
        return begin

    def _marked(self, record: JobRecord, attributes: dict[str, Any] | None) -> dict[str, Any] | None:
        """The attributes, with what the user's comment says, and how nice the job is."""
        if nice := _nice(record.nice):
            attributes = {**(attributes or {}), "nice": nice}
        comment, notes = noted(said_by_user(values.text(record.comment))[0])
        words, said = remarks(comment)
        marked = dict(attributes or {})
        if said:
            marked["comment"] = said
        if "dedicated" in words:
            # Slurm forgets the begin time when the job is released at it: from then on it is due.
            planned = shown_of(record)
            due = values.seconds(record.eligible_time) if planned is None else planned.begin
            due = due or values.seconds(record.submit_time)
            marked["requested_start"] = due or self.now
        if "malleable" in words:
            marked["malleable"] = True
        if notes:
            marked["notes"] = notes
        if why := unwritable(comment):
            marked[CANNOT_BE_TOLD] = why
        return {**marked, **marks(words, self.site.words - ATTRIBUTES), **routed(record, words)} or None

    def _reservation(self, record: JobRecord, job_id: str) -> str:
        """The reservation that its user named; "" for the reservation into which headway put it."""
        name = values.text(record.resv_name)
        name = name[len(RESERVATION_PREFIX) :] if name.startswith(RESERVATION_PREFIX) else name
        return "" if name == FOR_JOB + job_id else name

    # ------------------------------------------------------------ jobs on nodes, ended jobs

    def not_pending(self, record: JobRecord, brief: Brief) -> Taken:
        """A job that is on nodes or over."""
        job_id, array_id, index = brief.job_id, brief.array_id, brief.task
        state = brief.state
        # Slurm shows of a list the partition in which the job runs.
        pools = self._pools(record, partitions_listed(record, None))
        pool = pools[0]
        placement = placement_of(record, self.nodes.threads)
        cpus = sum(count for _, count in placement) or values.integer(record.cpus)
        request = Request(
            processors=max(cpus, 1),
            walltime=self.requests.walltime(record, pool),
            nodes=len(placement),
            **self.requests.amounts(record, max(len(placement), 1)),
            exclusive=self.requests.exclusive(record, pool),
            # Where there was a choice, newer versions say what it got.
            licences=licences(values.text(record.licenses_allocated) or values.text(record.licenses)) or (),
        )
        description = self._description(
            record, (pool,), request, held=False, pending=False, ranked=False, job_id=job_id,
            array_id=array_id, index=index,
        )  # fmt: skip
        reason = values.text(record.state_reason)
        ended = state == "ended"
        together = ended and not array_id and bool(values.text(record.array_task_string))
        restarts = values.integer(record.restart_cnt)
        started = values.seconds(record.start_time) if placement else None
        leaving = "COMPLETING" in values.words(record.job_state)
        if leaving and restarts:
            # It was requeued, and a node does not say that it is free of it: the time goes on with the clock.
            started = None
        job = SnapshotJob(
            job=description,
            state=state,
            placement=placement,
            start_time=started,
            suspended_since=values.seconds(record.suspend_time) if state == "suspended" else None,
            paused=_paused(record, started),
            end_time=(values.seconds(record.end_time) or self.now) if ended else None,
            outcome=brief.outcome,
            exit_code=values.exit_code(record.exit_code) if ended else None,
            reason=reason,
            restarts=restarts,
            tier="background" if values.text(record.partition) in self.site.behind else "foreground",
            leaving=leaving,
        )
        taken = Taken(((job_id, job, None),))
        if not ended and pool in self.managed:
            priority, comment = values.number(record.priority), values.text(record.admin_comment)
            taken.loose = bool(priority)
            taken.kept = priority == 0 and comment.startswith(marker.PREFIX)
        if together:
            taken.rest = job
        return taken

    # ------------------------------------------------------------ jobs that wait

    def pending(self, record: JobRecord, brief: Brief, among: Among) -> Taken:
        """A job that waits; or the elements of an array that have a record in common."""
        tasks = brief.tasks
        comment = values.text(record.admin_comment)
        restarts = values.integer(record.restart_cnt)
        listed = partitions_listed(record, marker.parse(comment))
        pools = self._pools(record, listed)
        managed = pools[0] in self.managed
        wanted = _nodes_wanted(record)
        pin = wanted.pin
        hold = hold_of(record, self.site.hold_marker)
        unfit, request, attributes = self.requests.read(
            record, pools, wanted.asked, wanted.excluded, wanted.least, wanted.most
        )
        conditions = among.conditions
        blocked, held_by = self._barrier(record, pools, hold, unfit)
        unsaid = self._is_unsaid(record, conditions) and managed and not blocked
        if not blocked:
            blocked = self._condition(record, conditions, managed=managed)
        if blocked and not held_by:
            held_by = "system"
        in_question = marker.begin_of_asked(comment) is not None
        reason = values.text(record.state_reason)
        detail = Detail(
            held=hold.held,
            from_filter=hold.from_filter,
            comment_free=marker.is_ours(comment),
            ours=comment.startswith(marker.PREFIX),
            unmarked=held_by == "headway" and not hold.from_filter and not comment,
            refused=hold.held and reason == NEVER,
            dependency=values.text(record.dependency),
            unmet=not hold.held and reason in _DEPENDS,
            unsaid=unsaid,
            asked=in_question,
            begins_for_us=in_question and _begins_for_us(record),
            pin=pin,
            mark=comment if comment.startswith(marker.PREFIX) else "",
            shown=shown_of(record),
            begin=int(_due(record) or 0),
            node_list=node_names(record.required_nodes),
            least_nodes=wanted.least,
            most_nodes=wanted.most,
            nodes_open=marker.says_nodes_open(comment) or forgets_nodes(record),
            restarts=restarts,
            listed=listed,
            behind=values.text(record.partition) in self.site.behind,
            record=brief.job_id if tasks is None else str(brief.shared),
            managed=managed,
            excluded=wanted.excluded,
            comment=values.text(record.comment),
            **marks_of(comment),
        )
        releasing = pin is not None and not hold.held and managed and pin.restarts == restarts
        waiting = _Waiting(record, pools, request, attributes, detail, blocked, held_by, releasing=releasing)
        if tasks is None:
            return Taken((self._put(waiting, brief.job_id, brief.array_id, brief.task, conditions),))
        return Taken(tuple(self._put_elements(waiting, brief.shared, tasks, among)))

    def _barrier(self, record: JobRecord, pools: tuple[str, ...], hold: Hold, unfit: str) -> tuple[str, str]:
        """What keeps a job from starting besides what it depends on, and its holder."""
        if why := route_barrier(values.text(record.admin_comment)):
            return why, "system"
        if hold.why:
            return hold.why, hold.by
        if pools[0] not in self.managed:
            return f"partition {pools[0]} is not managed by headway", "system"
        if all(self._is_closed(name) for name in pools):
            return _closed(pools), hold.by
        return unfit, hold.by

    def _is_unsaid(self, record: JobRecord, conditions: Conditions) -> bool:
        """Whether only Slurm knows what a job depends on, so that it is to be asked."""
        if not conditions.unsaid or self._begin(record):
            return False
        comment, reason = values.text(record.admin_comment), values.text(record.state_reason)
        in_question = marker.begin_of_asked(comment) is not None
        return in_question or (comment.startswith(marker.HELD) and reason == "JobHeldAdmin")

    def _condition(self, record: JobRecord, conditions: Conditions, *, managed: bool) -> str:
        """What a job waits for; "" for nothing that keeps it from starting."""
        if marker.begin_of_asked(values.text(record.admin_comment)) is not None:
            return "Slurm is asked what it depends on"
        if conditions.waits:
            return conditions.waits
        if values.text(record.state_reason) == "DependencyNeverSatisfied":
            return "its dependency can never be satisfied"
        if managed and self.site.needs_qos and not values.text(record.qos):
            return "it has no QOS (any more), and Slurm starts no job without a QOS"
        return ""

    def _put_elements(
        self, waiting: _Waiting, array: int, tasks: Sequence[int], among: Among
    ) -> list[tuple[str, SnapshotJob, Detail | None]]:
        """Elements of an array that have a record in common."""
        limit = values.integer(waiting.record.array_max_tasks)
        if among.others:
            # Other elements have records of their own, which the array's number would hit as well.
            rest = replace(waiting.detail, record=f"{array}_[{task_list(tasks)}]", unsaid=False)
            waiting = replace(waiting, detail=rest)
        found = []
        for at, task in enumerate(tasks):
            one, own = waiting, among.conditions
            if not one.blocked and at >= among.room:
                why = f"its array runs at most {limit} elements at a time"
                one = replace(one, blocked=why, held_by="system")
            if among.each:
                own = among.each[at]
                if own.waits and not one.blocked:
                    one = replace(one, blocked=own.waits, held_by="system")
            found.append(self._put(one, f"{array}_{task}", str(array), task, own))
        return found

    def _put(
        self, waiting: _Waiting, job_id: str, array_id: str, index: int | None, conditions: Conditions
    ) -> tuple[str, SnapshotJob, Detail | None]:
        detail, pin = waiting.detail, waiting.detail.pin
        description = self._description(
            waiting.record, waiting.pools, waiting.request, held=bool(waiting.blocked), pending=True,
            ranked=detail.managed and pin is None, job_id=job_id, array_id=array_id, index=index,
            conditions=conditions, attributes=waiting.attributes,
        )  # fmt: skip
        job = SnapshotJob(
            job=description,
            state="pending",
            held_by=waiting.held_by,
            pinned=(pin.placement or tuple((name, 0) for name in pin.nodes)) if pin is not None else (),
            releasing=waiting.releasing,
            pool=values.text(waiting.record.partition) if waiting.releasing and detail.listed else "",
            reason=waiting.blocked or values.text(waiting.record.state_reason),
            restarts=detail.restarts,
        )
        return job_id, job, detail

    def _is_closed(self, name: str) -> bool:
        partition = self.partitions.get(name)
        return partition is not None and not partition.open


def _nodes_wanted(record: JobRecord) -> _Wanted:
    pin = marker.parse(values.text(record.admin_comment))
    node_list = node_names(record.required_nodes)
    excluded = node_names(record.excluded_nodes)
    least, most = nodes_asked(record)
    if pin is None:
        return _Wanted(None, node_list, excluded, least, most)
    if pin.excluded:
        # A leader is sent to its nodes by excluding all others; its user's own list stands in the marker,
        # and so do the limits of the other components, which Slurm changes with it.
        offset = values.integer(record.het_job_offset)
        if set(excluded).isdisjoint(pin.nodes) and offset < len(pin.excluded):
            return _Wanted(pin, node_list, pin.excluded[offset], least, most)
    elif not pin.nodes:
        # Taken back: its node list is its user's again, only the number of nodes is still ours.
        return _Wanted(None, node_list, excluded, pin.least, pin.most)
    elif set(pin.nodes) == set(node_list):
        return _Wanted(pin, pin.asked, excluded, pin.least, pin.most)
    # The node list was changed since: the pin is history.
    return _Wanted(None, node_list, excluded, least, most)


def partitions_listed(record: JobRecord, told: marker.Pin | None) -> tuple[str, ...]:
    """The partitions that a job's user listed, in that order; () if it is one.

    ``told``: what headway wrote when it chose a partition for a start. If the job is in another partition
    now, it was moved since.
    """
    named = tuple(dict.fromkeys(filter(None, values.text(record.partition).split(","))))
    if len(named) > 1:
        return named
    return told.listed if told is not None and named and named[0] in told.listed else ()


def _begins_for_us(record: JobRecord) -> bool:
    """Whether headway gave the job its begin time, to ask Slurm about it."""
    ours = marker.begin_of_asked(values.text(record.admin_comment))
    return ours is not None and values.begin(record.eligible_time) == ours


def shown_of(record: JobRecord) -> marker.Shown | None:
    """The planned start that headway gave a job as its begin time; None if that is another now."""
    planned = marker.shown(values.text(record.admin_comment))
    return planned if planned is not None and values.begin(record.eligible_time) == planned.time else None


def _due(record: JobRecord) -> float | None:
    """A job's begin time but for a planned start that headway shows (absolute seconds)."""
    planned = shown_of(record)
    return values.begin(record.eligible_time) if planned is None else planned.begin or None


def _closed(names: Sequence[str]) -> str:
    """Why a job starts in none of its partitions."""
    if len(names) == 1:
        return f"partition {names[0]} is closed"
    return f"partitions {' and '.join(names)} are closed"


def _paused(record: JobRecord, started: float | None) -> float:
    """Seconds for which a job was suspended since its start, before the moment of which Slurm says that it
    was suspended, or resumed, last."""
    changed, ran = values.seconds(record.suspend_time), values.number(record.pre_sus_time)
    if started is None or changed is None or ran is None or math.isinf(ran):
        return 0.0
    return max(0.0, changed - started - ran)


def _nice(value: Any) -> float | None:
    """How nice a job is; Slurm 22.05 writes what is below 0 as an unsigned number of 32 bits."""
    if type(value) is int and 1 << 31 <= value < 1 << 32:
        return value - (1 << 32)
    return values.number(value)
