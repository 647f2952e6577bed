"""PBS's recorded output, and what we understand of it."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pbs_recorded import NODES, NOW, QUEUES, SITE, job, nodes, read, recorded_jobs

from headway.model import Dependency, NodeDescription, PoolDescription, Request
from headway_adapters.pbs import cluster, documents, reader, select, torque
from headway_adapters.polling.differ import diff
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob

GB = 1 << 30
DAY = 86400.0
T0 = 1795242748.0  # Sat Nov 21 06:32:28 2026


def only(found: reader.Jobs) -> SnapshotJob:
    (one,) = found.jobs.values()
    return one


def one(**fields: Any) -> SnapshotJob:
    return only(read({"1.pbshost": job(**fields)}))


def detail(**fields: Any) -> reader.Detail:
    return read({"1.pbshost": job(**fields)}).details["1.pbshost"]


# ---------------------------------------------------------------------- recorded listings

#: Job -> state, vnodes, start, end, outcome, exit code, who holds it.
LIVE: dict[str, tuple[Any, ...]] = {
    "1.pbshost": ("suspended", {"pbshost[2]": 8}, T0, None, "", None, ""),
    "2.pbshost": ("pending", {}, None, None, "", None, "user"),
    "9.pbshost": ("pending", {}, None, None, "", None, ""),
    "10.pbshost": ("pending", {}, None, None, "", None, ""),
    "11.pbshost": ("running", {"pbshost[3]": 8}, T0 + 97, None, "", None, ""),
    "12.pbshost": ("running", {"pbshost[3]": 8}, T0 + 97, None, "", None, ""),
    "13.pbshost": ("running", {"pbshost[1]": 2, "pbshost[0]": 2}, T0 + 100, None, "", None, ""),
}
ELEMENTS: dict[str, tuple[Any, ...]] = {
    "3[1].pbshost": ("ended", {}, T0 + 1, T0 + 62, "completed", 0, ""),
    "3[2].pbshost": ("pending", {}, None, None, "", None, ""),
    "3[3].pbshost": ("pending", {}, None, None, "", None, ""),
}
ENDED: dict[str, tuple[Any, ...]] = {
    "0.pbshost": ("ended", {"pbshost[2]": 4, "pbshost[3]": 4}, T0, T0 + 61, "completed", 0, ""),
    "6.pbshost": ("ended", {"pbshost[0]": 2}, T0 + 43, T0 + 74, "completed", 0, ""),
    # place=exclhost: its host's vnodes were its own.
    "7.pbshost": ("ended", {f"pbshost[{at}]": 8 for at in range(4)}, T0 + 44, T0 + 74, "completed", 0, ""),
    "8.pbshost": ("ended", {}, None, T0 + 59, "cancelled", None, ""),
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("qstat_full_json", LIVE),
        ("qstat_full_json_subjobs", {**LIVE, **ELEMENTS}), ("qstat_history_json", {**LIVE, **ENDED}),
        ("qstat_unknown_job", {}),
    ],
)  # fmt: skip
def test_each_recorded_listing_of_jobs(name: str, expected: dict[str, tuple[Any, ...]]) -> None:
    notes: set[str] = set()
    found = reader.read_jobs(recorded_jobs(name), NOW, SITE, QUEUES, NODES, notes)
    assert {
        key: (
            job.state, dict(job.placement), job.start_time, job.end_time, job.outcome, job.exit_code,
            job.held_by,
        )
        for key, job in found.jobs.items()
    } == expected  # fmt: skip
    assert not notes


def test_the_recorded_vnodes() -> None:
    def vnode(at: int, **more: Any) -> NodeDescription:
        return NodeDescription(
            f"pbshost[{at}]", 8, 4 * GB, features=("arch=linux",), pools=("workq",), host="pbshost", **more
        )

    maintained = "in maintenance: a job was suspended by an administrator"
    assert list(NODES.nodes.values()) == [
        vnode(0), vnode(1), vnode(2), vnode(3, available=False, reason=maintained),
    ]  # fmt: skip
    assert NODES.vnodes == {"pbshost": [f"pbshost[{at}]" for at in range(4)]}
    assert cluster.pools(QUEUES, NODES, SITE) == {"workq": PoolDescription("workq")}


def test_a_recorded_job_in_full() -> None:
    found = reader.read_jobs(recorded_jobs("qstat_full_json"), NOW, SITE, QUEUES, NODES, set())
    late = found.jobs["10.pbshost"].job
    assert (late.name, late.user, late.group, late.pool) == ("late", "alice", "alice", "workq")
    assert (late.submit_time, late.begin_time, late.held) == (T0 + 43, 1795249980.0, False)
    assert late.request == Request(1, 365 * DAY, nodes=1, processors_per_node=1)
    assert found.jobs["9.pbshost"].job.priority == 100
    assert found.jobs["2.pbshost"].job.held
    assert found.jobs["2.pbshost"].restarts == 1
    assert found.jobs["13.pbshost"].job.request == Request(4, 365 * DAY, nodes=2)


# ---------------------------------------------------------------------- states, holds, dependencies


@pytest.mark.parametrize(
    ("fields", "held_by", "reason"),
    [
        ({}, "", ""),
        ({"job_state": "H", "Hold_Types": "u"}, "user", "held by its user"),
        ({"job_state": "H", "Hold_Types": "us"}, "user", "held by its user"),
        ({"job_state": "H", "Hold_Types": "o"}, "administrator", "held by an operator"),
        ({"job_state": "H", "Hold_Types": "s"}, "administrator", "held by an administrator"),
        ({"job_state": "H", "Hold_Types": "p"}, "system", "held: its user's password is missing"),
        ({"job_state": "T"}, "system", "it is on its way to another queue or server"),
        ({"queue": "other"}, "system", "queue other is not managed by headway"),
        ({"job_state": "?"}, "system", "its state is '?'"),
        ({"select": "nonsense"}, "system", "what it asks for cannot be read: "),
    ],
)
def test_what_keeps_a_job_from_starting(fields: dict[str, Any], held_by: str, reason: str) -> None:
    found = one(**fields)
    assert (found.job.held, found.held_by) == (bool(reason), held_by)
    assert found.reason.startswith(reason)


def test_a_stopped_queue_starts_nothing() -> None:
    queues = {"workq": cluster.Queue("workq", open=False)}
    records = {"1.s": documents.JobRecord(job_state="Q", queue="workq", schedselect="1:ncpus=1")}
    found = reader.read_jobs(records, NOW, SITE, queues, NODES, set())
    assert only(found).reason == "queue workq is stopped"
    assert not cluster.pools(queues, NODES, SITE)["workq"].open


def test_beside_pbss_own_scheduler_a_stopped_queue_is_headways() -> None:
    site = cluster.Site(managed=("workq",), beside_scheduler=True)
    queues = {"workq": cluster.Queue("workq", open=False)}
    records = {"1.s": documents.JobRecord(job_state="Q", queue="workq", schedselect="1:ncpus=1")}
    assert not only(reader.read_jobs(records, NOW, site, queues, NODES, set())).job.held
    assert cluster.pools(queues, NODES, site)["workq"].open


def test_a_system_hold_for_a_dependency_is_the_dependency() -> None:
    held = job(job_state="H", Hold_Types="s", depend="afterok:1.pbshost@pbshost:9.pbshost@pbshost")
    found = read({"1.pbshost": job(job_state="R"), "2.pbshost": held}).jobs["2.pbshost"]
    assert found.job.dependencies == (Dependency("completed", "1.pbshost"),)
    assert (found.job.held, found.held_by) == (False, "")


@pytest.mark.parametrize(
    ("depend", "kinds"),
    [
        ("after:1.pbshost", ["started"]), ("afternotok:1.pbshost@x", ["failed"]),
        ("afterany:1.pbshost,beforeok:7.pbshost", ["ended"]), ("runone:1.pbshost", []),
    ],
)  # fmt: skip
def test_kinds_of_dependencies(depend: str, kinds: list[str]) -> None:
    jobs = {"1.pbshost": job(), "2.pbshost": job(job_state="H", Hold_Types="s", depend=depend)}
    assert [d.kind for d in read(jobs).jobs["2.pbshost"].job.dependencies] == kinds


@pytest.mark.parametrize("depend", ["on:2", "afterok:3[].pbshost@pbshost", "afterstarting:1.pbshost"])
def test_a_dependency_that_we_cannot_express_is_waited_for(depend: str) -> None:
    jobs = {
        "1.pbshost": job(), "3[].pbshost": job(job_state="B", array="True"),
        "2.pbshost": job(job_state="H", Hold_Types="s", depend=depend),
    }  # fmt: skip
    found = read(jobs).jobs["2.pbshost"]
    assert (found.job.held, found.held_by) == (True, "system")
    assert found.reason == f"its dependency {depend} is left to PBS to decide"


def test_a_hold_that_outlives_its_dependency_is_an_administrators() -> None:
    found = one(job_state="H", Hold_Types="s", depend="afterok:6.pbshost@pbshost")
    assert (found.held_by, found.job.dependencies) == ("administrator", ())


def test_what_has_ended_in_the_same_listing_is_waited_for_no_more() -> None:
    over = {**job(job_state="X"), "Exit_status": 0}
    held = job(job_state="H", Hold_Types="s", depend="afterok:5[1].s@s")
    found = read({"5[].s": job(job_state="B"), "5[1].s": over, "6.s": held}).jobs["6.s"]
    assert (found.held_by, found.job.dependencies) == ("administrator", ())


def test_a_queued_job_has_no_dependencies_left() -> None:
    """PBS keeps the words, and takes its hold away when they are satisfied."""
    assert one(depend="afterok:6.pbshost@pbshost").job.dependencies == ()


def test_states_that_nobody_knows_are_tolerated_and_noted() -> None:
    notes: set[str] = set()
    found = read(
        {"1.s": job(job_state="Z"), "2.s": job(job_state="Z", exec_vnode="(pbshost[0]:ncpus=1)")}, notes=notes
    )
    assert [job.state for job in found.jobs.values()] == ["running", "pending"]
    assert "job state 'Z' is not known; taken as running" in notes


@pytest.mark.parametrize("job_id", ["x.s", "1[2", "1.s; reboot", "", "1\n.s"])
def test_what_is_no_job_id_is_left_out_and_noted(job_id: str) -> None:
    notes: set[str] = set()
    records = {job_id: documents.JobRecord(job_state="Q", queue="workq", schedselect="1:ncpus=1")}
    assert not reader.read_jobs(records, NOW, SITE, QUEUES, NODES, notes).jobs
    assert notes == {f"{job_id!r} is not the id of a job"}


def test_a_job_that_is_sent_to_its_vnodes_is_starting() -> None:
    found = one(job_state="R", substate=41, exec_vnode="(pbshost[0]:ncpus=1)")
    assert (found.state, found.placement) == ("starting", (("pbshost[0]", 1),))


@pytest.mark.parametrize(
    ("substate", "seconds", "odd"), [(41, 299, False), (41, 301, True), (71, 3600, False), (42, 3600, False)]
)
def test_a_job_that_is_sent_to_its_vnodes_for_long_is_noted(substate: int, seconds: float, odd: bool) -> None:
    notes: set[str] = set()
    sent = time.asctime(time.gmtime(NOW - seconds))
    fields = {"job_state": "R", "substate": substate, "exec_vnode": "(pbshost[0]:ncpus=1)", "stime": sent}
    read({"1.pbshost": job(**fields)}, notes=notes)
    assert notes == (
        {
            "job 1.pbshost was sent to its vnodes more than 5 minutes ago and does not run yet (substate "
            "41): see the log of the MoM of pbshost[0], its first host"
        }
        if odd
        else set()
    )


@pytest.mark.parametrize(
    ("fields", "outcome", "code"),
    [
        ({"Exit_status": 0}, "completed", 0), ({"Exit_status": 3}, "failed", 3),
        ({"Exit_status": -1}, "failed", -1), ({"Exit_status": -29}, "timed out", -29),
        ({"Exit_status": 265}, "failed", 137), ({"Exit_status": 271, "substate": 91}, "cancelled", 143),
        ({"Exit_status": 271, "resources_used": {"walltime": "00:10:03"}}, "timed out", 143),
        ({"Exit_status": "", "substate": 92}, "vanished", None), ({"substate": 91}, "cancelled", None),
        ({"job_state": "M"}, "cancelled", None),
    ],
)  # fmt: skip
def test_how_jobs_end(fields: dict[str, Any], outcome: str, code: int | None) -> None:
    found = one(**{"job_state": "F", "substate": 92, **fields})
    assert (found.state, found.outcome, found.exit_code) == ("ended", outcome, code)


def test_going_back_to_the_queue_is_counted() -> None:
    assert one(run_count=2).restarts == 2
    assert one(job_state="R", exec_vnode="(pbshost[0]:ncpus=1)", run_count=3).restarts == 2


# ---------------------------------------------------------------------- requests


def test_a_job_that_may_be_shrunk_is_planned_and_started_with_its_longest_walltime() -> None:
    asked = {"select": "1:ncpus=1", "min_walltime": "00:00:05", "max_walltime": "00:00:10"}
    record = job()
    record["Resource_List"] = {"ncpus": 1, "place": "pack", **asked}
    found = read({"1.s": record})
    assert only(found).job.request.walltime == 10.0
    assert found.details["1.s"].shrinks_from == 10.0


def parted(*parts: Request, apart: str = "") -> Request:
    return Request(sum(part.processors for part in parts), 600, parts=parts, parts_apart=apart)


ALL_FOUR = tuple(f"pbshost[{at}]" for at in range(4))


@pytest.mark.parametrize(
    ("chunks", "place", "request_"),
    [
        ("1:ncpus=4:mem=1gb", "free", Request(4, 600, 1, 4, memory_per_node=GB)),
        ("16:ncpus=1:mem=1gb", "free", Request(16, 600, memory_per_processor=GB)),
        ("4:ncpus=2:mem=1gb", "free", Request(8, 600, processors_per_chunk=2, memory_per_chunk=GB)),
        ("4:ncpus=2:mem=1gb", "vscatter", Request(8, 600, 4, 2, memory_per_node=GB)),
        ("4:ncpus=2:mem=1gb", "vscatter:excl", Request(8, 600, 4, 2, memory_per_node=GB, exclusive=True)),
        ("4:ncpus=2:mem=1gb", "pack", Request(8, 600, 1, 8, memory_per_node=4 * GB)),
        ("1:ncpus=1+2:ncpus=8", "free", parted(Request(1, 1), Request(16, 1, processors_per_chunk=8))),
        (
            "1:ncpus=8+1:ncpus=0", "free",
            parted(Request(8, 1, processors_per_chunk=8), Request(0, 1, nodes=1)),
        ),
        ("1:ncpus=0", "free", parted(Request(1, 1, 1, 1))),
        ("2:ncpus=12", "free", parted(*[Request(12, 1, one_host=True)] * 2)),
        (
            "1:ncpus=1+2:ncpus=2", "vscatter",
            parted(Request(1, 1, 1, 1), Request(4, 1, 2, 2), apart="nodes"),
        ),
        (
            "1:ncpus=1+2:ncpus=2", "excl",
            parted(
                Request(1, 1, exclusive=True), Request(4, 1, processors_per_chunk=2, exclusive=True),
                apart="nodes",
            ),
        ),
        (
            "1:ncpus=1:arch=linux+1:ncpus=1:arch=aix", "free",
            parted(Request(1, 1, features=("arch=linux",)), Request(1, 1, features=("arch=aix",))),
        ),
        ("1:ncpus=1+2:ncpus=8", "pack:excl", Request(17, 600, exclusive=True)),
        (
            "1:ncpus=1+2:ncpus=8", "pack:exclhost",
            Request(4, 600, 4, 1, required_nodes=ALL_FOUR, exclusive=True),
        ),
        ("1:ncpus=2:arch=linux", "free", Request(2, 600, 1, 2, features=("arch=linux",))),
        ("1:ncpus=2:vnode=pbshost[1]", "free", Request(2, 600, 1, 2, required_nodes=("pbshost[1]",))),
        ("1:ncpus=2:host=gone", "free", Request(2, 600, 1, 2, required_nodes=("gone",))),
        (
            "1:ncpus=2:vnode=pbshost[1]+1:ncpus=2:vnode=pbshost[0]", "free",
            parted(
                Request(2, 1, 1, 2, required_nodes=("pbshost[1]",)),
                Request(2, 1, 1, 2, required_nodes=("pbshost[0]",)),
            ),
        ),
        ("2:ncpus=2:vnode=pbshost[1]", "free", Request(4, 600, 1, 4, required_nodes=("pbshost[1]",))),
        ("2:ncpus=2:host=pbshost", "free", Request(4, 600, processors_per_chunk=2)),
    ],
)  # fmt: skip
def test_what_a_job_asks_for(chunks: str, place: str, request_: Request) -> None:
    found = one(select=chunks, place=place)
    assert found.job.request == request_
    assert not found.job.held


def test_more_chunks_than_there_are_processors_are_not_counted_out() -> None:
    found = one(select="100000:ncpus=1:mem=1gb")
    assert found.job.held
    assert found.reason.endswith("more chunks than there are processors")
    assert detail(select="100000:ncpus=1:mem=1gb").chunks == ()


def test_a_host_of_several_vnodes_is_all_of_them_and_no_other() -> None:
    two = nodes({"offers": {"host": "h"}}, {"offers": {"host": "h"}}, {})
    found = read({"1.s": job(select="2:ncpus=2:host=h")}, nodes=two)
    assert only(found).job.request.excluded_nodes == ("c",)
    assert found.details["1.s"].homes == {0: frozenset("ab"), 1: frozenset("ab")}


def test_resources_that_are_counted_and_those_that_no_vnode_has() -> None:
    notes: set[str] = set()
    gpus = nodes({"offers": {"ngpus": 4, "scratch": "1tb"}}, {})
    assert gpus.nodes["a"].gres == (("ngpus", 4), ("scratch", 1 << 40))
    found = only(read({"1.s": job(select="2:ncpus=1:ngpus=2:vmem=4gb")}, nodes=gpus, notes=notes))
    assert found.job.request == Request(2, 600, gres_per_chunk=(("ngpus", 2),))
    assert notes == {"no vnode offers the resource 'vmem': the resource is ignored"}


def test_a_vnode_that_has_what_is_not_wanted_is_left_out() -> None:
    mixed = nodes({"offers": {"big": "True"}}, {"offers": {"big": "False"}}, {})
    assert only(read({"1.s": job(select="1:ncpus=1:big=False")}, nodes=mixed)).job.request.excluded_nodes == (
        "a",
    )
    assert only(read({"1.s": job(select="1:ncpus=1:big=True")}, nodes=mixed)).job.request.features == (
        "big=True",
    )


def test_what_the_writer_needs() -> None:
    found = detail(select="1:ncpus=1+1:ncpus=4:mem=1gb", place="scatter:exclhost")
    assert found.chunks == (select.Chunk(1), select.Chunk(4, GB))
    assert (found.whole, found.whole_hosts, found.letter, found.managed) == (True, True, "Q", True)


def test_vnodes_that_are_given_whole_make_every_job_exclusive() -> None:
    for sharing, place, whole in [
        ("force_excl", "free:shared", True), ("default_excl", "free", True),
        ("default_exclhost", "free:shared", False), ("default_shared", "free", False),
    ]:  # fmt: skip
        found = read({"1.s": job(place=place)}, nodes=nodes({"sharing": sharing}, {"sharing": sharing}))
        assert found.details["1.s"].whole is whole


@pytest.mark.parametrize(
    ("queue", "resources", "walltime"),
    [
        (cluster.Queue("workq", 7200.0, 3600.0), {"walltime": "00:10:00"}, 600),
        (cluster.Queue("workq", 7200.0, 3600.0), {"walltime": None}, 3600),
        (cluster.Queue("workq", 7200.0), {"walltime": None}, 7200),
        (cluster.Queue("workq"), {"walltime": None}, 365 * DAY),
    ],
)
def test_a_job_without_a_limit(queue: cluster.Queue, resources: dict[str, Any], walltime: float) -> None:
    records = {"1.s": documents.JobRecord(job_state="Q", queue="workq")}
    records["1.s"].Resource_List = {"select": "1:ncpus=1", **resources}
    found = reader.read_jobs(records, NOW, SITE, {"workq": queue}, NODES, set())
    assert only(found).job.request.walltime == walltime


@pytest.mark.parametrize("words", [frozenset(), frozenset({"saves-itself"})])
def test_an_attribute_that_the_configuration_names_can_be_said(words: frozenset[str]) -> None:
    said = job(Variable_List={"HEADWAY": "saves-itself"})
    found = read({"1.pbshost": said}, site=replace(SITE, words=words))
    expected = {"saves-itself": True} if words else {"comment": "saves-itself"}
    assert only(found).job.attributes == expected


@pytest.mark.parametrize(
    ("said", "attributes"),
    [
        ("malleable", {"malleable": True}), ("", None),
        ("scopred:app=ft;N=3", {"comment": "scopred:app=ft;N=3"}),
        ("dedicated", {"requested_start": T0 - 148}),
        ("dedicated+malleable", {"requested_start": T0 - 148, "malleable": True}),
        ("job=film7+stage=2+reward=10", {"window": {"job": "film7", "stage": 2, "reward": 10.0}}),
        ("moldable=2+malleable", {"moldable": 2, "malleable": True}),
        ("scopred:job=3;stage=1", {"comment": "scopred:job=3;stage=1"}),
        ("dedline=5:bytes=1e6", {"security": {"bytes": 1e6}, "unread": ["dedline=5"]}),
    ],
)  # fmt: skip
def test_what_a_user_says_in_the_variable_headway(said: str, attributes: dict[str, Any] | None) -> None:
    assert one(Variable_List={"PBS_O_HOME": "/", "HEADWAY": said}).job.attributes == attributes


def test_a_dedicated_job_is_due_at_its_begin_time_also_when_pbs_has_forgotten_it() -> None:
    waiting = {"Variable_List": {"HEADWAY": "dedicated"}}
    begin = "Sat Nov 21 08:33:00 2026"
    first = one(job_state="W", Execution_Time=begin, **waiting)
    assert first.job.begin_time == 1795249980.0
    assert first.job.attributes == {"requested_start": 1795249980.0}
    assert one(etime=begin, **waiting).job.attributes == {"requested_start": 1795249980.0}


@pytest.mark.parametrize("letter", ["R", "S", "E", "F"])
def test_what_a_user_said_counts_as_long_as_the_job_is_there(letter: str) -> None:
    said = {"Variable_List": {"HEADWAY": "malleable"}, "exec_vnode": "(pbshost[0]:ncpus=1)"}
    assert one(job_state=letter, **said).job.attributes == {"malleable": True}


def test_times_in_another_zone() -> None:
    site = cluster.Site(managed=("workq",), zone=3600.0)
    assert only(read({"1.s": job()}, site=site)).job.submit_time == T0 - 148 - 3600


# ---------------------------------------------------------------------- arrays


def array(elements: int, **fields: Any) -> dict[str, dict[str, Any]]:
    parent = job(job_state=fields.pop("job_state", "B"), array="True", **fields)
    return {"5[].s": parent, **{f"5[{at}].s": job() for at in range(1, elements + 1)}}


def test_each_element_is_a_job_and_the_array_is_none() -> None:
    found = read(array(3))
    assert list(found.jobs) == ["5[1].s", "5[2].s", "5[3].s"]
    described = found.jobs["5[2].s"].job
    assert (described.array_id, described.array_index) == ("5[].s", 2)


def test_elements_beyond_the_limit_are_not_looked_at() -> None:
    site = cluster.Site(managed=("workq",), array_limit=2)
    assert list(read(array(5), site=site).jobs) == ["5[1].s", "5[2].s"]


@pytest.mark.parametrize(
    ("fields", "held_by"),
    [
        ({"job_state": "H", "Hold_Types": "u"}, "user"),
        ({"job_state": "H", "Hold_Types": "s"}, "administrator"),
        ({}, ""),
    ],
)  # fmt: skip
def test_elements_wait_as_their_array_does(fields: dict[str, Any], held_by: str) -> None:
    assert {found.held_by for found in read(array(2, **fields)).jobs.values()} == {held_by}


def test_elements_begin_when_their_array_does() -> None:
    found = read(array(1, job_state="W", Execution_Time="Sat Nov 21 08:33:00 2026"))
    assert found.jobs["5[1].s"].job.begin_time == 1795249980.0


def test_an_array_that_runs_few_elements_at_a_time() -> None:
    jobs = array(4, max_run_subjobs=2)
    jobs["5[1].s"].update(job_state="R", exec_vnode="(pbshost[0]:ncpus=1)")
    held = [key for key, found in read(jobs).jobs.items() if found.job.held]
    assert held == ["5[3].s", "5[4].s"]


# ---------------------------------------------------------------------- vnodes, queues, pools


@pytest.mark.parametrize(
    ("fields", "available", "reason"),
    [
        ({"state": "free"}, True, ""), ({"state": "job-busy"}, True, ""),
        ({"state": "job-exclusive", "resources_assigned": {"ncpus": 2}}, True, ""),
        ({"state": "job-exclusive"}, False, "a job on another vnode has the whole host"),
        ({"state": "offline", "comment": "disk"}, False, "offline; disk"),
        ({"state": "down,offline"}, False, "down; offline"), ({"state": "busy"}, False, "overloaded"),
        ({"state": "free,sparkling"}, False, "sparkling"),
        ({"state": ""}, False, "PBS does not say its state"),
        ({"state": "resv-exclusive"}, False, "reserved"),
    ],
)  # fmt: skip
def test_vnodes_and_why_they_take_no_jobs(fields: dict[str, Any], available: bool, reason: str) -> None:
    found = nodes(fields).nodes["a"]
    assert (found.available, found.reason) == (available, reason)


def test_power_as_far_as_pbs_says() -> None:
    found = nodes({"state": "sleep"}, {"state": "offline"}, {"state": "free"})
    assert found.power == {"a": "asleep"}


def test_which_vnodes_serve_which_queue() -> None:
    queues = cluster.read_queues(
        {
            "any": {"queue_type": "Execution", "started": "True"},
            "own": {"queue_type": "Execution", "started": "True"},
            "fast": {"queue_type": "Execution", "default_chunk": {"Qlist": "fast", "ncpus": 1}},
            "in": {"queue_type": "Route"},
            "R7": {"queue_type": "Execution"},
        }
    )
    assert sorted(queues) == ["R7", "any", "fast", "own"]
    records = {
        "a": documents.NodeRecord(state="free", resources_available={"ncpus": 4, "Qlist": "fast,slow"}),
        "b": documents.NodeRecord(state="free", resources_available={"ncpus": 4}, queue="own"),
        "c": documents.NodeRecord(state="free", resources_available={"ncpus": 4}, resv="R7.s, R8.s"),
        "d": documents.NodeRecord(state="free", resources_available={}),
    }
    found = cluster.read_nodes(records, queues, set())
    assert {name: node.pools for name, node in found.nodes.items()} == {
        "a": ("any", "fast"), "b": ("own",), "c": ("any", "R7"),
    }  # fmt: skip
    pools = cluster.pools(queues, found, cluster.Site(("fast",)))
    assert {name: pool.open for name, pool in pools.items()} == {"any": False, "fast": True}
    # A reservation's queue shares its vnodes with those that are there without it.
    pools = cluster.pools(queues, found, cluster.Site(("any",)))
    assert {name: pool.open for name, pool in pools.items()} == {"any": True, "fast": False, "R7": False}


def test_limits_of_queues() -> None:
    described = {"queue_type": "Execution", "resources_max": {"walltime": "24:00:00"}}
    queue = cluster.read_queues({"q": {**described, "resources_default": {"walltime": "01:00:00"}}})["q"]
    assert (queue.max_walltime, queue.default_walltime, queue.open) == (DAY, 3600.0, True)


def test_a_torque_cluster() -> None:
    from test_pbs_documents import TORQUE_JOBS, TORQUE_NODES

    queues = {"batch": cluster.Queue("batch")}
    found = cluster.read_nodes(torque.nodes(TORQUE_NODES), queues, set())
    assert found.nodes["n1"] == NodeDescription("n1", 4, 8 * GB, (), ("ib", "fast"), ("batch",))
    assert found.nodes["n2"].gres == (("gpus", 2),)
    assert found.nodes["n2"].reason == "down; offline; disk"
    site = cluster.Site(managed=("batch",))
    jobs = reader.read_jobs(torque.jobs(TORQUE_JOBS), NOW, site, queues, found, set())
    running = jobs.jobs["7.head"]
    assert (running.placement, running.start_time) == ((("n1", 4), ("n2", 4)), T0)
    assert jobs.jobs["8[2].head"].job.request == Request(1, 365 * DAY, nodes=1, processors_per_node=1)


def test_torques_ways_to_ask() -> None:
    def asked(**resources: str) -> Request:
        record = documents.JobRecord(job_state="Q", queue="workq", Resource_List=resources)
        return only(reader.read_jobs({"1.s": record}, NOW, SITE, QUEUES, nodes({}, {}), set())).job.request

    assert asked(nodes="2:ppn=4:ib", walltime="60") == Request(8, 60, 2, 4, features=("ib",))
    assert asked(procs="6", walltime="60") == Request(6, 60)
    assert asked(ncpus="2", mem="2gb", walltime="60") == Request(2, 60, 1, 2, memory_per_processor=GB)


# ---------------------------------------------------------------------- anything at all

DIGITS = st.integers(1, 5000).map(lambda count: "9" * count)
#: What anybody may write after ``qsub -l``.
ASKED = st.one_of(
    st.text(), DIGITS, DIGITS.map(lambda count: f"{count}.5gb"),
    st.tuples(
        st.sampled_from(["1:ncpus=", "9:mem=", "ncpus=1:scratch=", "2:ppn=", "7:ncpus=1:mem=8191tb+ncpus="]),
        DIGITS | st.sampled_from(["1", "8pb", "99999999999.9eb"]),
    ).map("".join),
)  # fmt: skip
ANYTHING = st.one_of(
    st.none(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(), ASKED,
    st.dictionaries(st.sampled_from(["ncpus", "select", "place", "walltime", "nodes", "mem"]), ASKED),
)  # fmt: skip
FIELDS = [name for name in documents.JobRecord.__struct_fields__ if name != "Variable_List"]


@given(
    st.dictionaries(st.sampled_from(FIELDS), ANYTHING),
    st.sampled_from(["Q", "H", "W", "T", "R", "S", "E", "F", "X", "M", "B", "?"]),
    st.sampled_from(["1.s", "5[1].s"]),
)
def test_no_job_makes_the_reader_fail_or_hides_another(
    fields: dict[str, Any], letter: str, job_id: str
) -> None:
    records = {
        "5[].s": documents.JobRecord(**fields),
        job_id: documents.JobRecord(**{**fields, "job_state": letter}),
        "2.s": documents.JobRecord(job_state="Q", queue="workq", schedselect="1:ncpus=2"),
    }
    found = reader.read_jobs(records, NOW, SITE, QUEUES, NODES, set())
    assert found.jobs["2.s"].job.request.processors == 2
    assert all(job.job.request.processors >= 1 for job in found.jobs.values())
    # The journal can write all of it down: no number has more than 64 bits.
    assert msgspec.json.encode([job.job for job in found.jobs.values()])


@given(st.dictionaries(st.sampled_from(documents.NodeRecord.__struct_fields__), ANYTHING))
def test_no_vnode_makes_the_reader_fail(fields: dict[str, Any]) -> None:
    cluster.read_nodes({"a": documents.NodeRecord(**fields)}, QUEUES, set())


@pytest.mark.parametrize(("letter", "leaves"), [("R", False), ("S", False), ("E", True), ("F", False)])
def test_a_job_that_exits_is_over_and_has_its_vnodes(letter: str, leaves: bool) -> None:
    job = one(job_state=letter, exec_vnode="(pbshost[0]:ncpus=1)")
    assert job.leaving is leaves
    assert job.placement


@pytest.mark.parametrize("name", ["qstat_full_json", "qstat_full_json_subjobs", "qstat_history_json"])
def test_the_place_of_a_job_in_the_listing_counts_for_nothing(name: str) -> None:
    """At a first look, such as after a restart, subjobs of begun arrays stand elsewhere than before."""
    records = recorded_jobs(name)
    found = reader.read_jobs(records, NOW, SITE, QUEUES, NODES, set()).jobs
    mixed = dict(random.Random(1).sample(list(records.items()), len(records)))
    again = reader.read_jobs(mixed, NOW, SITE, QUEUES, NODES, set()).jobs
    assert again == found and found
    assert list(diff(None, Snapshot(NOW, again))) == list(diff(None, Snapshot(NOW, found)))
