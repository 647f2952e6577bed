"""A share of the processors is kept for short jobs, so that no burst of long jobs fills the machine.

E. Medernach, "Workload Analysis of a Cluster in a Grid Environment", JSSPP 2005, discussion: one group can
take all of a site, and a short job then waits as long as the shortest of its jobs. The paper names no
algorithm; ours: jobs whose estimate is above ``seconds`` have, all together, at most the pool's processors
less ``share`` of them (rounded up). A job over that limit waits outside of the queue and delays no other job.
Short jobs may have any processor. A long job that alone needs more than is left to long jobs starts where no
other long job has any, so no job waits for ever. Where pools share nodes a job counts in each pool that has
its nodes, with what it has there.
"""

from __future__ import annotations

import math

import pydantic

from headway.events import Event, JobChanged
from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Traits
from headway.state import Barrier, Job, PoolState, State


class ReserveShortOptions(pydantic.BaseModel):
    """The options of :class:`ReserveShort`."""

    model_config = pydantic.ConfigDict(extra="forbid")

    share: float = pydantic.Field(
        default=0.05, gt=0, lt=1, description="share of each pool's processors that is kept for short jobs"
    )
    seconds: float = pydantic.Field(
        default=900.0, ge=0, allow_inf_nan=False, description="a job with an estimate up to this is short"
    )


class ReserveShort(Plugin):
    """Keep a share of the processors for jobs with short estimates."""

    Options = ReserveShortOptions
    traits = Traits(
        observes=(JobChanged,),
        paper="E. Medernach: Workload Analysis of a Cluster in a Grid Environment, JSSPP 2005",
    )

    def __init__(self, options: ReserveShortOptions | None = None) -> None:
        super().__init__(options or ReserveShortOptions())
        #: Long jobs that have processors -> the pools that have these, and how many.
        self._counted: dict[str, dict[str, int]] = {}
        #: Pool -> processors that long jobs have, and its size when it was last looked at.
        self._used: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        #: Pools in which there may be room again, and in which there is none any more.
        self._room: set[str] = set()
        self._full: set[str] = set()

    @hookimpl
    def startup(self, state: State) -> None:
        self._state = state
        state.watch(self)

    def took(self, job: Job) -> None:
        """See :class:`headway.state.Watcher`."""
        if not self._long(job):
            return
        counted = self._counted[job.id] = {}
        for pool in job.domain.pools:
            held = self._state.held_in(pool, job)
            if not held:
                continue
            before = self._used.get(pool.name, 0)
            counted[pool.name] = held
            self._used[pool.name] = before + held
            if before < self._most(pool) <= self._used[pool.name]:
                self._full.add(pool.name)

    def gave(self, job: Job) -> None:
        """See :class:`headway.state.Watcher`."""
        for name, processors in self._counted.pop(job.id, {}).items():
            self._used[name] -= processors
            self._room.add(name)

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if isinstance(event, JobChanged) and event.job.id in self._counted:
            job = state.jobs[event.job.id]
            self.gave(job)
            self.took(job)

    @hookimpl
    def react(self, state: State) -> None:
        for pool in state.pools.values():
            if self._sizes.get(pool.name) != pool.total:
                self._sizes[pool.name] = pool.total
                self._room.add(pool.name)
                self._full.add(pool.name)
        while self._room:
            state.lifted(_key(self._room.pop()))
        while self._full:
            # Whichever jobs started: a queued job that may not start any more leaves its queue.
            name = self._full.pop()
            if name in state.pools:
                state.bar_queued(state.pools[name])

    @hookimpl
    def bar_job(self, job: Job) -> Barrier | None:
        if not self._long(job):
            return None
        used, most = self._used.get(job.pool.name, 0), self._most(job.pool)
        if not used or used + job.processors <= most:
            return None
        return Barrier(
            f"{job.pool.total - most} of {job.pool.total} processors are kept for jobs of at most "
            f"{self.options.seconds:g} s, and longer jobs use {used}",
            _key(job.pool.name),
        )

    def _long(self, job: Job) -> bool:
        return bool(job.request.walltime > self.options.seconds)

    def _most(self, pool: PoolState) -> int:
        """Processors that long jobs may have."""
        return pool.total - math.ceil(self.options.share * pool.total)


def _key(pool: str) -> tuple[str, str]:
    return "reserve-short", pool
