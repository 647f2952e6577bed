"""A run's schedule as a trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headway.model import JobDescription, Request
from headway.results import JobResult
from headway.workload import Trace, read_swf, schedule_records, trace_jobs, write_schedule

ORIGINAL = [7, 10, 5, 100, 4, 99.5, 640, -1, -1, 512, 1, 7, 8, 9, 2, 1, -1, -1]


def result(start: float | None, end: float | None, state: str, *, row: int = -1, **more: object) -> JobResult:
    job = JobDescription("7", 10.0, Request(processors=4, walltime=100.0), user="7")
    runtime = 0.0 if start is None or end is None else end - start
    return JobResult(job, start, end, state, runtime, row=row, **more)  # type: ignore[arg-type]


def trace() -> Trace:
    records = np.array([[1.0] * 18, ORIGINAL])
    return Trace("log.swf", ["; MaxProcs: 8"], {"MaxProcs": "8"}, records, np.array([2, 3]))


def test_replaces_what_happened_and_keeps_the_rest() -> None:
    (record,) = schedule_records([result(60.0, 150.0, "completed", row=1)], trace())
    assert record.tolist() == [7, 10, 50, 90, 4, 99.5, 640, 4, 100, 512, 1, 7, 8, 9, 2, 1, -1, -1]


@pytest.mark.parametrize(
    ("start", "end", "state", "wait", "runtime", "allocated", "status"),
    [
        (60.0, 150.0, "failed", 50, 90, 4, 0),
        (60.0, 160.0, "timed out", 50, 100, 4, 0),
        (60.0, 70.0, "cancelled", 50, 10, 4, 5),
        (10.0, 10.0, "completed", 0, 0, 4, 1),
        (60.0, None, "running", 50, -1, 4, -1),
        (None, None, "pending", -1, -1, -1, -1),
        (None, 50.0, "cancelled", -1, -1, -1, 5),
    ],
)
@pytest.mark.parametrize("with_trace", [True, False])
def test_states(
    start: float | None,
    end: float | None,
    state: str,
    wait: float,
    runtime: float,
    allocated: float,
    status: float,
    with_trace: bool,
) -> None:
    job = result(start, end, state, row=1 if with_trace else -1)
    (record,) = schedule_records([job], trace() if with_trace else None)
    assert record[[2, 3, 4, 10]].tolist() == [wait, runtime, allocated, status]
    assert record[[0, 1, 7, 8, 11]].tolist() == [7, 10, 4, 100, 7]


def test_allocated_processors_are_those_of_the_placement() -> None:
    job = result(60.0, 150.0, "completed", placement=(("n1", 4), ("n2", 4)))
    assert schedule_records([job])[0, 4] == 8


def test_a_job_from_no_trace_may_be_among_those_of_one() -> None:
    records = schedule_records(
        [result(60.0, 70.0, "completed", row=1), result(80.0, 90.0, "completed")], trace()
    )
    assert records[:, 2].tolist() == [50, 70]
    assert records[:, 5].tolist() == [99.5, -1]


def test_the_file_says_what_it_is_and_is_read_back_as_the_same_jobs(tmp_path: Path) -> None:
    path = tmp_path / "schedule.swf.gz"
    write_schedule(path, [result(60.0, 150.0, "completed", row=1)], trace(), notes=["policy easy"])
    schedule = read_swf(path, strict=True)
    assert schedule.header[0] == "; MaxProcs: 8"
    assert "SIMULATED" in schedule.header[1]
    assert schedule.header[-1] == "; Note: policy easy"
    (job,), _ = trace_jobs(schedule, 8)
    assert (job.job.submit_time, job.job.request, job.runtime) == (
        10,
        Request(processors=4, walltime=100.0),
        90,
    )


def test_without_a_trace_the_header_is_made_up(tmp_path: Path) -> None:
    path = tmp_path / "schedule.swf"
    write_schedule(path, [result(60.0, 150.0, "completed")], processors=8, epoch=1_000_000_000.0)
    schedule = read_swf(path)
    assert (schedule.max_processors, schedule.epoch) == (8, 1_000_000_000)
    assert schedule.fields["MaxJobs"] == "1"


def test_no_jobs_give_a_file_of_comments(tmp_path: Path) -> None:
    path = tmp_path / "schedule.swf"
    write_schedule(path, [])
    assert all(line.startswith(";") for line in path.read_text().splitlines())


def test_a_long_schedule_is_written_as_all_its_records(tmp_path: Path) -> None:
    count = 3 * 8192 + 1
    records = np.repeat([ORIGINAL], count, axis=0)
    records[:, 0] = np.arange(1, count + 1)
    original = Trace("log.swf", ["; MaxProcs: 8"], {"MaxProcs": "8"}, records, np.arange(count))
    jobs = [result(60.0, 150.0 + row, "completed", row=row) for row in range(count)]
    write_schedule(tmp_path / "schedule.swf", jobs, original)
    assert (read_swf(tmp_path / "schedule.swf").records == schedule_records(jobs, original)).all()
