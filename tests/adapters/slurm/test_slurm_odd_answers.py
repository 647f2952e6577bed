"""An answer about one job that is not understood costs that job a look, never the others.

Each command's recorded answer is mutated: nothing is raised, and nothing else is read otherwise.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretended import events, result
from pretended_slurm import FIXTURES, RECORDS, PretendedSlurm
from waiting import limit

from headway import decisions as d
from headway import events as ev
from headway_adapters.polling.snapshot import Snapshot
from headway_adapters.slurm import SlurmAdapter, SlurmOptions
from headway_adapters.transport import Result

ALL = json.loads((FIXTURES / "squeue.json").read_text())["jobs"]
NODES = json.loads((FIXTURES / "sinfo.json").read_text())
#: What nobody would write, and what only looks right.
WORDS = ["n[1-", "n[1-99999999999]", "[]", "1-99999999999999", "9" * 5000, "PENDING", "RUNNING", "\ud7ff"]
WORDS += ["afterok:1(oops", "headway:pin=n[;cpus=:", "gpu:" + "9" * 5000, "a=b JobId=15"]
tiny = st.one_of(st.none(), st.text(max_size=2), st.floats())
odd = st.one_of(
    st.none(), st.booleans(), st.integers(-(1 << 70), 1 << 70), st.floats(), st.text(max_size=12),
    st.sampled_from(WORDS), st.lists(st.integers(), max_size=2),
    st.dictionaries(st.sampled_from(["set", "number", "infinite"]), tiny, max_size=3),
)  # fmt: skip


def adapter(slurm: PretendedSlurm, **fields: Any) -> SlurmAdapter:
    options = {"partitions": ("batch",), "poll_interval": 0.02, "accounting": "no", **fields}
    return SlurmAdapter(SlurmOptions(**options), transport=slurm)


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[PretendedSlurm, SlurmAdapter, Snapshot]]:
    slurm = PretendedSlurm()
    slurm.jobs = ALL
    with adapter(slurm) as one:
        one.describe()
        yield slurm, one, one.look(None).snapshot


def owned(record: dict[str, Any]) -> set[str]:
    """The ids that a record may be about; the components of a heterogeneous job are one."""
    found = (record.get(key) for key in ("job_id", "array_job_id", "het_job_id"))
    return {str(int(one) if isinstance(one, float) and one.is_integer() else one) for one in found if one}


def others(snapshot: Snapshot, about: set[str]) -> dict[str, Any]:
    """All jobs but those; without how much of a shared array or dependency they see."""
    return {
        key: (job.state, job.placement, job.start_time, job.job.request, job.job.user)
        for key, job in snapshot.jobs.items()
        if key.partition("_")[0] not in about
    }


@settings(max_examples=150, deadline=None)
@given(at=st.integers(0, len(ALL) - 1), key=st.sampled_from(sorted(ALL[0])), value=odd)
def test_an_odd_field_of_a_job_concerns_no_other(world: Any, at: int, key: str, value: Any) -> None:
    slurm, one, before = world
    changed = {**ALL[at], key: value}
    slurm.jobs = [*ALL[:at], changed, *ALL[at + 1 :]]
    about = owned(ALL[at]) | owned(changed)
    found = one.look(before).kept_from(before).snapshot
    assert others(found, about) == others(before, about)
    named = ("job_id", "array_job_id", "array_task_id", "array_task_string", "het_job_id")
    if key not in (*named, "partition", "job_state"):
        assert set(found.jobs) == set(before.jobs)


@settings(max_examples=40, deadline=None)
@given(at=st.integers(0, len(ALL) - 1), value=odd, where=st.integers(0, 2))
def test_a_record_that_is_none_concerns_no_other(world: Any, at: int, value: Any, where: int) -> None:
    slurm, one, before = world
    slurm.jobs = [*ALL[:at], value, *ALL[at + (where > 0) :]]
    about = owned(ALL[at]) if where else set()
    assert others(one.look(before).snapshot, about) == others(before, about)


@settings(max_examples=60, deadline=None)
@given(at=st.integers(0, 7), key=st.sampled_from([*sorted(NODES["nodes"][0]), ""]), value=odd)
def test_an_odd_node_concerns_no_other(world: Any, at: int, key: str, value: Any) -> None:
    slurm, one, before = world
    slurm.jobs = ALL
    nodes = list(NODES["nodes"])
    name = nodes[at]["name"]
    nodes[at] = {**nodes[at], key: value} if key else value
    text = json.dumps({**NODES, "nodes": nodes})
    slurm.answer = lambda argv: result(argv, text) if argv[0] == "sinfo" else None
    try:
        found = one.look(before).snapshot
    finally:
        slurm.answer = lambda argv: None
    for other, node in before.nodes.items():
        assert other in (name, value) or found.nodes[other] == node
    assert set(found.jobs) == set(before.jobs)


@settings(max_examples=60, deadline=None)
@given(
    what=st.sampled_from(["partition", "reservation"]), at=st.integers(0, 3), cut=st.integers(0, 400),
    junk=st.text(max_size=20),
)  # fmt: skip
def test_an_odd_line_concerns_no_other(world: Any, what: str, at: int, cut: int, junk: str) -> None:
    slurm, one, before = world
    slurm.jobs = ALL
    lines = (FIXTURES / f"show-{what}s-oneline.txt").read_text().strip().split("\n")
    at %= len(lines)
    if what == "partition" and lines[at].startswith("PartitionName=batch "):
        return
    lines[at] = lines[at][:cut] + junk + lines[at][cut + len(junk) :]
    text = "\n".join(lines)
    slurm.answer = lambda argv: result(argv, text) if argv[-1] == what or what in argv else None
    try:
        found = one.look(before).kept_from(before).snapshot
    finally:
        slurm.answer = lambda argv: None
    assert {k: v for k, v in found.jobs.items() if v.job.pool == "batch"} == {
        k: v for k, v in before.jobs.items() if v.job.pool == "batch"
    }


SHOWN = "JobId=7 JobName=x JobState=FAILED ExitCode=3:0 StartTime=2026-11-21T07:04:02 "
SHOWN += "EndTime=2026-11-21T07:05:02 NodeList=node[1-2]"


@settings(max_examples=100, deadline=None)
@given(
    rc=st.sampled_from([0, 1, 124]), said=st.one_of(st.text(max_size=40), st.just(SHOWN)),
    cut=st.integers(0, len(SHOWN)), accounting=st.booleans(),
)  # fmt: skip
def test_an_odd_answer_about_an_end_concerns_no_other(
    world: Any, rc: int, said: str, cut: int, accounting: bool
) -> None:
    """Whatever is said of job 15 when it is no longer listed: what is said of job 7 is understood."""
    slurm, one, before = world
    slurm.jobs = [record for record in ALL if record["job_id"] not in (7, 15)]

    def answer(argv: tuple[str, ...]) -> Result | None:
        if argv[0] == "sacct":
            return result(argv, said[:cut], rc, said[cut:])
        if argv[-1] == "7":
            return result(argv, SHOWN)
        return result(argv, said[:cut], rc, said[cut:]) if "job" in argv else None

    slurm.answer = answer
    object.__setattr__(one._looking.world, "accounting", accounting)
    try:
        found = one.look(before).snapshot
    finally:
        slurm.answer = lambda argv: None
        object.__setattr__(one._looking.world, "accounting", False)
    assert (found.jobs["7"].state, found.jobs["7"].outcome) == ("ended", "failed")
    assert others(found, {"7", "15"}) == others(before, {"7", "15"})


def array(tasks: str, **fields: Any) -> dict[str, Any]:
    return {
        **RECORDS[15], "job_id": 3, "array_job_id": 3, "array_task_id": None, "array_task_string": tasks,
        "admin_comment": "headway:held", "state_reason": "JobHeldAdmin", **fields,
    }  # fmt: skip


@pytest.mark.parametrize("how", ["some", "all"])
def test_cancelled_elements_of_an_array_stop_nothing(how: str) -> None:
    slurm = PretendedSlurm()
    waiting = {**RECORDS[15], "state_reason": "JobHeldAdmin", "admin_comment": "headway:held"}
    slurm.jobs = [array("1-50"), waiting]
    with adapter(slurm, array_limit=40) as one:
        one.describe()
        events(one)
        rest = array("1-19,31-50") if how == "some" else array("1-50", job_state="CANCELLED")
        slurm.jobs = [rest, waiting]
        slurm.answer = lambda argv: (
            result(argv, f"Job {argv[-1]} not found", rc=1) if argv[-2:-1] == ("job",) else None
        )
        told = events(one)
        ended = {e.job_id: e.outcome for e in told if isinstance(e, ev.JobEnded)}
        gone = range(20, 31) if how == "some" else range(1, 41)
        assert {key: ended.get(key) for key in ended if key != "3"} == {f"3_{n}": "cancelled" for n in gone}
        assert not one.outages()
        assert one.apply(time.time(), [d.Start("15", (("node3", 4), ("node4", 4)))])[0].accepted


def test_what_is_not_understood_about_one_job_leaves_that_job_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slurm = PretendedSlurm()
    with adapter(slurm) as one:
        one.describe()
        events(one)
        slurm.jobs = slurm.jobs[:1]
        slurm.answer = lambda argv: result(argv, rc=1, stderr="slurm: perhaps") if "job" in argv else None
        assert events(one) == [] and not one.outages()
        monkeypatch.setattr("headway_adapters.slurm.looking._DOUBT", 0.0)
        assert [(e.job_id, e.outcome) for e in events(one) if isinstance(e, ev.JobEnded)] == [
            ("7", "vanished")
        ]


def test_an_accounting_that_does_not_answer_stops_nothing() -> None:
    slurm = PretendedSlurm()
    with adapter(slurm, accounting="yes") as one:
        one.describe()
        events(one)
        slurm.jobs = slurm.jobs[:1]

        def answer(argv: tuple[str, ...]) -> Result | None:
            if argv[0] == "sacct":
                return Result(argv=argv, rc=124, stdout=b"", stderr="", seconds=15.0, timed_out=True)
            if "job" in argv:
                return result(argv, rc=1, stderr="slurm_load_jobs error: Invalid job id specified")
            return None

        slurm.answer = answer
        assert events(one) == [] and not one.outages()
    assert sum(argv[0] == "sacct" for argv in slurm.said) == 1, "it is asked again after a while"


def test_what_slurm_refuses_to_have_taken_over_does_not_keep_others_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headway_adapters.slurm.custody._TEND_AT_ONCE", 3)
    slurm = PretendedSlurm()
    fresh = {**RECORDS[16], "state_reason": "JobHeldUser", "admin_comment": "headway:new"}
    slurm.jobs = [{**fresh, "job_id": n} for n in range(100, 108)]
    taken: set[int] = set()

    def answer(argv: tuple[str, ...]) -> Result | None:
        listed = next((word[6:].split(",") for word in argv if word.startswith("JobId=")), [])
        said = []
        for record in slurm.jobs:
            if str(record["job_id"]) in listed and record["job_id"] < 104:
                said.append(f"Access/permission denied for job {record['job_id']}")
            elif str(record["job_id"]) in listed:
                record.update(state_reason="JobHeldAdmin", admin_comment="headway:held")
                taken.add(record["job_id"])
        return result(argv, rc=1, stderr="\n".join(said)) if said else None

    slurm.answer = answer
    with adapter(slurm) as one:
        one.describe()
        end = time.time() + limit()
        while time.time() < end and len(taken) < 4:
            one.wait(time.time() + 0.1)
    assert taken == set(range(104, 108))
