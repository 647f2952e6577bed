"""What the fields of a trace mean to an emulation."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from headway.errors import UserError
from headway.model import JobDescription, Request
from headway.results import Refused
from headway.workload import Trace, TraceJob, read_swf, to_records, trace_jobs


def record(**fields: float) -> list[float]:
    """A record with the fields named by their number in the format, such as ``f8=4``."""
    values = {1: 1.0, 2: 0.0, 4: 100.0, 5: 2.0, 8: 4.0, 9: 200.0, 11: 1.0}
    values |= {int(name[1:]): value for name, value in fields.items()}
    return [values.get(number, -1.0) for number in range(1, 19)]


def trace(*records: list[float]) -> Trace:
    rows = np.array(records)
    return Trace("log.swf", records=rows, line_numbers=np.arange(len(rows)) + 11)


def only_job(**fields: float) -> TraceJob:
    (job,), refused = trace_jobs(trace(record(**fields)), 100)
    assert refused == []
    return job


class TestSize:
    def test_is_field_8(self) -> None:
        assert only_job(f8=4, f5=2).job.request.processors == 4

    @pytest.mark.parametrize("requested", [-1, 0])
    def test_is_field_5_where_field_8_is_not_positive(self, requested: int) -> None:
        assert only_job(f8=requested, f5=2).job.request.processors == 2


class TestEstimateAndRuntime:
    def test_estimate_is_field_9(self) -> None:
        assert only_job(f9=200, f4=100).job.request.walltime == 200

    @pytest.mark.parametrize("estimate", [-1, 0])
    def test_estimate_is_the_runtime_where_field_9_is_not_positive(self, estimate: int) -> None:
        assert only_job(f9=estimate, f4=100).job.request.walltime == 100

    def test_runtime_is_not_cut_at_the_estimate(self) -> None:
        job = only_job(f9=50, f4=100)
        assert (job.job.request.walltime, job.runtime) == (50, 100)

    def test_both_may_be_zero(self) -> None:
        job = only_job(f9=-1, f4=0)
        assert (job.job.request.walltime, job.runtime) == (0, 0)


class TestRefusal:
    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({"f4": -1}, "unknown runtime (-1)"),
            ({"f5": -1, "f8": 0}, "no positive number of processors (-1)"),
            ({"f5": 0, "f8": -1}, "no positive number of processors (0)"),
            ({"f8": 101}, "larger than the pool (101 of 100 processors)"),
        ],
    )
    def test_names_job_line_and_reason(self, fields: dict[str, float], reason: str) -> None:
        jobs, refused = trace_jobs(trace(record(f1=7), record(f1=8, **fields)), 100)
        assert [job.job.id for job in jobs] == ["7"]
        assert refused == [Refused("8", reason, 12)]

    def test_a_job_as_large_as_the_pool_is_accepted(self) -> None:
        assert only_job(f8=100).job.request.processors == 100

    def test_without_a_pool_size_none_is_too_large(self) -> None:
        jobs, refused = trace_jobs(trace(record(f8=10**9)), None)
        assert (len(jobs), refused) == (1, [])


class TestLimit:
    jobs = trace(record(f1=1), record(f1=2, f4=-1), record(f1=3), record(f1=4, f4=-1), record(f1=5))

    def test_counts_accepted_jobs(self) -> None:
        jobs, refused = trace_jobs(self.jobs, 100, limit=2)
        assert [job.job.id for job in jobs] == ["1", "3"]
        assert [job.job_id for job in refused] == ["2"]

    @pytest.mark.parametrize("limit", [3, 4, None])
    def test_may_be_more_than_there_are(self, limit: int | None) -> None:
        jobs, refused = trace_jobs(self.jobs, 100, limit=limit)
        assert (len(jobs), len(refused)) == (3, 2)

    def test_and_pool_size_must_be_positive(self) -> None:
        with pytest.raises(UserError, match="limit: expected at least 1, found 0"):
            trace_jobs(self.jobs, 100, limit=0)
        with pytest.raises(UserError, match="processors: expected at least 1, found 0"):
            trace_jobs(self.jobs, 0)


class TestDescription:
    def test_has_user_group_name_queue_and_pool(self) -> None:
        job = only_job(f2=33, f12=5, f13=6, f14=7, f15=0)
        assert job.job == JobDescription(
            id="1",
            submit_time=33,
            request=Request(processors=4, walltime=200),
            pool="pool",
            user="5",
            group="6",
            name="7",
            qos="0",
        )

    def test_leaves_out_what_is_not_known(self) -> None:
        job = only_job(f12=-1, f13=0, f14=-1, f15=-1).job
        assert (job.user, job.group, job.name, job.qos) == ("", "", "", "")

    def test_numbers_repeated_ids(self) -> None:
        jobs, refused = trace_jobs(
            trace(record(f1=15), record(f1=15, f4=-1), record(f1=15), record(f1=16)), 100
        )
        assert [job.job.id for job in jobs] == ["15", "15#3", "16"]
        assert [job.job_id for job in refused] == ["15#2"]

    def test_knows_its_row(self) -> None:
        jobs, _ = trace_jobs(trace(record(f1=1, f4=-1), record(f1=2), record(f1=3)), 100)
        assert [job.row for job in jobs] == [1, 2]

    @pytest.mark.parametrize("status", [1, 0, 5, -1, 3])
    def test_completes_whatever_happened_to_it_under_another_scheduler(self, status: int) -> None:
        assert only_job(f11=status).outcome == "completed"

    def test_equal_requests_are_one_object(self) -> None:
        jobs, _ = trace_jobs(trace(record(f1=1), record(f1=2), record(f1=3, f8=5)), 100)
        assert jobs[0].job.request is jobs[1].job.request
        assert jobs[2].job.request == Request(processors=5, walltime=200)


class TestToRecords:
    def test_gives_the_trace_jobs_back(self) -> None:
        original, _ = trace_jobs(
            trace(record(f1=1, f12=5, f15=2), record(f1=4, f2=9, f11=0, f13=8, f14=3)), 100
        )
        again, _ = trace_jobs(trace(*to_records(original).tolist()), 100)
        assert again == original

    def test_numbers_what_has_names(self) -> None:
        request = Request(processors=2, walltime=60, memory_per_processor=2**21)
        jobs = [
            TraceJob(JobDescription(f"job-{i}", float(i), request, user=user), 10.0, outcome)
            for i, (user, outcome) in enumerate(
                [("eve", "timed out"), ("", "vanished"), ("bob", "completed")]
            )
        ]
        records = to_records(jobs)
        assert records[:, 0].tolist() == [1, 2, 3]
        assert records[:, 11].tolist() == [1, -1, 2]
        assert records[:, 10].tolist() == [0, -1, 1]
        assert records[0, :10].tolist() == [1, 0, -1, 10, 2, -1, -1, 2, 60, 2048]

    def test_of_no_jobs_is_empty(self) -> None:
        assert to_records([]).shape == (0, 18)


@pytest.mark.traces
@pytest.mark.parametrize("processors", [100, 16])
def test_a_real_trace_is_accepted_as_counted_by_hand(trace_dir: Path, processors: int) -> None:
    path = trace_dir / "KTH-SP2-1996-2.1-cln.swf.gz"
    expected: dict[str, tuple[float, float, float]] = {}
    refused = 0
    with gzip.open(path, "rt", encoding="latin-1") as file:
        for line in file:
            tokens = line.split()
            if not tokens or tokens[0].startswith(";"):
                continue
            runtime, allocated, requested, estimate = (float(tokens[i]) for i in (3, 4, 7, 8))
            size = requested if requested > 0 else allocated
            if runtime < 0 or size <= 0 or size > processors:
                refused += 1
            else:
                expected[tokens[0]] = (size, runtime, estimate if estimate > 0 else runtime)
    jobs, not_taken = trace_jobs(read_swf(path), processors)
    assert {j.job.id: (j.job.request.processors, j.runtime, j.job.request.walltime) for j in jobs} == expected
    assert len(not_taken) == refused
    assert (refused > 0) == (processors == 16)
