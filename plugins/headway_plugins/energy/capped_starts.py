"""Whether a start fits under the caps of its pools, as it is or slowed, and why it does not."""

from __future__ import annotations

from collections.abc import Iterable

from headway.decisions import Start
from headway.state import Job, State
from headway_plugins.energy.meter import PowerMeter
from headway_plugins.energy.pool_caps import ROUNDING, PoolCaps, factor_of, kind_of


class CappedStarts:
    """Starts under the caps."""

    def __init__(self, caps: PoolCaps, meter: PowerMeter, slow: bool) -> None:
        """``slow``: a start that would exceed the cap may be slowed."""
        self._caps = caps
        self._meter = meter
        self._slow = slow and caps.can_slow

    def pools_of(self, start: Start, job: Job) -> Iterable[str]:
        """The pools in which a start draws power: all that have its nodes."""
        return self._meter.added(job, start.placement, start.frequency)

    def too_little(self, start: Start, job: Job, state: State) -> str:
        """The pool that has too little power left for a start."""
        added, drawn = self._added_at_least(start, job, state), self._meter.watts
        return next(
            (pool for pool, watts in added.items() if not self._caps.fits({pool: watts}, drawn, state)),
            job.pool.name,
        )

    def fits_alone(self, start: Start, job: Job, state: State) -> bool:
        """Whether the cap of the hour could hold the job if nothing else ran."""
        return self._caps.fits(self._added_at_least(start, job, state), self._meter.base, state)

    def _added_at_least(self, start: Start, job: Job, state: State) -> dict[str, float]:
        """What the job adds to pools there, as slow as we may make it."""
        frequency = start.frequency
        if self._slow:
            frequency = self._slowest(start, job, state)
        return self._meter.added(job, start.placement, frequency)

    def _slowest(self, start: Start, job: Job, state: State) -> float:
        return kind_of(start.placement, job, state).levels[-1].frequency

    def why_not_alone(self, start: Start, job: Job, state: State) -> str:
        """What a job needs that the cap of the hour could not hold even if nothing else ran."""
        base, added = self._meter.base, self._added_at_least(start, job, state)
        name = next(
            (pool for pool, watts in added.items() if not self._caps.fits({pool: watts}, base, state)),
            job.pool.name,
        )
        cap, highest = self._caps.of(name, state), self._caps.highest(name, state)
        watts = base.get(name, 0.0) + added.get(name, 0.0)
        said = f"power cap of pool {name!r}: alone with its idle nodes it needs {watts:.0f} W of {cap:.0f} W"
        if watts > highest * (1 + ROUNDING):
            said += f", and the cap is never above {highest:.0f} W"
        if not self._slow and self._caps.can_slow:
            slowed = self._meter.added(job, start.placement, self._slowest(start, job, state))
            if self._caps.fits(slowed, base, state):
                said += "; at a lower frequency the job would fit, which slow: false forbids"
        return said

    def fitting(self, start: Start, job: Job, state: State) -> tuple[bool, float | None]:
        """Whether the start may be, and the fastest of the frequencies up to its own that the cap allows."""
        meter = self._meter
        if self._caps.fits(meter.added(job, start.placement, start.frequency), meter.watts, state):
            return True, start.frequency
        if not (self._slow) or job.domain.view is None:
            return False, None
        for level in kind_of(start.placement, job, state).levels[1:]:
            if start.frequency is not None and level.frequency >= start.frequency:
                continue
            if self._caps.fits(meter.added(job, start.placement, level.frequency), meter.watts, state):
                factor = factor_of(job, start.placement, start.frequency, level.frequency, state)
                # A slower level only takes longer. If it had to wait for jobs booked behind it, it would wait
                # for ever.
                may = job.domain.view.stretch(job, job.expected_runtime * factor, push=True)
                return may, level.frequency
        return False, None
