"""DVFS: run each job in the least powerful node class and at the lowest frequency that meet its deadline.

A. Chandio, K. Bilal, N. Tziritas, Z. Yu, Q. Jiang, S. Khan, C. Xu: A comparative study on resource
allocation and energy efficient job scheduling strategies in large-scale parallel computing systems.
Cluster Computing, 2014, Algorithm 1: with the orders of the queue it gives SJF-EE, LJF-EE (a strict
rule) and LJFFF-EE (a greedy one). For each job, class by class in the profile's order and level by
level from the slowest, the first that has enough free nodes and whose estimated time for completion
(ETC, the job's work over the speed of that class at that level) meets the deadline is taken.

Decisions on what the paper leaves open:

- A deadline is a time that the run may take, compared with the ETC from its start, as in the paper;
  ``from: submit`` counts the waiting as well.
- ``deadlines: random`` is the paper's: drawn uniformly between the job's times on the fastest class at
  full speed and on the slowest class at its slowest level, by ``seed``, else the run's, and the job's id.
  ``deadlines: slack``, the default, is ``slack`` times the job's expected runtime. A job's own
  attribute ``deadline`` (absolute seconds) goes before both.
- A job runs within a single class. Only classes that are large enough for it are looked at; a job that is
  larger than every class is placed on the first nodes that there are. So this is a placement: of several
  placements, such as ``first-fit``, the first in the configuration decides.
- A job whose deadline no class can meet runs on the fastest class at full speed, and counts as missed.
- A lower frequency makes the run longer: it is only chosen if that delays nothing that is booked or
  reserved, and the job's limit is lengthened by the same factor (``limits: keep`` leaves it).
- A job keeps the level that it started with.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import msgspec
import numpy as np
import pydantic

from headway.decisions import Decision, SetFrequency, SetTimeLimit, Start
from headway.events import Event, JobChanged, JobEnded, JobRequeued, JobStarted, NodeUp, PoolChanged
from headway.hookspecs import Plugin, hookimpl
from headway.model import NodeClass, Placement
from headway.plugins import Again, Traits
from headway.resources import Offer
from headway.results import RunResult
from headway.state import Job, State

#: The attribute of a job that has a deadline of its own: absolute seconds.
DEADLINE = "deadline"


class Dvfs(Plugin):
    """Choose node class and frequency by deadline."""

    traits = Traits(
        needs=(SetFrequency, SetTimeLimit),
        observes=(JobStarted, JobEnded, JobRequeued, JobChanged, NodeUp, PoolChanged),
        requires=frozenset({"energy"}),
        ask_again=Again.DOMAIN,
        paper=(
            "A. Chandio et al.: A comparative study on resource allocation and energy efficient job "
            "scheduling strategies in large-scale parallel computing systems, 2014"
        ),
    )

    class Options(pydantic.BaseModel):
        """How long jobs may take."""

        model_config = pydantic.ConfigDict(extra="forbid", populate_by_name=True)

        deadlines: Literal["slack", "random"] = pydantic.Field(
            default="slack", description="multiple of the expected runtime, or a draw as in the paper"
        )
        slack: float = pydantic.Field(
            default=1.3,
            ge=1,
            le=100,
            description="largest factor by which a job may take longer than its expected runtime",
        )
        since: Literal["start", "submit"] = pydantic.Field(
            default="start", alias="from", description="the moment from which the time to the deadline counts"
        )
        lowest: int | None = pydantic.Field(
            default=None,
            ge=0,
            description="the slowest level that is used, where 0 is the fastest; null: every level",
        )
        limits: Literal["extend", "keep"] = pydantic.Field(
            default="extend", description="whether a slowed job's time limit is lengthened"
        )
        seed: int | None = pydantic.Field(
            default=None, ge=0, description="seed of the deadlines that are drawn; null: the run's seed"
        )

    def __init__(self, options: Options | None = None) -> None:
        super().__init__(options or Dvfs.Options())
        self.traits = replace(self.traits, same_answer=self._class_names)
        self._state: State | None = None
        self._seed = 0
        #: Pool -> class -> its nodes as a mask, and how many processors they have.
        self._masks: dict[str, list[tuple[NodeClass, np.ndarray, int]]] = {}
        #: Job -> seconds that its run may take (from its start), where that is drawn.
        self._drawn: dict[str, float] = {}
        #: Job -> expected runtime and estimate before its limit was lengthened, and the limit since.
        self._before: dict[str, tuple[float, float, float]] = {}
        #: Jobs whose start was decided -> seconds that the run may take, and the number of its level.
        self._chosen: dict[str, tuple[float, int]] = {}
        #: Running job -> when its run must end (absolute seconds).
        self._due: dict[str, float] = {}
        #: Starts of this step that a slow class would let run into what is kept for other jobs.
        self._too_long: dict[str, str] = {}
        self._levels: dict[int, int] = {}
        self._missed = 0
        self._met = 0

    # ------------------------------------------------------------------ hooks

    @hookimpl
    def startup(self, state: State) -> None:
        self._state = state
        self._seed = state.seed if self.options.seed is None else self.options.seed

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return {
            "before": {job: list(values) for job, values in self._before.items()},
            "due": dict(self._due),
        }

    @hookimpl
    def restore(self, saved: dict[str, Any]) -> None:
        for job, (runtime, estimate, limit) in saved["before"].items():
            self._before[job] = (runtime, estimate, limit)
        self._due.update(saved["due"])

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if isinstance(event, JobStarted):
            chosen = self._chosen.pop(event.job_id, None)
            if chosen is not None:
                allowed, level = chosen
                self._due[event.job_id] = event.time + allowed
                self._levels[level] = self._levels.get(level, 0) + 1
        elif isinstance(event, JobEnded):
            for about in (self._drawn, self._before, self._chosen):
                about.pop(event.job_id, None)
            due = self._due.pop(event.job_id, None)
            if due is not None and event.outcome in ("completed", "timed out"):
                met = event.outcome == "completed" and event.time <= due * (1 + 1e-12) + 1e-6
                self._met += met
                self._missed += not met
        elif isinstance(event, JobRequeued):
            self._due.pop(event.job_id, None)
        elif isinstance(event, NodeUp | PoolChanged):
            self._masks.clear()
        elif isinstance(event, JobChanged):
            before = self._before.get(event.job.id)
            if before is not None and abs(event.job.request.walltime - before[2]) > 60:
                # Its limit was changed without headway, so that is its estimate now.
                del self._before[event.job.id]

    def _class_names(self, job: Job) -> tuple[str, ...]:
        """The classes that a job may run in: they decide where it finds a place, beside its shape."""
        return tuple(kind.name for kind, _ in self._acceptable(job))

    @hookimpl
    def place(self, job: Job, offer: Offer) -> Placement | None:
        acceptable = self._acceptable(job)
        if not acceptable:
            return offer.take(offer.feasible)
        for _, mask in acceptable:
            placement = offer.take(offer.feasible[mask[offer.feasible]])
            if placement is not None:
                return placement
        return ()

    @hookimpl
    def revise(self, decisions: list[Decision], state: State) -> list[Decision] | None:
        self._too_long.clear()
        revised: list[Decision] = []
        for decision in decisions:
            if isinstance(decision, Start) and decision.frequency is None:
                revised.extend(self._slowed(decision, state))
            else:
                revised.append(decision)
        return revised

    @hookimpl
    def veto(self, decision: Decision) -> str | None:
        return self._too_long.get(decision.job_id) if isinstance(decision, Start) else None

    @hookimpl
    def decided(self, decisions: Sequence[Decision]) -> None:
        # Another plugin may have slowed a start further: that limit is ours as well.
        limits = {d.job_id: d.walltime for d in decisions if isinstance(d, SetTimeLimit)}
        for decision in decisions if limits else ():
            if isinstance(decision, Start) and decision.job_id in self._before:
                runtime, estimate, limit = self._before[decision.job_id]
                limit = limits.get(decision.job_id, limit)
                self._before[decision.job_id] = (runtime, estimate, limit)

    @hookimpl
    def register_metrics(self) -> dict[str, Callable[[RunResult], Any]]:
        return {"dvfs": self._figures}

    def _figures(self, result: RunResult) -> dict[str, Any]:
        return {
            "starts_by_level": {str(level): count for level, count in sorted(self._levels.items())},
            "deadlines_met": self._met,
            "deadlines_missed": self._missed,
        }

    # ------------------------------------------------------------------ deadlines

    def _runtime(self, job: Job) -> float:
        """How long the job is expected to run on the machine that its estimate is for."""
        return self._before[job.id][0] if job.id in self._before else job.expected_runtime

    def _allowed(self, job: Job, now: float) -> float:
        """Seconds that the job's run may take if it starts now."""
        own = job.attribute(DEADLINE)
        if isinstance(own, int | float):
            return float(own) - now
        if self.options.deadlines == "slack":
            allowed = self.options.slack * self._runtime(job)
        else:
            allowed = self._random(job)
        return allowed if self.options.since == "start" else job.submit_time + allowed - now

    def _random(self, job: Job) -> float:
        allowed = self._drawn.get(job.id)
        if allowed is None:
            model = self._model
            rates = [
                model.rate(kind, level.frequency, model.sensitivity(job.description))
                for kind in model.profile.classes
                for level in kind.levels
            ]
            share = random.Random(f"{self._seed}/{job.id}").random()
            shortest, longest = 1 / max(rates), 1 / min(rates)
            allowed = self._runtime(job) * (shortest + share * (longest - shortest))
            self._drawn[job.id] = allowed
        return allowed

    # ------------------------------------------------------------------ classes and levels

    @property
    def _model(self) -> Any:
        assert self._state is not None and self._state.energy is not None
        return self._state.energy

    def _acceptable(self, job: Job) -> list[tuple[NodeClass, np.ndarray]]:
        """The classes, in the order in which they are tried, that can hold the job and meet its deadline."""
        large = [(kind, mask) for kind, mask, size in self._classes(job.pool.name) if size >= job.processors]
        if not large:
            return []
        allowed = self._allowed(job, self._now)
        runtime = self._runtime(job)
        # A little more than the time itself, so that rounding does not forbid what just fits.
        enough = [(k, mask) for k, mask in large if runtime <= allowed * k.speed * (1 + 1e-9)]
        return enough or [max(large, key=lambda entry: entry[0].speed)]

    @property
    def _now(self) -> float:
        assert self._state is not None
        return self._state.now

    def _classes(self, pool: str) -> list[tuple[NodeClass, np.ndarray, int]]:
        found = self._masks.get(pool)
        if found is None:
            assert self._state is not None
            table = self._state.nodes
            inside = table.pool_mask(pool)
            found = []
            for kind in self._model.profile.classes:
                mask = np.zeros(len(table.total), np.bool_)
                mask[[table.index[name] for name in table.names if self._model.class_of(name) is kind]] = True
                mask &= inside
                if mask.any():
                    found.append((kind, mask, int(table.total[mask].sum())))
            self._masks[pool] = found
        return found

    def _frequencies(self, start: Start, job: Job) -> Iterator[tuple[int, float]]:
        """The levels of the job's nodes, slowest first, without the fastest: ``(number, hertz)``."""
        kind = self._kind(start, job)
        lowest = len(kind.levels) - 1
        if self.options.lowest is not None:
            lowest = min(lowest, self.options.lowest)
        for number in range(lowest, 0, -1):
            yield number, kind.levels[number].frequency

    def _kind(self, start: Start, job: Job) -> NodeClass:
        if not start.placement:
            return self._model.class_of_pool(job.pool.name)
        return self._model.class_of(start.placement[0][0])

    def _slowed(self, start: Start, state: State) -> list[Decision]:
        """The start at the slowest level that meets the deadline, and the limit that this needs."""
        job = state.jobs.get(start.job_id)
        view = job.domain.view if job is not None else None
        if job is None or view is None:
            return [start]
        model, pool = self._model, job.pool.name
        runtime, allowed = self._runtime(job), self._allowed(job, state.now)
        for number, hertz in self._frequencies(start, job):
            rate = model.job_rate(job.description, start.placement, pool, hertz)
            if runtime / rate <= allowed * (1 + 1e-9) and view.stretch(job, runtime / rate):
                full = model.job_rate(job.description, start.placement, pool, None)
                power = model.job_power(start.placement, pool, job.processors, hertz)
                fastest = model.job_power(start.placement, pool, job.processors, None)
                saved = 1 - power * full / (fastest * rate) if fastest else 0.0
                self._chosen[job.id] = (allowed, number)
                said = (
                    f"at {hertz / 1e9:.2f} GHz, which saves {saved:.0%} of its energy and takes "
                    f"{full / rate:.2f} times as long"
                )
                reason = f"{start.reason}; {said}" if start.reason else said
                slowed = msgspec.structs.replace(start, frequency=hertz, reason=reason)
                return [slowed, *self._longer_limit(job, rate)]
        rate = model.job_rate(job.description, start.placement, pool, None)
        self._chosen[job.id] = (allowed, 0)
        if rate != 1.0 and not view.stretch(job, runtime / rate, push=True):
            self._too_long[job.id] = (
                "on nodes of this class the job would run into what is reserved for other jobs"
            )
        return [start, *self._longer_limit(job, rate)]

    def _longer_limit(self, job: Job, rate: float) -> list[Decision]:
        """The limit that a run at this rate needs, if that is another than it has."""
        if self.options.limits == "keep":
            return []
        before = self._before.get(job.id)
        estimate = before[1] if before is not None else job.estimate
        limit = max(estimate, estimate / rate)
        if limit == job.estimate or abs(limit - job.estimate) < 1e-6 * limit:
            return []
        self._before[job.id] = (self._runtime(job), estimate, limit)
        return [SetTimeLimit(job.id, limit, "its frequency is lower than its estimate is for")]
