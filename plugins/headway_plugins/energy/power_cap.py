"""Power cap: a pool never draws more than it may; starts are delayed or slowed.

What a pool draws is computed from the energy profile and what runs, not measured. The rules are ours
(A. Chandio et al. 2014 name power capping as what their frequency scaling is for, and do not specify
it):

- The cap of a pool is the smallest of ``watts``, the caps of the open windows of day, and the cap of the
  price of the hour. It is what all nodes of the pool draw together, idle nodes too.
- A start that would exceed the cap is slowed to the fastest level at which it fits (``slow``), if that
  delays nothing that is reserved or was booked before it; else it is delayed, and for that stops no job.
- What is delayed is not overtaken by later starts in its pool (``overtake: true`` lets them), so a job
  that needs much power is not starved. A job that the cap of the hour could not hold even if nothing else
  ran waits aside until the cap changes: to stop the pool would not help it. If only idle nodes are in its
  way, or it would have to be slowed and must not, it is tried again every ten minutes (another plugin may
  start it slower). Its reason says what it needs, whether the cap is ever so high, and what forbids slowing.
- A job that the highest cap of the week could never hold, not even on the least powerful nodes at the
  slowest level with nothing else on the machine, is refused when it comes.
- When the cap falls below what is drawn, running jobs are slowed, the youngest first (``slow_running``),
  and their limits lengthened to what the rest of their time takes then; no limit is ever shortened. They
  get their frequency back, the oldest first, when there is room for it and no start waits for the power.
  What cannot be saved so is drawn: no job is ended for a cap.
- Nodes that wake or fall asleep count as what they draw then. They are woken only as far as the cap
  allows; they may fall asleep at any time, which is what makes room.
- A frequency that could not be set is not tried again for a minute.

Windows of the day and prices: :mod:`headway_plugins.energy.cap_over_time`; caps and least draws of pools:
:mod:`~headway_plugins.energy.pool_caps`; starts: :mod:`~headway_plugins.energy.capped_starts`; nodes that
wake: :mod:`~headway_plugins.energy.capped_waking`; running jobs:
:mod:`~headway_plugins.energy.slowed_jobs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import pydantic

from headway.decisions import Decision, PowerDown, PowerUp, SetFrequency, SetTimeLimit, Start
from headway.errors import UserError, nearest
from headway.events import (
    DecisionFailed,
    Event,
    JobChanged,
    JobEnded,
    JobRequeued,
    JobStarted,
    NodeUp,
    PoolChanged,
)
from headway.hookspecs import Plugin, hookimpl
from headway.inputs.time_zones import TimeZone
from headway.plugins import Traits
from headway.results import RunResult
from headway.state import Barrier, Job, State, Status
from headway_plugins.energy.cap_over_time import CapOverTime, Prices, Window
from headway_plugins.energy.capped_starts import CappedStarts
from headway_plugins.energy.capped_waking import affordable
from headway_plugins.energy.meter import PowerMeter
from headway_plugins.energy.pool_caps import ROUNDING, PoolCaps, factor_of, not_before
from headway_plugins.energy.slowed_jobs import SlowedJobs

_INF = float("inf")
#: What bars jobs that the cap of the hour cannot hold, together with their pool.
_CAP = "power-cap"
_WEEK = 8 * 86400.0
#: Seconds after which a job that not even an empty pool had the power for is tried again.
_LATER = 600.0
#: What a node does that was ordered to.
_ON_THE_WAY = {PowerDown: "falling asleep", PowerUp: "waking"}


class PowerCap(Plugin):
    """Keep the power of each pool under a cap."""

    traits = Traits(requires=frozenset({"energy"}))

    class Options(pydantic.BaseModel):
        """Caps in watts (or in the profile's relative unit)."""

        model_config = pydantic.ConfigDict(extra="forbid")

        watts: float | None = pydantic.Field(
            default=None, gt=0, description="cap of each pool at all times, in watts"
        )
        pools: dict[str, pydantic.PositiveFloat] = pydantic.Field(
            default={}, description="pool -> its cap at all times, instead of watts"
        )
        windows: list[Window] = pydantic.Field(
            default=[],
            description='other caps at times of the day, each {from: "08:00", to: "20:00", '
            "days: [mon, fri], watts: N}; default of days: all",
        )
        prices: Prices | None = pydantic.Field(
            default=None,
            description="caps by the price of energy: {file: prices.csv, caps: [{above: PRICE, watts: N}]}",
        )
        timezone: TimeZone = pydantic.Field(
            default="UTC", description="time zone of the windows, and of prices whose times name no zone"
        )
        slow: bool = pydantic.Field(
            default=True, description="try lower frequencies for a start that would exceed the cap"
        )
        slow_running: bool = pydantic.Field(default=True, description="slow running jobs when the cap falls")
        overtake: bool = pydantic.Field(
            default=False, description="let later jobs start before a job that the cap delays"
        )

        @pydantic.model_validator(mode="after")
        def _something(self) -> PowerCap.Options:
            if self.watts is None and not self.pools and not self.windows and self.prices is None:
                raise ValueError("at least one of watts, pools, windows, prices")
            return self

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._over_time = CapOverTime(options.windows, options.prices, options.timezone)
        self._caps = PoolCaps(options.pools, options.watts, self._over_time)
        #: What the following need is known when the run begins.
        self._meter: PowerMeter | None = None
        self._starts: CappedStarts
        self._slowed: SlowedJobs
        #: Why a start of this step is delayed, by job.
        self._delayed: dict[str, str] = {}
        #: Jobs that no end of another job can let start -> when they are tried again, and why they wait.
        self._aside: dict[str, tuple[float, str]] = {}
        #: Jobs whose start was counted in the last step: another plugin may have taken it away since.
        self._begun: set[str] = set()
        #: Whether jobs get their frequency back only after this step's starts.
        self._starts_first = False
        #: When the cap changes next, as far as a step is planned for that.
        self._planned: float = -_INF
        #: When something happened last that no clock did.
        self._active: float = -_INF
        #: What the metrics tell. Jobs that were delayed once and have not started since.
        self._counts = {"starts_delayed": 0, "starts_slowed": 0, "running_slowed": 0, "running_restored": 0}
        self._waiting: set[str] = set()
        #: Pool -> the cap under which jobs were barred last.
        self._barred_under: dict[str, float] = {}
        self._above = 0.0
        self._last: float | None = None
        self._worst = 0.0

    # ------------------------------------------------------------------ hooks

    @hookimpl
    def startup(self, state: State, capabilities: frozenset[type[Decision]]) -> None:
        assert state.energy is not None
        for name in self.options.pools:
            if name not in state.pools:
                hint = nearest(name, state.pools)
                raise UserError(f"plugin 'power-cap': pools: no pool is called {name!r}.{hint}")
        self._meter = meter = PowerMeter(state.energy, state)
        self._caps.can_slow = SetFrequency in capabilities
        self._can_limit = SetTimeLimit in capabilities
        self._starts = CappedStarts(self._caps, meter, self.options.slow)
        self._slowed = SlowedJobs(self._caps, meter, self._counts, can_limit=self._can_limit)

    @hookimpl
    def checkpoint(self) -> dict[str, Any] | None:
        return self._slowed.saved() if self._meter is not None else None

    @hookimpl
    def restore(self, saved: dict[str, Any]) -> None:
        if self._meter is not None:
            self._slowed.restore(saved)

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if self._meter is None:
            return
        self._account(state)
        self._active = state.now
        self._meter.observe(event)
        if isinstance(event, NodeUp | PoolChanged):
            self._caps.forget()
            self._barred_under = dict.fromkeys(self._barred_under, 0.0)
        elif isinstance(event, JobEnded | JobRequeued):
            self._slowed.gone(event.job_id)
            self._delayed.pop(event.job_id, None)
            self._aside.pop(event.job_id, None)
            self._waiting.discard(event.job_id)
        elif isinstance(event, JobStarted):
            self._slowed.started(event, state)
        elif isinstance(event, JobChanged):
            self._slowed.changed(event)
        elif isinstance(event, DecisionFailed) and isinstance(event.decision, SetFrequency):
            self._slowed.not_set(event.decision.job_id, event.time, state)

    @hookimpl
    def admit_job(self, job: Job, state: State) -> str | None:
        if self._meter is None:
            return None
        cap = self._caps.highest(job.pool.name, state)
        if cap == _INF:
            return None
        least = self._caps.at_least(job, state)
        if least <= cap * (1 + ROUNDING):
            return None
        return f"it draws {least:.0f} W with its pool at the lowest power, and the power cap is {cap:.0f} W"

    @hookimpl
    def bar_job(self, job: Job, state: State) -> Barrier | None:
        if self._meter is None:
            return None
        name = job.pool.name
        cap = self._caps.of(name, state)
        if cap == _INF or (least := self._caps.at_least(job, state)) <= cap * (1 + ROUNDING):
            return None
        why = (
            f"power cap of pool {name!r}: even alone there the job needs at least {least:.0f} W, and the "
            f"cap is {cap:.0f} W"
        )
        return Barrier(why, (_CAP, name))

    def _lift(self, state: State) -> None:
        """Where the cap has changed, ask again which jobs it can hold."""
        for pool in state.pools.values():
            cap, before = self._caps.of(pool.name, state), self._barred_under.get(pool.name, _INF)
            self._barred_under[pool.name] = cap
            if cap > before:
                state.lifted((_CAP, pool.name))
            elif cap < before:
                state.bar_queued(pool)

    @hookimpl
    def react(self, state: State) -> None:
        """Before the policies are asked, jobs set aside leave the queue and jobs under the cap enter it."""
        self._lift(state)
        for job_id, (until, reason) in self._aside.items():
            job = state.jobs.get(job_id)
            if job is not None:
                state.set_aside(job, until, reason)
        self._aside.clear()

    @hookimpl
    def control(self, state: State) -> Iterable[Decision]:
        if self._meter is None:
            return []
        self._account(state)
        for job_id in self._begun:
            job = state.jobs.get(job_id)
            if job is None or job.entries is None:
                self._meter.end(job_id)
        self._begun.clear()
        self._plan_next_look(state)
        if not (self.options.slow_running and self._caps.can_slow):
            return []
        self._starts_first = any(
            domain.view is not None and domain.view.now == state.now and domain.view.started
            for domain in state.domains.values()
        )
        decisions: list[Decision] = []
        for pool in state.pools.values():
            cap = self._caps.of(pool.name, state)
            if self._meter.watts[pool.name] > cap * (1 + ROUNDING):
                decisions.extend(self._slowed.slow_down(pool, cap, state))
        if not decisions and not self._starts_first:
            decisions.extend(self._slowed.give_back(self._delayed, state))
        return decisions

    @hookimpl
    def revise(self, decisions: list[Decision], state: State) -> list[Decision] | None:
        if self._meter is None:
            return None
        self._delayed.clear()
        closed: set[str] = set()
        revised: list[Decision] = []
        #: Jobs whose start is slower than it was -> how many times as long they take.
        slower: dict[str, float] = {}
        for decision in decisions:
            if isinstance(decision, Start):
                start = self._capped(decision, state, closed)
                revised.append(start)
                if start.frequency != decision.frequency:
                    job = state.jobs[start.job_id]
                    slower[job.id] = factor_of(
                        job, start.placement, decision.frequency, start.frequency, state
                    )
            elif isinstance(decision, PowerUp):
                possible = affordable(decision, self._caps, self._meter, state)
                if possible is not None:
                    revised.append(possible)
            else:
                revised.append(decision)
        if slower and self._can_limit:
            revised = self._lengthened(revised, slower, state)
        if self._starts_first:
            self._starts_first = False
            revised.extend(self._slowed.give_back(self._delayed, state))
        return revised

    @hookimpl
    def veto(self, decision: Decision) -> str | None:
        return self._delayed.get(decision.job_id) if isinstance(decision, Start) else None

    @hookimpl
    def decided(self, decisions: Sequence[Decision]) -> None:
        if self._meter is not None:
            for decision in decisions:
                if isinstance(decision, PowerDown | PowerUp):
                    self._meter.expect_power(decision.nodes, _ON_THE_WAY[type(decision)])

    @hookimpl
    def register_metrics(self) -> dict[str, Callable[[RunResult], Any]]:
        return {"power-cap": self._figures}

    def _figures(self, result: RunResult) -> dict[str, Any]:
        return {**self._counts, "seconds_above_cap": self._above, "most_watts_above_cap": self._worst}

    # ------------------------------------------------------------------ the cap

    def _plan_next_look(self, state: State) -> None:
        """Have a step come when a window opens or closes, or the price changes."""
        if self._planned > state.now:
            return
        due = self._over_time.next_change(state.now + state.epoch)
        if due == _INF or self._in_vain(state):
            return
        self._planned = planned = not_before(due, state.epoch)
        for pool in state.pools.values():
            state.wake_at(planned, pool)

    def _in_vain(self, state: State) -> bool:
        """Whether nothing ran through a whole week of caps: what waits then will wait for ever."""
        if state.now <= self._active + _WEEK:
            return False
        return all(job.status is not Status.RUNNING for job in state.running_jobs())

    def _account(self, state: State) -> None:
        """Count the time that a pool was above its cap."""
        now = state.now
        if self._last is not None and self._meter is not None and now > self._last:
            for name, watts in self._meter.watts.items():
                cap = self._caps.of(name, state, self._last)
                if watts > cap * (1 + ROUNDING):
                    self._above += now - self._last
                    self._worst = max(self._worst, watts - cap)
        self._last = now

    # ------------------------------------------------------------------ starts

    def _capped(self, start: Start, state: State, closed: set[str]) -> Start:
        """The start as the cap allows it; a start that it does not allow is noted for the veto."""
        assert self._meter is not None
        job = state.jobs.get(start.job_id)
        if job is None:
            return start
        pool = job.pool.name
        met = (
            [name for name in (pool, *self._starts.pools_of(start, job)) if name in closed] if closed else []
        )
        if met:
            self._delay(job, f"the power cap of pool {met[0]!r} delays an earlier job")
            return start
        fits, frequency = self._starts.fitting(start, job, state)
        if not fits and frequency is not None:
            # There is power for it, but not for so long: other jobs need not wait for that.
            self._delay(
                job,
                f"slowed under the power cap of pool {pool!r} it would delay what is reserved for other jobs",
            )
            return start
        if not fits:
            if self._starts.fits_alone(start, job, state):
                pool = self._starts.too_little(start, job, state)
                cap, drawn = self._caps.of(pool, state), self._meter.watts[pool]
                self._delay(
                    job,
                    f"power cap of pool {pool!r}: {drawn:.0f} W of {cap:.0f} W are drawn, too little is left",
                )
                if not self.options.overtake:
                    closed.add(pool)
                return start
            reason = self._starts.why_not_alone(start, job, state)
            self._delay(job, reason)
            change = self._over_time.next_change(state.now + state.epoch)
            if self._caps.at_least(job, state) > self._caps.of(pool, state) * (1 + ROUNDING):
                self._wait_aside(job, change, reason, state)
            elif all(power == "asleep" for power in state.nodes.power.values()):
                # Idle nodes are in its way, or it would have to be slowed, which is not wished for.
                self._wait_aside(job, min(change, state.now + state.epoch + _LATER), reason, state)
            return start
        if frequency != start.frequency:
            assert frequency is not None
            self._counts["starts_slowed"] += 1
            said = f"at {frequency / 1e9:.2f} GHz under the power cap"
            reason = f"{start.reason}; {said}" if start.reason else said
            start = msgspec.structs.replace(start, frequency=frequency, reason=reason)
        self._meter.begin(job, start.placement, start.frequency)
        self._begun.add(job.id)
        self._waiting.discard(job.id)
        return start

    def _wait_aside(self, job: Job, until: float, reason: str, state: State) -> None:
        """Have the job leave its queue until then (epoch seconds), with the next step."""
        if until != _INF and not self._in_vain(state):
            self._aside[job.id] = not_before(until, state.epoch), reason
            state.wake_at(state.now, job.pool)

    def _delay(self, job: Job, reason: str) -> None:
        self._delayed[job.id] = reason
        if job.id not in self._waiting:
            self._waiting.add(job.id)
            self._counts["starts_delayed"] += 1

    def _lengthened(
        self, decisions: list[Decision], slower: dict[str, float], state: State
    ) -> list[Decision]:
        """With the limits that starts slowed by the cap need, on top of what other plugins gave them."""
        given = {d.job_id: d.walltime for d in decisions if isinstance(d, SetTimeLimit)}
        kept = [d for d in decisions if not (isinstance(d, SetTimeLimit) and d.job_id in slower)]
        for job_id, factor in slower.items():
            limit = given.get(job_id, state.jobs[job_id].estimate)
            kept.append(SetTimeLimit(job_id, limit * factor, "its frequency is lowered by the power cap"))
        return kept
