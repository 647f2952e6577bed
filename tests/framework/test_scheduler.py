"""One step at a time: events in, decisions out; what plugins may do, and what they cannot break."""

from __future__ import annotations

from typing import ClassVar

import pytest
from building import OneOfEachUser, alike, described, node_cluster, plugged

from headway import events as ev
from headway.decisions import Cancel, Hold, Requeue, Start
from headway.hookspecs import NO_MORE, hookimpl
from headway.model import ClusterDescription, PoolDescription, Reservation
from headway.plugins import Again, Traits
from headway.scheduler import Scheduler
from headway.state import Barrier, Status
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs
from headway_plugins.policies.k_reserved import KReserved, KReservedOptions


def scheduler(*plugins, processors: int = 8, cluster=None, **more) -> Scheduler:
    return Scheduler(cluster or ClusterDescription.flat(processors), plugged(*plugins), **more)


def arrive(*descriptions, now: float = 0):
    return [ev.JobSubmitted(now, job) for job in descriptions]


def started(decisions) -> list[str]:
    return [decision.job_id for decision in decisions if isinstance(decision, Start)]


def told(scheduler: Scheduler) -> str:
    return "\n".join(f"{p.plugin}/{p.hook}: {p.message}" for p in scheduler.problems)


def consistent(scheduler: Scheduler) -> None:
    """What is free, what runs and what waits add up."""
    for pool in scheduler.state.domains.values():
        assert pool.free + sum(entry[2] for entry in pool.running) == pool.total
        assert all(job.status is Status.PENDING for job in pool.queue)
        assert len({id(job) for job in pool.queue}) == len(pool.queue)
    starting = {job.id for job in scheduler.state.jobs.values() if job.status is Status.STARTING}
    taken = {e[3].id for p in scheduler.state.domains.values() for e in p.running}
    assert starting == taken.union(*(p.background for p in scheduler.state.domains.values()))


# ---------------------------------------------------------------- the step


def test_a_step_folds_events_in_their_order_and_decides():
    s = scheduler(Fcfs())
    assert started(s.step(0, arrive(described("a", 8)))) == ["a"]
    assert s.step(5, arrive(described("b", 8, submit=5), now=5)) == []
    decisions = s.step(9, [*arrive(described("c", 1, submit=9), now=9), ev.JobEnded(9, "a")])
    assert started(decisions) == ["b"]
    consistent(s)


def test_a_step_with_nothing_new_decides_nothing():
    s = scheduler(Easy())
    s.step(0, arrive(described("a", 8), described("b", 8)))
    assert s.step(1, []) == []
    assert s.step(2, [ev.Tick(2)]) == []


def test_two_schedulers_told_the_same_decide_the_same():
    class Dice:
        @hookimpl
        def schedule(self, view):
            order = view.rng.permutation(len(view.queue))
            return [s for at in order if (s := view.start(view.queue[at], "drawn")) is not None]

    def run(seed):
        s = scheduler(Dice(), seed=seed)
        first = s.step(0, arrive(*(described(str(at), 3) for at in range(9))))
        return first + s.step(5, [ev.JobEnded(5, decision.job_id) for decision in first])

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_a_wakeup_starts_a_job_whose_time_has_come():
    s = scheduler(Fcfs())
    assert s.step(0, arrive(described("a", begin_time=50))) == []
    assert s.next_wakeup() == 50
    assert started(s.step(50, [])) == ["a"]
    assert s.next_wakeup() is None


def test_pools_are_scheduled_apart():
    cluster = ClusterDescription("c", (PoolDescription("x", 4), PoolDescription("y", 4)))
    s = scheduler(Fcfs(), cluster=cluster)
    s.step(0, arrive(described("busy", 1, pool="x")))
    jobs = arrive(described("a", 4, pool="x"), described("b", 4, pool="y"), described("c", 1, pool="x"))
    assert started(s.step(1, jobs)) == ["b"]


def test_anomalies_are_problems_of_the_state():
    s = scheduler(Fcfs())
    s.step(0, [ev.JobEnded(0, "ghost")])
    assert "ghost" in told(s)


# ---------------------------------------------------------------- a policy's answer


def policy(schedule):
    class Policy:
        @hookimpl
        def schedule(self, view):
            return schedule(view)

    return Policy()


def test_plain_starts_are_tried_on_behalf_of_the_policy():
    s = scheduler(
        policy(lambda view: [Start(job.id, (), "because", "background", 2e9) for job in view.queue])
    )
    decisions = s.step(0, arrive(described("a", 5), described("b", 5), described("c", 3)))
    assert decisions == [Start(name, (), "because", "background", 2e9) for name in ("a", "c")]
    assert s.state.jobs["a"].tier == "background"
    consistent(s)


def test_plain_starts_on_named_nodes():
    s = scheduler(
        policy(lambda view: [Start(job.id, (("n1", 2),), "here") for job in view.queue]),
        cluster=node_cluster(*alike(2, 4)),
    )
    decisions = s.step(0, arrive(described("a", 2), described("b", 2), described("c", 2)))
    assert started(decisions) == ["a", "b"]
    assert "c" in told(s) and "n1" in told(s)
    consistent(s)


@pytest.mark.parametrize(
    "answer",
    [
        lambda view: [Start("nobody")],
        lambda view: [Start("held")],
        lambda view: [view.start(view.queue[0]), Start("a")],
        lambda view: [Start("a"), Start("a")],
    ],
    ids=["unknown", "not pending", "begun and plain", "twice"],
)
def test_a_start_that_cannot_be_is_left_out_and_said(answer):
    s = scheduler(policy(answer))
    decisions = s.step(0, arrive(described("a", 4), described("held", 1, held=True)))
    assert started(decisions) in ([], ["a"])
    assert "not started" in told(s) or "the second start is dropped" in told(s)
    consistent(s)


def test_beginning_one_job_and_answering_another_does_not_pass_the_guard():
    def swindle(view):
        view.start(view.queue[0])
        return [Start(view.queue[1].id)]

    s = scheduler(policy(swindle))
    assert started(s.step(0, arrive(described("a", 8), described("b", 8)))) == []
    consistent(s)


def test_answering_other_nodes_than_those_begun_on_passes_the_guard_again():
    def elsewhere(view):
        found = view.start(view.queue[0])
        return [Start(found.job_id, (("n1", 4),), "elsewhere")]

    s = scheduler(policy(elsewhere), cluster=node_cluster(*alike(2, 4)))
    decisions = s.step(0, arrive(described("a", 4)))
    assert decisions == [Start("a", (("n1", 4),), "elsewhere")]
    assert s.state.jobs["a"].placement == (("n1", 4),)
    consistent(s)


def test_a_job_that_was_begun_but_not_answered_is_not_started():
    def forgets(view):
        return [s for job in view.queue if (s := view.start(job)) is not None and job.id != "b"]

    s = scheduler(policy(forgets))
    assert started(s.step(0, arrive(described("a", 2), described("b", 2), described("c", 2)))) == ["a", "c"]
    assert [job.id for job in s.state.domains["pool"].queue] == ["b"]
    consistent(s)


def test_a_policy_may_answer_with_a_generator():
    def one_by_one(view):
        for job in view.queue:
            start = view.start(job, "next")
            if start is not None:
                yield start

    s = scheduler(policy(one_by_one))
    assert started(s.step(0, arrive(described("a", 5), described("b", 5), described("c", 3)))) == ["a", "c"]
    consistent(s)


def test_a_policy_that_fails_half_way_starts_nothing_and_is_named():
    def breaks(view):
        for job in view.queue:
            view.start(job)
        raise ZeroDivisionError("half way")

    s = scheduler(policy(breaks))
    assert s.step(0, arrive(described("a", 4), described("b", 4))) == []
    assert "policy/schedule: ZeroDivisionError: half way" in told(s)
    assert "breaks" in s.problems[0].traceback
    consistent(s)


def test_a_generator_that_fails_half_way_starts_nothing():
    def breaks(view):
        yield view.start(view.queue[0])
        raise RuntimeError("later")

    s = scheduler(policy(breaks))
    assert s.step(0, arrive(described("a", 4), described("b", 4))) == []
    consistent(s)


@pytest.mark.parametrize("answer", [5, [None], ["a"]])
def test_an_answer_that_is_no_list_of_decisions_is_the_policys_failure(answer):
    s = scheduler(policy(lambda view: answer))
    assert s.step(0, arrive(described("a", 4))) == []
    assert "policy/schedule: TypeError" in told(s)
    consistent(s)


def test_a_failing_policy_does_not_stop_another_pool():
    def breaks_in_x(view):
        if view.domain.name == "x":
            raise RuntimeError("x")
        return [view.start(job) for job in view.queue]

    cluster = ClusterDescription("c", (PoolDescription("x", 4), PoolDescription("y", 4)))
    s = scheduler(policy(breaks_in_x), cluster=cluster)
    assert started(s.step(0, arrive(described("a", 4, pool="x"), described("b", 4, pool="y")))) == ["b"]


def test_a_policy_without_an_answer_leaves_it_to_the_next():
    class Shy:
        @hookimpl
        def schedule(self, view):
            view.start(view.queue[0])

    s = scheduler(Shy(), Fcfs())
    assert started(s.step(0, arrive(described("a", 8), described("b", 8)))) == ["a"]
    assert "1 job started, and None returned: expected a list of starts" in told(s)
    consistent(s)


def test_without_a_policy_nothing_starts():
    s = scheduler()
    assert s.step(0, arrive(described("a"))) == []


# ---------------------------------------------------------------- the other hooks


def test_the_queue_is_served_by_the_first_key_that_answers():
    class ByUser:
        @hookimpl
        def queue_key(self, job):
            return (job.user,) if job.user else None

    class Shortest:
        @hookimpl
        def queue_key(self, job):
            return (job.estimate,)

    s = scheduler(Shortest(), Fcfs(), processors=1)
    s.step(0, arrive(described("first"), described("long", 1, 90), described("short", 1, 10)))
    assert [job.id for job in s.state.domains["pool"].queue] == ["long", "first"]
    mixed = scheduler(ByUser(), processors=1)
    mixed.step(0, arrive(described("x"), described("b", user="b"), described("a", user="a")))
    assert [job.id for job in mixed.state.domains["pool"].queue] == ["a", "b", "x"]


@pytest.mark.parametrize("key", [5, "text", {}], ids=repr)
def test_a_queue_key_that_is_no_tuple_is_named_and_submission_decides(key):
    class Wrong:
        @hookimpl
        def queue_key(self, job):
            return key

    s = scheduler(Wrong(), Fcfs(), processors=1)
    assert started(s.step(0, arrive(described("a"), described("b")))) == ["a"]
    assert "wrong/queue_key" in told(s)


@pytest.mark.parametrize("count", [1, 2], ids=["one-plugin", "two-plugins"])
def test_an_answer_that_is_no_barrier_is_named_and_bars_nobody(count):
    class Bars:
        @hookimpl
        def bar_job(self, job):
            return "no"

    class BarsToo(Bars):
        pass

    s = scheduler(Fcfs(), *(Bars(), BarsToo())[:count])
    assert started(s.step(0, arrive(described("1", 2)))) == ["1"]
    assert "expected a Barrier, found 'no'" in told(s)


class Gate:
    """Bars everybody until it is opened."""

    closed = Barrier("closed", "gate")

    @hookimpl
    def bar_job(self, job):
        return self.closed

    @hookimpl
    def react(self, state):
        if self.closed is None:
            state.lifted("gate")


@pytest.mark.parametrize("nodes", [False, True], ids=["flat", "nodes"])
@pytest.mark.parametrize("policy", [Fcfs, Easy, Conservative])
def test_who_is_barred_by_a_start_and_too_large_for_what_is_free_holds_up_nobody(policy, nodes):
    cluster = node_cluster(*alike(4, 2)) if nodes else None
    s = scheduler(policy(), OneOfEachUser(), processors=8, cluster=cluster)
    first = described("first", 4, user="u"), described("large", 8, user="u"), described("other", 4, user="v")
    assert started(s.step(0, arrive(*first))) == ["first", "other"]


def test_who_is_barred_by_a_start_closes_no_queue_under_k_reserved():
    s = scheduler(KReserved(KReservedOptions(limit=1)), OneOfEachUser())
    s.step(0, arrive(described("runs", 3, user="t")))
    s.step(0, [ev.JobStarted(0, "runs")])
    # The second overtakes the first for the one time that it may, and bars it: it is in no queue then.
    come = described("large", 6, user="u"), described("small", 2, user="u"), described("other", 2, user="v")
    assert started(s.step(1, arrive(*come, now=1))) == ["small", "other"]


def wrong_count(self, jobs, state):
    return [None]


def no_barriers(self, jobs, state):
    return ["no"] * len(jobs)


def raising(self, jobs, state):
    return 1 / 0


@pytest.mark.parametrize("answer", [wrong_count, no_barriers, raising])
def test_wrong_answers_about_many_jobs_are_named_and_each_is_asked_about_by_itself(answer):
    gate = type("Gates", (Gate,), {"bar_jobs": answer})()
    s = scheduler(Fcfs(), gate)
    assert s.step(0, arrive(*(described(name) for name in "abcde"))) == []
    assert s.problems == []
    gate.closed = None
    assert started(s.step(1, [ev.Tick(1)])) == list("abcde")
    assert "gates/bar_job" in told(s)


class Kinds(Gate):
    """Tells about whom it was asked; a job's kind is its user."""

    def __init__(self):
        self.asked = []
        self.kind = lambda job: job.user or None
        self.traits = Traits(same_answer=lambda job: self.kind(job))

    @hookimpl
    def bar_jobs(self, jobs, state):
        self.asked.append("".join(job.id for job in jobs))
        return [self.closed for _ in jobs]


def of_kinds(gate):
    """Two jobs of u, one of u that is larger, one of v, two of nobody: all are barred."""
    jobs = [described(name, size, user=user) for name, size, user in (
        ("a", 1, "u"), ("b", 1, "u"), ("c", 2, "u"), ("d", 1, "v"), ("e", 1, ""), ("f", 1, ""),
    )]  # fmt: skip
    s = scheduler(Fcfs(), gate)
    s.step(0, arrive(*jobs))
    return s


def test_of_jobs_of_one_kind_and_size_one_is_asked_about():
    gate = Kinds()
    s = of_kinds(gate)
    barriers = [s.state.jobs[name].barrier for name in "abcdef"]
    assert barriers == [Gate.closed] * 6
    gate.closed = None
    assert started(s.step(1, [ev.Tick(1)])) == list("abcdef")
    assert gate.asked == ["bdefc"]


def test_kinds_that_changed_are_asked_for_again():
    gate = Kinds()
    s = of_kinds(gate)
    s.step(1, [ev.JobChanged(1, described("b", 1, user="v"))])
    gate.kind = lambda job: job.id
    s.state.outdate_kinds()
    assert [s.state.jobs[name].bar_kind for name in "abcdef"] == list("abcdef")
    gate.closed = None
    assert started(s.step(2, [ev.Tick(2)])) == list("abcdef")
    assert sorted(gate.asked[-1]) == list("abcdef")


def test_the_kind_of_a_job_on_nodes_is_kept_for_when_it_goes_back():
    gate = Kinds()
    gate.closed = None
    s = scheduler(Fcfs(), gate)
    s.step(0, arrive(described("a", 1, user="u")))
    s.step(1, [ev.JobStarted(1, "a"), ev.JobChanged(1, described("a", 1, user="v"))])
    assert s.state.jobs["a"].bar_kind == "v"
    gate.kind = lambda job: "another"
    s.state.outdate_kinds()
    assert s.state.jobs["a"].bar_kind == "another"


@pytest.mark.parametrize("kind", [lambda job: 1 / 0, lambda job: []])
def test_a_job_whose_kind_cannot_be_told_is_asked_about_by_itself(kind):
    gate = Kinds()
    gate.kind = kind
    s = of_kinds(gate)
    gate.closed = None
    assert started(s.step(1, [ev.Tick(1)])) == list("abcdef")
    assert gate.asked == ["abdefc"]
    assert "kinds/bar_job" in told(s)


def test_jobs_that_are_let_in_together_take_their_places_as_one_by_one():
    class Keys(Gate):
        @hookimpl
        def bar_jobs(self, jobs, state):
            return [self.closed for _ in jobs]

        @hookimpl
        def queue_key(self, job):
            return ("text",) if job.id == "c" else (-ord(job.id),)

    for names, queue in (("abde", "edba"), ("abcde", "edbac")):
        gate = Keys()
        s = scheduler(Fcfs(), gate, processors=1)
        s.step(0, arrive(*(described(name) for name in names)))
        gate.closed = None
        s.step(1, [ev.Tick(1)])
        pool = s.state.domains["pool"]
        there = [entry[3].id for entry in pool.running] + [job.id for job in pool.queue]
        assert "".join(there) == queue
        assert ("compares" in told(s)) == ("c" in names)


def test_queue_keys_that_do_not_compare_do_not_end_the_run():
    class Mixed:
        @hookimpl
        def queue_key(self, job):
            return (5,) if job.id == "a" else ("text",)

    s = scheduler(Mixed(), processors=1)
    s.step(0, arrive(described("a"), described("b"), described("c")))
    assert [job.id for job in s.state.domains["pool"].queue] == ["a", "b", "c"]
    assert "compares" in told(s)


def test_an_order_of_each_cycle():
    class Largest:
        @hookimpl
        def order_queue(self, jobs):
            return sorted(jobs, key=lambda job: -job.processors)

    s = scheduler(Largest(), Fcfs())
    jobs = arrive(described("a", 1), described("b", 6), described("c", 2), described("d", 7))
    assert started(s.step(0, jobs)) == ["d"]
    assert [job.id for job in s.state.domains["pool"].queue] == ["a", "b", "c"]


def test_an_order_may_leave_jobs_out():
    class Choosy:
        @hookimpl
        def order_queue(self, jobs):
            return [job for job in jobs if job.user != "greedy"]

    s = scheduler(Choosy(), Fcfs())
    assert started(s.step(0, arrive(described("a", user="greedy"), described("b")))) == ["b"]


@pytest.mark.parametrize(
    "answer",
    [lambda jobs: [*jobs, jobs[0]], lambda jobs: ["a"], lambda jobs: 7, lambda jobs: jobs.clear()],
    ids=["twice", "no jobs", "no sequence", "emptied"],
)
def test_an_order_that_is_none_is_left_out(answer):
    class Wrong:
        @hookimpl
        def order_queue(self, jobs):
            return answer(jobs)

    s = scheduler(Wrong(), Fcfs())
    assert started(s.step(0, arrive(described("a"), described("b")))) == ["a", "b"]
    consistent(s)


def test_a_prediction_replaces_the_estimate():
    class Half:
        @hookimpl
        def predict_runtime(self, job):
            return job.estimate / 2

    s = scheduler(Half())
    s.step(0, arrive(described("a", 1, 100)))
    assert s.state.jobs["a"].expected_runtime == 50


@pytest.mark.parametrize(
    "answer", ["soon", float("nan"), float("inf"), -5, pytest.param(object(), id="object")], ids=repr
)
def test_a_prediction_that_is_no_time_is_named_and_the_estimate_counts(answer):
    class Wrong:
        @hookimpl
        def predict_runtime(self, job):
            return answer

    s = scheduler(Wrong())
    s.step(0, arrive(described("a", 1, 100)))
    assert s.state.jobs["a"].expected_runtime == 100
    assert "wrong/predict_runtime" in told(s)


def test_a_refused_job_is_never_started_and_says_why():
    class Limit:
        @hookimpl
        def admit_job(self, job):
            return "more than 4 processors" if job.processors > 4 else None

    s = scheduler(Limit(), Fcfs())
    assert started(s.step(0, arrive(described("big", 5), described("small", 4)))) == ["small"]
    assert s.state.why_waiting(s.state.jobs["big"]) == "refused: more than 4 processors"
    assert started(s.step(1, [ev.JobChanged(1, described("big", 3))])) == ["big"]


def test_nobody_is_asked_to_admit_who_has_ended_already():
    """A batch system lists jobs that are over; admission could take them for such as wait."""

    class Asked:
        jobs: ClassVar[list[str]] = []

        @hookimpl
        def admit_job(self, job):
            self.jobs.append(job.id)

    s = scheduler(Asked(), Fcfs())
    over = ev.JobEnded(9, "over", "cancelled")
    assert started(s.step(9, [*arrive(described("over", 2), described("new", 2)), over])) == ["new"]
    s.follow(10, [*arrive(described("other", 2)), ev.JobEnded(10, "other", "cancelled")])
    s.step(11, arrive(described("other", 2)))
    assert Asked.jobs == ["new", "other"]


def test_a_veto_takes_a_start_back():
    class Night:
        @hookimpl
        def veto(self, decision):
            return "not now" if decision.job_id == "b" else None

    s = scheduler(Fcfs(), Night())
    assert started(s.step(0, arrive(described("a", 2), described("b", 2), described("c", 2)))) == ["a", "c"]
    assert [job.id for job in s.state.domains["pool"].queue] == ["b"]
    consistent(s)


def test_revisions_are_a_pipeline_in_order():
    class Slow:
        @hookimpl
        def revise(self, decisions):
            return [Start(d.job_id, d.placement, d.reason + "1", frequency=1e9) for d in decisions]

    class Note:
        @hookimpl
        def revise(self, decisions):
            return [Start(d.job_id, d.placement, d.reason + "2", frequency=d.frequency) for d in decisions]

    s = scheduler(Note(), Slow(), Fcfs())
    (start,) = s.step(0, arrive(described("a")))
    assert start.reason.endswith("21") and start.frequency == 1e9
    assert s.state.jobs["a"].frequency == 1e9


def revising(change):
    class Revising:
        @hookimpl
        def revise(self, decisions):
            return change(decisions)

    return Revising()


def test_two_jobs_may_change_places():
    def swap(decisions):
        one, two = decisions
        return [Start(one.job_id, two.placement), Start(two.job_id, one.placement)]

    s = scheduler(revising(swap), Fcfs(), cluster=node_cluster(*alike(2, 4)))
    decisions = s.step(0, arrive(described("a", 4), described("b", 4)))
    assert decisions == [Start("a", (("n1", 4),)), Start("b", (("n0", 4),))]
    assert s.problems == []
    consistent(s)


@pytest.mark.parametrize(
    "change",
    [
        lambda decisions: [*decisions, Start("ghost")],
        lambda decisions: [*decisions, decisions[0]],
        lambda decisions: [*decisions, Start("b")],
        lambda decisions: [Start("a", (("n0", 99),))],
    ],
    ids=["unknown", "twice", "does not fit", "no such place"],
)
def test_a_revision_does_not_pass_the_guard_by(change):
    s = scheduler(revising(change), Fcfs(), cluster=node_cluster(*alike(2, 4)))
    decisions = s.step(0, arrive(described("a", 6), described("b", 6)))
    assert started(decisions) in ([], ["a"])
    assert s.problems
    consistent(s)


def test_a_revision_that_drops_a_start_undoes_it():
    s = scheduler(revising(lambda decisions: []), Fcfs())
    assert s.step(0, arrive(described("a", 6))) == []
    assert [job.id for job in s.state.domains["pool"].queue] == ["a"]
    consistent(s)


@pytest.mark.parametrize("answer", [7, [None], ["x"]])
def test_a_revision_that_is_none_is_left_out(answer):
    s = scheduler(revising(lambda decisions: answer), Fcfs())
    assert started(s.step(0, arrive(described("a", 6)))) == ["a"]
    assert "revising/revise" in told(s)


def controlling(decide):
    class Controlling:
        @hookimpl
        def control(self, state):
            return decide(state)

    return Controlling()


def test_control_adds_decisions():
    s = scheduler(controlling(lambda state: [Cancel("a", "over quota")]), Fcfs())
    assert s.step(0, []) == [Cancel("a", "over quota")]


def test_a_start_by_control_passes_the_guard():
    wish = lambda state: [Start(name) for name in state.jobs]  # noqa: E731
    s = scheduler(controlling(wish))
    decisions = s.step(0, arrive(described("a", 5), described("b", 5)))
    assert started(decisions) == ["a"]
    assert "b" in told(s)
    consistent(s)


def test_a_start_by_an_answer_to_a_command_passes_the_guard():
    class Reacting:
        @hookimpl
        def react(self, state):
            return [Start(name) for name in state.jobs]

    s = scheduler(Reacting(), Fcfs())
    assert started(s.step(0, arrive(described("a", 5), described("b", 5)))) == ["a"]
    assert "reacting/react" in told(s) and "b" in told(s)
    consistent(s)


@pytest.mark.parametrize("answer", [7, [None]])
def test_a_control_answer_that_is_none_is_left_out(answer):
    s = scheduler(controlling(lambda state: answer), Fcfs())
    assert started(s.step(0, arrive(described("a")))) == ["a"]
    assert "controlling/control" in told(s)


def test_what_was_decided_is_told_once_it_is_final():
    seen = []

    class Watcher:
        @hookimpl
        def decided(self, decisions):
            seen.append(list(decisions))

    class Night:
        @hookimpl
        def veto(self, decision):
            return "no" if decision.job_id == "a" else None

    s = scheduler(Fcfs(), Night(), Watcher())
    s.step(0, arrive(described("a"), described("b")))
    s.step(1, [])
    assert [started(decisions) for decisions in seen] == [["b"]]


def test_observers_see_each_event_folded_in():
    seen = []

    class Watcher:
        @hookimpl
        def observe(self, event, state):
            seen.append((type(event).__name__, len(state.jobs)))

    s = scheduler(Watcher())
    s.step(0, [*arrive(described("a")), ev.Tick(0)])
    assert seen == [("Tick", 1), ("JobSubmitted", 1)]


HOOKS = {
    "startup": lambda self, state: 1 / 0,
    "shutdown": lambda self, state: 1 / 0,
    "checkpoint": lambda self: 1 / 0,
    "observe": lambda self, event: 1 / 0,
    "predict_runtime": lambda self, job: 1 / 0,
    "admit_job": lambda self, job: 1 / 0,
    "bar_job": lambda self, job: 1 / 0,
    "queue_key": lambda self, job: 1 / 0,
    "order_queue": lambda self, jobs: 1 / 0,
    "place": lambda self, job: 1 / 0,
    "control": lambda self, state: 1 / 0,
    "revise": lambda self, decisions: 1 / 0,
    "veto": lambda self, decision: 1 / 0,
    "decided": lambda self, decisions: 1 / 0,
}


@pytest.mark.parametrize("hook", HOOKS)
def test_a_plugin_that_raises_is_named_and_the_cycle_survives(hook):
    broken = type("Broken", (), {hook: hookimpl(HOOKS[hook])})()
    s = scheduler(broken, Fcfs(), cluster=node_cluster(*alike(1, 4)))
    decisions = s.step(0, arrive(described("a")))
    s.checkpoint()
    s.shutdown()
    assert f"broken/{hook}: ZeroDivisionError" in told(s)
    assert started(decisions) == ([] if hook == "place" else ["a"])
    consistent(s)


def test_seconds_are_counted_for_each_plugin():
    s = scheduler(Fcfs())
    s.step(0, arrive(described("a")))
    assert s.seconds["fcfs"] > 0


def test_state_is_saved_and_restored_by_name():
    class Counter:
        seen = 0

        @hookimpl
        def observe(self):
            self.seen += 1

        @hookimpl
        def checkpoint(self):
            return {"seen": self.seen}

        @hookimpl
        def restore(self, saved):
            self.seen = saved["seen"]

    first = scheduler(Counter())
    first.step(0, [ev.Tick(0), ev.Tick(0)])
    saved = first.checkpoint()
    assert saved == {"counter": {"seen": 2}}
    again = Counter()
    scheduler(again, saved={**saved, "gone": 1})
    assert again.seen == 2


# ---------------------------------------------------------------- placements


def placing(place):
    class Placing:
        @hookimpl
        def place(self, offer):
            return place(offer)

    return Placing()


@pytest.mark.parametrize(
    "wrong",
    [(("n0", 99),), (("n9", 4),), (("n0", 2), ("n0", 2))],
    ids=["too many", "no such node", "twice"],
)
def test_a_placement_that_cannot_be_had_costs_that_job_only(wrong):
    s = scheduler(
        placing(lambda offer: wrong if offer.request.processors == 4 else offer.take(offer.feasible)),
        Easy(),
        cluster=node_cluster(*alike(2, 4)),
    )
    decisions = s.step(0, arrive(described("bad", 4, 10), described("good", 2, 10)))
    assert started(decisions) == ["good"]
    assert "bad" in told(s) or "node" in told(s) or "processors" in told(s)
    consistent(s)


def test_nowhere_is_an_answer_that_no_other_placement_is_asked_after():
    class Elsewhere:
        @hookimpl
        def place(self, offer):
            return offer.take(offer.feasible)

    s = scheduler(
        placing(lambda offer: () if offer.request.processors == 4 else None),
        Elsewhere(),
        Easy(),
        cluster=node_cluster(*alike(2, 4)),
    )
    decisions = s.step(0, arrive(described("kept", 4, 10), described("good", 2, 10)))
    assert started(decisions) == ["good"]
    assert not told(s)
    consistent(s)


def asked_while_one_runs(by_room, *, news=()):
    """How often a place was looked for from a job's start on, first at its confirmation, then at ``news``."""

    class Placing:
        traits = Traits(ask_again=Again.ROOM if by_room else Again.DOMAIN)
        asked = 0

        @hookimpl
        def place(self, offer):
            self.asked += 1
            return offer.take(offer.feasible) if offer.slots.max() > 2 else ()

    placing = Placing()
    s = scheduler(placing, Fcfs(), cluster=node_cluster(*alike(2, 4)))
    first = s.step(0, arrive(described("a", 6, 10), described("b", 1, 10)))
    before = placing.asked
    s.step(5, [ev.JobStarted(5, "a", first[0].placement)])
    for event in news:
        s.step(event.time, [event])
    return placing.asked - before, s.state.jobs


def test_a_plugin_that_places_by_room_is_asked_again_only_once_room_has_changed():
    assert asked_while_one_runs(False)[0] == 1
    assert asked_while_one_runs(True)[0] == 0


FURTHER = node_cluster(*alike(3, 4)).nodes[2]


@pytest.mark.parametrize("news", [ev.JobEnded(9, "a"), ev.NodeUp(9, FURTHER)], ids=["end", "node"])
def test_what_found_no_place_is_tried_once_there_is_other_room(news):
    asked, jobs = asked_while_one_runs(True, news=[news])
    assert asked == 1
    assert jobs["b"].status is Status.STARTING


# ---------------------------------------------------------------- monitor


def test_in_monitor_mode_a_wish_is_said_once_and_takes_nothing():
    s = scheduler(Fcfs(), monitor=True)
    assert started(s.step(0, arrive(described("a", 8), described("b", 8)))) == ["a"]
    assert s.state.domains["pool"].free == 8
    assert s.step(10, [ev.Tick(10)]) == []
    assert s.step(20, arrive(described("c", 1), now=20)) == []
    assert s.step(30, [ev.JobStarted(25, "a")]) == []
    assert started(s.step(40, [ev.JobEnded(40, "a")])) == ["b"]


def test_in_monitor_mode_a_job_that_comes_back_is_wished_for_again():
    s = scheduler(Fcfs(), monitor=True)
    s.step(0, arrive(described("a", 8)))
    s.step(5, [ev.JobStarted(5, "a")])
    assert started(s.step(9, [ev.JobRequeued(9, "a")])) == ["a"]
    s.step(12, [ev.JobHeld(12, "a")])
    assert started(s.step(15, [ev.JobReleased(15, "a")])) == ["a"]


def test_in_monitor_mode_other_decisions_are_said_too():
    s = scheduler(controlling(lambda state: [Hold("a", "why not")]), monitor=True)
    assert s.step(0, []) == [Hold("a", "why not")]


# ---------------------------------------------------------------- reservations


def test_a_job_in_its_reservation_does_not_wait_for_the_head_of_the_queue():
    flat = ClusterDescription.flat(8)
    kept = Reservation("r", 0, 100, pool="pool", processors=4)
    s = scheduler(Easy(), cluster=ClusterDescription(flat.name, flat.pools, (), (kept,)))
    jobs = arrive(
        described("running", 4, 50),
        described("head", 4, 50),
        described("member", 4, 90, reservation="r"),
        described("outsider", 4, 10),
    )
    assert started(s.step(0, jobs)) == ["running", "member"]


def test_an_arrival_has_a_pool_looked_at_where_somebody_has_outlived_his_limit():
    """Two have, so their processors are expected together; while one had, the other's were not."""
    s = scheduler(Easy())
    s.step(0, arrive(described("a", 4, 100), described("b", 2, 20)))
    s.step(0, [ev.JobStarted(0, "a"), ev.JobStarted(0, "b")])
    assert s.step(30, arrive(described("head", 4), described("x", 2, 50), now=30)) == []
    assert started(s.step(101, arrive(described("large", 8), now=101))) == ["x"]


def test_an_arrival_has_a_pool_looked_at_where_somebody_told_to_go_has_not_gone():
    """What it was expected to give back is not there yet: "large" would run on what is reserved."""
    flat = ClusterDescription.flat(8)
    kept = Reservation("r", 5, 100, pool="pool", processors=4)
    requeues = controlling(lambda state: [Requeue("a")] if state.now == 9 else [])
    s = scheduler(Conservative(), requeues, cluster=ClusterDescription(flat.name, flat.pools, (), (kept,)))
    s.step(0, arrive(described("a", 2, 50)))
    s.step(0, [ev.JobStarted(0, "a")])
    s.step(9, [])
    assert started(s.step(10, arrive(described("waits", 5, 20, submit=10), now=10))) == []
    jobs = described("large", 3, 5, submit=11), described("small", 1, 5, submit=11)
    assert started(s.step(11, arrive(*jobs, now=11))) == ["small"]
    assert not told(s)


class Greeter:
    """Reacts so many times."""

    def __init__(self, times):
        self.times, self.at = times, []

    @hookimpl
    def react(self, state):
        self.at.append(state.now)
        return NO_MORE if len(self.at) == self.times else None


class Host(Greeter):
    """Another one."""


def test_who_has_no_more_to_do_is_not_asked_to_react_again():
    once, often = Greeter(1), Host(3)
    s = scheduler(Fcfs(), once, often)
    for now in range(5):
        assert s.step(now, [ev.Tick(now)]) == []
    assert (once.at, often.at) == ([0], [0, 1, 2])
    assert s.problems == []
