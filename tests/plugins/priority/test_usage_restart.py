"""What was used, over a restart after something went wrong: suspended jobs, clocks that jump, damage;
and of users who cut their work into very many jobs."""

from __future__ import annotations

import json

import pytest
from building import described, plugged

from headway import events as ev
from headway.decisions import Start
from headway.model import Association, ClusterDescription, SitePolicy
from headway.scheduler import Scheduler
from headway_plugins.policies.easy import Easy
from headway_plugins.priority.fair_tree import FairTree, FairTreeOptions
from headway_plugins.priority.multifactor import Multifactor, MultifactorOptions

ACCOUNTS = {"x": {"users": ["ann", "bob"]}}


def scheduler(saved=None, half_life=None, accounts=ACCOUNTS, processors=8):
    fair = FairTree(FairTreeOptions(half_life=half_life, accounts=accounts))
    multi = Multifactor(MultifactorOptions(weights={"fairshare": 1000}, period=10))
    return Scheduler(ClusterDescription.flat(processors), plugged(fair, multi, Easy()), saved=saved), fair


def used(fair, now, user="ann"):
    return fair.standing(now).usage[fair.tree.association("x", user)]


def job(name, user="ann", **more):
    return described(name, more.pop("processors", 1), 1000, user=user, account="x", **more)


def told(name, start):
    """As at the beginning of a run: a job that runs."""
    return [ev.JobSubmitted(start, job(name)), ev.JobStarted(start, name)]


def again(s):
    return scheduler(json.loads(json.dumps(s.checkpoint())))


def suspended():
    """It ran for 100 s and is suspended."""
    s, _ = scheduler()
    s.step(100, told("r", 100))
    s.step(200, [ev.JobSuspended(200, "r")])
    return s


def test_who_was_suspended_and_resumed_before_a_restart_counts_once():
    s = suspended()
    s.step(300, [ev.JobResumed(300, "r")])
    after, fair = again(s)
    after.step(400, told("r", 100))
    assert used(fair, 400) == 200
    after.step(450, [ev.JobEnded(450, "r")])
    assert used(fair, 1000) == 250
    assert after.problems == []


def test_who_is_resumed_while_nobody_looks_counts_from_the_last_look():
    after, fair = again(suspended())
    after.step(400, told("r", 100))
    # 100 s until it was suspended, and 200 since the last look.
    assert used(fair, 400) == 300


def test_who_stays_suspended_over_two_restarts_uses_nothing():
    s = suspended()
    for _ in range(2):
        s, fair = again(s)
        s.step(400, [*told("r", 100), ev.JobSuspended(400, "r")])
        assert used(fair, 500) == 100
    s.step(500, [ev.JobResumed(500, "r")])
    assert used(fair, 560) == 160


def test_a_clock_that_was_set_back_while_nobody_looked():
    """The journal is of the future. Whoever runs counts from its start; who was over is not counted again."""
    s, _ = scheduler()
    s.step(4000, told("a", 4000))
    s.step(4100, [ev.JobEnded(4100, "a")])
    after, fair = again(s)
    after.step(520, [*told("b", 500), *told("a", 400), ev.JobEnded(410, "a")])
    assert used(fair, 600) == 200
    decided = after.step(600, [ev.JobSubmitted(600, job("c"))])
    assert [d.job_id for d in decided if isinstance(d, Start)] == ["c"]
    assert after.problems == []


def test_a_clock_that_was_set_forward_while_nobody_looked():
    """Who is gone ran until the last start or end that was seen; who runs, until now."""
    s, _ = scheduler()
    s.step(100, [*told("a", 100), *told("b", 100), *told("c", 100)])
    s.step(150, [ev.JobEnded(150, "c")])
    after, fair = again(s)
    after.step(4000, told("b", 100))
    assert used(fair, 4000) == 50 + 50 + 3900


GOOD = {
    "seen": 150.0, "reset_at": None, "nodes": [["root", ""], ["x", ""], ["x", "ann"], ["x", "bob"]],
    "used": {"half_life": 1000.0, "origin": 100.0, "sums": {"2": 50.0}}, "running": {"r": [2, 1.0, 100.0]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        ({"used": None}, "Expected `object`, got `null` - at `$.used`"),
        ({"seen": "?"}, "Expected `float`, got `str` - at `$.seen`"),
        ({"used": {"half_life": 1000.0}}, "'origin'"),
        ({"used": {**GOOD["used"], "sums": {"2": "x"}}}, "unsupported operand"),
        ({"used": {**GOOD["used"], "sums": {"9": 1.0}}}, "9"),
        ({"used": {**GOOD["used"], "sums": {"2": -5.0}}}, "expected finite amounts of at least 0"),
        ({"used": {**GOOD["used"], "sums": {"2": float("nan")}}}, "expected finite amounts of at least 0"),
        ({"used": {**GOOD["used"], "origin": "x"}}, "unsupported operand"),
        ({"running": {"r": [9, 1.0, 100.0]}}, "job r: expected a user, a rate and a time, found 9, 1.0, 100"),
        ({"running": {"r": [2, -1.0, 100.0]}}, "job r: expected a user, a rate and a time"),
        ({"running": {"r": "x"}}, "Expected `array`, got `str`"),
        ({"nodes": [["x"]]}, "$.nodes[0]"),
    ],
)
def test_a_damaged_checkpoint_is_told_and_nothing_of_it_is_used(damage, found):
    s, fair = scheduler({"fairtree": GOOD}, half_life=1000)
    assert s.problems == []
    s, fair = scheduler({"fairtree": {**GOOD, **damage}}, half_life=1000)
    [problem] = s.problems
    assert (problem.plugin, problem.hook) == ("fairtree", "restore")
    assert "the saved usage is damaged and is counted anew, from nothing on: " in problem.message
    assert found in problem.message
    s.problems.clear()
    decided = s.step(200, [*told("r", 100), ev.JobSubmitted(200, job("z", "bob"))])
    assert [d.job_id for d in decided if isinstance(d, Start)] == ["z"]
    # What runs counts from its start.
    assert used(fair, 200) == pytest.approx(96.6, abs=0.1)
    assert s.problems == []
    s.checkpoint()


def test_with_a_damaged_checkpoint_usage_is_what_the_batch_system_says():
    s, fair = scheduler({"fairtree": {"seen": 1.0}}, accounts="from-slurm")
    s.problems.clear()
    accounts = (Association("x"), Association("x", "ann", usage=500.0))
    s.step(200, [ev.SitePolicyChanged(200, SitePolicy(accounts, half_life=0.0))])
    assert used(fair, 200) == 500
    assert s.problems == []


def test_work_in_very_many_small_jobs_counts_as_much_as_in_one():
    s, fair = scheduler(processors=101)
    s.step(0, [*told("r", 0)])
    made = s.step(0, [ev.JobSubmitted(0, job(f"b{n}", "bob")) for n in range(5000)])
    s.step(0, [ev.JobStarted(0, d.job_id) for d in made if isinstance(d, Start)])
    now = 0
    while any(j.description.user == "bob" for j in s.state.jobs.values()):
        running = [
            j.id for j in s.state.jobs.values() if j.description.user == "bob" and j.start_time is not None
        ]
        now += 1
        made = s.step(now, [ev.JobEnded(now, name) for name in running])
        s.step(now, [ev.JobStarted(now, d.job_id) for d in made if isinstance(d, Start)])
    assert (now, used(fair, now), used(fair, now, "bob")) == (50, 50, 5000)
    # Whoever has used less comes first, however many wait before.
    s.step(now, [ev.JobSubmitted(now, job("all", "cem", processors=100))])
    s.step(now, [ev.JobStarted(now, "all")])
    s.step(now, [ev.JobSubmitted(now, job(f"c{n}", "bob")) for n in range(50)])
    s.step(now + 20, [ev.JobSubmitted(now + 20, job("d"))])
    assert next(iter(s.state.domains["pool"].queue)).id == "d"
    assert s.problems == []
