"""Trees of accounts as sites write them down, and what is said about wrong ones."""

from __future__ import annotations

import re

import pytest

from headway.errors import UserError
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway_plugins.accounts.tree import Tree
from headway_plugins.accounts.tree_files import read_tree

YAML = """
physics:
  shares: 40
  users: {ann: 1, bob: {shares: 2, default: true}}
  accounts:
    theory: {shares: 10, priority: 5, users: [carl, ann]}
chemistry: 60
root: {users: {root: 1}}
"""
DUMP = r"""
# To edit this file start with a cluster line for the new cluster
Cluster - 'test':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'chemistry':Description='chemistry':Organization='root':Fairshare=60
Account - 'physics':Description='physics: all':Organization='root':Fairshare=40:GrpTRES=cpu=9
Parent - 'physics'
User - 'ann':DefaultAccount='theory':Fairshare=1
User - 'bob':DefaultAccount='physics':Fairshare=2
Account - 'theory':Description='theory':Organization='physics':Fairshare=10:Priority=5
Parent - 'theory'
User - 'ann':DefaultAccount='theory':Fairshare=1
User - 'carl':DefaultAccount='theory':Fairshare=1
"""


def described(tree: Tree) -> set[tuple]:
    parents = tree.shape().parent
    return {
        (entry.account, entry.user, tree.entries[parents[node]].account, entry.shares, entry.priority)
        for node, entry in enumerate(tree.entries)
    }


def test_yaml_and_a_dump_of_slurms_accounts_say_the_same():
    ours, slurms = Tree(read_tree(YAML, "a.yaml")), Tree(read_tree(DUMP, "dump"))
    assert described(ours) == described(slurms)
    assert ("theory", "carl", "theory", 1, 0) in described(ours)
    assert ("theory", "", "physics", 10, 5) in described(ours)
    # A job that names no account belongs to its user's default one.
    assert slurms.entries[slurms.node("", "", "ann")[0]].account == "theory"
    assert ours.entries[ours.node("", "", "ann")[0]].account == "physics"
    assert ours.entries[ours.node("", "theory", "ann")[0]].account == "theory"


def test_who_has_no_priority_has_that_of_the_account_above():
    tree = Tree(read_tree(YAML, "a.yaml"))
    found = {(e.account, e.user): p for e, p in zip(tree.entries, tree.priorities(), strict=True)}
    assert found["theory", "carl"] == 5
    assert found["physics", "ann"] == 0


def test_the_tree_is_walked_from_the_root_down_users_first():
    tree = Tree(read_tree(YAML, "a.yaml"))
    walked = [(d, tree.entries[n].account, tree.entries[n].user) for n, d in tree.walk()]
    assert walked == [
        (0, "root", ""), (1, "root", "root"), (1, "chemistry", ""), (1, "physics", ""), (2, "physics", "ann"),
        (2, "physics", "bob"), (2, "theory", ""), (3, "theory", "ann"), (3, "theory", "carl"),
    ]  # fmt: skip


def test_without_a_tree_accounts_and_groups_come_as_their_jobs_do():
    tree = Tree()
    for account, group in [("", "7"), ("x", "8"), ("", "8"), ("", "")]:
        assert tree.node(account, group, "3")[1] == ""
    assert {(e.account, e.user) for e in tree.entries if e.user} == {
        ("7", "3"), ("x", "3"), ("8", "3"), ("root", "3"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- physics", "f: expected accounts by name, found ['physics']"),
        ("x: {share: 1}", "f: x: share: unknown key. Did you mean 'shares'"),
        ("x: {shares: many}", "f: x: shares: expected a number, found 'many'"),
        ("x: {shares: -1}", "f: x: account 'x': shares: expected a number from 0 to 1e12, found -1.0"),
        ("x: {shares: .nan}", "found nan"),
        ("x: {users: {u: {bound: top}}}", "f: x: users: u: bound: expected one of target, ceiling"),
        ("x: {accounts: {y: }}\ny: 1", "account 'y' is listed already; names are unique"),
        ("x: &x {accounts: {y: *x}}", "f: x: accounts: y: accounts: the accounts contain themselves"),
        ("x: {users: [u, u]}\ny: [1]", "f: y: expected keys and values, found [1]"),
        ("Cluster - 'c'\nUser - 'u':Fairshare=much", "f, line 2: Fairshare: expected a number, found "),
        ("Cluster - 'c'\nParent - 'x'\nUser - 'u'", "'u': expected a listed account, found 'x'"),
        ("Cluster - 'c'\nParent - 'x'\nAccount - 'y'", "'y': expected an account above it that is listed"),
        (
            "Cluster - 'c'\nParent - 'x'\nAccount - 'y'\nParent - 'y'\nAccount - 'x'",
            "accounts in a circle: 'y' below 'x' below 'y'",
        ),
        ("Cluster - 'c'\nrm -rf", "f, line 2: expected \"Cluster - 'NAME'\""),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, said):
    with pytest.raises(UserError) as error:
        Tree(read_tree(text, "f"))
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"accounts": {"x": {"share": 1}}}, "accounts: x: share: unknown key"),
        ({"file": "absent.yaml"}, "a file that can be read, found absent.yaml"),
        ({"accounts": {}, "file": "a"}, "accounts or a file with them, found both"),
        ({"half_life": "soon"}, "half_life: expected a time such as 30m"),
        ({"half_life": 0}, "half_life: expected greater than 0"),
        ({"zone": "Mars"}, "zone: expected a time zone such as Europe/Berlin, found 'Mars'"),
        ({"billing": {"processors": 1e300}}, "billing.processors: expected"),
    ],
)
def test_wrong_options_are_refused(options, said):
    with pytest.raises(UserError) as error:
        Plugins.load([PluginConfig("fair-tree", options)], Catalogue(), None)
    assert said in str(error.value)


RESOURCE_GROUP = """# name id parent shares
physics 50 root 60
theory  52 physics 10 further words
ann     60 root 5
bob     61 theory 10
"""


def test_resource_group_of_pbs():
    entries = {(entry.account, entry.user): entry for entry in read_tree(RESOURCE_GROUP, "resource_group")}
    assert set(entries) == {("physics", ""), ("theory", ""), ("root", "ann"), ("theory", "bob")}
    assert entries["theory", ""].parent == "physics"
    assert (entries["theory", "bob"].shares, entries["theory", "bob"].default) == (10, True)
    assert Tree(list(entries.values())).association("root", "ann")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("carl 70 nobody 10", "line 6: carl: no group is called 'nobody'"),
        ("bob 70 root 10", "line 6: 'bob' is there already, in rg, line 5"),
        ("carl 70 root -1", "line 6: expected NAME ID PARENT SHARES, found 'carl 70 root -1'"),
        ("root 70 root 1", "line 6: expected a name below root"),
    ],
)
def test_a_broken_resource_group(line, why):
    with pytest.raises(UserError, match=re.escape(why)):
        read_tree(RESOURCE_GROUP + line + "\n", "rg")


def test_accounts_that_are_nested_without_end_are_refused():
    text = "{x: {accounts: " * 150 + "{}" + "}}" * 150
    with pytest.raises(UserError, match="expected a tree of at most 100 levels, found more"):
        read_tree(text, "t")
