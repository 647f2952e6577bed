"""Limits: who may start, who waits for what, and that they hold at every instant."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from building import POLICIES, OneOfEachUser, alike, described, emulate, node_cluster, plugged, traced
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import events as ev
from headway.decisions import Start
from headway.errors import UserError
from headway.hookspecs import hookimpl
from headway.inquiry import explain
from headway.model import ClusterDescription, PoolDescription
from headway.plugins import PluginConfig, make_plugin
from headway.scheduler import Scheduler, plain_clock
from headway.state.records import ON_NODES, Status
from headway_plugins.limits.plugin import Limits, LimitsOptions
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy, EasyOptions
from headway_plugins.policies.fcfs import Fcfs
from headway_plugins.policies.greedy import Greedy
from headway_plugins.policies.los import DelayedLos
from headway_plugins.policies.strict import Strict


def scheduler(of, processors=8, policy=None, cluster=None, more=(), **options):
    limits = Limits(LimitsOptions(of=of, **options))
    plugins = plugged(limits, *more, policy or Easy())
    return Scheduler(cluster or ClusterDescription.flat(processors), plugins)


def step(s, now, *events):
    """Starts of a step, which the cluster confirms."""
    made = [d.job_id for d in s.step(now, events) if isinstance(d, Start)]
    if made:
        made += [d.job_id for d in s.step(now, [ev.JobStarted(now, name) for name in made])]
    assert s.problems == []
    return "".join(made)


def arrive(s, now, *jobs):
    return step(s, now, *(ev.JobSubmitted(now, job) for job in jobs))


@pytest.mark.parametrize("bookings", [1, 2])
def test_a_pass_in_which_a_limit_refuses_a_job_is_taken_back_and_repeated_without_it(bookings):
    s = scheduler({"user": {"*": {"jobs": 1}}}, policy=Easy(EasyOptions(bookings=bookings)))
    took = []

    class Taken:
        def took(self, job):
            took.append(job.id)

        def gave(self, job):
            took.append(f"-{job.id}")

    s.state.watch(Taken())
    assert arrive(s, 1, *(described(name, user=user) for name, user in ("au", "bu", "cv"))) == "ac"
    assert took == ["a", "-a", "a", "c"]


#: Limits, three jobs (a and b run if they may), and which of them start on 8 processors.
CASES = [
    ({"user": {"*": {"jobs": 1}}}, {"user": "u"}, {"user": "u"}, {"user": "v"}, "ac"),
    ({"user": {"u": {"jobs": 0}}}, {"user": "u"}, {"user": "v"}, {}, "bc"),
    ({"user": {"u": {"jobs": 2}, "*": {"jobs": 1}}}, {"user": "u"}, {"user": "u"}, {"user": "u"}, "ab"),
    # Each limit is that of the most exact line that says it.
    ({"user": {"u": {"jobs": 3}, "*": {"jobs": 1, "processors": 2}}}, {"user": "u"}, {"user": "u"},
     {"user": "u"}, "ab"),
    ({"user": {"u": {"jobs": 3, "processors": None}, "*": {"jobs": 1, "processors": 2}}}, {"user": "u"},
     {"user": "u"}, {"user": "u"}, "abc"),
    ({"user": {"u": {}, "*": {"jobs": 1}}}, {"user": "u"}, {"user": "u"}, {"user": "v"}, "ac"),
    ({"user+pool": {"u+*": {"jobs": 2}, "*+pool": {"jobs": 1, "processors": 2}}}, {"user": "u"},
     {"user": "u", "processors": 2}, {"user": "u"}, "ac"),
    ({"user": {"u": {"largest": {"walltime": "2h"}}, "*": {"largest": {"processors": 1, "walltime": "1h"}}}},
     {"user": "u", "estimate": 7200}, {"user": "u", "processors": 2}, {"user": "v", "estimate": 7200}, "a"),
    ({"user": {"u": {"resources": {"gpu": 2}}, "*": {"resources": {"gpu": 1, "fpga": 0}}}},
     {"user": "u", "gres_per_node": (("gpu", 2),)}, {"user": "u", "gres_per_node": (("fpga", 1),)},
     {"user": "v", "gres_per_node": (("gpu", 2),)}, "a"),
    ({"user": {"u": {"resources": {"gpu": None}}, "*": {"resources": {"gpu": 1}}}},
     {"user": "u", "gres_per_node": (("gpu", 2),)}, {"user": "v", "gres_per_node": (("gpu", 2),)},
     {"user": "v", "gres_per_node": (("gpu", 1),)}, "ac"),
    ({"all": {"*": {"processors": 3}}}, {"processors": 2}, {"processors": 2}, {"processors": 1}, "ac"),
    ({"group": {"g": {"jobs": 1}}}, {"group": "g"}, {"group": "h"}, {"group": "g"}, "ab"),
    ({"qos": {"low": {"processors": 1}}}, {"qos": "low"}, {"qos": "low"}, {"qos": "high"}, "ac"),
    ({"pool": {"pool": {"jobs": 2}}}, {}, {}, {}, "ab"),
    ({"user+qos": {"*+low": {"jobs": 1}}}, {"user": "u", "qos": "low"}, {"user": "v", "qos": "low"},
     {"user": "u", "qos": "low"}, "ab"),
    ({"user+qos": {"u+*": {"jobs": 1}, "*+low": {"jobs": 2}}}, {"user": "u", "qos": "low"},
     {"user": "u", "qos": "low"}, {"user": "u", "qos": "high"}, "ac"),
    ({"all": {"*": {"memory": 3}}}, {"memory_per_processor": 2 << 30}, {"memory_per_processor": 2 << 30},
     {"memory_per_processor": 1 << 30}, "ac"),
    ({"all": {"*": {"resources": {"gpu": 2}}}}, {"gres_per_node": (("gpu", 2),)},
     {"gres_per_node": (("gpu", 1),)}, {}, "ac"),
    ({"all": {"*": {"nodes": 3}}}, {"nodes": 2, "processors": 2}, {"nodes": 2, "processors": 2}, {}, "ac"),
    ({"all": {"*": {"processor_minutes": 10}}}, {"estimate": 300}, {"estimate": 301}, {"estimate": 300},
     "ac"),
    ({"all": {"*": {"largest": {"processors": 1}}}}, {"processors": 2}, {}, {}, "bc"),
    ({"all": {"*": {"largest": {"walltime": "1h"}}}}, {"estimate": 3601}, {"estimate": 3600}, {}, "bc"),
    ({"all": {"*": {"largest": {"processor_minutes": 10}}}}, {"estimate": 601}, {"estimate": 600}, {}, "bc"),
]  # fmt: skip


@pytest.mark.parametrize(("of", "a", "b", "c", "start"), CASES)
def test_who_starts_under_which_limit(of, a, b, c, start):
    s = scheduler(of)
    jobs = [described(name, **about) for name, about in zip("abc", (a, b, c), strict=True)]
    assert arrive(s, 0, *jobs) == start
    # The others are in no queue.
    assert all(not pool.queue for pool in s.state.domains.values())


@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_under_a_limit_holds_up_nobody_and_is_not_booked(policy):
    s = scheduler({"user": {"*": {"processors": 4}}}, policy=POLICIES[policy]())
    jobs = [
        described("a", 3, user="u"), described("b", 3, user="u"), described("c", 4, user="v"),
        described("d", 1, user="u"),
    ]  # fmt: skip
    assert arrive(s, 0, *jobs) == "acd"
    assert s.views["pool"].bookings == []
    assert s.state.jobs["b"].barrier is not None


def test_it_starts_in_the_step_in_which_room_appears():
    s = scheduler({"user": {"*": {"jobs": 1}}})
    assert arrive(s, 0, described("a", user="u"), described("b", user="u"), described("c", user="u")) == "a"
    assert step(s, 5, ev.JobEnded(5, "a")) == "b"
    # The cluster refuses, so there is room for the other one.
    decision = s.step(9, [ev.JobEnded(9, "b")])[0]
    assert [d.job_id for d in s.step(9, [ev.DecisionFailed(9, decision, "no")])] == []
    assert step(s, 30, ev.Tick(30)) == "c"


def test_minutes_that_are_left_become_less_as_time_passes():
    s = scheduler({"user": {"*": {"processor_minutes": 20}}})
    assert arrive(s, 0, described("a", 2, 600, user="u"), described("b", 1, 300, user="u")) == "a"
    # a has 20 minutes on two processors less what has passed.
    assert s.next_wakeup() == pytest.approx(150)
    assert step(s, 149, ev.Tick(149)) == ""
    assert step(s, 150) == "b"


def test_an_account_counts_those_below_it():
    tree = {"physics": {"accounts": {"theory": {}, "lab": {}}}, "chemistry": {}}
    s = scheduler({"account": {"physics": {"jobs": 2}, "lab": {"jobs": 1}}}, accounts=tree)
    names = ["lab", "lab", "theory", "physics", "chemistry"]
    jobs = [described(str(n), account=name) for n, name in enumerate(names)]
    assert arrive(s, 0, *jobs) == "024"


def test_starts_of_others_count_and_the_booked_one_gives_way():
    s = scheduler({"user": {"*": {"jobs": 1}}}, processors=4)
    arrive(s, 0, described("x", 3, 1000, user="v"))
    assert arrive(s, 1, described("head", 4, 100, user="u"), described("long", 1, 5000, user="w")) == ""
    assert [booking.job.id for booking in s.views["pool"].bookings] == ["head"]
    # Somebody started another one of the head's user behind headway's back.
    s.step(2, [ev.JobSubmitted(2, described("mine", 0, 10, user="u", held=True))])
    assert step(s, 3, ev.JobStarted(3, "mine")) == "long"
    assert s.state.jobs["head"].status is Status.WAITING


def test_a_start_that_bars_the_booked_head_has_the_others_looked_at_again():
    s = scheduler({"user": {"*": {"jobs": 1}}}, processors=4)
    arrive(s, 0, described("x", 2, 1000, user="v"))
    jobs = [
        described("head", 4, 100, user="u"), described("short", 1, 10, user="u"),
        described("long", 1, 5000, user="w"),
    ]  # fmt: skip
    assert arrive(s, 1, *jobs) == "shortlong"


def test_explain_tells_limit_value_and_use():
    s = scheduler({"user": {"*": {"processors": 5}}, "all": {"*": {"largest": {"walltime": 3600}}}})
    arrive(s, 0, described("a", 4, user="ann"), described("b", 2, user="ann"), described("c", 1, 7200))
    assert explain(s, "b", plain_clock)[-1] == (
        "It cannot start: the limit of 5 processors of user 'ann' is reached: 4 in use, it would add 2."
    )
    assert explain(s, "c", plain_clock)[-1] == (
        "It cannot start: it asks for 7200 seconds of walltime, and the limit of one job of all jobs "
        "together is 3600."
    )


def test_a_changed_job_counts_as_what_it_is_now():
    s = scheduler({"qos": {"low": {"jobs": 1}}})
    assert arrive(s, 0, described("a", qos="low"), described("b", qos="low")) == "a"
    assert step(s, 1, ev.JobChanged(1, described("a", qos="high"))) == "b"
    s.step(2, [ev.JobEnded(2, "a"), ev.JobEnded(2, "b")])
    holders = s.plugins.by_name["limits"]._holders.values()
    assert [holder.used("jobs", 2) for holder in holders] == [0]


def test_the_guard_refuses_a_start_that_no_policy_made():
    class Pusher:
        @hookimpl
        def control(self, state):
            return [Start(job.id) for job in state.jobs.values() if job.status is Status.WAITING]

    s = scheduler({"user": {"*": {"jobs": 1}}}, more=[Pusher()])
    s.step(0, [ev.JobSubmitted(0, described(name, user="u")) for name in "ab"])
    assert [problem.message for problem in s.problems] == ["job b is waiting, not pending; not started"]


BAD = [
    ({"usr": {}}, r"of: usr: user, account, .* found 'usr'.*user"),
    ({"user+user": {}}, "of: user\\+user: each name of a combination once"),
    ({"user+pool": {"ann": {"jobs": 1}}}, r"of: user\+pool: user\+pool, such as \*\+\*, found 'ann'"),
    ({"all": {"ann": {"jobs": 1}}}, "of: all: .* found 'ann'"),
    ({"user": {"*": {"jobs": -1}}}, r"of\.user\.\*\.jobs: .*0"),
    ({"user": {"*": {"job": 1}}}, r"job: unknown key"),
    ({"user": {"*": {"largest": {"walltime": "soon"}}}}, "walltime"),
]


@pytest.mark.parametrize(("of", "message"), BAD)
def test_what_makes_no_sense_is_named(of, message):
    with pytest.raises(UserError, match=message):
        make_plugin(Limits, PluginConfig("limits", {"of": of}, "site.yaml: plugins"))


# ---------------------------------------------------------------------- against counting by hand


class Witness:
    """Counts everything anew at the end of each step, and looks who is in the queue and who is not."""

    def __init__(self, of, greedy):
        self.of, self.greedy = of, greedy

    def over(self, jobs):
        """Whether these jobs have more than is allowed."""
        for kind, limits in self.of.items():
            for measure, most in limits["*"].items():
                use = Counter()
                for job in jobs:
                    use[getattr(job.description, kind)] += 1 if measure == "jobs" else job.processors
                if any(value > most for value in use.values()):
                    return True
        return False

    @hookimpl
    def control(self, state):
        have = [job for job in state.jobs.values() if job.status in ON_NODES]
        assert not self.over(have)
        for job in state.jobs.values():
            if job.status is Status.WAITING:
                assert self.over([*have, job])
            elif job.status is Status.PENDING:
                assert not (self.greedy and job.processors <= job.domain.free and not self.over([*have, job]))
        for booking in state.domains["pool"].view.bookings:
            assert not self.over([*have, booking.job])


POLICIES_ALL = {**POLICIES, "greedy": Greedy, "delayed-los": lambda: DelayedLos(DelayedLos.Options())}


@st.composite
def workloads(draw):
    """Jobs of three users in two accounts on ten processors, and their limits."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    jobs, now = [], 0.0
    for number in range(draw(st.integers(1, 30))):
        now += float(rng.integers(0, 40))
        run = float(rng.integers(1, 200))
        whose = {"user": f"u{rng.integers(3)}", "account": f"a{rng.integers(2)}"}
        estimate = run * float(rng.integers(1, 4))
        jobs.append(traced(str(number), int(rng.integers(1, 6)), estimate, now, runtime=run, **whose))
    of = {
        "user": {"*": {"jobs": draw(st.integers(1, 3))}},
        "account": {"*": {"processors": draw(st.integers(5, 9))}},
    }
    return jobs, of


def test_who_was_refused_beside_a_start_that_was_not_made_again_is_asked_about_again():
    """At 226 job 3 of u1 would start, and with job 6 he has his two: job 8 is refused. Without job 8 jobs 5
    and 7 fill the machine better than job 3, so that job 8 waits for room, and for nothing else."""
    sizes = [
        (32, 3, 184, 184, "u2", "a0"), (57, 3, 338, 169, "u0", "a0"), (65, 4, 42, 21, "u1", "a1"),
        (84, 5, 132, 66, "u1", "a0"), (120, 2, 45, 45, "u0", "a1"), (147, 3, 46, 46, "u0", "a0"),
        (156, 4, 75, 75, "u1", "a1"), (186, 3, 366, 122, "u2", "a0"), (188, 1, 44, 44, "u1", "a1"),
    ]  # fmt: skip
    jobs = [
        traced(str(at), wide, estimate, submit, runtime=run, user=user, account=account)
        for at, (submit, wide, estimate, run, user, account) in enumerate(sizes)
    ]
    of = {"user": {"*": {"jobs": 2}}, "account": {"*": {"processors": 8}}}
    delayed = POLICIES_ALL["delayed-los"]()
    run = emulate(node_cluster(*alike(2, 5)), jobs, Limits(LimitsOptions(of=of)), delayed, Witness(of, False))
    assert run.problems == []
    assert (run.starts["5"], run.starts["7"], run.starts["8"]) == (226, 226, 240)


@pytest.mark.parametrize("policy", [*POLICIES_ALL, "strict"])
def test_who_has_become_barred_by_a_start_and_does_not_fit_holds_up_nobody(policy):
    """Job b of u1 would have to wait for processors, and for the end of a besides; c needs neither."""
    jobs = [
        traced("a", 6, 100, user="u1"), traced("b", 6, 50, user="u1"), traced("c", 2, 300, user="u2"),
    ]  # fmt: skip
    of = {"user": {"*": {"jobs": 1}}}
    policies = {**POLICIES_ALL, "strict": Strict}
    run = emulate(ClusterDescription.flat(10), jobs, Limits(LimitsOptions(of=of)), policies[policy]())
    assert run.problems == []
    assert run.starts == {"a": 0, "b": 100, "c": 0}


@pytest.mark.parametrize("policy", [Fcfs, Easy, Conservative])
def test_who_is_barred_by_a_start_in_another_pool_holds_up_nobody(policy):
    pools = ("left", "right")
    cluster = ClusterDescription("cluster", tuple(PoolDescription(name, 10) for name in pools))
    jobs = [
        traced("before", 6, 200, pool="left", user="u2"), traced("b", 6, 50, 10, pool="left", user="u1"),
        traced("a", 6, 500, 20, pool="right", user="u1"), traced("c", 2, 900, 30, pool="left", user="u3"),
    ]  # fmt: skip
    run = emulate(cluster, jobs, Limits(LimitsOptions(of={"user": {"*": {"jobs": 1}}})), policy())
    assert run.problems == []
    assert run.starts == {"before": 0, "a": 20, "c": 30, "b": 520}


def test_who_is_barred_by_a_start_in_a_pool_looked_at_before_does_not_stop_a_strict_queue():
    """b heads the queue on the left and does not fit; then a of the same user starts on the right."""
    pools = tuple(PoolDescription(name, 10) for name in ("right", "left"))
    s = Scheduler(ClusterDescription("cluster", pools), plugged(OneOfEachUser(), Strict()))

    def come(now, *jobs):
        events = [ev.JobSubmitted(now, described(*job[:3], now, pool=job[3], user=job[0])) for job in jobs]
        return [d.job_id for d in s.step(now, events) if isinstance(d, Start)]

    assert come(0, ("before", 6, 200, "left")) == ["before"]
    b = described("b", 6, 50, 10, pool="left", user="one")
    assert [*s.step(10, [ev.JobSubmitted(10, b)])] == []
    assert come(11, ("b2", 2, 50, "left")) == []
    a = ev.JobSubmitted(20, described("a", 6, 500, 20, pool="right", user="one"))
    d = ev.JobSubmitted(20, described("d", 1, 50, 20, pool="left", user="d"))
    assert [one.job_id for one in s.step(20, [a, d])] == ["a", "b2", "d"]
    assert s.problems == []


@pytest.mark.parametrize("nodes", [False, True], ids=["flat", "nodes"])
@pytest.mark.parametrize("policy", POLICIES_ALL)
@settings(max_examples=6)
@given(case=workloads())
def test_limits_hold_at_every_instant_and_everybody_runs(policy, nodes, case):
    jobs, of = case
    cluster = node_cluster(*alike(2, 5)) if nodes else ClusterDescription.flat(10)
    witness = Witness(of, policy == "greedy" and not nodes)
    run = emulate(cluster, jobs, Limits(LimitsOptions(of=of)), POLICIES_ALL[policy](), witness)
    assert run.problems == []
    assert set(run.states.values()) == {"completed"}
