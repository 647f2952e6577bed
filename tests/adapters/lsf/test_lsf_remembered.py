"""Jobs are read as if nothing had been read before them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_lsf import NOW
from test_lsf_reader import HOSTS, QUEUES, SITE, STATES
from written_lsf import HEAD, SEPARATOR

from headway_adapters.lsf import hosts, listing, reader
from headway_adapters.lsf.cluster_listing import Queue
from headway_adapters.lsf.listing import Facts, Row
from headway_adapters.lsf.remembered import Remembered
from headway_adapters.lsf.shared import Instance, Shared
from headway_adapters.lsf.values import Calendar
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob

SHARED = Shared({"lic": Instance(9, frozenset(HOSTS)), "tok": Instance(2, frozenset({"h1"}))})
#: What may be other in a job at the next look.
FIELDS: dict[str, Sequence[str]] = {
    "STAT": ["PEND", "PSUSP", "RUN", "USUSP", "DONE", "EXIT", "ODD"],
    "USER": ["alice", "bob"],
    "QUEUE": ["normal", "short", "other", "gone"],
    "JOB_NAME": ["j", "k", "a\nb", "j Nov 21 06:38\n2 bob RUN normal h1 h1 x", '"},{"JOBID":"1"', "ü", "[2]"],
    "JOB_DESCRIPTION": ["-", "headway:dedicated", "headway:malleable,x=1", "odd >"],
    "FROM_HOST": ["h1", "elsewhere"],
    "HOSTS": ["-", "h1", "h1:h1:h2"],
    "SUBMIT_TIME": ["Nov 21 06:38", "Nov 21 06:37:44", "Nov 21 06:39", "-"],
    "START_TIME": ["-", "Nov 21 06:38", "Nov 21 06:38:58", "Nov 21 06:39"],
    "FINISH_TIME": ["-", "Nov 21 06:39", "Nov 21 06:39:02"],
    "RUN_TIME": ["-", "5 second(s)", "40 second(s)"],
    "SPECIFIED_START_TIME": ["-", "Nov 21 06:39:12", "Nov 21 06:50", "May 23 00:00"],
    "MIN_REQ_PROC": ["1", "2", "4"],
    "MAX_REQ_PROC": ["1", "4", "6"],
    "RUNTIMELIMIT": ["-", "1.0", "60.0"],
    "COMBINED_RESREQ": [
        "-", "select[mg]", "span[ptile=2]", "rusage[lic=1:duration=1]", "rusage[tok=1]", "cu[x]", "a||[",
    ],
    "DEPENDENCY": [
        "-", "done(1)", 'ended("j")', "done(3) && started(2)", "exit(4,1)", "x((", "started(7[1])",
    ],
    "ASK_HOSTS": ["-", "h1", "h2 h3"],
    "EXCLUSIVE": ["N", "Y"],
    "EXIT_CODE": ["-", "1", "130"],
    "EXIT_REASON": ["-", "TERM_RUNLIMIT: x"],
    "PEND_REASON": ["-", "It waits;"],
}  # fmt: skip
IDS = ("1", "2", "3", "4", "7[1]", "7[2]", "7[3]")
CHANGES = st.dictionaries(st.sampled_from(sorted(FIELDS)), st.integers(0, 9), max_size=4)
LOOKS = st.lists(
    st.fixed_dictionaries(
        {
            "changes": st.dictionaries(st.sampled_from(IDS), CHANGES, max_size=3),
            "hidden": st.sets(st.sampled_from(IDS), max_size=2),
            "twice": st.sets(st.sampled_from(IDS), max_size=1),
            #: Not in the snapshot, since their pool is not.
            "unseen": st.sets(st.sampled_from(IDS), max_size=2),
            "seconds": st.sampled_from([0.0, 0.0, 2.0, 3.0, 40.0, 90.0, 183 * 86400.0, -5.0]),
            #: A look that counts for nothing.
            "vain": st.booleans(),
            "other": st.sampled_from(["", "", "queue", "host", "group", "words", "limit", "licence", "more"]),
        }
    ),
    min_size=2,
    max_size=6,
)


def told(job_id: str, fields: Mapping[str, str]) -> dict[str, str]:
    """A record of ``bjobs -o FIELDS -json``."""
    number, _, index = job_id.rstrip("]").partition("[")
    name = f"arr[{index}]" if index else fields["JOB_NAME"]
    return {
        **fields,
        "JOBID": number,
        "JOBINDEX": index or "0",
        "JOB_NAME": name,
        "EXEC_HOST": fields["HOSTS"],
    }


def as_json(jobs: Sequence[tuple[str, Mapping[str, str]]]) -> tuple[bytes, ...]:
    records = [told(job_id, fields) for job_id, fields in jobs]
    return (json.dumps({"COMMAND": "bjobs", "JOBS": len(records), "RECORDS": records}).encode(),)


def as_text(jobs: Sequence[tuple[str, Mapping[str, str]]]) -> tuple[str, str]:
    """``bjobs -w`` and ``bjobs -UF``; what a user writes stands in them as it is."""
    wide, long = HEAD, []
    for job_id, fields in jobs:
        said = told(job_id, fields)
        minute = said["SUBMIT_TIME"] if said["SUBMIT_TIME"] != "-" else "Nov 21 06:31"
        wide += f"{said['JOBID']} {said['USER']} {said['STAT']} {said['QUEUE']} {said['FROM_HOST']} "
        wide += f"{said['HOSTS']} {said['JOB_NAME']} {minute}\n"
        asked = f", {said['MIN_REQ_PROC']}-{said['MAX_REQ_PROC']} Task(s)"
        for word, key in (
            ("Requested Resources", "COMBINED_RESREQ"), ("Dependency Condition", "DEPENDENCY"),
            ("Job Description", "JOB_DESCRIPTION"),
        ):  # fmt: skip
            asked += f", {word} <{said[key]}>" if said[key] != "-" else ""
        if (begin := said["SPECIFIED_START_TIME"]) != "-":
            asked += f", Specified Start Time <{begin if begin.count(':') == 2 else begin + ':00'}>"
        asked += ", Exclusive Execution" if said["EXCLUSIVE"] == "Y" else ""
        text = f"\nJob <{job_id}>, Job Name <{said['JOB_NAME']}>, User <{said['USER']}>\n"
        if said["SUBMIT_TIME"] != "-":
            text += f"Sat Nov 21 06:37:44: Submitted from host <h1>, CWD <{said['JOB_NAME']}>{asked};\n"
        if said["START_TIME"] != "-":
            text += f"Sat Nov 21 06:38:58: Started 1 Task(s) on Host(s) <{said['HOSTS']}>;\n"
        if said["FINISH_TIME"] != "-":
            text += f"Nov 21 06:39:02: Exited with exit code {said['EXIT_CODE'].strip('-') or 7}.\n"
        if said["PEND_REASON"] != "-":
            text += f" PENDING REASONS:\n {said['PEND_REASON']}\n"
        if said["RUNTIMELIMIT"] != "-":
            text += f"\n RUNLIMIT                \n {said['RUNTIMELIMIT']} min                \n"
        long.append(text)
    return wide, SEPARATOR.join(long) + "\n"


class Cluster:
    """What jobs are read by besides their listing."""

    def __init__(self) -> None:
        self.site, self.queues, self.static, self.shared = SITE, dict(QUEUES), dict(HOSTS), SHARED
        self.groups: dict[str, tuple[str, ...]] = {}
        self.limits: dict[str, int] = {}

    def turn(self, other: str) -> None:
        """Something is another than at the look before."""
        if other == "queue":
            limit = 60.0 if self.queues["normal"].limit is None else None
            self.queues["normal"] = replace(self.queues["normal"], limit=limit)
        elif other == "host":
            self.static = {
                **self.static,
                "h2": replace(self.static["h2"], resources=frozenset(), processors=2),
            }
        elif other == "group":
            self.groups = {"h1": ("h2",)}
        elif other == "words":
            self.site = replace(self.site, words=self.site.words | {"x"}, fills=not self.site.fills)
        elif other == "limit":
            self.limits = {"7": len(self.limits) + 1}
        elif other == "licence":
            self.shared = Shared({"lic": Instance(1, frozenset({"h1"}))})
        elif other == "more":
            self.queues["short"] = Queue("short", "Open:Active", ("h3",), 60.0)

    def read(
        self, rows: Mapping[str, Row], facts: Mapping[str, Facts], now: float, notes: set[str],
        before: Snapshot | None, remembered: Remembered | None = None,
    ) -> reader.Jobs:  # fmt: skip
        nodes = hosts.read_nodes(STATES, self.queues, self.static, self.groups, notes, shared=self.shared)
        return reader.read_jobs(
            rows, facts, now, self.site, self.queues, nodes, self.static, self.groups, notes, before,
            self.shared, self.limits, remembered,
        )  # fmt: skip


def parse(
    data: tuple[Any, ...], now: float, notes: set[str], parsed: listing.Parsed | None = None
) -> tuple[dict[str, Row], dict[str, Facts]]:
    """The rows and facts of a listing as JSON, or as text."""
    times = Calendar(now)
    if len(data) == 1:
        return listing.read_json_rows(data[0], times, notes, parsed)
    rows = listing.read_wide_rows(data[0], times, notes, parsed)
    return rows, listing.read_long(data[1], times, notes, parsed)


def contents(rows: Mapping[str, Row], facts: Mapping[str, Facts], jobs: reader.Jobs) -> tuple[Any, ...]:
    """All of it, in its order."""
    return (
        list(rows.items()), list(facts.items()), list(jobs.jobs.items()), list(jobs.details.items()),
        jobs.unread, +jobs.given_back,
    )  # fmt: skip


@pytest.mark.parametrize("write", [as_json, as_text])
@given(looks=LOOKS)
def test_jobs_are_read_as_if_none_had_been_read_before(write: Any, looks: list[dict[str, Any]]) -> None:
    cluster, parsed, remembered = Cluster(), listing.Parsed(), Remembered()
    jobs = {job_id: {key: values[0] for key, values in FIELDS.items()} for job_id in IDS}
    now, before = NOW, None
    for look in looks:
        now += look["seconds"]
        for job_id, change in look["changes"].items():
            said = {key: FIELDS[key][to % len(FIELDS[key])] for key, to in change.items()}
            jobs[job_id] = {**jobs[job_id], **said}
        cluster.turn(look["other"])
        shown = [(job_id, fields) for job_id, fields in jobs.items() if job_id not in look["hidden"]]
        shown += [(job_id, fields) for job_id, fields in shown if job_id in look["twice"]]
        data = write(shown)
        noted: set[str] = set()
        anew: set[str] = set()
        parsed.begin(now)
        rows, facts = parse(data, now, noted, parsed)
        parsed.end()
        fresh = parse(data, now, anew)
        found = cluster.read(rows, facts, now, noted, before, remembered)
        expected = cluster.read(*fresh, now, anew, before)
        assert contents(rows, facts, found) == contents(*fresh, expected)
        assert noted == anew
        if not look["vain"]:
            seen = {key: job for key, job in found.jobs.items() if key not in look["unseen"]}
            before = Snapshot(now, seen)


@pytest.mark.parametrize("write", [as_json, as_text])
def test_what_did_not_change_is_the_same_object_and_is_not_read_again(
    write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    whole = reader._Reading._read

    def counted(self: Any, job_id: str, *more: Any) -> None:
        read.append(job_id)
        whole(self, job_id, *more)

    monkeypatch.setattr(reader._Reading, "_read", counted)
    cluster, parsed, remembered = Cluster(), listing.Parsed(), Remembered()
    plain = {key: values[0] for key, values in FIELDS.items()}
    running = {**plain, "STAT": "RUN", "HOSTS": "h1", "START_TIME": "Nov 21 06:38"}
    ended = {**running, "STAT": "EXIT", "FINISH_TIME": "Nov 21 06:39", "EXIT_CODE": "1"}
    before: Snapshot | None = None

    def look(**jobs: Mapping[str, str]) -> Mapping[str, SnapshotJob]:
        nonlocal before
        read.clear()
        notes: set[str] = set()
        parsed.begin(NOW)
        rows, facts = parse(write([(key[1:], fields) for key, fields in jobs.items()]), NOW, notes, parsed)
        parsed.end()
        found = cluster.read(rows, facts, NOW, notes, before, remembered)
        assert not notes
        before = Snapshot(NOW, found.jobs)
        return found.jobs

    first = look(j1=plain, j2=running, j3=ended, j4=plain)
    assert read == ["1", "2", "3", "4"]
    second = look(j1=plain, j2=running, j3=ended, j4={**plain, "RUNTIMELIMIT": "60.0"})
    assert read == ["4"] and second["4"].job.request.walltime == 3600
    assert all(second[key] is first[key] for key in "123")
    look(j4=plain)
    look(j1=plain, j4=plain)
    assert read == ["1"], "what a listing does not show is forgotten"


def test_what_is_remembered_of_a_record_is_of_its_own_form() -> None:
    """The text of a record in one form is nothing in another, although its bytes are known there."""
    parsed = listing.Parsed()
    parsed.begin(NOW)
    plain = {key: values[0] for key, values in FIELDS.items()}
    record = json.dumps(told("1", plain))
    times = Calendar(NOW)
    data = f'{{"JOBS": 1, "RECORDS": [{record}]}}'.encode()
    assert set(listing.read_json_rows(data, times, set(), parsed)[0]) == {"1"}
    notes: set[str] = set()
    assert listing.read_long(f"{record}", times, notes, parsed) == {}
    assert notes == {"a part of bjobs -UF could not be read"}
    wide, _ = as_text([("1", plain)])
    assert set(listing.read_wide_rows(wide, times, set(), parsed)) == {"1"}
    # A known line within a job's name is a part of the name.
    within = f"{HEAD}5 bob PEND normal h1 - x\n{wide.splitlines()[1]}\n"
    assert list(listing.read_wide_rows(within, times, notes, parsed)) == ["5"]
