"""What an estimate model offers: users' runtime estimates for jobs whose runtimes are known.

A model is asked for the estimates of a whole workload at once, and draws from the generator that it is given
alone. What is done around it is here, the same for all models:

- A runtime beyond the estimate that a job had is cut to it before the estimate is replaced: the batch system
  ended the job there, so a longer one says nothing but how late it was. Then another estimate changes the
  estimate alone. A job with elastic commands is left as it is, because its time may have been extended.
- A runtime beyond the estimate that a model gives stays as it is: the emulated cluster ends the job there.
- Jobs of unknown runtime keep what they have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway.workload.cwf import CloudTrace
from headway.workload.models import Workload
from headway.workload.swf import with_notes
from headway.workload.trace import Column, Trace

if TYPE_CHECKING:
    import pydantic

Floats = NDArray[np.float64]

#: Which jobs get an estimate: all, or only jobs without an estimate.
REPLACE, ADD = "replace", "add"


@dataclass(frozen=True)
class RunJobs:
    """The jobs that want estimates, a value each, in order of submission."""

    #: Seconds, at least 0.
    runtime: Floats
    #: Seconds: what the job's user gave; NaN where there is none.
    estimate: Floats
    #: Seconds.
    submit: Floats
    #: A number for each user; -1: not known.
    user: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.runtime)


@dataclass(frozen=True)
class Estimates:
    """What a model gives to :class:`RunJobs`."""

    #: Seconds, above 0.
    seconds: Floats
    #: Seconds: other runtimes, of a model that draws both; None: they stay.
    runtime: Floats | None = None
    #: What a reader should know of it, a line each.
    notes: tuple[str, ...] = ()


class EstimateModel(Protocol):
    """A model of users' estimates, as a plugin registers it by name."""

    @property
    def Options(self) -> type[pydantic.BaseModel]:
        """The class of the options; an attribute of the model's class will do."""
        ...

    def estimates(self, rng: np.random.Generator, jobs: RunJobs, options: Any) -> Estimates:
        """Estimates that are drawn from ``rng`` alone; ``options`` is one of :attr:`Options`.

        Raises :class:`UserError` where there can be none: for options that contradict each other or the jobs.
        """
        ...

    def fitted(self, jobs: RunJobs) -> dict[str, Any] | None:
        """The options with which the model gives estimates like these jobs' own, all of which are known, as
        YAML values; None: this model has nothing to fit."""
        ...


@dataclass(frozen=True)
class ChosenModel:
    """An estimate model with its options."""

    name: str
    model: EstimateModel
    options: Any
    #: Number or name of a queue -> other options, for the jobs of that queue, which the model is asked for
    #: apart.
    queues: Mapping[int | str, Any] = field(default_factory=dict)


def _number(which: int | str, names: Mapping[str, int]) -> int | None:
    """The number of a queue by its name or number, also in quotes; None: there is none of that name."""
    if isinstance(which, int):
        return which
    known = names.get(which)
    return int(which) if known is None and which.isdecimal() else known


def run_jobs(trace: Trace) -> RunJobs:
    """The jobs of a trace whose runtimes and estimates are known."""
    records = trace.records[(trace.records[:, Column.RUNTIME] >= 0) & (trace.records[:, Column.ESTIMATE] > 0)]
    return RunJobs(
        records[:, Column.RUNTIME],
        records[:, Column.ESTIMATE],
        records[:, Column.SUBMIT],
        _users(records[:, Column.USER]),
    )


def _users(number: Floats) -> NDArray[np.int64]:
    return np.where(number > 0, number, -1).astype(np.int64)


TraceKind = TypeVar("TraceKind", bound=Trace)


def estimated_trace(trace: TraceKind, chosen: ChosenModel, seed: int, which: str = REPLACE) -> TraceKind:
    """The trace with a model's estimates for all its jobs of known runtime, or only for jobs without an
    estimate.

    The header says what was done. Raises :class:`UserError` from the model.
    """
    records = trace.records.copy()
    runtime, estimate = records[:, Column.RUNTIME], records[:, Column.ESTIMATE]
    extended = {c.row for c in trace.commands} if isinstance(trace, CloudTrace) else set()
    asked = runtime >= 0
    if which == ADD:
        asked &= estimate <= 0
    found = _asked(
        runtime, estimate, records[:, Column.SUBMIT], _users(records[:, Column.USER]),
        records[:, Column.QUEUE], {name: number for number, name in trace.queue_names.items()},
        extended, asked, chosen, seed,
    )  # fmt: skip
    records[:, Column.RUNTIME], records[:, Column.ESTIMATE] = found.runtime, found.estimate
    records.setflags(write=False)
    return replace(trace, records=records, header=with_notes(trace.header, found.notes))


def estimated_workload(workload: Workload, chosen: ChosenModel, seed: int) -> Workload:
    """The workload with a model's estimates for all its jobs. Raises :class:`UserError` from the model."""
    jobs = workload.jobs
    if not jobs:
        return workload
    extended = {command.job_id for command in workload.commands}
    numbers: dict[str, int] = {}
    # Below all numbers of queues, and -1.
    pools = {name: -2 - at for at, name in enumerate(sorted({job.job.pool for job in jobs}))}
    found = _asked(
        np.array([job.runtime for job in jobs], np.float64),
        np.array([job.job.request.walltime for job in jobs], np.float64),
        np.array([job.job.submit_time for job in jobs], np.float64),
        np.array([numbers.setdefault(j.job.user, len(numbers)) if j.job.user else -1 for j in jobs]),
        np.array([int(j.job.qos) if j.job.qos.isdecimal() else pools[j.job.pool] for j in jobs]),
        pools,
        {at for at, job in enumerate(jobs) if job.job.id in extended} if extended else (),
        np.ones(len(jobs), np.bool_),
        chosen,
        seed,
    )
    changed = [
        msgspec.structs.replace(
            job,
            runtime=runtime,
            job=msgspec.structs.replace(
                job.job, request=msgspec.structs.replace(job.job.request, walltime=estimate)
            ),
        )
        for job, runtime, estimate in zip(jobs, found.runtime.tolist(), found.estimate.tolist(), strict=True)
    ]
    return replace(workload, jobs=changed, notes=(*workload.notes, *found.notes))


@dataclass(frozen=True)
class _Found:
    runtime: Floats
    estimate: Floats
    notes: list[str]


def _asked(
    runtime: Floats,
    estimate: Floats,
    submit: Floats,
    user: NDArray[np.int64],
    queue: NDArray[Any],
    names: Mapping[str, int],
    extended: Iterable[int],
    asked: NDArray[np.bool_],
    chosen: ChosenModel,
    seed: int,
) -> _Found:
    """Runtimes and estimates of all jobs, where the model was asked for the jobs in ``asked``.

    ``queue`` has a number for each job, ``names`` the numbers of queues that have a name."""
    rows = np.flatnonzero(asked)
    notes = [f"estimates of {len(rows):,} of {len(asked):,} jobs by the model {chosen.name}, seed {seed}"]
    runtime, estimate = runtime.copy(), estimate.copy()
    if not len(rows):
        return _Found(runtime, estimate, notes)
    late = asked & (estimate > 0) & (runtime > estimate)
    late[list(extended)] = False
    if late.any():
        runtime[late] = estimate[late]
        notes.append(f"{int(late.sum()):,} runtimes were beyond the job's own estimate and were cut to it")
    rng = np.random.default_rng(seed)
    own = {which: _number(which, names) for which in chosen.queues}
    apart = np.isin(queue[rows], [number for number in own.values() if number is not None])
    parts = [(rows[~apart], chosen.options, "")]
    parts += [(rows[queue[rows] == own[n]], options, f"queue {n}: ") for n, options in chosen.queues.items()]
    for part, options, which in parts:
        if not len(part):
            if which:
                notes.append(f"{which}none of these jobs is in it")
            continue
        given = estimate[part]
        jobs = RunJobs(runtime[part], np.where(given > 0, given, np.nan), submit[part], user[part])
        found = chosen.model.estimates(rng, jobs, options)
        seconds = np.asarray(found.seconds, np.float64)
        if seconds.shape != part.shape or not (np.isfinite(seconds).all() and (seconds > 0).all()):
            raise UserError(
                f"estimate model {chosen.name}: expected {len(part)} estimates above 0 s, found "
                f"{seconds.size} of them, the smallest {seconds.min(initial=np.inf):g}"
            )
        estimate[part] = seconds
        if found.runtime is not None:
            runtime[part] = found.runtime
        notes += [which + note for note in found.notes]
    beyond = int((runtime[rows] > estimate[rows]).sum())
    if beyond:
        notes.append(f"{beyond:,} runtimes are beyond the new estimate: these jobs end at it")
    return _Found(runtime, estimate, notes)
