"""Power cap: a pool never draws more than it may; starts are delayed or slowed.

What a pool draws is computed from the energy profile and what runs, not measured. The rules are ours
(A. Chandio et al. 2014 name power capping as what their frequency scaling is for, and do not specify
it):

- The cap of a pool is the smallest of ``watts``, those of the windows of day that are open, and that of
  the price of the hour. It is what all nodes of the pool draw together, idle ones too.
- A start that would exceed the cap is slowed to the fastest level at which it fits (``slow``), if that
  delays nothing that is booked or reserved; else it is delayed.
- What is delayed is not overtaken by later starts in its pool (``overtake: true`` lets them), so a job
  that needs much power is not starved. A job that the cap at all times could never hold, not even on the
  least powerful nodes at the slowest level with nothing else on the machine, is refused when it comes.
- When the cap falls below what is drawn, running jobs are slowed, the youngest first (``slow_running``),
  and their limits lengthened by the factor that they need. They get their frequency back, the oldest
  first, when there is room for it and nothing waits for the power. What cannot be saved so is drawn:
  no job is ended for a cap.
- Waking nodes count as what they draw then, and are woken only as far as the cap allows.

Windows are in the given time zone. Prices are a CSV file with a header and the columns ``time``
(ISO 8601, in that zone unless it says otherwise, or seconds since the epoch) and ``price``, in order of time.
"""

from __future__ import annotations

import csv
import datetime
import re
import zoneinfo
from bisect import bisect_right
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pydantic

from headway.decisions import Decision, PowerUp, SetFrequency, SetTimeLimit, Start
from headway.energy import EnergyModel
from headway.energy.meter import PowerMeter
from headway.errors import UserError
from headway.events import Event, JobEnded, JobRequeued, NodeUp
from headway.hookspecs import Plugin, hookimpl
from headway.model import NodeClass, NodeDescription
from headway.results import RunResult
from headway.state import Job, PoolState, State, Status

_INF = float("inf")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
_DAY = 86400.0


def _seconds(text: Any) -> float:
    """ "HH:MM" as seconds after midnight."""
    found = _CLOCK.fullmatch(str(text))
    if found is None:
        raise ValueError(f"a time of day such as '08:00', found {text!r}")
    return int(found[1]) * 3600.0 + int(found[2]) * 60.0


class _Window(pydantic.BaseModel):
    """From one time of day to another, over midnight if it ends before it begins."""

    model_config = pydantic.ConfigDict(extra="forbid", populate_by_name=True)

    begin: str = pydantic.Field(alias="from")
    end: str = pydantic.Field(alias="to")
    days: list[str] = list(_DAYS)
    watts: float = pydantic.Field(gt=0)

    @pydantic.field_validator("begin", "end")
    @classmethod
    def _clock(cls, value: str) -> str:
        _seconds(value)
        return value

    @pydantic.field_validator("days")
    @classmethod
    def _known(cls, value: list[str]) -> list[str]:
        for day in value:
            if day not in _DAYS:
                raise ValueError(f"days {', '.join(_DAYS)}, found {day!r}")
        return value

    def holds(self, moment: datetime.datetime) -> bool:
        """Whether the window, named by the day on which it begins, is open at this local time."""
        begin, end = _seconds(self.begin), _seconds(self.end)
        now = moment.hour * 3600.0 + moment.minute * 60.0 + moment.second + moment.microsecond / 1e6
        if begin < end:
            return begin <= now < end and _DAYS[moment.weekday()] in self.days
        if now >= begin:
            return _DAYS[moment.weekday()] in self.days
        return now < end and _DAYS[moment.weekday() - 1] in self.days


class _PriceCap(pydantic.BaseModel):
    """A cap that holds while the price is higher than this."""

    model_config = pydantic.ConfigDict(extra="forbid")

    above: float
    watts: float = pydantic.Field(gt=0)


class _Prices(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    file: Path
    caps: list[_PriceCap] = pydantic.Field(min_length=1)


class PowerCap(Plugin):
    """Keep the power of each pool under a cap."""

    needs_energy = True

    class Options(pydantic.BaseModel):
        """Caps in watts (or in the profile's relative unit)."""

        model_config = pydantic.ConfigDict(extra="forbid")

        #: The cap at all times; None: only those of windows and prices.
        watts: float | None = pydantic.Field(default=None, gt=0)
        #: Caps at all times of single pools.
        pools: dict[str, pydantic.PositiveFloat] = {}
        windows: list[_Window] = []
        prices: _Prices | None = None
        #: Of windows and of prices without one.
        timezone: str = "UTC"
        #: A start that would exceed the cap is tried at lower frequencies.
        slow: bool = True
        #: Running jobs are slowed when the cap falls.
        slow_running: bool = True
        #: Later starts may pass one that the cap delays.
        overtake: bool = False

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
        self._zone = zoneinfo.ZoneInfo(options.timezone)
        self._prices = read_prices(options.prices.file, self._zone) if options.prices is not None else []
        self._meter: PowerMeter | None = None
        #: Why a start of this step is delayed, by job.
        self._delayed: dict[str, str] = {}
        #: Jobs whose start was counted in the last step: another plugin may have taken it away since.
        self._begun: set[str] = set()
        #: Running jobs that we slowed -> the frequency that they had.
        self._slowed: dict[str, float | None] = {}
        self._planned: float = -_INF
        #: What the nodes of each pool draw at the least.
        self._idle: dict[str, float] = {}
        #: What the metrics tell.
        self._counts = {"starts_delayed": 0, "starts_slowed": 0, "running_slowed": 0, "running_restored": 0}
        self._above = 0.0
        self._last: float | None = None
        self._worst = 0.0

    # ------------------------------------------------------------------ hooks

    @hookimpl
    def startup(self, state: State, capabilities: frozenset[type[Decision]]) -> None:
        assert state.energy is not None
        for name in self.options.pools:
            if name not in state.pools:
                raise UserError(f"plugin 'power-cap': pools: no pool is called {name!r}")
        self._meter = PowerMeter(state.energy, state)
        self._can_slow = SetFrequency in capabilities
        self._can_limit = SetTimeLimit in capabilities

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if self._meter is None:
            return
        self._account(event.time, state)
        self._meter.observe(event)
        if isinstance(event, NodeUp):
            self._idle.clear()
        if isinstance(event, JobEnded | JobRequeued):
            self._slowed.pop(event.job_id, None)

    @hookimpl
    def admit_job(self, job: Job, state: State) -> str | None:
        if self._meter is None or state.energy is None:
            return None
        pool = job.pool.name
        cap = self._standing_cap(pool)
        if cap == _INF:
            return None
        least = self._least(job, state)
        if least <= cap:
            return None
        return f"it draws {least:.0f} W with its pool at the least, the power cap is {cap:.0f} W"

    @hookimpl
    def control(self, state: State) -> Iterable[Decision]:
        if self._meter is None:
            return []
        self._account(state.now, state)
        for job_id in self._begun:
            job = state.jobs.get(job_id)
            if job is None or job.entries is None:
                self._meter.end(job_id)
        self._begun.clear()
        self._plan_next_look(state)
        if not (self.options.slow_running and self._can_slow):
            return []
        decisions: list[Decision] = []
        for pool in state.pools.values():
            cap = self._cap(pool.name, state)
            if self._meter.watts[pool.name] > cap:
                decisions.extend(self._slow_down(pool, cap, state))
            elif self._slowed:
                decisions.extend(self._speed_up(pool, cap, state))
        return decisions

    @hookimpl
    def revise(self, decisions: list[Decision], state: State) -> list[Decision] | None:
        self._delayed.clear()
        if self._meter is None:
            return None
        closed: set[str] = set()
        revised: list[Decision] = []
        for decision in decisions:
            if isinstance(decision, Start):
                decision = self._capped(decision, state, closed)
            elif isinstance(decision, PowerUp):
                awake = self._affordable(decision, state)
                if awake is None:
                    continue
                decision = awake
            revised.append(decision)
            if isinstance(decision, Start) and decision.frequency is not None:
                revised.extend(self._lengthened(decision, state, decisions))
        return revised

    @hookimpl
    def veto(self, decision: Decision) -> str | None:
        return self._delayed.get(decision.job_id) if isinstance(decision, Start) else None

    @hookimpl
    def register_metrics(self) -> dict[str, Callable[[RunResult], Any]]:
        return {"power-cap": self._figures}

    def _figures(self, result: RunResult) -> dict[str, Any]:
        return {**self._counts, "seconds_above_cap": self._above, "most_watts_above_cap": self._worst}

    # ------------------------------------------------------------------ the cap

    def _cap(self, pool: str, state: State, at: float | None = None) -> float:
        """Watts that the pool may draw at ``at`` (default: now)."""
        options = self.options
        caps = [options.pools.get(pool, options.watts if options.watts is not None else _INF)]
        moment = (state.now if at is None else at) + state.epoch
        if options.windows:
            local = datetime.datetime.fromtimestamp(moment, self._zone)
            caps += [window.watts for window in options.windows if window.holds(local)]
        if options.prices is not None:
            index = bisect_right(self._prices, (moment, _INF)) - 1
            if index >= 0:
                price = self._prices[index][1]
                caps += [cap.watts for cap in options.prices.caps if price > cap.above]
        return min(caps)

    def _standing_cap(self, pool: str) -> float:
        """The cap that is left when no window is open and the price is low."""
        options = self.options
        return options.pools.get(pool, options.watts if options.watts is not None else _INF)

    def _least(self, job: Job, state: State) -> float:
        """What the pool draws at the least while the job runs in it."""
        model = state.energy
        assert model is not None
        slowed = self.options.slow and self._can_slow

        def added(kind: NodeClass) -> float:
            frequency = kind.levels[-1].frequency if slowed else None
            return model.busy_power(kind, frequency) - kind.idle_power

        if job.pool.flat:
            kind = model.class_of_pool(job.pool.name)
            return job.pool.description.processors * kind.idle_power + job.processors * added(kind)
        nodes = [n for n in state.nodes.descriptions.values() if job.pool.name in n.pools]
        kinds = {model.class_of(node.name).name: model.class_of(node.name) for node in nodes}
        on = self._idle_least(job.pool.name, nodes, model)
        return on + job.processors * min((added(kind) for kind in kinds.values()), default=0.0)

    def _idle_least(self, pool: str, nodes: list[NodeDescription], model: EnergyModel) -> float:
        """What the nodes of a pool draw beside their jobs, if all that can sleep do."""
        if pool not in self._idle:
            self._idle[pool] = sum(
                min(model.idle_node(node), model.node_power(node, "asleep")) for node in nodes
            )
        return self._idle[pool]

    def _plan_next_look(self, state: State) -> None:
        """Have a step come when a window opens or closes, or the price changes."""
        if self._planned > state.now:
            return
        moment = state.now + state.epoch
        due = _INF
        if self.options.windows:
            midnight = datetime.datetime.fromtimestamp(moment, self._zone).replace(
                hour=0, minute=0, second=0, microsecond=0
            )
            for window in self.options.windows:
                for clock in (window.begin, window.end):
                    for days in (0, 1):
                        day = midnight + datetime.timedelta(days=days)
                        hour, minute = map(int, clock.split(":"))
                        edge = day.replace(hour=hour, minute=minute).timestamp()
                        if edge > moment:
                            due = min(due, edge)
        index = bisect_right(self._prices, (moment, _INF))
        if index < len(self._prices):
            due = min(due, self._prices[index][0])
        if due != _INF:
            self._planned = due - state.epoch
            for pool in state.pools.values():
                state.wake_at(self._planned, pool)

    def _account(self, now: float, state: State) -> None:
        """Count the time that a pool is above its cap."""
        if self._last is not None and self._meter is not None and now > self._last:
            for name, watts in self._meter.watts.items():
                over = watts - self._cap(name, state, self._last)
                if over > 1e-6:
                    self._above += now - self._last
                    self._worst = max(self._worst, over)
        self._last = now if self._last is None else max(self._last, now)

    # ------------------------------------------------------------------ starts

    def _capped(self, start: Start, state: State, closed: set[str]) -> Start:
        """The start as the cap allows it; one that it does not allow is noted for the veto."""
        assert self._meter is not None
        job = state.jobs.get(start.job_id)
        if job is None:
            return start
        pool = job.pool.name
        if pool in closed:
            self._delay(job, f"the power cap of pool {pool!r} delays an earlier job")
            return start
        frequency = self._fitting(start, job, state)
        if frequency is _NONE:
            cap = self._cap(pool, state)
            drawn = self._meter.watts[pool]
            self._delay(
                job, f"power cap of pool {pool!r}: {drawn:.0f} W are drawn of {cap:.0f} W, too little is left"
            )
            if not self.options.overtake:
                closed.add(pool)
            return start
        if frequency != start.frequency:
            assert isinstance(frequency, float)
            self._counts["starts_slowed"] += 1
            said = f"at {frequency / 1e9:.2f} GHz under the power cap"
            reason = f"{start.reason}; {said}" if start.reason else said
            start = msgspec.structs.replace(start, frequency=frequency, reason=reason)
        self._meter.begin(job, start.placement, start.frequency)
        self._begun.add(job.id)
        return start

    def _delay(self, job: Job, reason: str) -> None:
        self._delayed[job.id] = reason
        self._counts["starts_delayed"] += 1

    def _fits(self, added: dict[str, float], state: State) -> bool:
        assert self._meter is not None
        return all(
            self._meter.watts[pool] + watts <= self._cap(pool, state) + 1e-6
            for pool, watts in added.items()
            if pool in self._meter.watts and watts > 0
        )

    def _fitting(self, start: Start, job: Job, state: State) -> Any:
        """The fastest frequency, not above the start's own, that the cap allows; ``_NONE`` if none is."""
        assert self._meter is not None and state.energy is not None
        if self._fits(self._meter.added(job, start.placement, start.frequency), state):
            return start.frequency
        if not (self.options.slow and self._can_slow) or job.pool.view is None:
            return _NONE
        now_rate = self._rate(job, start, start.frequency, state)
        for level in self._kind(start, job, state).levels[1:]:
            if start.frequency is not None and level.frequency >= start.frequency:
                continue
            if self._fits(self._meter.added(job, start.placement, level.frequency), state):
                factor = now_rate / self._rate(job, start, level.frequency, state)
                if job.pool.view.stretch(job, job.expected_runtime * factor):
                    return level.frequency
                return _NONE
        return _NONE

    def _kind(self, start: Start, job: Job, state: State) -> NodeClass:
        assert state.energy is not None
        placement = start.placement or job.placement
        return (
            state.energy.class_of(placement[0][0]) if placement else state.energy.class_of_pool(job.pool.name)
        )

    def _rate(self, job: Job, start: Start, frequency: float | None, state: State) -> float:
        assert state.energy is not None
        return state.energy.job_rate(job.description, start.placement, job.pool.name, frequency)

    def _lengthened(self, start: Start, state: State, decisions: list[Decision]) -> list[Decision]:
        """The limit that a start slowed by the cap needs, unless somebody sees to it already."""
        job = state.jobs.get(start.job_id)
        if job is None or not self._can_limit or start.job_id in self._delayed:
            return []
        if any(isinstance(d, SetTimeLimit) and d.job_id == job.id for d in decisions):
            return []
        if any(
            isinstance(d, Start) and d.job_id == job.id and d.frequency == start.frequency for d in decisions
        ):
            return []
        factor = self._rate(job, start, None, state) / self._rate(job, start, start.frequency, state)
        return [SetTimeLimit(job.id, job.estimate * factor, "its frequency is lowered by the power cap")]

    def _affordable(self, decision: PowerUp, state: State) -> PowerUp | None:
        """The nodes of these that may wake under the cap; None: none."""
        assert self._meter is not None and state.energy is not None
        kept = []
        drawn = dict(self._meter.watts)
        for name in decision.nodes:
            node = state.nodes.descriptions.get(name)
            if node is None:
                continue
            power = state.nodes.power.get(name, "on")
            waking = max(state.energy.node_power(node, "waking"), state.energy.idle_node(node))
            more = waking - state.energy.node_power(node, power)
            if all(drawn[p] + more <= self._cap(p, state) for p in node.pools if p in drawn):
                kept.append(name)
                for pool in node.pools:
                    if pool in drawn:
                        drawn[pool] += more
        if not kept:
            return None
        return decision if len(kept) == len(decision.nodes) else PowerUp(
            tuple(kept), f"{decision.reason}; the power cap allows {len(kept)} of {len(decision.nodes)}"
        )  # fmt: skip

    # ------------------------------------------------------------------ running jobs

    def _running(self, pool: PoolState) -> list[Job]:
        """Jobs that run in the pool, the oldest first."""
        jobs = [entry[3] for entry in pool.running if entry[3].status is Status.RUNNING]
        return sorted(jobs, key=lambda job: (job.start_time, job.seq))

    def _slow_down(self, pool: PoolState, cap: float, state: State) -> list[Decision]:
        assert self._meter is not None
        decisions: list[Decision] = []
        for job in reversed(self._running(pool)):
            if self._meter.watts[pool.name] <= cap:
                break
            before = job.frequency
            kind = self._kind(Start(job.id, job.placement), job, state)
            slower = [x.frequency for x in kind.levels[1:] if before is None or x.frequency < before]
            if not slower:
                continue
            chosen = slower[-1]
            for hertz in slower:
                self._meter.begin(job, job.placement, hertz)
                if self._meter.watts[pool.name] <= cap:
                    chosen = hertz
                    break
            self._slowed.setdefault(job.id, before)
            self._counts["running_slowed"] += 1
            decisions.append(
                SetFrequency(job.id, chosen, f"the power cap of pool {pool.name!r} is {cap:.0f} W")
            )
            decisions.extend(self._more_time(job, before, chosen, state))
        return decisions

    def _more_time(self, job: Job, before: float | None, after: float, state: State) -> list[Decision]:
        """The limit that the rest of a run needs at its new rate."""
        if not self._can_limit or job.start_time is None:
            return []
        start = Start(job.id, job.placement)
        factor = self._rate(job, start, before, state) / self._rate(job, start, after, state)
        elapsed = state.now - job.start_time - job.paused
        left = job.estimate - elapsed
        if left <= 0 or factor <= 1:
            return []
        return [SetTimeLimit(job.id, elapsed + left * factor, "its frequency is lowered by the power cap")]

    def _speed_up(self, pool: PoolState, cap: float, state: State) -> list[Decision]:
        """Give slowed jobs their frequency back as far as the cap allows and nobody waits for the power."""
        assert self._meter is not None
        if pool.queue:
            return []
        decisions: list[Decision] = []
        for job in self._running(pool):
            if job.id not in self._slowed:
                continue
            before = self._slowed[job.id]
            now_drawn = self._meter.of(job.id)
            added = self._meter.added(job, job.placement, before)
            more = {name: watts - now_drawn.get(name, 0.0) for name, watts in added.items()}
            if not self._fits(more, state):
                continue
            kind = self._kind(Start(job.id, job.placement), job, state)
            hertz = before if before is not None else kind.levels[0].frequency
            self._meter.begin(job, job.placement, before)
            del self._slowed[job.id]
            self._counts["running_restored"] += 1
            decisions.append(SetFrequency(job.id, hertz, f"the power cap of pool {pool.name!r} leaves room"))
        return decisions


#: No frequency is low enough.
_NONE: Any = object()


def read_prices(path: Path, zone: zoneinfo.ZoneInfo) -> list[tuple[float, float]]:
    """``(seconds since the epoch, price)`` in order of time. Raises :class:`UserError`."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            if rows.fieldnames is None or not {"time", "price"} <= set(rows.fieldnames):
                raise UserError(
                    f"{path}, line 1: expected the columns time and price, found {rows.fieldnames}"
                )
            prices: list[tuple[float, float]] = []
            for row in rows:
                where = f"{path}, line {rows.line_num}"
                moment = _moment(row["time"], zone, where)
                try:
                    price = float(row["price"])
                except (TypeError, ValueError):
                    raise UserError(f"{where}: expected a price, found {row['price']!r}") from None
                if prices and moment <= prices[-1][0]:
                    raise UserError(f"{where}: expected times that rise, found {row['time']}")
                prices.append((moment, price))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"plugin 'power-cap': prices: {path} cannot be read: {error}") from error
    if not prices:
        raise UserError(f"{path}: expected prices, found none")
    return prices


def _moment(text: str | None, zone: zoneinfo.ZoneInfo, where: str) -> float:
    try:
        return float(text or "")
    except ValueError:
        pass
    try:
        moment = datetime.datetime.fromisoformat(text or "")
    except ValueError:
        raise UserError(f"{where}: expected a time (ISO 8601, or seconds), found {text!r}") from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).timestamp()
