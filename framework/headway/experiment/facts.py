"""What a campaign's workload looks like before anything runs: the figures that the rules on workloads
judge."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headway.results import Refused
from headway.workload import Trace, TraceJob, Workload
from headway.workload.dispersion import (
    dispersion,
    estimate_concentration,
    exact_share,
    flurry_of,
    gap_variation,
)
from headway.workload.emulation import accepted_rows, estimates, sizes, why_refused
from headway.workload.trace import Column, Records

Floats = NDArray[np.float64]

HOUR, DAY = 3600.0, 86400.0
#: Seconds: a job of at most this is as short as the jobs that people wait for at their desks.
SHORT = 60.0


@dataclass(frozen=True)
class WorkloadFacts:
    """Of one workload: a scenario with its seed. Shares are of its jobs; None: not known, or there is
    none."""

    scenario: str
    x: float
    seed: int
    #: It was recorded on a machine, and not drawn from a model.
    recorded: bool
    jobs: int
    #: Seconds from the first to the last submission, and of the longest runtime.
    span: float
    longest_runtime: float
    #: The largest share of jobs that are submitted at one instant.
    at_one_instant: float | None
    #: Coefficient of variation of the times between submissions, index of dispersion in hours and days.
    gap_cv: float | None
    idc_hour: float | None
    idc_day: float | None
    #: Sizes that are powers of two, 1 among them.
    powers_of_two: float | None
    #: Jobs whose user gave an estimate; of these: exact ones, and the largest share of one multiple.
    estimated: float
    exact_estimates: float | None
    estimate_concentration: float | None
    #: Of the busiest user in a week: jobs over the jobs of all users in the median week; its name, week, jobs
    #: and all jobs of that week.
    largest_user_week: float | None
    flurry_user: str
    flurry_week: int
    flurry_jobs: int
    flurry_all: int
    #: Jobs of the queue that the format calls interactive; jobs of at most a minute.
    interactive: float
    short: float
    #: Jobs whose memory is known.
    memory: float
    #: Of the emulated machine, and of the machine in the trace's header (None: the header names none).
    processors: int
    own_processors: int | None
    #: Jobs that cannot run here, and why the first of them cannot; shares of jobs and of work that are larger
    #: than the machine.
    dropped: int
    dropped_why: str
    too_large: float
    too_large_work: float
    #: The header says that the log was cleaned; None: there is no header.
    cleaned: bool | None
    #: By which factors a trace was changed: "times between submissions", "runtimes", "sizes".
    scaled: Mapping[str, float] = field(default_factory=dict)
    #: Jobs that say on how few processors they could run (attribute ``moldable``).
    moldable: float = 0.0
    #: SHA-256 of the trace's file.
    digest: str = ""
    #: Share of the jobs that are submitted once a preceding job has ended; and whether these preceding jobs
    #: were inferred.
    following: float = 0.0
    inferred: bool = False
    #: The work submitted over what the machine could do from the first to the last submission (jobs that will
    #: be ended at their limits count whole); None: these are one, or it is not known any more.
    offered_load: float | None = None


def facts_of(
    scenario: str,
    x: float,
    seed: int,
    workload: Workload,
    processors: int,
    *,
    trace: Trace | None = None,
    refused: list[Refused] | None = None,
    modelled_estimates: bool = False,
    scaled: Mapping[str, float] | None = None,
    inferred: bool = False,
) -> WorkloadFacts:
    """The facts of a workload. ``modelled_estimates``: its estimates do not come from the trace.
    ``inferred``: the trace does not say which jobs its jobs follow."""
    jobs = workload.jobs
    count = len(jobs)
    estimated = np.ones(count, np.bool_)
    memory = np.array([bool(_memory(job)) for job in jobs], np.bool_)
    interactive = np.zeros(count, np.bool_)
    if trace is not None:
        records = trace.records[np.array([job.row for job in jobs], np.int64)]
        if not modelled_estimates:
            estimated = records[:, Column.ESTIMATE] > 0
        memory = _memory_known(records)
        interactive = np.array([job.job.qos == "0" for job in jobs], np.bool_)
    names, who = np.unique(np.array([job.job.user for job in jobs], np.str_), return_inverse=True)
    columns = _Columns(
        submit=_floats([job.job.submit_time for job in jobs]),
        runtime=_floats([job.runtime for job in jobs]),
        size=_floats([float(job.job.request.processors) for job in jobs]),
        estimate=_floats([job.job.request.walltime for job in jobs]),
        estimated=estimated,
        memory=memory,
        interactive=interactive,
        users=names.tolist(),
        who=who,
    )
    return replace(
        _facts(columns, processors, trace),
        scenario=scenario,
        x=x,
        seed=seed,
        dropped=len(refused or ()),
        dropped_why=refused[0].reason if refused else "",
        scaled=dict(scaled or {}),
        moldable=_share(np.array(["moldable" in (job.job.attributes or {}) for job in jobs]))
        if count
        else 0.0,
        following=len(workload.chains) / count if count else 0.0,
        inferred=inferred,
    )


def facts_of_trace(
    trace: Trace,
    processors: int | None,
    *,
    limit: int | None = None,
    recorded: bool = True,
    modelled_estimates: bool = False,
    scaled: Mapping[str, float] | None = None,
) -> WorkloadFacts:
    """The facts of the jobs that an emulation of ``trace`` on ``processors`` has, by
    :func:`headway.workload.emulation.trace_jobs`, without making them.

    ``processors`` None: the machine's size is not known. ``recorded``: it is a log; else a model drew it.
    """
    rows, end = accepted_rows(trace, processors, limit=limit)
    records = trace.records[rows]
    numbers, who = np.unique(np.maximum(records[:, Column.USER], 0).astype(np.int64), return_inverse=True)
    columns = _Columns(
        submit=records[:, Column.SUBMIT],
        runtime=records[:, Column.RUNTIME],
        size=sizes(records),
        estimate=estimates(records),
        estimated=np.ones(len(rows), np.bool_) if modelled_estimates else records[:, Column.ESTIMATE] > 0,
        memory=_memory_known(records),
        interactive=records[:, Column.QUEUE].astype(np.int64) == 0,
        users=[str(number) if number > 0 else "" for number in numbers.tolist()],
        who=who,
    )
    dropped = np.setdiff1d(np.arange(end), rows, assume_unique=True)
    why = why_refused(trace.records[dropped[0]], processors) if len(dropped) else ""
    return replace(
        _facts(columns, processors or 0, trace if recorded else None),
        dropped=len(dropped),
        dropped_why=why,
        scaled=dict(scaled or {}),
    )


@dataclass(frozen=True)
class _Columns:
    """What is looked at, one value a job."""

    submit: Floats
    runtime: Floats
    size: Floats
    #: What schedulers see; of which jobs it is the user's (or a model's).
    estimate: Floats
    estimated: NDArray[np.bool_]
    memory: NDArray[np.bool_]
    interactive: NDArray[np.bool_]
    users: list[str]
    #: Places of the jobs' users in them.
    who: NDArray[np.intp]


def _facts(jobs: _Columns, processors: int, trace: Trace | None) -> WorkloadFacts:
    """What the columns say. ``trace``: the log that they are of; None: a model's. ``processors`` 0: not
    known."""
    submit, runtime, size, known = jobs.submit, jobs.runtime, jobs.size, jobs.estimated
    count = len(submit)
    large, large_work = _too_large(trace, processors) if trace is not None and processors else (0.0, 0.0)
    flurry = flurry_of(submit, jobs.users, jobs.who) if count else None
    _, together = np.unique(submit, return_counts=True)
    return WorkloadFacts(
        scenario="",
        x=1.0,
        seed=0,
        recorded=trace is not None,
        jobs=count,
        span=float(submit[-1] - submit[0]) if count else 0.0,
        longest_runtime=float(runtime.max()) if count else 0.0,
        at_one_instant=float(together.max() / count) if count else None,
        gap_cv=_known(gap_variation(submit)),
        idc_hour=_known(dispersion(submit, HOUR)),
        idc_day=_known(dispersion(submit, DAY)),
        powers_of_two=_known(_share(np.frexp(size)[0] == 0.5)),
        estimated=_share(known) if count else 0.0,
        exact_estimates=_known(exact_share(runtime[known], jobs.estimate[known])),
        estimate_concentration=_known(estimate_concentration(runtime[known], jobs.estimate[known])),
        largest_user_week=flurry.ratio if flurry else None,
        flurry_user=flurry.user if flurry else "",
        flurry_week=flurry.week if flurry else 0,
        flurry_jobs=flurry.jobs if flurry else 0,
        flurry_all=flurry.all_jobs if flurry else 0,
        interactive=_share(jobs.interactive) if trace is not None and count else 0.0,
        short=_share(runtime <= SHORT) if count else 0.0,
        memory=_share(jobs.memory) if count else 0.0,
        processors=processors,
        own_processors=trace.max_processors if trace is not None else None,
        dropped=0,
        dropped_why="",
        too_large=large,
        too_large_work=large_work,
        cleaned=any("CLEANED" in line.upper() for line in trace.header) if trace is not None else None,
        digest=digest_of(Path(trace.path)) if trace is not None else "",
        offered_load=_offered(submit, runtime * size, processors) if processors else None,
    )


def _memory_known(records: Records) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (records[:, Column.USED_MEMORY] > 0) | (
        records[:, Column.REQUESTED_MEMORY] > 0
    )
    return found


def _offered(submit: Floats, work: Floats, processors: int) -> float | None:
    span = float(submit.max() - submit.min()) if len(submit) else 0.0
    return float(work.sum()) / (processors * span) if span > 0 else None


def _memory(job: TraceJob) -> int:
    return job.job.request.memory_per_node or job.job.request.memory_per_processor


def _too_large(trace: Trace, processors: int) -> tuple[float, float]:
    """Shares of the trace's jobs and work that are larger than the machine."""
    size = np.maximum(sizes(trace.records), 0)
    work = size * np.maximum(trace.records[:, Column.RUNTIME], 0)
    larger = size > processors
    if not larger.any():
        return 0.0, 0.0
    return float(larger.mean()), float(work[larger].sum() / work.sum()) if work.sum() > 0 else 0.0


def digest_of(path: Path) -> str:
    """SHA-256 of a file; "" if it is gone, or is a pipe that was read already."""
    if not path.is_file():
        return ""
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


def _floats(values: list[float]) -> Floats:
    return np.array(values, np.float64)


def _share(which: NDArray[np.bool_]) -> float:
    return float(which.mean()) if len(which) else float("nan")


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
