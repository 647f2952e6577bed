"""Selection among 5,000 jobs in under 1 s; dispatch of 1,000,000
tasks at 50,000 tasks/s or more; dynamic programming beside HiGHS.

`make bench ARGS="-s -k windows"` tells the figures.
"""

import sys
from time import process_time

import numpy as np
import pytest

from headway_plugins.windows.dispatch import ORDERS, dispatch
from headway_plugins.windows.nights import PROCESSORS, night, synthetic
from headway_plugins.windows.selection import select
from headway_plugins.windows.staged import Staged, room

pytestmark = pytest.mark.benchmark


def say(text):
    print(f"\nwindows: {text}", file=sys.__stderr__)


def rewards(rng, works, kind):
    """Rewards of jobs, and how nearly they follow the works."""
    return {
        "bands": lambda: rng.choice([10.0, 5.0, 2.0, 1.0], len(works)),
        "uniform": lambda: rng.integers(1, 1001, len(works)).astype(float),
        "works": lambda: works,
        "near works": lambda: np.rint(works * rng.uniform(0.8, 1.2, len(works))),
    }[kind]()


@pytest.mark.parametrize("kind", ["bands", "uniform", "works", "near works"])
def test_5000_jobs(kind):
    rng = np.random.default_rng(1)
    works = np.rint(rng.lognormal(13, 1, 5000))
    gains = rewards(rng, works, kind)
    began = process_time()
    found = select(works, gains, works.sum() / 2)
    took = process_time() - began
    say(f"selection among 5,000 jobs, rewards: {kind}: {took * 1e3:.0f} ms, gap {found.gap:g}")
    assert took < 1.0
    assert found.gap == 0


@pytest.mark.parametrize("order", sorted(ORDERS))
def test_a_million_tasks(order):
    rng = np.random.default_rng(1)
    jobs = [
        Staged(str(number), tuple(tuple(stage.tolist()) for stage in rng.integers(1, 600, (5, 200))),
               priority=number % 400)
        for number in range(1000)
    ]  # fmt: skip
    began = process_time()
    run = dispatch(jobs, 1000, 1e9, ORDERS[order], rng=rng)
    took = process_time() - began
    say(f"1,000,000 tasks on 1,000 processors by {order}: {1e6 / took:,.0f} tasks/s")
    assert run.completed == 1000
    assert 1e6 / took >= 50_000


@pytest.mark.parametrize("what", ["synthetic", "night"])
def test_beside_highs(what):
    from scipy.optimize import Bounds, LinearConstraint, milp

    if what == "synthetic":
        jobs, processors, deadline = synthetic(np.random.default_rng((1, 1))), PROCESSORS, 4680
        gains = np.array([job.work for job in jobs])
    else:
        jobs, processors, deadline = night(np.random.default_rng((5, 1))).jobs, 1000, 23400
        gains = np.array([job.worth for job in jobs])
    works = np.array([job.work for job in jobs])
    capacity = room(0.87, processors, deadline)
    began = process_time()
    ours = select(works, gains, capacity)
    took = process_time() - began
    began = process_time()
    theirs = milp(
        -gains, constraints=LinearConstraint(works[None, :], -np.inf, capacity),
        integrality=np.ones(len(works)), bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0, "time_limit": 20},
    )  # fmt: skip
    other = process_time() - began
    say(f"{what}, {len(jobs)} jobs: {took * 1e3:.1f} ms, HiGHS {other * 1e3:.1f} ms (status {theirs.status})")
    assert ours.reward >= -theirs.fun - 1e-6
    assert took < other
