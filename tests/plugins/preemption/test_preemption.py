"""Preemption: who gives way to whom, whose going costs least, and what becomes of it."""

from __future__ import annotations

from itertools import combinations

import pytest
from building import PLACES, POLICIES, alike, described, emulate, node_cluster, plugged, traced
from hypothesis import given
from hypothesis import strategies as st

from headway import events as ev
from headway.decisions import Kill, Requeue, Signal, Start
from headway.errors import UserError
from headway.model import ClusterDescription, PoolDescription, Reservation
from headway.plugins import PluginConfig, make_plugin
from headway.scheduler import Scheduler
from headway.state import Job, State
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.easy import Easy
from headway_plugins.preemption.plugin import Preemption, PreemptionOptions
from headway_plugins.preemption.victims import cheapest, in_turn
from headway_plugins.priority.multifactor import Multifactor, MultifactorOptions

HIGH = {"who": {"qos": ["high"]}, "whom": {"qos": ["low"]}}


def preemption(*rules, **options):
    return Preemption(PreemptionOptions(rules=rules or (HIGH,), **options))


class Site:
    """A scheduler whose cluster does what it is told, unless a test says otherwise."""

    def __init__(self, *rules, processors=8, cluster=None, policy=None, monitor=False, more=(), **options):
        self.plugin = preemption(*rules, **options)
        self.scheduler = Scheduler(
            cluster or ClusterDescription.flat(processors), plugged(*more, self.plugin, policy or Easy()),
            capabilities=frozenset({Start, Requeue, Kill, Signal}), monitor=monitor,
        )  # fmt: skip

    def step(self, now, *events):
        """The decisions of a step, in short."""
        made = self.scheduler.step(now, events)
        assert self.scheduler.problems == []
        words = []
        for decision in made:
            words.append({Start: "", Requeue: "-", Kill: "x", Signal: "~"}[type(decision)] + decision.job_id)
        starts = [ev.JobStarted(now, d.job_id, d.placement) for d in made if isinstance(d, Start)]
        if starts and not self.scheduler.monitors:
            words += self.step(now, *starts)
        return words

    def arrive(self, now, job_id, processors, qos="low", estimate=1000.0, **more):
        return self.step(
            now, ev.JobSubmitted(now, described(job_id, processors, estimate, now, qos=qos, **more))
        )


# ---------------------------------------------------------------------- who gives way, and what follows


def test_a_running_job_is_requeued_and_the_waiting_one_has_its_place():
    site = Site()
    assert site.arrive(0, "a", 8) == ["a"]
    assert site.arrive(100, "b", 4, "high") == ["-a"]
    assert site.step(101) == [], "nothing is said twice while it goes"
    assert site.step(102, ev.JobRequeued(102, "a")) == ["b"]
    assert site.scheduler.state.jobs["a"].leaving is False
    assert site.plugin._figures == {
        "preemptions": 1, "requeued": 1, "cancelled": 0, "given up": 0, "lost processor-seconds": 800.0,
    }  # fmt: skip


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_it_has_its_place_though_older_jobs_wait(policy):
    """What becomes free is neither the older ones' before it nor that of who may be backfilled."""
    site = Site(policy=policy())
    assert site.arrive(0, "a", 5) == ["a"]
    assert site.arrive(1, "b", 3) == ["b"]
    assert site.arrive(2, "old", 8) == []
    assert site.arrive(10, "urgent", 8, "high") == ["-b", "-a"]
    # Both go, one after the other, and a small job comes in between.
    site.step(11, ev.JobRequeued(11, "b"))
    assert site.arrive(12, "small", 3, estimate=5.0) == []
    assert site.step(13, ev.JobRequeued(13, "a")) == ["urgent"]


def test_jobs_of_other_properties_are_left_alone():
    site = Site()
    site.arrive(0, "a", 4, "normal")
    site.arrive(0, "b", 4, "low", attributes={"preemptible": False})
    assert site.arrive(1, "c", 4, "high") == []
    assert site.arrive(2, "d", 4, "low") == []


def test_nobody_goes_for_a_job_that_could_not_start_then():
    site = Site()
    site.arrive(0, "a", 4, "normal")
    site.arrive(0, "b", 4)
    assert site.arrive(1, "c", 5, "high") == []
    assert site.arrive(2, "d", 4, "high", estimate=998.0) == ["-b"], "the next in the queue may"


def test_nobody_goes_for_a_job_that_would_break_a_reservation():
    site = Site()
    site.arrive(0, "a", 8)
    kept = Reservation("r", 500.0, 900.0, processors=6, pool="pool")
    site.step(1, ev.ReservationMade(1, kept))
    assert site.arrive(2, "b", 4, "high") == []
    assert site.arrive(3, "c", 4, "high", estimate=400.0) == ["-a"]


def test_cancelled_jobs_are_ended():
    site = Site({**HIGH, "how": "cancel"})
    site.arrive(0, "a", 8)
    assert site.arrive(1, "b", 8, "high") == ["xa"]
    assert site.step(2, ev.JobEnded(2, "a", "cancelled")) == ["b"]


GRACE = {**HIGH, "grace": "5m", "signal": "USR1"}


def test_who_has_a_grace_time_is_signalled_first():
    site = Site(GRACE)
    site.arrive(0, "a", 8)
    made = site.scheduler.step(100, [ev.JobSubmitted(100, described("b", 8, 1000.0, 100, qos="high"))])
    why = "makes room for job b (qos high before qos low), which costs 1 min 40 s of its work"
    assert made == [Signal("a", "USR1", 300.0, why)]
    assert site.scheduler.next_wakeup() == 400.0
    assert site.arrive(110, "c", 2) == [], "what becomes free is b's"
    assert site.step(399) == []
    assert site.step(400) == ["-a"]
    assert site.step(401, ev.JobRequeued(401, "a")) == ["b"]


def test_nobody_is_expected_to_stay_beyond_its_limit_for_its_grace_time():
    site = Site({**GRACE, "grace": "2h"}, soon=0)
    site.arrive(0, "a", 8)
    assert site.arrive(100, "b", 8, "high") == ["~a"]
    assert site.scheduler.state.jobs["a"].expected_end == 1000.0


def test_who_ends_in_its_grace_time_is_not_told_to_go():
    site = Site(GRACE)
    site.arrive(0, "a", 8)
    assert site.arrive(100, "b", 8, "high") == ["~a"]
    assert site.step(130, ev.JobEnded(130, "a", "completed")) == ["b"]
    assert site.step(400) == []


def test_room_is_kept_through_a_grace_time():
    """What is free besides is not given to jobs that would still run then."""
    site = Site(GRACE)
    site.arrive(0, "a", 4)
    assert site.arrive(100, "b", 8, "high") == ["~a"]
    assert site.arrive(110, "long", 4, estimate=500.0) == []
    assert site.arrive(120, "short", 4, estimate=200.0) == ["short"]
    site.step(320, ev.JobEnded(320, "short", "completed"))
    assert site.step(400) == ["-a"]
    assert site.step(401, ev.JobRequeued(401, "a")) == ["b"]


def test_who_reaches_its_limit_in_its_grace_time_is_expected_to_go_then():
    site = Site(GRACE)
    site.arrive(0, "a", 4)
    assert site.arrive(800, "b", 8, "high") == ["~a"]
    assert site.scheduler.state.jobs["a"].expected_end == 1000.0
    assert site.arrive(810, "late", 4, estimate=250.0) == []
    assert site.arrive(820, "short", 4, estimate=100.0) == ["short"]


def test_who_has_none_goes_at_once_and_the_others_later():
    site = Site(
        {"who": {"qos": ["high"]}, "whom": {"user": ["slow"], "qos": ["low"]}, "grace": 60},
        {"who": {"qos": ["high"]}, "whom": {"user": ["fast"], "qos": ["low"]}},
    )
    site.arrive(0, "a", 4, user="slow")
    site.arrive(0, "b", 4, user="fast")
    assert sorted(site.arrive(10, "c", 8, "high")) == ["-b", "~a"]
    assert site.step(11, ev.JobRequeued(11, "b")) == []
    assert site.step(70) == ["-a"]
    assert site.step(71, ev.JobRequeued(71, "a")) == ["c"]


def test_the_signalled_stay_if_nobody_needs_their_places_any_more():
    site = Site(GRACE)
    site.arrive(0, "a", 8)
    assert site.arrive(100, "b", 8, "high") == ["~a"]
    site.step(150, ev.JobEnded(150, "b", "cancelled"))
    assert not site.scheduler.state.jobs["a"].leaving
    assert site.scheduler.state.jobs["a"].expected_end == 1000.0
    assert site.step(400) == []


def test_the_signalled_stay_if_there_is_room_elsewhere_in_their_grace_time():
    site = Site(GRACE)
    site.arrive(0, "a", 4)
    site.arrive(0, "other", 4, "high")
    assert site.arrive(100, "b", 4, "high") == ["~a"]
    assert site.step(150, ev.JobEnded(150, "other", "completed")) == ["b"]
    assert not site.scheduler.state.jobs["a"].leaving
    assert site.scheduler.state.jobs["a"].expected_end == 1000.0
    assert site.step(400) == []


def test_a_signal_that_is_refused_gives_the_room_up():
    site = Site(GRACE)
    site.arrive(0, "a", 4)
    site.arrive(0, "b", 4)
    assert sorted(site.arrive(100, "c", 8, "high")) == ["~a", "~b"]
    signal = Signal("a", "USR1", 300.0)
    assert site.step(101, ev.DecisionFailed(101, signal, "it does not run")) == []
    jobs = site.scheduler.state.jobs
    assert not jobs["a"].leaving and not jobs["b"].leaving
    assert site.step(400) == []


def test_who_saves_itself_in_its_grace_time_loses_only_that():
    site = Site(GRACE)
    site.arrive(0, "a", 4, estimate=9000.0)
    site.arrive(1, "b", 4, estimate=9000.0, attributes={"saves": 60})
    assert site.arrive(2000, "c", 4, "high") == ["~b"], "300 s instead of 2000 s"
    site.step(2300)
    site.step(2301, ev.JobRequeued(2301, "b"))
    assert site.plugin._figures["lost processor-seconds"] == 4 * 300


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({**HIGH, "signal": "USR1"}, "expected a grace time beside it"),
        ({**HIGH, "grace": 5, "signal": "KILL"}, "expected a signal that a job can catch"),
        ({**HIGH, "grace": 5, "signal": "SIGTERM"}, "expected a signal that a job can catch"),
        ({**HIGH, "grace": -5}, "greater than or equal to 0"),
    ],
)
def test_a_wrong_grace_time_is_refused(rule, message):
    with pytest.raises(ValueError, match=message):
        PreemptionOptions(rules=[rule])


def test_a_grace_time_needs_a_cluster_that_sends_signals():
    plugin = preemption(GRACE)
    with pytest.raises(UserError, match="grace: the cluster cannot send signals"):
        plugin.startup(State(ClusterDescription.flat(8)), frozenset({Start, Requeue, Kill}))


def test_an_emulated_job_goes_on_from_what_it_saved():
    """On 4 processors: a (1000 s) is signalled at 400, has saved itself at 430 and goes at 460; from 560 it
    has 600 s left. One that saves nothing begins anew."""
    for saves, end in ((30, 560 + 600), (61, 560 + 1000), (None, 560 + 1000)):
        attributes = {} if saves is None else {"saves": saves}
        low = traced("a", 4, 2000, runtime=1000, qos="low", attributes=attributes)
        high = traced("b", 4, 100, submit=400, runtime=100, qos="high")
        rule = {**HIGH, "grace": 60}
        run = emulate(ClusterDescription.flat(4), [low, high], preemption(rule, soon=0), Easy())
        ends = {name: result.end_time for name, result in run.results.items()}
        assert ends == {"b": 560, "a": end}


def test_young_jobs_keep_their_places_until_they_are_old():
    site = Site({**HIGH, "exempt": "10m"})
    site.arrive(0, "a", 8)
    assert site.arrive(599, "b", 8, "high") == []
    assert site.scheduler.next_wakeup() == 600.0
    assert site.step(600) == ["-a"]


def test_a_job_waits_first():
    site = Site(patience="1m")
    site.arrive(0, "a", 8)
    assert site.arrive(10, "b", 8, "high") == []
    assert site.scheduler.next_wakeup() == 70.0
    assert site.step(70) == ["-a"]


def test_a_job_that_starts_soon_takes_nobodys_place():
    site = Site()
    site.arrive(0, "a", 8, estimate=1000.0)
    assert site.arrive(940, "b", 8, "high") == []
    site = Site(soon=0)
    site.arrive(0, "a", 8, estimate=1000.0)
    assert site.arrive(940, "b", 8, "high") == ["-a"]


def test_who_was_held_is_looked_at_once_it_is_released():
    site = Site()
    site.arrive(0, "a", 8)
    assert site.arrive(1, "b", 8, "high", held=True) == []
    assert site.step(2, ev.JobReleased(2, "b")) == ["-a"]


def test_only_the_first_jobs_are_looked_at():
    site = Site(depth=1)
    site.arrive(0, "a", 8)
    site.arrive(1, "b", 8)
    assert site.arrive(2, "c", 8, "high") == []


def test_two_that_wait_get_their_places_one_after_the_other():
    site = Site()
    site.arrive(0, "a", 4)
    site.arrive(0, "b", 4)
    assert site.arrive(10, "c", 4, "high") == ["-b"], "of two that cost the same the later one goes"
    assert site.arrive(11, "d", 4, "high") == ["-a"]
    assert site.step(12, ev.JobRequeued(12, "a"), ev.JobRequeued(12, "b")) == ["c", "d"]


# ---------------------------------------------------------------------- whose going costs least

#: The strategy, jobs (processors, start), needed processors, and who goes.
STRATEGIES = [
    ("least-lost", [(4, 0), (2, 50), (2, 50)], 4, {"1", "2"}),
    ("least-lost", [(4, 90), (2, 50), (2, 50)], 4, {"0"}),
    ("least-lost", [(3, 0), (3, 60), (2, 90)], 3, {"1"}),
    ("fewest", [(4, 0), (2, 90), (2, 90)], 4, {"0"}),
    ("youngest", [(4, 0), (2, 60), (2, 90)], 2, {"2"}),
    ("youngest", [(4, 90), (2, 60), (2, 30)], 2, {"0"}),
]


@pytest.mark.parametrize(("victims", "jobs", "needed", "goes"), STRATEGIES)
def test_who_goes(victims, jobs, needed, goes):
    site = Site(victims=victims)
    for now, (at, processors) in sorted((start, (at, size)) for at, (size, start) in enumerate(jobs)):
        assert site.arrive(now, str(at), processors) == [str(at)]
    assert set(site.arrive(100, "u", needed, "high")) == {f"-{name}" for name in goes}


def test_the_lowest_priority_goes():
    site = Site(victims="lowest-priority")
    for name, priority in (("a", 5.0), ("b", 2.0), ("c", 9.0), ("d", None)):
        site.arrive(0, name, 2, priority=priority)
    assert set(site.arrive(1, "u", 4, "high")) == {"-b", "-d"}


SIZES = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 20)), min_size=1, max_size=8)


def _jobs(count):
    state = Scheduler(ClusterDescription.flat(10), plugged()).state
    pool = state.pools["pool"]
    return [Job.arrived(described(str(at)), pool, at) for at in range(count)]


@given(SIZES, st.integers(1, 25))
def test_the_set_is_the_cheapest_of_all(sizes, needed):
    """On a count of processors, against all subsets."""
    jobs = _jobs(len(sizes))
    size = {job.id: sizes[at][0] for at, job in enumerate(jobs)}
    cost = {job.id: float(sizes[at][1]) for at, job in enumerate(jobs)}
    candidates = [(cost[job.id], job) for job in jobs]

    def fits(gone):
        return sum(size[job.id] for job in gone) >= needed

    found = cheapest(candidates, fits, questions=10_000)
    possible = [s for n in range(len(jobs) + 1) for s in combinations(jobs, n) if fits(s)]
    if not possible:
        assert found is None
        return
    assert found is not None and fits(found)
    assert sum(cost[job.id] for job in found) == min(sum(cost[job.id] for job in s) for s in possible)
    for few in (0, 3, 20):
        some = cheapest(candidates, fits, questions=few)
        assert some is not None and fits(some)
    simple = in_turn(candidates, fits)
    assert simple is not None and fits(simple)
    assert not any(fits([o for o in simple if o is not job]) for job in simple), "nobody goes in vain"


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.integers(0, 20)), min_size=1, max_size=7),
    st.integers(1, 3), st.integers(1, 4),
)  # fmt: skip
def test_on_nodes_the_set_is_the_cheapest_of_all(running, nodes, each):
    """Whole shares of nodes, against all subsets."""
    jobs = _jobs(len(running))
    where = {job.id: running[at] for at, job in enumerate(jobs)}
    candidates = [(float(running[at][2]), job) for at, job in enumerate(jobs)]

    def fits(gone):
        room = [0, 0, 0]
        for job in gone:
            node, size, _ = where[job.id]
            room[node] += size
        return sum(free >= each for free in room) >= nodes

    found = cheapest(candidates, fits, questions=10_000)
    costs = [
        sum(where[j.id][2] for j in s) for n in range(len(jobs) + 1) for s in combinations(jobs, n) if fits(s)
    ]
    assert (found is None) == (not costs)
    if found is not None:
        assert fits(found) and sum(where[job.id][2] for job in found) == min(costs)


# ---------------------------------------------------------------------- nodes


def test_on_nodes_the_place_is_one_where_it_fits():
    cluster = node_cluster(*alike(3, 4))
    site = Site(cluster=cluster, more=(FirstFit(),))
    for name, processors in (("a", 3), ("b", 3), ("c", 2)):
        assert site.arrive(0, name, processors, nodes=1) == [name]
    # Two nodes with 4 processors: whoever goes, what stays is one node's.
    goes = site.arrive(10, "u", 8, "high", nodes=2, processors_per_node=4)
    assert len(goes) == 2 and "-c" in goes
    gone = [word[1:] for word in goes]
    assert site.step(11, *(ev.JobRequeued(11, name) for name in gone))[0] == "u"


def test_another_pools_jobs_on_the_same_nodes_make_room():
    cluster = node_cluster(*alike(1, 4, pools=("batch", "prio")), pools=("batch", "prio"))
    rule = {"who": {"pool": ["prio"]}, "whom": {"pool": ["batch"]}}
    site = Site(rule, cluster=cluster, more=(FirstFit(),))
    assert site.arrive(0, "a", 4, pool="batch") == ["a"]
    assert site.arrive(1, "b", 4, pool="prio") == ["-a"]
    assert site.step(2, ev.JobRequeued(2, "a")) == ["b"]


def test_memory_counts():
    cluster = node_cluster(*alike(1, 8, memory=8 << 30))
    site = Site(cluster=cluster, more=(FirstFit(),))
    site.arrive(0, "a", 1, memory_per_node=6 << 30)
    site.arrive(0, "b", 4, memory_per_node=1 << 30)
    assert site.arrive(1, "u", 1, "high", memory_per_node=4 << 30) == ["-a"]


@pytest.mark.parametrize("nodes", [False, True], ids=["flat", "nodes"])
def test_licences_count(nodes):
    """Who has none of them cannot make room; what is booked for one whose place it could not take stands."""
    given = (("solver", 2),)
    if nodes:
        cluster, more = node_cluster(*alike(2, 4), licences=given), (FirstFit(),)
    else:
        cluster = ClusterDescription("cluster", (PoolDescription("pool", 8),), licences=given)
        more = ()
    site = Site(cluster=cluster, more=more)
    assert site.arrive(0, "a", 4) == ["a"]
    assert site.arrive(0, "b", 1, licences=(("solver", 2),)) == ["b"]
    assert site.arrive(10, "u", 1, "high", licences=(("solver", 1),)) == ["-b"]
    assert site.step(11, ev.JobRequeued(11, "b")) == ["u"]
    site = Site(cluster=cluster, more=more)
    assert site.arrive(0, "c", 1, "normal", licences=(("solver", 2),)) == ["c"]
    assert site.arrive(0, "d", 4) == ["d"]
    assert site.arrive(10, "v", 2, "high", licences=(("solver", 1),)) == [], "it could not start then"


# ---------------------------------------------------------------------- what goes wrong


def test_a_refusal_leaves_the_job_alone_and_another_goes():
    site = Site()
    site.arrive(0, "a", 4)
    site.arrive(0, "b", 4)
    assert site.arrive(10, "u", 4, "high") == ["-b"]
    failed = ev.DecisionFailed(11, Requeue("b"), "the job cannot be requeued")
    assert site.step(11, failed) == ["-a"]
    assert site.scheduler.state.jobs["b"].expected_end == 1000.0
    assert "job b does not make room for job u" in site.scheduler.notices[-1]
    assert "the job cannot be requeued" in site.scheduler.notices[-1]


def test_who_does_not_go_is_given_up():
    site = Site(timeout=30)
    site.arrive(0, "a", 8)
    assert site.arrive(10, "u", 8, "high") == ["-a"]
    assert site.scheduler.next_wakeup() == 40.0
    assert site.step(40) == []
    assert site.scheduler.notices == [
        "job a does not make room for job u: the victims have not left after 30 s"
    ]
    assert site.scheduler.state.jobs["a"].expected_end == 1000.0
    assert site.step(50) == [] and site.plugin._claims == {}
    # In its next run it may be asked again.
    site.step(60, ev.JobRequeued(60, "a"))
    assert "u" in site.scheduler.state.jobs


def test_a_job_that_does_not_want_to_run_any_more():
    site = Site()
    site.arrive(0, "a", 8)
    assert site.arrive(10, "u", 8, "high") == ["-a"]
    assert site.step(11, ev.JobEnded(11, "u", "cancelled")) == []
    assert site.step(12, ev.JobRequeued(12, "a")) == ["a"]
    assert site.plugin._claims == {}


def test_who_only_watches_says_it_once():
    site = Site(monitor=True)
    site.step(0, ev.JobSubmitted(0, described("a", 8, 1000.0, qos="low")), ev.JobStarted(0, "a"))
    assert site.arrive(10, "u", 8, "high") == ["-a"]
    for now in (11, 12, 200):
        assert site.step(now, ev.Tick(now)) == []
        site.scheduler.state.domains["pool"].touch()
    assert site.scheduler.notices == []
    assert site.scheduler.state.jobs["a"].expected_end == 1000.0


# ---------------------------------------------------------------------- whole runs

LISTS = st.lists(
    st.tuples(
        st.integers(0, 60), st.integers(1, 8), st.integers(1, 50), st.sampled_from(["high", "low", "none"])
    ),
    min_size=1, max_size=14,
)  # fmt: skip


def test_what_was_booked_around_the_victim_is_not_in_the_way_once_it_has_gone():
    """Job 1 needs seven of eight processors at 3, booked beside job 2, whose place job 3 takes at 2."""
    sizes = [(0, 2, 3, "high"), (0, 7, 1, "high"), (1, 1, 3, "low"), (2, 1, 2, "high")]
    jobs = [
        traced(str(at), size, length, submit, qos=qos) for at, (submit, size, length, qos) in enumerate(sizes)
    ]
    run = emulate(node_cluster(*alike(4, 2)), jobs, FirstFit(), preemption(soon=0, timeout=1000), Easy())
    assert run.problems == []
    assert [(time, type(one)) for time, one in run.decisions if isinstance(one, Requeue)] == [(2, Requeue)]
    assert (run.starts["3"], run.starts["1"]) == (2, 3)


@pytest.mark.parametrize("kind", ["flat", "first-fit"])
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@given(LISTS)
def test_all_jobs_run_and_nobody_goes_in_vain(policy, kind, jobs):
    """On real runs: whoever made room did so for a job that started then, and everybody ends."""
    trace = [
        traced(str(at), size, length, submit, qos=qos)
        for at, (submit, size, length, qos) in enumerate(sorted(jobs))
    ]
    if kind == "flat":
        cluster, more = ClusterDescription.flat(8), ()
    else:
        cluster, more = node_cluster(*alike(4, 2)), (PLACES[kind](),)
    run = emulate(cluster, trace, *more, preemption(soon=0, timeout=1000), policy())
    assert run.problems == []
    assert set(run.states.values()) == {"completed"}
    qos = {job.job.id: job.job.qos for job in trace}
    for time, decision in run.decisions:
        if isinstance(decision, Requeue):
            assert qos[decision.job_id] == "low"
            winner = decision.reason.split("makes room for job ")[1].split()[0]
            assert qos[winner] == "high"
            assert run.starts[winner] == time, "at once: the cluster requeues in no time"
        elif isinstance(decision, Start) and qos[decision.job_id] == "high":
            assert time == run.starts[decision.job_id], "it is started once"


# ---------------------------------------------------------------------- options

WRONG = [
    ({}, "rules"),
    ({"rules": []}, "rules"),
    ({"rules": [{"who": {}, "whom": {}}]}, "circle"),
    ({"rules": [{"who": {"qos": ["a"]}, "whom": {"user": ["ann"]}}]}, "circle"),
    ({"rules": [{"who": {"qos": ["a"]}, "whom": {"qos": ["b"]}},
                {"who": {"qos": ["b"]}, "whom": {"qos": ["c", "a"]}}]}, "rules.0 (qos a before qos b)"),
    ({"rules": [{**HIGH, "how": "sleep"}]}, "requeue"),
    ({"rules": [{**HIGH, "exempt": "soon"}]}, "a time such as 30m"),
    ({"rules": [{"who": {"quality": ["a"]}, "whom": {"qos": ["b"]}}]}, "quality"),
    ({"rules": [HIGH], "timeout": 0}, "timeout"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "said"), WRONG)
def test_wrong_options_are_named(options, said):
    with pytest.raises(UserError) as error:
        make_plugin(Preemption, PluginConfig("preemption", options, "site.yaml: plugins"))
    assert said in str(error.value)


def test_a_cluster_that_cannot_requeue_is_told_at_once():
    with pytest.raises(UserError, match=r"preemption: rules.0: how: requeue: .*Requeue"):
        Scheduler(ClusterDescription.flat(8), plugged(preemption(), Easy()), capabilities=frozenset({Start}))


# ---------------------------------------------------------------------- by priority

ANY = {"who": {}, "whom": {}, "distance": 100}


def test_by_distance_of_priorities_whatever_a_jobs_qos_is():
    site = Site(ANY, soon=0)
    assert site.arrive(0, "a", 8, priority=50.0) == ["a"]
    assert site.arrive(1, "near", 8, priority=149.0) == []
    assert site.arrive(2, "far", 8, priority=150.0) == ["-a"]
    assert site.step(3, ev.JobRequeued(3, "a")) == ["far"]
    assert site.step(4) == [], "who lost its place does not take it back"


def test_the_distance_is_that_of_the_weighted_sum_where_there_is_one():
    order = Multifactor(
        MultifactorOptions(weights={"qos": 1000.0, "age": 1.0}, qos={"mid": 1.0, "high": 2.0})
    )
    site = Site({**ANY, "distance": 600}, more=[order], soon=0)
    assert site.arrive(0, "a", 8, "low", priority=9e9) == ["a"]
    assert site.arrive(1, "b", 8, "mid") == []
    assert site.arrive(2, "c", 8, "high") == ["-a"]


def test_the_lowest_priority_goes_first_by_the_weighted_sum():
    order = Multifactor(MultifactorOptions(weights={"qos": 1.0}, qos={"mid": 1.0, "high": 2.0}))
    rule = {"who": {"qos": ["high"]}, "whom": {"qos": ["low", "mid"]}}
    site = Site(rule, more=[order], victims="lowest-priority", soon=0)
    site.arrive(0, "young-mid", 4, "mid")
    site.arrive(0, "old-low", 4, "low")
    assert site.arrive(500, "c", 4, "high") == ["-old-low"]


def test_priorities_decide_a_circle_and_nothing_else_does():
    assert PreemptionOptions(rules=[ANY]).rules[0].distance == 100
    mixed = [{**HIGH, "distance": 5}, {"who": {"qos": ["low"]}, "whom": {"qos": ["high"]}}]
    with pytest.raises(ValueError, match="found a circle"):
        PreemptionOptions(rules=mixed)
    with pytest.raises(ValueError, match="greater than 0"):
        PreemptionOptions(rules=[{**ANY, "distance": 0}])
