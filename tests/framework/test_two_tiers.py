"""Two tiers: one process in front and one in the background on each processor, in the state and in the
guard."""

from __future__ import annotations

import msgspec
import pytest
from building import alike, described, emulate, node_cluster, plugged, traced

from headway import events as ev
from headway.decisions import Migrate, Resize, Start, SwapTiers
from headway.errors import StateError
from headway.hookspecs import hookimpl
from headway.inquiry import explain
from headway.model import ClusterDescription, NodeDescription
from headway.scheduler import Scheduler
from headway.scheduler.gate import take_effect
from headway.state import ENDS_MOVED, State, Status
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.easy import Easy

NODES = node_cluster(*alike(2, 4, memory=8))


def state(*jobs, cluster=NODES):
    """A state at time 0 in which these jobs wait."""
    made = State(cluster)
    made.now = 0.0
    made.apply([ev.JobSubmitted(0, job) for job in jobs])
    return made


def running(made, job_id, placement=(), tier="foreground"):
    """Start a job and have the cluster confirm it."""
    job = made.jobs[job_id]
    made.begin(job, placement, tier, None)
    made.sweep(job.domain, [job])
    made.apply([ev.JobStarted(made.now, job_id, placement, tier)])
    return job


@pytest.mark.parametrize("cluster", [NODES, ClusterDescription.flat(8)], ids=["nodes", "flat"])
def test_the_background_never_counts_in_free(cluster):
    made = state(described("a", 8), described("b", 6), cluster=cluster)
    whole = () if cluster.pools[0].flat else (("n0", 4), ("n1", 4))
    some = () if cluster.pools[0].flat else (("n0", 2), ("n1", 4))
    pool = made.domains["pool"]
    running(made, "b", some, "background")
    assert pool.free == 8 and pool.running == []
    running(made, "a", whole)
    assert pool.free == 0 and list(pool.background) == ["b"]
    made.apply([ev.JobEnded(5, "b"), ev.JobEnded(6, "a")])
    assert pool.free == 8 and not pool.background
    assert not made.nodes.behind.any()


@pytest.mark.parametrize("cluster", [NODES, ClusterDescription.flat(8)], ids=["nodes", "flat"])
def test_a_processor_has_one_process_in_each_tier(cluster):
    made = state(described("a", 6), described("b", 4), cluster=cluster)
    flat = cluster.pools[0].flat
    running(made, "a", () if flat else (("n0", 4), ("n1", 2)), "background")
    with pytest.raises(StateError, match="background"):
        made.begin(made.jobs["b"], () if flat else (("n1", 4),), "background", None)
    assert made.jobs["b"].status is Status.PENDING
    with pytest.raises(StateError, match="tier"):
        made.begin(made.jobs["b"], () if flat else (("n1", 4),), "basement", None)


def test_memory_is_there_once_for_both_tiers():
    made = state(described("a", 1, memory_per_node=6), described("b", 1, memory_per_node=6))
    running(made, "a", (("n0", 1),), "background")
    with pytest.raises(StateError, match="bytes free"):
        made.begin(made.jobs["b"], (("n0", 1),), "foreground", None)
    made.apply([ev.JobEnded(5, "a")])
    running(made, "b", (("n0", 1),))


def test_nobody_is_behind_a_job_that_has_whole_nodes_or_in_front_of_whom_it_would_have_them():
    made = state(described("whole", 4, exclusive=True), described("b", 1), described("c", 1))
    running(made, "whole", (("n0", 4),))
    with pytest.raises(StateError, match="whole nodes"):
        made.begin(made.jobs["b"], (("n0", 1),), "background", None)
    made.apply([ev.JobEnded(5, "whole")])
    running(made, "b", (("n0", 1),), "background")
    made.apply([ev.JobSubmitted(5, described("again", 4, exclusive=True))])
    with pytest.raises(StateError, match="whole nodes"):
        made.begin(made.jobs["again"], (("n0", 4),), "foreground", None)


def test_a_swap_changes_two_jobs_places():
    made = state(described("a", 4), described("b", 4))
    running(made, "a", (("n0", 4),))
    running(made, "b", (("n0", 4),), "background")
    with pytest.raises(StateError, match="0 processors free"):
        made.carry(SwapTiers("b"))
    assert (made.jobs["a"].tier, made.jobs["b"].tier) == ("foreground", "background")
    made.carry(SwapTiers("b", "a"))
    assert (made.jobs["a"].tier, made.jobs["b"].tier) == ("background", "foreground")
    assert [entry[3].id for entry in made.domains["pool"].running] == ["b"]
    made.apply([ev.JobTierChanged(1, "b", "foreground"), ev.JobTierChanged(1, "a", "background")])
    assert made.domains["pool"].free == 4 and list(made.domains["pool"].background) == ["a"]
    assert made.anomalies == []


def test_a_move_that_the_cluster_refuses_is_taken_back():
    made = state(described("a", 2), described("b", 2))
    running(made, "a", (("n0", 2),), "background")
    running(made, "b", (("n0", 2),))
    move = Migrate("a", (("n1", 2),), "", "foreground")
    made.carry(move)
    assert made.jobs["a"].placement == (("n1", 2),) and made.domains["pool"].free == 4
    made.apply([ev.DecisionFailed(1, move, "the target is gone")])
    assert made.jobs["a"].placement == (("n0", 2),) and made.jobs["a"].tier == "background"
    assert made.domains["pool"].free == 6


def test_a_suspended_job_whose_move_is_refused_lends_on():
    cluster = msgspec.structs.replace(NODES, moves_take_time=True, suspended_lend=True)
    made = state(described("a", 2, memory_per_node=3), cluster=cluster)
    running(made, "a", (("n0", 2),))
    move = Migrate("a", (("n1", 2),))
    made.carry(move)
    made.apply([ev.JobSuspended(1, "a")])
    job, pool = made.jobs["a"], made.domains["pool"]
    assert made.lend(job) and pool.free == 8
    made.apply([ev.DecisionFailed(2, move, "the target is gone")])
    assert job.placement == (("n0", 2),) and job.lends and pool.free == 8
    assert list(made.nodes.free.memory[:2]) == [5, 8]
    made.apply([ev.JobEnded(3, "a")])
    assert pool.free == 8 and list(made.nodes.free.memory[:2]) == [8, 8]


@pytest.mark.parametrize("first", ["grows", "is suspended"])
@pytest.mark.parametrize("cluster", [NODES, ClusterDescription.flat(8)], ids=["nodes", "flat"])
def test_a_suspended_job_whose_growth_is_refused_lends_on(cluster, first):
    flat = cluster.pools[0].flat
    small, large = ((), ()) if flat else ((("n0", 2),), (("n0", 2), ("n1", 2)))
    made = state(
        described("a", 2, memory_per_node=0 if flat else 3),
        cluster=msgspec.structs.replace(cluster, suspended_lend=True),
    )
    running(made, "a", small)
    grow = Resize("a", 4, large)
    job, pool = made.jobs["a"], made.domains["pool"]
    if first == "grows":
        take_effect(made, grow)
    made.apply([ev.JobSuspended(1, "a")])
    assert made.lend(job) and pool.free == 8
    if first != "grows":
        take_effect(made, grow)
    assert (job.processors, job.placement) == (4, large)
    assert job.lends and pool.free == 8
    made.apply([ev.DecisionFailed(2, grow, "the cluster has no room")])
    assert (job.processors, job.placement) == (2, small)
    assert job.lends and pool.free == 8 and pool.running == []
    if not flat:
        assert list(made.nodes.free.memory[:2]) == [5, 8]
    made.apply([ev.JobResumed(3, "a")])
    assert pool.free == 6
    made.apply([ev.JobEnded(4, "a")])
    assert pool.free == 8 and (flat or list(made.nodes.free.memory[:2]) == [8, 8])


SLOW = msgspec.structs.replace(NODES, moves_take_time=True)
MOVED = Migrate("a", (("n1", 2),), "", "foreground")


def being_moved(cluster=SLOW):
    """Job a leaves the background of the first node, and nobody has told yet what becomes of it."""
    made = state(described("a", 2), described("b", 4), described("c", 3), cluster=cluster)
    running(made, "a", (("n0", 2),), "background")
    made.carry(MOVED)
    return made


@pytest.mark.parametrize(
    "over",
    [
        ev.JobMigrated(1, "a", (("n1", 2),), "foreground"),
        ev.JobEnded(1, "a"),
        ev.JobRequeued(1, "a"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_nobody_takes_the_place_of_a_job_that_is_still_there(over):
    made = being_moved()
    with pytest.raises(StateError, match="job a is still there"):
        made.begin(made.jobs["b"], (("n0", 4),), "background", None)
    # In front it was not, and it has two of the four behind.
    running(made, "b", (("n0", 4),))
    made.domains["pool"].news.due = False
    made.apply([over])
    assert made.domains["pool"].news.due, "who wants that place is asked again"
    running(made, "c", (("n0", 3),), "background")


def test_where_moves_take_no_time_the_place_is_free_at_once():
    running(being_moved(NODES), "b", (("n0", 4),), "background")


def test_a_job_that_was_not_moved_finds_its_place():
    made = being_moved()
    made.apply([ev.DecisionFailed(1, MOVED, "no image can be kept")])
    assert list(made.nodes.behind[:2]) == [2, 0]
    with pytest.raises(StateError, match="2 processors free in the background"):
        made.begin(made.jobs["c"], (("n0", 3),), "background", None)


def test_memory_is_there_once_also_while_a_job_leaves():
    cluster = msgspec.structs.replace(node_cluster(*alike(2, 4, memory=8)), moves_take_time=True)
    made = state(described("a", 1, memory_per_node=5), described("b", 1, memory_per_node=5), cluster=cluster)
    running(made, "a", (("n0", 1),), "background")
    made.carry(Migrate("a", (("n1", 1),), "", "foreground"))
    with pytest.raises(StateError, match="job a is still there"):
        made.begin(made.jobs["b"], (("n0", 1),), "foreground", None)


@pytest.mark.parametrize("tier", ["foreground", "background"])
@pytest.mark.parametrize(("memory", "fits"), [(3, True), (4, False)])
def test_a_job_that_changes_its_tier_has_its_memory_once(tier, memory, fits):
    made = state(
        described("a", 1, memory_per_node=5), described("b", 1, memory_per_node=memory), cluster=SLOW
    )
    running(made, "a", (("n0", 1),), "background")
    swap = SwapTiers("a")
    made.carry(swap)
    if not fits:
        with pytest.raises(StateError, match="bytes free"):
            made.begin(made.jobs["b"], (("n0", 1),), tier, None)
        return
    running(made, "b", (("n0", 1),), tier)
    made.apply([ev.DecisionFailed(1, swap, "the agent is silent")])
    assert made.jobs["a"].tier == "background"
    assert list(made.nodes.free.memory[:2]) == [0, 8]


@pytest.mark.parametrize(
    ("placement", "refused"),
    [
        ((("n0", 1), ("n1", 2)), ""),
        ((("n0", 2), ("n1", 1)), "job a is still there"),
        ((("n1", 3),), "processors free"),
    ],
)
def test_a_job_that_moves_has_once_what_it_has_of_a_node_before_and_after(placement, refused):
    made = state(described("a", 4), described("b", 3), cluster=SLOW)
    running(made, "a", (("n0", 3), ("n1", 1)))
    made.carry(Migrate("a", (("n0", 2), ("n1", 2))))
    if refused:
        with pytest.raises(StateError, match=refused):
            made.begin(made.jobs["b"], placement, "foreground", None)
    else:
        running(made, "b", placement)


@pytest.mark.parametrize("slow", [True, False])
def test_a_policy_starts_nothing_where_a_job_is_still_there(slow):
    cluster = msgspec.structs.replace(NODES, moves_take_time=slow)
    scheduler = Scheduler(cluster, plugged(Easy(), FirstFit(), Mover()))
    a, b = described("a", 4), described("b", 4)
    first, second = (("n0", 4),), (("n1", 4),)
    scheduler.step(0, [ev.JobSubmitted(0, a), ev.JobStarted(0, "a", first)])
    made = scheduler.step(1, [ev.Tick(1)])
    assert made == [Migrate("a", second)]
    made = scheduler.step(2, [ev.JobSubmitted(2, b)])
    assert [d.placement for d in made] == ([] if slow else [first])
    if slow:
        made = scheduler.step(3, [ev.JobMigrated(3, "a", second)])
        assert [d.placement for d in made] == [first]
    assert scheduler.problems == []


class Mover:
    """Moves job a at 1."""

    @hookimpl
    def control(self, state):
        return [Migrate("a", (("n1", 4),))] if state.now == 1 else None


def test_a_job_whose_move_was_refused_stays_for_a_while_longer_each_time():
    made = state(described("a", 2))
    running(made, "a", (("n0", 2),))
    move, now, pool = Migrate("a", (("n1", 2),)), 0.0, made.domains["pool"]
    for seconds in (15, 30, 60, 120, 240, 480, 600, 600):
        made.carry(move)
        made.apply([ev.DecisionFailed(now, move, "no image can be kept")])
        with pytest.raises(StateError, match="its last move failed"):
            made.carry(move)
        # Its pool is looked at again then.
        assert made.next_wakeup() == now + seconds
        made.now = now = now + seconds
        pool.news.due = False
        made.advance(now)
        assert pool.news.due
    made.carry(move)
    made.apply([ev.JobMigrated(now, "a", (("n1", 2),), "foreground")])
    back = Migrate("a", (("n0", 2),))
    made.carry(back)
    made.apply([ev.DecisionFailed(now, back, "the target is gone")])
    assert made.next_wakeup() == now + 15


def test_what_a_move_would_take_twice_is_refused_and_nothing_changes():
    made = state(described("a", 4), described("b", 4), described("c", 4))
    running(made, "a", (("n0", 4),), "background")
    running(made, "b", (("n1", 4),))
    with pytest.raises(StateError):
        made.carry(Migrate("a", (("n1", 4),), "", "foreground"))
    with pytest.raises(StateError, match="pending"):
        made.carry(Migrate("c", (("n0", 4),)))
    with pytest.raises(StateError, match="not in the background"):
        made.carry(SwapTiers("b"))
    assert made.jobs["a"].placement == (("n0", 4),) and made.jobs["a"].behind
    assert list(made.nodes.behind[:2]) == [4, 0] and list(made.nodes.free.processors[:2]) == [4, 0]


def test_news_of_the_pace_moves_the_expected_end():
    made = state(described("a", 4, 100))
    job = running(made, "a", (("n0", 4),))
    assert job.expected_end == 100
    made.now = 10
    made.domains["pool"].news.fresh = 0
    made.apply([ev.JobPaceChanged(10, "a", 10, 0.5)])
    assert job.expected_end == 190 and made.domains["pool"].running[0][0] == 190
    assert made.domains["pool"].news.fresh == 0
    assert job.done(30) == 20


def told(changes):
    """Changes, with the nodes and processors of each."""
    return [(job, place.nodes, place.counts, behind, sign) for job, place, behind, sign in changes]


def test_who_is_where_is_kept_for_those_who_ask():
    made = state(described("a", 4), described("b", 2))
    a = running(made, "a", (("n0", 4),))
    tenants = made.watch_tenants()
    changes = tenants.watch()
    assert told(changes) == [(a, [0], [4], False, 1)]
    changes.clear()
    b = running(made, "b", (("n0", 1), ("n1", 1)), "background")
    assert told(changes) == [(b, [0, 1], [1, 1], True, 1)]
    assert tenants.nodes_of(b) == [0, 1] and made.watch_tenants() is tenants
    changes.clear()
    made.apply([ev.JobUsageMeasured(3, "a", 0.25), ev.JobEnded(4, "b")])
    assert told(changes) == [(a, [0], [4], False, -1), (a, [0], [4], False, 1), (b, [0, 1], [1, 1], True, -1)]
    assert a.cpu == 0.25 and tenants.nodes_of(b) == []


class Behind:
    """Start what does not fit in the background, and promote it when it can be."""

    @hookimpl
    def schedule(self, view):
        for job in list(view.background.values()):
            if job.status is Status.RUNNING:
                view.promote(job, "its processors are idle")
        for job in view.queue:
            place = job.description.attributes["on"]
            placement = tuple((name, count) for name, count in place)
            if view.start_on(job, placement) is None:
                view.start_on(job, placement, "background", "behind others")
        return view.made


def test_a_job_starts_behind_another_is_promoted_and_ends():
    on = [["n0", 4]]
    jobs = [
        traced("a", 4, 10, attributes={"on": on}),
        traced("b", 4, 20, 1, attributes={"on": on, "cpu": 0.5}),
    ]
    run = emulate(node_cluster(NodeDescription("n0", 4)), jobs, Behind())
    assert run.problems == []
    assert [(time, type(decision)) for time, decision in run.decisions] == [
        (0, Start), (1, Start), (10, SwapTiers),
    ]  # fmt: skip
    assert run.starts == {"a": 0, "b": 1}
    # Nothing was said of the first job's use, so it leaves nothing, and the other one stood still.
    assert run.results["b"].promotions == 1
    assert [event.tier for event in run.adapter.told if isinstance(event, ev.JobTierChanged)] == [
        "foreground"
    ]


def test_what_would_become_of_a_job_in_the_background_is_explained():
    def said(scheduler, job_id, wished):
        return explain(scheduler, job_id, lambda time: f"{time:g}", wished)[1:]

    whole = [["n0", 4]]
    scheduler = Scheduler(NODES, plugged(Behind()))
    first, second = (described(name, 4, attributes={"on": whole}) for name in "ab")
    wished = scheduler.step(0, [ev.JobSubmitted(0, first), ev.JobSubmitted(0, second)])
    assert said(scheduler, "b", wished) == ["It would be started now in the background on n0: behind others."]
    scheduler.step(
        1, [ev.JobStarted(0, "a", (("n0", 4),)), ev.JobStarted(0, "b", (("n0", 4),), "background")]
    )
    assert said(scheduler, "b", []) == ["It runs in the background on n0, expected to end by 100."]
    wished = scheduler.step(5, [ev.JobEnded(5, "a")])
    runs, promoted = said(scheduler, "b", wished)
    assert runs.startswith("It runs in the background on n0, expected to end by ")
    assert promoted == (
        "It would be moved to the foreground of its own processors now: its processors are idle."
    )
    moved = [Migrate("b", (("n1", 4),), "n1 is idle", "foreground", restart=True)]
    assert said(scheduler, "b", moved)[1] == "It would be begun again on n1 now: n1 is idle."


def test_a_policy_that_fails_after_a_promotion_has_promoted_nobody():
    class Fails(Behind):
        @hookimpl
        def schedule(self, view):
            super().schedule(view)
            raise RuntimeError("no")

    scheduler = Scheduler(NODES, plugged(Fails()))
    job = described("b", 4, attributes={"on": [["n0", 4]]})
    scheduler.step(0, [ev.JobSubmitted(0, job), ev.JobStarted(0, "b", (("n0", 4),), "background")])
    assert scheduler.step(1, [ev.JobSubmitted(1, described("c", 1, attributes={"on": [["n0", 1]]}))]) == []
    assert scheduler.state.jobs["b"].tier == "background"
    assert scheduler.state.domains["pool"].free == 8


def test_a_plugins_moves_pass_the_guard():
    class Moves:
        @hookimpl
        def schedule(self, view):
            return []

        @hookimpl
        def control(self, state):
            if "b" in state.jobs and state.now == 1:
                return [SwapTiers("b"), Migrate("b", (("n9", 4),)), SwapTiers("nobody")]
            return None

    scheduler = Scheduler(NODES, plugged(Moves()))
    scheduler.step(
        0, [ev.JobSubmitted(0, described("b", 4)), ev.JobStarted(0, "b", (("n0", 4),), "background")]
    )
    assert scheduler.step(1, [ev.Tick(1)]) == [SwapTiers("b")]
    assert sum("not moved" in problem.message for problem in scheduler.problems) == 2
    assert scheduler.state.jobs["b"].tier == "foreground"


def test_a_job_that_is_being_moved_ends_after_its_pause():
    made = state(described("a", 8, 100), cluster=ClusterDescription.flat(8))
    job = running(made, "a")
    made.apply([ev.JobPaceChanged(10, "a", done=10, rate=0.0, resumes=70)])
    assert job.expected_end == 160 and job.domain.running[0][0] == 160
    made.apply([ev.JobPaceChanged(70, "a", done=10, rate=1.0)])
    assert job.expected_end == 160


def test_a_job_that_stands_still_cannot_have_ended_when_its_expected_end_comes():
    made = state(described("a", 8, 100), cluster=ClusterDescription.flat(8))
    job = running(made, "a")
    made.apply([ev.JobPaceChanged(10, "a", done=10, rate=0.0)])
    assert job.expected_end == 100, "it may go on at once"
    made.now = 100.0
    made.overdue(job.domain)
    assert job.expected_end == 190, "90 seconds of its work are left"


def test_nor_one_that_is_suspended():
    made = state(described("a", 8, 100), cluster=ClusterDescription.flat(8))
    job = running(made, "a")
    made.apply([ev.JobSuspended(30, "a")])
    made.now = 100.0
    made.overdue(job.domain)
    assert job.expected_end == 170
    made.apply([ev.JobResumed(110, "a")])
    assert job.expected_end == 180


def test_an_end_that_moves_is_told_apart_from_something_that_becomes_free():
    made = state(described("a", 4, 100), described("b", 4, 100), cluster=ClusterDescription.flat(8))
    job, pool = running(made, "a"), made.domains["pool"]
    made.apply([ev.JobSuspended(5, "a")])
    pool.news.fresh = 0
    made.apply([ev.JobResumed(10, "a")])
    assert pool.news.fresh == ENDS_MOVED
    made.apply([ev.JobSubmitted(10, described("c", 1, 5, 10.0))])
    assert pool.news.fresh == -1, "a job came, too"
    made.apply([ev.JobSuspended(11, "a"), ev.JobResumed(12, "a")])
    assert pool.news.fresh == -1
    pool.news.fresh = 0
    made.apply([ev.JobEnded(13, "a")])
    assert pool.news.fresh == -1 and job.entries is None
