"""What a PBS server writes down: its accounting, and in its own log what it had forgotten."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

#: The exit status of a run whose MoM was asked to end it so that it can run again (JOB_EXEC_RERUN). The log
#: says that, too, but a server that is killed as soon as it has asked the MoM has not written it yet.
ON_REQUEST = -11


@dataclass(frozen=True)
class Record:
    """A line of the accounting; ``at``: seconds since the epoch."""

    at: float
    kind: str
    job_id: str
    fields: dict[str, str]


def accounting(text: str) -> Iterator[Record]:
    """The starts, ends, requeues and deletions of jobs and of elements of arrays."""
    for line in text.splitlines():
        stamp, kind, job_id, told = line.split(";", 3)
        if "[]" not in job_id and kind in "SERD":
            yield Record(_time(stamp), kind, job_id, dict(re.findall(r"(\S+?)=(\S*)", told)))


def forgotten_starts(text: str) -> Iterator[tuple[str, float]]:
    """The requeues that the log alone tells of, at the server's own start: the job, and when."""
    begun: set[str] = set()
    for line in text.splitlines():
        stamp, _, _, about, job_id, told = (line.split(";", 5) + [""] * 6)[:6]
        if about != "Job" or "[]" in job_id:
            continue
        if told.startswith("Job Run at request of"):
            begun.add(job_id)
        elif told.startswith("Requeueing job, substate: 41 ") and job_id in begun:
            begun.remove(job_id)
            yield job_id, _time(stamp)


def _time(stamp: str) -> float:
    return datetime.strptime(stamp, "%m/%d/%Y %H:%M:%S").timestamp()
