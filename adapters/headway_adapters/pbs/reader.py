"""PBS's records of jobs -> our snapshot. Pure: no commands, no clock; tested on recorded output.

Queues and vnodes are read by :mod:`headway_adapters.pbs.cluster`, what a job asks for by
:mod:`headway_adapters.pbs.shapes`.

Records come from :mod:`headway_adapters.pbs.documents`, whichever form the listing had. What is unknown
is kept, taken in its careful meaning and noted once.

Choices that PBS leaves to us:

* A job's id is what ``qsub`` prints: ``17.server``, and ``17[3].server`` for an element of an array.
  The array itself is no job.
* The holder of a job: hold type ``u`` is its user's; ``o`` and ``s`` always count as an administrator's
  (headway needs no holds of its own, for the server starts nothing by itself). A system hold of a
  job whose dependency is not over is that dependency and not a hold.
* ``qsub -v HEADWAY=dedicated`` says what PBS has no word for: the job must start at its begin time
  (``qsub -a``); ``HEADWAY=malleable``: it may lose vnodes while it runs; more in
  :mod:`headway_adapters.polling.marks`; with a plus between.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headway.model import (
    Dependency,
    JobDescription,
    Request,
)
from headway_adapters.pbs import licences, select, values
from headway_adapters.pbs.chunk_parts import Group, lay_back
from headway_adapters.pbs.cluster import Nodes, Queue, Site, mapping
from headway_adapters.pbs.documents import JobRecord, Variables
from headway_adapters.pbs.shapes import Shape, Shapes, largest_amounts, place_of, processors_of
from headway_adapters.polling.marks import asks_for_protection, is_mark, marks
from headway_adapters.polling.readings import Readings
from headway_adapters.polling.remarks import LONGEST, noted
from headway_adapters.polling.snapshot import SnapshotJob

#: Job state -> our state. B, the array itself, is no job.
JOB_STATES: dict[str, str] = {
    "Q": "pending",
    "H": "pending",
    "W": "pending",
    "T": "pending",
    "R": "running",
    "E": "running",
    "S": "suspended",
    "U": "suspended",
    "X": "ended",
    "F": "ended",
    "C": "ended",
    "M": "ended",
}
#: The state of a job that is over and still has its vnodes.
_EXITING = "E"
#: Substates of R in which the job is sent to its vnodes but does not run yet.
_SENT = 41
#: The site's resource in which a job is told something.
NOTES = "headway_notes"
_STARTING = frozenset({_SENT, 71})
#: How long a job may be sent to its vnodes before it is odd, seconds: prologues take minutes.
_SENT_FOR = 300.0
_DELETED = 91
#: Exit status of a job that was ended at its limit.
_OVER_WALLTIME = -29
_JOB_ID = re.compile(r"([0-9]+)(?:\[([0-9]*)\])?(\.[A-Za-z0-9._-]+)?")
_DEPENDENCY_KINDS = {
    "after": "started",
    "afterok": "completed",
    "afternotok": "failed",
    "afterany": "ended",
}
#: Dependencies that bind the other job, or none.
_NOT_WAITING = frozenset({"before", "beforeok", "beforenotok", "beforeany", "runone"})


@dataclass(frozen=True)
class Detail:
    """What the writer and the adapter need to know about a pending job beyond the common form."""

    #: PBS's letter for its state; an element of an array that waits as its array does has the array's.
    letter: str
    chunks: tuple[select.Chunk, ...] = ()
    #: Its vnodes are had whole.
    whole: bool = False
    #: No other vnode of its hosts may have a job.
    whole_hosts: bool = False
    #: A chunk's place in the order -> the only vnodes that it may lie on.
    homes: Mapping[int, frozenset[str]] = field(default_factory=dict)
    #: A chunk may lie on several vnodes of one host, and the job may have vnodes without a chunk.
    spread: bool = False
    #: Each chunk lies on a host of its own.
    apart: bool = False
    #: Where its request has parts: the request, and which chunks each part has.
    request: Request | None = None
    groups: tuple[Group, ...] = ()
    #: Seconds of walltime that it must be given before it starts (``max_walltime``); 0: none.
    shrinks_from: float = 0.0
    managed: bool = True
    #: Its chunks as PBS lists them; "" where there are none of that form (Torque, elements of arrays).
    select: str = ""
    #: What it was told (:data:`NOTES`).
    notes: str = ""


@dataclass
class Jobs:
    """All jobs of a listing."""

    jobs: dict[str, SnapshotJob] = field(default_factory=dict)
    #: Pending jobs only.
    details: dict[str, Detail] = field(default_factory=dict)


class _Waiting(msgspec.Struct, frozen=True, gc=False):
    """A pending job as it was read, and what it was read by."""

    record: JobRecord
    #: That of its array; None for a job that is no element.
    parent: JobRecord | None
    #: What other jobs mean for it: why it may not start, its holder, what it depends on, its array's limit.
    among: tuple[str, str, tuple[Dependency, ...], str]
    #: Why it cannot be started as it is, whatever the others do.
    unfit: str
    job: SnapshotJob
    detail: Detail


class Remembered(Readings[str, _Waiting]):
    """How the pending jobs of the last listing were read. A job is read again where its record, its array's,
    what other jobs mean for it, the site, a queue or a vnode is another."""

    def known(self, job_id: str, record: JobRecord, parent: JobRecord | None) -> _Waiting | None:
        """How this job was read when these were its records."""
        known = self.readings.get(job_id)
        if known is None or known.record is not record or known.parent is not parent:
            return None
        return known


def notes_of(record: JobRecord) -> str:
    """What a job was told."""
    return values.text(mapping(record.Resource_List).get(NOTES))


def array_of(job_id: str) -> str:
    """The array of which a job is an element; "" of another one."""
    match = _JOB_ID.fullmatch(job_id)
    return f"{match[1]}[]{match[3] or ''}" if match is not None and match[2] is not None else ""


# ---------------------------------------------------------------------- jobs


def read_jobs(
    records: Mapping[str, JobRecord],
    now: float,
    site: Site,
    queues: Mapping[str, Queue],
    nodes: Nodes,
    notes: set[str],
    remembered: Remembered | None = None,
) -> Jobs:
    """All jobs of a listing with array elements (``qstat -t -f``). ``now``: absolute seconds.
    ``remembered``: how the listing before was read, which becomes how this one is."""
    remembered = remembered if remembered is not None else Remembered()
    remembered.begin((site, queues, nodes))
    found = _Reader(records, now, site, queues, nodes, notes, remembered).read()
    remembered.end()
    return found


class _Reader:
    def __init__(
        self,
        records: Mapping[str, JobRecord],
        now: float,
        site: Site,
        queues: Mapping[str, Queue],
        nodes: Nodes,
        notes: set[str],
        remembered: Remembered,
    ) -> None:
        self.records = records
        self._now = now
        #: The time had a part in the reading of the last job.
        self.went_by_time = False
        self.remembered = remembered
        self.site = site
        self.managed = frozenset(site.managed)
        self.queues = queues
        self.nodes = nodes
        self.notes = notes
        self.found = Jobs()
        self.shapes = Shapes(nodes, notes, site.group_keys)
        self.waiting: dict[str, int] = {}
        #: Array -> how many of its elements have a place now.
        self.active: dict[str, int] = {}

    def read(self) -> Jobs:
        pending: list[tuple[str, JobRecord, str, int | None]] = []
        for job_id, record in self.records.items():
            match = _JOB_ID.fullmatch(job_id)
            if match is None:
                self.notes.add(f"{job_id[:40]!r} is not the id of a job")
                continue
            index = match[2]
            if index == "":
                continue
            array = array_of(job_id)
            element = int(index) if index is not None else None
            letter = values.text(record.job_state)
            state = JOB_STATES.get(letter)
            if state is None:
                if letter == "B":
                    continue
                state = "running" if record.exec_vnode or record.exec_host else "pending"
                self.notes.add(f"job state {letter!r} is not known; taken as {state}")
            if state == "pending":
                pending.append((job_id, record, array, element))
                continue
            if state != "ended" and array:
                self.active[array] = self.active.get(array, 0) + 1
            self._placed(job_id, record, state, array, element)
        for job_id, record, array, element in pending:
            self._pending(job_id, record, array, element)
        return self.found

    @property
    def now(self) -> float:
        """When the listing was asked for; a job that is read by it is read anew at the next look."""
        self.went_by_time = True
        return self._now

    def when(self, value: Any) -> float | None:
        if isinstance(value, (int, float)):
            return values.when(value)
        found = values.when(value)
        return None if found is None else found - self.site.zone

    # ------------------------------------------------------------ jobs with a place, and ended ones

    def _placed(self, job_id: str, record: JobRecord, state: str, array: str, element: int | None) -> None:
        shares = self._shares(job_id, record)
        whole = select.parse_place(place_of(record)).sharing in ("excl", "exclhost")
        placement: list[tuple[str, int]] = []
        for name, share in shares:
            node = self.nodes.nodes.get(name)
            count = share.processors
            if node is not None and (whole or name in self.nodes.always_whole):
                count = max(count, node.processors)
            placement.append((name, count))
        if select.parse_place(place_of(record)).sharing == "exclhost":
            placement += self._beside([name for name, _ in placement])
        processors = sum(count for _, count in placement) or processors_of(record)
        request = Request(
            processors=processors,
            walltime=self._walltime(record),
            nodes=len(placement),
            memory_per_node=max((share.memory for _, share in shares), default=0),
            gres_per_node=largest_amounts(share.amounts for _, share in shares),
            exclusive=whole,
            licences=licences.asked(mapping(record.Resource_List), self.site.licences)[0],
        )
        request, placement = self._in_parts(job_id, record, request, placement)
        if state == "running" and values.integer(record.substate) in _STARTING:
            state = "starting"
            self._note_stuck(job_id, record, placement)
        outcome, code, reason = "", None, values.text(record.comment)
        ended = None
        if state == "ended":
            outcome, code, said = self._outcome(record)
            reason = said or reason
            ended = self.when(record.obittime) or self.when(record.comp_time) or self.when(record.mtime)
        started = self.when(record.stime) or self.when(record.start_time)
        runs = values.integer(record.run_count, values.integer(record.start_count))
        description = self._description(job_id, record, request, array, element)
        marked = self._marked(record, self.when(record.Execution_Time))
        self.found.jobs[job_id] = SnapshotJob(
            job=msgspec.structs.replace(description, attributes=marked),
            state=state,
            placement=tuple(placement),
            start_time=started if placement or state == "ended" else None,
            end_time=ended,
            outcome=outcome,
            exit_code=code,
            reason=reason,
            restarts=max(runs - 1, 0),
            leaving=values.text(record.job_state) == _EXITING,
        )

    def _in_parts(
        self, job_id: str, record: JobRecord, request: Request, placement: list[tuple[str, int]]
    ) -> tuple[Request, list[tuple[str, int]]]:
        """The same for a job of several kinds of chunks, part by part as it was started."""
        text = values.text(record.exec_vnode)
        if "+" not in text or request.exclusive:
            return request, placement
        shape = self.shapes.of(record, 0)
        laid = lay_back(shape.groups, text) if shape.groups and not shape.unfit else None
        if laid is None or sum(count for _, count in laid) != sum(count for _, count in placement):
            return request, placement
        own = msgspec.structs.replace(shape.request, walltime=request.walltime, licences=request.licences)
        return own, list(laid)

    def _note_stuck(self, job_id: str, record: JobRecord, placement: list[tuple[str, int]]) -> None:
        """Note a job of which its vnodes' MoMs have not said for long that it runs. It keeps its vnodes:
        only an administrator that looks there can know whether a part of it runs."""
        sent = self.when(record.stime) or self.when(record.mtime)
        if values.integer(record.substate) == _SENT and sent is not None and self.now - sent > _SENT_FOR:
            first = placement[0][0] if placement else "unknown"
            self.notes.add(
                f"job {job_id} was sent to its vnodes more than {_SENT_FOR / 60:.0f} minutes ago and does "
                f"not run yet (substate {_SENT}): see the log of the MoM of {first}, its first host"
            )

    def _beside(self, names: list[str]) -> list[tuple[str, int]]:
        """The other vnodes of these vnodes' hosts, whole."""
        known = self.nodes
        beside = [v for name in names for v in known.vnodes.get(known.hosts.get(name, ""), [])]
        return [(v, known.nodes[v].processors) for v in dict.fromkeys(beside) if v not in names]

    def _shares(self, job_id: str, record: JobRecord) -> list[tuple[str, select.Share]]:
        """What a job has where; its first vnode, where its script runs, is the first."""
        try:
            if text := values.text(record.exec_vnode):
                return list(select.parse_exec_vnode(text))
            listed = select.parse_exec_host(text) if (text := values.text(record.exec_host)) else ()
        except ValueError as error:
            self.notes.add(f"job {job_id}: its place cannot be read: {error}")
            return []
        found = []
        for name, share in listed:
            vnodes = [name] if name in self.nodes.nodes else self.nodes.at_host(name)
            found.append((vnodes[0] if vnodes else name, share))
        return found

    def _outcome(self, record: JobRecord) -> tuple[str, int | None, str]:
        """How it ended: outcome, exit code as a shell shows it, and a word where PBS has none."""
        letter = values.text(record.job_state)
        if letter == "M":
            return "cancelled", None, "moved to another server"
        stated = record.Exit_status if record.Exit_status is not None else record.exit_status
        substate = values.integer(record.substate)
        if stated is None or values.text(stated) == "":
            if substate == _DELETED:
                return "cancelled", None, "deleted before it started"
            return "vanished", None, "PBS does not say how it ended"
        status = values.integer(stated)
        code = status if status < 256 else 128 + (status - 256) % 128
        if status == _OVER_WALLTIME:
            return "timed out", code, ""
        if status == 0:
            return "completed", 0, ""
        limit = values.duration(mapping(record.Resource_List).get("walltime"))
        used = values.duration(mapping(record.resources_used).get("walltime"))
        killed = status >= 256
        if killed and limit and used is not None and used >= limit:
            return "timed out", code, ""
        if substate == _DELETED or (killed and letter == "C"):
            return "cancelled", code, ""
        return "failed", code, ""

    # ------------------------------------------------------------ pending jobs

    def _pending(self, job_id: str, record: JobRecord, array: str, element: int | None) -> None:
        parent = self.records.get(array) if array else None
        letter = values.text(record.job_state)
        holds = set(values.text(record.Hold_Types))
        depend = values.text(record.depend)
        begin = self.when(record.Execution_Time)
        if parent is not None:
            if self.waiting.get(array, 0) >= self.site.array_limit:
                return
            self.waiting[array] = self.waiting.get(array, 0) + 1
            holds |= set(values.text(parent.Hold_Types))
            depend = depend or values.text(parent.depend)
            begin = begin or self.when(parent.Execution_Time)
            if letter == "Q" and values.text(parent.job_state) in ("H", "W"):
                letter = values.text(parent.job_state)
        blocked, held_by, dependencies = self._blocked(letter, holds, depend, job_id)
        known = self.remembered.known(job_id, record, parent)
        over = ""
        if known is not None:
            if parent is not None and not (blocked or known.unfit):
                over = self._over_limit(array, parent)
            if known.among == (blocked, held_by, dependencies, over):
                self._put(job_id, known)
                return
        self.went_by_time = False
        shape = self.shapes.of(record, int(job_id.partition(".")[0].partition("[")[0]) + (element or 0))
        wanted, uncountable = licences.asked(mapping(record.Resource_List), self.site.licences)
        unfit = self._closed(values.text(record.queue)) or shape.unfit or uncountable
        if known is None and parent is not None and not (blocked or unfit):
            over = self._over_limit(array, parent)
        among = blocked, held_by, dependencies, over
        blocked = blocked or unfit or over
        if blocked and not held_by:
            held_by = "system"
        walltime = self._walltime(record)
        request = msgspec.structs.replace(shape.request, walltime=walltime, licences=wanted)
        description = self._description(job_id, record, request, array, element)
        description = msgspec.structs.replace(
            description,
            held=bool(blocked),
            dependencies=dependencies,
            begin_time=begin if letter == "W" else None,
            attributes=self._marked(record, begin),
        )
        # An element that did not run yet shows its array's counts.
        runs = 0
        if parent is None or record.run_count != parent.run_count:
            runs = values.integer(record.run_count, values.integer(record.start_count))
        job = SnapshotJob(
            job=description,
            state="pending",
            held_by=held_by,
            reason=blocked or values.text(record.comment),
            restarts=runs,
        )
        detail = self._detail(record, letter, shape, walltime, array)
        waiting = _Waiting(record, parent, among, unfit, job, detail)
        self._put(job_id, waiting, once=shape.odd or self.went_by_time)

    def _put(self, job_id: str, waiting: _Waiting, *, once: bool = False) -> None:
        """A pending job as it was read; ``once``: it is to be read anew at the next look."""
        self.found.jobs[job_id], self.found.details[job_id] = waiting.job, waiting.detail
        if not once:
            self.remembered.keep(job_id, waiting)

    def _closed(self, pool: str) -> str:
        """Why nothing of a queue starts; "" if it does."""
        queue = self.queues.get(pool)
        if pool not in self.managed:
            return f"queue {pool} is not managed by headway"
        stopped = queue is not None and not queue.open and not self.site.beside_scheduler
        return f"queue {pool} is stopped" if stopped else ""

    def _detail(self, record: JobRecord, letter: str, shape: Shape, walltime: float, array: str) -> Detail:
        return Detail(
            letter=letter,
            chunks=shape.chunks,
            whole=shape.whole,
            whole_hosts=shape.whole_hosts,
            homes=shape.homes,
            spread=shape.spread,
            apart=shape.apart,
            request=shape.request if shape.groups else None,
            groups=shape.groups,
            shrinks_from=self._shrinks_from(record, walltime),
            managed=values.text(record.queue) in self.managed,
            select="" if array else values.text(mapping(record.Resource_List).get("select")),
            notes=notes_of(record),
        )

    def _blocked(
        self, letter: str, holds: set[str], depend: str, job_id: str
    ) -> tuple[str, str, tuple[Dependency, ...]]:
        """Why a pending job may not start ("" if it may), its holder, what it depends on."""
        if letter == "T":
            return "it is on its way to another queue or server", "system", ()
        if "u" in holds:
            return "held by its user", "user", ()
        if "o" in holds:
            return "held by an operator", "administrator", ()
        if "p" in holds:
            return "held: its user's password is missing", "system", ()
        if letter == "H" or "s" in holds:
            dependencies, waits = self._dependencies(depend, job_id)
            if dependencies and not waits:
                return "", "", dependencies
            if waits:
                return waits, "system", ()
            return "held by an administrator", "administrator", ()
        if letter not in ("Q", "W"):
            return f"its state is {letter!r}", "system", ()
        return "", "", ()

    def _dependencies(self, text: str, job_id: str) -> tuple[tuple[Dependency, ...], str]:
        """What a job waits for, and why we cannot wait for it ourselves ("" if we can).

        PBS keeps the words after the condition is met, but then takes its hold away; so this is
        asked only about held jobs, and only about conditions on jobs that are not over.
        """
        found: list[Dependency] = []
        for item in filter(None, text.split(",")):
            kind, *targets = item.split(":")
            if kind in _NOT_WAITING:
                continue
            ours = _DEPENDENCY_KINDS.get(kind)
            if ours is None:
                return (), f"its dependency {item} is left to PBS to decide"
            for target in targets:
                other = target.partition("@")[0]
                record = self.records.get(other)
                if record is None or JOB_STATES.get(values.text(record.job_state)) == "ended":
                    continue
                match = _JOB_ID.fullmatch(other)
                if match is None or match.group(2) == "":
                    return (), f"its dependency {item} is left to PBS to decide"
                found.append(Dependency(ours, other))
        return tuple(found), ""

    def _over_limit(self, array: str, parent: JobRecord) -> str:
        """Why an element must wait for others of its array."""
        limit = values.integer(parent.max_run_subjobs)
        if not limit:
            return ""
        self.active[array] = self.active.get(array, 0) + 1
        return f"its array runs at most {limit} elements at a time" if self.active[array] > limit else ""

    # ------------------------------------------------------------ requests

    def _description(
        self, job_id: str, record: JobRecord, request: Request, array: str, element: int | None
    ) -> JobDescription:
        owner = values.text(record.Job_Owner).partition("@")[0]
        submitted = self.when(record.ctime) or self.when(record.qtime)
        return JobDescription(
            id=job_id,
            submit_time=submitted if submitted is not None else self.now,
            request=request,
            pool=values.text(record.queue),
            name=values.text(record.Job_Name),
            user=values.text(record.euser) or owner,
            group=values.text(record.egroup),
            account=values.text(record.Account_Name),
            priority=float(values.integer(record.Priority)),
            array_id=array,
            array_index=element,
        )

    def _marked(self, record: JobRecord, begin: float | None) -> dict[str, Any] | None:
        """What the user's variable HEADWAY says, and what the job was told."""
        variables = record.Variable_List
        said = values.text(variables.HEADWAY) if isinstance(variables, Variables) else ""
        notes = noted(notes_of(record))[1]
        marked: dict[str, Any] = {"notes": notes} if notes else {}
        if not said:
            return marked or None
        words = re.split(r"[+,: ]", said)
        if is_mark(words[0], self.site.words) or asks_for_protection(words):
            marked.update(marks(words, self.site.words))
        elif not {"dedicated", "malleable"} & set(words):
            marked["comment"] = said[:LONGEST]
        if "dedicated" in words:
            # PBS forgets the begin time when it is reached: from then on the job is due.
            due = begin or self.when(record.etime) or self.when(record.ctime)
            marked["requested_start"] = due or self.now
        if "malleable" in words:
            marked["malleable"] = True
        return marked or None

    def _shrinks_from(self, record: JobRecord, walltime: float) -> float:
        listed = mapping(record.Resource_List)
        asks = listed.get("min_walltime") is not None or listed.get("max_walltime") is not None
        return walltime if asks and listed.get("walltime") is None else 0.0

    def _walltime(self, record: JobRecord) -> float:
        # A job that PBS may shrink has a walltime only once it was started.
        listed = mapping(record.Resource_List)
        stated = values.duration(listed.get("walltime")) or values.duration(listed.get("max_walltime"))
        if stated:
            return stated
        queue = self.queues.get(values.text(record.queue))
        if queue is not None and (queue.default_walltime or queue.max_walltime):
            return queue.default_walltime or queue.max_walltime
        return self.site.unlimited_walltime
