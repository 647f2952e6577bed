"""Sizes from predictions: the rule on its own, then in emulation."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from building import alike, described, emulate, node_cluster, plugged, traced
from hypothesis import given
from hypothesis import strategies as st

from headway import events as ev
from headway.decisions import Resize, Start
from headway.model import ClusterDescription
from headway.scheduler import Scheduler
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.easy import Easy
from headway_plugins.prediction.models import Prediction
from headway_plugins.prediction.scopred import Scopred, ScopredOptions
from headway_plugins.prediction.sizing import MOST, PATIENCE, Sizing, SizingOptions, choose, sizes

#: Coefficients of 1, N/P and P: the last is what makes many processors a waste.
TRUE = {"solver": (20.0, 1.0, 1.5), "mesh": (5.0, 2.0, 0.5), "filter": (60.0, 0.5, 4.0)}
FORMULA = "N/P + P"


def seconds(application, n, p):
    constant, work, price = TRUE[application]
    return constant + work * n / p + price * p


def predicted(mean, pi=0.0, problem=""):
    return Prediction(mean, pi / 2, pi, "regression", 10, 1.0, 0.1, problem)


PERFECT = [(size, predicted(100 / size)) for size in (1, 2, 4, 8)]
WORSE = [(size, predicted(100 / size + 5 * size)) for size in (1, 2, 4, 8)]


@pytest.mark.parametrize(
    ("found", "deadline", "efficiency", "size"),
    [
        (PERFECT, 100, None, 1),
        (PERFECT, 99, None, 2),
        (PERFECT, 25, None, 4),
        (PERFECT, 12, None, None),
        # 105, 60, 45, 52.5 s: against the first as efficient as 1, 0.875, 0.583, 0.25.
        (WORSE, 1000, 0.8, 2),
        (WORSE, 1000, 0.5, 4),
        (WORSE, 1000, 1.0, 1),
        # None that ends in time is so efficient: the smallest of those.
        (WORSE, 50, 0.8, 4),
        # The upper end counts, not the mean.
        ([(1, predicted(100, 20)), (2, predicted(50, 20))], 110, None, 2),
        # What must not be used does not count.
        ([(1, predicted(100, problem="far")), (2, predicted(50))], 200, None, 2),
        ([(1, predicted(100, problem="far"))], 200, None, None),
        ([(1, predicted(100, math.inf)), (2, predicted(50))], 200, None, 2),
    ],
)
def test_the_rule(found, deadline, efficiency, size):
    choice = choose(found, deadline, efficiency)
    assert (choice.size if choice is not None else None) == size


@given(st.integers(1, 5000), st.integers(0, 100_000))
def test_all_sizes_are_looked_at_or_many_between_the_ends(least, more):
    found = sizes(least, least + more)
    assert found == sorted(set(found)) and (found[0], found[-1]) == (least, least + more)
    assert len(found) <= MOST
    assert more >= MOST or len(found) == more + 1


@pytest.fixture
def options(tmp_path):
    """Options with 20 runs of each application at several sizes, off by ``noise`` of what they take."""

    def make(kind=SizingOptions, noise=0.0, **more):
        lines = ["applications:"]
        lines += [f"  {name}: {{formula: {FORMULA}, sizes: {{P: processors}}}}" for name in TRUE]
        (tmp_path / "applications.yaml").write_text("\n".join(lines))
        rng = np.random.default_rng(1)
        rows = ["application,pool,N,P,runtime"]
        for name, (n, p) in product(TRUE, product((1000, 2000, 4000, 8000), (2, 4, 8, 16, 32))):
            runtime = seconds(name, n, p) * (1 + noise * rng.standard_normal())
            rows.append(f"{name},{pool},{n},{p},{runtime}")
        (tmp_path / "runs.csv").write_text("\n".join(rows))
        return kind(applications=tmp_path / "applications.yaml", runs=tmp_path / "runs.csv", **more)

    pool = ClusterDescription.flat(1).pools[0].name
    return make


def job(name, application, n, processors, estimate=100_000, moldable=True, submit=0):
    attributes = {"comment": f"scopred:app={application};N={n}"}
    if moldable:
        attributes["moldable"] = moldable
    return traced(
        name, processors, estimate, submit, runtime=seconds(application, n, processors), user="u",
        attributes=attributes,
    )  # fmt: skip


def ran(run):
    return {name: (result.job.request.processors, result.runtime) for name, result in run.results.items()}


def test_a_moldable_job_gets_the_smallest_size_that_ends_within_its_limit(options):
    # 5 + 2000/P + P/2 s: 60 processors take 68.3 s, 16 take 138 s, 17 take 131.1 s.
    jobs = [
        job("sized", "mesh", 1000, 60, estimate=135),
        job("two", "mesh", 1000, 60, moldable=20, estimate=135),
        job("rigid", "mesh", 1000, 60, moldable=False, estimate=135),
        job("late", "mesh", 100_000, 60, estimate=135),
    ]
    plugin = Sizing(options())
    run = emulate(ClusterDescription.flat(64), jobs, Easy(), plugin, physics=[plugin.register_physics()])
    assert not run.problems
    found = ran(run)
    assert found["sized"] == (17, pytest.approx(seconds("mesh", 1000, 17)))
    assert found["two"][0] == 20
    assert (found["rigid"][0], found["late"][0]) == (60, 60)
    (why,) = {d.reason for _, d in run.decisions if isinstance(d, Resize) and d.job_id == "sized"}
    assert why.startswith("17 processors instead of 60: it is predicted to end within 131.1 s there, of the")
    assert [d.job_id for _, d in run.decisions if isinstance(d, Start)].count("sized") == 1


class Truth:
    """How long runs take, whatever is predicted."""

    def __init__(self, jobs):
        self.asked = {one.job.id: (one.job.request.processors, one.runtime) for one in jobs}

    def rate(self, execution, now):
        words = dict(item.split("=") for item in execution.job.attributes["comment"][8:].split(";"))
        runtime = seconds(words["app"], float(words["N"]), execution.job.request.processors)
        return self.asked[execution.job.id][1] / runtime


def makespan(run):
    assert not run.problems and set(run.states.values()) == {"completed"}
    return max(result.end_time for result in run.results.values())


def test_acceptance_10_sizing_beats_fixed_sizes_and_is_near_that_with_true_coefficients(options):
    rng = np.random.default_rng(2)
    jobs = [
        job(f"{name}-{at}", name, float(rng.integers(1000, 8000)), int(rng.choice([16, 32, 48])))
        for at, name in product(range(12), TRUE)
    ]
    more = {"efficiency": 0.6, "emulated": "as-told"}

    def run(plugin):
        return makespan(emulate(ClusterDescription.flat(64), jobs, Easy(), plugin, physics=[Truth(jobs)]))

    fixed = run(Scopred(options(ScopredOptions)))
    sized, best = run(Sizing(options(noise=0.03, **more))), run(Sizing(options(**more)))
    assert sized < fixed
    assert sized <= 1.05 * best, (fixed, sized, best)
    print(f"makespan: fixed sizes {fixed:.0f} s, predicted {sized:.0f} s, true coefficients {best:.0f} s")


def scheduler(plugin, cluster=None, *more):
    able = frozenset({Start, Resize})
    return Scheduler(
        cluster or ClusterDescription.flat(64), plugged(Easy(), plugin, *more), capabilities=able
    )  # fmt: skip


def submitted(one, at=0.0, name="a", processors=60, **more):
    attributes = {"comment": "scopred:app=mesh;N=1000", "moldable": True}
    told = described(name, processors, 135, 0, user="u", attributes=attributes, **more)
    return one.step(at, [ev.JobSubmitted(at, told)]), told


def changed(told, processors):
    request = type(told.request)(processors, told.request.walltime)
    return described(told.id, processors, request.walltime, 0, user="u", attributes=told.attributes)


def test_it_starts_once_the_cluster_shows_its_size_and_is_asked_for_again_if_it_does_not(options):
    one = scheduler(Sizing(options()))
    (resize,), told = submitted(one)
    assert (resize.job_id, resize.processors) == ("a", 17)
    assert one.step(1.0, [ev.Tick(1.0)]) == []
    assert one.next_wakeup() == PATIENCE
    (again,) = one.step(PATIENCE, [])
    assert again.processors == 17
    (start,) = one.step(61.0, [ev.JobChanged(61.0, changed(told, 17))])
    assert isinstance(start, Start)
    assert one.state.jobs["a"].processors == 17


def test_what_somebody_else_makes_of_it_is_what_it_asks_for(options):
    one = scheduler(Sizing(options()))
    _, told = submitted(one)
    (resize,) = one.step(1.0, [ev.JobChanged(1.0, changed(told, 30))])
    assert resize.processors == 17 and "instead of 30" in resize.reason


def test_a_change_that_the_cluster_refuses_is_not_tried_again(options):
    one = scheduler(Sizing(options()))
    (resize,), _ = submitted(one)
    (start,) = one.step(1.0, [ev.DecisionFailed(1.0, resize, "not allowed")])
    assert isinstance(start, Start) and one.state.jobs["a"].processors == 60


def test_what_it_decided_is_known_after_a_restart(options):
    before = Sizing(options())
    one = scheduler(before)
    _, told = submitted(one)
    after = Sizing(options())
    after.restore(before.checkpoint())
    assert after.checkpoint() == before.checkpoint()
    again = scheduler(after)
    (start,) = again.step(5.0, [ev.JobSubmitted(5.0, changed(told, 17))])
    assert isinstance(start, Start)


def test_who_asks_for_nodes_keeps_its_size(options):
    cluster = node_cluster(*alike(4, 16), pools=("pool",))
    one = scheduler(Sizing(options()), cluster, FirstFit())
    decisions, _ = submitted(one, nodes=4, processors_per_node=15)
    assert not any(isinstance(decision, Resize) for decision in decisions)
