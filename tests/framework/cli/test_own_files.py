"""What people bring: their own logs, with the oddities that these have, and odd words on the command line."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import shutil
import subprocess
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from commandline import Headway

from headway.cli.reproduce import in_force, made
from headway.errors import UserError
from headway.workload import Column, read_swf

FILES = Path(__file__).parent / "fixtures" / "own_files"
ETC = Path(__file__).parents[3] / "etc" / "slurm"


@pytest.fixture(autouse=True)
def _copies(tmp_path: Path) -> None:
    shutil.copytree(FILES, tmp_path, dirs_exist_ok=True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("dry-run --trace partial.swf", "easy: 2 jobs (2 completed)"),
        ("dry-run --trace comma.swf", "easy: 4 jobs (4 completed)"),
        ("dry-run --trace no-blank.swf", "easy: 4 jobs (4 completed)"),
        ("analyze partial.swf", "partial.swf: 2 jobs"),
        ("analyze elapsed.txt --processors 64", "elapsed.txt: 2 jobs"),
        ("analyze runaway.txt --processors 64", "runaway.txt: 2 jobs"),
        ("analyze start-after-end.txt --processors 64", "start-after-end.txt: 2 jobs"),
        ("analyze packed.swf.bz2", "packed.swf.bz2: 4 jobs"),
        ("convert partial.swf x.swf", "x.swf: 2 jobs"),
    ],
)
def test_is_read(headway: Headway, arguments: str, said: str) -> None:
    ran = headway(*arguments.split())
    assert ran.code == 0
    assert ran.out.startswith(said)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("partial.swf", "3 lines skipped: partial execution, which the line of its job counts"),
        ("runaway.txt", "1 line skipped: broken record (line 3: End: expected a time such as "),
        ("start-after-end.txt", "(line 3: expected an end from its start on, found 3509 s before it)"),
    ],
)
def test_what_is_left_out_is_said(headway: Headway, file: str, said: str) -> None:
    ran = headway("convert", file, "x.swf")
    assert said in ran.err.replace("\n", " ")


@pytest.mark.parametrize("file", ["runaway.txt", "start-after-end.txt"])
def test_a_broken_line_of_accounting_is_an_error_where_it_is_to_be(headway: Headway, file: str) -> None:
    ran = headway("convert", file, "x.swf", "--strict")
    assert ran.code == 2
    assert f"{file}, line 3: " in ran.err
    assert not Path("x.swf").exists()


def test_elapsed_tells_runtimes(headway: Headway) -> None:
    assert headway("convert", "elapsed.txt", "x.swf").code == 0
    assert read_swf("x.swf").records[:, Column.RUNTIME].tolist() == [3509, 89909]


def test_torque_tells_processors_by_slots(headway: Headway) -> None:
    assert headway("convert", "torque.txt", "x.swf").code == 0
    assert read_swf("x.swf").records[:, Column.ALLOCATED].tolist() == [4, 1]


def test_accounts_and_cancelled_jobs_are_told(headway: Headway) -> None:
    assert headway("convert", "cancelled.txt", "x.swf").code == 0
    found = read_swf("x.swf").records[:, [Column.STATUS, Column.GROUP]].tolist()
    assert found == [[1, 1], [5, 2], [0, 2]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("dry-run --trace semicolons.swf --processors 64", "its numbers are separated by ';'"),
        ("dry-run --trace log.swf --scale-arrivals 1e308", "scale_arrivals: expected a factor that leaves"),
        ("dry-run --trace log.swf --scale-runtimes 1e300", "scale_runtimes: expected a factor that leaves"),
        ("dry-run --trace log.swf --scale-arrivals nan", "expected a finite number"),
        ("dry-run --trace log.swf --window nan nan", "window: expected a start before its end"),
        ("tune delayed-los --trace log.swf --values 5..1", "--values: expected 1 to 1000 values"),
        ("tune delayed-los --trace log.swf --values 1..99999999999", "--values: expected 1 to 1000"),
        ("tune delayed-los --trace log.swf --values ,", "--values: expected values such as 1..20 or 0,3,7"),
        (
            "tune delayed-los --trace log.swf --values 1..2..3",
            "--values: expected values such as 1..20 or 0,3,7",
        ),
        ("convert log.swf log.swf", "log.swf: expected another file than IN, found IN itself"),
        ("convert log.swf ./log.swf", "log.swf: expected another file than IN, found IN itself"),
        ("reproduce measy --set batch=many", "--set: batch: expected a whole number from 1 on, found 'many'"),
        ("reproduce sareg --set jobs=0", "--set: jobs: expected a whole number from 1 on, found '0'"),
        ("reproduce sareg --set sites=[a]", "--set: sites: expected a list such as [8, 16]"),
        ("reproduce ejb --set settings=3", "--set: settings: expected true or false, found '3'"),
        ("reproduce moldable-bsp --set x=.nan", "--set: x: expected a list such as [0.5, 0.7]"),
        ("reproduce open-job-management --set means=[-1]", "--set: means: expected a list"),
        ("reproduce two-phase --set runs=", "--set: runs: expected a whole number from 1 on, found 'None'"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(headway: Headway, arguments: str, said: str) -> None:
    before = Path("log.swf").read_bytes()
    ran = headway(*arguments.split())
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert Path("log.swf").read_bytes() == before


def test_a_link_to_the_input_is_the_input(headway: Headway) -> None:
    Path("link.swf").symlink_to("log.swf")
    assert headway("convert", "log.swf", "link.swf").code == 2


PAPERS = {entry.name: entry.load() for entry in entry_points(group="headway.reproductions")}
ODD = ["", "nan", ".nan", "-.inf", "1e308", "-1", "0", "[]", "[[1]]", "{a: 1}", "null", "true", "x",
       "2026-01-01", "9" * 400, "[1, x]", "'5'"]  # fmt: skip


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize(
    ("paper", "parameter"),
    [(name, one) for name, kind in PAPERS.items() for one in inspect.signature(kind).parameters],
)
def test_each_parameter_of_each_paper_takes_a_value_of_its_kind_or_refuses_it(
    paper: str, parameter: str, value: str
) -> None:
    with contextlib.suppress(UserError):
        made(paper, [f"{parameter}={value}"])


@pytest.mark.parametrize("parameter", ["targets", "loads"])
def test_parts_of_an_experiment_can_be_left_out(parameter: str) -> None:
    made("ejb", [f"{parameter}=null"])


def test_experiments_that_break_under_given_values_say_under_which() -> None:
    said = r"measy cannot be run with --set loads=\[0\]: ZeroDivisionError: oh"
    with pytest.raises(UserError, match=said), in_force("measy", ["loads=[0]"]):
        raise ZeroDivisionError("oh")
    with pytest.raises(ZeroDivisionError), in_force("measy", []):
        raise ZeroDivisionError("oh")


def test_a_name_of_bytes_that_are_no_text_costs_no_file(headway: Headway, tmp_path: Path) -> None:
    name = os.fsdecode(b"b\xe4d.swf")
    shutil.copy("log.swf", name)
    ran = headway("dry-run", "--trace", name, "--out", "o", "--journal", "j.db")
    assert ran.code == 0
    assert {path.name for path in Path("o").iterdir()} == {
        "jobs.csv", "decisions.csv", "metrics_by_class.csv", "metrics.json", "schedule.swf", "report.html"
    }  # fmt: skip
    assert json.loads(Path("o/metrics.json").read_text())
    assert headway("analyze", name, "--out", "study").code == 0
    assert headway("convert", name, os.fsdecode(b"\xff.json")).code == 0


@pytest.mark.parametrize("columns", ["0", "1", "-5", "wide", "99999999999999999999", "٣", ""])
def test_a_width_that_is_none_hides_nothing(
    headway: Headway, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    with monkeypatch.context() as width:
        # For headway alone: pytest goes by it, too.
        width.setenv("COLUMNS", columns)
        ran = headway("dry-run", "--trace", "log.swf")
    assert ran.code == 0
    assert "turnaround" in ran.out and "seed: 0" in ran.out


@pytest.mark.parametrize("job", ["", " "])
@pytest.mark.parametrize("command", ["explain", "elastic"])
def test_no_job_is_no_job(headway: Headway, command: str, job: str) -> None:
    ran = headway(command, job, "-c", "site.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert f"expected the id of a job, found {job!r}" in ran.err


def test_a_failure_of_sacct_is_that_of_the_script(tmp_path: Path) -> None:
    sacct = tmp_path / "bin" / "sacct"
    sacct.parent.mkdir()
    sacct.write_text("#!/bin/sh\necho 'sacct: error: no slurmdbd' >&2\nexit 1\n")
    sacct.chmod(0o755)
    done = subprocess.run(
        ["sh", ETC / "sacct-to-swf", "batch", "64", "2026-01-01", "2026-02-01"],
        env={**os.environ, "PATH": f"{sacct.parent}:{os.environ['PATH']}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "sacct: error: no slurmdbd\n")
