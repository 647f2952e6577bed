"""What users deserve by a site's shares, on cases worked out by hand, and its invariants."""

from __future__ import annotations

import json

import numpy as np
import pytest
from building import traced
from hypothesis import given
from hypothesis import strategies as st

from headway import cli
from headway.emulation import emulate
from headway.errors import UserError
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway_plugins.accounts.tree import Entry, Tree
from headway_plugins.fairness.shares import against_shares, divided, parts_of_whole, tree_of


def brute(amount, demand, weights):
    """The same by steps: each round gives to all who are not full, until nobody is filled in a round."""
    given = np.zeros(len(demand))
    open_ = [at for at in range(len(demand)) if demand[at] > 0 and weights[at] > 0]
    left = amount
    while open_ and left > 1e-12:
        total = sum(weights[at] for at in open_)
        step = min(left / total, min((demand[at] - given[at]) / weights[at] for at in open_))
        for at in open_:
            given[at] += step * weights[at]
        left -= step * total
        open_ = [at for at in open_ if demand[at] - given[at] > 1e-12]
    rest = [at for at in range(len(demand)) if weights[at] == 0]
    wanted = sum(demand[at] for at in rest)
    for at in rest:
        given[at] = demand[at] * min(1.0, left / wanted) if wanted else 0.0
    return given


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), min_size=1, max_size=6), st.floats(0, 1))
def test_processors_are_divided_by_shares_and_demands(users, full):
    demand = np.array([float(d) for d, _ in users])
    weights = np.array([float(w) for _, w in users])
    amount = full * demand.sum()
    found = divided(np.array([amount]), demand[None, :], weights)[0]
    assert found == pytest.approx(brute(amount, demand, weights), abs=1e-9)
    assert found.sum() == pytest.approx(amount)


def test_parts_of_the_whole():
    tree = Tree([
        Entry("physics", shares=3), Entry("theory", parent="physics", shares=1),
        Entry("physics", "ann", "physics", 3), Entry("theory", "bob", "theory"),
        Entry("chemistry", shares=1), Entry("chemistry", "cem", "chemistry", None),
        Entry("chemistry", "dan", "chemistry", None),
    ])  # fmt: skip
    parts = parts_of_whole(tree.shape())
    by = {(one.account, one.user): part for one, part in zip(tree.entries, parts, strict=True)}
    assert by["physics", ""] == 0.75 and by["theory", ""] == 0.1875
    assert by["physics", "ann"] == pytest.approx(0.5625) and by["theory", "bob"] == pytest.approx(0.1875)
    assert by["chemistry", "cem"] == by["chemistry", "dan"] == 0.125


def ran(jobs, processors=4, policy="easy"):
    found = [
        traced(str(at), size, time, submit, user=user, account=account)
        for at, (user, account, submit, size, time) in enumerate(jobs)
    ]
    return emulate(
        ClusterDescription.flat(processors), found, [PluginConfig(policy)], Catalogue(), label=policy
    )


SITE = [Entry("a", shares=3), Entry("a", "ann", "a"), Entry("b", shares=1), Entry("b", "bob", "b")]


def test_who_came_first_is_preferred_to_who_has_shares():
    # bob's four hours come first; ann has three of four processors to claim meanwhile, and after it.
    result = ran([("bob", "b", 0, 4, 100), ("ann", "a", 0, 4, 100)])
    ann, bob = against_shares(result, Tree(SITE))
    assert (ann.user, ann.share, ann.deserved, ann.got) == ("ann", 0.75, 700.0, 400.0)
    # In the second hundred seconds bob has nothing left to claim.
    assert (bob.user, bob.account, bob.deserved, bob.got) == ("bob", "b", 100.0, 400.0)


def test_nobody_deserves_more_than_he_asks_for():
    found = against_shares(ran([("ann", "a", 0, 1, 100), ("bob", "b", 0, 3, 100)]), Tree(SITE))
    assert [(one.deserved, one.got) for one in found] == [(100.0, 100.0), (300.0, 300.0)]


def test_strangers_and_nobody():
    found = against_shares(ran([("eve", "", 0, 4, 10), ("", "", 0, 4, 10)]), Tree(SITE))
    assert {one.user: one.share for one in found} == {"eve": pytest.approx(1 / 6), "": pytest.approx(1 / 6)}
    assert sum(one.deserved - one.got for one in found) == pytest.approx(0)


JOB = st.tuples(
    st.sampled_from(["ann", "bob", "eve"]), st.sampled_from(["a", "b"]), st.integers(0, 30),
    st.integers(1, 4), st.integers(1, 20),
)  # fmt: skip


@given(st.lists(JOB, min_size=1, max_size=12), st.sampled_from(["fcfs", "easy", "conservative"]))
def test_what_is_used_is_what_is_divided(jobs, policy):
    found = against_shares(ran(sorted(jobs, key=lambda job: job[2]), policy=policy), Tree(SITE))
    assert sum(one.deserved for one in found) == pytest.approx(sum(one.got for one in found))
    assert sum(one.jobs for one in found) == len(jobs)
    assert all(one.deserved >= 0 for one in found)


def test_a_dry_run_with_shares_tells_who_got_less(tmp_path, capsys):
    (tmp_path / "t.swf").write_text(
        "; MaxProcs: 4\n1 0 -1 100 4 -1 -1 4 100 -1 1 2 2 -1 -1 -1 -1 -1\n"
        "2 0 -1 100 4 -1 -1 4 100 -1 1 1 1 -1 -1 -1 -1 -1\n"
    )
    site = {"1": {"shares": 3, "users": ["1"]}, "2": {"shares": 1, "users": ["2"]}}
    (tmp_path / "c.yaml").write_text(json.dumps({"plugins": [{"fair-tree": {"accounts": site}}, "easy"]}))
    cli.main(
        ["dry-run", "-c", str(tmp_path / "c.yaml"), "--trace", str(tmp_path / "t.swf"), "--with", "fairness",
         "--out", str(tmp_path)]
    )  # fmt: skip
    figures = json.loads((tmp_path / "metrics.json").read_text())["extra"]["fairness"]
    assert figures["by_share"][0] == {
        "account": "1", "user": "1", "share": 0.75, "jobs": 1, "deserved": 700, "got": 400,
    }  # fmt: skip
    report = (tmp_path / "report.html").read_text()
    assert "Users with the largest deficit by the site" in report and "<td>75.0 %</td>" in report


def test_a_tree_that_only_the_batch_system_knows():
    result = ran([("ann", "a", 0, 1, 100)])
    result.plugins = [("fair-tree", {"accounts": "from-slurm"})]
    with pytest.raises(UserError, match="plugin 'fair-tree': accounts: a run in emulation does not know"):
        tree_of(result)
    result.plugins = [("multifactor", {"weights": {}})]
    assert tree_of(result) is None
