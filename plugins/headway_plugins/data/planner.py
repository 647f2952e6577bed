"""A plan for the front of a queue, made again and again: the snapshots of Phan and others 2005, section 4.1.

The paper plans one batch on an empty machine, and leaves jobs that come and go to later work. Here a
snapshot has the first ``window`` waiting jobs. What runs is fixed: a slot is free at a later time, a transfer
under way is a replica with the time at which it will be complete. The first population contains two plans
that are not random, so the result is never worse than either. A slot without jobs of the plan does not count
for when the plan ends. The two plans are:

- first in, first out on the least loaded slots, each file in the store that it reaches first;
- the last plan, without the jobs that have started since; jobs that have come since are behind these jobs, in
  the order of the queue on the least loaded slots.

A plan for the least makespan may put the same job last in every snapshot. With ``max_overtakes`` a job that
so many jobs from behind it in the queue have overtaken is *due*: the next slot takes it, whichever slot the
plan has for it. Turns of a plan and overtakes so far (``Waiting.overtaken``) both count. This is done to the
best plan; where it makes the plan worse than first in, first out, that plan is the answer.

The function is pure: the caller knows the time, and when a snapshot is due.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from headway.errors import UserError
from headway_plugins.data.evaluation import Course, Mode, Turn, evaluate, micro
from headway_plugins.data.genetic import Genetics, evolve
from headway_plugins.data.greedy import least_loaded
from headway_plugins.data.model import Ints, Replica, Tables
from headway_plugins.draws import Draws


@dataclass(frozen=True)
class Waiting:
    """A job of one processor that waits."""

    id: str
    #: The names of its files.
    files: tuple[str, ...]
    #: Predicted, seconds.
    runtime: float
    #: Jobs from behind it in the queue that have started before it.
    overtaken: int = 0


@dataclass(frozen=True)
class Slot:
    """One processor of a node."""

    node: str
    #: Seconds from now until it is free.
    free: float = 0.0


@dataclass(frozen=True)
class File:
    """A file that jobs read."""

    #: Bytes.
    size: float
    #: The remote store that has it.
    source: str


@dataclass(frozen=True)
class Copy:
    """A replica of a file, or a transfer that will make it."""

    store: str
    #: Seconds from now at which it is complete.
    at: float = 0.0


@dataclass(frozen=True)
class Snapshot:
    """All that a plan is made from."""

    #: As they are queued, the first one first.
    jobs: Sequence[Waiting]
    slots: Sequence[Slot]
    files: Mapping[str, File]
    #: Local stores.
    stores: Sequence[str]
    #: Replicas of each file that exist or are under way.
    copies: Mapping[str, Sequence[Copy]]
    #: Bytes a second from one place to another: remote store to local store, local store to node.
    rate: Callable[[str, str], float]


@dataclass(frozen=True)
class Planning:
    """How plans are made."""

    #: Jobs that are planned, from the front of the queue.
    window: int = 100
    #: Plans that are compared, all together.
    evaluations: int = 5_000
    #: ``prefetch``: replicas are begun before the jobs that need them start.
    mode: Mode = "prefetch"
    mutation: float = 0.8
    parents: int = 10
    children: int = 50
    #: Jobs from behind it in the queue that may have their turns before a job; None: any number.
    max_overtakes: int | None = None


@dataclass(frozen=True)
class Wish:
    """A replica that the plan needs."""

    file: str
    store: str
    #: The first job that needs it, and when its turn comes, seconds from now.
    job: str
    needed: float


@dataclass(frozen=True)
class Plan:
    """What to start where, and which files to copy."""

    #: Jobs by their turns.
    order: list[str]
    #: Job -> node, and number of the slot in the snapshot.
    node: dict[str, str]
    slot: dict[str, int]
    #: In the order in which jobs will need them.
    wishes: list[Wish]
    #: File -> store, of all files that planned jobs read.
    store: dict[str, str]
    #: Seconds from now.
    makespan: float
    #: Plans that were compared.
    evaluations: int = 0


@dataclass(frozen=True)
class _Numbered:
    """A snapshot by numbers: of the jobs of the window, their files, and all stores and slots."""

    jobs: Sequence[Waiting]
    files: list[str]
    tables: Tables
    #: The store that each file reaches first.
    nearest: list[int] = field(default_factory=list)


def plan(snapshot: Snapshot, planning: Planning, draws: Draws, last: Plan | None = None) -> Plan:
    """The best plan for the front of the queue that was found within the budget.

    Raises :class:`UserError` for a job with a file that the snapshot does not know, and where there are no
    slots, or no stores for files.
    """
    numbered = _numbered(snapshot, planning.window)
    tables, count = numbered.tables, len(numbered.jobs)
    if not count:
        return Plan([], {}, {}, [], {}, 0.0)
    first = _first_in_first_out(numbered, planning.mode)
    seeds = [first] if last is None else [first, _continued(numbered, snapshot, planning.mode, last)]
    genetics = Genetics(
        planning.parents, planning.children, mutation=planning.mutation,
        generations=max(0, planning.evaluations // planning.children - 1),
        stop_when_equal=planning.mutation == 0,
    )  # fmt: skip
    found = evolve(tables, draws, genetics, mode=planning.mode, seeds=seeds[: planning.children])
    order, node, store = found.order, found.node, found.store or []
    if planning.max_overtakes is not None:
        left = [planning.max_overtakes - job.overtaken for job in numbered.jobs]
        order, node = overtaken_at_most(tables, planning.mode, order, node, store, left)
    makespan, turns = evaluate(tables, planning.mode, order, node, store)
    if planning.max_overtakes is not None:
        strings = (first[:count].tolist(), first[count : 2 * count].tolist(), first[2 * count :].tolist())
        plain, plain_turns = evaluate(tables, planning.mode, *strings)
        if micro(plain) < micro(makespan):
            makespan, turns, store = plain, plain_turns, strings[2]
    turns.sort(key=lambda turn: turn.turn)
    return _named(snapshot, numbered, turns, store, makespan, found.evaluations)


def overtaken_at_most(
    tables: Tables, mode: Mode, order: Sequence[int], node: Sequence[int], store: Sequence[int],
    left: Sequence[int],
) -> tuple[list[int], list[int]]:  # fmt: skip
    """The order of turns and the node of each job of a plan in which no job is overtaken too often.

    ``left``: how many jobs with a higher number may have their turns before each job. A job that has no such
    turns left is taken by the next node, before any job with a higher number.
    """
    course = Course(tables, mode, store)
    lists: list[list[int]] = [[] for _ in course.free]
    for job in reversed(order):
        lists[node[job]].append(job)
    remaining, budget = list(range(len(order))), list(left)
    turns: list[Turn] = []
    while remaining:
        # Of nodes that have jobs left, so that turns come in the order of time.
        at = min((at for at, jobs in enumerate(lists) if jobs), key=course.free.__getitem__)
        job = min(lists[at][-1], next((job for job in remaining if budget[job] <= 0), len(order)))
        lists[node[job]].remove(job)
        turns.append(course.serve(job, at))
        remaining.remove(job)
        for earlier in remaining:
            if earlier > job:
                break
            budget[earlier] -= 1
    placed = {turn.job: turn.node for turn in turns}
    return [turn.job for turn in turns], [placed[job] for job in range(len(order))]


def _numbered(snapshot: Snapshot, window: int) -> _Numbered:
    jobs = snapshot.jobs[:window]
    files = list(dict.fromkeys(name for job in jobs for name in job.files))
    unknown = next((name for name in files if name not in snapshot.files), None)
    if unknown is not None:
        raise UserError(f"plan: expected the size and place of the file {unknown!r}, found none")
    if files and not snapshot.stores:
        raise UserError("plan: expected at least one local store, found none")
    number = {name: at for at, name in enumerate(files)}
    stores = {name: at for at, name in enumerate(snapshot.stores)}
    sizes = np.array([snapshot.files[name].size for name in files], dtype=float)
    rate = snapshot.rate
    inward = {
        source: np.array([rate(source, store) for store in snapshot.stores])
        for source in dict.fromkeys(snapshot.files[name].source for name in files)
    }
    near = {slot.node: [rate(store, slot.node) for store in snapshot.stores] for slot in snapshot.slots}
    last_hop = np.array([near[slot.node] for slot in snapshot.slots]).T
    transfer = [(size / inward[snapshot.files[name].source]).tolist()
                for name, size in zip(files, sizes, strict=True)]  # fmt: skip
    replicas = {}
    for name, copies in snapshot.copies.items():
        here = [copy for copy in copies if copy.store in stores]
        if name in number and here:
            best = min(here, key=lambda copy: copy.at)
            replicas[number[name]] = Replica(stores[best.store], best.at)
    tables = Tables(
        jobs=[tuple(number[name] for name in job.files) for job in jobs],
        transfer=transfer,
        hop=[(size / last_hop).tolist() for size in sizes],
        compute=[[job.runtime] * len(snapshot.slots) for job in jobs],
        free=[slot.free for slot in snapshot.slots],
        replicas=replicas,
        stores=len(stores),
        jobs_alone=True,
    )
    return _Numbered(jobs, files, tables, [row.index(min(row)) for row in transfer])


def _first_in_first_out(numbered: _Numbered, mode: Mode) -> Ints:
    node = least_loaded(numbered.tables, mode, numbered.nearest)
    return np.array([*range(len(numbered.jobs)), *node, *numbered.nearest])


def _continued(numbered: _Numbered, snapshot: Snapshot, mode: Mode, last: Plan) -> Ints:
    """The last plan for the jobs that still wait, and new jobs behind these."""
    number = {job.id: at for at, job in enumerate(numbered.jobs)}
    stores = {name: at for at, name in enumerate(snapshot.stores)}
    store = [stores.get(last.store.get(name, ""), near)
             for name, near in zip(numbered.files, numbered.nearest, strict=True)]  # fmt: skip
    kept = [
        number[name] for name in last.order
        if name in number and last.slot[name] < len(snapshot.slots)
        and snapshot.slots[last.slot[name]].node == last.node[name]
    ]  # fmt: skip
    course = Course(numbered.tables, mode, store)
    node = [0] * len(numbered.jobs)
    for job in kept:
        node[job] = last.slot[numbered.jobs[job].id]
        course.serve(job, node[job])
    known = set(kept)
    new = [job for job in range(len(numbered.jobs)) if job not in known]
    for job in new:
        free = [micro(at) for at in course.free]
        node[job] = free.index(min(free))
        course.serve(job, node[job])
    return np.array([*kept, *new, *node, *store])


def _named(
    snapshot: Snapshot, numbered: _Numbered, turns: Sequence[Turn], store: Sequence[int], makespan: float,
    evaluations: int,
) -> Plan:  # fmt: skip
    jobs, tables = numbered.jobs, numbered.tables
    chosen = list(store)
    for at, replica in tables.replicas.items():
        chosen[at] = replica.store
    wishes: dict[int, Wish] = {}
    for turn in turns:
        for at in tables.jobs[turn.job]:
            if at not in tables.replicas and at not in wishes:
                name = numbered.files[at]
                wishes[at] = Wish(name, snapshot.stores[chosen[at]], jobs[turn.job].id, turn.turn)
    return Plan(
        order=[jobs[turn.job].id for turn in turns],
        node={jobs[turn.job].id: snapshot.slots[turn.node].node for turn in turns},
        slot={jobs[turn.job].id: turn.node for turn in turns},
        wishes=list(wishes.values()),
        store={name: snapshot.stores[at] for name, at in zip(numbered.files, chosen, strict=True)},
        makespan=makespan,
        evaluations=evaluations,
    )
