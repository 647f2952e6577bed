"""The genetic algorithm compares a bounded number of plans in a cycle, and the next cycle goes on."""

from __future__ import annotations

from typing import Any

import pytest
from building import described, emulate, federated, plugged
from sites_of import DataAreThere, decided
from test_data_coscheduling import LINKS, A, B, C, batch, ga, makespan

from headway import decisions as d
from headway import events as ev
from headway.model import Dataset
from headway.scheduler import Scheduler
from headway_plugins.data.genetic import Evolution
from headway_plugins.policies.fcfs import Fcfs

CAPABILITIES = frozenset({d.Copy, d.Drop, d.Route, d.Start})


def run(seed: int, spread: int = 0, **options: Any):
    datasets, jobs = batch(seed, spread=spread)
    plugin = ga(**options)
    cluster = federated(A, B, C, links=LINKS, datasets=datasets, size=2)
    found = emulate(cluster, jobs, Fcfs(), plugin, DataAreThere())
    assert found.problems == [] and set(found.states.values()) == {"completed"}
    return found, plugin


@pytest.mark.parametrize("seed", range(4))
def test_a_first_plan_is_the_same_however_many_cycles_it_takes(seed):
    at_once, plugin = run(seed, interval=1e6, cycle_evaluations=None)
    by_parts, other = run(seed, interval=1e6, cycle_evaluations=1)
    assert decided(by_parts, d.Route, d.Copy) == decided(at_once, d.Route, d.Copy)
    assert by_parts.starts == at_once.starts
    assert other.planned == plugin.planned
    assert makespan(by_parts) == pytest.approx(other.planned.first_end, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_jobs_that_come_and_go_while_plans_are_made_run_once(seed):
    found, plugin = run(seed, spread=500, interval=50.0, cycle_evaluations=1)
    assert plugin.planned.snapshots > 2
    assert all(one.starts == 1 for one in found.results.values())


def cycles(plugin, *events_by_cycle):
    """The decisions of each cycle until no further one is due at once."""
    cluster = federated(A, B, links=LINKS, datasets=[Dataset("x", 50, ("a",))], size=1)
    scheduler = Scheduler(cluster, plugged(Fcfs(), plugin), capabilities=CAPABILITIES)
    waiting = list(events_by_cycle)
    while waiting or scheduler.next_wakeup() == 0.0:
        decisions = scheduler.step(0.0, waiting.pop(0) if waiting else [])
        assert scheduler.problems == []
        yield scheduler, decisions


def movable(name: str, site: str = "a", **more: Any) -> ev.JobSubmitted:
    attributes = {"movable": "yes", **more}
    return ev.JobSubmitted(0.0, described(name, 1, 100, pool=f"{site}:q", attributes=attributes))


def test_a_cycle_breeds_no_more_generations_than_it_may(monkeypatch):
    bred = []
    monkeypatch.setattr(
        Evolution, "generation", lambda self, breed=Evolution.generation: (bred.append(1), breed(self))
    )
    jobs = [movable(f"j{at}") for at in range(10)]
    # 20 plans of 10 jobs are a generation: a cycle may compare 5 plans of 100 jobs, which are 50 of these.
    made = ga(evaluations=400, cycle_evaluations=5)
    counts, before = [], 0
    for _ in cycles(made, jobs):
        counts.append(len(bred) - before)
        before = len(bred)
    assert counts == [3, 3, 3, 3, 3, 3, 1] and made.planned.evaluations == 400


def test_other_jobs_go_meanwhile_and_jobs_without_a_plan_wait_for_theirs():
    stays = ev.JobSubmitted(0.0, described("stays", 1, 50, pool="a:q"))
    seen = list(cycles(ga(cycle_evaluations=1), [movable(f"j{at}") for at in range(6)], [stays]))
    (scheduler, first), (_, second), *rest = ((one, decisions) for one, decisions in seen)
    assert first == [] and [one.job_id for one in second] == ["stays"]
    assert not any(decisions for _, decisions in rest[:-1]) and len(rest) > 10
    assert {type(one) for one in rest[-1][1]} == {d.Route}
    assert not scheduler.state.barred


def test_the_reason_says_that_a_plan_is_being_made():
    for scheduler, _ in cycles(ga(cycle_evaluations=1), [movable(f"j{at}", data="x") for at in range(6)]):
        jobs = scheduler.state.jobs
        assert scheduler.state.why_waiting(jobs["j1"]) == "its plan is being made"
        break


def test_a_job_that_ends_while_its_plan_is_made_is_left_out():
    jobs = [movable(f"j{at}") for at in range(6)]
    gone = [ev.JobEnded(0.0, f"j{at}", "cancelled") for at in range(6)]
    plugin = ga(cycle_evaluations=1)
    seen = list(cycles(plugin, jobs, [], gone))
    assert not any(decisions for _, decisions in seen)
    assert seen[-1][0].state.barred == {} and plugin.planned.snapshots == 0
