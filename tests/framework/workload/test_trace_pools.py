"""A trace's jobs go to pools by the partition or queue of their records."""

from __future__ import annotations

import io

import pytest

from headway.errors import UserError
from headway.workload import read_swf, trace_jobs
from headway.workload.trace_pools import TracePools, jobs_in_pools

HEADER = """\
; MaxProcs: 12
; Queue: 0 debug
; Queue: 1 batch
; Partition: 7 small
"""
#: Job number, submission, processors, queue, partition.
ROWS = [(1, 0, 2, 0, 7), (2, 1, 8, 1, 8), (3, 2, 2, 1, 7), (4, 3, 8, 0, 8), (5, 4, 1, 2, -1)]
SIZES = {"debug": 4, "batch": 8, "small": 4}


def text(rows=ROWS, header: str = HEADER) -> str:
    lines = [
        f"{n} {at} -1 10 {size} -1 -1 {size} 60 -1 1 1 1 1 {q} {p} -1 -1\n" for n, at, size, q, p in rows
    ]
    return header + "".join(lines)


def sent(chosen: TracePools, rows=ROWS, header: str = HEADER):
    trace = read_swf(io.BytesIO(text(rows, header).encode()))
    jobs, refused = jobs_in_pools(trace, trace_jobs(trace, 12)[0], chosen, SIZES)
    return {one.job.id: one.job.pool for one in jobs}, [(one.job_id, one.reason, one.line) for one in refused]


def test_by_the_number_of_the_queue_and_the_others_elsewhere():
    pools, refused = sent(TracePools("queue", {0: "debug", 1: "batch"}, "small"))
    assert pools == {"1": "debug", "2": "batch", "3": "batch", "5": "small"}
    assert refused == [("4", "larger than the pool debug (8 of 4 processors)", 8)]


def test_by_the_names_that_the_header_gives():
    assert sent(TracePools("queue", {"batch": "small", 0: "batch"}, "debug"), ROWS[2:])[0] == {
        "3": "small", "4": "batch", "5": "debug",
    }  # fmt: skip
    # Without a list, those that are called as pools are.
    assert sent(TracePools("partition", {}, "batch"))[0] == {
        "1": "small", "2": "batch", "3": "small", "4": "batch", "5": "batch",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (
            TracePools("queue", {0: "debug", 1: "batch"}),
            r":9: job 5: expected a queue that stands for a pool: 0 \(debug\), 1 \(batch\); found 2\. "
            r"Name its pool in trace_pools\.of, or a pool for all other jobs in trace_pools\.others",
        ),
        (TracePools("queue", {0: "nowhere"}), "one of the pools debug, batch, small, found 'nowhere'"),
        (TracePools("queue", {}, "nowhere"), "one of the pools debug, batch, small, found 'nowhere'"),
        (
            TracePools("queue", {"night": "batch"}),
            r"a queue that the header of .* names \(0 debug, 1 batch\), found 'night'",
        ),
        (TracePools("partition"), r"expected a partition that stands for a pool: 7 \(small\); found 8"),
    ],
)
def test_what_has_no_pool_is_named_with_its_line(chosen, message):
    with pytest.raises(UserError, match=message):
        sent(chosen)


def test_names_may_be_in_the_plural():
    trace = read_swf(
        io.BytesIO(text(header="; Partitions: 2\n; Partition: 1  a b\n;Partition:2 c\n").encode())
    )
    assert trace.names("Partition", "Partitions") == {1: "a", 2: "c"}
