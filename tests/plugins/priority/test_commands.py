"""`headway shares` and `headway priority` on the journal of a dry run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from headway import cli
from headway import events as ev
from headway.cli import asking, common
from headway.model import ClusterDescription, JobDescription, Request, SitePolicy
from headway.state import State
from headway_plugins.priority import share_course
from headway_plugins.priority.classic import Classic, ClassicOptions
from headway_plugins.priority.commands import MINUTES, SHARES, share_cells
from headway_plugins.priority.fair_tree import FairTree, FairTreeOptions
from headway_plugins.priority.reports import Priorities, Shares
from headway_plugins.priority.share_course import Course
from headway_plugins.priority.standings import share_reports

#: What `sacctmgr dump` and `sshare -a -l -P` of a Slurm 22.05.8 said after it had run some jobs.
RECORDED = Path(__file__).parent / "fixtures"
#: Processor-seconds of each association; jobs of QOS low count half.
SPENT = {
    ("chemistry", "daemon"): 588.5, ("chemistry", "lp"): 39, ("chemistry", "www-data"): 25,
    ("empty", "proxy"): 26, ("lab", "games"): 17, ("lab", "sys"): 35, ("theory", "bin"): 2,
    ("theory", "daemon"): 17, ("deep", "news"): 6, ("deep", "uucp"): 6,
}  # fmt: skip


def share_rows(plugin, now):
    """The columns of sshare without those of minutes."""
    reports = share_reports(plugin, plugin.standing(now), (), now)
    return [share_cells(row)[: len(SHARES)] for row in reports]


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
    none = "cpu=0,mem=0,energy=0,node=0,billing=0,fs/disk=0,vmem=0,pages=0"
    assert [row[-2:] for row in rows] == [list(MINUTES), *[["", none]] * 6]
    assert [row[:-2] for row in rows] == [
        list(SHARES),
        ["root", "", "", "0.000000", "800", "", "1.000000", "", ""],
        [" 1", "", "1", "0.500000", "600", "0.750000", "0.750000", "", "0.666667"],
        ["  1", "1", "1", "0.500000", "400", "0.500000", "0.666667", "0.333333", "0.750000"],
        ["  1", "2", "1", "0.500000", "200", "0.250000", "0.333333", "0.666667", "1.500000"],
        [" 2", "", "1", "0.500000", "200", "0.250000", "0.250000", "", "2.000000"],
        ["  2", "3", "1", "1.000000", "200", "0.250000", "1.000000", "1.000000", "1.000000"],
    ]


def test_shares_leaves_nothing_out_on_a_narrow_terminal(journal, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = [row[0].split() for row in printed(capsys, "shares", "-c", str(journal / "c.yaml"))]
    assert lines[0] == [*SHARES, *MINUTES]
    assert ["1", "1", "1", "0.500000", "400", "0.500000", "0.666667", "0.333333", "0.750000"] in lines


def test_a_page_shows_the_tree_and_targets_against_usage(journal):
    page = journal / "shares.html"
    cli.main(["shares", "-c", str(journal / "c.yaml"), "--html", str(page)])
    text = page.read_text()
    # Account 2 has one user.
    assert "Below root" in text and "Below 1" in text and "Below 2" not in text
    # Each in three widths.
    assert text.count("<svg") == 2 * 3
    assert "<td>3</td>" in text and "0.666667" in text


def test_a_course_of_many_moments_is_thinned_and_keeps_its_ends(monkeypatch):
    monkeypatch.setattr(share_course, "MOMENTS", 8)
    plugin, course = FairTree(FairTreeOptions(file=RECORDED / "slurm-22.05.dump", half_life=None)), Course()
    node = plugin.tree.association("theory", "bin")
    plugin.ledger.begin("1", node, 2.0, 0.0)
    for now in range(1, 1001):
        course.look(plugin, float(now))
    course.end(plugin, 1000.5)
    assert len(course.times) <= 9 and (course.times[0], course.times[-1]) == (1.0, 1000.5)
    families = dict(course.families(plugin, 2))
    assert list(families) == ["root", "physics", "theory"]
    assert [line.name for line in families["root"]] == ["physics", "root"]
    line = families["theory"][0]
    assert (line.name, line.is_user, line.used[-1], line.target[-1]) == ("bin", True, 1.0, 0.5)


def test_priority_prints_what_each_factor_gives(journal, capsys):
    rows = printed(capsys, "priority", "--journal", str(journal / "j.sqlite"), "-P")
    assert rows == [["Job", "User", "Priority", "fairshare", "age", "nice"]]


def test_a_source_is_needed(journal, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(common, "CONFIGS", (tmp_path / "none.yaml",))
    monkeypatch.setattr(asking, "SOCKET", tmp_path / "none.sock")
    with pytest.raises(SystemExit):
        cli.main(["shares"])
    assert f"or a daemon at {tmp_path}/none.sock" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["shares", "--journal-only"])
    assert "either --config or --journal" in capsys.readouterr().err


def test_where_no_daemon_answers_it_is_said_that_the_journal_does(journal, capsys):
    capsys.readouterr()
    cli.main(["shares", "-c", str(journal / "c.yaml"), "-P"])
    said = capsys.readouterr()
    assert said.err.startswith("From the journal: no daemon answers at ") and len(said.out.splitlines()) == 7
    cli.main(["shares", "-c", str(journal / "c.yaml"), "-P", "--journal-only"])
    assert capsys.readouterr() == (said.out, "")


def test_a_configuration_of_the_environment_yields_to_a_journal_that_is_named(journal, capsys, monkeypatch):
    monkeypatch.setenv("HEADWAY_CONFIG", str(journal / "c.yaml"))
    assert len(printed(capsys, "shares", "--journal", str(journal / "j.sqlite"), "-P")) == 7


def test_shares_and_priorities_as_json_have_their_shapes(journal, capsys):
    capsys.readouterr()
    cli.main(["shares", "--journal", str(journal / "j.sqlite"), "--json"])
    rows = msgspec.json.decode(capsys.readouterr().out, type=Shares).rows
    assert [(row.account, row.user, row.usage) for row in rows if row.user] == [
        ("1", "1", 400.0), ("1", "2", 200.0), ("2", "3", 200.0)
    ]  # fmt: skip
    cli.main(["priority", "--journal", str(journal / "j.sqlite"), "--json"])
    found = msgspec.json.decode(capsys.readouterr().out, type=Priorities)
    assert found == Priorities({"fairshare": 1000.0, "age": 10.0}, ())


def test_shares_are_what_sshare_says_in_every_column():
    plugin = FairTree(FairTreeOptions(file=RECORDED / "slurm-22.05.dump", half_life=None))
    for (account, user), used in SPENT.items():
        node = plugin.tree.association(account, user)
        assert node is not None
        plugin.ledger.add(node, used, 0.0, 1.0)
    said = (RECORDED / "slurm-22.05.sshare").read_text().splitlines()
    assert ["|".join(row) for row in (SHARES, *share_rows(plugin, 1.0))] == said


def test_shares_of_those_without_shares_of_their_own_are_what_sshare_says():
    plugin = FairTree(FairTreeOptions(file=RECORDED / "slurm-22.05-parent.dump", half_life=None))
    said = (RECORDED / "slurm-22.05-parent.sshare").read_text().splitlines()
    for row in (line.split("|") for line in said[1:]):
        if row[1]:
            # Half processor-seconds of QOS low are not shown; their part of all usage is.
            used = round(float(row[5]) * 211.5 * 2) / 2
            node = plugin.tree.association(row[0].strip(), row[1])
            plugin.ledger.add(node, used, 0.0, 1.0)
    assert ["|".join(row) for row in (SHARES, *share_rows(plugin, 1.0))] == said


def test_where_nobody_has_used_anything_the_root_has_all_usage_and_large_shares_are_whole():
    plugin = FairTree(FairTreeOptions(accounts={"giant": {"shares": 1234567, "users": {"ann": 1000000}}}))
    rows = [row[:7] for row in share_rows(plugin, 1.0)]
    # As sshare prints it.
    assert rows[0] == ("root", "", "", "0.000000", "0", "", "1.000000")
    assert [row[2] for row in rows[1:]] == ["1234567", "1000000"]


def test_where_fair_share_is_classic_accounts_have_a_factor_too():
    """As sshare says with PriorityFlags=NO_FAIR_TREE, the root included."""
    accounts = {"x": {"shares": 3, "users": {"ann": 1}}, "y": {"shares": 1, "users": {"bob": 1}}}
    plugin = Classic(ClassicOptions(accounts=accounts, half_life=None))
    plugin.ledger.add(plugin.tree.association("x", "ann"), 5.0, 0.0, 1.0)
    rows = {row[:2]: (row[3], row[7]) for row in share_rows(plugin, 1.0)}
    assert rows["root", ""] == ("1.000000", "0.500000")
    assert rows[" x", ""] == ("0.750000", f"{2 ** -(1 / 0.75):.6f}") == rows["  x", "ann"]
    assert rows[" y", ""] == ("0.250000", "1.000000")


@pytest.mark.parametrize(
    ("qos", "left"),
    [
        ({}, "cpu=56,node=28,billing=56,gres/gpu=28,pages=0"),
        # As Slurm counts with UsageFactor.
        ({"low": 2}, "cpu=113,node=56,billing=113,gres/gpu=56,pages=0"),
    ],
)
def test_minutes_that_running_jobs_may_still_use_are_counted_up_the_tree(qos, left):
    plugin = FairTree(FairTreeOptions(file=RECORDED / "slurm-22.05.dump", qos=qos))
    state = State(ClusterDescription.flat(8))
    plugin.startup(state)
    request = Request(2, 1800.0, gres_per_node=(("gpu", 1),))
    description = JobDescription("1", 0.0, request, user="bin", account="theory", qos="low")
    submitted, started = ev.JobSubmitted(0.0, description), ev.JobStarted(0.0, "1")
    for event in (submitted, started):
        state.handlers[type(event)](state, event)
        plugin.observe(event, state)
    names = ("cpu", "node", "billing", "gres/gpu", "pages")
    plugin._policy = SitePolicy(resources=names, minutes={"theory": "cpu=9"})
    reports = share_reports(plugin, plugin.standing(100.0), state.running_jobs(), 100.0)
    said = {row[:2]: row[-2:] for row in map(share_cells, reports)}
    # 1,700 of 1,800 seconds are left.
    assert said["   theory", "bin"] == ("", left)
    assert said["  theory", ""] == ("cpu=9", left)
    assert said["root", ""] == said[" physics", ""] == ("", left)
    assert said[" chemistry", ""] == ("", "cpu=0,node=0,billing=0,gres/gpu=0,pages=0")
