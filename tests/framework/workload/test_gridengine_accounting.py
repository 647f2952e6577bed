"""Grid Engine's accounting(5)."""

from __future__ import annotations

import pytest

from headway.errors import UserError
from headway.workload import Column
from headway.workload import trace as kinds
from headway.workload.accounting import accounted_trace, is_accounting, parse_accounting

SEEN = [Column.NUMBER, Column.SUBMIT, Column.WAIT, Column.RUNTIME, Column.ALLOCATED, Column.ESTIMATE,
        Column.STATUS, Column.USER, Column.GROUP, Column.QUEUE]  # fmt: skip


def record(job: int, submit: int, start: int, end: int, slots: int = 1, **more: object) -> str:
    told = {
        "queue": "all.q", "owner": "ann", "failed": "0", "status": 0, "task": 0, "category": "NONE",
        "part": "NONE", "project": "NONE", "scale": 1, "name": "sim", **more,
    }  # fmt: skip
    times = (int(time) * int(str(told["scale"])) for time in (submit, start, end))
    usage = [0] * 17
    fields = [told["queue"], "n1", "users", told["owner"], told["name"], job, "sge", 0, *times,
              told["failed"], told["status"], end - start, *usage, told["project"], "dept", "mpi", slots,
              told["task"], 1.5, 0.0, 0.0, told["category"], 0.0, told["part"], 0.0, 0, 0]  # fmt: skip
    assert len(fields) == 45
    return ":".join(map(str, fields)) + "\n"


LOG = (
    "# Version: 8.1.9\n"
    + record(3, 1491390300, 1491390307, 1491390413, 16, category="-u ann -l h_rt=3600,h_vmem=2G -pe mpi 16")
    + record(4, 1491390310, 1491390320, 1491390330, owner="bob", status=1, project="astro", queue="long.q")
)


def test_is_a_trace():
    assert is_accounting(LOG)
    trace = accounted_trace(LOG, "accounting")
    assert trace.records[:, SEEN].tolist() == [
        [3, 0, 7, 106, 16, 3600, 1, 1, 2, 1],
        [4, 10, 10, 10, 1, -1, 0, 2, 1, 2],
    ]
    assert trace.queue_names == {1: "all.q", 2: "long.q"}
    assert trace.epoch == 1491390300


def test_tells_histories_too():
    first, second = parse_accounting(LOG, "accounting")
    assert (first.job_id, first.name, first.user, first.pool) == ("4", "sim", "bob", "long.q")
    assert (first.completed, second.completed, second.limit) == (False, True, 3600)


def test_newer_releases_tell_milliseconds():
    log = record(3, 1491390300, 1491390307, 1491390413, scale=1000).rstrip("\n") + ":more:fields:of:them\n"
    (job,) = accounted_trace(log, "accounting").records
    assert job[[Column.WAIT, Column.RUNTIME]].tolist() == [7, 106]


def test_tasks_of_a_parallel_job_belong_to_it():
    tasks = "".join(record(3, 0, 1491390307, 1491390400, part=f"1.n{host}") for host in (2, 3))
    trace = accounted_trace(LOG + tasks, "accounting")
    assert (len(trace), trace.summary()) == (2, {kinds.STEP: 2})


def test_tasks_of_an_array_are_jobs():
    log = "".join(record(9, 100, 110 + task, 120, task=task) for task in (1, 2))
    assert [job.job_id for job in parse_accounting(log, "a")] == ["9[1]", "9[2]"]


def test_a_job_that_never_ran_is_counted():
    trace = accounted_trace(LOG + record(5, 1491390300, 0, 0, failed="26"), "a")
    assert (len(trace), trace.summary()) == (2, {kinds.NEVER_RAN: 1})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a:b:c\n", "a, line 4: expected 45 fields, found 3"),
        (record(5, 10, 20, 15), "a, line 4: expected an end from its start on, found 5 s before it"),
        (record(5, 10, 20, 25, name="x:y"), "a, line 4: job_number: expected a number from 0 on, found 'y'"),
    ],
)
def test_a_broken_line_is_named_and_left_out(line, said):
    with pytest.raises(UserError, match=said):
        accounted_trace(LOG + line, "a")
    assert len(accounted_trace(LOG + line, "a", strict=False)) == 2
