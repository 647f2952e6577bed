"""The site's Maui: priorities of queues that rise with the wait, limits, the reserve for short jobs."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from building import described, plugged, traced

from headway import events as ev
from headway.config import load_config
from headway.decisions import Start
from headway.emulation import emulate
from headway.inquiry import explain
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.scheduler import Scheduler, plain_clock
from headway_plugins.grid.login_logout import LoginLogoutModel, LoginLogoutOptions
from headway_plugins.grid.lpc import QUEUES
from headway_plugins.grid.queue_priority import QueuePriority, QueuePriorityOptions
from headway_plugins.grid.reserve_short import ReserveShort, ReserveShortOptions
from headway_plugins.limits.plugin import Limits, LimitsOptions
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.strict import Strict

CATALOGUE = Catalogue()
NUMBER = {queue.name: number for number, queue in enumerate(QUEUES)}
MAUI = [PluginConfig("maui-grid")]


def scheduler(processors, *more, policy=None):
    limits = Limits(LimitsOptions(of={"qos+pool": {"*+*": {"jobs": 130}}}))
    return Scheduler(
        ClusterDescription.flat(processors), plugged(policy or Strict(), QueuePriority(), limits, *more)
    )


def step(s, now, *events):
    made = [d.job_id for d in s.step(now, events) if isinstance(d, Start)]
    if made:
        s.step(now, [ev.JobStarted(now, name) for name in made])
    assert s.problems == []
    return made


@pytest.mark.parametrize(
    ("lower", "higher", "seconds"),
    [
        ("Short", "Test", 73_000), ("Infinite", "Test", 136_000), ("Long", "Short", 26_000),
        ("Day", "Long", 1_000), ("Infinite", "Day", 36_000),
    ],
)  # fmt: skip
def test_w18_when_an_older_job_of_a_lower_queue_is_reached(lower, higher, seconds):
    for waited, first in ((seconds - 1, "fresh"), (seconds + 1, "old")):
        s = scheduler(1)
        now = 1_000_000.0
        step(s, 0, ev.JobSubmitted(0, described("runs", estimate=now, qos="Test")))
        old = described("old", qos=lower, submit=now - waited)
        step(s, now - waited, ev.JobSubmitted(now - waited, old))
        fresh = described("fresh", qos=higher, submit=now)
        assert step(s, now, ev.JobEnded(now, "runs"), ev.JobSubmitted(now, fresh)) == [first]


def test_w19_a_short_job_that_has_waited_long_enough_passes_a_fresh_test():
    s = scheduler(1)
    step(s, 0, ev.JobSubmitted(0, described("runs", estimate=1e6, qos="Test")))
    step(s, 10, ev.JobSubmitted(10, described("short", qos="Short", submit=10)))
    now = 10 + 73_001
    test = described("test", qos="Test", submit=now)
    assert step(s, now, ev.JobEnded(now, "runs"), ev.JobSubmitted(now, test)) == ["short"]


def test_w20_who_is_blocked_by_a_limit_holds_up_nobody():
    s = scheduler(140)
    week = 7 * 86400
    running = [described(f"r{n}", estimate=1e7, qos="Infinite") for n in range(130)]
    assert len(step(s, 0, *(ev.JobSubmitted(0, job) for job in running))) == 130
    assert step(s, 1, ev.JobSubmitted(1, described("old", qos="Infinite", submit=1))) == []
    assert step(s, week, ev.JobSubmitted(week, described("day", qos="Day", submit=week))) == ["day"]
    assert "130" in explain(s, "old", plain_clock)[-1]
    assert step(s, week + 5, ev.JobEnded(week + 5, "r7")) == ["old"]


def test_priorities_of_groups_and_users_are_added():
    options = QueuePriorityOptions(groups={"atlas": 500.0}, users={"ann": 250.0}, second=1.0)
    plugin = QueuePriority(options)
    s = Scheduler(ClusterDescription.flat(1), plugged(Strict(), plugin))
    step(s, 0, ev.JobSubmitted(0, described("runs", estimate=1e6)))
    for name, more in (
        ("a", {}),
        ("b", {"user": "ann"}),
        ("c", {"group": "atlas"}),
        ("d", {"account": "atlas"}),
    ):
        step(s, 10, ev.JobSubmitted(10, described(name, submit=10, **more)))
    assert [job.id for job in s.state.domains["pool"].queue] == ["c", "d", "b", "a"]
    assert plugin.priority(s.state.jobs["b"], 110) == 350


def brute_force(jobs, processors, most, poll):
    """Start times of serial jobs (submit, runtime, queue): everybody sorted at each poll."""
    waiting, ends, start = set(range(len(jobs))), [], {}
    running = dict.fromkeys(range(5), 0)
    now = 0
    while waiting:
        while ends and ends[0][0] <= now:
            running[jobs[heapq.heappop(ends)[1]][2]] -= 1
        there = [n for n in waiting if jobs[n][0] <= now]
        for n in sorted(
            there, key=lambda n: (-(QUEUES[jobs[n][2]].priority + 10 * (now - jobs[n][0])), jobs[n][0], n)
        ):
            if len(ends) < processors and running[jobs[n][2]] < most:
                start[n] = now
                running[jobs[n][2]] += 1
                heapq.heappush(ends, (now + jobs[n][1], n))
                waiting.discard(n)
        now += poll
    return start


@pytest.mark.parametrize("seed", range(20))
def test_acceptance_6_starts_equal_a_sort_at_each_poll(seed):
    rng = np.random.default_rng(seed)
    count, processors, most, poll = 60, int(rng.integers(2, 7)), int(rng.integers(1, 4)), 60
    jobs = [
        (int(at), int(rng.integers(1, 2000)), int(rng.integers(0, 5)))
        for at in np.sort(rng.integers(0, 40_000 if seed % 2 else 3000, count))
    ]
    wanted = brute_force(jobs, processors, most, poll)
    workload = [
        traced(str(n + 1), estimate=5000, submit=at, runtime=runtime, qos=QUEUES[queue].name)
        for n, (at, runtime, queue) in enumerate(jobs)
    ]
    plugins = [
        PluginConfig("strict"), PluginConfig("queue-priority"),
        PluginConfig("limits", {"of": {"qos": {"*": {"jobs": most}}}}),
    ]  # fmt: skip
    result = emulate(
        ClusterDescription.flat(processors), workload, plugins, CATALOGUE, label="maui", cycle=poll
    )
    found = {int(job.job.id) - 1: job.start_time for job in result.jobs}
    assert found == wanted


# ---------------------------------------------------------------------- the reserve


def reserved(processors, policy=None, **options):
    return Scheduler(
        ClusterDescription.flat(processors),
        plugged(policy or Easy(), ReserveShort(ReserveShortOptions(**options))),
    )


def test_long_jobs_leave_the_reserve_to_short_ones():
    s = reserved(10, share=0.2)
    jobs = [described(f"l{n}", estimate=1000, submit=0) for n in range(10)]
    assert len(step(s, 0, *(ev.JobSubmitted(0, job) for job in jobs))) == 8
    assert (
        "2 of 10 processors are kept for jobs of at most 900 s, and longer jobs use 8"
        in explain(s, "l9", plain_clock)[-1]
    )
    shorts = [described(f"s{n}", estimate=900, submit=5) for n in range(3)]
    assert step(s, 5, *(ev.JobSubmitted(5, job) for job in shorts)) == ["s0", "s1"]
    # What a long one leaves goes to the first who waits; what a short one leaves, to a short one.
    assert step(s, 6, ev.JobEnded(6, "l0")) == ["l8"]
    assert step(s, 7, ev.JobEnded(7, "s0")) == ["s2"]
    assert step(s, 8, ev.JobEnded(8, "s1")) == []


def test_a_long_job_that_needs_the_reserve_waits_for_the_other_long_ones_alone():
    s = reserved(10, share=0.2)
    one, large = described("one", estimate=1000), described("large", processors=9, estimate=1000)
    assert step(s, 0, ev.JobSubmitted(0, one), ev.JobSubmitted(0, large)) == ["one"]
    assert step(s, 1, ev.JobEnded(1, "one")) == ["large"]
    assert step(s, 2, ev.JobEnded(2, "large")) == []


def test_a_job_whose_estimate_changes_is_counted_anew():
    s = reserved(4, share=0.25)
    jobs = [described(f"l{n}", estimate=1000) for n in range(4)]
    assert len(step(s, 0, *(ev.JobSubmitted(0, job) for job in jobs))) == 3
    assert step(s, 1, ev.JobChanged(1, described("l0", estimate=500))) == ["l3"]


@pytest.mark.parametrize("options", [{"share": 0}, {"share": 1}, {"share": float("nan")}, {"seconds": -1}])
def test_refuses_a_reserve_of_nothing_or_all(options):
    with pytest.raises(ValueError):
        ReserveShortOptions(**options)


# ---------------------------------------------------------------------- whole runs


def grid_jobs(seed, arrivals="login-logout", load=0.9, jobs=3000):
    options = LoginLogoutOptions(jobs=jobs, load=load, arrivals=arrivals)
    return LoginLogoutModel().generate(np.random.default_rng(seed), options).jobs


def ran(jobs, *more):
    plugins = [*MAUI, *more]
    return emulate(ClusterDescription.flat(140), jobs, plugins, CATALOGUE, label="grid", cycle=60)


def mean_wait(result, longest=1e9):
    waits = [j.start_time - j.job.submit_time for j in result.jobs if j.job.request.walltime <= longest]
    return float(np.mean(waits))


def test_acceptance_10_in_small_bursts_wait_longer_than_poisson_arrivals():
    bursts, poisson = (mean_wait(ran(grid_jobs(1, arrivals))) for arrivals in ("login-logout", "poisson"))
    assert bursts > 2 * poisson


def test_acceptance_11_in_small_the_reserve_helps_short_jobs():
    jobs = grid_jobs(1)
    plain, kept = ran(jobs), ran(jobs, PluginConfig("reserve-short"))
    assert mean_wait(kept, 900) < mean_wait(plain, 900)


def test_the_site_of_the_paper_is_two_front_ends_of_their_own(request):
    config = load_config(request.config.rootpath / "etc" / "grid" / "lpc.yaml")
    cluster = config.emulation.description()
    assert {
        pool.name: sum(node.processors for node in cluster.nodes if pool.name in node.pools)
        for pool in cluster.pools
    } == {"ce1": 56, "ce2": 84}
    options = LoginLogoutOptions(days=1, pools={"ce1": 56, "ce2": 84})
    jobs = LoginLogoutModel().generate(np.random.default_rng(2), options).jobs
    shares = np.mean([job.job.pool == "ce2" for job in jobs])
    assert shares == pytest.approx(0.6, abs=0.1)
    result = emulate(cluster, jobs, config.plugin_configs(), CATALOGUE, label="lpc", cycle=60)
    assert len(result.jobs) == len(jobs)
    for job in result.jobs:
        assert {name[0] for name, _ in job.placement} == {"a" if job.job.pool == "ce1" else "b"}
