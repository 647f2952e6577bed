"""What holds of every run with elastic job bundling, whatever the workload."""

from itertools import pairwise

from building import emulate, traced
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.events import JobEnded
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription
from headway.model.bundles import TICK, Oversubscription
from headway_plugins.bundling.manager import Bundling, BundlingOptions
from headway_plugins.bundling.model import INFINITY, progress
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy

PROCESSORS = 16


@st.composite
def workloads(draw):
    """Jobs (submit, processors, estimate, runtime) in order of submission."""
    exact = draw(st.booleans())
    now, jobs = 0, []
    for _ in range(draw(st.integers(2, 14))):
        now += draw(st.sampled_from((0, 0, 5, 40, 300)))
        estimate = draw(st.sampled_from((30, 100, 250, 700, 2000)))
        share = 1.0 if exact else draw(st.sampled_from((0.0, 0.1, 0.5, 0.9, 1.0)))
        jobs.append((now, draw(st.integers(1, PROCESSORS)), estimate, estimate * share))
    return jobs


class Watched(Bundling):
    """Notes each plan when it is adopted."""

    def __init__(self, options):
        super().__init__(options)
        self.plans = {}
        self.cases = []
        self.ends = {}

    def _wake(self, job, state):
        super()._wake(job, state)
        self._note(job)

    def _turn(self, job, state):
        turned = super()._turn(job, state)
        if turned is not None:
            self._note(job)
        return turned

    def _choice(self, job, now, slots):
        choice = super()._choice(job, now, slots)
        if choice is not None:
            self.cases.append(choice.case)
        return choice

    def _note(self, job):
        self.plans.setdefault(job.job_id, []).append((job.model, job.done, list(job.intervals)))

    @hookimpl
    def observe(self, event, state):
        if isinstance(event, JobEnded):
            self.ends[event.job_id] = event.time
        super().observe(event, state)


def run(jobs, policy=Easy, migration=20.0, **options):
    plugin = Watched(BundlingOptions(migration=migration, min_processors=2, **options))
    traces = [traced(str(at), p, e, s, runtime=r) for at, (s, p, e, r) in enumerate(jobs)]
    found = emulate(
        ClusterDescription.flat(PROCESSORS), traces, policy(), plugin,
        oversubscription=Oversubscription(options.get("penalty", 1.0), migration),
    )  # fmt: skip
    assert found.problems == []
    return found.adapter.results(), plugin


def held(results):
    """The processors that each job had: (start, end, processors)."""
    for job in results:
        if job.members:
            yield from ((m.start, m.end, m.processors) for m in job.members)
        else:
            yield job.start_time, job.end_time, job.job.request.processors


def check(jobs, results, plugin):
    assert [job.state for job in results] == ["completed"] * len(jobs)
    changes = {}
    for start, end, processors in held(results):
        changes[start] = changes.get(start, 0) + processors
        changes[end] = changes.get(end, 0) - processors
    used = 0
    for time in sorted(changes):
        used += changes[time]
        assert 0 <= used <= PROCESSORS
    for job_id, plans in plugin.plans.items():
        for model, done, intervals in plans:
            assert all(one.end <= other.start + 1e-6 for one, other in pairwise(intervals))
            for interval in intervals:
                assert interval.migrating or model.least <= interval.processors <= model.processors
            assert abs(done + progress(model, intervals, intervals[-1].end) - 1) < 1e-6
        completions = [intervals[-1].end for _, _, intervals in plans]
        assert all(later <= earlier + 1e-5 for earlier, later in pairwise(completions))
        _, _, estimate, runtime = jobs[int(job_id)]
        end = results[int(job_id)].end_time
        if runtime == estimate:
            assert abs(end - completions[-1]) < 8 * TICK
        else:
            assert end <= completions[-1] + 1e-5
    for job, (_, _, _, runtime) in zip(results, jobs, strict=True):
        if job.members:
            assert job.start_time == min(member.start for member in job.members)
            # No faster than alone, if it is not by its penalty.
            assert job.end_time - job.start_time >= runtime - 1e-5


@given(workloads(), st.sampled_from((2, 8, 64)), st.sampled_from((1.0, 20.0, 120.0)))
@settings(max_examples=40, deadline=None)
def test_bundles_hold_over_easy(jobs, omax, migration):
    check(jobs, *run(jobs, migration=migration, omax=omax))


@given(workloads())
@settings(max_examples=15, deadline=None)
def test_bundles_hold_over_another_policy(jobs):
    check(jobs, *run(jobs, Conservative))


@given(workloads())
@settings(max_examples=15, deadline=None)
def test_with_a_penalty(jobs):
    check(jobs, *run(jobs, penalty=1.5))


@given(workloads())
@settings(max_examples=15, deadline=None)
def test_without_elastic_jobs_it_is_the_policy_bit_by_bit(jobs):
    results, _ = run(jobs, only=["nobody"])
    plain = emulate(
        ClusterDescription.flat(PROCESSORS),
        [traced(str(at), p, e, s, runtime=r) for at, (s, p, e, r) in enumerate(jobs)],
        Easy(),
    ).adapter.results()
    assert [(job.start_time, job.end_time) for job in results] == [
        (job.start_time, job.end_time) for job in plain
    ]


@given(workloads())
@settings(max_examples=15, deadline=None)
def test_without_migrations_nobody_moves_or_grows(jobs):
    results, plugin = run(jobs, migration=INFINITY)
    check(jobs, results, plugin)
    assert set(plugin.cases) <= {1, 2}
    assert not any(job.migrations for job in results)
    assert all(len(job.members) <= 2 for job in results)


@given(workloads())
@settings(max_examples=10, deadline=None)
def test_the_same_run_again_is_the_same(jobs):
    first, again = run(jobs)[0], run(jobs)[0]
    assert [(job.start_time, job.end_time, job.members) for job in first] == [
        (job.start_time, job.end_time, job.members) for job in again
    ]
