"""Slurm's output -> our snapshot. Pure: no commands, no clock; tested on recorded output.

Jobs come from ``squeue --json``, nodes from ``scontrol show nodes --json`` or ``sinfo --json`` (or
as text), partitions and reservations from ``scontrol -o show``. Numbers and states are read as
the versions write them (:mod:`headway_adapters.slurm.values`); what is unknown is kept, taken in
its careful meaning and noted once.

Choices that Slurm leaves to us:

* A job that is COMPLETING still has its nodes and counts as running until they are free.
* A pending job that we cannot start faithfully (het jobs, a dependency or constraint that we
  cannot express, a partition that we do not manage) is shown as held, with the reason.
* Each pending element of a job array is a job of its own, ``123_4``.
* Where a job gets whole cores, its processors are rounded up to them.
* A user's comment (``sbatch --comment=headway:dedicated``) says what Slurm has no word for:
  ``dedicated``: the job must start at its begin time; ``malleable``: it may lose processors while it
  runs; both with a comma between.
"""

from __future__ import annotations

import calendar
import math
import re
import time as clock
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import msgspec

from headway.errors import Failure
from headway.model import (
    FOR_JOB,
    Dependency,
    JobDescription,
    NodeDescription,
    Placement,
    PoolDescription,
    Request,
    Reservation,
)
from headway_adapters.slurm import hostlist, marker, values
from headway_adapters.snapshot import SnapshotJob

MIB = 1 << 20

#: Base job state -> our state and outcome.
JOB_STATES: dict[str, tuple[str, str]] = {
    "PENDING": ("pending", ""),
    "CONFIGURING": ("starting", ""),
    "RUNNING": ("running", ""),
    "STOPPED": ("running", ""),
    "SUSPENDED": ("suspended", ""),
    "COMPLETED": ("ended", "completed"),
    "CANCELLED": ("ended", "cancelled"),
    "FAILED": ("ended", "failed"),
    "TIMEOUT": ("ended", "timed out"),
    "NODE_FAIL": ("ended", "node failure"),
    "PREEMPTED": ("ended", "preempted"),
    "BOOT_FAIL": ("ended", "failed"),
    "DEADLINE": ("ended", "timed out"),
    "OUT_OF_MEMORY": ("ended", "failed"),
    "REVOKED": ("ended", "cancelled"),
}
#: Flags that may stand beside or in the place of a base state, and what they mean for us.
_STATE_FLAGS: dict[str, str] = {
    "CONFIGURING": "starting",
    "COMPLETING": "running",
    "STAGE_OUT": "running",
    "RESIZING": "running",
    "SIGNALING": "running",
    "STOPPED": "running",
    "REQUEUED": "pending",
    "REQUEUE_HOLD": "pending",
    "REQUEUE_FED": "pending",
    "SPECIAL_EXIT": "pending",
    "RESV_DEL_HOLD": "pending",
    "LAUNCH_FAILED": "",
    "RECONFIG_FAIL": "",
    "EXPEDITING": "",
    "POWER_UP_NODE": "",
    "UPDATE_DB": "",
}
_USABLE_NODE_STATES = frozenset({"IDLE", "MIXED", "ALLOCATED"})
_NODE_STATES = _USABLE_NODE_STATES | {"DOWN", "ERROR", "FUTURE", "UNKNOWN", "INVALID"}
#: Flags under which a node takes no new jobs, with the reason that we give.
_BAD_NODE_FLAGS: dict[str, str] = {
    "DRAIN": "drained",
    "DRAINED": "drained",
    "DRAINING": "draining",
    "FAIL": "failing",
    "FAILING": "failing",
    "NOT_RESPONDING": "not responding",
    "NO_RESPOND": "not responding",
    "POWERING_DOWN": "powering down",
    "POWERED_DOWN": "powered down",
    "POWER_DOWN": "powering down",
    "POWERING_UP": "powering up",
    "POWER_UP": "powering up",
    "MAINT": "in maintenance",
    "MAINTENANCE": "in maintenance",
    "REBOOT": "rebooting",
    "REBOOT_REQUESTED": "rebooting",
    "REBOOT_ISSUED": "rebooting",
    "BLOCKED": "blocked",
    "INVALID_REG": "registered with a wrong configuration",
    "UNDRAIN": "",
}
_GOOD_NODE_FLAGS = frozenset(
    {"COMPLETING", "RESERVED", "PLANNED", "CLOUD", "DYNAMIC_FUTURE", "DYNAMIC_NORM", "RES", "NET",
     "EXTERNAL", "UNDRAIN", "RESUME"}
)  # fmt: skip
#: Where several stand together the first of these counts: what was asked for comes before what is.
_POWER: dict[str, str] = {
    "POWERING_UP": "waking",
    "POWER_UP": "waking",
    "POWERING_DOWN": "falling asleep",
    "POWER_DOWN": "falling asleep",
    "POWERED_DOWN": "asleep",
}
#: What a sleeping node is too.
_SILENT = frozenset({"NOT_RESPONDING", "NO_RESPOND"})


class JobRecord(msgspec.Struct, gc=False):
    """The fields of a job in Slurm's JSON that we read; everything may be missing, of any form."""

    job_id: Any = None
    account: Any = None
    admin_comment: Any = None
    array_job_id: Any = None
    array_task_id: Any = None
    array_max_tasks: Any = None
    array_task_string: Any = None
    comment: Any = None
    het_job_id: Any = None
    het_job_offset: Any = None
    cpus: Any = None
    cpus_per_task: Any = None
    dependency: Any = None
    eligible_time: Any = None
    end_time: Any = None
    excluded_nodes: Any = None
    exclusive: Any = None
    exit_code: Any = None
    features: Any = None
    group_name: Any = None
    hold: Any = None
    job_resources: Any = None
    job_state: Any = None
    licenses: Any = None
    max_nodes: Any = None
    memory_per_cpu: Any = None
    memory_per_node: Any = None
    name: Any = None
    node_count: Any = None
    nodes: Any = None
    partition: Any = None
    priority: Any = None
    qos: Any = None
    required_nodes: Any = None
    restart_cnt: Any = None
    resv_name: Any = None
    shared: Any = None
    start_time: Any = None
    state_description: Any = None
    state_reason: Any = None
    submit_time: Any = None
    tasks_per_node: Any = None
    time_limit: Any = None
    tres_per_job: Any = None
    tres_per_node: Any = None
    tres_per_socket: Any = None
    tres_per_task: Any = None
    tres_req_str: Any = None
    user_name: Any = None


class _Listing(msgspec.Struct, gc=False):
    jobs: list[JobRecord] | None = None
    nodes: list[dict[str, Any]] | None = None
    errors: list[Any] | None = None


@dataclass(frozen=True)
class Partition:
    """A partition, as far as we need it. Times are seconds; ``math.inf``: no limit."""

    name: str
    nodes: tuple[str, ...] = ()
    max_walltime: float = math.inf
    default_walltime: float | None = None
    open: bool = True
    #: Its jobs get whole nodes.
    exclusive: bool = False

    def pool(self) -> PoolDescription:
        limit = 0.0 if math.isinf(self.max_walltime) else self.max_walltime
        return PoolDescription(name=self.name, max_walltime=limit, open=self.open)


@dataclass(frozen=True)
class Site:
    """What the reader must know about the cluster's configuration and ours."""

    managed: tuple[str, ...]
    hold_marker: str = "hold"
    array_limit: int = 1000
    unlimited_walltime: float = 365 * 86400.0
    #: Slurm gives memory out as it gives processors out.
    memory_managed: bool = True
    #: Every job gets whole nodes (select/linear).
    whole_nodes: bool = False
    #: Jobs get whole cores.
    whole_cores: bool = True
    #: headway rules sleep: a sleeping node is in order.
    power: bool = False


@dataclass(frozen=True)
class Detail:
    """What the writer and the adapter need to know about a pending job beyond the common form."""

    #: Priority 0: Slurm does not start it.
    held: bool
    #: Held by the submit filter: Slurm calls it the user's hold, and the user could release it.
    from_filter: bool = False
    #: Its AdminComment may be written.
    comment_free: bool = True
    #: Its AdminComment says that headway holds it.
    ours: bool = False
    pin: marker.Pin | None = None
    #: The node list that stands in Slurm now.
    node_list: tuple[str, ...] = ()
    least_nodes: int = 0
    most_nodes: int = 0
    restarts: int = 0
    #: More than one partition: a start must choose one.
    several_partitions: bool = False
    #: What to name in a command that concerns this record: a job or the rest of an array.
    record: str = ""
    #: Another reason than the hold for which headway must not take it over.
    managed: bool = True


@dataclass
class Jobs:
    """All jobs of a listing."""

    jobs: dict[str, SnapshotJob] = field(default_factory=dict)
    #: Pending jobs only.
    details: dict[str, Detail] = field(default_factory=dict)


@dataclass
class Nodes:
    """All nodes of a listing."""

    nodes: dict[str, NodeDescription] = field(default_factory=dict)
    power: dict[str, str] = field(default_factory=dict)
    #: Node -> hardware threads a core.
    threads: dict[str, int] = field(default_factory=dict)


# ---------------------------------------------------------------------- documents


def decode(data: bytes, what: str) -> _Listing:
    """Slurm's JSON. Raises :class:`Failure` when it is no JSON, or carries an error in the place of data.

    Slurm's commands end with status 0 and an ``errors`` list when slurmctld does not answer.
    """
    try:
        try:
            listing = msgspec.json.decode(data, type=_Listing)
        except UnicodeDecodeError:
            # Slurm writes the bytes that a user gave as a job's name or comment.
            plain = data.decode("utf-8", errors="replace").encode()
            listing = msgspec.json.decode(plain, type=_Listing)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Failure(f"{what}: not the expected JSON ({error}); it begins {data[:60]!r}") from error
    if listing.errors:
        first = listing.errors[0]
        if isinstance(first, dict):
            parts = [str(first[k]) for k in ("description", "error", "source") if first.get(k)]
            first = ", ".join(parts) or "an error without a description"
        raise Failure(f"{what}: {first}")
    return listing


def config(text: str) -> dict[str, str]:
    """``scontrol show config`` as a mapping."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and key.strip():
            found[key.strip()] = value.strip()
    return found


_PAIR = re.compile(r"(?:^|\s)([A-Za-z_][A-Za-z0-9_/:]*)=")


def records(text: str, first_key: str) -> list[dict[str, str]]:
    """``scontrol -o show ...``: one record a line, values up to the next ``Key=``."""
    found: list[dict[str, str]] = []
    for line in text.splitlines():
        marks = list(_PAIR.finditer(line))
        record: dict[str, str] = {}
        for at, mark in enumerate(marks):
            stop = marks[at + 1].start() if at + 1 < len(marks) else len(line)
            record.setdefault(mark.group(1), line[mark.end() : stop].strip())
        if first_key in record:
            found.append(record)
    return found


def timestamp(text: str) -> float | None:
    """Seconds of ``2026-11-21T07:03:20``, written in UTC (commands run with TZ=UTC); None if unset."""
    try:
        return float(calendar.timegm(clock.strptime(text, "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return None


# ---------------------------------------------------------------------- partitions, reservations


def read_partitions(text: str) -> dict[str, Partition]:
    """``scontrol -o show partition``."""
    found: dict[str, Partition] = {}
    for record in records(text, "PartitionName"):
        name = record["PartitionName"]
        limit = values.minutes_text(record.get("MaxTime", ""))
        default = values.minutes_text(record.get("DefaultTime", ""))
        found[name] = Partition(
            name=name,
            nodes=_names(record.get("Nodes", "")),
            max_walltime=math.inf if limit is None else limit,
            default_walltime=default,
            open=record.get("State", "UP").upper() == "UP",
            exclusive=record.get("OverSubscribe", "").upper() == "EXCLUSIVE",
        )
    return found


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, (list, tuple)):
        return tuple(name for item in value for name in _names(item))
    listed = values.text(value)
    if not listed:
        return ()
    try:
        return hostlist.expand(listed)
    except ValueError as error:
        raise Failure(f"Slurm names nodes in a way we cannot read: {error}") from error


#: What a user's comment that is meant for headway begins with.
MARK = "headway:"
#: Our reservations' names in Slurm.
RESERVATION_PREFIX = "headway_"


def read_reservations(text: str, notes: set[str]) -> dict[str, Reservation]:
    """``scontrol -o show reservation``, by our id: the name, without the prefix if headway made it.

    A reservation of some cores of a node is taken as one of the whole node; one of no node
    (licences) takes nothing from us and is left out.
    """
    found: dict[str, Reservation] = {}
    for record in records(text, "ReservationName"):
        name = record["ReservationName"]
        begin, end = timestamp(record.get("StartTime", "")), timestamp(record.get("EndTime", ""))
        nodes = _names(record.get("Nodes", ""))
        if begin is None or end is None or not nodes:
            notes.add(f"reservation {name} names no nodes or no time and is left out")
            continue
        ours = name.startswith(RESERVATION_PREFIX)
        key = name[len(RESERVATION_PREFIX) :] if ours else name
        found[key] = Reservation(
            id=key,
            start=begin,
            end=end,
            pool=values.text(record.get("PartitionName", "")),
            nodes=nodes,
            users=tuple(n for n in values.names(record.get("Users")) if not n.startswith("-")),
            accounts=tuple(n for n in values.names(record.get("Accounts")) if not n.startswith("-")),
            ours=ours,
            reason="" if ours else values.text(record.get("Flags", "")),
        )
    return found


# ---------------------------------------------------------------------- nodes


@lru_cache(maxsize=4096)
def gres(text: str) -> tuple[tuple[str, int], ...]:
    """``gpu:a100:4(S:0-1),gpu:2`` or ``gres:gpu:1`` or ``gres/gpu=2``: name -> count.

    A typed resource counts twice: under its name and under ``name:type``.
    """
    found: dict[str, int] = {}
    for item in re.sub(r"\([^)]*\)", "", text).split(","):
        item = item.strip()
        if item.startswith(("gres:", "gres/")):
            item = item[5:]
        item, equals, amount = item.partition("=")
        fields = item.split(":")
        if equals:
            fields.append(amount)
        if not fields[0] or fields[0] in ("(null)", "N/A"):
            continue
        count = 1
        if len(fields) > 1 and fields[-1][:1].isdigit():
            count = _count(fields.pop())
        name = fields[0]
        found[name] = found.get(name, 0) + count
        if len(fields) > 1 and fields[1]:
            typed = f"{name}:{fields[1]}"
            found[typed] = found.get(typed, 0) + count
    return tuple(sorted(found.items()))


def _count(text: str) -> int:
    match = re.match(r"([0-9]+)([KkMmGgTt]?)", text)
    if match is None:
        return 0
    return int(match.group(1)) * 1024 ** " kmgt".index(match.group(2).lower() or " ")


def read_nodes(data: bytes, site: Site, notes: set[str]) -> Nodes:
    """``scontrol show nodes --json``, or 22.05's ``sinfo --json``."""
    listing = decode(data, "the listing of nodes")
    if listing.nodes is None:
        raise Failure("the listing of nodes holds no nodes")
    found = Nodes()
    for record in listing.nodes:
        name = record.get("name")
        if not isinstance(name, str) or not name:
            notes.add("a node without a name was left out")
            continue
        states = values.words(record.get("state")) + values.words(record.get("state_flags"))
        whole = values.integer(record.get("cpus"))
        memory = values.integer(record.get("real_memory")) - values.integer(record.get("specialized_memory"))
        _put_node(
            found, site, notes, name=name, states=states,
            processors=values.integer(record.get("effective_cpus"), whole) or whole,
            memory=memory * MIB, gres_text=values.text(record.get("gres")),
            features=values.names(record.get("active_features", record.get("features"))),
            pools=values.names(record.get("partitions")), reason=values.text(record.get("reason")),
            threads=values.integer(record.get("threads"), 1),
        )  # fmt: skip
    return found


def read_nodes_text(text: str, site: Site, notes: set[str]) -> Nodes:
    """``scontrol -o show nodes``: for a Slurm that writes no JSON of its nodes."""
    found = Nodes()
    for record in records(text, "NodeName"):
        whole = values.integer(record.get("CPUTot"))
        memory = values.integer(record.get("RealMemory")) - values.integer(record.get("MemSpecLimit"))
        _put_node(
            found, site, notes, name=record["NodeName"],
            states=values.words(record.get("State", "").replace("*", "+NOT_RESPONDING")),
            processors=values.integer(record.get("CPUEfctv"), whole), memory=memory * MIB,
            gres_text=values.text(record.get("Gres")), features=values.names(record.get("ActiveFeatures")),
            pools=values.names(record.get("Partitions")),
            reason=re.sub(r" \[[^]]*\]$", "", values.text(record.get("Reason"))),
            threads=values.integer(record.get("ThreadsPerCore"), 1),
        )  # fmt: skip
    return found


def read_watts(text: str) -> dict[str, float]:
    """Node -> watts in ``scontrol -o show nodes``, of nodes that something was measured on.

    Slurm shows 0 for a node that it has no measurement of.
    """
    shown = {r["NodeName"]: r.get("CurrentWatts", "") for r in records(text, "NodeName")}
    return {name: float(watts) for name, watts in shown.items() if watts.isdecimal() and int(watts) > 0}


def read_energies(text: str) -> dict[str, float]:
    """Job -> joules in ``sacct -n -P -o JobID,ConsumedEnergyRaw``; without jobs of which none are known.

    A job's energy is that of its steps, whose lines are called ``JOB.STEP``.
    """
    found: dict[str, float] = {}
    for line in text.splitlines():
        name, _, joules = line.partition("|")
        job_id, step, _ = name.partition(".")
        # "Unknown" is the largest numbers but one.
        if step and joules.strip().isdecimal() and int(joules) < 1 << 62:
            found[job_id] = found.get(job_id, 0.0) + float(joules)
    return found


def _put_node(
    found: Nodes, site: Site, notes: set[str], *, name: str, states: tuple[str, ...], processors: int,
    memory: int, gres_text: str, features: tuple[str, ...], pools: tuple[str, ...], reason: str, threads: int,
) -> None:  # fmt: skip
    bad: list[str] = []
    power = next((meaning for word, meaning in _POWER.items() if word in states), None)
    if power is not None:
        found.power[name] = power
    for word in states:
        if site.power and power is not None and (word in _POWER or word in _SILENT):
            continue
        if word in _USABLE_NODE_STATES or word in _GOOD_NODE_FLAGS:
            pass
        elif word in _NODE_STATES:
            bad.append(word.lower())
        elif word in _BAD_NODE_FLAGS:
            bad.append(_BAD_NODE_FLAGS[word])
        else:
            notes.add(f"unknown node state {word!r} is taken as harmless")
    if not any(word in _NODE_STATES for word in states):
        bad.append("in no state that we know")
    why = ", ".join(dict.fromkeys(word for word in bad if word))
    if why and reason:
        why = f"{why}: {reason}"
    found.threads[name] = max(threads, 1)
    found.nodes[name] = NodeDescription(
        name=name,
        processors=processors,
        memory=max(memory, 0) if site.memory_managed else 0,
        gres=gres(gres_text) if gres_text else (),
        features=features,
        pools=pools,
        available=not bad,
        reason=why,
    )


# ---------------------------------------------------------------------- jobs


def read_jobs(
    data: bytes,
    now: float,
    site: Site,
    partitions: Mapping[str, Partition],
    nodes: Nodes,
    notes: set[str],
) -> Jobs:
    """``squeue --json``; ``now`` is when it was asked for (seconds). ``notes`` takes what was odd."""
    listing = decode(data, "squeue: the listing of jobs")
    if listing.jobs is None:
        raise Failure("squeue: the listing of jobs holds no jobs")
    return _Reading(now, site, partitions, nodes, notes).read(listing.jobs)


class _Reading:
    """One reading of one listing."""

    def __init__(
        self, now: float, site: Site, partitions: Mapping[str, Partition], nodes: Nodes, notes: set[str]
    ) -> None:
        self.now = now
        self.site = site
        self.partitions = partitions
        self.nodes = nodes
        self.notes = notes
        self.managed = frozenset(site.managed)
        self.found = Jobs()
        #: Array -> its elements that are not over; elements that take a place under its limit.
        self.elements: dict[int, list[str]] = {}
        self.active: dict[int, int] = {}
        self.threads = max(nodes.threads.values(), default=1) if site.whole_cores else 1
        self._excluded: dict[str, tuple[str, ...] | None] = {}

    def read(self, jobs: Iterable[JobRecord]) -> Jobs:
        late: list[tuple[JobRecord, str]] = []
        for record in jobs:
            job_id = values.integer(record.job_id)
            if job_id <= 0:
                self.notes.add("a job without a number was left out")
                continue
            state, outcome = self._state(record)
            if state == "pending":
                array = values.integer(record.array_job_id)
                if array and values.number(record.array_task_id) is not None:
                    element = f"{array}_{values.integer(record.array_task_id)}"
                    self.elements.setdefault(array, []).append(element)
                    if values.integer(record.priority):
                        self.active[array] = self.active.get(array, 0) + 1
                late.append((record, state))
            else:
                self._not_pending(record, state, outcome)
        arrays = []
        for record, _ in late:
            if values.text(record.array_task_string) and values.number(record.array_task_id) is None:
                array = values.integer(record.array_job_id) or values.integer(record.job_id)
                tasks = self._tasks(array, values.text(record.array_task_string))
                self.elements.setdefault(array, []).extend(f"{array}_{task}" for task in tasks)
                arrays.append((record, array, tasks))
        for record, _ in late:
            if not values.text(record.array_task_string) or values.number(record.array_task_id) is not None:
                self._pending(record, None, None)
        for record, array, tasks in arrays:
            self._pending(record, array, tasks)
        return self.found

    # ------------------------------------------------------------ states

    def _state(self, record: JobRecord) -> tuple[str, str]:
        raw = record.job_state
        if isinstance(raw, str) and (known := JOB_STATES.get(raw)) is not None:
            return known
        state = outcome = ""
        flagged = ""
        for word in values.words(raw):
            if word in _STATE_FLAGS:
                flagged = flagged or _STATE_FLAGS[word]
            elif word in JOB_STATES:
                state, outcome = JOB_STATES[word]
            else:
                self.notes.add(f"unknown job state {word!r}; such a job is left as it is")
        if flagged == "running" and state == "pending":
            # Requeued, and still on its nodes: pending for Slurm, but the nodes are not free yet.
            return "running", ""
        if flagged in ("starting", "running"):
            return flagged, ""
        if flagged == "pending":
            return "pending", ""
        if not state:
            # Something we do not know: what it has, it keeps; else nobody starts it.
            return ("running", "") if values.text(record.nodes) else ("pending", "")
        return state, outcome

    def _tasks(self, array: int, text: str) -> list[int]:
        """The numbers in ``0-99:3,101%5``, up to our limit."""
        found: list[int] = []
        limit = self.site.array_limit
        for item in text.partition("%")[0].split(","):
            match = re.fullmatch(r"([0-9]+)(?:-([0-9]+)(?::([0-9]+))?)?", item.strip())
            if match is None:
                self.notes.add(f"array {array}: elements {item!r} cannot be read and wait")
                continue
            first = int(match.group(1))
            last = int(match.group(2) or first)
            step = max(int(match.group(3) or 1), 1)
            room = limit - len(found)
            run = range(first, last + 1, step)
            if len(run) > room:
                self.notes.add(f"array {array} has more than {limit} pending elements; the later ones wait")
            found.extend(run[:room])
        return found

    # ------------------------------------------------------------ common parts

    def _identity(self, record: JobRecord) -> tuple[str, str, int | None]:
        array = values.integer(record.array_job_id)
        task = values.number(record.array_task_id)
        if array and task is not None and not math.isinf(task):
            return f"{array}_{int(task)}", str(array), int(task)
        return str(values.integer(record.job_id)), "", None

    def _pool(self, record: JobRecord) -> str:
        named = values.text(record.partition)
        if "," not in named:
            return named
        choices = named.split(",")
        return next((name for name in choices if name in self.managed), choices[0])

    def _walltime(self, record: JobRecord, pool: str) -> float:
        minutes = values.number(record.time_limit)
        partition = self.partitions.get(pool)
        if minutes is not None and not math.isinf(minutes):
            return minutes * 60.0
        if minutes is None and partition is not None and partition.default_walltime is not None:
            default = partition.default_walltime
            if not math.isinf(default):
                return default
        if partition is not None and not math.isinf(partition.max_walltime):
            return partition.max_walltime
        return self.site.unlimited_walltime

    def _exclusive(self, record: JobRecord, pool: str) -> bool:
        if self.site.whole_nodes:
            return True
        partition = self.partitions.get(pool)
        if partition is not None and partition.exclusive:
            return True
        shared = values.words(record.shared)
        exclusive = values.words(record.exclusive)
        # "user" and "mcs": shared with the same user only; whole nodes is the careful reading.
        return any(word in ("NONE", "USER", "MCS", "TOPO") for word in shared) or any(
            word in ("TRUE", "USER", "MCS", "TOPO") for word in exclusive
        )

    def _description(
        self, record: JobRecord, pool: str, request: Request, *, held: bool, pending: bool, ranked: bool,
        job_id: str, array_id: str, index: int | None, dependencies: tuple[Dependency, ...] = (),
        either: bool = False, attributes: dict[str, Any] | None = None,
    ) -> JobDescription:  # fmt: skip
        begin = values.seconds(record.eligible_time) if pending else None
        priority = values.number(record.priority) if ranked else None
        return JobDescription(
            id=job_id,
            submit_time=values.seconds(record.submit_time) or self.now,
            request=request,
            pool=pool,
            name=values.text(record.name),
            user=values.text(record.user_name),
            group=values.text(record.group_name),
            account=values.text(record.account),
            qos=values.text(record.qos),
            # A held job's priority is 0: that says nothing about its order.
            priority=None if not priority or math.isinf(priority) else float(priority),
            array_id=array_id,
            array_index=index,
            dependencies=dependencies,
            any_dependency=either,
            begin_time=begin if begin is not None and begin > self.now else None,
            held=held,
            reservation=self._reservation(record, job_id),
            attributes=self._marked(record, attributes),
        )

    def _marked(self, record: JobRecord, attributes: dict[str, Any] | None) -> dict[str, Any] | None:
        """The attributes, with what the user's comment says."""
        comment = values.text(record.comment)
        if not comment.startswith(MARK):
            return attributes
        words = comment[len(MARK) :].split(",")
        marked = dict(attributes or {})
        if "dedicated" in words:
            # Slurm forgets the begin time when the job is released at it: from then on it is due.
            due = values.seconds(record.eligible_time) or values.seconds(record.submit_time)
            marked["requested_start"] = due or self.now
        if "malleable" in words:
            marked["malleable"] = True
        return marked or None

    def _reservation(self, record: JobRecord, job_id: str) -> str:
        """The reservation that its user named; "" for the one into which headway put it."""
        name = values.text(record.resv_name)
        name = name[len(RESERVATION_PREFIX) :] if name.startswith(RESERVATION_PREFIX) else name
        return "" if name == FOR_JOB + job_id else name

    # ------------------------------------------------------------ jobs on nodes, ended jobs

    def _not_pending(self, record: JobRecord, state: str, outcome: str) -> None:
        job_id, array_id, index = self._identity(record)
        pool = self._pool(record)
        placement = self._placement(record)
        cpus = sum(count for _, count in placement) or values.integer(record.cpus)
        if array_id and state != "ended":
            array = int(array_id)
            self.elements.setdefault(array, []).append(job_id)
            self.active[array] = self.active.get(array, 0) + 1
        request = Request(
            processors=max(cpus, 1),
            walltime=self._walltime(record, pool),
            nodes=len(placement),
            **self._amounts(record, max(len(placement), 1)),
            exclusive=self._exclusive(record, pool),
        )
        description = self._description(
            record, pool, request, held=False, pending=False, ranked=False, job_id=job_id,
            array_id=array_id, index=index,
        )  # fmt: skip
        reason = values.text(record.state_reason)
        ended = state == "ended"
        started = values.seconds(record.start_time) if placement else None
        self.found.jobs[job_id] = SnapshotJob(
            job=description,
            state=state,
            placement=placement,
            start_time=started,
            end_time=(values.seconds(record.end_time) or self.now) if ended else None,
            outcome=outcome,
            exit_code=values.exit_code(record.exit_code) if ended else None,
            reason=reason,
            restarts=values.integer(record.restart_cnt),
        )

    def _placement(self, record: JobRecord) -> Placement:
        """The processors that a job has on each of its nodes.

        22.05 does not fill ``cpus_used``; the map of allocated cores is right, and a core counts
        as its hardware threads where the job's total says so. Later versions state the count.
        """
        listed = values.text(record.nodes)
        if not listed:
            return ()
        names = _names(listed)
        total = values.integer(record.cpus)
        counts: dict[str, int] = {}
        cores: dict[str, int] = {}
        resources = record.job_resources if isinstance(record.job_resources, dict) else {}
        within = resources.get("nodes")
        entries = resources.get("allocated_nodes")
        if not isinstance(entries, list):
            entries = within.get("allocation") if isinstance(within, dict) else None
        for entry in entries if isinstance(entries, list) else ():
            if not isinstance(entry, dict):
                continue
            name = entry.get("nodename", entry.get("name"))
            if not isinstance(name, str):
                continue
            cpus = entry.get("cpus")
            if isinstance(cpus, dict) and values.integer(cpus.get("count")):
                counts[name] = values.integer(cpus.get("count"))
            cores[name] = _allocated_cores(entry.get("sockets"))
        if all(counts.get(name) for name in names):
            return tuple((name, counts[name]) for name in names)
        if all(cores.get(name) for name in names):
            plain = {name: cores[name] for name in names}
            if sum(plain.values()) == total:
                return tuple(plain.items())
            threaded = {name: n * self.nodes.threads.get(name, 1) for name, n in plain.items()}
            if sum(threaded.values()) == total or not total:
                return tuple(threaded.items())
            return _share(total, names, threaded)
        return _share(total, names, {name: 1 for name in names})

    # ------------------------------------------------------------ pending jobs

    def _pending(self, record: JobRecord, array: int | None, tasks: list[int] | None) -> None:
        pool = self._pool(record)
        job_id, array_id, index = self._identity(record)
        comment = values.text(record.admin_comment)
        reason = values.text(record.state_reason)
        described = values.text(record.state_description)
        restarts = values.integer(record.restart_cnt)
        managed = pool in self.managed
        pin = marker.parse(comment)
        node_list = _names(record.required_nodes)
        least, most = self._nodes_asked(record)
        asked = node_list
        if pin is not None and not pin.nodes:
            # Taken back: its node list is its user's again, only the number of nodes is still ours.
            least, most, pin = pin.least, pin.most, None
        elif pin is not None and set(pin.nodes) == set(node_list):
            asked, least, most = pin.asked, pin.least, pin.most
        else:
            # Somebody changed the node list since: the pin is history.
            pin = None
        priority = values.number(record.priority)
        held = priority == 0 or record.hold is True
        from_filter = held and reason != "JobHeldAdmin" and comment.startswith(marker.NEW)
        blocked, held_by = "", ""
        if held:
            held_by, blocked = self._holder(reason, described, comment, from_filter)
        if not blocked and not managed:
            blocked, held_by = f"partition {pool} is not managed by headway", "system"
        unfit, request, attributes = self._request(record, pool, asked, least, most)
        dependencies, either, waits = self._dependencies(values.text(record.dependency), index)
        partition = self.partitions.get(pool)
        if not blocked and partition is not None and not partition.open:
            blocked = f"partition {pool} is closed"
        if not blocked and values.integer(record.het_job_id):
            blocked = "a heterogeneous job: its parts must start together, which headway does not do"
            self.notes.add("heterogeneous jobs are not started by headway; release them to Slurm by hand")
        if not blocked and unfit:
            blocked = unfit
        if not blocked and waits:
            blocked = waits
        if not blocked and reason in ("DependencyNeverSatisfied",):
            blocked = "its dependency can never be satisfied"
        if blocked and not held_by:
            held_by = "system"
        releasing = pin is not None and not held and managed and pin.restarts == restarts
        detail = Detail(
            held=held,
            from_filter=from_filter,
            comment_free=marker.is_ours(comment),
            ours=comment.startswith(marker.PREFIX),
            pin=pin,
            node_list=node_list,
            least_nodes=least,
            most_nodes=most,
            restarts=restarts,
            several_partitions="," in values.text(record.partition),
            record=job_id if tasks is None else f"{array}",
            managed=managed and not values.integer(record.het_job_id),
        )
        pinned = (pin.placement or tuple((name, 0) for name in pin.nodes)) if pin is not None else ()
        if tasks is None:
            self._put_pending(
                record, pool, request, job_id, array_id, index, dependencies, either, attributes,
                blocked, held_by, reason, detail, pinned, releasing,
            )  # fmt: skip
            return
        assert array is not None
        limit = values.integer(record.array_max_tasks)
        room = limit - self.active.get(array, 0) if limit else len(tasks)
        detail_of_rest = detail
        if len(self.elements[array]) > len(tasks):
            # Other elements have records of their own, which the array's number would hit as well.
            detail_of_rest = replace(detail, record=f"{array}_[{_task_list(tasks)}]")
        for at, task in enumerate(tasks):
            why, by = blocked, held_by
            if not why and at >= room:
                why, by = f"its array runs at most {limit} elements at a time", "system"
            own = dependencies
            if any(d.job_id.endswith("_#") for d in dependencies):
                own = tuple(Dependency(d.kind, d.job_id.replace("_#", f"_{task}")) for d in dependencies)
            self._put_pending(
                record, pool, request, f"{array}_{task}", str(array), task, own, either, attributes,
                why, by, reason, detail_of_rest, pinned, releasing,
            )  # fmt: skip

    def _put_pending(
        self, record: JobRecord, pool: str, request: Request, job_id: str, array_id: str, index: int | None,
        dependencies: tuple[Dependency, ...], either: bool, attributes: dict[str, Any] | None, blocked: str,
        held_by: str, reason: str, detail: Detail, pinned: Placement, releasing: bool,
    ) -> None:  # fmt: skip
        description = self._description(
            record, pool, request, held=bool(blocked), pending=True,
            ranked=detail.managed and detail.pin is None, job_id=job_id, array_id=array_id, index=index,
            dependencies=dependencies, either=either, attributes=attributes,
        )  # fmt: skip
        self.found.details[job_id] = detail
        self.found.jobs[job_id] = SnapshotJob(
            job=description,
            state="pending",
            held_by=held_by,
            pinned=pinned,
            releasing=releasing,
            reason=blocked or reason,
            restarts=detail.restarts,
        )

    def _holder(self, reason: str, described: str, comment: str, from_filter: bool) -> tuple[str, str]:
        """Who holds a held job, and why headway may not start it ("" if it may)."""
        if from_filter:
            return "headway", ""
        if comment.split(":")[0].split()[:1] == [self.site.hold_marker]:
            return "administrator", f"held by an administrator ({comment})"
        if "launch failed" in described.lower():
            return "system", described
        if reason == "JobHeldUser":
            return "user", described or "held by its user"
        return "headway", ""

    def _nodes_asked(self, record: JobRecord) -> tuple[int, int]:
        """The least and most nodes that were asked for; 0: not stated."""
        most = values.integer(record.max_nodes)
        least = values.integer(record.node_count)
        return (least, most) if most else (0, 0)

    def _request(
        self, record: JobRecord, pool: str, asked: tuple[str, ...], least: int, most: int
    ) -> tuple[str, Request, dict[str, Any] | None]:
        """Why we cannot express it ("" if we can), the request, and what it has beside."""
        attributes: dict[str, Any] = {}
        exclusive = self._exclusive(record, pool)
        cpus = max(values.integer(record.cpus, 1), 1)
        nodes = least
        if most > least > 0:
            attributes["most_nodes"] = most
        per_task = max(values.integer(record.cpus_per_task, 1), 1)
        per_node = values.integer(record.tasks_per_node) * per_task
        if per_node and (cpus % per_node or (nodes and cpus != nodes * per_node)):
            per_node = 0
        if self.threads > 1 and not exclusive:
            # Whole cores: each node's share is rounded up by Slurm, so the total must be.
            if per_node:
                rounded = -(-per_node // self.threads) * self.threads
                cpus, per_node = cpus // per_node * rounded, rounded
            else:
                cpus = -(-cpus // self.threads) * self.threads
        unfit = ""
        features: tuple[str, ...] = ()
        excluded = _names(record.excluded_nodes)
        constraint = values.text(record.features)
        if constraint:
            if "|" not in constraint and not set("[](*!") & set(constraint):
                parts = constraint.replace(",", "&").split("&")
                features = tuple(part.strip() for part in parts if part.strip())
            else:
                without = self._nodes_without(constraint)
                if without is None:
                    unfit = f"its constraint {constraint!r} cannot be expressed in headway"
                else:
                    excluded = tuple(dict.fromkeys((*excluded, *without)))
        if licences := values.text(record.licenses):
            attributes["licenses"] = licences
        request = Request(
            processors=cpus,
            walltime=self._walltime(record, pool),
            nodes=nodes,
            processors_per_node=per_node,
            **self._amounts(record, nodes or values.integer(record.node_count, 1) or 1),
            features=features,
            required_nodes=asked,
            excluded_nodes=excluded,
            exclusive=exclusive,
        )
        return unfit, request, attributes or None

    def _amounts(self, record: JobRecord, nodes: int) -> dict[str, Any]:
        """Memory and generic resources of a request on ``nodes`` nodes."""
        found: dict[str, Any] = {}
        required = values.text(record.tres_req_str)
        if self.site.memory_managed:
            if per_node := values.integer(record.memory_per_node):
                found["memory_per_node"] = per_node * MIB
            elif per_cpu := values.integer(record.memory_per_cpu):
                found["memory_per_processor"] = per_cpu * MIB
            elif required and (match := _MEMORY.search(required)):
                # No amount stated: Slurm gives the node's whole memory and writes the sum.
                size = float(match.group(1)) * 1024 ** ("KMGTP".index(match.group(2) or "M") - 1)
                found["memory_per_node"] = int(size / nodes) * MIB
        if per_node_text := values.text(record.tres_per_node):
            found["gres_per_node"] = gres(per_node_text)
        elif "gres/" in required:
            # Stated for the job, a task or a socket: the total, evenly over the nodes.
            wanted = ",".join(part for part in required.split(",") if part.startswith("gres/"))
            found["gres_per_node"] = tuple((name, -(-count // nodes)) for name, count in gres(wanted))
        return found

    def _nodes_without(self, constraint: str) -> tuple[str, ...] | None:
        """The nodes that do not satisfy ``a&b|c``; None if the constraint is beyond that."""
        if constraint not in self._excluded:
            result: tuple[str, ...] | None = None
            if not set("[](*!") & set(constraint):
                terms = [set(term.replace(",", "&").split("&")) for term in constraint.split("|")]
                result = tuple(
                    name
                    for name, node in self.nodes.nodes.items()
                    if not any(term <= set(node.features) for term in terms)
                )
            self._excluded[constraint] = result
        return self._excluded[constraint]

    def _dependencies(self, text: str, index: int | None) -> tuple[tuple[Dependency, ...], bool, str]:
        """A dependency text as conditions; whether one is enough; why we cannot wait for it ourselves.

        Slurm takes what is satisfied out of the text, so what we cannot express is simply waited
        for: the job stays unstartable until the words are gone.
        """
        if not text:
            return (), False, ""
        either = "?" in text
        found: list[Dependency] = []
        for item in text.replace("?", ",").split(","):
            match = _DEPENDENCY.fullmatch(item.strip())
            if match is None:
                return (), either, f"its dependency {item!r} is left to Slurm to decide"
            kind, target, state = match.group(1), match.group(2) or "", match.group(3) or ""
            if state == "fulfilled":
                if either:
                    return (), False, ""
                continue
            if state == "failed":
                if either:
                    continue
                return (), either, f"its dependency {item} can never be satisfied"
            if kind == "singleton":
                found.append(Dependency("singleton", ""))
                continue
            ours = _DEPENDENCY_KINDS.get(kind)
            if ours is None or not target or "+" in target:
                self.notes.add(f"dependency kind {kind!r} is left to Slurm to decide")
                return (), either, f"its dependency {item} is left to Slurm to decide"
            if kind == "aftercorr":
                other = target.partition("_")[0]
                found.append(Dependency(ours, f"{other}_#" if index is None else f"{other}_{index}"))
                continue
            array, _, task = target.partition("_")
            if task not in ("", "*"):
                found.append(Dependency(ours, target))
            elif int(array) in self.elements:
                found.extend(Dependency(ours, element) for element in self.elements[int(array)])
                if either:
                    return (), either, f"its dependency {item} is left to Slurm to decide"
            else:
                found.append(Dependency(ours, array))
        return tuple(found), either, ""


_MEMORY = re.compile(r"(?:^|,)mem=([0-9.]+)([KMGTP]?)")
_DEPENDENCY = re.compile(r"([a-z]+)(?::([0-9]+(?:_(?:[0-9]+|\*))?(?:\+[0-9]+)?))?(?:\(([a-z]+)\))?")
_DEPENDENCY_KINDS = {
    "after": "started",
    "afterany": "ended",
    "afterok": "completed",
    "afternotok": "failed",
    "aftercorr": "completed",
}


def _allocated_cores(sockets: Any) -> int:
    """Cores marked as allocated, in 22.05's mapping or the later lists."""
    count = 0
    if isinstance(sockets, dict):
        sockets = list(sockets.values())
    for socket in sockets if isinstance(sockets, list) else ():
        cores = socket.get("cores") if isinstance(socket, dict) else None
        if isinstance(cores, dict):
            count += sum("ALLOCATED" in values.words(state) for state in cores.values())
        elif isinstance(cores, list):
            for core in cores:
                states = core.get("status") if isinstance(core, dict) else core
                count += "ALLOCATED" in values.words(states)
    return count


def _share(total: int, names: tuple[str, ...], weights: Mapping[str, int]) -> Placement:
    """``total`` processors over the nodes in proportion to ``weights``, one at least on each."""
    total = max(total, len(names))
    whole = sum(weights.values())
    shares = {name: max(1, total * weights[name] // whole) for name in names}
    left = total - sum(shares.values())
    for name in names:
        if left == 0:
            break
        step = 1 if left > 0 else (-1 if shares[name] > 1 else 0)
        shares[name] += step
        left -= step
    return tuple(shares.items())


def _task_list(tasks: list[int]) -> str:
    parts: list[str] = []
    at = 0
    while at < len(tasks):
        stop = at
        while stop + 1 < len(tasks) and tasks[stop + 1] == tasks[stop] + 1:
            stop += 1
        parts.append(str(tasks[at]) if stop == at else f"{tasks[at]}-{tasks[stop]}")
        at = stop + 1
    return ",".join(parts)


# ---------------------------------------------------------------------- ended jobs


@dataclass(frozen=True)
class Ending:
    """How a job ended, as accounting or ``scontrol show job`` tells it."""

    state: str
    outcome: str
    exit_code: int | None = None
    start_time: float | None = None
    end_time: float | None = None
    nodes: tuple[str, ...] = ()


def read_sacct(text: str) -> dict[str, Ending]:
    """``sacct -n -P -X -o JobID,State,ExitCode,Start,End,NodeList``; the last line of a job counts."""
    found: dict[str, Ending] = {}
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) < 6:
            continue
        ending = _ending(fields[1], fields[2], fields[3], fields[4], fields[5])
        if ending is not None:
            found[fields[0]] = ending
    return found


def read_job_text(text: str) -> dict[str, Ending]:
    """``scontrol -o show job``."""
    found: dict[str, Ending] = {}
    for record in records(text, "JobId"):
        ending = _ending(
            record.get("JobState", ""), record.get("ExitCode", ""), record.get("StartTime", ""),
            record.get("EndTime", ""), record.get("NodeList", ""),
        )  # fmt: skip
        if ending is not None:
            array, task = record.get("ArrayJobId"), record.get("ArrayTaskId", "")
            found[f"{array}_{task}" if array and task.isdecimal() else record["JobId"]] = ending
    return found


def _ending(state: str, code: str, start: str, end: str, nodes: str) -> Ending | None:
    words = values.words(state.split(" by ")[0])
    known = JOB_STATES.get(words[0]) if words else None
    if known is None:
        return None
    returned, _, signal = code.partition(":")
    exit_code = None
    if returned.isdecimal():
        exit_code = 128 + int(signal) if signal.isdecimal() and int(signal) else int(returned)
    listed = nodes if nodes not in ("None assigned", "(null)") else ""
    return Ending(
        state=known[0],
        outcome=known[1],
        exit_code=exit_code,
        start_time=timestamp(start),
        end_time=timestamp(end),
        nodes=_names(listed),
    )
