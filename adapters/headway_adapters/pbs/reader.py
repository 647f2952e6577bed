"""PBS's records -> our snapshot. Pure: no commands, no clock; tested on recorded output.

Records come from :mod:`headway_adapters.pbs.documents`, whichever form the listing had. What is unknown
is kept, taken in its careful meaning and noted once.

Choices that PBS leaves to us:

* A vnode is a node of ours. One without processors (the natural vnode of a host that has others) is
  left out; so is one of which PBS does not know the size yet.
* A pool is an execution queue with the vnodes that its jobs may run on: those with the attribute
  ``queue`` of its name if there are any, else those without the attribute that have what the queue's
  ``default_chunk`` asks for (``Qlist``). Queues that share vnodes with a managed one are closed pools.
* A job's id is what ``qsub`` prints: ``17.server``, and ``17[3].server`` for an element of an array.
  The array itself is no job.
* Who holds a job: hold type ``u`` is its user's; ``o`` and ``s`` are an administrator's, whoever set
  them (headway needs no holds of its own, for the server starts nothing by itself). A system hold of a
  job whose dependency is not over is that dependency and not a hold.
* A job whose ``place`` is ``excl`` or ``exclhost`` has its vnodes whole, however few processors its
  chunks ask for.
* With ``place=scatter`` each chunk gets a vnode of its own, with ``pack`` all get one together (PBS says
  *host* in both). ``free`` chunks of one kind share vnodes; chunks of several kinds get a vnode each, and
  the job is planned as if all were as large as its largest.
* A resource that no vnode offers is not looked at (PBS's scheduler has a list of those that it looks at).
* ``qsub -v HEADWAY=dedicated`` says what PBS has no word for: the job must start at its begin time
  (``qsub -a``); ``HEADWAY=malleable``: it may lose vnodes while it runs; both with a plus between.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headway.model import (
    Dependency,
    JobDescription,
    NodeDescription,
    PoolDescription,
    Request,
    Reservation,
)
from headway_adapters.pbs import select, values
from headway_adapters.pbs.documents import JobRecord, NodeRecord, Variables
from headway_adapters.snapshot import SnapshotJob

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
#: Substates of R in which the job is sent to its vnodes but does not run yet.
_STARTING = frozenset({41, 71})
_DELETED = 91
#: Exit status of a job that was ended at its limit.
_OVER_WALLTIME = -29
#: States of a vnode that leave it usable; which jobs are on it is counted from the jobs.
_USABLE = frozenset({"free", "job-busy", "job-exclusive", "job-sharing", "excl", "share"})
#: States of a vnode that takes no new jobs, with the reason that we give.
_UNUSABLE: dict[str, str] = {
    "offline": "offline",
    "down": "down",
    "state-unknown": "not responding",
    "unknown": "not responding",
    "unresolvable": "not responding",
    "stale": "no longer reported by its host",
    "busy": "overloaded",
    "reserve": "reserved",
    "resv-exclusive": "reserved",
    "maintenance": "in maintenance: a job was suspended by an administrator",
    "initializing": "starting up",
    "provisioning": "being provisioned",
    "wait-provisioning": "being provisioned",
    "sleep": "asleep",
}
#: Our reservations' names in PBS.
RESERVATION_PREFIX = "headway_"
#: Resources of a vnode that have fields of their own, or are its names.
_NOT_COUNTED = frozenset({"ncpus", "mem", "host", "vnode"})
_JOB_ID = re.compile(r"([0-9]+)(?:\[([0-9]*)\])?(\.[A-Za-z0-9._-]+)?")
#: The queues that PBS makes for reservations; they come and go.
_OF_RESERVATION = re.compile(r"[RSM][0-9]+")
_DEPENDENCY_KINDS = {
    "after": "started",
    "afterok": "completed",
    "afternotok": "failed",
    "afterany": "ended",
}
#: Dependencies that bind the other job, or none.
_NOT_WAITING = frozenset({"before", "beforeok", "beforenotok", "beforeany", "runone"})


@dataclass(frozen=True)
class Queue:
    """An execution queue, as far as we need it."""

    name: str
    #: Seconds; 0: no limit.
    max_walltime: float = 0.0
    default_walltime: float | None = None
    #: PBS's own scheduler starts jobs of it.
    open: bool = True
    #: Features that its default chunk asks for.
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Site:
    """What the reader must know about the cluster's configuration and ours."""

    managed: tuple[str, ...]
    array_limit: int = 1000
    unlimited_walltime: float = 365 * 86400.0
    #: Seconds by which times in listings are ahead of UTC.
    zone: float = 0.0
    #: PBS's own scheduler runs: the managed queues are stopped to keep them from it, and not closed.
    beside_scheduler: bool = False


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
    managed: bool = True


@dataclass
class Jobs:
    """All jobs of a listing."""

    jobs: dict[str, SnapshotJob] = field(default_factory=dict)
    #: Pending jobs only.
    details: dict[str, Detail] = field(default_factory=dict)


@dataclass
class Nodes:
    """All vnodes of a listing that have processors."""

    nodes: dict[str, NodeDescription] = field(default_factory=dict)
    power: dict[str, str] = field(default_factory=dict)
    #: Vnode -> its host.
    hosts: dict[str, str] = field(default_factory=dict)
    #: Host -> its vnodes.
    vnodes: dict[str, list[str]] = field(default_factory=dict)
    #: Vnodes that a job which does not ask to share gets whole, and those that every job gets whole.
    default_whole: set[str] = field(default_factory=set)
    always_whole: set[str] = field(default_factory=set)
    #: Resources that some vnode offers an amount of.
    counted: set[str] = field(default_factory=set)

    def at_host(self, host: str) -> list[str]:
        """A host's vnodes; PBS takes its short name as well."""
        found = self.vnodes.get(host)
        if found is None:
            found = next((v for name, v in self.vnodes.items() if name.partition(".")[0] == host), [])
        return found


# ---------------------------------------------------------------------- queues


def read_queues(objects: Mapping[str, Mapping[str, Any]]) -> dict[str, Queue]:
    """Execution queues of ``qstat -Q -f``."""
    found: dict[str, Queue] = {}
    for name, record in objects.items():
        if not values.text(record.get("queue_type")).startswith(("E", "e")) or _OF_RESERVATION.fullmatch(
            name
        ):
            continue
        longest = _mapping(record.get("resources_max")).get("walltime")
        default = _mapping(record.get("resources_default")).get("walltime")
        chunk = _mapping(record.get("default_chunk"))
        features = tuple(
            feature(key, values.text(value))
            for key, value in sorted(chunk.items())
            if key not in _NOT_COUNTED and values.size(value) is None
        )
        found[name] = Queue(
            name=name,
            max_walltime=values.duration(longest) or 0.0,
            default_walltime=values.duration(default) if default is not None else None,
            open=values.truth(record.get("started"), True),
            features=features,
        )
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def feature(name: str, value: str) -> str:
    """What a vnode has, as a feature of a node."""
    return f"{name}={value}" if value else name


# ---------------------------------------------------------------------- vnodes


def read_nodes(records: Mapping[str, NodeRecord], queues: Mapping[str, Queue], notes: set[str]) -> Nodes:
    """``pbsnodes``: all vnodes with processors, each with the queues that it serves."""
    found = Nodes()
    bound = {values.text(record.queue) for record in records.values()} - {""}
    general = [queue for name, queue in queues.items() if name not in bound]
    for name, record in records.items():
        available = _mapping(record.resources_available)
        status = _status(record.status)
        processors = values.integer(available.get("ncpus"), values.integer(record.np))
        if processors < 1:
            continue
        memory = values.size(available.get("mem", status.get("physmem", 0))) or 0
        gres, features = _offers(record, available, found)
        features += [one for one in values.text(record.properties).split(",") if one]
        own = values.text(record.queue)
        serves = [q.name for q in general if set(q.features) <= set(features)]
        if own:
            serves = [own] if own in queues else []
        usable, reason = _usable(name, record, notes)
        found.nodes[name] = NodeDescription(
            name=name,
            processors=processors,
            memory=memory,
            gres=tuple(gres),
            features=tuple(features),
            pools=tuple(serves),
            available=usable,
            reason=reason,
        )
        host = values.text(available.get("host")) or values.text(record.Mom) or name
        found.hosts[name] = host
        found.vnodes.setdefault(host, []).append(name)
        states = values.text(record.state)
        if "sleep" in states:
            found.power[name] = "asleep"
        sharing = values.text(record.sharing)
        if sharing.startswith("force_excl"):
            found.always_whole.add(name)
        elif sharing.startswith("default_excl"):
            found.default_whole.add(name)
    return found


def _status(value: Any) -> Mapping[str, str]:
    """Torque's status: ``rectime=1,physmem=4kb,...``."""
    return dict(item.partition("=")[::2] for item in values.text(value).split(",") if "=" in item)


def _offers(
    record: NodeRecord, available: Mapping[str, Any], found: Nodes
) -> tuple[list[tuple[str, int]], list[str]]:
    """What a vnode gives out by amount, and what it has."""
    gres: list[tuple[str, int]] = []
    features: list[str] = []
    for resource, value in sorted(available.items()):
        if resource in _NOT_COUNTED:
            continue
        amount = values.size(value)
        if amount is None:
            features += [feature(resource, one) for one in values.text(value).split(",") if one]
        elif amount:
            gres.append((resource, amount))
    if values.integer(record.gpus):
        gres.append(("gpus", values.integer(record.gpus)))
    found.counted.update(resource for resource, _ in gres)
    return gres, features


def _usable(name: str, record: NodeRecord, notes: set[str]) -> tuple[bool, str]:
    reasons = []
    for word in values.text(record.state).replace("<various>", "").split(","):
        word = word.strip()
        if not word or word in _USABLE:
            continue
        if word not in _UNUSABLE:
            notes.add(f"vnode state {word!r} is not known; such vnodes are not used")
        reasons.append(_UNUSABLE.get(word, word))
    if not values.text(record.state).strip():
        return False, "PBS does not say its state"
    assigned = _mapping(record.resources_assigned)
    whole = "job-exclusive" in values.text(record.state) and record.resources_available is not None
    if whole and not values.integer(assigned.get("ncpus")):
        reasons.append("its host is given whole to a job on another vnode")
    comment = values.text(record.comment) or values.text(record.note)
    if reasons and comment:
        reasons.append(comment)
    return not reasons, "; ".join(reasons)


# ---------------------------------------------------------------------- jobs


def read_jobs(
    records: Mapping[str, JobRecord],
    now: float,
    site: Site,
    queues: Mapping[str, Queue],
    nodes: Nodes,
    notes: set[str],
) -> Jobs:
    """All jobs of a listing with array elements (``qstat -t -f``). ``now``: absolute seconds."""
    return _Reader(records, now, site, queues, nodes, notes).read()


class _Shape(msgspec.Struct, frozen=True):
    """A request without what differs between jobs of the same select and place."""

    request: Request
    chunks: tuple[select.Chunk, ...]
    whole: bool
    whole_hosts: bool
    homes: Mapping[int, frozenset[str]]
    #: Why it cannot be expressed; "" if it can.
    unfit: str = ""


class _Reader:
    def __init__(
        self,
        records: Mapping[str, JobRecord],
        now: float,
        site: Site,
        queues: Mapping[str, Queue],
        nodes: Nodes,
        notes: set[str],
    ) -> None:
        self.records = records
        self.now = now
        self.site = site
        self.managed = frozenset(site.managed)
        self.queues = queues
        self.nodes = nodes
        self.notes = notes
        self.found = Jobs()
        self.shapes: dict[tuple[str, str, str, int], _Shape] = {}
        total = sum(node.processors for node in nodes.nodes.values())
        #: Chunks that all vnodes together could hold.
        self.most_chunks = min(total, select.MOST_CHUNKS) or select.MOST_CHUNKS
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
            number, index, server = match.groups()
            if index == "":
                continue
            array = f"{number}[]{server or ''}" if index is not None else ""
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

    def when(self, value: Any) -> float | None:
        if isinstance(value, (int, float)):
            return values.when(value)
        found = values.when(value)
        return None if found is None else found - self.site.zone

    # ------------------------------------------------------------ jobs with a place, and ended ones

    def _placed(self, job_id: str, record: JobRecord, state: str, array: str, element: int | None) -> None:
        shares = self._shares(job_id, record)
        whole = select.parse_place(self._place(record)).sharing in ("excl", "exclhost")
        placement: list[tuple[str, int]] = []
        for name, share in shares:
            node = self.nodes.nodes.get(name)
            count = share.processors
            if node is not None and (whole or name in self.nodes.always_whole):
                count = max(count, node.processors)
            placement.append((name, count))
        processors = sum(count for _, count in placement) or self._processors(record)
        request = Request(
            processors=processors,
            walltime=self._walltime(record),
            nodes=len(placement),
            memory_per_node=max((share.memory for _, share in shares), default=0),
            gres_per_node=_largest(share.amounts for _, share in shares),
            exclusive=whole,
        )
        if state == "running" and values.integer(record.substate) in _STARTING:
            state = "starting"
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
        )

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
        limit = values.duration(_mapping(record.Resource_List).get("walltime"))
        used = values.duration(_mapping(record.resources_used).get("walltime"))
        killed = status >= 256
        if killed and limit and used is not None and used >= limit:
            return "timed out", code, ""
        if substate == _DELETED or (killed and letter == "C"):
            return "cancelled", code, ""
        return "failed", code, ""

    # ------------------------------------------------------------ pending jobs

    def _pending(self, job_id: str, record: JobRecord, array: str, element: int | None) -> None:
        parent = self.records.get(array) if array else None
        pool = values.text(record.queue)
        managed = pool in self.managed
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
        queue = self.queues.get(pool)
        if not blocked and not managed:
            blocked = f"queue {pool} is not managed by headway"
        stopped = queue is not None and not queue.open and not self.site.beside_scheduler
        if not blocked and stopped:
            blocked = f"queue {pool} is stopped"
        shape = self._shape(record)
        if not blocked and shape.unfit:
            blocked = shape.unfit
        if not blocked and parent is not None:
            blocked = self._over_limit(array, parent)
        if blocked and not held_by:
            held_by = "system"
        request = msgspec.structs.replace(shape.request, walltime=self._walltime(record))
        description = self._description(job_id, record, request, array, element)
        description = msgspec.structs.replace(
            description,
            held=bool(blocked),
            dependencies=dependencies,
            begin_time=begin if letter == "W" else None,
            attributes=self._marked(record, begin),
        )
        self.found.details[job_id] = Detail(
            letter=letter,
            chunks=shape.chunks,
            whole=shape.whole,
            whole_hosts=shape.whole_hosts,
            homes=shape.homes,
            managed=managed,
        )
        # An element that did not run yet shows its array's counts.
        runs = 0
        if parent is None or record.run_count != parent.run_count:
            runs = values.integer(record.run_count, values.integer(record.start_count))
        self.found.jobs[job_id] = SnapshotJob(
            job=description,
            state="pending",
            held_by=held_by,
            reason=blocked or values.text(record.comment),
            restarts=runs,
        )

    def _blocked(
        self, letter: str, holds: set[str], depend: str, job_id: str
    ) -> tuple[str, str, tuple[Dependency, ...]]:
        """Why a pending job may not start ("" if it may), who holds it, what it depends on."""
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
        """What the user's variable HEADWAY says."""
        variables = record.Variable_List
        said = values.text(variables.HEADWAY) if isinstance(variables, Variables) else ""
        if not said:
            return None
        words = re.split(r"[+,: ]", said)
        marked: dict[str, Any] = {}
        if "dedicated" in words:
            # PBS forgets the begin time when it is reached: from then on the job is due.
            due = begin or self.when(record.etime) or self.when(record.ctime)
            marked["requested_start"] = due or self.now
        if "malleable" in words:
            marked["malleable"] = True
        return marked or None

    def _walltime(self, record: JobRecord) -> float:
        stated = values.duration(_mapping(record.Resource_List).get("walltime"))
        if stated:
            return stated
        queue = self.queues.get(values.text(record.queue))
        if queue is not None and (queue.default_walltime or queue.max_walltime):
            return queue.default_walltime or queue.max_walltime
        return self.site.unlimited_walltime

    def _place(self, record: JobRecord) -> str:
        return values.text(_mapping(record.Resource_List).get("place"))

    def _processors(self, record: JobRecord) -> int:
        return max(values.integer(_mapping(record.Resource_List).get("ncpus"), 1), 1)

    def _shape(self, record: JobRecord) -> _Shape:
        listed = _mapping(record.Resource_List)
        place = self._place(record)
        pool = values.text(record.queue)
        wanted = values.text(record.schedselect) or values.text(listed.get("select"))
        total = 0
        parse = select.parse_select
        if not wanted:
            # Torque, or a job of an old kind.
            total = values.size(listed.get("mem")) or 0
            wanted = values.text(listed.get("nodes")) or values.text(listed.get("neednodes"))
            parse = select.parse_nodes
            place = place or "scatter"
            if not wanted or values.integer(listed.get("procs")):
                place = "free"
                wanted = values.text(listed.get("procs")) or f"1:ppn={self._processors(record)}"
        key = (wanted, place, pool, total)
        shape = self.shapes.get(key)
        if shape is None:
            try:
                chunks = parse(wanted, self.most_chunks)
            except ValueError as error:
                unfit = f"what it asks for cannot be read: {error}"
                request = Request(processors=self._processors(record), walltime=1.0)
                shape = _Shape(request, (), False, False, {}, unfit)
            else:
                shape = self._shaped(chunks, select.parse_place(place), pool, total)
            self.shapes[key] = shape
        return shape

    def _shaped(
        self, chunks: tuple[select.Chunk, ...], place: select.Place, pool: str, total_memory: int
    ) -> _Shape:
        """``total_memory``: what Torque's job asks for in all, bytes."""
        whole = place.sharing in ("excl", "exclhost")
        members = [name for name, node in self.nodes.nodes.items() if pool in node.pools]
        forced = self.nodes.always_whole | (set() if place.sharing == "shared" else self.nodes.default_whole)
        if members and forced.issuperset(members):
            whole = True
        if place.group:
            self.notes.add("place=group=... is not kept: headway does not look at the groups of vnodes")
        homes, wants, unfit = self._homes(chunks)
        required: tuple[str, ...] = ()
        without: set[str] = set()
        together = len(set(homes.values())) == 1 and len(homes) == len(chunks)
        if together and len(homes[0]) > 1:
            without = self.nodes.nodes.keys() - homes[0]
        elif homes:
            required = tuple(sorted({next(iter(home)) for home in homes.values() if len(home) == 1}))
            if not together and len(required) < len(homes):
                unfit = "its chunks name hosts in a way that headway cannot express"
        kinds = {(chunk.ncpus, chunk.memory, chunk.amounts) for chunk in chunks}
        count, largest = len(chunks), max(chunk.ncpus for chunk in chunks)
        if any(chunk.ncpus < 1 for chunk in chunks):
            unfit = unfit or "a chunk without processors cannot be placed by headway"
        memory = max(chunk.memory for chunk in chunks)
        amounts = self._counted(_largest(chunk.amounts for chunk in chunks))
        shape: dict[str, Any]
        if place.arrangement == "pack" or count == 1 or (together and required):
            summed: dict[str, int] = {}
            for chunk in chunks:
                for name, amount in chunk.amounts:
                    summed[name] = min(summed.get(name, 0) + amount, values.LARGEST)
            processors = sum(chunk.ncpus for chunk in chunks)
            shape = dict(
                processors=max(processors, 1), nodes=1, processors_per_node=max(processors, 1),
                memory_per_node=min(sum(chunk.memory for chunk in chunks), values.LARGEST),
                gres_per_node=self._counted(tuple(sorted(summed.items()))),
            )  # fmt: skip
        elif place.arrangement == "free" and len(kinds) == 1 and not amounts and largest > 0 and not required:
            shape = dict(
                processors=count * largest,
                processors_per_chunk=largest if largest > 1 else 0,
                memory_per_processor=-(-memory // largest),
            )
        else:
            shape = dict(
                processors=count * max(largest, 1), nodes=count, processors_per_node=max(largest, 1),
                memory_per_node=memory, gres_per_node=amounts,
            )  # fmt: skip
        if total_memory:
            shape["memory_per_processor"] = -(-total_memory // shape["processors"])
        for key, value in wants:
            if value == "False":
                lacking = feature(key, "True")
                without |= {name for name, node in self.nodes.nodes.items() if lacking in node.features}
        request = Request(
            walltime=1.0,
            features=tuple(feature(key, value) for key, value in wants if value != "False"),
            required_nodes=required,
            excluded_nodes=tuple(sorted(without)),
            exclusive=whole,
            **shape,
        )
        return _Shape(request, chunks, whole, place.sharing == "exclhost", homes, unfit)

    def _homes(
        self, chunks: tuple[select.Chunk, ...]
    ) -> tuple[dict[int, frozenset[str]], tuple[tuple[str, str], ...], str]:
        """Where the chunks may lie that name their host or vnode, what all chunks want beside, and why
        that cannot be expressed ("" if it can)."""
        homes: dict[int, frozenset[str]] = {}
        rest: dict[tuple[tuple[str, str], ...], None] = {}
        for at, chunk in enumerate(chunks):
            wants = dict(chunk.wants)
            host, vnode = wants.pop("host", ""), wants.pop("vnode", "")
            rest[tuple(wants.items())] = None
            if vnode:
                homes[at] = frozenset([vnode])
            elif host:
                homes[at] = frozenset(self.nodes.at_host(host) or [host])
        unfit = "its chunks want different things, which headway cannot express" if len(rest) > 1 else ""
        return homes, next(iter(rest)), unfit

    def _counted(self, amounts: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
        for name, _ in amounts:
            if name not in self.nodes.counted:
                self.notes.add(f"no vnode offers the resource {name!r}: it is not looked at")
        return tuple((name, amount) for name, amount in amounts if name in self.nodes.counted)


def _largest(many: Iterable[tuple[tuple[str, int], ...]]) -> tuple[tuple[str, int], ...]:
    """The largest amount of each resource."""
    found: dict[str, int] = {}
    for amounts in many:
        for name, amount in amounts:
            found[name] = max(found.get(name, 0), amount)
    return tuple(sorted(found.items()))


# ---------------------------------------------------------------------- pools, reservations


def pools(queues: Mapping[str, Queue], nodes: Nodes, site: Site) -> dict[str, PoolDescription]:
    """The managed queues and, closed, those that share vnodes with them."""
    managed = site.managed
    shared = {pool for node in nodes.nodes.values() if set(node.pools) & set(managed) for pool in node.pools}
    return {
        name: PoolDescription(
            name=name, max_walltime=queue.max_walltime,
            open=name in managed and (queue.open or site.beside_scheduler),
        )
        for name, queue in queues.items()
        if name in shared or name in managed
    }  # fmt: skip


def read_reservations(text: str, site: Site, notes: set[str]) -> dict[str, tuple[str, Reservation]]:
    """``pbs_rstat -F``: our id -> PBS's id and the reservation. Confirmed ones only: others have no vnodes.

    A reservation of some processors of a vnode is taken as one of the whole vnode.
    """
    found: dict[str, tuple[str, Reservation]] = {}
    for block in re.split(r"\n\s*\n", text.replace("\n\t", "")):
        record: dict[str, str] = {}
        for line in block.splitlines():
            key, colon, value = line.partition(": ") if line.startswith("Resv ID") else line.partition(" = ")
            if colon:
                record.setdefault(key.strip(), value.strip())
        name = record.get("Resv ID", "")
        begin, end = values.when(record.get("reserve_start")), values.when(record.get("reserve_end"))
        if not name or begin is None or end is None or not record.get("resv_nodes"):
            continue
        if record.get("reserve_state", "") not in ("RESV_CONFIRMED", "RESV_RUNNING"):
            notes.add(f"reservation {name} is {record.get('reserve_state', '')} and is not looked at")
            continue
        try:
            vnodes = tuple(vnode for vnode, _ in select.parse_exec_vnode(record["resv_nodes"]))
        except ValueError as error:
            notes.add(f"reservation {name} is left out: {error}")
            continue
        called = record.get("Reserve_Name", "")
        ours = called.startswith(RESERVATION_PREFIX)
        key = called[len(RESERVATION_PREFIX) :] if ours else name
        users = tuple(one.partition("@")[0] for one in record.get("Authorized_Users", "").split(",") if one)
        found[key] = (
            name,
            Reservation(
                id=key,
                start=begin - site.zone,
                end=end - site.zone,
                nodes=vnodes,
                users=tuple(one for one in users if not one.startswith("-")),
                ours=ours,
            ),
        )
    return found
