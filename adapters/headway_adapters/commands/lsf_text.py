"""How LSF writes things: tables, the long listing of a job, times and limits.

The forms follow the recorded outputs of volclava 2.2; forms that only IBM Spectrum LSF has are
after its documentation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_LOAD = (
    "           r15s   r1m  r15m   ut      pg    io   ls    it    tmp    swp    mem\n"
    " loadSched   -     -     -     -       -     -    -     -     -      -      -  \n"
    " loadStop    -     -     -     -       -     -    -     -     -      -      -  \n"
)
_RULE = "-" * 78 + "\n"


def jobs_table(rows: Sequence[Sequence[str]], *, head: bool = True) -> str:
    """``bjobs -w``: id, user, state, queue, from host, execution host, name, submission."""
    title = "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME\n"
    lines = [title] if head else []
    for job_id, user, stat, queue, origin, hosts, name, submitted in rows:
        start = f"{job_id:<7} {user:<7} {stat:<5} {queue:<10} {origin:<11}"
        lines.append(f"{start} {hosts or '   -':<11} {name:<10} {submitted}\n")
    return "".join(lines)


def pending_table(entries: Sequence[tuple[Sequence[str], str]]) -> str:
    """``bjobs -p``: the job, then why it waits."""
    lines = ["JOBID   USER    STAT  QUEUE       FROM_HOST      JOB_NAME           SUBMIT_TIME\n"]
    for (job_id, user, stat, queue, origin, name, submitted), reason in entries:
        lines.append(
            f"{job_id:<7} {user:<7} {stat:<5} {queue:<11} {origin:<14} {name:<18} {submitted}\n {reason};\n"
        )
    return "".join(lines)


def hosts_table(rows: Sequence[Sequence[str | int]]) -> str:
    """``bhosts -w``: name, status, slots, jobs, running, system- and user-suspended."""
    head = "HOST_NAME          STATUS          JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV \n"
    return head + "".join(
        f"{name:<18} {status:<15} {'-':>4} {most:>6} {jobs:>6} {run:>6} {ssusp:>6} {ususp:>6} {0:>6}\n"
        for name, status, most, jobs, run, ssusp, ususp in rows
    )


def queues_table(rows: Sequence[Sequence[str | int]]) -> str:
    """``bqueues -w``: name, priority, status, jobs, pending, running, suspended."""
    head = "QUEUE_NAME      PRIO STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN  SUSP \n"
    none = f"{'-':>5}" * 4
    return head + "".join(
        f"{name:<15} {priority:>3}  {status:<14}{none} {jobs:>5} {pending:>5} {run:>5} {suspended:>5}\n"
        for name, priority, status, jobs, pending, run, suspended in rows
    )


def queue_long(name: str, priority: int, status: str, counts: Sequence[int]) -> str:
    """``bqueues -l``; ``counts``: jobs, pending, running, system- and user-suspended."""
    jobs, pending, run, ssusp, ususp = counts
    none = f"{'-':>5}" * 4
    row = f"{priority:>3}  {20:>3}  {status:<14}{none} {jobs:>5} {pending:>5} {run:>5} {ssusp:>5} {ususp:>5}"
    return (
        f"\nQUEUE: {name}\n  -- An emulated queue.\n\nPARAMETERS/STATISTICS\n"
        "PRIO NICE STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN SSUSP USUSP  RSV \n"
        f"{row} {0:>4}\n"
        "Interval for a host to accept two jobs is 0 seconds\n"
        f"\nSCHEDULING PARAMETERS\n{_LOAD}\nUSERS:  all\nHOSTS:  all\n\n"
    )


def servers_table(rows: Sequence[tuple[str, int, int]]) -> str:
    """``lshosts -w``: name, processors, memory in bytes."""
    head = "HOST_NAME                       type       model  cpuf ncpus maxmem maxswp server RESOURCES\n"
    return head + "".join(
        f"{name:<24} {'DEFAULT':>11} {'DEFAULT':>11} {'1.0':>5} {processors:>5} {memory >> 20:>5}M {'-':>6} "
        f"{'Yes':>6} ()\n"
        for name, processors, memory in rows
    )


def load_table(rows: Sequence[tuple[str, str, int]]) -> str:
    """``lsload -w``: name, status, memory in bytes."""
    head = "HOST_NAME               status  r15s   r1m  r15m   ut    pg  ls    it   tmp   swp   mem\n"
    return head + "".join(
        f"{name:<20} {status:>9}   0.0   0.0   0.0   0%   0.0   0     2   79G    0M {memory >> 30:>4}G\n"
        for name, status, memory in rows
    )


def long_job(
    head: str, history: Sequence[str], run_limit: str, reason: tuple[str, str] | None, needs: str, runs: bool,
    *, limit_first: bool,
) -> str:  # fmt: skip
    """One job of ``bjobs -l`` (``limit_first``: the limit follows the submission) or ``bjobs -UF``."""
    limit = [f"\n RUNLIMIT                \n {run_limit:<24}\n"] if run_limit else []
    why = [f" {reason[0]}:\n {reason[1]};\n"] if reason else []
    first, *later = (line + "\n" for line in history)
    parts = [first, *limit, *later, *why] if limit_first else [first, *later, *why, *limit]
    return (
        f"\n{head}\n{''.join(parts)}\n SCHEDULING PARAMETERS:\n{_LOAD}\n RESOURCE REQUIREMENT DETAILS:\n"
        f" Combined: {needs}\n Effective: {needs if runs else '-'}\n"
    )


def event(when: str, what: str) -> str:
    """One line of ``bhist -l``, folded."""
    line, rest = "", f"{when}: {what};"
    width = 79
    while len(rest) > width:
        line += rest[:width] + "\n" + " " * 21
        rest, width = rest[width:], 79 - 21
    return line + rest


def joined(blocks: Sequence[str]) -> str:
    """Long listings of several jobs."""
    return _RULE.join(blocks) + ("\n" if blocks else "")


def minutes(seconds: float) -> str:
    """A limit as ``10.0 min``, or nothing."""
    return "" if math.isinf(seconds) else f"{seconds / 60:.1f} min"


def run_limit(text: str) -> float:
    """Seconds of ``[HOURS:]MINUTES[/HOST]``. Raises ValueError."""
    amount = text.partition("/")[0]
    hours, colon, rest = amount.rpartition(":")
    if not rest.isdecimal() or (colon and not hours.isdecimal()):
        raise ValueError(text)
    seconds = (int(hours or 0) * 60 + int(rest)) * 60.0
    if seconds <= 0:
        raise ValueError(text)
    return seconds
