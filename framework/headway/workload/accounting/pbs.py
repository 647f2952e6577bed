"""PBS's and Torque's accounting: the server's logs (``server_priv/accounting/*``).

Their records of ends (``E``) count, but for that of a job array as a whole (``25[].server``): its subjobs
have their own. How many processors a job had: its slots in ``exec_host``, which both systems write; else what
was asked for, ``nodes=2:ppn=4`` of Torque before ``ncpus``, which Torque tells for one node or by default.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from headway.errors import UserError
from headway.workload.accounting.fields import count, duration, in_order, seconds
from headway.workload.accounting.records import accounting_format
from headway.workload.ended import Ended
from headway.workload.left_out import LeftOut

_LINE = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z];", re.ASCII)
_WORD = re.compile(r"([^\s=]+)=(\"[^\"]*\"|\S*)")
#: A job's part of a host: n1/0 (a slot), n1/0*4 (PBS: 4 processors), n1/0-3,7 (Torque: slots).
_SLOTS = re.compile(
    r"[^/+]+/(?:\d{1,7}\*(\d{1,7})|(\d{1,7}(?:-\d{1,7})?(?:,\d{1,7}(?:-\d{1,7})?)*))", re.ASCII
)
_CHUNK = re.compile(r"(\d{1,7})(?=:|$)|[A-Za-z]", re.ASCII)
_PPN = re.compile(r":ppn=(\d{1,7})(?=:|$)", re.ASCII)


def begins(lines: Sequence[str]) -> bool:
    """Whether these are the first lines of such a log."""
    return any(_LINE.match(line) for line in lines)


def ended(lines: Sequence[str], left: LeftOut, zoned: bool) -> list[Ended]:
    """The jobs that ended; times are seconds since 1970."""
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            with left.line(number):
                if (job := _ended(line, number, left.place(number))) is not None:
                    found.append(job)
    return found


def _ended(line: str, number: int, place: str) -> Ended | None:
    parts = line.split(";", 3)
    if len(parts) < 4 or not _LINE.match(line):
        raise UserError(f"{place}: expected MM/DD/YYYY HH:MM:SS;TYPE;JOB;..., found {line[:40]!r}")
    if parts[1] != "E" or "[]" in parts[2]:
        return None
    words = {name: value.strip('"') for name, value in _WORD.findall(parts[3])}
    for name in ("start", "end"):
        if name not in words:
            raise UserError(f"{place}: expected {name}=, found a record of an end without it")
    start, end = (seconds(words[name], name, place, math.inf) for name in ("start", "end"))
    in_order(start, end, place)
    limit = words.get("Resource_List.walltime", "")
    submit = words.get("ctime") or words.get("qtime")
    return Ended(
        parts[2],
        words.get("jobname", ""),
        words.get("user", ""),
        words.get("account", ""),
        words.get("queue", ""),
        count(words, ("Resource_List.nodect", "unique_node_count"), place),
        _processors(words, place),
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


def _processors(words: Mapping[str, str], place: str) -> int:
    """How many processors a job had; 0: its record does not tell."""
    return (
        _slots(words.get("exec_host", ""))
        or count(words, ("total_execution_slots",), place)
        or _asked(words.get("Resource_List.nodes", ""))
        or count(words, ("Resource_List.ncpus", "Resource_List.procs"), place)
    )


def _slots(hosts: str) -> int:
    """The processors of an ``exec_host``; 0 if it is not as it should be."""
    found = [_SLOTS.fullmatch(host) for host in hosts.split("+")] if hosts else []
    return sum(_of_host(one) for one in found if one) if all(found) else 0


def _of_host(found: re.Match[str]) -> int:
    if found[1]:
        return int(found[1])
    spans = (span.partition("-") for span in found[2].split(","))
    return sum(int(last or first) - int(first) + 1 for first, _, last in spans)


def _asked(nodes: str) -> int:
    """The processors of Torque's ``nodes=2:ppn=4+1:big``; 0 unless it says how many on a node."""
    if ":ppn=" not in nodes:
        return 0
    total = 0
    for chunk in nodes.split("+"):
        first = _CHUNK.match(chunk)
        if first is None:
            return 0
        each = _PPN.search(chunk)
        total += int(first[1] or 1) * (int(each[1]) if each else 1)
    return total


FORMAT = accounting_format("PBS's and Torque's accounting (server_priv/accounting)", begins, ended)
