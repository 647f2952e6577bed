"""How long it takes to understand a long queue. Target: 10,000 jobs on 2,000 hosts in under 1.5 s."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from headway_adapters.lsf import cluster_listing, hosts, listing, reader
from headway_adapters.lsf.remembered import Remembered
from headway_adapters.lsf.values import Calendar
from headway_adapters.polling import differ
from headway_adapters.polling.snapshot import Snapshot

NOW = 1795243150.0
JOBS, HOSTS = 10_000, 2_000
#: Jobs of a large cluster, and how many of these are called "job 77..." and have not ended.
MANY, CHANGED = 50_000, 89
HEADER = "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME\n"
SEPARATOR = "-" * 78 + "\n"
DETAILS = """
Job <{number}>, Job Name <job {number}>, User <user{user}>, Project <default>, Status <{stat}>, \
Queue <{queue}>, Command <sleep {number}>
Sat Nov 21 06:37:44: Submitted from host <login>, CWD </home/user{user}>, 4 Task(s), \
Requested Resources <rusage[mem={memory}]>{more};
{middle}
 RUNLIMIT                
 {limit}.0 min                

 SCHEDULING PARAMETERS:
           r15s   r1m  r15m   ut      pg    io   ls    it    tmp    swp    mem
 loadSched   -     -     -     -       -     -    -     -     -      -      -  
 loadStop    -     -     -     -       -     -    -     -     -      -      -  

 RESOURCE REQUIREMENT DETAILS:
 Combined: select[type == local] order[r15s:pg] rusage[mem={memory}.00] span[hosts=1]
 Effective: -
"""  # noqa: W291


def stat(number: int) -> str:
    return ("RUN", "PEND", "PEND", "PEND", "DONE")[number % 5]


def host(number: int) -> str:
    return f"node{number % HOSTS:04d}"


def queue(number: int) -> str:
    return ("normal", "short", "long")[number % 3]


def tables() -> tuple[str, str, str]:
    """``lshosts -w``, ``bhosts -w`` and ``bqueues -l``."""
    static = "HOST_NAME type model cpuf ncpus maxmem maxswp server RESOURCES\n"
    hosts = "HOST_NAME STATUS JL/U MAX NJOBS RUN SSUSP USUSP RSV\n"
    for number in range(HOSTS):
        static += f"{host(number)} X86_64 Intel 60.0 16 64000M 8000M Yes (mg bigmem)\n"
        hosts += f"{host(number)} ok - 16 4 4 0 0 0\n"
    queues = ""
    for name in ("normal", "short", "long"):
        queues += f"\nQUEUE: {name}\nPRIO NICE STATUS\n 30 20 Open:Inact_Adm\nHOSTS:  all\n"
    return static, hosts, queues


def as_json(jobs: int = JOBS) -> bytes:
    records = [
        {
            "JOBID": str(number), "JOBINDEX": "0", "STAT": stat(number), "USER": f"user{number % 50}",
            "USER_GROUP": "-", "QUEUE": queue(number), "JOB_NAME": f"job {number}", "JOB_DESCRIPTION": "-",
            "PROJ_NAME": "default", "FROM_HOST": "login", "EXEC_HOST": f"4*{host(number)}",
            "ALLOC_SLOT": "-" if stat(number) == "PEND" else f"4*{host(number)}", "NALLOC_SLOT": "4",
            "ASK_HOSTS": "-", "SUBMIT_TIME": "Nov 21 06:37", "START_TIME": "Nov 21 06:38",
            "FINISH_TIME": "Nov 21 06:39", "SPECIFIED_START_TIME": "-", "MIN_REQ_PROC": "4",
            "MAX_REQ_PROC": "4", "NREQ_SLOT": "4", "RUNTIMELIMIT": f"{10 + number % 600}.0",
            "COMBINED_RESREQ": f"select[type == local] rusage[mem={100 + number % 20}.00] span[hosts=1]",
            "DEPENDENCY": f"done({number - 1})" if number % 10 == 2 else "-", "EXCLUSIVE": "N", "RSVID": "-",
            "EXIT_CODE": "-", "EXIT_REASON": "-", "PEND_REASON": "New job is waiting for scheduling;",
        }
        for number in range(1, jobs + 1)
    ]  # fmt: skip
    return json.dumps({"COMMAND": "bjobs", "JOBS": len(records), "RECORDS": records}, indent=2).encode()


def as_text(jobs: int = JOBS) -> tuple[str, str]:
    """``bjobs -w`` and ``bjobs -UF``."""
    wide, details = HEADER, []
    for number in range(1, jobs + 1):
        state, user = stat(number), number % 50
        hosts = "-" if state == "PEND" else ":".join([host(number)] * 4)
        wide += f"{number:<7} user{user:<3} {state:<5} {queue(number):<10} login       {hosts} "
        wide += f"job {number}   Nov 21 06:37\n"
        middle = " PENDING REASONS:\n New job is waiting for scheduling;"
        if state != "PEND":
            slots = " ".join([f"<{host(number)}>"] * 4)
            middle = f"Sat Nov 21 06:38:58: Started 4 Task(s) on Host(s) {slots};"
        details.append(
            DETAILS.format(
                number=number, user=user, stat=state, queue=queue(number), memory=100 + number % 20,
                limit=10 + number % 600, middle=middle,
                more=f", Dependency Condition <done({number - 1})>" if number % 10 == 2 else "",
            )
        )  # fmt: skip
    return wide, SEPARATOR.join(details) + "\n"


def snapshot(
    rows: dict[str, Any], facts: dict[str, Any], others: tuple[str, str, str], before: Snapshot | None = None,
    remembered: Remembered | None = None,
) -> Snapshot:  # fmt: skip
    notes: set[str] = set()
    static = hosts.static_hosts(others[0])
    queues = cluster_listing.read_queues(others[2])
    nodes = hosts.read_nodes(cluster_listing.read_hosts(others[1]), queues, static, {}, notes)
    site = reader.Site(("normal", "short", "long"))
    found = reader.read_jobs(
        rows, facts, NOW, site, queues, nodes, static, {}, notes, before, remembered=remembered
    )
    assert notes == set()
    return Snapshot(NOW, found.jobs, nodes.nodes)


@pytest.mark.benchmark(group="lsf")
def test_reading_ten_thousand_jobs_as_json(benchmark: Any) -> None:
    data, others = as_json(), tables()

    def read() -> Snapshot:
        return snapshot(*listing.read_json_rows(data, Calendar(NOW), set()), others)

    found = benchmark.pedantic(read, rounds=3, warmup_rounds=1)
    assert (len(found.jobs), len(found.nodes)) == (JOBS, HOSTS)
    assert benchmark.stats.stats.min < 1.5


@pytest.mark.benchmark(group="lsf")
def test_reading_ten_thousand_jobs_as_text(benchmark: Any) -> None:
    (wide, details), others = as_text(), tables()

    def read() -> Snapshot:
        times, notes = Calendar(NOW), set[str]()
        rows = listing.read_wide_rows(wide, times, notes)
        facts = listing.read_long(details, times, notes)
        assert notes == set() and rows.keys() == facts.keys()
        return snapshot(rows, facts, others)

    found = benchmark.pedantic(read, rounds=3, warmup_rounds=1)
    assert (len(found.jobs), len(found.nodes)) == (JOBS, HOSTS)
    assert benchmark.stats.stats.min < 1.5


def later_looks(read: Callable[[int, listing.Parsed], tuple[dict[str, Any], dict[str, Any]]]) -> str:
    """CPU seconds of a first look and of the cheapest of three later ones; each is read by ``read``."""
    parsed, remembered, others = listing.Parsed(), Remembered(), tables()
    known = None
    seconds = []
    for at in range(4):
        began = time.process_time()
        parsed.begin(NOW)
        rows, facts = read(at % 2, parsed)
        parsed.end()
        found = snapshot(rows, facts, others, known, remembered)
        events = differ.diff(known, found)
        seconds.append(time.process_time() - began)
        assert known is None or len(events) == CHANGED
        known = found
    return f"{seconds[0]:.2f} s, then {min(seconds[1:]):.2f} s"


@pytest.mark.benchmark(group="lsf")
def test_a_later_look_at_fifty_thousand_jobs_of_lsf(capsys: Any) -> None:
    """On 2,000 hosts, in both ways; 111 of the jobs changed since the look before."""
    first = as_json(MANY)
    data = first, first.replace(b'"JOB_NAME": "job 77', b'"JOB_NAME": "job x77')
    as_records = later_looks(
        lambda at, parsed: listing.read_json_rows(data[at], Calendar(NOW), set(), parsed)
    )
    wide, details = as_text(MANY)
    tables = (wide, details), (wide.replace(" job 77", " job x77"), details.replace("<job 77", "<job x77"))

    def read(at: int, parsed: listing.Parsed) -> tuple[dict[str, Any], dict[str, Any]]:
        times, notes = Calendar(NOW), set[str]()
        rows = listing.read_wide_rows(tables[at][0], times, notes, parsed)
        return rows, listing.read_long(tables[at][1], times, notes, parsed)

    as_tables = later_looks(read)
    with capsys.disabled():
        print(f"\n50,000 jobs of LSF read and compared: JSON {as_records}; text {as_tables}")
