"""A run to look at: a generated workload, scheduled first come first served by a few lines of code."""

from __future__ import annotations

import heapq

import numpy as np

from headway.decisions import Start
from headway.model import ClusterDescription, JobDescription, Request
from headway.results import DecisionRecord, JobResult, Refused, RunResult

USERS = ("ada", "berta", "cem", "dora", "emil", "fatma", "gero", "hana", "ivo", "jana", "kim", "lu")


def fcfs_run(
    jobs: int = 10_000,
    processors: int = 320,
    *,
    seed: int = 1,
    load: float = 0.75,
    skip: bool = False,
    label: str = "fcfs",
) -> RunResult:
    """First come first served; with ``skip``, any waiting job that fits starts (so small ones overtake)."""
    rng = np.random.default_rng(seed)
    sizes = np.minimum(2 ** rng.integers(0, 8, jobs), processors)
    runtimes = np.ceil(rng.lognormal(6.5, 1.8, jobs)).clip(1, 86400)
    span = float(sizes @ runtimes) / processors / load
    hours = np.sort(rng.random(jobs)) * span
    # By day three times as many arrive as by night.
    submits = np.sort(np.floor(hours + 20000 * np.sin(hours / 86400 * 2 * np.pi))).clip(0)
    estimates = np.ceil(runtimes * rng.uniform(1, 5, jobs) / 60) * 60
    users = rng.zipf(1.6, jobs) % len(USERS)

    starts = np.zeros(jobs)
    free, running, waiting = processors, [], []
    moments = sorted(set(submits.tolist()))
    arrivals = {}
    for number, submit in enumerate(submits.tolist()):
        arrivals.setdefault(submit, []).append(number)
    heapq.heapify(moments)
    while moments:
        now = heapq.heappop(moments)
        while running and running[0][0] <= now:
            free += heapq.heappop(running)[1]
        waiting.extend(arrivals.pop(now, ()))
        left = []
        for place, number in enumerate(waiting):
            size = int(sizes[number])
            if size <= free:
                free -= size
                starts[number] = now
                heapq.heappush(running, (now + runtimes[number], size))
                heapq.heappush(moments, now + runtimes[number])
            elif skip and free:
                left.append(number)
            else:
                left.extend(waiting[place:])
                break
        waiting = left

    records = [
        JobResult(
            job=JobDescription(
                id=str(number + 1),
                submit_time=float(submits[number]),
                request=Request(processors=int(sizes[number]), walltime=float(estimates[number])),
                user=USERS[users[number]],
            ),
            start_time=float(starts[number]),
            end_time=float(starts[number] + runtimes[number]),
            state="completed",
            runtime=float(runtimes[number]),
            pool="pool",
            row=number,
        )
        for number in range(jobs)
    ]
    return RunResult(
        label=label,
        cluster=ClusterDescription.flat(processors, name="synthetic"),
        jobs=records,
        refused=[Refused("x1", "larger than the pool (400 processors, 320 are there)", 17)],
        decisions=[
            DecisionRecord(time=r.start_time, decision=Start(r.job.id, reason="first in the queue"))
            for r in records
            if r.start_time is not None
        ],
        epoch=1_000_000_000.0,
        seed=seed,
        cycles=2 * jobs,
        wall_seconds=0.51,
        about={"workload": f"generated, {jobs} jobs"},
    )
