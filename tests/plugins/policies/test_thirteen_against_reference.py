"""Job by job, the thirteen policies give the starts of the brute-force reference.

Event-driven and in batch mode, on a count of processors and on nodes.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import thirteen_reference as reference
from building import alike, emulate, node_cluster, traced
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.hookspecs import hookimpl
from headway.model import ClusterDescription
from headway.plugins import Again, Catalogue, PluginConfig, make_plugin
from headway_plugins.orders.longest_first import LongestFirst
from headway_plugins.orders.smallest_first import SmallestFirst
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.greedy import Greedy
from headway_plugins.policies.k_reserved import KReserved, KReservedOptions
from headway_plugins.policies.strict import Strict
from headway_plugins.policies.window import Window, WindowOptions

TOTAL = 8
CATALOGUE = Catalogue()


def plugins_of(name: str) -> list:
    """The plugins that a name on the command line stands for, made anew."""
    configs = CATALOGUE.expanded([PluginConfig(name)])
    return [make_plugin(CATALOGUE.get(config.name), config) for config in configs]


@st.composite
def workloads(draw, most: int = 16):
    """Jobs in order of submission; many instants, sizes and estimates coincide on purpose."""
    jobs = []
    submit = 0
    for _ in range(draw(st.integers(1, most))):
        submit += draw(st.sampled_from([0, 0, 0, 1, 2, 7]))
        estimate = draw(st.integers(0, 12))
        runtime = draw(st.one_of(st.just(estimate), st.integers(0, 15)))
        size = draw(st.one_of(st.integers(1, TOTAL), st.integers(1, 3)))
        jobs.append(reference.Job(submit, size, estimate, runtime))
    return jobs


def starts_by_headway(jobs, plugins, cluster=None, cycle=None):
    run = emulate(
        cluster or ClusterDescription.flat(TOTAL),
        [traced(str(at), j.processors, j.estimate, j.submit, runtime=j.runtime) for at, j in enumerate(jobs)],
        *plugins,
        cycle=cycle,
    )
    assert run.problems == []
    return [run.starts[str(at)] for at in range(len(jobs))]


@pytest.mark.parametrize("name", reference.THIRTEEN)
@settings(max_examples=80, deadline=None)
@given(workloads())
def test_each_of_the_thirteen_is_the_reference(name, jobs):
    order, rule = reference.THIRTEEN[name]
    assert starts_by_headway(jobs, plugins_of(name)) == reference.schedule(jobs, TOTAL, order, rule())


@pytest.mark.parametrize("name", reference.THIRTEEN)
@settings(max_examples=50, deadline=None)
@given(jobs=workloads(), cycle=st.sampled_from([1, 3, 10]))
def test_in_batch_mode_each_is_the_reference_looked_at_in_every_cycle(name, jobs, cycle):
    order, rule = reference.THIRTEEN[name]
    expected = reference.schedule(jobs, TOTAL, order, rule(), cycle)
    starts = starts_by_headway(jobs, plugins_of(name), cycle=cycle)
    assert starts == expected
    assert all(start is None or start % cycle == 0 for start in starts)


@pytest.mark.parametrize("name", sorted(set(reference.THIRTEEN) - {"easy", "k-reserved"}))
@settings(max_examples=25, deadline=None)
@given(jobs=workloads(10), cycle=st.sampled_from([None, 5]))
def test_on_nodes_of_one_processor_they_decide_as_on_a_count(name, jobs, cycle):
    """Those that book nothing: a booking on nodes is of certain nodes, so backfilling may differ."""
    order, rule = reference.THIRTEEN[name]
    starts = starts_by_headway(jobs, [*plugins_of(name), FirstFit()], node_cluster(*alike(TOTAL, 1)), cycle)
    assert starts == reference.schedule(jobs, TOTAL, order, rule(), cycle)


@pytest.mark.parametrize("kind", ["flat", "nodes"])
@settings(max_examples=100, deadline=None)
@given(jobs=workloads(), limit=st.integers(0, 3), cycle=st.sampled_from([None, 5]))
def test_under_k_reserved_nobody_is_overtaken_more_often_than_the_limit(kind, jobs, limit, cycle):
    cluster = ClusterDescription.flat(TOTAL) if kind == "flat" else node_cluster(*alike(2, 4))
    run = emulate(
        cluster,
        [traced(str(at), j.processors, j.estimate, j.submit, runtime=j.runtime) for at, j in enumerate(jobs)],
        KReserved(KReservedOptions(limit=limit)),
        FirstFit(),
        cycle=cycle,
    )
    assert run.problems == []
    order = [int(decision.job_id) for _, decision in run.decisions]
    for job in range(len(jobs)):
        before = order[: order.index(job)] if job in order else order
        assert sum(other > job for other in before) <= limit


@settings(max_examples=150, deadline=None)
@given(workloads(), st.integers(1, 4))
def test_a_window_of_any_size_is_the_reference(jobs, size):
    expected = reference.schedule(jobs, TOTAL, reference.by_submission, reference.window(size))
    assert starts_by_headway(jobs, [Window(WindowOptions(size=size))]) == expected


@settings(max_examples=250, deadline=None)
@given(workloads(), st.integers(0, 4))
def test_k_reserved_with_any_limit_is_the_reference(jobs, limit):
    expected = reference.schedule(jobs, TOTAL, reference.by_submission, reference.Reserved(limit))
    assert starts_by_headway(jobs, [KReserved(KReservedOptions(limit=limit))]) == expected


@settings(max_examples=100, deadline=None)
@given(workloads(), st.integers(1, 3))
def test_parts_go_together_as_one_likes(jobs, parameter):
    """An order that the paper does not combine with them."""
    expected = reference.schedule(jobs, TOTAL, reference.smallest, reference.Reserved(parameter))
    limited = KReserved(KReservedOptions(limit=parameter))
    assert starts_by_headway(jobs, [limited, SmallestFirst()]) == expected
    expected = reference.schedule(jobs, TOTAL, reference.longest, reference.window(parameter))
    assert starts_by_headway(jobs, [Window(WindowOptions(size=parameter)), LongestFirst()]) == expected


@settings(max_examples=100, deadline=None)
@given(workloads())
def test_with_a_limit_of_zero_nobody_overtakes_and_with_a_high_one_it_is_easy(jobs):
    never, always = KReserved(KReservedOptions(limit=0)), KReserved(KReservedOptions(limit=1000))
    assert starts_by_headway(jobs, [never]) == starts_by_headway(jobs, plugins_of("fcfs"))
    assert starts_by_headway(jobs, [always]) == starts_by_headway(jobs, plugins_of("easy"))


def without_shortcuts(policy: type) -> type:
    """The policy, asked at every arrival and never told that only arrivals happened."""

    class Forgetful(policy):
        traits = replace(policy.traits, ask_again=Again.ANY_EVENT)

        @hookimpl
        def schedule(self, view):
            view.forget()
            view.fresh, view.arrivals = -1, None
            return policy.schedule(self, view)

    return Forgetful


MAKES = {
    "strict": lambda kind: kind(),
    "greedy": lambda kind: kind(),
    "window": lambda kind: kind(WindowOptions(size=3)),
    "k-reserved": lambda kind: kind(KReservedOptions(limit=2)),
}
KINDS = {"strict": Strict, "greedy": Greedy, "window": Window, "k-reserved": KReserved}


@pytest.mark.parametrize("nodes", [False, True])
@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=40, deadline=None)
@given(jobs=workloads(12), order=st.sampled_from([None, SmallestFirst, LongestFirst]))
def test_looking_at_arrivals_only_changes_nothing(name, nodes, jobs, order):
    cluster = node_cluster(*alike(2, 4)) if nodes else None
    more = [FirstFit(), *([order()] if order is not None else [])]
    short = starts_by_headway(jobs, [MAKES[name](KINDS[name]), *more], cluster)
    assert short == starts_by_headway(jobs, [MAKES[name](without_shortcuts(KINDS[name])), *more], cluster)
