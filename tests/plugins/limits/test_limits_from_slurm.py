"""Limits as the batch system tells them, those of QOS before those of accounts; budgets."""

from __future__ import annotations

import json

import pytest
from building import described, plugged

from headway import events as ev
from headway.decisions import Start
from headway.errors import UserError
from headway.inquiry import explain
from headway.model import Association, ClusterDescription, SitePolicy
from headway.plugins import PluginConfig, make_plugin
from headway.scheduler import Scheduler, plain_clock
from headway_plugins.limits.plugin import Limits, LimitsOptions
from headway_plugins.policies.easy import Easy

ACCOUNTS = (
    Association("x", processor_minutes=50.0), Association("y", parent="x"),
    Association("x", "ann", processor_minutes=30.0), Association("y", "ann"), Association("y", "bob"),
)  # fmt: skip


def scheduler(saved=None, of="from-slurm", **options):
    limits = Limits(LimitsOptions(of=of, **options))
    return Scheduler(ClusterDescription.flat(8), plugged(limits, Easy()), saved=saved), limits


def step(s, now, *events):
    made = [d.job_id for d in s.step(now, events) if isinstance(d, Start)]
    if made:
        made += [d.job_id for d in s.step(now, [ev.JobStarted(now, name) for name in made])]
    assert s.problems == []
    return "".join(made)


def told(now=0.0, **limits):
    return ev.SitePolicyChanged(now, SitePolicy(ACCOUNTS, {kind: dict(t) for kind, t in limits.items()}))


def arrive(s, now, *jobs):
    return step(s, now, *(ev.JobSubmitted(now, job) for job in jobs))


def ann(name, account="x", **more):
    return described(name, user="ann", account=account, **more)


def test_limits_hold_from_the_first_step_on():
    s, _ = scheduler()
    jobs = [ev.JobSubmitted(0, ann(name)) for name in "abc"]
    assert step(s, 0, *jobs, told(account={"x": {"jobs": 2}})) == "ab"
    assert "limit of 2 running jobs of account 'x' is reached" in str(explain(s, "c", plain_clock))


def test_jobs_are_alike_only_as_long_as_nothing_but_jobs_and_processors_is_limited():
    s, _ = scheduler()
    step(s, 0, told(account={"x": {"jobs": 1}}))
    eve = described("d", user="eve", account="z")
    assert arrive(s, 0, ann("a"), ann("b"), ann("c"), eve) == "ad"
    kinds = [s.state.jobs[name].bar_kind for name in "abcd"]
    assert kinds[0] == kinds[1] == kinds[2] != kinds[3]
    step(s, 1, told(1, account={"x": {"processor_minutes": 1000}}))
    arrive(s, 2, described("e", user="eve", account="z"))
    kinds = [s.state.jobs[name].bar_kind for name in "abcde"]
    assert len(set(kinds)) == 4 and kinds[3] == kinds[4]


def test_an_association_is_a_user_in_that_account_alone():
    s, _ = scheduler()
    step(s, 0, told(association={"x:ann": {"jobs": 1}}, own_account={"x": {"processors": 3}}))
    assert (
        arrive(s, 1, ann("a"), ann("b"), ann("c", "y"), described("d", 4, user="bob", account="y")) == "acd"
    )


def test_limits_that_change_while_jobs_run_and_wait():
    s, _ = scheduler()
    step(s, 0, told(account={"x": {"jobs": 1, "largest": {"processors": 2}}}))
    assert arrive(s, 1, ann("a"), ann("b"), ann("c", processors=3)) == "a"
    # One more: what runs already counts. One that was too large for a limit is no longer.
    assert step(s, 2, told(2, account={"x": {"jobs": 2}})) == "b"
    assert step(s, 3, told(3, qos={"gone": {"jobs": 0}})) == "c"
    assert step(s, 4, told(4, account={"x": {"jobs": 0}})) == ""
    assert arrive(s, 5, ann("d")) == ""
    assert step(s, 6, told(6)) == "d"


def test_who_ran_before_the_limits_were_known_counts():
    """As after each restart, and where a limit is new."""
    s, _ = scheduler()
    running = [ev.JobSubmitted(-60, ann("r", estimate=600)), ev.JobStarted(-60, "r")]
    step(s, 0, *running, told(association={"x:ann": {"jobs": 1, "processor_minutes": 30}}))
    assert arrive(s, 1, ann("a")) == ""
    assert explain(s, "a", plain_clock)[-1] == (
        "It cannot start: the limit of 1 running jobs of association 'x:ann' is reached: 1 in use, it would "
        "add 1."
    )
    again, _ = scheduler()
    step(again, 0, told())
    assert arrive(again, 1, ann("a")) == "a"
    assert step(again, 2, told(2, account={"x": {"jobs": 1}})) == ""
    assert arrive(again, 3, ann("b")) == ""
    assert step(again, 4, ev.JobEnded(4, "a")) == "b"


def test_what_a_qos_limits_its_accounts_do_not():
    s, _ = scheduler()
    limits = {
        "account": {"x": {"processors": 1, "jobs": 3}},
        "qos": {"high": {"processors": 4, "largest": {"walltime": 900}}},
        "association": {"x:ann": {"jobs": 1, "largest": {"walltime": 60}}},
        "user+qos": {"*+high": {"jobs": 2}},
    }
    step(s, 0, told(**limits))
    assert arrive(s, 1, *(ann(n, qos="high", estimate=600, processors=2) for n in "abc")) == "ab"
    # Without that QOS those of the account and the association hold.
    assert arrive(s, 2, ann("d", estimate=30)) == ""


def test_limits_that_make_no_sense_change_nothing():
    s, _ = scheduler()
    step(s, 0, told(account={"x": {"jobs": 1}}))
    s.step(1, [told(1, account={"x": {"job": 5}})])
    assert "the batch system's limits cannot be used, they stay as they were" in s.problems[0].message
    s.problems.clear()
    assert arrive(s, 2, ann("a"), ann("b")) == "a"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"of": "from-slrum"}, "of: expected"),
        (
            {"of": "from-slurm", "accounts": {"x": None}},
            "no accounts and no file beside of: from-slurm",
        ),
    ],
)
def test_options_that_make_no_sense_are_named(options, said):
    with pytest.raises(UserError) as error:
        make_plugin(Limits, PluginConfig("limits", options, "site.yaml"))
    assert said in str(error.value)


# ------------------------------------------------------------------ budgets


def test_a_budget_counts_what_was_used_and_what_runs_may_still_use():
    s, _ = scheduler(of={"user": {"ann": {"budget": 10}}})
    assert arrive(s, 0, ann("a", estimate=300), ann("b", estimate=300), ann("c", estimate=60)) == "ab"
    # After a minute of five a gives four back.
    assert step(s, 60, ev.JobEnded(60, "a")) == "c"
    assert arrive(s, 61, ann("d", estimate=200)) == ""
    assert "processor-minutes, used and still to run, of user 'ann'" in str(explain(s, "d", plain_clock))
    saved = json.loads(json.dumps(s.checkpoint()))
    # The next run is told of b, and c was over meanwhile.
    again, _ = scheduler(saved, of={"user": {"ann": {"budget": 10}}})
    jobs = [ann("b", estimate=300), ann("e", estimate=180), ann("f", estimate=178)]
    assert step(again, 62, ev.JobSubmitted(0, jobs[0]), ev.JobStarted(0, "b")) == ""
    # 1 of a, 5 of b, 1/60 of c are gone: 3.98 are left.
    assert arrive(again, 63, ann("e", estimate=240)) == ""
    assert arrive(again, 64, ann("f", estimate=238)) == "f"


def test_a_budget_has_room_again_as_usage_is_forgotten():
    s, _ = scheduler(of={"account": {"x": {"budget": 10}}}, half_life=100, accounts={"x": None})
    assert arrive(s, 0, ann("a", estimate=600)) == "a"
    assert step(s, 600, ev.JobEnded(600, "a")) == ""
    assert arrive(s, 601, ann("b", estimate=540)) == ""
    due = s.next_wakeup()
    assert due is not None and 601 < due < 800
    assert step(s, due) == "b"


def test_minutes_count_whatever_a_jobs_size_and_survive_a_restart():
    """GrpWall."""
    of = {"account": {"x": {"wall_minutes": 10}}}
    s, _ = scheduler(of=of, accounts={"x": None})
    assert arrive(s, 0, ann("a", processors=4, estimate=300), ann("b", estimate=240)) == "ab"
    assert arrive(s, 1, ann("c", estimate=120)) == ""
    assert "minutes of running jobs, past and still to come, of account 'x'" in str(
        explain(s, "c", plain_clock)
    )
    # After a minute of five a gives four back.
    assert step(s, 60, ev.JobEnded(60, "a")) == "c"
    assert step(s, 180, ev.JobEnded(180, "c")) == step(s, 240, ev.JobEnded(240, "b")) == ""
    saved = json.loads(json.dumps(s.checkpoint()))
    again, _ = scheduler(saved, of=of, accounts={"x": None})
    # 1 of a, 4 of b, 2 of c are gone.
    assert arrive(again, 300, ann("d", estimate=181)) == ""
    assert arrive(again, 301, ann("e", estimate=180)) == "e"


@pytest.mark.parametrize("measure", ["budget", "wall_minutes"])
def test_what_was_used_before_a_job_changed_counts_once(measure: str):
    """Over a restart, and where limits become others, too."""
    of = {"user": {"ann": {measure: 100}}}

    def used(plugin: Limits, now: float) -> float:
        (holder,) = plugin._holders.values()
        return holder.used(measure, now)

    s, limits = scheduler(of=of)
    assert arrive(s, 0, ann("a", estimate=3600)) == "a"
    assert used(limits, 600) == pytest.approx(60)
    step(s, 600, ev.JobChanged(600, ann("a", estimate=1800)))
    assert used(limits, 600) == pytest.approx(30)
    step(s, 900, ev.JobChanged(900, ann("a", estimate=2400)))
    assert used(limits, 900) == used(limits, 1000) == pytest.approx(40)
    saved = json.loads(json.dumps(s.checkpoint()))
    step(s, 1200, ev.JobEnded(1200, "a"))
    assert used(limits, 1200) == pytest.approx(20)
    again, other = scheduler(saved, of=of)
    step(again, 1000, ev.JobSubmitted(0, ann("a", estimate=2400)), ev.JobStarted(0, "a"))
    assert used(other, 1000) == pytest.approx(40)
    step(again, 1200, ev.JobEnded(1200, "a"))
    assert used(other, 1200) == pytest.approx(20)
    # It ran anew while nobody looked: what it had used until it was saved stays.
    anew, third = scheduler(saved, of=of)
    step(anew, 1000, ev.JobSubmitted(0, ann("a", estimate=2400)), ev.JobStarted(960, "a"))
    assert used(third, 1000) == pytest.approx(15 + 40)


def test_a_changed_job_counts_once_where_limits_become_others():
    s, limits = scheduler()
    step(s, 0, told(account={"x": {"budget": 120}}))
    assert arrive(s, 0, ann("a", "y", estimate=3600)) == "a"
    step(s, 600, ev.JobChanged(600, ann("a", "y", estimate=1800)))
    step(s, 900, told(900, account={"x": {"budget": 200}}))
    (holder,) = limits._holders.values()
    # The policy's 50 were seeded when it was known first.
    assert holder.used("budget", 900) == pytest.approx(50 + 30)


def test_what_was_saved_before_there_were_minutes_is_a_budget():
    saved = {"limits": {"at": 0.0, "budgets": [[["user"], ["ann"], 9.0, {}]]}}
    s, _ = scheduler(saved, of={"user": {"ann": {"budget": 10, "wall_minutes": 10}}})
    assert arrive(s, 0, ann("a", estimate=61)) == ""
    assert arrive(s, 1, ann("b", estimate=60)) == "b"


def test_a_budget_begins_with_what_the_batch_system_says_was_used():
    s, _ = scheduler()
    running = [ev.JobSubmitted(-60, ann("r", processors=2, estimate=60)), ev.JobStarted(-60, "r")]
    limits = {"account": {"x": {"budget": 55}}, "association": {"x:ann": {"budget": 33}}}
    step(s, 0, *running, told(**limits))
    step(s, 0, ev.JobEnded(0, "r"))
    # 50 and 30 were used, two of them by the job that ran then.
    assert arrive(s, 1, ann("a", estimate=240)) == ""
    assert arrive(s, 2, ann("b", estimate=180)) == "b"
    assert arrive(s, 3, described("c", user="bob", account="y", estimate=180)) == ""
    assert arrive(s, 4, described("d", user="bob", account="y", estimate=119)) == "d"


@pytest.mark.parametrize(
    ("kind", "name", "measure"),
    [
        ("account", "x", "wall_minutes"), ("association", "x:ann", "wall_minutes"),
        ("qos", "high", "wall_minutes"), ("qos", "high", "budget"), ("all", "*", "wall_minutes"),
    ],
)  # fmt: skip
def test_minutes_begin_with_what_the_batch_system_says_was_used(kind: str, name: str, measure: str):
    s, _ = scheduler()
    running = [ev.JobSubmitted(-60, ann("r", qos="high", estimate=60)), ev.JobStarted(-60, "r")]
    policy = SitePolicy(
        ACCOUNTS, {kind: {name: {measure: 100}}}, used={kind: {name: {measure: 97.0}}}
    )  # fmt: skip
    step(s, 0, *running, ev.SitePolicyChanged(0, policy))
    step(s, 0, ev.JobEnded(0, "r"))
    # 97 were used, one of them by the job that ran then.
    assert arrive(s, 1, ann("a", qos="high", estimate=181)) == ""
    assert arrive(s, 2, ann("b", qos="high", estimate=180)) == "b"


# ------------------------------------------------------------------ minutes that count otherwise


def factored(now=0.0, safe=(), factor=2.0, **limits):
    policy = SitePolicy(ACCOUNTS, limits, qos_billing={"dear": factor, "free": 0.0}, qos_safe=safe)
    return ev.SitePolicyChanged(now, policy)


def test_minutes_of_jobs_that_run_count_as_their_qos_says():
    """As Slurm 22.05: what runs counts twice (980 of 500 in use after a start of 490), what is asked for
    once, or twice with the flag UsageFactorSafe."""
    s, _ = scheduler()
    step(s, 0, factored(account={"x": {"processor_minutes": 100}}))
    assert arrive(s, 0, ann("a", qos="dear", estimate=90 * 60)) == "a"
    assert arrive(s, 0, ann("b", estimate=60)) == ""
    assert explain(s, "b", plain_clock)[-1] == (
        "It cannot start: the limit of 100 processor-minutes that are left to run of account 'x' is reached: "
        "180 in use, it would add 1."
    )
    # 99 are left when 49.5 minutes are.
    assert step(s, 40 * 60) == ""
    assert step(s, 40.5 * 60) == "b"
    safe, _ = scheduler()
    step(safe, 0, factored(safe=("dear",), account={"x": {"processor_minutes": 100}}))
    assert arrive(safe, 0, ann("a", qos="dear", estimate=51 * 60), ann("b", qos="free", estimate=6000)) == "b"
    assert arrive(safe, 0, ann("c", qos="dear", estimate=50 * 60)) == "c"


def test_budgets_and_wall_minutes_are_used_up_as_their_qos_says():
    s, _ = scheduler()
    limits = {"account": {"x": {"budget": 200}}, "association": {"y:bob": {"wall_minutes": 30}}}
    step(s, 0, factored(**limits))
    bob = described("w", 2, 600, user="bob", account="y", qos="dear")
    anns = ann("a", qos="dear", estimate=1200), ann("f", qos="free", estimate=6000)
    assert arrive(s, 0, *anns, bob) == "afw"
    # Of x's 50 were used before; 10 of a and 20 of w on two processors, all twice, and nothing of f.
    step(s, 600, ev.JobEnded(600, "a"), ev.JobEnded(600, "w"), ev.JobEnded(600, "f"))
    assert arrive(s, 600, described("v", 1, 660, user="bob", account="y"), ann("z", estimate=5700)) == ""
    assert "20 in use, it would add 11" in str(explain(s, "v", plain_clock))
    assert "110 in use, it would add 95" in str(explain(s, "z", plain_clock))


def test_a_factor_that_changes_counts_from_then_on():
    s, limits = scheduler()
    step(s, 0, factored(association={"x:ann": {"budget": 1000}}))
    assert arrive(s, 0, ann("a", qos="dear", estimate=6000)) == "a"
    step(s, 600, factored(600, factor=0.5, association={"x:ann": {"budget": 1000}}))
    saved = json.loads(json.dumps(limits.checkpoint()))
    [holder] = limits._holders.values()
    # 30 before, ten minutes twice, then ten minutes that count half and 80 to come.
    assert holder.used("budget", 1200) == pytest.approx(30 + 20 + 5 + 40)
    assert saved["budgets"][0][2] == pytest.approx(30 + 20)
