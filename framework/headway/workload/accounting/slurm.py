"""Slurm's accounting: ``sacct -X -P -o JobIDRaw,JobName,User,Comment,NNodes,NCPUS,ElapsedRaw,End,State,...``.

Columns may be others and in any order. JobIDRaw (or JobID), ElapsedRaw, End and State must be there; Submit,
Start and TimelimitRaw (minutes; or Timelimit) are what a trace and users' estimates need. Steps, and jobs
that have not ended, are passed over. Times are of the machine's zone, so who runs while its clock is set back
may end before its start; ElapsedRaw tells. With ``SLURM_TIME_FORMAT=%s`` they are seconds since 1970.
"""

from __future__ import annotations

from headway.errors import UserError
from headway.workload.accounting.ended import Ended
from headway.workload.accounting.fields import LONGEST, count, duration, in_order, moment, seconds

#: Columns of which one is enough, and those that there must be.
IDS = ("JobIDRaw", "JobID")
_NEEDED = ("ElapsedRaw", "End", "State")
#: Jobs in these states have not ended for good.
_GOES_ON = ("PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING", "COMPLETING", "CONFIGURING")
#: What stands for a time that there is not.
_NO_TIME = ("", "Unknown", "None")
_NO_LIMIT = ("", "UNLIMITED", "Partition_Limit", "INVALID")
#: Seconds by which clocks are set back at the end of a summer.
_SUMMER = 3600.0


def of_slurm(lines: list[str], source: str, *, zoned: bool = False) -> list[Ended]:
    """The jobs that ended; ``zoned``: times that say no zone are refused."""
    header: list[str] = []
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        fields = line.rstrip("\r").split("|")
        place = f"{source}, line {number}"
        if not header:
            header = _header(fields, place)
            continue
        if len(fields) != len(header):
            raise UserError(f"{place}: expected {len(header)} fields, found {len(fields)}")
        if fields == header:  # several files, one after the other
            continue
        row = dict(zip(header, fields, strict=True))
        job_id = row.get("JobIDRaw") or row.get("JobID", "")
        state = row["State"].split(" ")[0].strip("+")
        if "." in job_id or state in _GOES_ON:
            continue
        if not state.isascii() or not state.replace("_", "").isupper():
            raise UserError(f"{place}: State: expected a word such as COMPLETED, found {row['State']!r}")
        end = moment(row["End"], "End", place, zoned=zoned)
        start = _moment(row, "Start", place, zoned)
        elapsed = seconds(row["ElapsedRaw"], "ElapsedRaw", place)
        if start is not None:
            if start > end and start - _SUMMER + elapsed == end:
                start -= _SUMMER
            in_order(start, end, place)
        found.append(
            Ended(
                job_id,
                row.get("JobName", ""),
                row.get("User", ""),
                row.get("Comment", "") or row.get("AdminComment", ""),
                row.get("Partition", ""),
                count(row, ("NNodes", "AllocNodes"), place),
                count(row, ("NCPUS", "AllocCPUS", "ReqCPUS"), place),
                elapsed,
                end,
                state == "COMPLETED",
                _moment(row, "Submit", place, zoned),
                start,
                _limit(row, place),
                number,
                account=row.get("Account", ""),
                group=row.get("Group", ""),
                qos=row.get("QOS", ""),
            )
        )
    return found


def _header(fields: list[str], place: str) -> list[str]:
    missing = [name for name in _NEEDED if name not in fields]
    if not any(name in fields for name in IDS):
        missing.insert(0, IDS[0])
    if missing:
        raise UserError(
            f"{place}: expected the column {missing[0]} of sacct -P, found {', '.join(fields)[:200]}"
        )
    return fields


def _moment(row: dict[str, str], name: str, place: str, zoned: bool) -> float | None:
    return None if row.get(name, "") in _NO_TIME else moment(row[name], name, place, zoned=zoned)


def _limit(row: dict[str, str], place: str) -> float | None:
    if (text := row.get("TimelimitRaw", "")) not in _NO_LIMIT:
        minutes = seconds(text, "TimelimitRaw", place, LONGEST / 60)
        return 60 * minutes or None
    text = row.get("Timelimit", "")
    return None if text in _NO_LIMIT else duration(text, "Timelimit", place)
