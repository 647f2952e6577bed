"""The alternate form of ``qstat`` (``-a``): how OpenPBS 23.06 writes it, column by column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway_adapters.commands.pbs_text import cut, seconds

_HEAD = """
{server}: 
                                                            Req'd  Req'd   Elap
Job ID          Username Queue    Jobname    SessID NDS TSK Memory Time  S Time
--------------- -------- -------- ---------- ------ --- --- ------ ----- - -----
"""  # noqa: W291 (so does qstat)
#: What stands where there is nothing, in each width.
_NOTHING = "-- "


def listing(server: str, records: Mapping[str, Mapping[str, Any]]) -> str:
    """The jobs of a server; "" where there are none."""
    if not records:
        return ""
    lines = [_line(job_id, record) for job_id, record in records.items()]
    return _HEAD.format(server=server) + "".join(f"{line}\n" for line in lines)


def _line(job_id: str, record: Mapping[str, Any]) -> str:
    asked, used = record.get("Resource_List", {}), record.get("resources_used", {})
    columns = (
        f"{cut(job_id, 15):<15}",
        f"{cut(str(record['Job_Owner']).partition('@')[0], 8):<8}",
        f"{cut(str(record['queue']), 8):<8}",
        f"{cut(str(record['Job_Name']), 10):<10}",
        f"{record.get('session_id', _NOTHING)!s:>6}",
        f"{asked.get('nodect', _NOTHING)!s:>3}",
        f"{asked.get('ncpus', _NOTHING)!s:>3}",
        f"{cut(str(asked.get('mem', _NOTHING)), 6):>6}",
        f"{_hours(asked.get('walltime')):>5}",
        str(record["job_state"]),
        f"{_hours(used.get('walltime')):>5}",
    )
    return " ".join(columns)


def _hours(walltime: object) -> str:
    """A time as ``HH:MM``, cut to five signs as qstat does it."""
    if walltime is None:
        return _NOTHING
    minutes = int(seconds(str(walltime))) // 60
    return f"{minutes // 60:02}:{minutes % 60:02}"[:5]
