"""Accounts, usage and weights as the batch system tells them, and as it changes them while jobs wait."""

from __future__ import annotations

import json

import msgspec
import pytest
from building import described, plugged

from headway import events as ev
from headway.emulation import emulate
from headway.errors import UserError
from headway.model import Association, ClusterDescription, SitePolicy
from headway.plugins import Catalogue, PluginConfig
from headway.scheduler import Scheduler
from headway_plugins.policies.easy import Easy
from headway_plugins.priority.fair_tree import FairTree, FairTreeOptions
from headway_plugins.priority.multifactor import Multifactor, MultifactorOptions

ACCOUNTS = (
    Association("x", shares=3), Association("y"), Association("x", "ann", usage=500.0),
    Association("x", "bob", shares=None), Association("y", "cem", usage=100.0),
)  # fmt: skip
POLICY = SitePolicy(
    associations=ACCOUNTS, half_life=0.0, qos={"low": 1, "high": 9}, qos_billing={"low": 0.5, "high": 1},
    weights={"qos": 1000, "fairshare": 10, "resource:processors": 0}, max_age=60.0, period=30.0,
)  # fmt: skip


def scheduler(saved=None, fair=None, **options):
    fair = FairTree(FairTreeOptions(accounts="from-slurm", **(fair or {})))
    multi = Multifactor(MultifactorOptions(weights="from-slurm", **options))
    return Scheduler(ClusterDescription.flat(8), plugged(fair, multi, Easy()), saved=saved), fair, multi


def used(plugin, now, account, user):
    return plugin.standing(now).usage[plugin.tree.association(account, user)]


def begun(**more):
    """A run whose cluster has a job of ann's on all processors, for 20 s already."""
    s, fair, multi = scheduler(**more)
    s.step(120.0, [
        ev.JobSubmitted(90, described("r", 8, 1000, user="ann", account="x", qos="low")),
        ev.JobStarted(100, "r"), ev.SitePolicyChanged(120, POLICY),
    ])  # fmt: skip
    assert s.problems == []
    return s, fair, multi


def test_both_ask_for_the_policy():
    _, fair, multi = scheduler()
    assert fair.traits.requires == multi.traits.requires == {"policy"}
    assert not FairTree(FairTreeOptions()).traits.requires and not Multifactor().traits.requires


def test_usage_is_what_was_told_and_running_jobs_are_not_counted_twice():
    s, fair, _ = begun()
    # 20 s on 8 processors, which count half.
    assert used(fair, 120, "x", "ann") == 500
    assert used(fair, 130, "x", "ann") == 540
    assert used(fair, 120, "y", "cem") == 100
    assert "usage of 5 accounts and users" in " ".join(s.notices)
    s.step(140, [ev.JobEnded(140, "r")])
    assert used(fair, 1e6, "x", "ann") == 580


def test_the_half_life_is_the_options_if_they_name_one():
    _, fair, _ = begun(fair={"half_life": 100})
    assert used(fair, 220, "y", "cem") == pytest.approx(50)


def test_a_restart_keeps_its_own_count():
    s, fair, _ = begun()
    saved = json.loads(json.dumps(s.checkpoint()))
    again, other, _ = scheduler(saved)
    again.step(150, [
        ev.JobSubmitted(90, described("r", 8, 1000, user="ann", account="x", qos="low")),
        ev.JobStarted(100, "r"), ev.SitePolicyChanged(150, POLICY),
    ])  # fmt: skip
    for account, user in (("x", "ann"), ("y", "cem")):
        assert used(other, 200, account, user) == used(fair, 200, account, user)


def queue(s):
    return "".join(job.id for job in s.state.domains["pool"].queue)


def test_the_order_follows_the_weights_that_are_told():
    s, _, multi = begun()
    s.step(121, [
        ev.JobSubmitted(121, described("a", user="ann", account="x", qos="low")),
        ev.JobSubmitted(121, described("b", user="cem", account="y", qos="high")),
    ])  # fmt: skip
    assert queue(s) == "ba"
    assert multi.weights == {"qos": 1000, "fairshare": 10}
    # The QOS vanishes while jobs wait in it, and is worth nothing.
    gone = SitePolicy(associations=ACCOUNTS, qos={"low": 1}, weights={"qos": 1000}, period=30.0)
    s.step(122, [ev.SitePolicyChanged(122, gone)])
    assert queue(s) == "ab"
    assert s.problems == []


def test_options_stand_where_they_say_more():
    s, _, _ = begun(qos={"low": 5})
    s.step(121, [
        ev.JobSubmitted(121, described("a", user="ann", account="x", qos="high")),
        ev.JobSubmitted(121, described("b", user="cem", account="y", qos="low")),
    ])  # fmt: skip
    assert queue(s) == "ba"


def test_an_account_that_is_deleted_while_its_jobs_wait_keeps_what_it_used():
    s, fair, _ = begun()
    s.step(121, [ev.JobSubmitted(121, described("a", user="cem", account="y"))])
    s.notices.clear()
    left = tuple(one for one in ACCOUNTS if one.account == "x")
    s.step(122, [ev.SitePolicyChanged(122, SitePolicy(associations=left, weights=POLICY.weights))])
    assert used(fair, 130, "y", "cem") == 100
    assert s.notices == [
        "no longer in the batch system's accounts: cem in y; they keep what they have used, and get 1 shares"
    ]
    # A running job's association goes as well.
    s.step(123, [ev.SitePolicyChanged(123, SitePolicy(weights=POLICY.weights))])
    assert used(fair, 130, "x", "ann") == 540
    assert s.problems == []


def test_a_qos_that_bills_otherwise_bills_running_jobs_so_from_then_on():
    s, fair, _ = begun()
    assert used(fair, 130, "x", "ann") == 540
    dearer = msgspec.structs.replace(POLICY, qos_billing={"low": 2, "high": 1})
    s.step(130, [ev.SitePolicyChanged(130, dearer)])
    assert used(fair, 140, "x", "ann") == 540 + 10 * 8 * 2
    s.step(141, [ev.SitePolicyChanged(140, msgspec.structs.replace(POLICY, qos_billing={"low": 0}))])
    s.step(150, [ev.SitePolicyChanged(150, dearer)])
    s.step(155, [ev.JobEnded(155, "r")])
    assert used(fair, 200, "x", "ann") == 540 + 10 * 8 * 2 + 5 * 8 * 2
    assert s.problems == []


def test_a_job_that_went_back_while_nobody_looked_is_billed_until_then_alone():
    s, fair, _ = begun()
    s.step(130, [ev.JobHeld(130, "r")])
    saved = json.loads(json.dumps(s.checkpoint()))
    before = used(fair, saved["fairtree"]["seen"], "x", "ann")
    again, other, _ = scheduler(saved)
    waits = described("r", 8, 1000, user="ann", account="x", qos="low", held=True)
    dearer = msgspec.structs.replace(POLICY, qos_billing={"low": 2, "high": 1})
    again.step(1000, [ev.JobSubmitted(90, waits), ev.SitePolicyChanged(1000, dearer)])
    assert used(other, 1000, "x", "ann") == before
    assert again.problems == []


def test_accounts_that_make_no_tree_change_nothing():
    s, fair, _ = begun()
    circle = (Association("x", parent="y"), Association("y", parent="x"))
    s.step(125, [ev.SitePolicyChanged(125, SitePolicy(associations=circle, weights=POLICY.weights))])
    assert used(fair, 130, "x", "ann") == 540
    assert "accounts in a circle: 'x' below 'y' below 'x'" in s.problems[0].message


def test_weights_that_are_missing_or_unknown():
    s, _, multi = begun()
    s.notices.clear()
    s.step(125, [ev.SitePolicyChanged(125, SitePolicy(ACCOUNTS, weights={"age": 5, "luck": 7}))])
    assert multi.weights == {"age": 5}
    assert s.notices == [
        "the batch system weighs 'luck', and no enabled plugin gives this factor; it is left out"
    ]


def test_weights_that_are_all_0_are_told_once():
    s, _, multi = begun()
    s.notices.clear()
    zero = {"age": 0, "qos": 0}
    for now, qos in enumerate(({}, {"low": 1}, {"low": 2}), 126):
        s.step(now, [ev.SitePolicyChanged(now, SitePolicy(ACCOUNTS, qos=qos, weights=zero))])
        assert multi.weights == {"age": 1}
    assert s.notices == [
        "no factor has a weight in the batch system's priorities, all are 0; jobs are served by age: set "
        "weights there, or in the option `weights`"
    ]
    # They come, and go again.
    s.step(130, [ev.SitePolicyChanged(130, SitePolicy(ACCOUNTS, weights={"qos": 2}))])
    assert multi.weights == {"qos": 2}
    s.step(131, [ev.SitePolicyChanged(131, SitePolicy(ACCOUNTS, weights=zero))])
    assert len(s.notices) == 2
    assert s.problems == []


def test_an_emulated_cluster_has_no_policy_to_read():
    configs = [PluginConfig("fair-tree", {"accounts": "from-slurm"}), PluginConfig("easy")]
    with pytest.raises(UserError, match="from-slurm: expected a single Slurm cluster"):
        emulate(ClusterDescription.flat(4), [], configs, Catalogue(), label="x")


def test_everybody_is_judged_anew_as_often_as_the_batch_system_does():
    s, fair, _ = begun()
    s.step(121, [ev.JobSubmitted(121, described("a", user="ann", account="x"))])
    job = [s.state.jobs["a"]]
    first = s.state.factors["fairshare"](job, s.state)[0]
    fair.ledger.grant(fair.tree.association("y", "cem"), 1e6, 121)
    s.state.now = 140.0
    assert s.state.factors["fairshare"](job, s.state)[0] == first
    s.state.now = 151.5
    assert s.state.factors["fairshare"](job, s.state)[0] > first
