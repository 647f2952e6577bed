"""PBS's accounting: the server's logs (``server_priv/accounting/*``).

Their records of ends (``E``) count, but for that of a job array as a whole (``25[].server``): its subjobs
have their own.
"""

from __future__ import annotations

import math
import re

from headway.errors import UserError
from headway.workload.accounting.ended import Ended
from headway.workload.accounting.fields import count, duration, in_order, seconds

LINE = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z];", re.ASCII)
_WORD = re.compile(r"([^\s=]+)=(\"[^\"]*\"|\S*)")


def of_pbs(lines: list[str], source: str) -> list[Ended]:
    """The jobs that ended."""
    found = []
    for number, line in enumerate(lines, 1):
        place = f"{source}, line {number}"
        if not line.strip():
            continue
        parts = line.split(";", 3)
        if len(parts) < 4 or not LINE.match(line):
            raise UserError(f"{place}: expected MM/DD/YYYY HH:MM:SS;TYPE;JOB;..., found {line[:40]!r}")
        if parts[1] != "E" or "[]" in parts[2]:
            continue
        words = {name: value.strip('"') for name, value in _WORD.findall(parts[3])}
        for name in ("start", "end"):
            if name not in words:
                raise UserError(f"{place}: expected {name}=, found a record of an end without it")
        start, end = (seconds(words[name], name, place, math.inf) for name in ("start", "end"))
        in_order(start, end, place)
        limit = words.get("Resource_List.walltime", "")
        submit = words.get("ctime") or words.get("qtime")
        found.append(
            Ended(
                parts[2],
                words.get("jobname", ""),
                words.get("user", ""),
                words.get("account", ""),
                words.get("queue", ""),
                count(words, ("Resource_List.nodect",), place),
                count(words, ("Resource_List.ncpus",), place),
                end - start,
                end,
                words.get("Exit_status") == "0",
                seconds(submit, "ctime", place, math.inf) if submit else None,
                start,
                duration(limit, "Resource_List.walltime", place) if limit else None,
                number,
                account=words.get("account", ""),
                group=words.get("group", ""),
            )
        )
    return found
