"""Jobs that ran in parts (status 2, 3, 4) are one job each, whichever lines a log has of them."""

from __future__ import annotations

import io

import pytest

from headway.workload import Column, read_swf
from headway.workload import trace as kinds


def line(number: int, submit: int, runtime: int, status: int, size: int = 4, estimate: int = -1) -> str:
    return f"{number} {submit} 0 {runtime} {size} -1 -1 -1 {estimate} -1 {status} 1 1 1 1 1 -1 -1\n"


def read(text: str, **more):
    return read_swf(io.BytesIO(text.encode()), **more)


SEEN = [Column.NUMBER, Column.SUBMIT, Column.RUNTIME, Column.ALLOCATED, Column.STATUS]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("status", [0, 1, 5, -1])
def test_parts_belong_to_the_line_of_their_job_wherever_it_stands(before, status):
    own, parts = line(1, 0, 300, status), line(1, 0, 100, 2) + line(1, -1, 100, 2) + line(1, -1, 100, 3)
    trace = read((own + parts if before else parts + own) + line(2, 10, 60, 1), strict=True)
    assert trace.records[:, SEEN].tolist() == [[1, 0, 300, 4, status], [2, 10, 60, 4, 1]]
    assert trace.summary() == {kinds.PARTIAL: 3}
    assert trace.describe_issues() == [
        "trace: 3 lines skipped: partial execution, which the line of its job counts"
    ]


@pytest.mark.parametrize(("last", "status"), [(3, 1), (4, 0), (2, -1)])
def test_parts_without_a_line_of_their_job_are_joined(last, status):
    text = line(1, -1, 100, 2) + line(1, 5, 50, 2, size=8, estimate=400) + line(1, -1, 25, last)
    trace = read(text + line(2, 10, 60, 1), strict=True)
    assert trace.records[:, SEEN].tolist() == [[1, 5, 175, 8, status], [2, 10, 60, 4, 1]]
    assert trace.records[0, Column.ESTIMATE] == 400
    assert trace.line_numbers.tolist() == [1, 4]
    assert trace.summary() == {kinds.JOINED: 1, kinds.PARTIAL: 2}


def test_a_log_of_nothing_but_parts_has_a_job_for_each_number():
    trace = read(line(1, 0, 10, 2) + line(2, 3, 7, 3) + line(1, -1, 5, 4))
    assert trace.records[:, SEEN].tolist() == [[1, 0, 15, 4, 0], [2, 3, 7, 4, 1]]


def test_the_runtime_of_parts_is_unknown_where_that_of_a_part_is():
    (record,) = read(line(1, 0, 10, 2) + line(1, -1, -1, 3)).records
    assert record[Column.RUNTIME] == -1


def test_a_log_without_parts_is_read_as_it_stands():
    trace = read(line(1, 0, 10, 1) + line(1, 3, 7, 0))
    assert (len(trace), trace.summary()) == (2, {kinds.DUPLICATE: 1})
