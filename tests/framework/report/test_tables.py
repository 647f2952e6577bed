"""CSV and JSON files: exact to the character, complete or untouched."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from building import described

from headway.decisions import SetTimeLimit, Start
from headway.errors import Failure, UserError
from headway.model import ClusterDescription
from headway.report import write_decisions_csv, write_jobs_csv, write_outputs
from headway.results import DecisionRecord, JobResult, RunResult

HOSTILE = 'a "quoted", name\nwith a line feed'


def run(*jobs: JobResult, decisions: tuple[DecisionRecord, ...] = ()) -> RunResult:
    return RunResult("test", ClusterDescription.flat(4), list(jobs), decisions=decisions)


def record(job_id: str, start: float | None, end: float | None, **more: object) -> JobResult:
    job = described(job_id, 2, 60.0, 5.0, **more)
    state = "completed" if end is not None else "pending"
    return JobResult(
        job, start, end, state, 0.0 if start is None else end - start, (), "pool", -1, int(start is not None)
    )


def test_whole_numbers_have_no_point_and_never_is_empty(tmp_path: Path) -> None:
    write_jobs_csv(tmp_path / "jobs.csv", run(record("1", 7.0, 27.0, user="u"), record("2", None, None)))
    assert (tmp_path / "jobs.csv").read_text() == (
        "job_id,user,submit_time,start_time,end_time,processors,estimate,runtime,state,wait,turnaround,slowdown,"
        "bounded_slowdown,allocated,pool,nodes,starts,group,account,name,class,frequency,energy,migrations,restarts,promotions,subjobs\n"
        "1,u,5,7,27,2,60,20,completed,2,22,1.1,1.1,2,pool,,1,,,,SW,,,0,0,0,1\n"
        "2,,5,,,2,60,,pending,,,,,,pool,,0,,,,,,,0,0,0,0\n"
    )


def test_fractions_can_be_read_back(tmp_path: Path) -> None:
    write_jobs_csv(tmp_path / "jobs.csv", run(record("1", 7.125, 7.375)))
    with open(tmp_path / "jobs.csv", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert (row["start_time"], row["end_time"], row["runtime"]) == ("7.125", "7.375", "0.25")


@pytest.mark.parametrize("name", [HOSTILE, "a,b", 'a"b', "a\nb"])
def test_hostile_names_come_back_as_they_were(tmp_path: Path, name: str) -> None:
    jobs = run(record("1", 5.0, 6.0, name=name), record("2", 5.0, 7.5, name="plain"))
    write_jobs_csv(tmp_path / "jobs.csv", jobs)
    with open(tmp_path / "jobs.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["name"] for row in rows] == [name, "plain"]
    # Where nothing needs quotes a line is the same.
    write_jobs_csv(tmp_path / "plain.csv", run(*jobs.jobs[1:]))
    last = (tmp_path / "jobs.csv").read_text().splitlines()[-1]
    assert (tmp_path / "plain.csv").read_text().splitlines()[-1] == last


def test_decisions(tmp_path: Path) -> None:
    taken = (
        DecisionRecord(3.0, Start("1", (("n1", 2), ("n2", 2)), "first")),
        DecisionRecord(4.0, SetTimeLimit("1", 90.0, "longer"), accepted=False, message="no"),
    )
    write_decisions_csv(tmp_path / "d.csv", run(decisions=taken))
    with open(tmp_path / "d.csv", newline="") as stream:
        first, second = csv.DictReader(stream)
    assert (first["decision"], first["nodes"], first["accepted"]) == ("Start", "n1 n2", "yes")
    assert (second["accepted"], second["message"]) == ("no", "no")
    assert json.loads(second["details"])["walltime"] == 90.0


def test_all_formats_or_those_asked_for(tmp_path: Path) -> None:
    names = [path.name for path in write_outputs(run(record("1", 5.0, 6.0)), tmp_path / "new" / "dir")]
    assert names == [
        "jobs.csv", "decisions.csv", "metrics_by_class.csv", "metrics.json", "schedule.swf", "report.html",
    ]  # fmt: skip
    assert [p.name for p in write_outputs(run(), tmp_path, formats=("json",))] == ["metrics.json"]


def test_metrics_by_class_have_a_line_a_class_and_metric(tmp_path: Path) -> None:
    # Two processors, 15 s of runtime, 3 s of wait; a second one never started.
    write_outputs(run(record("1", 8.0, 23.0), record("2", None, None)), tmp_path, formats=("csv",))
    with open(tmp_path / "metrics_by_class.csv", newline="") as stream:
        rows = {(row["class"], row["metric"]): row for row in csv.DictReader(stream)}
    assert {name for name, _ in rows} == {"all", "SN", "LN", "SW", "LW"}
    assert len(rows) == 5 * 7
    assert (rows["SW", "wait"]["count"], rows["SW", "wait"]["mean"]) == ("1", "3")
    assert (rows["SN", "wait"]["count"], rows["SN", "wait"]["mean"]) == ("0", "")
    assert (rows["all", "slowdown_ratio"]["count"], rows["all", "slowdown_ratio"]["mean"]) == ("1", "1.2")


def test_an_unknown_format_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'jsn'.*'json'"):
        write_outputs(run(), tmp_path, formats=("jsn",))


def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "jobs.csv"
    write_jobs_csv(path, run(record("1", 5.0, 6.0)))
    before = path.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("headway.report.tables.csv.writer", full)
    with pytest.raises(Failure, match="No space left on device"):
        write_jobs_csv(path, run(record("2", 5.0, 6.0)))
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["jobs.csv"]


def test_a_file_in_the_directorys_place_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(Failure, match="out: cannot be made"):
        write_outputs(run(), tmp_path / "out")
