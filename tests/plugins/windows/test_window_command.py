"""``headway window --list``: the set, who is left out and why, the forecast."""

import pytest
from click.testing import CliRunner

from headway.errors import UserError
from headway_plugins.windows.lists import read_jobs
from headway_plugins.windows.plan import plan_window
from headway_plugins.windows.staged import Staged

NIGHT = """job,stage,length,tasks
A,1,3,1
A,2,2,2
A,3,1,1
B,1,2,1
B,1,4,1
B,2,3,1
C,1,5,1
C,2,1,1
D4,1,2,4
"""


def window(*arguments):
    from headway_plugins.windows.commands import command

    return CliRunner(env={"COLUMNS": "200"}).invoke(
        command, [str(a) for a in arguments], catch_exceptions=False
    )


@pytest.fixture
def night(tmp_path):
    path = tmp_path / "night.csv"
    path.write_text(NIGHT + "E,1,11,1\n", encoding="utf-8")
    return path


def test_the_set_who_is_left_out_and_the_forecast(night):
    said = window("--list", night, "--processors", 2, "--length", "10s", "--fill", 0.8).output
    words = " ".join(said.split())
    assert "5 jobs, 2.10 of the window (2 processors for 10 s)." in words
    assert "The set: 2 of them, 0.80 of the window; it may be filled to 0.800." in words
    lines = {line.split()[0]: " ".join(line.split()) for line in said.splitlines() if line.strip()}
    assert lines["A"] == "A 3 4 8 s 6 s 8 7 s"
    assert lines["D4"].endswith("9 s")
    assert lines["B"] == "B 9 not in the set: with it the set would need 1.56 of what may be filled"
    assert lines["E"] == "E 11 its stages take 11 s, and the window has 10 s"
    assert (
        "Forecast by LCPF: 2 jobs in time, 0 too late. They earn 16; no schedule earns more than 17" in words
    )
    assert "(0.941 of it)" in words


def test_how_full_follows_from_the_longest_critical_path(night):
    said = window("--list", night, "--processors", 2, "--length", "10s").output
    assert "it may be filled to 0.930." in said


def test_by_priority_nothing_is_selected(night):
    said = " ".join(
        window("--list", night, "--processors", 2, "--length", "10s", "--order", "PRIO").output.split()
    )
    assert "By priority, nothing is selected: 4 taken on, 1.55 of the window." in said
    assert "2 too late" in said


def test_a_job_that_is_larger_than_the_window():
    plan = plan_window([Staged("wide", ((4,) * 9,)), Staged("small", ((4,),))], 2, 10.0, share=1.0)
    assert plan.chosen == (1,)
    assert plan.left_out == (0,)


def test_the_columns_of_a_list(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text(
        " job, stage,length,reward,priority,tasks\nx,2,1m,,,\nx,1,30,5,120,3\ny,1,1h,,,1\n", encoding="utf-8"
    )
    assert read_jobs(path) == [
        Staged("x", ((30, 30, 30), (60,)), 5, 120),
        Staged("y", ((3600,),)),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a column 'job', found none"),
        ("job,stage,length\n", "expected a stage of a job a line, found none"),
        ("job,stage,long\n", "there is no column 'long'"),
        ("job,stage,length\na,1,0\n", "line 2: length: expected a task of more than 0 seconds, found '0'"),
        ("job,stage,length\na,1,soon\n", "line 2: length: expected a time such as"),
        ("job,stage,length\na,0,5\n", "line 2: stage: expected a whole number from 1 on, found '0'"),
        ("job,stage,length\na,1,5\na,3,5\n", "line 2: job a: expected stages 1 to 3, found no stage 2"),
        ("job,stage,length,reward\na,1,5,0\n", "line 2: reward: expected more than 0, found '0'"),
        ("job,stage,length,reward\na,1,5,2\na,2,5,3\n", "line 3: reward: job a has 2 in line 2, found '3'"),
        ("job,stage,length,reward\na,1,5,nan\n", "line 2: reward: expected a number, found 'nan'"),
        ("job,stage,length\na,1\n", "line 2: expected 3 fields, found another number"),
        ("job,stage,length\n,1,5\n", "line 2: expected the name of a job, found none"),
        ("job,stage,length,tasks\na,1,5,99999999\n", "line 2: expected at most 10000000 tasks, found more"),
    ],
)
def test_lists_that_cannot_be(tmp_path, text, said):
    path = tmp_path / "list.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as error:
        read_jobs(path)
    assert said in str(error.value)


def test_a_length_that_cannot_be(night):
    with pytest.raises(UserError, match="--length: expected a time such as"):
        window("--list", night, "--processors", 2, "--length", "0")
