"""``headway plan --list``: makespans, advice, and who is made smaller."""

import pytest
from click.testing import CliRunner
from cut_journal import cut

from headway import cli
from headway.errors import UserError
from headway_plugins.moldable.lists import read_list
from headway_plugins.moldable.tasks import Task


def plan(*arguments):
    from headway_plugins.moldable.commands import command

    return CliRunner(env={"COLUMNS": "250"}).invoke(
        command, [str(a) for a in arguments], catch_exceptions=False
    )


@pytest.fixture
def night(tmp_path):
    path = tmp_path / "night.csv"
    path.write_text(
        "name,processes,time\nsolve,8,4\nmesh,5,3\npost,3,6\npair,2,7\nwide,6,2\ncopy,1,9\n", encoding="utf-8"
    )
    return path


def test_the_four_makespans_and_the_advice(night):
    said = plan("--list", night, "--processors", 8).output
    assert "6 jobs on 8 processors. No plan ends before 12 s." in said
    found = {
        line.split()[0]: line.split()[-1]
        for line in said.splitlines()
        if line[:2] in ("A1", "A2", "A3", "A4")
    }
    assert found == {"A1": "2", "A2": "2", "A3": "0", "A4": "5"}
    assert (
        "Shrink every moldable job above 5 processors to 5 (2 jobs): the batch ends in 15 s, 6.2 % earlier"
        in said
    )


def test_11_each_shrink_has_its_reason(night):
    said = plan("--list", night, "--processors", 8, "--algorithm", "A1").output
    lines = {line.split()[0]: " ".join(line.split()) for line in said.splitlines() if line}
    why = "8 processes on 5 processors take 2 times as long, 25 % more work: A1 gives no job more than 5"
    assert why in lines["solve"]
    assert "6 processes on 5 processors" in lines["wide"]


def test_a_list_that_cannot_be_better(tmp_path):
    path = tmp_path / "rigid.csv"
    path.write_text("processes,time,least\n4,1h,4\n4,30m,4\n", encoding="utf-8")
    said = plan("--list", path, "--processors", 4).output
    assert "Leave all jobs as they are: the batch ends in 1 h 30 min" in said


def test_the_columns_of_a_list(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text(" processes, time,stretch,least\n16,1h30m,1.5,4\n", encoding="utf-8")
    assert read_list(path, 16) == (["1"], [Task(16, 5400, 4, 1.5)])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a column 'processes', found none"),
        ("processes,time\n", "expected a job a line, found none"),
        ("processes\n4\n", "expected a column 'time', found processes"),
        ("processes,tme\n4,1\n", "there is no column 'tme'. Did you mean 'time' or 'name'?"),
        ("processes,time\n4\n", "line 2: expected 2 fields"),
        ("processes,time\n4,1,1\n", "line 2: expected 2 fields"),
        ("processes,time\nx,1\n", "line 2: processes: expected a whole number, found 'x'"),
        ("processes,time\n4,soon\n", "line 2: time: expected a time such as 30m"),
        ("processes,time\n4,0\n", "line 2: expected a time above 0 seconds, found 0"),
        ("processes,time\n0,5\n", "line 2: expected at least 1 process, found 0"),
        ("processes,time,least\n4,5,6\n", "line 2: expected a least size of 1 to 4, found 6"),
        ("processes,time,stretch\n4,5,x\n", "line 2: stretch: expected a number, found 'x'"),
    ],
)
def test_what_is_wrong_with_a_list_is_said(tmp_path, text, said):
    path = tmp_path / "list.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as error:
        read_list(path, 16)
    assert said in str(error.value)


def test_a_rigid_job_above_the_machine_is_named(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text("name,processes,time,least\nsmall,4,5,1\n\nlarge,4,5,4\n", encoding="utf-8")
    with pytest.raises(UserError) as error:
        plan("--list", path, "--processors", 2)
    said = "line 4: job large: expected a least size of at most 2 processors, found 4"
    assert str(error.value) == f"{path}, {said}"


JOBS = [(1, 0, 100, 4), (2, 0, 100, 2), (3, 1, 400, 8), (4, 1, 300, 5), (5, 1, 50, 3), (6, 2, 10, 9)]


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    """Six jobs on 8 processors, two of them running, one larger than all; told at 2 s."""
    path = tmp_path_factory.mktemp("plan")
    rows = [f"{n} {at} -1 {t} {p} -1 -1 {p} {t} -1 1 1 1 -1 0 -1 -1 -1" for n, at, t, p in JOBS]
    (path / "t.swf").write_text("; MaxProcs: 8\n" + "\n".join(rows) + "\n")
    trace, database = str(path / "t.swf"), str(path / "j.sqlite")
    cli.main(["dry-run", "--trace", trace, "--journal", database, "--policy", "easy"])
    return cut(path / "j.sqlite", 2)


def test_what_waits_is_planned_behind_what_runs_whatever_the_policy(journal, capsys):
    capsys.readouterr()
    said = plan("--journal", journal).output
    assert "Pool pool: 2 of 8 processors free, 3 waiting, 2 running" in said
    # Nobody says to be moldable, so nobody is made smaller.
    assert "Leave all jobs as they are: the batch ends in 13 min 19 s" in said


def test_the_policy_of_the_run_says_who_is_moldable(journal, tmp_path):
    (tmp_path / "c.yaml").write_text(
        f"plugins: [{{moldable: {{jobs: all}}}}]\njournal: {tmp_path}/own.sqlite\n", encoding="utf-8"
    )
    trace = str(journal.parent / "t.swf")
    own = tmp_path / "own.sqlite"
    cli.main(["dry-run", "-c", str(tmp_path / "c.yaml"), "--trace", trace, "--journal", str(own)])
    said = plan("--journal", cut(own, 2), "--algorithm", "A4").output
    shown = {line.split()[0]: line.split() for line in said.splitlines() if line}
    # Those of 8 and 5 processes, and the one of 3 on the two that are free.
    assert shown["A4"][-1] == "3"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected either --config or --journal"),
        (["--processors", "4"], "--processors: expected --list beside it"),
        (["--list", "x.csv"], "--list: expected the size of the machine by --processors"),
        (["--list", "x.csv", "--journal", "j"], "expected either --list, or a live queue"),
        (["--list", "x.csv", "--pool", "p"], "expected either --list, or a live queue"),
    ],
)
def test_a_list_or_a_queue(arguments, message):
    assert message in plan(*arguments).output


def test_an_unknown_pool(journal):
    with pytest.raises(UserError, match=r"--pool: expected a pool of the run \(pool\), found 'night'"):
        plan("--journal", journal, "--pool", "night")
