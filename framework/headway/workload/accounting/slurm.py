"""Slurm's accounting: what ``sacct`` prints, such as ``sacct -X -P -o JobID,JobName,User,Submit,...``.

Columns may be others, in any order and layout (:mod:`.columns`). There must be JobID (or JobIDRaw), State,
and what tells when a job ended and for how long it ran: End and ElapsedRaw, Elapsed or Start. Submit, Start
and Timelimit (or TimelimitRaw, minutes) are what a trace and users' estimates need. Steps, and jobs that
have not ended, are left out.

Times are of the machine's zone, so a job that runs while the machine's clock is set back may end before its
start; the time that it ran tells. With ``SLURM_TIME_FORMAT=%s`` they are seconds since 1970.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from headway.errors import UserError
from headway.workload import trace as kinds
from headway.workload.accounting.columns import IDS, Row, is_header, rows
from headway.workload.accounting.fields import LONGEST, count, duration, in_order, moment, seconds
from headway.workload.accounting.records import accounting_format
from headway.workload.ended import Ended
from headway.workload.left_out import LeftOut

#: Jobs in these states have not ended for good.
_GOES_ON = ("PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESIZING",
            "COMPLETING", "CONFIGURING", "SPECIAL_EXIT", "STAGE_OUT", "SIGNALING", "STOPPED")  # fmt: skip
#: What stands for a time that there is not.
_NO_TIME = ("", "Unknown", "None")
_NO_LIMIT = ("", "UNLIMITED", "Partition_Limit", "INVALID")
#: Seconds by which clocks are set back at the end of a summer.
_SUMMER = 3600.0


def begins(lines: Sequence[str]) -> bool:
    """Whether these are the first lines of sacct's output."""
    return any(is_header(line) for line in lines)


def ended(lines: Sequence[str], left: LeftOut, zoned: bool) -> list[Ended]:
    """The jobs that ended; ``zoned``: times that say no zone are broken."""
    found = []
    for number, ways in rows(lines, left, _check_columns):
        with left.line(number):
            job = _agreed(ways, left.place(number), zoned)
            if isinstance(job, Ended):
                found.append(replace(job, line=number))
            else:
                left.note(number, job, f"State {ways[0]['State']!r} of {_id(ways[0])!r}")
    return found


def _check_columns(names: Sequence[str], place: str) -> None:
    """Refuse an output that cannot tell what is needed of any job."""
    for needed in (IDS, ("State",), ("End", "Start"), ("Elapsed", "ElapsedRaw", "Start")):
        if not set(needed) & set(names):
            found = ", ".join(names)[:200]
            raise UserError(f"{place}: expected the column {needed[0]} of sacct, found {found}")
    if not {"End", "Elapsed", "ElapsedRaw"} & set(names):
        raise UserError(f"{place}: expected the column End of sacct, found {', '.join(names)[:200]}")


def _agreed(ways: list[Row], place: str, zoned: bool) -> Ended | str:
    """What a line says if all ways to read it that make sense say the same; else a :class:`UserError`.

    A kind of issue (:mod:`headway.workload.trace`) for a line that is no job which has ended.
    """
    if len(ways) == 1:
        return _job(ways[0], place, zoned)
    found: dict[Ended | str, None] = {}
    error: UserError | None = None
    for way in ways:
        try:
            job = _job(way, place, zoned)
        except UserError as wrong:
            error = error or wrong
            continue
        # What it is called and what was said about it is nowhere else: no way to read it is better.
        found[replace(job, name="", comment="") if isinstance(job, Ended) else job] = None
    if len(found) == 1:
        return next(iter(found))
    if not found:
        assert error is not None
        raise error
    raise UserError(
        f"{place}: expected {len(ways[0])} fields, found more, which can be read in {len(found)} ways: "
        "a name has the separator in it"
    )


def _job(row: Row, place: str, zoned: bool) -> Ended | str:
    job_id = _id(row)
    if "." in job_id:
        return kinds.STEP
    state, cut = row["State"].split(" ")[0], row["State"].endswith("+")
    state = state.rstrip("+")
    if state in _GOES_ON or (cut and any(whole.startswith(state) for whole in _GOES_ON)):
        return kinds.GOES_ON
    if not re.fullmatch(r"\d.*|", job_id):
        raise UserError(f"{place}: JobID: expected a number, found {job_id[:40]!r}")
    if not state.isascii() or not state.replace("_", "").isupper():
        raise UserError(f"{place}: State: expected a word such as COMPLETED, found {row['State']!r}")
    start, end, elapsed = _times(row, place, zoned)
    return Ended(
        job_id,
        row.get("JobName", ""),
        row.get("User", ""),
        row.get("Comment", "") or row.get("AdminComment", ""),
        row.get("Partition", ""),
        count(row, ("NNodes", "AllocNodes"), place),
        count(row, ("NCPUS", "AllocCPUS", "ReqCPUS"), place) or _of_tres(row),
        elapsed,
        end,
        state == "COMPLETED",
        _moment(row, "Submit", place, zoned),
        start,
        _limit(row, place),
        account=row.get("Account", ""),
        group=row.get("Group", ""),
        qos=row.get("QOS", ""),
        cancelled=state == "CANCELLED",
    )


def _id(row: Row) -> str:
    return row.get("JobIDRaw") or row.get("JobID", "")


def _times(row: Row, place: str, zoned: bool) -> tuple[float | None, float, float]:
    """Start (None: it never started), end, and the seconds between."""
    start = _moment(row, "Start", place, zoned)
    elapsed = _elapsed(row, place)
    if "End" in row:
        end = moment(row["End"], "End", place, zoned=zoned)
    elif start is not None and elapsed is not None:
        end = start + elapsed
    else:
        raise UserError(f"{place}: Start: expected a time, found {row['Start']!r} in a job that has ended")
    if elapsed is None:
        elapsed = 0.0 if start is None else end - start
    if start is not None:
        if start > end and start - _SUMMER + elapsed == end:
            start -= _SUMMER
        in_order(start, end, place)
    return start, end, elapsed


def _elapsed(row: Row, place: str) -> float | None:
    if text := row.get("ElapsedRaw", "").strip():
        return seconds(text, "ElapsedRaw", place)
    if text := row.get("Elapsed", "").strip():
        return duration(text, "Elapsed", place, least=0)
    if "ElapsedRaw" in row or "Elapsed" in row:
        raise UserError(f"{place}: Elapsed: expected a time such as 1-02:03:04, found none")
    return None


def _of_tres(row: Row) -> int:
    """Processors as AllocTRES and ReqTRES have them: cpu=4,mem=8G; 0: not told."""
    for name in ("AllocTRES", "ReqTRES"):
        if found := re.search(r"(?:^|,)cpu=(\d{1,9})(?:,|$)", row.get(name, ""), re.ASCII):
            return int(found[1])
    return 0


def _moment(row: Row, name: str, place: str, zoned: bool) -> float | None:
    return None if row.get(name, "") in _NO_TIME else moment(row[name], name, place, zoned=zoned)


def _limit(row: Row, place: str) -> float | None:
    if (text := row.get("TimelimitRaw", "")) not in _NO_LIMIT:
        minutes = seconds(text, "TimelimitRaw", place, LONGEST / 60)
        return 60 * minutes or None
    text = row.get("Timelimit", "")
    return None if text in _NO_LIMIT or text.startswith("Partition") else duration(text, "Timelimit", place)


FORMAT = accounting_format("Slurm's accounting (sacct)", begins, ended)
