"""Fair tree, classic fair share and windows: who stands how, by tables and against a plain reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fair_tree_reference import account_by_account, by_hand, tree_and_factors
from hypothesis import given, settings
from hypothesis import strategies as st

from headway_plugins.accounts.tree import Entry, Tree, level_fair_share
from headway_plugins.priority.classic import Classic, ClassicOptions, effective_usage
from headway_plugins.priority.fair_tree import FairTree, FairTreeOptions, ranked
from headway_plugins.priority.fair_tree_as_slurm import ranked_as_slurm
from headway_plugins.priority.windows import Windows, WindowsOptions


def spent(tree: Tree, **used: float) -> np.ndarray:
    """Own usage a node; ``used``: by ``account_user``."""
    own = np.zeros(len(tree))
    for key, value in used.items():
        node = tree.association(*key.split("_"))
        assert node is not None
        own[node] = value
    return own


def fair_tree(tree: Tree, own: np.ndarray) -> np.ndarray:
    shape = tree.shape()
    return ranked(shape, level_fair_share(shape, shape.sums(own)))


def factors(tree: Tree, values: np.ndarray) -> dict[str, float]:
    return {
        f"{entry.account}_{entry.user}": float(values[node])
        for node, entry in enumerate(tree.entries)
        if entry.user
    }


#: Two accounts of three users, of whom ann is in both.
TWO = [
    Entry("a", shares=3), Entry("b", shares=1),
    Entry("a", "ann", "a"), Entry("a", "bob", "a", shares=2), Entry("b", "ann", "b"), Entry("b", "cem", "b"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        # Nobody has used anything: equal accounts are one, and all users in it are equal.
        ({}, {"a_ann": 1, "a_bob": 1, "b_ann": 1, "b_cem": 1}),
        # Account a is above its share, so all of b come first, whatever they have used in it.
        ({"a_ann": 90, "b_ann": 10}, {"b_cem": 1, "b_ann": 0.75, "a_bob": 0.5, "a_ann": 0.25}),
        # a has used 60 % with 75 % of the shares. ann has used half of it with a third of its shares.
        (
            {"a_ann": 30, "a_bob": 30, "b_ann": 20, "b_cem": 20},
            {"a_bob": 1, "a_ann": 0.75, "b_ann": 0.5, "b_cem": 0.5},
        ),
    ],
)
def test_fair_tree_ranks_accounts_before_users(used, expected):
    tree = Tree(TWO)
    assert factors(tree, fair_tree(tree, spent(tree, **used))) == expected


def test_equal_users_have_one_rank_and_the_next_is_behind_all_of_them():
    # As sshare showed it for an account of 14 at EPFL: 11 idle users at .29, then 76/300.
    tree = Tree([Entry("x"), *(Entry("x", f"u{n}", "x") for n in range(4))])
    found = factors(tree, fair_tree(tree, spent(tree, x_u3=5)))
    assert found == {"x_u0": 1, "x_u1": 1, "x_u2": 1, "x_u3": 0.25}


def test_the_first_in_an_account_that_is_equal_to_a_user_have_its_rank():
    # As sshare shows root in the root account and root in an account, both idle.
    users = [Entry("root", "root", "root"), Entry("test", "root", "test"), Entry("test", "u", "test")]
    tree = Tree([Entry("test"), Entry("late"), *users, Entry("late", "v", "late")])
    found = factors(tree, fair_tree(tree, spent(tree, late_v=5)))
    assert found == {"root_root": 1, "test_root": 1, "test_u": 1, "late_v": 0.25}


def test_without_shares_there_is_no_claim():
    tree = Tree([Entry("x"), Entry("x", "none", "x", shares=0), Entry("x", "some", "x", shares=1)])
    assert factors(tree, fair_tree(tree, spent(tree, x_some=99))) == {"x_some": 1, "x_none": 0.5}


@st.composite
def trees(draw):
    """A small tree with many ties: accounts in accounts, users in several, and what they used."""
    names = [f"a{n}" for n in range(draw(st.integers(1, 5)))]
    entries = []
    for at, name in enumerate(names):
        parent = draw(st.sampled_from(["root", *names[:at]]))
        entries.append(Entry(name, parent=parent, shares=draw(st.integers(0, 2))))
    used = {}
    for account in ["root", *names]:
        for user in draw(st.sets(st.sampled_from("uvwx"), max_size=4)):
            entries.append(Entry(account, user, account, shares=draw(st.integers(0, 2))))
            used[account, user] = draw(st.integers(0, 2))
    tree = Tree(entries)
    return tree, {tree.association(*key): float(value) for key, value in used.items()}


@st.composite
def level_trees(draw):
    """A small tree of accounts in accounts whose users are all in the lowest ones."""
    small = st.integers(0, 2)
    tops = [Entry(f"t{n}", shares=draw(small)) for n in range(draw(st.integers(1, 3)))]
    entries, used = list(tops), {}
    for top in tops:
        for n in range(draw(small)):
            account = f"{top.account}{n}"
            entries.append(Entry(account, parent=top.account, shares=draw(small)))
            for user in draw(st.sets(st.sampled_from("uvw"), max_size=3)):
                entries.append(Entry(account, user, account, shares=draw(small)))
                used[account, user] = draw(small)
    tree = Tree(entries)
    return tree, {tree.association(*key): float(value) for key, value in used.items()}


@settings(max_examples=60)
@given(st.one_of(trees(), level_trees()))
def test_fair_tree_is_what_one_gets_by_hand(case):
    tree, used = case
    own = np.zeros(len(tree))
    own[list(used)] = list(used.values())
    found = fair_tree(tree, own)
    assert {node: found[node] for node in used} == pytest.approx(by_hand(tree, used))


#: What Slurm 22.05.8 and 24.11.5 printed of random trees with many ties: idle sites, and after some jobs.
RECORDED = sorted((Path(__file__).parent / "fixtures" / "sshare_ties").glob("*.txt"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_with_ties_as_slurm_the_factors_are_those_that_slurm_printed(path):
    tree, used, printed = tree_and_factors(path.read_text().splitlines())
    plugin = FairTree(FairTreeOptions(ties="as-slurm"))
    plugin.tree = tree
    own = np.zeros(len(tree))
    own[list(used)] = list(used.values())
    found = plugin.judge(tree.shape().sums(own))
    assert {node: float(found[node]) for node in printed} == pytest.approx(printed, abs=6e-7)


@settings(max_examples=60)
@given(st.one_of(trees(), level_trees()))
def test_ties_as_slurm_are_ranked_account_by_account(case):
    tree, used = case
    own = np.zeros(len(tree))
    own[list(used)] = list(used.values())
    shape = tree.shape()
    found = ranked_as_slurm(shape, level_fair_share(shape, shape.sums(own)))
    assert {node: found[node] for node in used} == pytest.approx(account_by_account(tree, used))


@pytest.mark.parametrize(
    ("ties", "expected"),
    [
        ("as-documented", {"a_u": 1, "b_u": 1, "a_none": 0.5, "b_none": 0.5}),
        # The first user of b has the rank of the last user of a, though a's last user has no shares.
        ("as-slurm", {"a_u": 1, "a_none": 0.75, "b_u": 0.75, "b_none": 0.25}),
    ],
)
def test_accounts_that_tie_are_ranked_as_the_option_says(ties, expected):
    users = [
        Entry(name, user, name, shares=shares) for name in "ab" for user, shares in (("u", 1), ("none", 0))
    ]
    plugin = FairTree(FairTreeOptions(ties=ties))
    plugin.tree = tree = Tree([Entry("b"), Entry("a"), *users])
    assert factors(tree, plugin.judge(np.zeros(len(tree)))) == expected


def test_classic_is_half_for_who_has_used_exactly_the_share():
    tree = Tree([Entry("root", "u", shares=3), Entry("root", "v", shares=1)])
    plugin = Classic(ClassicOptions())
    plugin.tree = tree
    total = tree.shape().sums(spent(tree, root_u=75, root_v=25))
    assert factors(tree, plugin.judge(total)) == {"root_u": 0.5, "root_v": 0.5}
    unused = tree.shape().sums(spent(tree))
    assert factors(tree, plugin.judge(unused)) == {"root_u": 1, "root_v": 1}
    plugin.options = ClassicOptions(dampening=2)
    assert factors(tree, plugin.judge(total))["root_u"] == pytest.approx(0.5**0.5)


def test_who_is_in_an_account_answers_for_what_it_has_used():
    tree = Tree(TWO)
    shape = tree.shape()
    effective = effective_usage(shape, shape.sums(spent(tree, a_bob=60, b_ann=40)))
    # a's 60 % + nothing of its own: a third of 60 %.
    assert factors(tree, effective) == pytest.approx({"a_ann": 0.2, "a_bob": 0.6, "b_ann": 0.4, "b_cem": 0.2})


@pytest.mark.parametrize(
    ("bound", "used", "expected"),
    [
        ("target", 50, 0.5 + (30 - 50) / 200), ("target", 10, 0.5 + (30 - 10) / 200),
        ("ceiling", 50, 0.4), ("ceiling", 10, 0.5),
        ("floor", 50, 0.5), ("floor", 10, 0.6),
        ("cap", 50, 0.0), ("cap", 10, 0.5),
    ],
)  # fmt: skip
def test_windows_hold_use_against_targets(bound, used, expected):
    users = [Entry("root", "u", target=30, bound=bound), Entry("root", "v", target=70, bound="floor")]
    plugin = Windows(WindowsOptions())
    plugin.tree = tree = Tree(users)
    total = tree.shape().sums(spent(tree, root_u=used, root_v=100 - used))
    assert factors(tree, plugin.judge(total))["root_u"] == pytest.approx(expected)
    assert factors(tree, plugin.judge(np.zeros(len(tree))))["root_u"] == 0.5


def test_a_fair_tree_without_options_takes_accounts_as_they_come():
    assert len(FairTree().tree) == 1


#: Of account a ann has no shares of her own; account c has none, so its users are as good as its siblings.
JOINT = [
    Entry("a"), Entry("b"), Entry("c", parent="b", shares=None), Entry("a", "ann", "a", shares=None),
    Entry("a", "bob", "a"), Entry("b", "cem", "b"), Entry("c", "dora", "c"),
]  # fmt: skip


def test_who_has_no_shares_of_their_own_stands_as_the_account():
    tree = Tree(JOINT)
    shape = tree.shape()
    own = spent(tree, a_ann=60, a_bob=10, b_cem=5, c_dora=25)
    assert factors(tree, shape.part) == {"a_ann": 0, "a_bob": 1, "b_cem": 0.5, "c_dora": 0.5}
    assert shape.sums(own)[tree.accounts["b"]] == 30
    assert factors(tree, fair_tree(tree, own)) == {"b_cem": 1, "c_dora": 0.75, "a_ann": 0.5, "a_bob": 0.25}
    plugin = Classic(ClassicOptions(accounts={"a": {"users": {"ann": {"shares": "parent"}, "bob": 1}}}))
    node = plugin.tree.association("a", "ann")
    factor = plugin.judge(np.array([8.0, 8.0, 6.0, 2.0]))
    assert node is not None and factor[node] == factor[plugin.tree.accounts["a"]]
