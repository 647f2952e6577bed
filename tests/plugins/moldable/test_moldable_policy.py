"""The policy for moldable jobs in emulation: batches as planned, sizes with limits, plans made again."""

import pytest
from building import alike, described, emulate, node_cluster, plugged, traced
from hypothesis import given
from hypothesis import strategies as st
from test_moldable_vectors import BATCHES

from headway import events as ev
from headway.decisions import Resize, SetTimeLimit, Start
from headway.model import ClusterDescription
from headway.scheduler import Scheduler
from headway_plugins.moldable.policy import Moldable, MoldableOptions
from headway_plugins.placement.first_fit import FirstFit

MARK = {"attributes": {"moldable": True}}


class Run:
    """A run in emulation: who ran where and when, and what was decided."""

    def __init__(self, jobs, /, cluster=4, more=(), faults=None, **options):
        cluster = ClusterDescription.flat(cluster) if isinstance(cluster, int) else cluster
        self.policy = Moldable(MoldableOptions(**{"replan_interval": 0, **options}))
        physics = [self.policy.register_physics()]
        self.run = emulate(cluster, jobs, self.policy, *more, faults=faults, physics=physics, max_rounds=5000)
        assert self.run.problems == []

    def shown(self, job_id):
        """Start, end, processors, limit."""
        result = self.run.results[job_id]
        request = result.job.request
        return result.start_time, result.end_time, request.processors, request.walltime

    @property
    def resized(self):
        return {decision.job_id for _, decision in self.run.decisions if isinstance(decision, Resize)}


def batch_jobs(name, **more):
    processors, tasks = BATCHES[name]
    return [traced(str(number), size, time, **more) for number, (size, time) in enumerate(tasks)], processors


# ---------------------------------------------------------------------- the paper's case


@pytest.mark.parametrize(
    ("name", "algorithm", "entries"),
    [
        ("B1", "A1", {0: (0, 6, 2), 1: (0, 5, 2), 2: (5, 9, 2), 3: (6, 10, 1)}),
        ("B1", "A3", {0: (0, 3, 4), 2: (3, 5, 3), 3: (3, 7, 1), 1: (5, 10, 2)}),
        (
            "B4", "A2",
            {0: (0, 4, 8), 2: (4, 10, 3), 1: (4, 10, 3), 4: (4, 10, 2), 3: (10, 17, 2), 5: (10, 19, 1)},
        ),
        ("B7", "A4", {0: (0, 9, 6), 1: (0, 2, 1)}),
    ],
)  # fmt: skip
def test_on_an_empty_pool_the_plan_is_what_runs(name, algorithm, entries):
    jobs, processors = batch_jobs(name)
    run = Run(jobs, processors, algorithm=algorithm, jobs="all")
    assert {at: run.shown(str(at))[:3] for at in entries} == entries


def test_11_the_limit_grows_by_the_factor_of_the_time():
    jobs, processors = batch_jobs("B4")
    run = Run(jobs, processors, jobs="all")
    for number, (size, time) in enumerate(BATCHES["B4"][1]):
        _, _, got, limit = run.shown(str(number))
        assert limit == time * -(-size // got)
    assert run.resized == {"0", "4"}


def test_ltf_resizes_nobody_that_fits():
    jobs, processors = batch_jobs("B4")
    run = Run(jobs, processors, jobs="all", algorithm="LTF")
    assert run.resized == set()
    assert max(run.shown(str(at))[1] for at in range(6)) == 16


# ---------------------------------------------------------------------- who is moldable


def test_11_a_rigid_job_is_planned_and_never_resized():
    jobs = [traced("rigid", 3, 4), traced("marked", 3, 4, **MARK)]
    run = Run(jobs, 5)
    assert run.resized == {"marked"}
    assert run.shown("rigid") == (0, 4, 3, 4)
    assert run.shown("marked") == (0, 8, 2, 8)


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({"attributes": {"moldable": 2}}, {}),
        (MARK, {"least": 2}),
        (MARK, {"processes_per_processor": 2}),
    ],
)
def test_nobody_gets_less_than_it_bears(more, options):
    jobs = [traced(name, 4, 10, **more) for name in "abc"]
    run = Run(jobs, 5, **options)
    assert all(run.shown(name)[2] >= 2 for name in "abc")


@pytest.mark.parametrize("shape", [{"nodes": 2}, {"processors_per_node": 2}, {"exclusive": True}])
def test_a_shape_in_nodes_is_kept(shape):
    cluster = node_cluster(*alike(3, 2))
    jobs = [traced(name, 4, 10, **shape, **MARK) for name in "ab"]
    run = Run(jobs, cluster, more=(FirstFit(),), algorithm="A4")
    assert run.resized == set()
    assert run.shown("b")[0] == 10


def test_a_job_that_is_larger_than_its_pool_is_made_to_fit():
    run = Run([traced("wide", 7, 1, **MARK), traced("rigid", 7, 1)])
    assert run.shown("wide") == (0, 2, 4, 2)
    assert run.run.results["rigid"].start_time is None


def test_a_limit_beyond_the_longest_of_the_pool_is_not_asked_for():
    from headway.model import PoolDescription

    cluster = ClusterDescription("cluster", (PoolDescription("pool", processors=4, max_walltime=25),))
    run = Run([traced(name, 4, 10, **MARK) for name in "abc"], cluster, algorithm="A4")
    assert all(run.shown(name)[3] <= 25 for name in "abc")


# ---------------------------------------------------------------------- plans made again


def test_running_jobs_are_the_first_frontier():
    jobs = [traced("long", 2, 100), traced("late", 4, 10, submit=1, **MARK)]
    run = Run(jobs)
    assert run.shown("late") == (1, 21, 2, 20)


def test_an_early_end_makes_a_new_plan():
    """Planned behind "early", which ends after 5 s of its 50."""
    jobs = [traced("early", 3, 50, runtime=5), traced("long", 1, 50), traced("next", 3, 60, 1)]
    run = Run(jobs)
    assert run.shown("next")[0] == 5


def test_at_most_one_plan_in_an_interval():
    jobs = [traced("early", 3, 500, runtime=5), traced("long", 1, 500), traced("next", 3, 60, 1)]
    run = Run(jobs, replan_interval=100)
    assert run.shown("next")[0] == 100


def test_a_job_that_was_shrunk_and_not_started_gets_its_size_back():
    scheduler = Scheduler(ClusterDescription.flat(4), plugged(Moldable(MoldableOptions(replan_interval=0))))
    scheduler.step(0.0, [ev.JobSubmitted(0.0, described("a", 2, 100)), ev.JobStarted(0.0, "a")])
    wide = described("b", 4, 10, 1, **MARK)
    first = scheduler.step(1.0, [ev.JobSubmitted(1.0, wide)])
    assert [(type(d), d.job_id) for d in first] == [(Resize, "b"), (SetTimeLimit, "b")]
    # Nothing starts before the cluster shows both.
    half = described("b", 2, 10, 1, **MARK)
    assert scheduler.step(2.0, [ev.JobChanged(2.0, half)]) == []
    # The other one ends meanwhile: all four processors are there.
    both = described("b", 2, 20, 1, **MARK)
    found = scheduler.step(3.0, [ev.JobEnded(3.0, "a"), ev.JobChanged(3.0, both)])
    assert [type(d) for d in found] == [Resize, SetTimeLimit]
    assert (found[0].processors, found[1].walltime) == (4, 10)
    assert [type(d) for d in scheduler.step(4.0, [ev.JobChanged(4.0, wide)])] == [Start]


def test_a_refused_change_is_taken_back_and_the_job_is_rigid():
    scheduler = Scheduler(ClusterDescription.flat(4), plugged(Moldable(MoldableOptions(replan_interval=0))))
    scheduler.step(0.0, [ev.JobSubmitted(0.0, described("a", 2, 100)), ev.JobStarted(0.0, "a")])
    resize, _ = scheduler.step(1.0, [ev.JobSubmitted(1.0, described("b", 4, 10, 1, **MARK))])
    found = scheduler.step(2.0, [ev.DecisionFailed(2.0, resize, "not allowed")])
    assert [(type(d), d.walltime) for d in found] == [(SetTimeLimit, 10)]
    assert "not allowed" in found[0].reason
    found = scheduler.step(100.0, [ev.JobEnded(100.0, "a")])
    assert [type(d) for d in found] == [Start]


def test_a_refused_size_is_not_asked_for_again_by_a_plan_that_is_not_renewed_yet():
    scheduler = Scheduler(ClusterDescription.flat(4), plugged(Moldable(MoldableOptions(replan_interval=30))))
    scheduler.step(0.0, [ev.JobSubmitted(0.0, described("a", 2, 100)), ev.JobStarted(0.0, "a")])
    resize, _ = scheduler.step(1.0, [ev.JobSubmitted(1.0, described("b", 4, 10, 1, **MARK))])
    undo = scheduler.step(2.0, [ev.DecisionFailed(2.0, resize, "not allowed")])
    assert [type(d) for d in undo] == [SetTimeLimit]
    changed = described("b", 4, undo[0].walltime, 1, **MARK)
    assert scheduler.step(3.0, [ev.JobChanged(3.0, changed)]) == []
    assert scheduler.step(40.0, []) == []
    assert [type(d) for d in scheduler.step(100.0, [ev.JobEnded(100.0, "a")])] == [Start]


def test_what_was_asked_for_survives_a_restart():
    policy = Moldable(MoldableOptions(replan_interval=0))
    scheduler = Scheduler(ClusterDescription.flat(4), plugged(policy))
    scheduler.step(0.0, [ev.JobSubmitted(0.0, described("a", 2, 100)), ev.JobStarted(0.0, "a")])
    scheduler.step(1.0, [ev.JobSubmitted(1.0, described("b", 4, 10, 1, **MARK))])
    later = Moldable(MoldableOptions(replan_interval=0))
    later.restore(policy.checkpoint())
    scheduler = Scheduler(ClusterDescription.flat(4), plugged(later))
    found = scheduler.step(5.0, [ev.JobSubmitted(1.0, described("b", 2, 20, 1, **MARK))])
    assert [(type(d), getattr(d, "processors", 0)) for d in found] == [(Resize, 4), (SetTimeLimit, 0)]
    assert found[1].walltime == 10


def test_who_is_larger_than_the_pool_starts_as_planned_also_where_everybody_else_ended_a_little_early():
    """The plan stands, nobody is in the queue, and nothing happens at the planned start."""
    run = Run([traced("a", 6, 2, runtime=1.5), traced("b", 16, 1, 1, runtime=1, **MARK)], 8, algorithm="LTF")
    assert run.shown("b")[:3] == (2, 4, 8)


# ---------------------------------------------------------------------- learning


def test_the_true_cost_of_sharing_is_learned_from_jobs_that_completed():
    """Programs that take 1.5 times as long as the model says where processors are shared."""
    jobs = [traced(f"full{n}", 4, 100, n * 1000, runtime=10, user="u", name="p", **MARK) for n in range(3)]
    for n in range(3):
        begin = 10_000 + 1000 * n
        jobs += [
            traced(f"block{n}", 2, 500, begin),
            traced(f"half{n}", 4, 100, begin + 1, runtime=10, user="u", name="p", **MARK),
        ]  # fmt: skip
    run = Run(jobs, emulated_stretch=1.5)
    assert all(run.shown(f"half{n}")[1] - run.shown(f"half{n}")[0] == pytest.approx(30) for n in range(3))
    assert list(run.policy._seen) == ["u\np\n4"]
    seen = run.policy._seen["u\np\n4"]
    assert seen.stretch(3) == pytest.approx(1.5)
    assert seen.stretch(4) == 1.0 and seen.stretch(0) == 1.0


# ---------------------------------------------------------------------- properties


@given(
    st.lists(
        st.tuples(
            st.integers(1, 10), st.integers(1, 50), st.integers(0, 60), st.floats(0.1, 1.0), st.booleans()
        ),
        min_size=1, max_size=12,
    ),
    st.sampled_from(("A1", "A2", "A3", "A4", "LTF")),
    st.sampled_from((0, 10)),
)  # fmt: skip
def test_every_job_runs_once_with_all_of_its_work(jobs, algorithm, interval):
    """And those that are not moldable as they are."""
    made = [
        traced(str(n), size, time, submit, runtime=time * share, **(MARK if marked else {}))
        for n, (size, time, submit, share, marked) in enumerate(sorted(jobs, key=lambda job: job[2]))
    ]
    run = Run(made, 8, algorithm=algorithm, replan_interval=interval)
    for trace in made:
        result = run.run.results[trace.job.id]
        asked, marked = trace.job.request, trace.job.attributes is not None
        if asked.processors > 8 and not marked:
            assert result.start_time is None
            continue
        got = result.job.request
        assert result.state == "completed"
        share = -(-asked.processors // got.processors)
        assert result.end_time - result.start_time == pytest.approx(trace.runtime * share)
        assert got.walltime == pytest.approx(asked.walltime * share)
        assert marked or got.processors == asked.processors
