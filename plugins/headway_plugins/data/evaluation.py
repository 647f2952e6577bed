"""When a plan ends: the evaluation function of Phan, Ranganathan and Sion 2005, section 4.5 and figure 6.

A plan says in which order jobs are queued, which node runs which job and which store gets a replica of which
object. Each node takes its jobs in the order of the queue. When a job's turn comes, all its objects are
fetched at once, the node being busy meanwhile; the job runs when the last object is there.

The paper's figure 6 cannot be what produced its results. Its clock stands still, so the end does not depend
on the order of the queue; it adds two absolute times; each job pays the wide-area transfer again. So:

``event``     the prose of the paper: turns in the order of time. NAOT of an object is when its replica is
              complete; it is made at the first turn that needs the object. The default.
``queue``     the same, jobs taken in the order of the queue: a little pessimistic.
``prefetch``  all replicas are begun at time 0, before any turn.
``rep-none``  no replicas: each job fetches all its objects from the remote stores.
``printed``   figure 6 as it stands.

One mode is ours, for sites that have a store each, next to their nodes:

``staged``    each object is copied to the site of each node whose jobs need it, from time 0 on; ``direct`` of
              the tables is when it is there.

Decisions:

- At equal times the node goes first whose job is earlier in the queue. This orders the turns, and changes no
  time.
- An object with an existing replica is fetched through the store of that. A further copy is made at a turn if
  that one is complete earlier.
- ``direct``: a job may fetch an object from the remote store to its node, if this is sooner; the replica is
  begun all the same. It has no effect in ``rep-none``, ``printed`` and ``staged``.
- The end is that of the last node, a node without jobs included (``printed``, and ``Tables.jobs_alone``: of
  the last job).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from headway_plugins.data.model import Tables

Mode = Literal["event", "queue", "prefetch", "rep-none", "printed", "staged"]
#: The modes of the paper's model.
MODES: tuple[Mode, ...] = ("event", "queue", "prefetch", "rep-none", "printed")
#: Modes in which stores have no part.
WITHOUT_STORES: tuple[Mode, ...] = ("rep-none", "staged")
#: Modes in which objects come to nodes in the times of ``Tables.direct``.
DIRECT: tuple[Mode, ...] = ("rep-none", "staged")


class Turn(NamedTuple):
    """One job of a plan; seconds from now."""

    job: int
    node: int
    turn: float
    begins: float
    ends: float


class Course:
    """A plan while it is carried out: when nodes are free (NACT), and objects in their stores (NAOT)."""

    def __init__(self, tables: Tables, mode: Mode, store: Sequence[int], *, direct: bool = False) -> None:
        self._tables = tables
        #: NACT, seconds from now.
        self.free = list(tables.begin)
        self._store = list(store) if mode not in WITHOUT_STORES else [0] * tables.objects
        self._naot = [float("inf")] * tables.objects
        for name, replica in tables.replicas.items():
            self._store[name], self._naot[name] = replica.store, replica.at
        if mode in ("prefetch", "printed"):
            self._naot = [
                min(known, row[at])
                for known, row, at in zip(self._naot, tables.transfer, self._store, strict=True)
            ]
        self._direct = tables.direct_rows() if direct or mode in DIRECT else []
        self._begins: Callable[[int, int, float], float] = (
            self._remote if mode == "rep-none"
            else self._staged if mode == "staged"
            else self._printed if mode == "printed"
            else self._shortest if direct
            else self._replicated
        )  # fmt: skip

    def serve(self, job: int, node: int) -> Turn:
        """The node's next job: it takes its turn when the node is free."""
        turn = self.free[node]
        begins = self._begins(job, node, turn)
        self.free[node] = ends = begins + self._tables.compute[job][node]
        return Turn(job, node, turn, begins, ends)

    def _arrivals(self, job: int, node: int, turn: float) -> Iterator[tuple[int, float]]:
        """When each object is at the node by way of its store; begins replicas that are not there yet."""
        transfer, hop, store, naot = self._tables.transfer, self._tables.hop, self._store, self._naot
        for o in self._tables.jobs[job]:
            at = store[o]
            copied = turn + transfer[o][at]
            if copied < naot[o]:
                naot[o] = copied
            yield o, max(naot[o], turn) + hop[o][at][node]

    def _replicated(self, job: int, node: int, turn: float) -> float:
        begins = turn
        transfer, hop, store, naot = self._tables.transfer, self._tables.hop, self._store, self._naot
        for o in self._tables.jobs[job]:
            at = store[o]
            there = naot[o]
            copied = turn + transfer[o][at]
            if copied < there:
                naot[o] = there = copied
            ready = (there if there > turn else turn) + hop[o][at][node]
            if ready > begins:
                begins = ready
        return begins

    def _shortest(self, job: int, node: int, turn: float) -> float:
        ready = [min(arrival, turn + self._direct[o][node]) for o, arrival in self._arrivals(job, node, turn)]
        return max(ready, default=turn)

    def _remote(self, job: int, node: int, turn: float) -> float:
        return max((turn + self._direct[o][node] for o in self._tables.jobs[job]), default=turn)

    def _staged(self, job: int, node: int, turn: float) -> float:
        return max(turn, max((self._direct[o][node] for o in self._tables.jobs[job]), default=0.0))

    def _printed(self, job: int, node: int, turn: float) -> float:
        """Lines 11 to 31 with a clock of 0."""
        hop, store, naot = self._tables.hop, self._store, self._naot
        delays = (naot[o] + hop[o][store[o]][node] for o in self._tables.jobs[job])
        return turn + max(delays, default=0.0)


def evaluate(
    tables: Tables, mode: Mode, order: Sequence[int], node: Sequence[int], store: Sequence[int] = (),
    *, direct: bool = False,
) -> tuple[float, list[Turn]]:  # fmt: skip
    """When a plan ends, seconds from now, and its turns in the order in which they were dealt with.

    ``order``: the jobs as they are queued; ``node``: by job; ``store``: by object.
    """
    course = Course(tables, mode, store, direct=direct)
    if mode == "event":
        turns = list(_in_time(course, order, node))
    else:
        turns = [course.serve(job, node[job]) for job in order]
    if mode == "printed" or tables.jobs_alone:
        return max((turn.ends for turn in turns), default=0.0), turns
    return max(course.free), turns


def _in_time(course: Course, order: Sequence[int], node: Sequence[int]) -> Iterator[Turn]:
    """Always the node that is free first."""
    waiting: list[list[tuple[int, int]]] = [[] for _ in course.free]
    for place in range(len(order) - 1, -1, -1):
        job = order[place]
        waiting[node[job]].append((place, job))
    heap = [(course.free[at], jobs[-1][0], at) for at, jobs in enumerate(waiting) if jobs]
    heapq.heapify(heap)
    while heap:
        at = heap[0][2]
        jobs = waiting[at]
        yield course.serve(jobs.pop()[1], at)
        if jobs:
            heapq.heapreplace(heap, (course.free[at], jobs[-1][0], at))
        else:
            heapq.heappop(heap)


def micro(seconds: float) -> int:
    """Whole microseconds: by these plans and nodes are compared, for sums of the same times in another order
    may differ in their last bit."""
    return int(seconds * 1e6 + 0.5)
