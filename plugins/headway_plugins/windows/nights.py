"""What a window is asked to do: generated jobs of stages, and nights like a render farm's.

Y. Zhou, T. Kelly, J. Wiener, E. Anderson 2005, sections 4 and 5.

Synthetic (:func:`synthetic`): on 100 processors with a deadline of 4,680 units of 10 s, jobs are drawn as
long as their work is not above twice the window's capacity: 5 to 10 stages, 1 to 10 tasks a stage, 1 to 600
units a task, all uniform; a job that cannot end by the deadline is drawn again. A job's reward is its work.
Two transformations change the critical paths and leave the work as it is: :func:`with_stages` and
:func:`with_paths`.

Like a trace (:func:`night`): the paper publishes statistics of 56 nights on 500 machines of 2 processors, and
no trace. Decisions, from its tables:

- Jobs a night normal (43, 18) within 5 to 79; tasks a job lognormal (median 84, sigma 0.814) within 3 to
  1,328; seconds a task lognormal (median 5,356, sigma 0.961) within 1 to 85,686. Of that sigma 0.928 is
  between jobs and 0.25 within one, for tasks of one stage are alike: were each task drawn by itself, the
  longest of a hundred would make the median critical path 17 hours, where 3.42 are published.
- Stages a job 3 to 7, each as likely. One of them, or two of a third of the jobs, share most tasks; the
  others have 1 to 3 (with the published shares of stages of 1, 2 and 3 tasks), a tenth as long, for one
  stage is to make up most of the critical path.
- Priority bands by their published shares; a job's number within its band is uniform. What a band earns is
  not published: 10, 5, 2 and 1 unless told otherwise.
- What is believed before a night differs from what comes true: by exp(N(0, 0.5)) for the critical path and
  exp(N(0, 0.6)) for the work of a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway_plugins.windows.staged import Staged

Ints = NDArray[np.int64]

#: The synthetic workloads: processors, and the deadline in units of 10 s.
PROCESSORS, DEADLINE = 100, 4680
#: Seconds of a unit.
UNIT = 10.0
#: The render farm: processors, and its night in seconds.
FARM, NIGHT = 1000, 46800.0
#: Jobs of each priority band, of 2,388; and where the bands begin.
BANDS = (1318, 193, 853, 24)
BAND_WIDTH = 100
#: What a job of each band earns.
REWARDS = (10, 5, 2, 1)
#: Sigma of the tasks' seconds between jobs and within one; of stages of few tasks their share of the usual.
BETWEEN, WITHIN, SHORT = 0.928, 0.25, 0.1
#: Of stages with one to three tasks: how many have 1, 2, 3.
_SMALL = np.array([2.24, 1.07, 0.21])


def synthetic(rng: np.random.Generator, *, least_stages: int = 5, most_stages: int = 10) -> list[Staged]:
    """A synthetic workload, in units of 10 s."""
    jobs: list[Staged] = []
    work = 0.0
    while work <= 2 * PROCESSORS * DEADLINE:
        stages = tuple(
            tuple(rng.integers(1, 601, int(rng.integers(1, 11))).astype(float).tolist())
            for _ in range(int(rng.integers(least_stages, most_stages + 1)))
        )
        job = Staged(str(len(jobs) + 1), stages)
        if job.path <= DEADLINE:
            jobs.append(job)
            work += job.work
    return jobs


def with_stages(rng: np.random.Generator, jobs: Sequence[Staged], stages: int) -> list[Staged]:
    """The same tasks in fewer stages (T1): each task of a later stage goes to one of the first ``stages``,
    each as likely."""
    if stages < 1:
        raise ValueError(f"expected at least 1 stage, found {stages}")
    found = []
    for job in jobs:
        kept = [list(stage) for stage in job.stages[:stages]]
        for stage in job.stages[stages:]:
            for length in stage:
                kept[int(rng.integers(len(kept)))].append(length)
        found.append(Staged(job.name, tuple(map(tuple, kept)), job.reward, job.priority))
    return found


def with_paths(jobs: Sequence[Staged], path: float) -> list[Staged]:
    """The same work in shorter tasks (T2): while a job's critical path is above ``path`` its longest task,
    the first of equals, becomes two of half its length in the same stage."""
    if not path > 0:
        raise ValueError(f"expected a path above 0, found {path:g}")
    return [_split(job, path) for job in jobs]


def _split(job: Staged, path: float) -> Staged:
    stages = [list(stage) for stage in job.stages]
    longest = [max(stage) for stage in stages]
    while sum(longest) > path:
        at = longest.index(max(longest))
        stage = stages[at]
        where = stage.index(longest[at])
        stage[where : where + 1] = [longest[at] / 2, longest[at] / 2]
        longest[at] = max(stage)
    return Staged(job.name, tuple(map(tuple, stages)), job.reward, job.priority)


# ---------------------------------------------------------------------- nights of a render farm


@dataclass(frozen=True)
class Night:
    """Jobs as they will turn out, and what is believed of each before: work and critical path, seconds."""

    jobs: tuple[Staged, ...]
    work: tuple[float, ...]
    path: tuple[float, ...]


def night(rng: np.random.Generator, rewards: Sequence[float] = REWARDS) -> Night:
    """One night, in seconds. ``rewards``: of a job of each of the four priority bands."""
    if len(rewards) != len(BANDS):
        raise ValueError(f"expected {len(BANDS)} rewards, one a priority band, found {len(rewards)}")
    count = int(np.clip(np.rint(rng.normal(43, 18)), 5, 79))
    shares = np.array(BANDS) / sum(BANDS)
    jobs = []
    for number in range(1, count + 1):
        tasks = int(np.clip(np.rint(rng.lognormal(np.log(84), 0.814)), 3, 1328))
        usual = rng.lognormal(np.log(5356), BETWEEN)
        stages = tuple(
            tuple(np.clip(usual * (1.0 if size > 3 else SHORT) * rng.lognormal(0, WITHIN, size), 1.0, 85686.0)
                  .tolist())
            for size in _sizes(rng, tasks)
        )  # fmt: skip
        band = int(rng.choice(len(BANDS), p=shares))
        priority = band * BAND_WIDTH + int(rng.integers(BAND_WIDTH))
        jobs.append(Staged(str(number), stages, float(rewards[band]), float(priority)))
    wrong_work = np.exp(rng.normal(0, 0.6, count)).tolist()
    wrong_path = np.exp(rng.normal(0, 0.5, count)).tolist()
    return Night(
        tuple(jobs),
        tuple(job.work / wrong for job, wrong in zip(jobs, wrong_work, strict=True)),
        tuple(job.path / wrong for job, wrong in zip(jobs, wrong_path, strict=True)),
    )


def _sizes(rng: np.random.Generator, tasks: int) -> list[int]:
    """Tasks of each stage of a job."""
    stages = min(int(rng.integers(3, 8)), tasks)
    large = 1 + int(rng.random() < 1 / 3)
    sizes = [1] * stages
    if stages > large:
        small = rng.choice(3, stages - large, p=_SMALL / _SMALL.sum()) + 1
        sizes[large:] = small.tolist()
    rest = tasks - sum(sizes[large:])
    if rest < large:
        # A job of very few tasks has no large stage.
        return [tasks // stages + (at < tasks % stages) for at in range(stages)]
    sizes[:large] = [rest // large + (at < rest % large) for at in range(large)]
    rng.shuffle(sizes)
    return sizes
