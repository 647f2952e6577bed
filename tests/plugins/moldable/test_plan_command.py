"""``headway plan --list``: makespans, advice, and who is made smaller."""

import pytest
from click.testing import CliRunner

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


def test_each_shrink_has_its_reason(night):
    said = plan("--list", night, "--processors", 8, "--algorithm", "A1").output
    lines = {line.split()[0]: " ".join(line.split()) for line in said.splitlines() if line}
    why = "8 processes on 5 processors take 2 times as long, 25 % more work: A1 gives nobody more than 5"
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
    assert read_list(path) == (["1"], [Task(16, 5400, 4, 1.5)])


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
        read_list(path)
    assert said in str(error.value)


def test_a_rigid_job_above_the_machine_is_named(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text("processes,time,least\n4,5,4\n", encoding="utf-8")
    with pytest.raises(UserError) as error:
        plan("--list", path, "--processors", 2)
    assert "expected a least size of at most 2 processors, found 4" in str(error.value)
