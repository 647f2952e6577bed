"""Power cap: a pool never draws more than it may; starts are delayed or slowed.

What a pool draws is computed from the energy profile and what runs, not measured. The rules are ours
(A. Chandio et al. 2014 name power capping as what their frequency scaling is for, and do not specify
it):

- The cap of a pool is the smallest of ``watts``, those of the windows of day that are open, and that of
  the price of the hour. It is what all nodes of the pool draw together, idle ones too.
- A start that would exceed the cap is slowed to the fastest level at which it fits (``slow``), if that
  delays nothing that is reserved or was booked before it; else it is delayed, and for that stops nobody.
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

Windows of the day and prices: :mod:`headway_plugins.energy.cap_over_time`.
"""

from __future__ import annotations

import math
import zoneinfo
from collections.abc import Callable, Iterable, Sequence, Set
from itertools import accumulate
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
from headway.model import NodeClass, Placement
from headway.plugins import Traits
from headway.results import RunResult
from headway.state import Barrier, Job, PoolState, State, Status
from headway_plugins.energy.cap_over_time import CapOverTime, Prices, Window
from headway_plugins.energy.meter import PowerMeter

_INF = float("inf")
#: What bars jobs that the cap of the hour cannot hold, together with their pool.
_CAP = "power-cap"
_WEEK = 8 * 86400.0
#: Rounding of sums of watts, as a share of the cap.
_ROUNDING = 1e-9
#: Seconds after which a frequency that could not be set is tried again.
_RETRY = 60.0
#: Seconds after which a job that not even an empty pool had the power for is tried again.
_LATER = 600.0
#: Seconds by which a batch system may round a limit.
_LIMITS_ALIKE = 60.0
#: What a node does that was ordered to.
_ON_THE_WAY = {PowerDown: "falling asleep", PowerUp: "waking"}


def _not_before(moment: float, epoch: float) -> float:
    """An epoch second on a clock that began at ``epoch``, without being early by rounding."""
    time = moment - epoch
    while time + epoch < moment:
        time = math.nextafter(time, _INF)
    return time


class _Time(msgspec.Struct):
    """What is left of the limit of a job that was slowed."""

    #: Seconds of its execution when this was booked.
    elapsed: float
    #: Seconds that its limit left it then at the frequency that it had before.
    left: float
    #: How many times as long it takes since.
    factor: float
    #: The limit that it has for it.
    limit: float


class _Floor(msgspec.Struct):
    """What a pool draws at the least, watts."""

    #: All nodes, asleep if they can be.
    asleep: float
    #: More for any 0, 1, 2, ... nodes that are on and idle instead.
    awake: list[float]
    #: Processors of the largest node; 0: the pool has no nodes.
    largest: int
    #: A busy processor adds at the least.
    processor: float


class PowerCap(Plugin):
    """Keep the power of each pool under a cap."""

    traits = Traits(requires=frozenset({"energy"}))

    class Options(pydantic.BaseModel):
        """Caps in watts (or in the profile's relative unit)."""

        model_config = pydantic.ConfigDict(extra="forbid")

        watts: float | None = pydantic.Field(
            default=None, gt=0, description="the cap of each pool at all times"
        )
        pools: dict[str, pydantic.PositiveFloat] = pydantic.Field(
            default={}, description="pool: its cap at all times, instead of watts"
        )
        windows: list[Window] = pydantic.Field(
            default=[], description='each {from: "08:00", to: "20:00", days: [mon, fri], watts: N}; days: all'
        )
        prices: Prices | None = pydantic.Field(
            default=None, description="{file: prices.csv, caps: [{above: PRICE, watts: N}]}"
        )
        timezone: str = pydantic.Field(
            default="UTC", description="of the windows, and of prices whose times name none"
        )
        slow: bool = pydantic.Field(
            default=True, description="try a start that would exceed the cap at lower frequencies"
        )
        slow_running: bool = pydantic.Field(default=True, description="slow running jobs when the cap falls")
        overtake: bool = pydantic.Field(
            default=False, description="let later starts pass one that the cap delays"
        )

        @pydantic.field_validator("timezone")
        @classmethod
        def _known(cls, value: str) -> str:
            try:
                zoneinfo.ZoneInfo(value)
            except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
                raise ValueError(f"a time zone such as Europe/Berlin, found {value!r}") from None
            return value

        @pydantic.model_validator(mode="after")
        def _something(self) -> PowerCap.Options:
            if self.watts is None and not self.pools and not self.windows and self.prices is None:
                raise ValueError("at least one of watts, pools, windows, prices")
            return self

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._over_time = CapOverTime(options.windows, options.prices, options.timezone)
        self._meter: PowerMeter | None = None
        #: Why a start of this step is delayed, by job.
        self._delayed: dict[str, str] = {}
        #: Jobs that no end of another job can let start -> when they are tried again, and why they wait.
        self._aside: dict[str, tuple[float, str]] = {}
        #: Jobs whose start was counted in the last step: another plugin may have taken it away since.
        self._begun: set[str] = set()
        #: Running jobs that we slowed -> the frequency that they had.
        self._slowed: dict[str, float | None] = {}
        #: Of these, and of those that have their frequency back: what is left of their limits.
        self._times: dict[str, _Time] = {}
        #: Jobs whose frequency could not be set -> when it is tried again.
        self._not_before: dict[str, float] = {}
        #: Whether jobs get their frequency back only after this step's starts.
        self._starts_first = False
        #: When the cap changes next, as far as a step is planned for that.
        self._planned: float = -_INF
        #: When something happened last that no clock did.
        self._active: float = -_INF
        self._floor: dict[str, _Floor] = {}
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
        self._meter = PowerMeter(state.energy, state)
        self._can_slow = SetFrequency in capabilities
        self._can_limit = SetTimeLimit in capabilities

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return {
            "slowed": dict(self._slowed),
            "times": {job: [t.elapsed, t.left, t.factor, t.limit] for job, t in self._times.items()},
        }

    @hookimpl
    def restore(self, saved: dict[str, Any]) -> None:
        self._slowed.update(saved["slowed"])
        self._times.update({job: _Time(*values) for job, values in saved["times"].items()})

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if self._meter is None:
            return
        self._account(state)
        self._active = state.now
        self._meter.observe(event)
        if isinstance(event, NodeUp | PoolChanged):
            self._floor.clear()
            self._barred_under = dict.fromkeys(self._barred_under, 0.0)
        elif isinstance(event, JobEnded | JobRequeued):
            for about in (self._slowed, self._times, self._not_before, self._delayed, self._aside):
                about.pop(event.job_id, None)
            self._waiting.discard(event.job_id)
        elif isinstance(event, JobStarted):
            job = state.jobs.get(event.job_id)
            if event.job_id in self._slowed and job is not None and job.frequency is None:
                # It began anew while nobody looked.
                del self._slowed[job.id]
                self._times.pop(job.id, None)
        elif isinstance(event, JobChanged):
            known = self._times.get(event.job.id)
            if known is not None and abs(event.job.request.walltime - known.limit) > _LIMITS_ALIKE:
                # Somebody else changed its limit, which is what it is entitled to now.
                del self._times[event.job.id]
        elif isinstance(event, DecisionFailed) and isinstance(event.decision, SetFrequency):
            self._not_set(event.decision.job_id, event.time, state)

    def _not_set(self, job_id: str, time: float, state: State) -> None:
        job = state.jobs.get(job_id)
        if job is None:
            return
        self._not_before[job_id] = time + _RETRY
        state.wake_at(time + _RETRY, job.pool)
        if job_id in self._slowed and job.frequency == self._slowed[job_id]:
            del self._slowed[job_id]

    @hookimpl
    def admit_job(self, job: Job, state: State) -> str | None:
        if self._meter is None:
            return None
        cap = self._highest(job.pool.name, state)
        if cap == _INF:
            return None
        least = self._at_least(job, state)
        if least <= cap * (1 + _ROUNDING):
            return None
        return f"it draws {least:.0f} W with its pool at the least, the power cap is {cap:.0f} W"

    @hookimpl
    def bar_job(self, job: Job, state: State) -> Barrier | None:
        if self._meter is None:
            return None
        name = job.pool.name
        cap = self._cap(name, state)
        if cap == _INF or (least := self._at_least(job, state)) <= cap * (1 + _ROUNDING):
            return None
        why = f"power cap of pool {name!r}: at the least it needs {least:.0f} W of {cap:.0f} W, alone there"
        return Barrier(why, (_CAP, name))

    def _lift(self, state: State) -> None:
        """Where the cap is another than before, ask again whom it can hold."""
        for pool in state.pools.values():
            cap, before = self._cap(pool.name, state), self._barred_under.get(pool.name, _INF)
            self._barred_under[pool.name] = cap
            if cap > before:
                state.lifted((_CAP, pool.name))
            elif cap < before:
                state.bar_queued(pool)

    @hookimpl
    def react(self, state: State) -> None:
        """Before the policies are asked: who waits aside leaves the queue, whom the cap holds enters it."""
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
        if not (self.options.slow_running and self._can_slow):
            return []
        self._starts_first = any(
            domain.view is not None and domain.view.now == state.now and domain.view.started
            for domain in state.domains.values()
        )
        decisions: list[Decision] = []
        for pool in state.pools.values():
            cap = self._cap(pool.name, state)
            if self._meter.watts[pool.name] > cap * (1 + _ROUNDING):
                decisions.extend(self._slow_down(pool, cap, state))
        if not decisions and not self._starts_first:
            decisions.extend(self._give_back(state))
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
                    slower[job.id] = self._factor(
                        job, start.placement, decision.frequency, start.frequency, state
                    )
            elif isinstance(decision, PowerUp):
                possible = self._affordable(decision, state)
                if possible is not None:
                    revised.append(possible)
            else:
                revised.append(decision)
        if slower and self._can_limit:
            revised = self._lengthened(revised, slower, state)
        if self._starts_first:
            self._starts_first = False
            revised.extend(self._give_back(state))
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

    def _cap(self, pool: str, state: State, at: float | None = None) -> float:
        """Watts that the pool may draw at ``at`` (default: now)."""
        moment = (state.now if at is None else at) + state.epoch
        return min(self._standing_cap(pool), self._over_time.at(moment))

    def _highest(self, pool: str, state: State) -> float:
        """Watts that the pool may draw at the most within the week."""
        return min(self._standing_cap(pool), self._over_time.highest(state.now + state.epoch))

    def _standing_cap(self, pool: str) -> float:
        """The cap that is left when no window is open and the price is low."""
        options = self.options
        return options.pools.get(pool, options.watts if options.watts is not None else _INF)

    def _at_least(self, job: Job, state: State) -> float:
        """What a job's pool draws at the least while it runs: asleep all nodes that it does not need."""
        found = self._floor.get(job.pool.name)
        if found is None:
            found = self._floor[job.pool.name] = self._floor_of(job.pool, state)
        request, nodes = job.request, 0
        if found.largest:
            each = min(request.processors_per_node or found.largest, found.largest)
            nodes = min(request.nodes or -(-job.processors // each), len(found.awake) - 1)
        return found.asleep + found.awake[nodes] + job.processors * found.processor

    def _floor_of(self, pool: PoolState, state: State) -> _Floor:
        model = state.energy
        assert model is not None

        def added(kind: NodeClass) -> float:
            # Others may start it at a lower frequency even if we do not.
            frequency = kind.levels[-1].frequency if self._can_slow else None
            return model.busy_power(kind, frequency) - kind.idle_power

        if pool.flat:
            kind = model.class_of_pool(pool.name)
            return _Floor(pool.description.processors * kind.idle_power, [0.0], 0, added(kind))
        nodes = [node for node in state.nodes.descriptions.values() if pool.name in node.pools]
        kinds = {model.class_of(node.name).name: model.class_of(node.name) for node in nodes}
        idle = [model.idle_node(node) for node in nodes]
        asleep = [min(on, model.node_power(node, "asleep")) for node, on in zip(nodes, idle, strict=True)]
        more = sorted(on - off for on, off in zip(idle, asleep, strict=True))
        return _Floor(
            sum(asleep),
            [0.0, *accumulate(more)],
            max((node.processors for node in nodes), default=0),
            min((added(kind) for kind in kinds.values()), default=0.0),
        )

    def _plan_next_look(self, state: State) -> None:
        """Have a step come when a window opens or closes, or the price changes."""
        if self._planned > state.now:
            return
        due = self._over_time.next_change(state.now + state.epoch)
        if due == _INF or self._in_vain(state):
            return
        self._planned = planned = _not_before(due, state.epoch)
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
                cap = self._cap(name, state, self._last)
                if watts > cap * (1 + _ROUNDING):
                    self._above += now - self._last
                    self._worst = max(self._worst, watts - cap)
        self._last = now

    # ------------------------------------------------------------------ starts

    def _capped(self, start: Start, state: State, closed: set[str]) -> Start:
        """The start as the cap allows it; one that it does not allow is noted for the veto."""
        assert self._meter is not None
        job = state.jobs.get(start.job_id)
        if job is None:
            return start
        pool = job.pool.name
        met = [name for name in (pool, *self._pools_of(start, job)) if name in closed] if closed else []
        if met:
            self._delay(job, f"the power cap of pool {met[0]!r} delays an earlier job")
            return start
        fits, frequency = self._fitting(start, job, state)
        if not fits and frequency is not None:
            # There is power for it, but not for so long: others need not wait for that.
            self._delay(
                job, f"slowed under the power cap of pool {pool!r} it would delay what is kept for others"
            )
            return start
        if not fits:
            if self._fits_alone(start, job, state):
                pool = self._too_little(start, job, state)
                cap, drawn = self._cap(pool, state), self._meter.watts[pool]
                self._delay(
                    job,
                    f"power cap of pool {pool!r}: {drawn:.0f} W are drawn of {cap:.0f} W, too little is left",
                )
                if not self.options.overtake:
                    closed.add(pool)
                return start
            reason = self._why_not_alone(start, job, state)
            self._delay(job, reason)
            change = self._over_time.next_change(state.now + state.epoch)
            if self._at_least(job, state) > self._cap(pool, state) * (1 + _ROUNDING):
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

    def _pools_of(self, start: Start, job: Job) -> Iterable[str]:
        """The pools in which a start draws power: all that have its nodes."""
        assert self._meter is not None
        return self._meter.added(job, start.placement, start.frequency)

    def _too_little(self, start: Start, job: Job, state: State) -> str:
        """The pool that has too little power left for a start."""
        assert self._meter is not None
        added, drawn = self._added_at_least(start, job, state), self._meter.watts
        return next(
            (pool for pool, watts in added.items() if not self._fits({pool: watts}, drawn, state)),
            job.pool.name,
        )

    def _wait_aside(self, job: Job, until: float, reason: str, state: State) -> None:
        """Have the job leave its queue until then (epoch seconds), with the next step."""
        if until != _INF and not self._in_vain(state):
            self._aside[job.id] = _not_before(until, state.epoch), reason
            state.wake_at(state.now, job.pool)

    def _delay(self, job: Job, reason: str) -> None:
        self._delayed[job.id] = reason
        if job.id not in self._waiting:
            self._waiting.add(job.id)
            self._counts["starts_delayed"] += 1

    def _fits(self, added: dict[str, float], drawn: dict[str, float], state: State) -> bool:
        return all(
            drawn[pool] + watts <= self._cap(pool, state) * (1 + _ROUNDING)
            for pool, watts in added.items()
            if pool in drawn and watts > 0
        )

    def _fits_alone(self, start: Start, job: Job, state: State) -> bool:
        """Whether the cap of the hour could hold the job if nothing else ran."""
        assert self._meter is not None
        return self._fits(self._added_at_least(start, job, state), self._meter.base, state)

    def _added_at_least(self, start: Start, job: Job, state: State) -> dict[str, float]:
        """What the job adds to pools there, as slow as we may make it."""
        assert self._meter is not None
        frequency = start.frequency
        if self.options.slow and self._can_slow:
            frequency = self._slowest(start, job, state)
        return self._meter.added(job, start.placement, frequency)

    def _slowest(self, start: Start, job: Job, state: State) -> float:
        return self._kind(start.placement, job, state).levels[-1].frequency

    def _why_not_alone(self, start: Start, job: Job, state: State) -> str:
        """What a job needs that the cap of the hour could not hold even if nothing else ran."""
        assert self._meter is not None
        base, added = self._meter.base, self._added_at_least(start, job, state)
        name = next(
            (pool for pool, watts in added.items() if not self._fits({pool: watts}, base, state)),
            job.pool.name,
        )
        cap, highest = self._cap(name, state), self._highest(name, state)
        watts = base.get(name, 0.0) + added.get(name, 0.0)
        said = f"power cap of pool {name!r}: alone with its idle nodes it needs {watts:.0f} W of {cap:.0f} W"
        if watts > highest * (1 + _ROUNDING):
            said += f", and the cap is never above {highest:.0f} W"
        if not self.options.slow and self._can_slow:
            slowed = self._meter.added(job, start.placement, self._slowest(start, job, state))
            if self._fits(slowed, base, state):
                said += "; slowed it would fit, which slow: false forbids"
        return said

    def _fitting(self, start: Start, job: Job, state: State) -> tuple[bool, float | None]:
        """Whether the start may be, and the fastest of the frequencies up to its own that the cap allows."""
        assert self._meter is not None
        meter = self._meter
        if self._fits(meter.added(job, start.placement, start.frequency), meter.watts, state):
            return True, start.frequency
        if not (self.options.slow and self._can_slow) or job.domain.view is None:
            return False, None
        for level in self._kind(start.placement, job, state).levels[1:]:
            if start.frequency is not None and level.frequency >= start.frequency:
                continue
            if self._fits(meter.added(job, start.placement, level.frequency), meter.watts, state):
                factor = self._factor(job, start.placement, start.frequency, level.frequency, state)
                # A slower level only takes longer. Whoever is booked behind it would have it wait for ever.
                may = job.domain.view.stretch(job, job.expected_runtime * factor, push=True)
                return may, level.frequency
        return False, None

    @staticmethod
    def _kind(placement: Placement, job: Job, state: State) -> NodeClass:
        """The class whose levels count: that of the job's first node."""
        assert state.energy is not None
        return (
            state.energy.class_of(placement[0][0]) if placement else state.energy.class_of_pool(job.pool.name)
        )

    @staticmethod
    def _factor(
        job: Job, placement: Placement, before: float | None, after: float | None, state: State
    ) -> float:
        """How many times as long the job takes there at one frequency as at another."""
        model, pool = state.energy, job.pool.name
        assert model is not None
        rate = model.job_rate(job.description, placement, pool, before)
        return rate / model.job_rate(job.description, placement, pool, after)

    def _lengthened(
        self, decisions: list[Decision], slower: dict[str, float], state: State
    ) -> list[Decision]:
        """With the limits that starts slowed by the cap need, on top of what others gave them."""
        given = {d.job_id: d.walltime for d in decisions if isinstance(d, SetTimeLimit)}
        kept = [d for d in decisions if not (isinstance(d, SetTimeLimit) and d.job_id in slower)]
        for job_id, factor in slower.items():
            limit = given.get(job_id, state.jobs[job_id].estimate)
            kept.append(SetTimeLimit(job_id, limit * factor, "its frequency is lowered by the power cap"))
        return kept

    def _affordable(self, decision: PowerUp, state: State) -> PowerUp | None:
        """The nodes of these that may wake under the cap; None: none."""
        assert self._meter is not None and state.energy is not None
        model, kept = state.energy, []
        drawn = dict(self._meter.watts)
        for name in decision.nodes:
            node = state.nodes.descriptions.get(name)
            if node is None:
                continue
            power = state.nodes.power.get(name, "on")
            # It wakes, and is on after that.
            waking = max(model.node_power(node, "waking"), model.idle_node(node))
            more = waking - model.node_power(node, power)
            if self._fits(dict.fromkeys(node.pools, more), drawn, state):
                kept.append(name)
                for pool in node.pools:
                    if pool in drawn:
                        drawn[pool] += more
        if not kept:
            return self._one_by_one(decision, state)
        if len(kept) == len(decision.nodes):
            return decision
        said = f"{decision.reason}; the power cap allows {len(kept)} of {len(decision.nodes)}"
        return PowerUp(tuple(kept), said)

    def _one_by_one(self, decision: PowerUp, state: State) -> PowerUp | None:
        """A node that fits under the cap once it is on, where nothing but its waking is in its way."""
        assert self._meter is not None and state.energy is not None
        model, meter = state.energy, self._meter
        for name in decision.nodes:
            node = state.nodes.descriptions.get(name)
            if node is None:
                continue
            pools = [state.pools[pool] for pool in node.pools if pool in state.pools]
            if any(state.running_in(pool) for pool in pools) or any(
                power == "waking" and not set(node.pools).isdisjoint(state.nodes.descriptions[other].pools)
                for other, power in state.nodes.power.items()
            ):
                continue
            more = model.idle_node(node) - model.node_power(node, "asleep")
            if self._fits(dict.fromkeys(node.pools, more), meter.watts, state):
                return PowerUp((name,), f"{decision.reason}; one by one, for the power cap")
        return None

    # ------------------------------------------------------------------ running jobs

    @staticmethod
    def _running(pool: PoolState, state: State) -> list[Job]:
        """Jobs that run in the pool, the oldest first."""
        running = Status.RUNNING
        jobs = [job for job in state.running_in(pool) if job.status is running]
        return sorted(jobs, key=lambda job: (job.start_time, job.seq))

    def _slow_down(self, pool: PoolState, cap: float, state: State) -> list[Decision]:
        assert self._meter is not None
        meter, name, allowed = self._meter, pool.name, cap * (1 + _ROUNDING)
        decisions: list[Decision] = []
        reason = f"the power cap of pool {name!r} is {cap:.0f} W"
        for job in reversed(self._running(pool, state)):
            if meter.watts[name] <= allowed:
                break
            before, levels = meter.frequency(job), self._kind(job.placement, job, state).levels
            slowest = levels[-1].frequency
            if (before is not None and before <= slowest) or len(levels) < 2:
                continue
            if self._not_before and self._not_before.get(job.id, -_INF) > state.now:
                continue
            room = allowed - meter.watts[name] + meter.of(job.id).get(name, 0.0)
            chosen = slowest
            if meter.added(job, job.placement, slowest).get(name, 0.0) <= room:
                for level in levels[1:]:
                    slower = before is None or level.frequency < before
                    if slower and meter.added(job, job.placement, level.frequency).get(name, 0.0) <= room:
                        chosen = level.frequency
                        break
            meter.order(job, chosen)
            self._slowed.setdefault(job.id, before)
            self._counts["running_slowed"] += 1
            decisions.append(SetFrequency(job.id, chosen, reason))
            decisions.extend(self._more_time(job, before, chosen, state))
        return decisions

    def _more_time(self, job: Job, before: float | None, after: float, state: State) -> list[Decision]:
        """The limit that the rest of a run needs at its new frequency, if that is more than it has."""
        if not self._can_limit or job.start_time is None:
            return []
        elapsed = state.now - job.start_time - job.paused
        left = self._left(job, before, elapsed, state)
        factor = self._factor(job, job.placement, self._slowed[job.id], after, state)
        if left <= 0 or factor <= 1:
            return []
        limit = max(elapsed + left * factor, job.estimate)
        self._times[job.id] = _Time(elapsed, left, factor, limit)
        if limit <= job.estimate * (1 + _ROUNDING):
            return []
        return [SetTimeLimit(job.id, limit, "its frequency is lowered by the power cap")]

    def _left(self, job: Job, now: float | None, elapsed: float, state: State) -> float:
        """Seconds that the job's limit leaves it at the frequency that it had before we slowed it."""
        known = self._times.get(job.id)
        if known is not None:
            return known.left - (elapsed - known.elapsed) / known.factor
        if now == self._slowed[job.id]:
            return job.estimate - elapsed
        factor = self._factor(job, job.placement, self._slowed[job.id], now, state)
        return (job.estimate - elapsed) / factor

    def _give_back(self, state: State) -> list[Decision]:
        """Give slowed jobs their frequency back as far as the cap allows and no start waits for the power."""
        if not self._slowed or self._meter is None:
            return []
        waiting = {
            state.jobs[job_id].pool.name
            for job_id in self._delayed
            if job_id in state.jobs and state.jobs[job_id].status in (Status.PENDING, Status.STARTING)
        }
        decisions: list[Decision] = []
        for pool in state.pools.values():
            full = self._meter.watts[pool.name] >= self._cap(pool.name, state)
            if not full and pool.name not in waiting:
                decisions.extend(self._speed_up(pool, state, waiting))
        return decisions

    def _speed_up(self, pool: PoolState, state: State, waiting: Set[str]) -> list[Decision]:
        """``waiting``: pools that leave the power to starts."""
        assert self._meter is not None
        meter = self._meter
        decisions: list[Decision] = []
        reason = f"the power cap of pool {pool.name!r} leaves room"
        slowed = [
            job for name in self._slowed if (job := state.jobs.get(name)) is not None and job.pool is pool
        ]
        for job in sorted(slowed, key=lambda job: (job.start_time or 0.0, job.seq)):
            if job.status is not Status.RUNNING or self._not_before.get(job.id, -_INF) > state.now:
                continue
            before, drawn = self._slowed[job.id], meter.of(job.id)
            added = meter.added(job, job.placement, before)
            more = {name: watts - drawn.get(name, 0.0) for name, watts in added.items()}
            if not self._fits(more, meter.watts, state) or not waiting.isdisjoint(more):
                continue
            full = self._kind(job.placement, job, state).levels[0].frequency
            elapsed = state.now - (job.start_time or 0.0) - job.paused
            known = self._times.get(job.id)
            if known is not None:
                self._times[job.id] = _Time(elapsed, self._left(job, None, elapsed, state), 1.0, known.limit)
            hertz = before if before is not None else full
            meter.order(job, hertz)
            del self._slowed[job.id]
            self._counts["running_restored"] += 1
            decisions.append(SetFrequency(job.id, hertz, reason))
        return decisions
