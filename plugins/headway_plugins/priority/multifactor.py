"""The order of the queue by a weighted sum of factors.

After Slurm's page "Multifactor Priority Plugin" (slurm.schedmd.com/priority_multifactor.html)::

    priority = sum of weight x factor - nice

Each factor is a function of jobs with values in 0..1 that some plugin registered (hook
``register_factors``). Here are ``age``, ``size``, ``pool``, ``qos``, ``expansion``, ``deadline``, ``bypass``
and ``resource:NAME``; fair share comes from a plugin of its own (``fair-tree``, ``classic``, ``windows``),
and a site may register more.

The plugin computes the priorities of all jobs in queues anew, at once, in the first cycle after each
``period``. It computes the priority of a new or changed job in the cycle that sees the job. A job may have
waited elsewhere meanwhile (behind a limit, for another job): its priority is computed when it comes into its
queue. So other cycles cost nothing. Age, expansion and deadline are then taken at the time at which all
priorities were computed, so that the priorities in a queue compare: a job that is seen later would else be
older than a job that came before it. Where a pool's queue has a single job no order is needed, and none is
computed. Between events nothing is computed: nothing can start then.

Decisions on what is left open:

- Other plugins find the sum among the factors, as ``priority``: of a running job, too, as if it still waited.
- Jobs of equal priority are served by submission time, then by order of arrival.
- ``nice`` is the job's attribute of that name, with weight 1, as in Slurm.
- ``bypass`` (Maui): how many jobs behind it in its queue were started before it, over ``max_bypass``, at
  most 1.
- ``sticky``: the job with its pool's first booking keeps the first place as long as it would be among the
  first so many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
import pydantic

from headway.decisions import Decision, Start
from headway.errors import UserError, nearest
from headway.events import Event, SitePolicyChanged
from headway.hookspecs import hookimpl
from headway.model import SitePolicy
from headway.model.questions import Question
from headway.plugins import Traits
from headway.state import Domain, Factor, Job, State, Status
from headway_plugins.accounts.options import OrFromSlurm, Seconds, Weight, is_from_slurm, required
from headway_plugins.accounts.tree import Floats
from headway_plugins.priority import factors
from headway_plugins.priority.reports import PRIORITY, JobPriority, Priorities, Wanted
from headway_plugins.priority.waiting import WAITS, waiting_page

_RESOURCE = "resource:"
_Signed = Annotated[float, pydantic.Field(ge=-1e12, le=1e12, allow_inf_nan=False)]
#: New jobs of queues that need no order, at which the list of them is looked through first.
_MANY = 1000
#: So many jobs are weighed one at a time, which takes less than arrays do.
_FEW = 4
#: The key of a job of which nothing is computed yet.
_BEHIND = (2, 0.0)
#: A factor of a single job.
One = Callable[[Job, State], float]


class MultifactorOptions(pydantic.BaseModel):
    """Options of the weighted sum of factors."""

    model_config = pydantic.ConfigDict(extra="forbid")

    weights: Annotated[dict[str, _Signed], OrFromSlurm] = pydantic.Field(
        default={"age": 1.0},
        description="factor -> weight; from-slurm: the running Slurm's weights, with its QOS, partitions "
        "and times where no option names them",
    )
    period: Seconds = pydantic.Field(
        default=300.0, description="seconds between two computations of all priorities"
    )
    max_age: Seconds = pydantic.Field(default=7 * 86400.0, description="wait at which the factor age is 1")
    favour: Literal["large", "small"] = pydantic.Field(
        default="large", description="whether the factor size grows or falls with a job's size"
    )
    size: Literal["machine", "time"] = pydantic.Field(
        default="machine",
        description="measure of a job's size: its share of the machine, or its processors over the minutes "
        "of its limit",
    )
    pools: dict[str, Weight] = pydantic.Field(default={}, description="pool -> its priority, on any scale")
    qos: dict[str, Weight] = pydantic.Field(default={}, description="QOS -> its priority, on any scale")
    max_bypass: int = pydantic.Field(
        default=100, ge=1, description="number of overtakings at which the factor bypass is 1"
    )
    deadline_horizon: Seconds = pydantic.Field(
        default=86400.0, description="time before a job must start during which the factor deadline rises"
    )
    sticky: int = pydantic.Field(
        default=0, ge=0, le=1_000_000,
        description="the first booked job stays first while it is among this many jobs at the head of the "
                    "queue; 0: off",
    )  # fmt: skip

    @pydantic.field_validator("weights")
    @classmethod
    def _some(cls, value: dict[str, float]) -> dict[str, float]:
        if not value:
            raise ValueError("at least one factor with its weight, found none")
        return value


class Multifactor:
    """The queue in the order of a weighted sum of factors: age, fair share, size, QOS and others."""

    Options = MultifactorOptions

    def __init__(self, options: MultifactorOptions | None = None) -> None:
        self.options = options = options if options is not None else MultifactorOptions()
        #: Whether the weights are the running batch system's.
        self._from_slurm = is_from_slurm(options.weights)
        self.traits = Traits(
            requires=required(options.weights), observes=(SitePolicyChanged,) if self._from_slurm else ()
        )
        said = {} if self._from_slurm else options.weights
        self._weights = {name: weight for name, weight in said.items() if weight}
        #: Jobs that waited for other jobs -> until when, as an earlier run saw it.
        self._independent: dict[str, float] = {}
        #: Jobs that waited for other jobs when the run before was saved, until it is known which still do.
        self._awaited: set[str] = set()
        self._state: State | None = None
        #: The time at which the factors are told that change with it.
        self._moment = factors.Moment()
        #: The factors that are here, as the options or the batch system want them.
        self._own = self._made(options, said)
        #: As other plugins find them.
        self._registered: dict[str, Factor] = {}
        #: The weighted factors that can be other than 0, and of a single job; None: to be looked up again.
        self._terms: list[tuple[float, Factor]] | None = None
        self._single: list[tuple[float, One]] | None = None
        #: While jobs get their places: their keys.
        self._keys: dict[str, tuple[int, float]] = {}
        #: Jobs whose priority is not computed yet.
        self._new: dict[str, Job] = {}
        #: When so many are there, it is looked which of them still wait.
        self._many = _MANY
        self._period: float = options.period
        #: When all are computed anew.
        self._due = -np.inf
        #: When all were computed last.
        self._weighed = -np.inf
        #: Jobs that keep the first place of their pools.
        self._kept: set[str] = set()
        #: How many jobs behind it were started before a job.
        self._bypassed: dict[str, int] = {}
        self._told: set[str] = set()
        #: What was said of the batch system's weights as they are now.
        self._noted: set[str] = set()

    def _made(self, options: MultifactorOptions, weights: Iterable[str]) -> dict[str, Factor]:
        found: dict[str, Factor] = {
            "age": factors.Age(options.max_age, self._independent, self._moment),
            "size": factors.Size(options.favour, options.size),
            "pool": factors.listed(options.pools, lambda job: job.pool.name),
            "qos": factors.listed(options.qos, lambda job: job.description.qos),
            "expansion": factors.expansion(self._moment),
            "deadline": factors.deadline(options.deadline_horizon, self._moment),
            "bypass": self._bypass,
        }
        for name in weights:
            if name.startswith(_RESOURCE):
                found[name] = factors.resource(name.removeprefix(_RESOURCE))
        return found

    @hookimpl
    def register_factors(self) -> Mapping[str, Factor]:
        # What they go by may change while the run goes on.
        self._registered = {name: partial(self._ask, name) for name in self._own}
        return {**self._registered, PRIORITY: self.priorities}

    def _ask(self, name: str, jobs: Sequence[Job], state: State) -> Floats:
        return np.asarray(self._own[name](jobs, state), np.float64)

    @hookimpl
    def startup(self, state: State) -> None:
        self._state = state
        if PRIORITY in self._weights:
            raise UserError(f"multifactor: weights: {PRIORITY}: expected a factor, found the sum of all")
        for name in self._weights:
            if name not in state.factors:
                raise UserError(
                    f"multifactor: weights: {name}: expected a factor that a plugin registers "
                    f"({', '.join(sorted(state.factors))}), found none.{nearest(name, state.factors)}"
                )

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if isinstance(event, SitePolicyChanged):
            self._follow(event.policy, state)

    def _follow(self, policy: SitePolicy, state: State) -> None:
        """Weights, QOS, pools and times are the batch system's from now on, where no option says more."""
        told = {
            "max_age": policy.max_age, "period": policy.period,
            "favour": "small" if policy.favour_small else "large",
            "size": "time" if policy.size_over_time else "machine", "pools": policy.pools, "qos": policy.qos,
        }  # fmt: skip
        said = self.options.model_fields_set
        changed = {key: value for key, value in told.items() if value is not None and key not in said}
        options = self.options.model_copy(update=changed)
        made = self._made(options, policy.weights)
        weights, notes = {}, set()
        for name, weight in policy.weights.items():
            if not weight:
                continue
            if name in made or name in state.factors:
                weights[name] = weight
                state.factors.setdefault(name, partial(self._ask, name))
            else:
                notes.add(
                    f"the batch system weighs {name!r}, and no enabled plugin gives this factor; it "
                    "is left out"
                )
        if not weights:
            notes.add(
                "no factor has a weight in the batch system's priorities, all are 0; jobs are served by age: "
                "set weights there, or in the option `weights`"
            )
            weights = {"age": 1.0}
        # Once, however often something else changes.
        state.notices += sorted(notes - self._noted)
        self._noted = notes
        self._own, self._weights, self._period = made, weights, options.period
        self._terms = None
        self._due = -np.inf

    # ------------------------------------------------------------------ the order

    @hookimpl
    def queue_key(self, job: Job, state: State) -> tuple[int, float]:
        known = self._keys.get(job.id)
        if known is not None:
            return known
        if job.edition is None:
            # The job is new or has changed: it stays behind the known jobs until its priority is computed.
            self._new[job.id] = job
            return _BEHIND
        return (1, -float(self._as_the_others((job,), state)[0]))

    @hookimpl
    def react(self, state: State) -> None:
        if self._awaited:
            # All jobs that there are were told. A job that waits for no other job any more is independent
            # from now on.
            for name in self._awaited:
                if (job := state.jobs.get(name)) is not None and job.independent is None:
                    self._independent[name] = state.now
            self._awaited = set()
        if not self._new and state.now < self._due:
            return
        # Asked of the domains, which are few: there may be very many jobs that need no order yet.
        crowded = [domain for domain in state.domains.values() if len(domain.queue) > 1]
        if crowded and state.now >= self._due:
            self._all(state)
        elif self._new:
            if crowded and (
                len(crowded) == len(state.domains) or any(job.domain in crowded for job in self._new.values())
            ):
                jobs = [job for job in self._new.values() if job.status in WAITS]
                self._new.clear()
                self._order(state, jobs, self._as_the_others(jobs, state))
            elif len(self._new) > self._many:
                self._new = {name: job for name, job in self._new.items() if job.status in WAITS}
                self._many = max(2 * len(self._new), _MANY)

    def _all(self, state: State) -> None:
        """Everything anew."""
        self._weighed = state.now
        self._due = state.now + self._period
        state.outdate_keys()
        queues = [domain.queue for domain in state.domains.values()]
        jobs = [job for queue in queues for job in queue if job.status is Status.PENDING]
        self._new.clear()
        self._kept.clear()
        values = self.priorities(jobs, state)
        if self.options.sticky:
            for domain in state.domains.values():
                self._keep(domain, jobs, values)
        self._order(state, jobs, values)
        if self._bypassed:
            self._bypassed = {name: n for name, n in self._bypassed.items() if name in state.jobs}

    def _keep(self, domain: Domain, jobs: Sequence[Job], values: Floats) -> None:
        """The domain's first booking stays the first as long as it is not too far behind."""
        booked = domain.view.bookings if domain.view is not None else ()
        if not booked:
            return
        head = booked[0].job
        rank, own = 0, None
        for job, value in zip(jobs, values.tolist(), strict=True):
            if job is head:
                own = value
        if own is None:
            return
        for job, value in zip(jobs, values.tolist(), strict=True):
            rank += job.domain is domain and job.status is Status.PENDING and value > own
        if rank < self.options.sticky:
            self._kept.add(head.id)

    def _order(self, state: State, jobs: Sequence[Job], values: Floats) -> None:
        kept = self._kept
        keys: list[tuple[int, float]] = [(1, -value) for value in values.tolist()]
        if kept:
            keys = [(0 if job.id in kept else 1, key[1]) for job, key in zip(jobs, keys, strict=True)]
        if state.one_key:
            state.rekey(jobs, keys)
            return
        self._keys = dict(zip((job.id for job in jobs), keys, strict=True))
        try:
            state.rekey(jobs)
        finally:
            self._keys = {}

    def _as_the_others(self, jobs: Sequence[Job], state: State) -> Floats:
        """Each job's priority at the time of the priorities in the queues, so that they compare."""
        self._moment.at = self._weighed if state.now < self._due else None
        try:
            return self.priorities(jobs, state)
        finally:
            self._moment.at = None

    # ------------------------------------------------------------------ the sum

    def priorities(self, jobs: Sequence[Job], state: State) -> Floats:
        """Each job's priority now."""
        if len(jobs) <= _FEW:
            found = [self._priority(job, state) for job in jobs]
            if None not in found:
                return np.array(found, np.float64)
        total = -nice(jobs)
        for weight, factor in self._weighted(state):
            values = np.asarray(factor(jobs, state), np.float64)
            if values.shape != total.shape:
                break
            total += weight * values
        else:
            # What is not finite makes the sum so.
            if math.isfinite(total.sum()):
                return total
        total = -nice(jobs)
        for name, values in self.factors(jobs, state):
            total += self._weights[name] * values
        return total

    def _weighted(self, state: State) -> list[tuple[float, Factor]]:
        """Weights and factors, without factors that are 0 for all jobs. This plugin's own factors are taken
        without the detour over what other plugins find."""
        if self._terms is None:
            self._terms = []
            for name, weight in self._weights.items():
                factor = state.factors[name]
                if factor is self._registered.get(name):
                    factor = self._own[name]
                if factor is not factors.nothing:
                    self._terms.append((weight, factor))
            single = [
                (weight, of_one)
                for weight, factor in self._terms
                if (of_one := getattr(factor, "one", None)) is not None
            ]
            self._single = single if len(single) == len(self._terms) else None
        return self._terms

    def _priority(self, job: Job, state: State) -> float | None:
        """The priority of a single job, without arrays; None if a factor gives no number for a single job."""
        if self._terms is None:
            self._weighted(state)
        if self._single is None:
            return None
        total = -_nice(job)
        for weight, of_one in self._single:
            total += weight * of_one(job, state)
        return total if math.isfinite(total) else None

    def factors(self, jobs: Sequence[Job], state: State) -> Iterable[tuple[str, Floats]]:
        """``(name, values)`` of each factor that has a weight."""
        for name in self._weights:
            values = np.asarray(state.factors[name](jobs, state), np.float64)
            if values.shape != (len(jobs),) or not np.isfinite(values).all():
                if name not in self._told:
                    self._told.add(name)
                    state.anomalies.append(
                        f"factor {name!r}: expected {len(jobs)} finite numbers, found {values!r:.200}; "
                        "it counts as 0"
                    )
                values = np.zeros(len(jobs))
            yield name, values

    def reports(self, jobs: Sequence[Job], state: State) -> tuple[JobPriority, ...]:
        """The jobs' priorities now and what they are made of, noting nothing: for users' questions."""
        less, found = nice(jobs), {}
        for name in self._weights:
            factor = state.factors[name]
            values = np.asarray(getattr(factor, "aside", factor)(jobs, state), np.float64)
            fits = values.shape == (len(jobs),) and bool(np.isfinite(values).all())
            found[name] = values if fits else np.zeros(len(jobs))
        total = -less + sum(self._weights[name] * values for name, values in found.items())
        return tuple(
            JobPriority(
                job.id, job.user, float(total[at]), {name: float(found[name][at]) for name in found},
                float(less[at]),
            )
            for at, job in enumerate(jobs)
        )  # fmt: skip

    @hookimpl
    def inform(self, question: Question, state: State) -> Any:
        if question.name != PRIORITY:
            return None
        asked = question.read(Wanted)
        jobs, then = waiting_page(question, asked, state)
        if asked.job and not jobs:
            whose = "" if question.sees_all else " of yours"
            raise UserError(f"no job{whose} with the id {asked.job!r} waits")
        return Priorities(dict(self._weights), self.reports(jobs, state), then)

    @property
    def weights(self) -> Mapping[str, float]:
        """Factor -> weight, where the weight is not 0."""
        return self._weights

    # ------------------------------------------------------------------ overtaking

    def _bypass(self, jobs: Sequence[Job], state: State) -> Floats:
        known = self._bypassed
        return np.minimum(np.array([known.get(job.id, 0) for job in jobs]) / self.options.max_bypass, 1.0)

    @hookimpl
    def decided(self, decisions: Sequence[Decision], state: State) -> None:
        if "bypass" not in self._weights:
            return
        for decision in decisions:
            if isinstance(decision, Start) and (started := state.jobs.get(decision.job_id)) is not None:
                for job in started.domain.queue:
                    if job.order > started.order:
                        break
                    if job.status is Status.PENDING:
                        self._bypassed[job.id] = self._bypassed.get(job.id, 0) + 1

    @hookimpl
    def checkpoint(self) -> Mapping[str, Any] | None:
        """The jobs that were overtaken, and when jobs stopped waiting for other jobs: a batch system forgets
        that."""
        jobs = self._state.jobs if self._state is not None else {}
        independent: dict[str, float | None] = {
            name: since for name, since in self._independent.items() if name in jobs
        }
        for name, job in jobs.items():
            if job.independent is not None and job.status in WAITS:
                independent[name] = job.independent if math.isfinite(job.independent) else None
        if not independent:
            return self._bypassed or None
        return {"bypassed": self._bypassed, "independent": independent}

    @hookimpl
    def restore(self, saved: dict[str, Any]) -> None:
        independent = saved.get("independent")
        self._bypassed = dict(saved["bypassed"] if isinstance(independent, dict) else saved)
        self._independent.clear()
        if isinstance(independent, dict):
            known = {name: since for name, since in independent.items() if since is not None}
            self._independent.update(known)
            self._awaited = {name for name, since in independent.items() if since is None}


def nice(jobs: Sequence[Job]) -> Floats:
    """What users take off their jobs' priorities: the attribute ``nice``; 0 without it."""
    found = np.zeros(len(jobs))
    for at, job in enumerate(jobs):
        if job.description.attributes is not None:
            found[at] = _nice(job)
    return found


def _nice(job: Job) -> float:
    attributes = job.description.attributes
    return float(attributes.get("nice") or 0.0) if attributes is not None else 0.0
