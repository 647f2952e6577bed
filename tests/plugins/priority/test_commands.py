"""`headway shares` and `headway priority` on the journal of a dry run."""

from __future__ import annotations

import pytest

from headway import cli

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
        ["root", "", "", "", "800", "", "1.000000", "", ""],
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
