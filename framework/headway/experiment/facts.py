"""What a campaign's workload looks like before anything runs: the figures that the rules on workloads
judge."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headway.results import Refused
from headway.workload import Trace, TraceJob, Workload
from headway.workload.dispersion import (
    dispersion,
    estimate_concentration,
    exact_share,
    gap_variation,
    largest_flurry,
)
from headway.workload.emulation import sizes
from headway.workload.trace import Column

Floats = NDArray[np.float64]

HOUR, DAY = 3600.0, 86400.0
#: Seconds: a job of at most this is as short as those that people wait for at their desks.
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
    #: Of the busiest user in a week: jobs over those of all users in the median week; its name, week, jobs
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
    #: Of the emulated machine, and of the one of the trace's header (None: it says none).
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
    #: Jobs that are submitted once another one has ended, and whether whom they follow was inferred.
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
    """The facts of a workload. ``modelled_estimates``: its estimates are not those of the trace.
    ``inferred``: the trace does not say whom its jobs follow."""
    jobs = workload.jobs
    count = len(jobs)
    submit = _floats([job.job.submit_time for job in jobs])
    runtime = _floats([job.runtime for job in jobs])
    estimate = _floats([job.job.request.walltime for job in jobs])
    size = _floats([float(job.job.request.processors) for job in jobs])
    estimated = np.ones(count, np.bool_)
    memory = np.array([bool(_memory(job)) for job in jobs], np.bool_)
    own, cleaned, digest, large, large_work = None, None, "", 0.0, 0.0
    if trace is not None:
        records = trace.records
        rows = np.array([job.row for job in jobs], np.int64)
        if not modelled_estimates:
            estimated = records[rows, Column.ESTIMATE] > 0
        memory = (records[rows, Column.USED_MEMORY] > 0) | (records[rows, Column.REQUESTED_MEMORY] > 0)
        own = trace.max_processors
        cleaned = any("CLEANED" in line.upper() for line in trace.header)
        digest = digest_of(Path(trace.path))
        large, large_work = _too_large(trace, processors)
    flurry = largest_flurry(submit, [job.job.user for job in jobs]) if count else None
    _, together = np.unique(submit, return_counts=True)
    return WorkloadFacts(
        scenario=scenario,
        x=x,
        seed=seed,
        recorded=trace is not None,
        jobs=count,
        span=float(submit[-1] - submit[0]) if count else 0.0,
        longest_runtime=float(runtime.max()) if count else 0.0,
        at_one_instant=float(together.max() / count) if count else None,
        gap_cv=_known(gap_variation(submit)),
        idc_hour=_known(dispersion(submit, HOUR)),
        idc_day=_known(dispersion(submit, DAY)),
        powers_of_two=_known(_share(np.frexp(size)[0] == 0.5)),
        estimated=_share(estimated) if count else 0.0,
        exact_estimates=_known(exact_share(runtime[estimated], estimate[estimated])),
        estimate_concentration=_known(estimate_concentration(runtime[estimated], estimate[estimated])),
        largest_user_week=flurry.ratio if flurry else None,
        flurry_user=flurry.user if flurry else "",
        flurry_week=flurry.week if flurry else 0,
        flurry_jobs=flurry.jobs if flurry else 0,
        flurry_all=flurry.all_jobs if flurry else 0,
        interactive=_share(np.array([job.job.qos == "0" for job in jobs]))
        if trace is not None and count
        else 0.0,
        short=_share(runtime <= SHORT) if count else 0.0,
        memory=_share(memory) if count else 0.0,
        processors=processors,
        own_processors=own,
        dropped=len(refused or ()),
        dropped_why=refused[0].reason if refused else "",
        too_large=large,
        too_large_work=large_work,
        cleaned=cleaned,
        scaled=dict(scaled or {}),
        moldable=_share(np.array(["moldable" in (job.job.attributes or {}) for job in jobs]))
        if count
        else 0.0,
        digest=digest,
        following=len(workload.chains) / count if count else 0.0,
        inferred=inferred,
        offered_load=_offered(submit, runtime * size, processors),
    )


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
    """SHA-256 of a file; "" if it is gone."""
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
