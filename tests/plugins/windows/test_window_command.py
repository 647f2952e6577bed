"""``headway window --list``: the set, who is left out and why, the forecast."""

import json

import pytest
from building import traced
from click.testing import CliRunner
from cut_journal import cut

from headway.emulation import emulate
from headway.errors import UserError
from headway.journal import Journal
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
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


def test_12_the_set_who_is_left_out_and_the_forecast(night):
    said = window("--list", night, "--processors", 2, "--length", "10s", "--fill", 0.8).output
    words = " ".join(said.split())
    assert "5 jobs, 2.10 of the window (2 processors for 10 s)." in words
    assert "The set: 2 of them, 0.80 of the window; it may be filled to 0.800." in words
    lines = {line.split()[0]: " ".join(line.split()) for line in said.splitlines() if line.strip()}
    assert lines["A"] == "A 3 4 8 s 6 s 8 7 s"
    assert lines["D4"].endswith("9 s")
    assert lines["B"] == (
        "B 9 not in the set: with this job the set would need 1.56 of the part that may be filled"
    )
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


# ---------------------------------------------------------------------- a live window

OPTIONS = {"length": 10, "fill": 1.0, "reselect": 0}


def recorded(tmp_path, now, policy="two-phase", **options):
    """The journal, as it was at ``now``, of two processors on which A, B, C and D4 are to be done; E, of one
    task longer than the window; and F, of which a task failed."""
    jobs = {"A": [[3], [2, 2], [1]], "B": [[2, 4], [3]], "C": [[5], [1]], "D4": [[2, 2, 2, 2]], "E": [[99]]}
    found = [
        traced(f"{name}.{stage}.{number}", 1, length, user="ann",
               attributes={"window": {"job": name, "stage": stage}})
        for name, stages in jobs.items()
        for stage, lengths in enumerate(stages, start=1)
        for number, length in enumerate(lengths, start=1)
    ]  # fmt: skip
    for stage, outcome in ((1, "failed"), (2, "completed")):
        mark = {"window": {"job": "F", "stage": stage, "reward": 100}}
        found.append(traced(f"F.{stage}", 1, 1, outcome=outcome, user="ben", attributes=mark))
    config = PluginConfig(policy, {**OPTIONS, **options} if policy == "two-phase" else {})
    path = tmp_path / "j.sqlite"
    with Journal.open(str(path)) as journal:
        emulate(
            ClusterDescription.flat(2), found, [config], Catalogue(), label="night", journal=journal,
            config_text=json.dumps({"plugins": [{config.name: config.options}]}),
        )  # fmt: skip
    return cut(path, now)


def test_12_a_window_that_is_open(tmp_path):
    said = window("--journal", recorded(tmp_path, 5, opens="00:00")).output
    words = " ".join(said.split())
    assert "Pool pool: the window is open until 10; what is left of it:" in words
    assert "The set: 3 of them, 0.90 of the window; it may be filled to 1.000." in words
    lines = {line.split()[0]: " ".join(line.split()) for line in said.splitlines() if " of " in line}
    # B's last task began at 4, one of A's second stage at 5; A's other one and F's first begin at 7.
    assert lines["B"] == "B of ann 1 1 2 s 2 s 2 2 s"
    assert lines["F"] == "F of ben 2 2 2 s 2 s 100 4 s"
    assert lines["A"] == "A of ann 2 3 5 s 3 s 5 5 s"
    assert lines["E"].endswith("its stages take 1 min 39 s, and the window has 10 s")
    assert "3 jobs in time, 0 too late. They earn 107;" in words


def test_what_can_no_longer_be_done(tmp_path):
    said = window("--journal", recorded(tmp_path, 8, opens="00:00")).output
    assert "Can no longer be done:\n  F of ben: job F can no longer be done (stage 1: job F.1 failed)" in said


def test_a_window_that_is_to_come(tmp_path):
    said = window("--journal", recorded(tmp_path, 0, opens="01:00")).output
    words = " ".join(said.split())
    assert "Pool pool: the window opens at 3600 and closes at 3610; if nothing changes until then:" in words
    lines = {line.split()[0]: " ".join(line.split()) for line in said.splitlines() if " of " in line}
    assert lines["B"] == "B of ann 2 3 9 s 7 s 9 7 s"
    assert lines["A"].endswith("8 10 s")
    assert lines["D4"].endswith(
        "not in the set: with this job the set would need 1.35 of the part that may be filled"
    )
    assert "3 jobs in time, 0 too late. They earn 117; no schedule earns more than 117" in words


def test_a_run_without_windows(tmp_path):
    with pytest.raises(UserError, match="the run has no policy `two-phase`, so no pool has windows"):
        window("--journal", recorded(tmp_path, 0, policy="easy"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected either --config or --journal"),
        (["--length", "3h"], "--length: expected --list beside it"),
        (["--journal", "j", "--order", "PRIO"], "--order: expected --list beside it"),
        (["--list", "x.csv"], "--list: expected --processors and --length beside it"),
        (["--list", "x.csv", "--journal", "j"], "expected either --list, or a live window"),
    ],
)
def test_a_list_or_a_live_window(arguments, message):
    assert message in window(*arguments).output
