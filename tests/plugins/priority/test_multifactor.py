"""The weighted sum of factors: who is served first, when that is found out, and what is said about it."""

from __future__ import annotations

import json

import pytest
from building import described, emulate, plugged, traced

from headway import events as ev
from headway.errors import UserError
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, Dependency, NodeDescription, PoolDescription
from headway.plugins import Plugins
from headway.scheduler import Scheduler
from headway_plugins.policies.easy import Easy
from headway_plugins.priority.fair_tree import FairTree, FairTreeOptions
from headway_plugins.priority.multifactor import Multifactor, MultifactorOptions


def scheduler(processors=8, more=(), saved=None, cluster=None, **options):
    plugin = Multifactor(MultifactorOptions(**options))
    plugins = plugged(*more, plugin, Easy())
    s = Scheduler(cluster or ClusterDescription.flat(processors), plugins, saved=saved)
    s.step(0, [ev.JobSubmitted(0, described("whole", processors, 10_000))])
    s.step(0, [ev.JobStarted(0, "whole")])
    return s, plugin


def queue(s):
    return "".join(job.id for job in s.state.domains["pool"].queue)


def arrive(s, now, *jobs):
    s.step(now, [ev.JobSubmitted(now, job) for job in jobs])
    assert s.problems == []


#: One of ``a`` and ``b`` is better in one factor.
FACTORS = [
    ({"age": 1}, {}, {"submit": 50}, {"submit": 10}, "ba"),
    ({"age": 1}, {"max_age": 20}, {"submit": 50}, {"submit": 10}, "ba"),
    ({"age": 1}, {}, {"submit": 10, "begin_time": 90.0}, {"submit": 20}, "ba"),
    ({"size": 1}, {}, {"processors": 1}, {"processors": 2}, "ba"),
    ({"size": 1}, {"favour": "small"}, {"processors": 2}, {"processors": 1}, "ba"),
    ({"size": 1}, {"size": "time"}, {"estimate": 600}, {"estimate": 60}, "ba"),
    ({"qos": 1}, {"qos": {"low": 1, "high": 9}}, {"qos": "low"}, {"qos": "high"}, "ba"),
    ({"pool": 1}, {"pools": {"pool": 0}}, {}, {}, "ab"),
    ({"expansion": 1}, {}, {"estimate": 999, "submit": 10}, {"estimate": 9, "submit": 10}, "ba"),
    ({"deadline": 1}, {}, {}, {"attributes": {"deadline": 3600}}, "ba"),
    ({"resource:processors": 1}, {}, {"processors": 1}, {"processors": 3}, "ba"),
    ({"age": 0.0, "size": 0.0}, {}, {"attributes": {"nice": 5}}, {}, "ba"),
    ({"size": -1}, {}, {"processors": 2}, {"processors": 1}, "ba"),
]


@pytest.mark.parametrize(("weights", "options", "first", "second", "order"), FACTORS)
def test_each_factor_puts_the_better_job_first(weights, options, first, second, order):
    s, _ = scheduler(weights=weights, **options)
    arrive(s, 100, described("a", **first), described("b", **second))
    assert queue(s) == order


@pytest.mark.parametrize(("weights", "options", "first", "second", "order"), FACTORS)
def test_a_job_alone_has_the_priority_that_it_has_among_others(weights, options, first, second, order):
    weights = {**weights, "fairshare": 3.7, "age": 0.3, "size": 0.7}
    s, plugin = scheduler(weights=weights, more=[FairTree(FairTreeOptions())], **options)
    of = {"user": "u", "estimate": 700, "processors": 3, "attributes": {"nice": 0.25}}
    arrive(s, 100, described("a", **of | first), described("b", **of | {"user": "v"} | second))
    jobs = list(s.state.jobs.values())
    s.step(1234.5, [ev.JobHeld(1234.5, "whole")])
    assert [plugin.priorities([job], s.state)[0] for job in jobs] == list(plugin.priorities(jobs, s.state))


def test_a_job_alone_has_the_size_that_it_has_among_others_on_nodes():
    nodes = tuple(NodeDescription(f"n{n}", 4, pools=("pool",)) for n in range(3))
    cluster = ClusterDescription("cluster", (PoolDescription("pool"),), nodes)
    s, plugin = scheduler(4, cluster=cluster, weights={"size": 0.3, "age": 0.1})
    arrive(s, 100, described("a", 7, nodes=2), described("b", 3))
    jobs = list(s.state.jobs.values())
    assert [plugin.priorities([job], s.state)[0] for job in jobs] == list(plugin.priorities(jobs, s.state))


def test_a_job_that_comes_finds_its_place_at_once():
    s, _ = scheduler(weights={"size": 1})
    for now, size in enumerate([2, 4, 3, 1], 1):
        arrive(s, now, described(str(size), size, submit=now))
    assert queue(s) == "4321"
    s.step(9, [ev.JobChanged(9, described("1", 5, submit=4))])
    assert queue(s) == "1432"


def test_all_priorities_come_anew_once_a_period_and_not_in_between():
    s, plugin = scheduler(weights={"expansion": 1}, period=100)
    arrive(s, 1, described("a", estimate=100, submit=1), described("b", estimate=1000, submit=0))
    asked = []
    original = plugin.priorities

    def counted(jobs, state):
        asked.append(len(jobs))
        return original(jobs, state)

    plugin.priorities = counted
    for now in (20, 50, 99):
        s.step(now, [ev.JobHeld(now, "whole")])
    assert asked == []
    s.step(101, [ev.JobHeld(101, "whole")])
    assert asked == [2]


def test_who_waits_in_no_queue_is_weighed_when_it_comes_into_one():
    s, plugin = scheduler(weights={"expansion": 1}, period=100)
    arrive(
        s, 60, described("a", estimate=1000), described("b", estimate=100, submit=59),
        described("c", estimate=1000),
    )  # fmt: skip
    assert queue(s) == "acb"
    s.step(61, [ev.JobHeld(61, "a")])
    weighed = []
    original = plugin.priorities
    plugin.priorities = lambda jobs, state: weighed.append([job.id for job in jobs]) or original(jobs, state)
    s.step(170, [ev.JobChanged(170, described("whole", 8, 10_001))])
    assert (weighed, queue(s)) == ([["c", "b"]], "bc")
    s.step(250, [ev.JobReleased(250, "a")])
    assert (weighed[1:], queue(s)) == ([["a"]], "bac"), "of long ago it would be the last"


def test_who_comes_back_within_a_period_keeps_its_place():
    s, plugin = scheduler(weights={"expansion": 1}, period=100)
    arrive(s, 60, described("a", estimate=1000), described("b", estimate=1000, submit=1))
    plugin.priorities = None
    s.step(61, [ev.JobHeld(61, "a")])
    s.step(150, [ev.JobReleased(150, "a")])
    assert queue(s) == "ab"


def test_a_queue_of_one_needs_no_order():
    s, plugin = scheduler(weights={"age": 1}, period=10)
    plugin.priorities = None
    arrive(s, 1, described("a"))
    arrive(s, 100, described("b", begin_time=1000.0))
    assert queue(s) == "a"


def test_whoever_used_less_comes_first():
    s, _ = scheduler(
        more=[FairTree(FairTreeOptions(half_life=None))], weights={"fairshare": 10, "age": 1}, processors=4
    )
    s.step(1, [ev.JobEnded(1, "whole")])
    arrive(s, 1, described("x", 4, 100, user="ann", account="one"))
    s.step(2, [ev.JobStarted(1, "x")])
    mine = described("a", 4, user="ann", account="one", submit=2)
    arrive(s, 60, mine, described("b", 4, user="bob", account="two", submit=60))
    assert queue(s) == "ba"


def test_a_booked_head_stays_while_it_is_one_of_the_first():
    def order(sticky):
        s, _ = scheduler(10, weights={"expansion": 1}, period=10, sticky=sticky)
        s.step(1, [ev.JobEnded(1, "whole")])
        s.step(1, [ev.JobSubmitted(1, described("most", 8, 9999))])
        arrive(s, 1, described("a", 3, estimate=500, submit=0), described("b", 3, estimate=2000, submit=0))
        assert queue(s) == "ab"
        # One that starts has the policy look, and book a.
        arrive(s, 2, described("c", 3, estimate=10, submit=2), described("tiny", 1, 9999, submit=2))
        s.step(100, [ev.JobHeld(100, "most")])
        return queue(s)

    assert order(0) == "cab"
    assert order(1) == "cab"
    assert order(2) == "acb"


class Urgent:
    """One user's jobs come first, whatever the others' order."""

    @hookimpl
    def queue_key(self, job):
        return (-1,) if job.user == "boss" else None


def test_beside_another_plugin_with_keys_each_job_has_the_first_answer():
    s, _ = scheduler(more=[Urgent()], weights={"size": 1}, period=10)
    arrive(s, 1, described("a", 1), described("b", 3, user="boss"), described("c", 2))
    assert queue(s) == "bca"
    arrive(s, 100, described("d", 4, submit=100))
    assert queue(s) == "bdca"


#: a waits for half the machine, b ends before that, c would not.
JOBS = [("a", 4, 100), ("b", 1, 10), ("c", 1, 9999)]


def test_overtakings_are_counted_and_survive_a_restart():
    s, plugin = scheduler(4, weights={"bypass": 1})
    s.step(1, [ev.JobEnded(1, "whole")])
    s.step(1, [ev.JobSubmitted(1, described("half", 2, 1000))])
    arrive(s, 2, *(described(name, size, time, submit=2) for name, size, time in JOBS))
    assert plugin.checkpoint() == {"a": 1}
    other = Multifactor(MultifactorOptions(weights={"bypass": 1}))
    other.restore({"a": 1})
    assert other.checkpoint() == {"a": 1}


def test_size_is_the_mean_of_nodes_and_processors_where_there_are_nodes():
    nodes = tuple(NodeDescription(f"n{i}", 4, pools=("pool",)) for i in range(1, 5))
    cluster = ClusterDescription("cluster", (PoolDescription("pool"),), nodes)
    s, plugin = scheduler(4, weights={"size": 1}, cluster=cluster)
    arrive(s, 5, described("a", 4, nodes=2), described("b", 4))
    jobs = [s.state.jobs["a"], s.state.jobs["b"]]
    assert plugin.priorities(jobs, s.state).tolist() == [
        (4 / 16 + 2 / 4) / 2,
        (4 / 16 + 1 / 4) / 2,
    ]


def test_a_job_does_not_age_while_it_waits_for_another_and_a_restart_knows_when_that_was_over():
    """As Slurm does without ACCRUE_ALWAYS."""
    s, plugin = scheduler(weights={"age": 1}, max_age=100)
    after = (Dependency("ended", "a"),)
    arrive(s, 0, described("a", 8), described("b", dependencies=after, submit=0), described("c", submit=0))

    def ages(s, plugin, now):
        s.state.now = now
        jobs = [s.state.jobs[name] for name in "bc"]
        found = plugin.priorities(jobs, s.state).tolist()
        assert found == [float(plugin.priorities([job], s.state)[0]) for job in jobs]
        return found

    s.step(40, [])
    assert ages(s, plugin, 40) == [0, 0.4]
    s.step(50, [ev.JobEnded(50, "a")])
    assert ages(s, plugin, 60) == [0.1, 0.6]
    saved = json.loads(json.dumps(s.checkpoint()))
    again, other = scheduler(weights={"age": 1}, max_age=100, saved=saved)
    arrive(again, 70, described("b", submit=0), described("c", submit=0))
    assert ages(again, other, 70) == [0.2, 0.7]
    assert json.loads(json.dumps(again.checkpoint())) == saved
    # Of many at once, too.
    more = [described(name, submit=0) for name in "defg"]
    arrive(again, 70, *more)
    jobs = [again.state.jobs[name] for name in "bcdefg"]
    assert other.priorities(jobs, again.state).tolist() == [0.2, *[0.7] * 5]


def test_who_waited_for_another_when_the_run_was_saved_ages_from_the_next_one_on():
    """The batch system does not tell for whom a job has waited."""
    s, _ = scheduler(weights={"age": 1}, max_age=100)
    after = (Dependency("ended", "a"),)
    arrive(s, 0, described("a", 8), *(described(name, dependencies=after, submit=0) for name in "bc"))
    saved = json.loads(json.dumps(s.checkpoint()))
    plugin = Multifactor(MultifactorOptions(weights={"age": 1}, max_age=100))
    again = Scheduler(ClusterDescription.flat(8), plugged(plugin, Easy()), saved=saved)
    arrive(
        again, 50, described("z", 8, submit=0), described("b", submit=0),
        described("c", dependencies=(Dependency("ended", "z"),), submit=0),
    )  # fmt: skip
    again.state.now = 60
    jobs = [again.state.jobs[name] for name in "bc"]
    assert plugin.priorities(jobs, again.state).tolist() == [0.1, 0]


@pytest.mark.parametrize(("favour", "said"), [("large", [1 / 56, 1 / 14, 3 / 56]), ("small", None)])
def test_size_over_time_counts_whole_nodes_as_slurm_does(favour, said):
    """JobSize of Slurm 22.05 with SMALL_RELATIVE_TO_TIME on 4 nodes of 4: 2 processors for 14 minutes are a
    node's 4."""
    nodes = tuple(NodeDescription(f"n{i}", 4, pools=("pool",)) for i in range(1, 5))
    cluster = ClusterDescription("cluster", (PoolDescription("pool"),), nodes)
    s, plugin = scheduler(4, weights={"size": 1}, size="time", favour=favour, cluster=cluster)
    arrive(s, 5, *(
        described(name, processors, estimate=14 * 60, nodes=on)
        for name, processors, on in (("a", 2, 0), ("b", 9, 4), ("c", 12, 2))
    ))  # fmt: skip
    jobs = [s.state.jobs[name] for name in "abc"]
    wanted = said if said is not None else [1 - 1 / 56, 1 - 1 / 14, 1 - 3 / 56]
    assert plugin.priorities(jobs, s.state).tolist() == pytest.approx(wanted)
    assert [float(plugin.priorities([job], s.state)[0]) for job in jobs] == pytest.approx(wanted)


def test_a_weight_without_a_factor_ends_the_run():
    with pytest.raises(UserError, match=r"weights: ages: expected a factor that .*Did you mean 'age'"):
        scheduler(weights={"ages": 1})


class Wrong:
    """A factor that is none."""

    @hookimpl
    def register_factors(self):
        return {"wrong": lambda jobs, state: [float("nan")] * len(jobs)}


def test_a_factor_that_makes_no_sense_is_told_once_and_counts_as_nothing():
    s, _ = scheduler(more=[Wrong()], weights={"wrong": 1, "size": 1})
    s.step(1, [ev.JobSubmitted(1, described("a", 1)), ev.JobSubmitted(1, described("b", 2))])
    s.step(2, [ev.JobSubmitted(2, described("c", 3))])
    assert queue(s) == "cba"
    assert [problem.message.split(":")[0] for problem in s.problems] == ["factor 'wrong'"]


def test_of_two_factors_with_one_name_the_first_plugins_counts():
    class Mine:
        @hookimpl
        def register_factors(self):
            return {"age": lambda jobs, state: [0.0] * len(jobs)}

    plugins = Plugins()
    plugins.add("mine", Mine())
    plugins.add("multifactor", Multifactor())
    s = Scheduler(ClusterDescription.flat(1), plugins)
    assert s.state.factors["age"]([], s.state) == []


class ToldOneByOne:
    """The cluster tells of each arrival in a look of its own, one after the other."""

    def __init__(self):
        self.looks = 0

    def begin(self, now, starts):
        return [now] * len(starts)

    def told(self, now, event):
        if not isinstance(event, ev.JobSubmitted):
            return now
        self.looks += 1
        return now + 0.3 * self.looks

    def stated(self, event):
        return event


#: What grows while a job waits, or as its deadline comes.
GROWING = [
    ("age", {}),
    ("expansion", {}),
    ("deadline", {"attributes": {"deadline": 5000}}),
]


@pytest.mark.parametrize(("factor", "of"), GROWING)
def test_equal_jobs_that_are_seen_one_after_the_other_within_a_period_are_first_come_first_served(factor, of):
    """PBS tells a submission in whole seconds, so a job that is seen later would be taken for older."""
    jobs = [traced("15", 4, 100, 0), *(traced(name, 4, 100, 10, **of) for name in ("16", "17", "19", "21"))]
    plugin = Multifactor(MultifactorOptions(weights={factor: 1}, period=1000))
    run = emulate(ClusterDescription.flat(4), jobs, plugin, Easy(), delays=ToldOneByOne())
    assert sorted(run.starts, key=run.starts.get) == ["15", "16", "17", "19", "21"]


def test_a_job_that_waited_elsewhere_comes_behind_an_older_equal_job():
    s, _ = scheduler(weights={"age": 1}, period=100)
    arrive(s, 60, described("a", submit=40), described("b", submit=45), described("c", submit=50))
    s.step(61, [ev.JobHeld(61, "c")])
    s.step(120, [ev.JobReleased(120, "c")])
    assert queue(s) == "abc"
    s.step(121, [ev.JobHeld(121, "c")])
    s.step(122, [ev.JobChanged(122, described("c", 2, submit=50))])
    s.step(130, [ev.JobReleased(130, "c")])
    assert queue(s) == "abc"
