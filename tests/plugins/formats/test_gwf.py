"""The Grid Workloads Archive's text format."""

from __future__ import annotations

import pytest

from headway.errors import UserError
from headway.workload import Column, read_trace
from headway.workload import trace as kinds


def line(number: int, submit: int, user: str = "U1", queue: str = "-1", status: int = 1, **more: str) -> str:
    found = [str(number), str(submit), "5", "60", "4", "57.5", "1024", "4", "600", "-1", str(status), user,
             "G0", "X2", queue, "-1", "siteA", "siteB", "UNITARY", *["-1"] * 10]  # fmt: skip
    assert len(found) == 29
    for at, text in more.items():
        found[int(at[1:]) - 1] = text
    return "\t".join(found) + "\n"


LOG = (
    "# Computer: DAS-2\n# MaxProcs: 400\n# JobID\tSubmitTime\tWaitTime\n"
    + line(1, 1109000100, "U2", "Q7")
    + line(0, 1109000000, "U1", "Q5", status=0)
    + line(2, 1109000300, "U10", "-1", status=5)
)
SEEN = [Column.NUMBER, Column.SUBMIT, Column.WAIT, Column.RUNTIME, Column.REQUESTED, Column.ESTIMATE,
        Column.CPU_TIME, Column.STATUS, Column.USER, Column.GROUP, Column.QUEUE]  # fmt: skip


@pytest.mark.parametrize("name", ["grid.gwf", "grid.txt"])
def test_is_a_trace_whatever_its_name(tmp_path, name):
    (tmp_path / name).write_text(LOG)
    trace = read_trace(tmp_path / name, strict=True)
    assert trace.records[:, SEEN].tolist() == [
        [0, 0, 5, 60, 4, 600, 57.5, 0, 1, 1, 1],
        [1, 100, 5, 60, 4, 600, 57.5, 1, 3, 1, 2],
        [2, 300, 5, 60, 4, 600, 57.5, 5, 2, 1, -1],
    ]
    assert (trace.max_processors, trace.epoch) == (400, 1109000000)
    assert trace.queue_names == {1: "Q5", 2: "Q7"}
    assert trace.line_numbers.tolist() == [5, 4, 6]
    assert "; Note: of the Grid Workload Format, without its fields 17 to 29" in trace.header


def test_numbers_stay_as_they_are(tmp_path):
    (tmp_path / "a.gwf").write_text(line(7, 50, "12", "3") + line(8, 60, "14", "3"))
    trace = read_trace(tmp_path / "a.gwf")
    assert trace.records[:, [Column.SUBMIT, Column.USER, Column.QUEUE]].tolist() == [[50, 12, 3], [60, 14, 3]]
    assert trace.epoch is None


def test_a_broken_line_is_named_and_left_out(tmp_path):
    path = tmp_path / "a.gwf"
    path.write_text(LOG + line(3, 1109000400, f4="long") + "1 2 3\n" + line(4, 1109000500, f7="much"))
    trace = read_trace(path)
    assert len(trace) == 4
    assert [(issue.line_number, issue.kind) for issue in trace.issues] == [
        (7, kinds.RECORD), (8, kinds.RECORD), (9, kinds.UNKNOWN)
    ]  # fmt: skip
    with pytest.raises(UserError, match=r"line 7: field 4: expected a number, found 'long'"):
        read_trace(path, strict=True)


def test_a_job_that_ran_in_parts_is_one_job(tmp_path):
    (tmp_path / "a.gwf").write_text(line(7, 50) + line(7, 50, status=2) + line(7, 60, status=3))
    trace = read_trace(tmp_path / "a.gwf")
    assert (len(trace), trace.summary()) == (1, {kinds.PARTIAL: 2})


def test_a_file_without_jobs_is_refused(tmp_path):
    (tmp_path / "a.gwf").write_text("# nothing\n")
    with pytest.raises(UserError, match=r"a\.gwf: expected job lines of 29 fields, found none"):
        read_trace(tmp_path / "a.gwf")
