"""When many plans end, at once: the evaluation of :mod:`.evaluation` over arrays.

A population is an array with a row for each plan: the jobs as they are queued, then the node of each job,
then the store of each object (no stores without replicas). Each step serves one job of every plan. All sums
are those of the plain evaluation in the same order, so both give the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headway_plugins.data.evaluation import DIRECT, WITHOUT_STORES, Mode, evaluate
from headway_plugins.data.model import Floats, Ints, Tables

#: From so many plans on arrays are faster than one plan after the other (`make bench ARGS="-s -k data"`).
MANY = 10
#: Numbers of the largest table that is made at once.
_BLOCK = 4_000_000


class Fitness:
    """The ends of plans for one batch in one mode."""

    def __init__(self, tables: Tables, mode: Mode, *, direct: bool = False) -> None:
        self._tables, self._mode, self._direct = tables, mode, direct
        self.jobs = len(tables.jobs)
        #: Whether plans name stores.
        self.replicas = mode not in WITHOUT_STORES

    @cached_property
    def _arrays(self) -> _Arrays:
        return _Arrays.of(self._tables, self._mode, self._direct)

    def strings(self, plan: Ints) -> tuple[list[int], list[int], list[int]]:
        """A plan's order, nodes and stores."""
        jobs = self.jobs
        return plan[:jobs].tolist(), plan[jobs : 2 * jobs].tolist(), plan[2 * jobs :].tolist()

    def of(self, population: Ints) -> Floats:
        """The makespan of each plan, seconds from now, in the way that is faster for so many plans."""
        return self.one_by_one(population) if len(population) < MANY else self.at_once(population)

    def one_by_one(self, population: Ints) -> Floats:
        """The same by the plain evaluation."""
        return np.array(
            [
                evaluate(self._tables, self._mode, *self.strings(plan), direct=self._direct)[0]
                for plan in population
            ],
            dtype=float,
        )

    def at_once(self, population: Ints) -> Floats:
        """The same over arrays."""
        size = max(1, _BLOCK // max(1, self.jobs * self._arrays.width))
        found = [
            _Block(self._arrays, population[at : at + size]).makespans()
            for at in range(0, len(population), size)
        ]
        return np.concatenate(found) if found else np.zeros(0)


@dataclass(frozen=True)
class _Arrays:
    """A batch as arrays. A job with few objects has the object D in their place: it is everywhere at once."""

    mode: Mode
    #: Nodes without jobs do not count for the end.
    jobs_alone: bool
    begin: Floats
    #: (J, K): objects of each job.
    needs: Ints
    compute: Floats
    #: (D + 1, S), (D + 1, S, C), (D + 1, C).
    transfer: Floats
    hop: Floats
    direct: Floats | None
    #: (D + 1): when the replica that exists is complete, and its store, or -1.
    complete: Floats
    fixed: Ints

    @classmethod
    def of(cls, tables: Tables, mode: Mode, direct: bool) -> _Arrays:
        count, nodes, stores = tables.objects, tables.nodes, max(1, tables.local_stores)
        if mode in WITHOUT_STORES:
            stores = 1
        widest = max((len(objects) for objects in tables.jobs), default=0)
        needs = np.full((len(tables.jobs), max(1, widest)), count, dtype=np.int64)
        for row, objects in zip(needs, tables.jobs, strict=True):
            row[: len(objects)] = objects
        transfer, hop = np.zeros((count + 1, stores)), np.zeros((count + 1, stores, nodes))
        complete, fixed = np.full(count + 1, np.inf), np.full(count + 1, -1, dtype=np.int64)
        complete[count] = -np.inf
        if count and mode not in WITHOUT_STORES:
            transfer[:count], hop[:count] = tables.transfer, tables.hop
            for name, replica in tables.replicas.items():
                complete[name], fixed[name] = replica.at, replica.store
        remote = None
        if mode in DIRECT or (direct and mode != "printed"):
            remote = np.full((count + 1, nodes), 0.0)
            if count:
                remote[:count] = tables.direct_rows()
        compute = np.array(tables.compute, dtype=float).reshape(len(tables.jobs), nodes)
        begin = np.array(tables.begin, dtype=float)
        alone = tables.jobs_alone or mode == "printed"
        return cls(mode, alone, begin, needs, compute, transfer, hop, remote, complete, fixed)

    @property
    def nodes(self) -> int:
        return len(self.begin)

    @property
    def width(self) -> int:
        """Numbers that a step has of a plan."""
        return 3 * self.needs.shape[1] + 2


class _Block:
    """So many plans as fit at once."""

    def __init__(self, arrays: _Arrays, population: Ints) -> None:
        self._arrays = arrays
        self._plans, jobs = len(population), len(arrays.needs)
        self._jobs = jobs
        self._rows = np.arange(self._plans)[:, None]
        order, node = population[:, :jobs], population[:, jobs : 2 * jobs]
        at = node[self._rows, order]
        if arrays.mode == "event":
            # Node by node: 16 bits are sorted by their digits.
            narrow = at.astype(np.int16) if arrays.nodes < 2**15 else at
            by_node = np.argsort(narrow, axis=1, kind="stable")
            order, at = order[self._rows, by_node], at[self._rows, by_node]
        self._order, self._node = order, at
        stores = population[:, 2 * jobs :]
        padded = np.zeros((self._plans, len(arrays.fixed)), dtype=np.int64)
        padded[:, : stores.shape[1]] = stores
        self._store = np.where(arrays.fixed >= 0, arrays.fixed, padded)
        #: NACT of all plans, one after the other.
        self._free = np.tile(arrays.begin, self._plans)
        self._computing = arrays.compute[self._order, self._node]

    def makespans(self) -> Floats:
        mode = self._arrays.mode
        if not self._jobs:
            return self._begun()
        if mode in ("rep-none", "printed"):
            return self._by_delays()
        if mode == "staged":
            return self._when_there()
        return self._by_arrivals()

    def _begun(self) -> Floats:
        """The end of a plan before its jobs."""
        end = 0.0 if self._arrays.jobs_alone else float(self._arrays.begin.max())
        return np.full(self._plans, end)

    @cached_property
    def _needs(self) -> Ints:
        """(P, J, K): objects of each plan's jobs, in the order in which they are served."""
        return self._arrays.needs.take(self._order, axis=0)

    @cached_property
    def _which(self) -> Ints:
        """(P, J, K): where these objects are in the objects of all plans, one plan after the other."""
        return self._needs + (self._rows * len(self._arrays.fixed))[:, :, None]

    @cached_property
    def _pairs(self) -> Ints:
        """(P, D + 1): objects and their stores, as places in the table of transfers."""
        count, stores = self._arrays.transfer.shape
        return np.arange(count) * stores + self._store

    @cached_property
    def _transfers(self) -> Floats:
        """(P, D + 1): from the objects' remote stores to their stores."""
        return self._arrays.transfer.take(self._pairs)

    @cached_property
    def _complete(self) -> Floats:
        """(P, D + 1): NAOT where all replicas are begun at time 0."""
        return np.minimum(self._arrays.complete, self._transfers)

    def _hops(self) -> Floats:
        """(P, J, K)."""
        at = (self._pairs * self._arrays.nodes).take(self._which)
        at += self._node[:, :, None]
        return self._arrays.hop.take(at)

    def _by_delays(self) -> Floats:
        """Modes in which a job waits for its objects as long, whenever its turn comes."""
        if self._arrays.mode == "printed":
            # The object in empty places is complete long ago.
            known = self._complete.take(self._which) + self._hops()
            delay = np.maximum(known.max(axis=2), 0.0)
        else:
            assert self._arrays.direct is not None
            delay = self._arrays.direct[self._needs, self._node[:, :, None]].max(axis=2)
        free, last = self._free, self._begun()
        at = self._node + self._rows * self._arrays.nodes
        for step in range(self._jobs):
            here = at[:, step]
            ends = free[here] + delay[:, step] + self._computing[:, step]
            free[here] = ends
            np.maximum(last, ends, out=last)
        return last

    def _when_there(self) -> Floats:
        """The mode in which objects come to nodes whatever the jobs do."""
        assert self._arrays.direct is not None
        there = self._arrays.direct[self._needs, self._node[:, :, None]].max(axis=2)
        free, last = self._free, self._begun()
        at = self._node + self._rows * self._arrays.nodes
        for step in range(self._jobs):
            here = at[:, step]
            ends = np.maximum(free[here], there[:, step]) + self._computing[:, step]
            free[here] = ends
            np.maximum(last, ends, out=last)
        return last

    def _by_arrivals(self) -> Floats:
        """Modes with replicas that are begun when a job needs them, or at time 0."""
        arrays = self._arrays
        plans, jobs, width = self._plans, self._jobs, arrays.needs.shape[1]
        begun = np.broadcast_to(arrays.complete, self._store.shape)
        naot = np.array(self._complete if arrays.mode == "prefetch" else begun).ravel()
        served = _Served(
            naot=naot,
            which=self._which.reshape(plans * jobs, width),
            transfer=self._transfers.take(self._which).reshape(plans * jobs, width),
            hop=self._hops().reshape(plans * jobs, width),
            direct=None
            if arrays.direct is None
            else arrays.direct[self._needs, self._node[:, :, None]].reshape(plans * jobs, width),
            computing=self._computing.ravel(),
        )
        return self._in_time(served) if arrays.mode == "event" else self._in_order(served)

    def _in_order(self, served: _Served) -> Floats:
        free, last = self._free, self._begun()
        first = np.arange(self._plans) * self._jobs
        at = self._node + self._rows * self._arrays.nodes
        for step in range(self._jobs):
            here = at[:, step]
            free[here] = ends = served.step(first + step, free[here])
            np.maximum(last, ends, out=last)
        return last

    def _in_time(self, served: _Served) -> Floats:
        """Always the node that is free first; a node without further jobs is free at infinity."""
        plans, jobs, nodes = self._plans, self._jobs, self._arrays.nodes
        at = (self._node + self._rows * nodes).ravel()
        counts = np.bincount(at, minlength=plans * nodes)
        following = np.cumsum(counts) - counts
        free = self._free
        last = self._begun()
        free[counts == 0] = np.inf
        # Added to the end of a node's last job.
        over = np.zeros(plans * jobs)
        over[(following + counts)[counts > 0] - 1] = np.inf
        table, offset = free.reshape(plans, nodes), np.arange(plans) * nodes
        for _ in range(jobs):
            here = table.argmin(axis=1)
            here += offset
            job = following.take(here)
            ends = served.step(job, free.take(here))
            np.maximum(last, ends, out=last)
            following[here] = job + 1
            ends += over.take(job)
            free[here] = ends
        return last


@dataclass
class _Served:
    """What serving a job takes, by its number over all plans (P J), object by object (K)."""

    #: NAOT of all plans, one after the other, and where in it an object is.
    naot: Floats
    which: Ints
    transfer: Floats
    hop: Floats
    direct: Floats | None
    computing: Floats

    def step(self, jobs: Ints, turns: Floats) -> NDArray[np.float64]:
        """When one job of every plan ends, whose turn comes at these times."""
        turn = turns[:, None]
        which = self.which.take(jobs, axis=0)
        ready = self.transfer.take(jobs, axis=0)
        ready += turn
        np.minimum(ready, self.naot.take(which), out=ready)
        self.naot[which] = ready
        np.maximum(ready, turn, out=ready)
        ready += self.hop.take(jobs, axis=0)
        if self.direct is not None:
            remote = self.direct.take(jobs, axis=0)
            remote += turn
            np.minimum(ready, remote, out=ready)
        ends = ready.max(axis=1)
        ends += self.computing.take(jobs)
        return ends
