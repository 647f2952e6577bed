"""Hours of pools: jobs of a queue or partition start only in its windows, or at no time but outside of them.

After PBS's prime time (administrator's guide, "Using Primetime and Holidays": queues whose names begin with
``primetime_prefix`` or ``nonprimetime_prefix``); LSF's queues have a ``DISPATCH_WINDOW`` for it. Decisions on
what is left open:

- A job that has started runs on when the pool closes, and a job may start that will not be over by then (PBS:
  ``backfill_prime`` false).
- A job of a closed pool is in no queue: it delays no other job, and nothing is booked for it.
"""

from __future__ import annotations

import datetime
import zoneinfo

import pydantic

from headway.errors import UserError, nearest
from headway.hookspecs import Plugin, hookimpl
from headway.state import Barrier, Job, State
from headway_plugins.calendars.options import WindowsOptions
from headway_plugins.calendars.windows import around

_INF = float("inf")


class PoolHoursOptions(WindowsOptions):
    """Options of ``pool-hours``."""

    open: dict[str, list[str]] = pydantic.Field(
        default={}, description="pool -> the only windows in which its jobs start"
    )
    closed: dict[str, list[str]] = pydantic.Field(
        default={}, description="pool -> the windows in which its jobs do not start"
    )

    @pydantic.model_validator(mode="after")
    def _who_and_when(self) -> PoolHoursOptions:
        self.refuse_parts("a window of pool-hours has times only")
        if not self.open and not self.closed:
            raise ValueError("open or closed: expected at least one pool, found none")
        for key, pools in (("open", self.open), ("closed", self.closed)):
            for pool, names in pools.items():
                for name in names:
                    if name not in self.windows:
                        hint = nearest(name, self.windows)
                        raise ValueError(f"{key}: {pool}: expected names of windows, found {name!r}.{hint}")
        for pool in self.open.keys() & self.closed.keys():
            raise ValueError(f"{pool}: expected it under open or under closed, found both")
        return self


class PoolHours(Plugin):
    """Start jobs of a pool only in its windows."""

    Options = PoolHoursOptions

    def __init__(self, options: PoolHoursOptions) -> None:
        super().__init__(options)
        self._zone = zoneinfo.ZoneInfo(options.zone)
        self._epoch = 0.0
        #: Pool -> whether its jobs may start; and until when that holds, seconds of the run.
        self._is_open: dict[str, bool] = {}
        self._changes: dict[str, float] = {}
        #: Both of them when the queue was last looked at for it.
        self._applied: dict[str, tuple[bool, float]] = {}

    @hookimpl
    def startup(self, state: State) -> None:
        self._epoch = state.epoch
        for key, pools in (("open", self.options.open), ("closed", self.options.closed)):
            for pool in pools:
                if pool not in state.pools and state.cluster.stands_in:
                    state.notices.append(
                        f"pool-hours: {key}: {pool!r}: the machine of this dry run has no such pool, so its "
                        "hours are ignored"
                    )
                elif pool not in state.pools:
                    hint = nearest(pool, state.pools)
                    raise UserError(
                        f"pool-hours: {key}: expected pools of the cluster, found {pool!r}.{hint}"
                    )

    @hookimpl
    def bar_job(self, job: Job, state: State) -> Barrier | None:
        pool = job.pool.name
        if self._may_start(pool, state.now):
            return None
        return Barrier(lambda: self._why(pool), _key(pool))

    @hookimpl
    def react(self, state: State) -> None:
        for pool in (*self.options.open, *self.options.closed):
            may, until = self._may_start(pool, state.now), self._changes[pool]
            if self._applied.get(pool) == (may, until) or pool not in state.pools:
                continue
            self._applied[pool] = may, until
            if may:
                state.lifted(_key(pool))
            else:
                state.bar_queued(state.pools[pool])
            if until < _INF:
                state.wake_at(until, state.pools[pool])

    def _may_start(self, pool: str, now: float) -> bool:
        if now >= self._changes.get(pool, -_INF):
            self._look(pool, now)
        return self._is_open.get(pool, True)

    def _look(self, pool: str, now: float) -> None:
        """Find out whether the pool is open, and until when."""
        names, inside = self.options.open.get(pool), True
        if names is None:
            names, inside = self.options.closed.get(pool), False
        if names is None:
            self._changes[pool] = _INF
            return
        windows = [self.options.windows[name] for name in names]
        since = now + self._epoch
        end, begins = around(windows, since, self._zone, self.options.holidays)
        self._is_open[pool] = (end is not None) is inside
        self._changes[pool] = (begins if end is None else end) - self._epoch

    def _why(self, pool: str) -> str:
        opens = self._changes.get(pool, _INF)
        if opens == _INF:
            return f"jobs of pool {pool} start only in windows, and no window is in sight"
        when = datetime.datetime.fromtimestamp(opens + self._epoch, self._zone)
        return f"jobs of pool {pool} start only in windows; the next window opens at {when:%Y-%m-%d %H:%M %Z}"


def _key(pool: str) -> tuple[str, str]:
    return "pool-hours", pool
