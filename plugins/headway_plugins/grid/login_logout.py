"""A grid site's workload: users log on, submit bursts of jobs of one processor, and log off.

E. Medernach, "Workload Analysis of a Cluster in a Grid Environment", JSSPP 2005, section 5 and its
simulation. The users come from presets of the paper's groups, from groups that options describe, or from a
file of users that were fitted to a log (``headway arrivals fit``). What was decided here:

- *A group of several users* is independent users of the same logins, whose rates of submission lie on a
  straight line in log space (``spread``) and are together the group's. The presets' groups are a single
  process, because their variation is that of the whole group.
- *Queues* are the paper's (:mod:`.lpc`), numbered 1 (Test) to 5 (Infinite). A job goes to the smallest queue
  whose limit of processor time covers its runtime, since these jobs use their processor, and the longest jobs
  to the last queue. Its estimate is the queue's wall limit; ``--estimates`` gives other estimates.
- *Users and groups* are numbers, as in traces; a note says which numbers.
- *Front-ends* with processors of their own are ``pools``; the paper's broker is not described, so a job goes
  to a pool at random, by weight.
- *Seconds* are whole, as in accounting.
- With ``jobs`` users go on, stretch by stretch, until there are so many. With ``load`` all times are
  multiplied by the same factor afterwards, which changes no variation.
- *Monitors* submit a short job each on every full hour.
- ``arrivals: poisson`` has all users logged on always, with the same mean rates: what bursts are compared
  with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from headway.errors import UserError, nearest
from headway.hookspecs import Plugin, hookimpl
from headway.inputs import text_of
from headway.model import JobDescription, Request
from headway.plugins import Traits
from headway.workload import TraceJob, Workload, WorkloadModel
from headway_plugins.grid.arrivals import DailyCycle, Submitter, spread_rates
from headway_plugins.grid.fitted_users import FittedUsers, Runtimes, read_fitted
from headway_plugins.grid.lpc import GROUPS, PROCESSORS, QUEUES
from headway_plugins.grid.rates import Rates
from headway_plugins.grid.runtimes import StagedRuntimes
from headway_plugins.workloads.jobs import stretched_to_load

Floats = NDArray[np.float64]

DAY, HOUR = 86400.0, 3600.0
#: Jobs that a workload can have.
_MOST_JOBS = 5_000_000
#: Stretches without the wanted jobs, after which there will be none.
_MOST_STRETCHES = 10_000

_CPU_LIMITS = np.array([queue.most_cpu for queue in QUEUES])


class GroupOptions(BaseModel):
    """A group that options describe: its rates, or mean, variation and burst of its arrivals."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    name: str = Field(min_length=1)
    logon: float | None = Field(None, alias="lambda", ge=0, le=1e6, allow_inf_nan=False)
    logout: float | None = Field(None, alias="delta", ge=0, le=1e6, allow_inf_nan=False)
    submit: float | None = Field(None, alias="mu", gt=0, le=1e6, allow_inf_nan=False)
    mean_gap: float | None = Field(None, gt=0, allow_inf_nan=False)
    cv: float | None = Field(None, gt=1, allow_inf_nan=False)
    burst: float | None = Field(None, gt=0, allow_inf_nan=False)
    users: int = Field(1, ge=1, le=100_000)
    spread: float = Field(0.0, ge=0, le=100)
    runtimes: str | Runtimes = "lpc-biomed"

    @field_validator("runtimes")
    @classmethod
    def _preset(cls, value: str | Runtimes) -> str | Runtimes:
        if isinstance(value, str):
            _known_preset(value)
        return value

    @model_validator(mode="after")
    def _one_way(self) -> GroupOptions:
        rates = (self.logon, self.logout, self.submit)
        moments = (self.mean_gap, self.cv, self.burst)
        given = [all(value is not None for value in way) for way in (rates, moments)]
        other = [any(value is not None for value in way) for way in (rates, moments)]
        if sum(given) != 1 or sum(other) != 1:
            raise ValueError(f"group {self.name}: either lambda, delta and mu, or mean_gap, cv and burst")
        try:
            self.rates()
        except UserError as error:
            raise ValueError(f"group {self.name}: {error}") from error
        return self

    def rates(self) -> Rates:
        """Of the whole group."""
        if self.submit is not None:
            assert self.logon is not None and self.logout is not None
            return Rates(self.logon, self.logout, self.submit)
        assert self.mean_gap is not None and self.cv is not None and self.burst is not None
        return Rates.of_moments(self.mean_gap, self.cv, self.burst)

    def stages(self) -> StagedRuntimes:
        """Of its jobs' runtimes."""
        if isinstance(self.runtimes, str):
            return GROUPS[self.runtimes].runtimes
        return self.runtimes.stages()


def _known_preset(name: str) -> None:
    if name not in GROUPS:
        raise ValueError(f"a preset, one of {', '.join(GROUPS)}.{nearest(name, GROUPS)}")


class LoginLogoutOptions(BaseModel):
    """The options of :class:`LoginLogoutModel`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    groups: tuple[str | GroupOptions, ...] | None = Field(
        None,
        description="presets, or groups such as {name: A, lambda: 1e-5, delta: 1e-4, mu: 0.02}; default: all",
    )
    file: Path | None = Field(None, description="users fitted to a log, instead of groups")
    days: float = Field(30.0, gt=0, le=3660, description="days over which jobs are submitted")
    jobs: int | None = Field(
        None,
        ge=1,
        le=_MOST_JOBS,
        description="number of jobs, submitted over as many days as they take; default: as many as come in "
        "`days`",
    )
    processors: int = Field(PROCESSORS, ge=1, le=10_000_000, description="size of the machine")
    load: float | None = Field(
        None,
        gt=0,
        le=100,
        description="offered load: submitted work over the machine's capacity; default: as the rates give it",
    )
    arrivals: Literal["login-logout", "poisson"] = Field(
        "login-logout",
        description="login-logout: users log on and off; poisson: all users are always "
        "logged on, at the same mean rates",
    )
    repeat: float = Field(
        0.0, ge=0, lt=1, description="chance that a job runs as long as the previous job of its user"
    )
    daily_logon: tuple[tuple[float, float], ...] = Field(
        (), max_length=48, description="the day's cycle of logging on: [[a1, b1], ...] of cosines and sines"
    )
    daily_submit: tuple[tuple[float, float], ...] = Field(
        (), max_length=48, description="the day's cycle of submitting while logged on, in the same form"
    )
    monitors: int = Field(0, ge=0, le=1000, description="number of users that submit a job on each full hour")
    monitor_runtime: float = Field(60.0, ge=1, le=DAY, description="runtime of such a job, in seconds")
    pool: str = Field("pool", min_length=1, description="pool to which the jobs are sent")
    pools: dict[Annotated[str, Field(min_length=1)], Annotated[float, Field(gt=0, le=1e9)]] | None = Field(
        None,
        min_length=1,
        description="instead of `pool`: weights of the pools that jobs are sent to at random: {ce1: 56, "
        "ce2: 84}",
    )
    _fitted: FittedUsers | None = None

    @field_validator("groups", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return [value] if isinstance(value, str | dict) else value

    @field_validator("groups")
    @classmethod
    def _presets(cls, value: tuple[str | GroupOptions, ...] | None) -> tuple[str | GroupOptions, ...] | None:
        if value is not None and not value:
            raise ValueError("at least one group")
        for group in value or ():
            if isinstance(group, str):
                _known_preset(group)
        return value

    @field_validator("daily_logon", "daily_submit")
    @classmethod
    def _finite(cls, value: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
        if not all(abs(part) <= 100 for wave in value for part in wave):
            raise ValueError("amplitudes of at most 100")
        return value

    @model_validator(mode="after")
    def _read(self, info: ValidationInfo) -> LoginLogoutOptions:
        if self.file is None:
            return self
        if self.groups is not None:
            raise ValueError("expected either groups or file, found both")
        try:
            text = text_of(self.file, info.context)
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"file {self.file}: cannot be read: {error}") from error
        try:
            object.__setattr__(self, "_fitted", read_fitted(text, str(self.file)))
        except UserError as error:
            raise ValueError(str(error)) from error
        return self


@dataclass(frozen=True)
class _Who:
    """A user that submits."""

    user: int
    group: int
    rates: Rates
    runtimes: StagedRuntimes


class LoginLogoutModel:
    """The model as :class:`headway.workload.WorkloadModel`."""

    Options = LoginLogoutOptions

    def generate(self, rng: np.random.Generator, options: LoginLogoutOptions) -> Workload:
        """Jobs with ids "1", "2", ..., of one processor; times in seconds from 0, a midnight.

        Raises :class:`UserError` where the wanted number of jobs would take for ever, or more than 5 million
        would come.
        """
        people, notes = submitters(options)
        times, who = _arrivals(rng, people, options)
        runtime = np.empty(len(times))
        for at in range(len(people)):
            own = np.flatnonzero(who == at)
            runtime[own] = people[at].runtimes.draw(rng, len(own), options.repeat)
        user = np.array([person.user for person in people], np.int64)[who]
        group = np.array([person.group for person in people], np.int64)[who]
        times = np.floor(times)
        if options.monitors:
            times, runtime, user, group = _with_monitors(times, runtime, user, group, options)
            notes.append(f"group {int(group.max())}: {options.monitors} monitors, one job each on the hour")
        if options.load is not None and len(times) > 1 and times[-1] > times[0]:
            size = np.ones(len(times))
            times, said = stretched_to_load(times, size, runtime, options.processors, options.load)
            notes.append(said)
        return Workload(
            _jobs(times, runtime, user, group, _pools(rng, len(times), options)),
            processors=options.processors,
            notes=tuple(notes),
        )


def submitters(options: LoginLogoutOptions) -> tuple[list[_Who], list[str]]:
    """The users that submit, and notes that say which groups the numbers are."""
    found: list[_Who] = []
    notes: list[str] = []
    fitted = options._fitted
    if fitted is not None:
        found = [
            _Who(user.user, user.group, user.rates(), fitted.runtimes_of(user.group)) for user in fitted.users
        ]
    else:
        for number, group in enumerate(options.groups or tuple(GROUPS), start=1):
            if isinstance(group, str):
                preset = GROUPS[group]
                name, each, runtimes = preset.name, [preset.rates], preset.runtimes
            else:
                name, runtimes = group.name, group.stages()
                each = spread_rates(group.rates(), group.users, group.spread)
            first = len(found) + 1
            found += [_Who(first + at, number, rates, runtimes) for at, rates in enumerate(each)]
            notes.append(f"group {number}: {name}, {len(each)} {'user' if len(each) == 1 else 'users'}")
    if options.arrivals == "poisson":
        found = [
            _Who(one.user, one.group, Rates(1.0, 0.0, one.rates.job_rate), one.runtimes) for one in found
        ]
    return found, notes


def _arrivals(
    rng: np.random.Generator, people: Sequence[_Who], options: LoginLogoutOptions
) -> tuple[Floats, NDArray[np.int64]]:
    """The times of the jobs, in order, and the place in ``people`` of each job's user."""
    logon, submit = DailyCycle(options.daily_logon), DailyCycle(options.daily_submit)
    each = [Submitter(rng, one.rates, 0.0, logon, submit) for one in people]
    rate = sum(one.rates.job_rate for one in people)
    wanted = options.jobs
    if wanted is None:
        expected, stretch = rate * options.days * DAY, options.days * DAY
    else:
        if not rate > 0:
            raise UserError("login-logout: expected a user with a rate above 0, found rates of 0 only")
        expected, stretch = float(wanted), wanted / rate
    if expected > _MOST_JOBS:
        raise UserError(
            f"login-logout: expected at most {_MOST_JOBS:,} jobs, found that {expected:,.0f} would come in "
            f"{options.days:g} days"
        )
    times: list[Floats] = []
    who: list[NDArray[np.int64]] = []
    count = 0
    for number in range(1, _MOST_STRETCHES + 1):
        parts = [one.until(stretch * number) for one in each]
        own = np.repeat(np.arange(len(each)), [len(part) for part in parts])
        together = np.concatenate(parts) if parts else np.empty(0)
        order = np.argsort(together, kind="stable")
        times.append(together[order])
        who.append(own[order])
        count += len(together)
        if wanted is None or count >= wanted:
            return np.concatenate(times)[:wanted], np.concatenate(who)[:wanted]
    raise UserError(
        f"login-logout: expected {wanted:,} jobs, found {count:,} in "
        f"{stretch * _MOST_STRETCHES / DAY:,.0f} days"
    )


def _with_monitors(
    times: Floats,
    runtime: Floats,
    user: NDArray[np.int64],
    group: NDArray[np.int64],
    options: LoginLogoutOptions,
) -> tuple[Floats, Floats, NDArray[np.int64], NDArray[np.int64]]:
    """The jobs with the monitors' jobs, in order."""
    end = options.days * DAY if options.jobs is None else (float(times[-1]) if len(times) else 0.0)
    hours = np.arange(0.0, end, HOUR)
    first, own = int(user.max(initial=0)) + 1, int(group.max(initial=0)) + 1
    many = options.monitors
    times = np.concatenate((times, np.repeat(hours, many)))
    runtime = np.concatenate((runtime, np.full(len(hours) * many, np.rint(options.monitor_runtime))))
    user = np.concatenate((user, np.tile(np.arange(first, first + many), len(hours))))
    group = np.concatenate((group, np.full(len(hours) * many, own)))
    order = np.argsort(times, kind="stable")[: options.jobs]
    return times[order], runtime[order], user[order], group[order]


def _pools(rng: np.random.Generator, jobs: int, options: LoginLogoutOptions) -> list[str]:
    """Where each job is sent to."""
    if options.pools is None:
        return [options.pool] * jobs
    names = list(options.pools)
    weights = np.array([options.pools[name] for name in names])
    return [names[at] for at in rng.choice(len(names), jobs, p=weights / weights.sum()).tolist()]


def queue_numbers(runtime: Floats) -> NDArray[np.int64]:
    """The queue of each runtime (seconds), from 1."""
    return np.minimum(np.searchsorted(_CPU_LIMITS, runtime, side="left"), len(QUEUES) - 1) + 1


def _jobs(
    times: Floats, runtime: Floats, user: NDArray[np.int64], group: NDArray[np.int64], pools: Sequence[str]
) -> list[TraceJob]:
    requests = [Request(1, queue.most_wall) for queue in QUEUES]
    queues = [str(number) for number in range(1, len(QUEUES) + 1)]
    names = {number: str(number) if number > 0 else "" for number in {*user.tolist(), *group.tolist()}}
    return [
        TraceJob(
            JobDescription(
                str(number), at, requests[queue], pool=pool, user=names[who], group=names[whose],
                qos=queues[queue],
            ),
            seconds,
        )
        for number, (at, seconds, queue, who, whose, pool) in enumerate(
            zip(
                times.tolist(), runtime.tolist(), (queue_numbers(runtime) - 1).tolist(), user.tolist(),
                group.tolist(), pools, strict=True,
            ),
            start=1,
        )
    ]  # fmt: skip


class LoginLogout(Plugin):
    """The workload model "login-logout": users log on, submit bursts of serial jobs, and log off."""

    traits = Traits(paper="Medernach, JSSPP 2005")

    @hookimpl
    def register_workloads(self) -> dict[str, WorkloadModel]:
        return {"login-logout": LoginLogoutModel()}
