"""What holds in every run: of random networks, and beside a simulation that goes hour by hour."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_plugins.wave.draws import Draws
from headway_plugins.wave.hosts import Hosts
from headway_plugins.wave.jobs import Job, Outcome
from headway_plugins.wave.metrics import measured, slowdown
from headway_plugins.wave.network import Network, What
from headway_plugins.wave.options import Clock, Options, Order, Retry, Search
from headway_plugins.wave.policies import POLICIES, Where
from headway_plugins.wave.population import population
from headway_plugins.wave.zones import Target, Wavezones

BEGINS = (What.RUN, What.RESUME, What.MOVE)
NAMES = st.sampled_from(sorted(POLICIES))
SETTINGS = st.fixed_dictionaries({
    "discovery": st.sampled_from(Search), "target": st.sampled_from(Target), "strict": st.booleans(),
    "retry": st.sampled_from(Retry), "lead": st.sampled_from([0, 0.25, 2.0]), "until": st.just(400.0),
})  # fmt: skip


@st.composite
def runs(draw):
    """A small population under any policy and options."""
    name, settings = draw(NAMES), draw(SETTINGS)
    drawn = population(
        draw(st.integers(1, 10_000)), free=draw(st.floats(0, 1)), clients=draw(st.floats(0.1, 1)),
        hosts=draw(st.integers(2, 40)), days=draw(st.integers(1, 3)), load=draw(st.booleans()),
        job_days=draw(st.integers(1, 2)),
    )  # fmt: skip
    return name, settings, drawn


def stretches(lines):
    """``(host, begin, end)`` of each stretch in which a job runs."""
    return [
        (line.host, line.time, following.time)
        for line, following in pairwise(lines) if line.what in BEGINS
    ]  # fmt: skip


@given(runs())
def test_every_run_keeps_to_the_rules(given_run):
    name, settings, drawn = given_run
    policy, hosts = POLICIES[name], drawn.hosts(Clock.ZONES)
    found = drawn.run(policy, Options(**settings), traced=True)
    held = {}
    by_job = {course.number: [] for course in found.courses}
    for line in found.trace:
        by_job[line.job].append(line)
        mine = held.get(line.job)
        if line.what in (What.RUN, What.SLEEP, What.MOVE):
            # A move claims the new host before the old host is free.
            assert line.host not in held.values()
            held[line.job] = line.host
        elif line.what in (What.DONE, What.FAIL):
            held.pop(line.job, None)
        else:
            assert mine == line.host
        if line.what in BEGINS:
            assert hosts.idle(line.host, int(line.time + 1e-9))
        if line.what is What.MOVE and policy.where is Where.NIGHT and settings["strict"]:
            assert hosts.night(line.host, int(line.time + 1e-9))
    for course in found.courses:
        lines = by_job[course.number]
        work = sum(hosts.work(host, begin, end) for host, begin, end in stretches(lines))
        idle = sum(end - begin for _, begin, end in stretches(lines))
        assert work <= idle + 1e-6
        assert all(
            hosts.idle(host, hour)
            for host, begin, end in stretches(lines) for hour in range(int(begin + 1e-9), int(end - 1e-9) + 1)
        )  # fmt: skip
        if course.outcome is Outcome.DONE:
            assert work - course.lost == pytest.approx(course.job.runtime)
            assert course.migrations == sum(line.what is What.MOVE for line in lines)
            plain = settings["retry"] is Retry.NO and drawn.loads is None
            if name.endswith("-immediate") and plain:
                assert slowdown(course, course.first) == pytest.approx(1.0, abs=1e-9)
        elif course.failed:
            assert settings["retry"] is Retry.NO


@given(runs())
def test_the_same_seed_gives_the_same_run(given_run):
    name, settings, drawn = given_run
    first, second = (drawn.run(POLICIES[name], Options(**settings), traced=True) for _ in range(2))
    assert first.trace == second.trace and measured(first) == measured(second)


@given(st.integers(1, 1000), st.sampled_from([0.05, 0.5, 0.95]))
def test_policies_of_a_seed_meet_the_same_hosts_and_jobs(seed, free):
    one, two = (population(seed, free=value, clients=0.5, hosts=20) for value in (free, 0.3))
    assert (one.zones, one.points, one.jobs) == (two.zones, two.points, two.jobs)
    longer = population(seed, free=free, clients=0.5, hosts=20, days=3, load=True, job_days=2)
    assert (longer.calendars[:, :24] == one.calendars).all()
    assert longer.jobs[: len(one.jobs)] == one.jobs and len(longer.jobs) == 2 * len(one.jobs)
    assert (one.calendars[:, :6]).all()
    assert (longer.loads[:, :6] <= 0.1).all() and (longer.loads <= 0.3).all()


def test_shares_of_a_population():
    drawn = population(3, free=0.3, clients=0.2, hosts=4000)
    assert len(population(3, free=0.3, clients=0.5, hosts=5).jobs) == 3
    assert len(drawn.jobs) == 800 and len({job.client for job in drawn.jobs}) == 800
    assert drawn.calendars[:, 6:].mean() == pytest.approx(0.3, abs=0.01)
    assert all(0 <= job.submit < 24 and 12 <= job.runtime < 24 for job in drawn.jobs)
    # Hosts join within their own wavezones; rectangles reach over the borders of wavezones here and there.
    overlay, zones = drawn.by_zone(), Wavezones(6)
    owners = [overlay.owner(x, 4 * zones.of(zone) + 4 * v)
              for (x, v), zone in zip(drawn.points, drawn.zones, strict=True)]  # fmt: skip
    same = [zones.of(drawn.zones[owner]) == zones.of(zone)
            for owner, zone in zip(owners, drawn.zones, strict=True)]  # fmt: skip
    assert 0.9 < np.mean(same) < 1


# ---------------------------------------------------------------------- hour by hour


@dataclass
class Slow:
    """A job of the slow simulation."""

    submit: int
    left: int
    host: int | None = None
    runs: bool = False
    timer: int | None = None
    steps: list = field(default_factory=list)
    end: str = ""


class HourByHour:
    """All of it anew, by whole hours: every job in turn at every hour; the lowest host that satisfies."""

    def __init__(self, name, zones, calendars, jobs, linger):
        self.where = POLICIES[name].where
        self.immediate, self.lingers, self.adaptive = (
            name.endswith(when) for when in ("immediate", "linger", "adaptive")
        )
        self.zones, self.calendars, self.linger = zones, calendars, linger
        self.jobs = [Slow(submit, runtime) for submit, runtime in jobs]
        self.hour = 0

    def idle(self, host):
        return self.calendars[host][(self.hour - self.zones[host]) % 24]

    def find(self, where):
        taken = {job.host for job in self.jobs}
        for host, zone in enumerate(self.zones):
            night = (self.hour - zone) % 24 < 6 and zone // 4 == self.hour % 24 // 4
            fits = where is Where.STAY or (self.idle(host) and (night or where is Where.ANY))
            if host not in taken and fits:
                return host
        return None

    def go(self, job):
        job.runs, job.timer = True, None
        job.steps.append((self.hour, job.host))

    def moved(self, job):
        host = self.find(self.where)
        if host is not None:
            job.host = host
            self.go(job)
        return host is not None

    def fail(self, job):
        job.host, job.runs, job.timer, job.end = None, False, None, f"failed {self.hour}"

    def work(self, job):
        job.left -= 1
        if job.left == 0:
            job.host, job.runs, job.end = None, False, f"done {self.hour}"

    def lose_or_wake(self, job):
        lost, woken = job.runs and not self.idle(job.host), job.timer == self.hour
        if not lost and not woken:
            return
        job.runs = False
        searches = woken or self.immediate or self.adaptive
        if searches and self.moved(job):
            return
        if self.immediate or (woken and self.lingers):
            self.fail(job)
        else:
            self.sleep(job)

    def sleep(self, job):
        if self.lingers or self.adaptive:
            job.timer = self.hour + self.linger

    def submit(self, job):
        job.host = self.find(self.where)
        if job.host is None and self.adaptive:
            job.host = self.find(Where.STAY)
        if job.host is None:
            self.fail(job)
        elif self.idle(job.host):
            self.go(job)
        else:
            self.sleep(job)

    def run(self, hours):
        for self.hour in range(hours):
            for job in [job for job in self.jobs if job.runs]:
                self.work(job)
            for job in [job for job in self.jobs if job.host is not None and not job.runs]:
                if self.idle(job.host):
                    self.go(job)
            for job in self.jobs:
                self.lose_or_wake(job)
            for job in [job for job in self.jobs if job.submit == self.hour]:
                self.submit(job)
        return [(job.steps, job.end or "unfinished") for job in self.jobs]


def ended(course):
    """As the slow simulation tells it."""
    if course.outcome is Outcome.UNFINISHED:
        return "unfinished"
    return f"{'done' if course.outcome is Outcome.DONE else 'failed'} {course.end}"


ZONES = st.lists(st.sampled_from([0, 2, 5, 9, 12, 17, 21]), min_size=2, max_size=6)


@given(NAMES, ZONES, st.data())
def test_a_run_is_that_of_a_simulation_hour_by_hour(name, zones, data):
    days = [[True] * 6 + data.draw(st.lists(st.booleans(), min_size=18, max_size=18)) for _ in zones]
    few = [[hour < 6 or (day and hour % 5 == 0) for hour, day in enumerate(one)] for one in days]
    calendars = data.draw(st.sampled_from([days, few]))
    jobs = data.draw(st.lists(st.tuples(st.integers(0, 23), st.integers(1, 30)), min_size=1, max_size=5))
    linger = data.draw(st.integers(1, 3))
    options = Options(discovery=Search.LOWEST, linger=linger, order=Order.NUMBER, until=149)
    network = Network(Hosts(zones, calendars), None, POLICIES[name], options, Draws(()))
    found = network.run([Job(*job) for job in jobs])
    slow = HourByHour(name, zones, calendars, jobs, linger)
    assert [(course.placements, ended(course)) for course in found.courses] == slow.run(150)
