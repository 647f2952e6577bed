"""`headway shares` and `headway priority` on the journal of a dry run."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway import cli
from headway_plugins.priority.commands import SHARES, share_rows
from headway_plugins.priority.fair_share import DecayOptions
from headway_plugins.priority.fair_tree import FairTree

#: What `sacctmgr dump` and `sshare -a -l -P` of a Slurm 22.05.8 said after it had run some jobs.
RECORDED = Path(__file__).parent / "fixtures"
#: Processor-seconds of each association; jobs of QOS low count half.
SPENT = {
    ("chemistry", "daemon"): 588.5, ("chemistry", "lp"): 39, ("chemistry", "www-data"): 25,
    ("empty", "proxy"): 26, ("lab", "games"): 17, ("lab", "sys"): 35, ("theory", "bin"): 2,
    ("theory", "daemon"): 17, ("deep", "news"): 6, ("deep", "uucp"): 6,
}  # fmt: skip

#: Job, submission, runtime, processors, user, group.
JOBS = [(1, 0, 100, 4, 1, 1), (2, 1, 100, 2, 2, 1), (3, 1, 50, 4, 3, 2)]


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    path = tmp_path_factory.mktemp("shares")
    rows = [
        f"{n} {at} -1 {time} {size} -1 -1 {size} {time} -1 1 {user} {group} -1 0 -1 -1 -1"
        for n, at, time, size, user, group in JOBS
    ]
    (path / "t.swf").write_text("; MaxProcs: 4\n" + "\n".join(rows) + "\n")
    (path / "c.yaml").write_text(
        "plugins:\n  - fair-tree: {half_life: null}\n  - multifactor: {weights: {fairshare: 1000, age: 10}}\n"
        f"  - easy\njournal: {path}/j.sqlite\n"
    )
    cli.main(
        [
            "dry-run",
            "-c",
            str(path / "c.yaml"),
            "--trace",
            str(path / "t.swf"),
            "--journal",
            str(path / "j.sqlite"),
        ]
    )
    return path


def printed(capsys, *words):
    capsys.readouterr()
    cli.main([*words])
    return [line.split("|") for line in capsys.readouterr().out.splitlines()]


def test_shares_has_the_columns_of_sshare(journal, capsys):
    rows = printed(capsys, "shares", "-c", str(journal / "c.yaml"), "-P")
    assert rows == [
        [
            "Account",
            "User",
            "RawShares",
            "NormShares",
            "RawUsage",
            "NormUsage",
            "EffectvUsage",
            "FairShare",
            "LevelFS",
        ],
        ["root", "", "", "0.000000", "800", "", "1.000000", "", ""],
        [" 1", "", "1", "0.500000", "600", "0.750000", "0.750000", "", "0.666667"],
        ["  1", "1", "1", "0.500000", "400", "0.500000", "0.666667", "0.333333", "0.750000"],
        ["  1", "2", "1", "0.500000", "200", "0.250000", "0.333333", "0.666667", "1.500000"],
        [" 2", "", "1", "0.500000", "200", "0.250000", "0.250000", "", "2.000000"],
        ["  2", "3", "1", "1.000000", "200", "0.250000", "1.000000", "1.000000", "1.000000"],
    ]


def test_priority_prints_what_each_factor_gives(journal, capsys):
    rows = printed(capsys, "priority", "--journal", str(journal / "j.sqlite"), "-P")
    assert rows == [["Job", "User", "Priority", "fairshare", "age", "nice"]]


def test_a_source_is_needed(journal, capsys):
    with pytest.raises(SystemExit):
        cli.main(["shares"])
    assert "either --config or --journal" in capsys.readouterr().err


def test_shares_are_what_sshare_says_in_every_column():
    plugin = FairTree(DecayOptions(file=RECORDED / "slurm-22.05.dump", half_life=None))
    for (account, user), used in SPENT.items():
        node = plugin.tree.association(account, user)
        assert node is not None
        plugin.ledger.add(node, used, 0.0, 1.0)
    said = (RECORDED / "slurm-22.05.sshare").read_text().splitlines()
    assert ["|".join(row) for row in (SHARES, *share_rows(plugin, 1.0))] == said


def test_shares_of_those_without_shares_of_their_own_are_what_sshare_says():
    plugin = FairTree(DecayOptions(file=RECORDED / "slurm-22.05-parent.dump", half_life=None))
    said = (RECORDED / "slurm-22.05-parent.sshare").read_text().splitlines()
    for row in (line.split("|") for line in said[1:]):
        if row[1]:
            # Half processor-seconds of QOS low are not shown; their part of all usage is.
            used = round(float(row[5]) * 211.5 * 2) / 2
            node = plugin.tree.association(row[0].strip(), row[1])
            plugin.ledger.add(node, used, 0.0, 1.0)
    assert ["|".join(row) for row in (SHARES, *share_rows(plugin, 1.0))] == said
