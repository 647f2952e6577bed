"""Plugins whose answers change with the time of day: a run is that of a reference that asks each second.

The reference is brute force and knows nothing of events: at each second it works out who may start then. What
the plugins declare (``wake_at``, ``ask_always``) must be enough for headway to come to the same starts.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
import reference
from building import POLICIES, emulate, traced
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import Job, Running

from headway.energy.profiles import load_profile, with_energy
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, EnergyProfile
from headway.state import Barrier
from headway_plugins.energy.power_cap import PowerCap
from headway_plugins.policies.greedy import Greedy

TOTAL = 8
#: Seconds of a day and of its first half, the day proper; the rest is the night.
DAY, NOON = 12, 6
#: Jobs of more processors than this are wide.
NARROW = 3

#: Who starts at this second: (waiting jobs with numbers, running ones, free processors, now) -> numbers.
Answer = Callable[[list[tuple[int, Job]], list[Running], int, int], list[int]]


def by_second(jobs: list[Job], answer: Answer) -> list[int | None]:
    """Start time of each job (given in order of submission); None: never started.

    At each second completions and arrivals, then starts; again in the same second as long as somebody starts.
    """
    starts: list[int | None] = [None] * len(jobs)
    running: list[Running] = []
    last = jobs[-1].submit + sum(job.estimate for job in jobs) + (len(jobs) + 2) * DAY
    for now in range(last):
        if None not in starts:
            break
        begun: list[int] | None = None
        while begun or begun is None:
            running = [r for r in running if r.end > now]
            free = TOTAL - sum(r.job.processors for r in running)
            waiting = [(at, j) for at, j in enumerate(jobs) if j.submit <= now and starts[at] is None]
            begun = answer(waiting, running, free, now) if waiting else []
            for at in begun:
                job, starts[at] = jobs[at], now
                running.append(Running(at, job, now + job.estimate, now + min(job.runtime, job.estimate)))
            assert sum(r.job.processors for r in running) <= TOTAL
    return starts


def greedy(queue: list[tuple[int, Job]], running: list[Running], free: int, now: int) -> list[int]:
    """Whoever fits, in queue order."""
    begun = []
    for at, job in queue:
        if job.processors <= free:
            begun.append(at)
            free -= job.processors
    return begun


BY_DEFINITION: dict[str, Answer] = {
    "fcfs": reference.fcfs,
    "easy": reference.easy,
    "conservative": reference.conservative,
    "greedy": greedy,
}
PLUGINS = {**POLICIES, "greedy": Greedy}


@st.composite
def workloads(draw: st.DrawFn) -> list[Job]:
    """Jobs in order of submission; many moments coincide on purpose."""
    jobs, submit = [], 0
    for _ in range(draw(st.integers(2, 12))):
        submit += draw(st.sampled_from([0, 0, 1, 2, 5, 9]))
        estimate, runtime = draw(st.integers(1, 12)), draw(st.integers(0, 15))
        jobs.append(Job(submit, draw(st.integers(1, TOTAL)), estimate, runtime))
    return jobs


def starts(
    jobs: list[Job], *plugins: object, cluster: ClusterDescription | None = None, unit: int = 1
) -> list[float | None]:
    """Start times under headway, where all times of the jobs are counted in ``unit`` seconds."""
    coming = [
        traced(str(at), j.processors, j.estimate * unit, j.submit * unit, runtime=j.runtime * unit)
        for at, j in enumerate(jobs)
    ]
    run = emulate(cluster or ClusterDescription.flat(TOTAL), coming, *plugins)
    assert run.problems == []
    found = [run.starts[job.job.id] for job in coming]
    return [None if start is None else start / unit for start in found]


# ---------------------------------------------------------------- a limit by the time of day


def by_night(now: float) -> bool:
    return now % DAY >= NOON


def next_change(now: float) -> float:
    """When day follows night, or night day."""
    return now - now % NOON + NOON


class WideByNight:
    """Wide jobs are barred by day, and each job until a moment of its own after its submission."""

    def __init__(self, patience: int) -> None:
        self.patience = patience
        #: Until when each barrier holds.
        self.until: dict[float, float] = {}

    @hookimpl
    def bar_job(self, job, state):
        until = job.submit_time + self.patience * (job.processors % 3)
        if job.processors > NARROW and not by_night(until := max(until, state.now)):
            until = next_change(until)
        if until <= state.now:
            return None
        if until not in self.until:
            self.until[until] = until
            state.wake_at(until, job.pool)
        return Barrier(f"not before {until}", until)

    @hookimpl
    def react(self, state):
        for until in [until for until in self.until if until <= state.now]:
            del self.until[until]
            state.lifted(until)
        if not by_night(state.now):
            for pool in state.domains.values():
                state.bar_queued(pool)
        for pool in state.domains.values():
            if pool.queue:
                state.wake_at(next_change(state.now), pool)


def barred(job: Job, now: int, patience: int) -> bool:
    if now < job.submit + patience * (job.processors % 3):
        return True
    return job.processors > NARROW and not by_night(now)


@pytest.mark.parametrize("policy", PLUGINS)
@settings(max_examples=100, deadline=None)
@given(workloads(), st.sampled_from([0, 4]))
def test_who_is_barred_by_the_time_of_day_is_in_no_queue_just_then(policy, jobs, patience):
    def answer(queue, running, free, now):
        may = [(at, job) for at, job in queue if not barred(job, now, patience)]
        return BY_DEFINITION[policy](may, running, free, now)

    assert starts(jobs, WideByNight(patience), PLUGINS[policy]()) == by_second(jobs, answer)


# ---------------------------------------------------------------- a policy with a clock of its own


class InTurnByDay:
    """Strictly in order by day, whatever fits by night; nobody passes one who waits for long."""

    def __init__(self, patience: int) -> None:
        self.patience = patience

    @hookimpl
    def schedule(self, view):
        now, made = view.now, []
        for job in list(view.queue):
            if (start := view.start(job, "it fits")) is not None:
                made.append(start)
            elif not by_night(now) or now - job.submit_time < self.patience:
                break
        return made

    @hookimpl
    def control(self, state):
        for pool in state.domains.values():
            if pool.queue:
                state.wake_at(next_change(state.now), pool)
                for job in pool.queue:
                    if job.submit_time + self.patience > state.now:
                        state.wake_at(job.submit_time + self.patience, pool)


@settings(max_examples=200, deadline=None)
@given(workloads(), st.sampled_from([0, 3, 7]))
def test_a_policy_that_goes_by_the_clock_is_asked_when_its_answer_changes(jobs, patience):
    def answer(queue, running, free, now):
        begun = []
        for at, job in queue:
            if job.processors <= free:
                begun.append(at)
                free -= job.processors
            elif not by_night(now) or now - job.submit < patience:
                break
        return begun

    assert starts(jobs, InTurnByDay(patience)) == by_second(jobs, answer)


class EvenDays:
    """Whoever fits first, as long as as many wait that their number is even or it is night."""

    @hookimpl
    def schedule(self, view):
        waiting, made = list(view.queue), []
        while len(waiting) % 2 == 0 or by_night(view.now):
            start = next((s for job in waiting if (s := view.start(job, "it is its turn")) is not None), None)
            if start is None:
                break
            made.append(start)
            waiting = [job for job in waiting if job.id != start.job_id]
        return made

    @hookimpl
    def control(self, state):
        for pool in state.domains.values():
            if pool.queue:
                state.wake_at(next_change(state.now), pool)


@settings(max_examples=200, deadline=None)
@given(workloads())
# Who takes no time at all is over only after all starts of its moment.
@example([Job(0, 1, 1, 0), Job(0, TOTAL, 1, 0), Job(0, 1, 1, 1)])
def test_a_policy_that_counts_who_waits_is_asked_at_each_arrival(jobs):
    def answer(queue, running, free, now):
        begun = []
        while len(queue) % 2 == 0 or by_night(now):
            first = greedy(queue, running, free, now)[:1]
            if not first:
                break
            begun += first
            free -= jobs[first[0]].processors
            queue = [(at, job) for at, job in queue if at not in first]
        return begun

    assert starts(jobs, EvenDays()) == by_second(jobs, answer)


# ---------------------------------------------------------------- a power cap by the hour

#: Everything happens at multiples of this, two of which are an hour.
STEP = 1800


def one_level() -> EnergyProfile:
    """Processors of 40 W that cannot be slowed and draw nothing when idle."""
    profile = load_profile("chandio2014")
    first = profile.classes[0]
    return msgspec.structs.replace(
        profile, classes=(msgspec.structs.replace(first, levels=first.levels[:1]),)
    )


WATTS = 40


@pytest.mark.parametrize("policy", PLUGINS)
@settings(max_examples=60, deadline=None)
@given(workloads(), st.lists(st.integers(1, TOTAL), min_size=2, max_size=4), st.booleans())
def test_a_power_cap_by_the_hour_is_that_of_each_moment(policy, jobs, most, overtake):
    """``most``: how many busy processors each hour of the day allows, in turn."""
    most = [most[hour % len(most)] for hour in range(24)]

    def answer(queue, running, free, now):
        allowed = most[now // 2 % 24]
        may = [(at, job) for at, job in queue if job.processors <= allowed]
        busy, begun = TOTAL - free, []
        for at in BY_DEFINITION[policy](may, running, free, now):
            job = jobs[at]
            if busy + job.processors <= allowed:
                busy += job.processors
                begun.append(at)
            elif not overtake:
                break
        return begun

    windows = [
        {"from": f"{hour:02d}:00", "to": f"{(hour + 1) % 24:02d}:00", "watts": processors * WATTS}
        for hour, processors in enumerate(most)
    ]
    cap = PowerCap(PowerCap.Options(windows=windows, slow=False, slow_running=False, overtake=overtake))
    cluster = with_energy(ClusterDescription.flat(TOTAL), one_level())
    assert starts(jobs, cap, PLUGINS[policy](), cluster=cluster, unit=STEP) == by_second(jobs, answer)
