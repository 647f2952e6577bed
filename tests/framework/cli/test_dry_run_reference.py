"""EASY over a real trace, job by job, against the definition written down once more.

The trace is read and the schedule is made here without any code of the project.
"""

from __future__ import annotations

import csv
import gzip
import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from commandline import Headway

TRACE = "KTH-SP2-1996-2.1-cln.swf.gz"
COLUMNS = ["job_id", "user", "submit_time", "start_time", "end_time"]
COLUMNS += ["processors", "estimate", "runtime", "state"]


@dataclass
class Job:
    name: str
    user: str
    submit: int
    size: int
    estimate: int
    #: What it would need; it is ended at its estimate.
    needs: int
    start: int = -1

    @property
    def runtime(self) -> int:
        return min(self.needs, self.estimate)

    def row(self) -> list[str]:
        state = "timed out" if self.needs > self.estimate else "completed"
        end = self.start + self.runtime
        numbers = (self.submit, self.start, end, self.size, self.estimate, self.runtime)
        return [self.name, self.user, *map(str, numbers), state]


def machine_size(path: Path) -> int:
    with gzip.open(path, "rt", encoding="latin-1") as stream:
        return next(int(line.split(":")[1]) for line in stream if line.startswith("; MaxProcs:"))


def jobs_in(path: Path, processors: int, limit: int | None) -> list[Job]:
    """The accepted jobs, in order of submission, at equal times in that of the file."""
    jobs = []
    with gzip.open(path, "rt", encoding="latin-1") as stream:
        for line in stream:
            if line.startswith(";") or not line.strip():
                continue
            fields = [int(float(word)) for word in line.split()]
            size = fields[7] if fields[7] > 0 else fields[4]
            runtime = fields[3]
            estimate = fields[8] if fields[8] > 0 else runtime
            if runtime >= 0 and 0 < size <= processors:
                user = str(fields[11]) if fields[11] > 0 else ""
                jobs.append(Job(str(fields[0]), user, fields[1], size, estimate, runtime))
    jobs.sort(key=lambda job: job.submit)
    return jobs[:limit]


def schedule(jobs: list[Job], processors: int) -> None:
    """Give each job its start: completions, then arrivals, then a cycle, at every instant."""
    queue: list[Job] = []
    ends: list[tuple[int, int, Job]] = []
    free = processors
    arrived = 0
    pushed = count()
    while ends or arrived < len(jobs):
        now = min(
            ends[0][0] if ends else jobs[arrived].submit,
            jobs[arrived].submit if arrived < len(jobs) else ends[0][0],
        )
        # A job of runtime 0 that a cycle starts ends in a further round at the same instant.
        while ends and ends[0][0] == now:
            free += heapq.heappop(ends)[2].size
        while arrived < len(jobs) and jobs[arrived].submit == now:
            queue.append(jobs[arrived])
            arrived += 1
        running = [job for *_, job in ends]
        for job in list(starts(queue, running, free, now)):
            job.start = now
            free -= job.size
            assert free >= 0
            # The running number makes entries of one instant comparable.
            heapq.heappush(ends, (now + job.runtime, next(pushed), job))
            queue.remove(job)


def starts(queue: list[Job], running: list[Job], free: int, now: int) -> Iterator[Job]:
    """What EASY starts now, in the order of the queue."""
    expected = [(job.start + job.estimate, job.size) for job in running]
    waiting = list(queue)
    while waiting and waiting[0].size <= free:
        job = waiting.pop(0)
        free -= job.size
        expected.append((now + job.estimate, job.size))
        yield job
    if not waiting:
        return
    head, *others = waiting
    there = free
    shadow = None
    for end, size in sorted(expected):
        if shadow is not None and end > shadow:
            break
        there += size
        if shadow is None and there >= head.size:
            shadow = end
    assert shadow is not None
    extra = there - head.size
    for job in others:
        if job.size > free:
            continue
        if now + job.estimate > shadow:
            if job.size > extra:
                continue
            extra -= job.size
        free -= job.size
        yield job


@pytest.mark.traces
@pytest.mark.long
@pytest.mark.parametrize("limit", [None, 5000])
def test_easy_over_a_real_trace_is_the_defined_schedule_job_by_job(
    headway: Headway, trace_dir: Path, tmp_path: Path, limit: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "headway.report.html.write_html", lambda *_, **__: None
    )  # takes longest, is not looked at
    path = trace_dir / TRACE
    processors = machine_size(path)
    jobs = jobs_in(path, processors, limit)
    schedule(jobs, processors)
    options = ["--limit", limit] if limit else []
    ran = headway("dry-run", "--trace", path, "--policy", "easy", "--out", "out", *options)
    assert ran.code == 0
    with (tmp_path / "out" / "jobs.csv").open(newline="") as stream:
        header, *rows = csv.reader(stream)
    assert header[: len(COLUMNS)] == COLUMNS
    differing = [
        (row[: len(COLUMNS)], job.row())
        for row, job in zip(rows, jobs, strict=True)
        if row[: len(COLUMNS)] != job.row()
    ]
    assert not differing[:3]
    assert any(job.start > job.submit for job in jobs), "some had to wait"
