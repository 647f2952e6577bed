"""Grid Engine's accounting, the file ``accounting`` of a cell (accounting(5)).

A line has at least 45 fields between colons: the queue, host, group, owner, name and number of the job come
first, then its account and times. Times are seconds since 1970, in Univa's and Altair's newer releases
milliseconds. A parallel job has one line, or, with ``accounting_summary FALSE``, one a task of it as well:
these have a name in ``pe_taskid`` and are left out. The limit is ``h_rt`` as the category of the job has
it. A job that was started again has a line for each time, and each counts as a job.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from headway.errors import UserError
from headway.workload import trace as kinds
from headway.workload.accounting.fields import in_order, number, seconds
from headway.workload.accounting.records import accounting_format
from headway.workload.ended import Ended
from headway.workload.left_out import LeftOut

_FIELDS = 45
#: Where a line has what.
_QUEUE, _GROUP, _OWNER, _NAME, _JOB = 0, 2, 3, 4, 5
_SUBMIT, _START, _END, _FAILED, _STATUS = 8, 9, 10, 11, 12
_PROJECT, _SLOTS, _TASK, _CATEGORY, _PE_TASK = 31, 34, 35, 39, 41
_TIMES = {_SUBMIT: "submission_time", _START: "start_time", _END: "end_time"}
#: Seconds since 1970 are fewer, milliseconds are more.
_MILLISECONDS = 1e11
_LIMIT = re.compile(r"(?:^|[\s,])h_rt=(\d{1,9})(?=[,\s]|$)", re.ASCII)
_LINE = re.compile(rf"(?:[^:]*:){{5}}\d+:[^:]*:-?\d+:(?:\d+:){{5}}(?:[^:]*:){{{_FIELDS - 14}}}", re.ASCII)


def begins(lines: Sequence[str]) -> bool:
    """Whether these are the first lines of such a file."""
    return any(_LINE.match(line) for line in lines)


def ended(lines: Sequence[str], left: LeftOut, zoned: bool) -> list[Ended]:
    """The jobs that ended."""
    found = []
    for at, line in enumerate(lines, 1):
        if len(line.strip()) <= 1 or line.startswith("#"):
            continue
        with left.line(at):
            fields = line.rstrip("\r").split(":")
            if len(fields) < _FIELDS:
                raise UserError(f"{left.place(at)}: expected {_FIELDS} fields, found {len(fields)}")
            job = number(fields[_JOB], "job_number", left.place(at))
            if fields[_PE_TASK] not in ("NONE", ""):
                left.note(at, kinds.STEP, f"task {fields[_PE_TASK][:40]!r} of job {job}")
                continue
            found.append(_ended(job, fields, at, left.place(at)))
    return found


def _ended(job: int, fields: Sequence[str], at: int, place: str) -> Ended:
    task = number(fields[_TASK], "task_number", place)
    submit, start, end = (_moment(fields[column], name, place) for column, name in _TIMES.items())
    if start:
        in_order(start, end, place)
    limit = _LIMIT.search(fields[_CATEGORY])
    project = _named(fields[_PROJECT])
    return Ended(
        f"{job}[{task}]" if task else str(job),
        fields[_NAME],
        fields[_OWNER],
        "",
        fields[_QUEUE],
        0,
        number(fields[_SLOTS], "slots", place),
        end - start if start else 0.0,
        end,
        fields[_FAILED].split(" ")[0] == "0" and fields[_STATUS] == "0",
        submit or None,
        start or None,
        float(limit[1]) or None if limit else None,
        at,
        account=project,
        group=_named(fields[_GROUP]),
    )


def _moment(text: str, name: str, place: str) -> float:
    """Seconds since 1970; 0: there was none."""
    value = seconds(text, name, place, float("inf"))
    return value / 1000 if value >= _MILLISECONDS else value


def _named(text: str) -> str:
    return "" if text == "NONE" else text


FORMAT = accounting_format("Grid Engine's accounting", begins, ended)
