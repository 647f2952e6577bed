"""All priorities of a large site at once, and what an order costs a cycle in which nothing changed.

`make bench ARGS="-k priority"`; the figures are in docs/performance.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time

import numpy as np
import pytest

from headway import events as ev
from headway.model import ClusterDescription, JobDescription, Request
from headway.plugins import Plugins
from headway.scheduler import Scheduler
from headway_plugins.policies.easy import Easy
from headway_plugins.priority.fair_tree import FairTree, FairTreeOptions
from headway_plugins.priority.multifactor import Multifactor, MultifactorOptions

pytestmark = pytest.mark.benchmark

JOBS, USERS, ACCOUNTS, PROCESSORS, PERIOD = 50_000, 5_000, 1_000, 10_000, 300.0


def site() -> Scheduler:
    """Jobs that wait for a machine of which four fifths are taken; every user has used something."""
    rng = np.random.default_rng(1)
    accounts: dict[str, dict] = {}
    for number in range(ACCOUNTS):
        users = {f"u{n}": int(rng.integers(1, 9)) for n in range(number, USERS, ACCOUNTS)}
        accounts.setdefault(f"top{number % 20}", {"accounts": {}})["accounts"][f"a{number}"] = {
            "shares": int(rng.integers(1, 9)),
            "users": users,
        }
    fair = FairTree(FairTreeOptions(accounts=accounts))
    weights = {"age": 1000, "fairshare": 10_000, "size": 100, "qos": 2000, "association": 10}
    plugins = Plugins()
    plugins.add("fair-tree", fair)
    plugins.add("multifactor", Multifactor(MultifactorOptions(weights=weights, qos={"q0": 1, "q1": 5})))
    plugins.add("easy", Easy())
    scheduler = Scheduler(ClusterDescription.flat(PROCESSORS), plugins)

    def job(name: str, user: int, processors: int, submit: float) -> ev.JobSubmitted:
        account, qos = f"a{user % ACCOUNTS}", f"q{user % 3}"
        request = Request(processors, float(rng.integers(60, 86_400)))
        return ev.JobSubmitted(
            submit, JobDescription(name, submit, request, user=f"u{user}", account=account, qos=qos)
        )

    scheduler.step(0.0, [job(f"r{n}", n % USERS, 1, 0.0) for n in range(8000)])
    scheduler.step(1.0, [ev.JobStarted(1.0, f"r{n}") for n in range(8000)])
    sizes = rng.integers(2001, 9000, JOBS)
    scheduler.step(
        10.0, [job(f"j{n}", int(rng.integers(USERS)), int(sizes[n]), float(n % 10)) for n in range(JOBS)]
    )
    assert len(scheduler.state.domains["pool"].queue) == JOBS
    assert not scheduler.problems
    return scheduler


def seconds(do: Callable[[], object]) -> float:
    began = process_time()
    do()
    return process_time() - began


def test_all_priorities_of_a_large_site_anew() -> None:
    s = site()
    plugin = s.plugins.by_name["multifactor"]
    anew, quiet, computed = [], [], []
    now = 100.0
    for _ in range(5):
        now += PERIOD
        anew.append(seconds(lambda now=now: s.step(now, [])))
        quiet.append(seconds(lambda now=now: s.step(now + 1, [])))
        jobs = list(s.state.domains["pool"].queue)
        computed.append(seconds(lambda jobs=jobs: plugin.priorities(jobs, s.state)))
    print(
        f"\n{JOBS} jobs of {USERS} users in {ACCOUNTS} accounts: all priorities {min(computed):.3f} s; with "
        f"the queue in their order {min(anew):.3f} s; a cycle in which nothing changed "
        f"{1000 * min(quiet):.2f} ms",
        file=sys.__stderr__,
    )
    assert min(computed) < 0.3
    assert min(quiet) < 0.010
