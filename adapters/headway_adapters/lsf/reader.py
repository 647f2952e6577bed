"""LSF's records -> our snapshot. Pure: no commands, no clock; tested on recorded output.

Choices that LSF leaves to us:

* A job's id is LSF's own: ``123``, and ``123[4]`` for an element of an array.
* A pool is a queue with the hosts that its HOSTS line names; a node is a host, a processor a slot.
* The estimate is the job's run limit, else its queue's default or largest one, else the option
  ``unlimited_walltime``. (Where hosts have CPU factors and ``ABS_RUNLIMIT`` is not set, LSF stretches
  limits by them; we do not.)
* A pending job that we cannot start faithfully (a requirement or a dependency that we cannot
  express, a queue that is not ours, forwarded to another cluster) is shown as held, with the reason.
* A suspended job (USUSP, SSUSP) keeps its slots. A job that LSF lost sight of (UNKWN, ZOMBI) too.
* Where ``brun`` cannot say how many slots on each host (OpenLava, volclava), a parallel job that fits on one
  host gets one, and a larger one whole hosts, where its size allows that.
* LSF says how a job ended as far as its flavour does. Without a word about it, a job that reached its
  limit timed out, one that ended by the signals of ``bkill`` (exit codes 130 and 143), or that
  never ran, was cancelled, any other failed.
* The job description (``bsub -Jd headway:dedicated``) says what LSF has no word for: ``dedicated``: the
  job must start at its begin time; ``malleable``: it may lose processors while it runs; more in
  :mod:`headway_adapters.polling.marks`; with commas between.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.adapter.migration import ON_NODES
from headway.model import (
    JobDescription,
    Placement,
    Request,
)
from headway_adapters.lsf import depend, hosts
from headway_adapters.lsf.arrays import ArraySlots
from headway_adapters.lsf.cluster_listing import Queue
from headway_adapters.lsf.detail import Detail
from headway_adapters.lsf.hosts import Nodes
from headway_adapters.lsf.listing import Ending, Facts, Row
from headway_adapters.lsf.remembered import Reading, Remembered
from headway_adapters.lsf.resreq import Host, Requirements
from headway_adapters.lsf.shared import NOTHING, Shared
from headway_adapters.polling.marks import marks
from headway_adapters.polling.remarks import CANNOT_BE_TOLD, noted, remarks, unwritable
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob

#: LSF's word for a job's state -> ours.
JOB_STATES: dict[str, str] = {
    "PEND": "pending",
    "PSUSP": "pending",
    "FWD_PEND": "pending",
    "WAIT": "starting",
    "PROV": "starting",
    "RUN": "running",
    "UNKWN": "running",
    "ZOMBI": "running",
    "USUSP": "suspended",
    "SSUSP": "suspended",
    "DONE": "ended",
    "EXIT": "ended",
}
#: How a job ended, by LSF's termination reason; the first word that fits.
_REASONS: tuple[tuple[str, str], ...] = (
    ("TERM_RUNLIMIT", "timed out"),
    ("TERM_DEADLINE", "timed out"),
    ("TERM_WINDOW", "timed out"),
    ("TERM_PREEMPT", "preempted"),
    ("TERM_OWNER", "cancelled"),
    ("TERM_ADMIN", "cancelled"),
    ("TERM_FORCE_", "cancelled"),
    ("TERM_ORPHAN", "cancelled"),
    ("TERM_ZOMBI", "node failure"),
    ("TERM_REMOVE_HUNG", "node failure"),
)
#: Exit codes of a job that ``bkill`` ended: by SIGINT or SIGTERM.
_KILLED = frozenset({130, 143})
#: In a description: with these its end cannot be told.
ENDS = "<>"
#: Our reservations' names in LSF.
RESERVATION_PREFIX = "headway_"
#: Most that a job may run over its limit before that counts as its end, seconds.
_GRACE = 5.0
#: Of a minute.
_LAST_SECOND = 59.0


@dataclass(frozen=True)
class Site:
    """What the reader must know about our configuration."""

    managed: tuple[str, ...]
    unlimited_walltime: float = 365 * 86400.0
    #: ``brun`` cannot say how many slots on each host, it fills them one after another up to their CPUs.
    fills: bool = False
    #: Attributes of jobs that the configuration names, and that users can say in a job's description.
    words: frozenset[str] = frozenset()


@dataclass
class Jobs:
    """All jobs of a listing."""

    jobs: dict[str, SnapshotJob] = field(default_factory=dict)
    #: Pending jobs only.
    details: dict[str, Detail] = field(default_factory=dict)
    #: Jobs that are listed but cannot be read: they stay as they were.
    unread: set[str] = field(default_factory=set)
    #: What running jobs had reserved of licences and gave back, since that was not to their ends.
    given_back: Counter[str] = field(default_factory=Counter)


# ---------------------------------------------------------------------- jobs


def read_jobs(
    rows: Mapping[str, Row],
    facts: Mapping[str, Facts],
    now: float,
    site: Site,
    queues: Mapping[str, Queue],
    nodes: Nodes,
    static: Mapping[str, Host],
    groups: Mapping[str, tuple[str, ...]],
    notes: set[str],
    before: Snapshot | None = None,
    shared: Shared = NOTHING,
    limits: Mapping[str, int] | None = None,
    remembered: Remembered | None = None,
) -> Jobs:
    """The jobs of one listing; ``now`` is when it was asked for (seconds). ``notes`` takes what was odd.

    A job of which the listings tell in two ways stays as it was ``before``; one that is pending and
    whose details are not listed (it was submitted between two commands) is left for the next look.
    ``limits``: array -> how many of its elements may run at a time. ``remembered``: how the jobs were read
    at the look before, which becomes how they are read now.
    """
    remembered = remembered if remembered is not None else Remembered()
    named = {name: one.hosts for name, one in shared.licences.items()}
    planned = {name: queue.default_limit or queue.limit for name, queue in queues.items()}
    context = site, planned, nodes.members, tuple(nodes.nodes), static, groups, named, set(shared.by_host)
    remembered.begin_at(now, now if before is None else before.time, context)
    reading = _Reading(now, site, queues, nodes, static, groups, notes, before, shared, remembered)
    found = reading.read(rows, facts, limits or {})
    remembered.end()
    return found


_NO_FACTS = Facts()


class _Reading:
    """One reading of one listing."""

    def __init__(
        self, now: float, site: Site, queues: Mapping[str, Queue], nodes: Nodes, static: Mapping[str, Host],
        groups: Mapping[str, tuple[str, ...]], notes: set[str], before: Snapshot | None, shared: Shared,
        remembered: Remembered,
    ) -> None:  # fmt: skip
        self._now = now
        self.remembered = remembered
        self.site = site
        self.queues = queues
        self.nodes = nodes
        self.static = static
        self.groups = groups
        self.notes = notes
        self.before: Mapping[str, SnapshotJob] = before.jobs if before is not None else {}
        #: When it was looked the last time.
        self.seen = before.time if before is not None else None
        self.managed = frozenset(site.managed)
        self.requirements = Requirements(static, shared)
        self.known = depend.Jobs()
        self.found = Jobs()
        self.slots = ArraySlots({}, Counter())
        self._outside: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}
        #: Queue -> fewest and most CPUs of its hosts.
        self._cpus: dict[str, tuple[int, int]] = {}
        self._begin()

    def _begin(self) -> None:
        """A job is read: what it turns out to be read by is found out anew."""
        #: Until when it is read so.
        self.until = math.inf
        #: Why its array keeps it waiting, if that was asked.
        self.over: str | None = None
        #: The snapshot before had a part in it; so had the moment of that, or of this look.
        self.by_past, self.by_moment = False, False
        self.given_back: list[tuple[str, int]] = []

    @property
    def now(self) -> float:
        """When the listing was asked for; a job that is read by it is read anew at the next look."""
        self.until = self._now
        return self._now

    def _past(self, job_id: str) -> SnapshotJob | None:
        """How the snapshot before shows a job."""
        self.by_past = True
        return self.before.get(job_id)

    def _is_over(self, moment: float) -> bool:
        """Whether it is later than this; else that is asked again when it is."""
        if moment > self._now:
            self.until = min(self.until, moment)
        return moment <= self._now

    def read(
        self, rows: Mapping[str, Row], facts: Mapping[str, Facts], limits: Mapping[str, int]
    ) -> Jobs:  # fmt: skip
        states = {job_id: self._state(row) for job_id, row in rows.items()}
        if limits:
            active = (row.array for row in rows.values() if states[row.job_id] in ON_NODES)
            self.slots = ArraySlots(limits, Counter(active))
        if any(each.dependency for each in facts.values()):
            self.known = depend.Jobs(
                _known(row, facts.get(job_id, _NO_FACTS), states[job_id]) for job_id, row in rows.items()
            )
        for job_id, row in rows.items():
            try:
                self._one(job_id, row, facts.get(job_id), states[job_id])
            except Exception as error:
                # Whatever is odd about a job costs that job this look, and no other.
                self.found.unread.add(job_id)
                self.found.jobs.pop(job_id, None)
                self.found.details.pop(job_id, None)
                said = f"{type(error).__name__}: {error}"
                self.notes.add(f"job {job_id} cannot be read and stays as it was: {said}")
        return self.found

    def _one(self, job_id: str, row: Row, told: Facts | None, state: str) -> None:
        if row.doubtful or (told is None and state == "pending"):
            if job_id in self.before:
                self.found.jobs[job_id] = self.before[job_id]
            return
        condition = depend.FREE
        if state == "pending" and told is not None and told.dependency:
            condition = depend.judge(told.dependency, self.known, user=row.user, index=row.index)
        known = self.remembered.readings.get(job_id)
        over = None
        if (
            known is not None
            and known.holds(row, told, self.before.get(job_id), self._now)
            and (known.condition is condition or known.condition == condition)
        ):
            if known.over is not None:
                over = self.slots.barred(row.array)
            if known.over == over:
                self._again(job_id, known)
                return
        self._read(job_id, row, told, state, condition, over)

    def _again(self, job_id: str, known: Reading) -> None:
        """A job as it was read before."""
        self.found.jobs[job_id] = known.job
        if known.detail is not None:
            self.found.details[job_id] = known.detail
        if known.notes:
            self.notes |= known.notes
        for name, amount in known.given_back:
            self.found.given_back[name] += amount
        self.remembered.keep(job_id, known)

    def _read(
        self, job_id: str, row: Row, told: Facts | None, state: str, condition: depend.Condition,
        over: str | None,
    ) -> None:  # fmt: skip
        """A job that is not known as it is now; ``over``: as in :class:`Reading`, if that was asked."""
        self._begin()
        notes, self.notes = self.notes, set()
        try:
            if state == "pending":
                self._pending(row, told or _NO_FACTS, condition, over)
            else:
                self._not_pending(row, told or _NO_FACTS, state)
        finally:
            noted, self.notes = self.notes, notes
            notes |= noted
        if self.until > self._now:
            reading = Reading(
                row, told, condition, self.over, self.found.jobs[job_id], self.found.details.get(job_id),
                frozenset(noted), tuple(self.given_back), self.until, self.by_past,
                unseen=not self.by_moment and job_id not in self.before,
            )  # fmt: skip
            self.remembered.keep(job_id, reading)

    def _state(self, row: Row) -> str:
        state = JOB_STATES.get(row.stat)
        if state is None:
            self.notes.add(f"unknown job state {row.stat!r}; headway does not touch such a job")
            # The job keeps what it has; else it is not started.
            return "running" if row.hosts else "pending"
        return state

    # ------------------------------------------------------------ common parts

    def _walltime(self, row: Row, told: Facts) -> float:
        if told.run_limit:
            return told.run_limit
        queue = self.queues.get(row.queue)
        if queue is not None:
            limit = queue.default_limit or queue.limit
            if limit:
                return limit
        return self.site.unlimited_walltime

    def _submitted(self, row: Row, told: Facts) -> float:
        if told.submitted is not None:
            return told.submitted
        if row.submitted is None:
            return self.now
        known = self._past(row.job_id)
        return self._sharper(row.submitted, None if known is None else known.job.submit_time, known is None)

    def _sharper(self, moment: float, known: float | None, fresh: bool) -> float:
        """A time that is told in whole minutes, with its seconds as far as our looks tell them.

        ``known``: what it was taken for before; ``fresh``: it had not happened at the look before.
        """
        if moment % 60:
            return moment
        if known is not None and moment <= known < moment + 60:
            return known
        if not fresh:
            return moment
        if self.seen is None or self.seen < moment + _LAST_SECOND:
            self.by_moment = True
        return moment if self.seen is None else _within_its_minute(moment, self.seen)

    def _attributes(self, row: Row, told: Facts) -> dict[str, Any] | None:
        """What the job description says, and what the request has no field for."""
        found: dict[str, Any] = {}
        if told.most > told.least:
            found["most_processors"] = told.most
        description, notes = noted(told.description)
        words, said = remarks(description)
        if "dedicated" in words:
            found["requested_start"] = told.begin or row.submitted or self.now
        if "malleable" in words:
            found["malleable"] = True
        if said:
            found["comment"] = said
        if notes:
            found["notes"] = notes
        if why := unwritable(description, ENDS):
            found[CANNOT_BE_TOLD] = why
        return {**found, **marks(words, self.site.words)} or None

    def _description(
        self, row: Row, told: Facts, request: Request, *, held: bool = False,
        condition: depend.Condition = depend.FREE,
    ) -> JobDescription:  # fmt: skip
        begin = told.begin
        reservation = told.reservation
        if reservation.startswith(RESERVATION_PREFIX):
            reservation = reservation[len(RESERVATION_PREFIX) :]
        return JobDescription(
            id=row.job_id,
            submit_time=self._submitted(row, told),
            request=request,
            pool=row.queue,
            name=row.name,
            user=row.user,
            group=row.group,
            account=row.project,
            array_id=row.array,
            array_index=row.index,
            dependencies=condition.dependencies,
            any_dependency=condition.either,
            begin_time=begin if begin is not None and not self._is_over(begin) else None,
            held=held,
            reservation=reservation,
            attributes=self._attributes(row, told),
        )

    def _asked(self, row: Row, told: Facts) -> tuple[str, dict[str, Any]]:
        """Why the requirement cannot be expressed ("" if it can), and what it means for the request."""
        submitted_from = self.static.get(row.from_host)
        asked = self.requirements.read(told.requirement, submitted_from.kind if submitted_from else "")
        if asked.unfit:
            return asked.unfit, {}
        for note in asked.notes:
            self.notes.add(note)
        excluded = asked.excluded
        if told.asked_hosts:
            excluded = (*excluded, *self._not_asked(row.queue, told.asked_hosts))
        nodes, per_node = asked.nodes, asked.per_node
        if per_node and told.least <= per_node:
            nodes, per_node = 1, 0
        elif per_node and told.least % per_node:
            # LSF puts the rest on one more host, which a request cannot say.
            self.notes.add(f"span[ptile={per_node}] does not divide {told.least} slots; it is not kept")
            per_node = 0
        slots = max(told.least, 1)
        if self.site.fills:
            tiled = asked.per_node > 0
            slots, nodes, per_node, unfit = self._filled(row.queue, told, nodes, per_node, tiled=tiled)
            if unfit:
                return unfit, {}
        return "", {
            "processors": slots,
            "nodes": nodes,
            "processors_per_node": per_node,
            "memory_per_node": asked.memory,
            "features": asked.features,
            "excluded_nodes": excluded,
            "gres_per_node": asked.gres,
            "licences": tuple((name, amount) for name, amount, _ in asked.licences),
        }

    def _filled(
        self, queue: str, told: Facts, nodes: int, per_node: int, *, tiled: bool
    ) -> tuple[int, int, int, str]:
        """Slots and shape of a request such that ``brun`` can give it: on one host, or on whole ones.

        A job of ``bsub -n LEAST,MOST`` gets all that its hosts have, up to MOST, and its least where it says
        how many on each host (``tiled``).
        """
        if queue not in self._cpus:
            of_queue = [self.static[name].processors for name in self.nodes.members.get(queue, ())
                        if name in self.static]  # fmt: skip
            self._cpus[queue] = (min(of_queue, default=0), max(of_queue, default=0))
        least, most = self._cpus[queue]
        slots = max(told.least, 1)
        if told.most > slots and not told.exclusive and least == most and least and not tiled:
            hosts = -(-slots // least)
            if nodes == 1 or hosts == 1:
                return max(slots, min(told.most, least)), 1, 0, ""
            if hosts * least > told.most:
                return told.most, 0, 0, ""
            return hosts * least, hosts, least, ""
        if nodes == 1 or slots == 1:
            return slots, nodes, per_node, ""
        if per_node:
            if per_node == least == most:
                return slots, nodes, per_node, ""
            return slots, 0, 0, f"this LSF's brun cannot give {per_node} slots on each of several hosts"
        if slots <= most:
            return slots, 1, 0, ""
        if least == most and least and slots % least == 0:
            return slots, 0, least, ""
        return slots, nodes, per_node, ""

    def _not_asked(self, queue: str, names: tuple[str, ...]) -> tuple[str, ...]:
        """Hosts of the queue that ``bsub -m`` leaves out."""
        key = (queue, names)
        if key not in self._outside:
            of_queue = self.nodes.members.get(queue, ())
            wanted = frozenset(hosts.members(Queue("", hosts=names), self.nodes.nodes, self.groups))
            self._outside[key] = tuple(name for name in of_queue if name not in wanted)
        return self._outside[key]

    # ------------------------------------------------------------ jobs on hosts, ended jobs

    def _not_pending(self, row: Row, told: Facts, state: str) -> None:
        placement: Placement = row.hosts
        slots = sum(count for _, count in placement)
        started = row.started if row.started is not None else told.started
        known = self._past(row.job_id)
        if started is not None and known is not None:
            started = self._sharper(started, known.start_time, known.state == "pending")
        elif started is not None and row.ran is not None:
            self.by_moment = True
            started = _within_its_minute(started, self._now - row.ran)
        walltime = self._walltime(row, told)
        more = self._asked(row, told)[1] if state != "ended" and told.requirement else {}
        request = Request(
            processors=max(slots, told.least, 1),
            walltime=walltime,
            nodes=len(placement),
            memory_per_node=more.get("memory_per_node", 0),
            gres_per_node=more.get("gres_per_node", ()),
            exclusive=told.exclusive,
            licences=more.get("licences", ()),
        )
        if request.licences and started is not None:
            for name, amount, lasting in self.requirements.read(told.requirement).licences:
                if lasting and not placement:
                    # No snapshot tells the start of a job without a place.
                    self.until = self._now
                if lasting and self._is_over(started + lasting):
                    self.given_back.append((name, amount))
                    self.found.given_back[name] += amount
        ended = state == "ended"
        end = (row.ended if row.ended is not None else told.ended) if ended else None
        outcome, code = "", None
        if ended:
            if end is None:
                end = self.now
            elif known is not None:
                end = self._sharper(end, known.end_time, known.state != "ended")
            ran = None if started is None else end - started
            outcome, code = _outcome(row.stat, told, bool(placement), ran, walltime)
        self.found.jobs[row.job_id] = SnapshotJob(
            job=self._description(row, told, request),
            state=state,
            placement=placement,
            start_time=started if placement else None,
            end_time=end,
            outcome=outcome,
            exit_code=code,
            reason=told.exit_reason if ended else told.reason,
        )

    # ------------------------------------------------------------ pending jobs

    def _pending(
        self, row: Row, told: Facts, condition: depend.Condition, over: str | None
    ) -> None:  # fmt: skip
        managed = row.queue in self.managed
        blocked = "LSF's listings contradict each other about the job" if told.doubtful else ""
        unfit, more = self._asked(row, told)
        held_by = ""
        held = row.stat == "PSUSP"
        if held:
            blocked, held_by = "held (PSUSP); bresume releases it", "user"
        elif row.stat != "PEND":
            blocked = f"its state is {row.stat}"
        elif not managed:
            blocked = f"queue {row.queue} is not headway's"
        elif unfit:
            blocked = unfit
        elif condition.held:
            blocked = condition.waits
        elif not blocked:
            self.over = blocked = self.slots.barred(row.array) if over is None else over
        if blocked and not held_by:
            held_by = "system"
        least = max(told.least, 1)
        request = Request(
            processors=more.pop("processors", least), walltime=self._walltime(row, told),
            exclusive=told.exclusive, **more,
        )  # fmt: skip
        self.found.details[row.job_id] = Detail(
            held=held, waits=condition.waits, least=least, most=max(told.most, least), managed=managed,
            exclusive=told.exclusive, description=told.description,
        )  # fmt: skip
        self.found.jobs[row.job_id] = SnapshotJob(
            job=self._description(row, told, request, held=bool(blocked), condition=condition),
            state="pending",
            held_by=held_by,
            reason=blocked or told.reason,
        )


def _known(row: Row, told: Facts, state: str) -> depend.Known:
    if state == "pending":
        word = depend.PENDING
    elif state != "ended":
        word = depend.STARTED
    else:
        word = depend.DONE if row.stat == "DONE" else depend.EXITED
    return depend.Known(
        row.job_id, row.user, row.name, word, told.exit_code, row.stat == "PSUSP", row.array, row.index
    )


def _within_its_minute(told: float, likely: float) -> float:
    """The likely moment of something, as far as it is in the minute that LSF told; else the nearest."""
    return told if told % 60 else max(told, min(likely, told + _LAST_SECOND))


def _outcome(
    stat: str, told: Facts, started: bool, ran: float | None, limit: float
) -> tuple[str, int | None]:
    """How a job ended, and its exit status. ``ran``: seconds, None where that is not told."""
    if stat == "DONE":
        return "completed", 0
    for word, outcome in _REASONS:
        if told.exit_reason.startswith(word):
            return outcome, told.exit_code
    if not started:
        return "cancelled", told.exit_code
    if told.exit_reason.startswith("TERM_"):
        return "failed", told.exit_code
    if ran is not None and ran >= limit - _GRACE and told.exit_code != 0:
        return "timed out", told.exit_code
    return ("cancelled" if told.exit_code in _KILLED else "failed"), told.exit_code


def ended_job(known: SnapshotJob, ending: Ending, now: float) -> SnapshotJob:
    """A job as it was last seen, with the end that its history tells."""
    placement = known.placement or ending.hosts
    started = ending.started
    told = Facts(exit_code=ending.exit_code, exit_reason=ending.exit_reason)
    ran = None if started is None or ending.ended is None else ending.ended - started
    limit = known.job.request.walltime
    outcome, code = _outcome("DONE" if ending.done else "EXIT", told, started is not None, ran, limit)
    return SnapshotJob(
        job=known.job, state="ended", placement=placement if started is not None else (),
        start_time=started, end_time=now if ending.ended is None else ending.ended, outcome=outcome,
        exit_code=code, reason=ending.exit_reason, restarts=known.restarts,
    )  # fmt: skip
