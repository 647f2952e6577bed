"""LSF's records as a snapshot."""

from __future__ import annotations

import random
from typing import Any

import pytest
from recorded_lsf import NOW, at, output

from headway.events import JobSubmitted
from headway.model import Dependency, NodeDescription, PoolDescription, Request, Reservation
from headway_adapters.lsf import cluster_listing, hosts, listing, reader
from headway_adapters.lsf.cluster_listing import Booking, HostState, Queue
from headway_adapters.lsf.detail import Detail
from headway_adapters.lsf.listing import Ending, Facts, Row
from headway_adapters.lsf.reader import Site
from headway_adapters.lsf.resreq import Host
from headway_adapters.lsf.values import Calendar
from headway_adapters.polling.differ import diff
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob

MIB = 1 << 20
YEAR = 365 * 86400.0
LOCAL = "select[type == local] order[r15s:pg]"
HOSTS = {name: Host(name, "X86_64", "M", 4, 8 << 30, 0, frozenset({"mg"})) for name in ("h1", "h2", "h3")}
STATES = {name: HostState(name, "ok", 4, 0) for name in HOSTS}
SITE = Site(("normal", "short"))
QUEUES = {
    "normal": Queue("normal", "Open:Inact_Adm"),
    "short": Queue("short", "Open:Inact_Adm", ("h1", "h2"), 600.0, 3600.0),
    "other": Queue("other", "Open:Active", ("h3",)),
}


def read(
    rows: list[Row],
    facts: dict[str, Facts],
    *,
    now: float = NOW,
    before: Snapshot | None = None,
    notes: set[str] | None = None,
    site: Site = SITE,
    groups: dict[str, tuple[str, ...]] | None = None,
) -> reader.Jobs:
    noted = set() if notes is None else notes
    nodes = hosts.read_nodes(STATES, QUEUES, HOSTS, groups or {}, noted)
    return reader.read_jobs(
        {row.job_id: row for row in rows}, facts, now, site, QUEUES, nodes, HOSTS, groups or {}, noted, before
    )


def row(job_id: str = "5", stat: str = "PEND", queue: str = "normal", **more: Any) -> Row:
    return Row(
        job_id, "alice", stat, queue, **{"name": "x", "submitted": at(6, 38), "from_host": "h1", **more}
    )


def facts(**more: Any) -> Facts:
    return Facts(**{"least": 1, "most": 1, **more})


def pending(told: Facts | None = None, **more: Any) -> tuple[SnapshotJob, Detail]:
    found = read([row(**more)], {"5": facts() if told is None else told})
    return found.jobs["5"], found.details["5"]


# ---------------------------------------------------------------------- the recorded cluster


@pytest.fixture(scope="module")
def recorded() -> reader.Jobs:
    times, notes = Calendar(NOW), set[str]()
    static = hosts.static_hosts(output("lshosts"))
    queues = cluster_listing.read_queues(output("bqueues_long"))
    nodes = hosts.read_nodes(cluster_listing.read_hosts(output("bhosts_wide")), queues, static, {}, notes)
    found = reader.read_jobs(
        listing.read_wide_rows(output("bjobs_all_wide"), times, notes),
        listing.read_long(output("bjobs_UF"), times, notes),
        NOW, Site(("normal",), fills=True), queues, nodes, static, {}, notes,
    )  # fmt: skip
    assert notes == set()
    return found


def test_the_recorded_host_and_queue() -> None:
    static = hosts.static_hosts(output("lshosts"))
    queues = cluster_listing.read_queues(output("bqueues_long"))
    found = hosts.read_nodes(cluster_listing.read_hosts(output("bhosts_wide")), queues, static, {}, set())
    assert found.nodes == {
        "lsfhost": NodeDescription(
            "lsfhost", processors=2, memory=24105 * MIB, pools=("normal",), available=True
        )
    }
    assert found.used == {"lsfhost": 2} and found.members == {"normal": ("lsfhost",)}
    assert hosts.pool(queues["normal"], managed=True) == PoolDescription("normal", priority_tier=30)


def test_the_recorded_jobs(recorded: reader.Jobs) -> None:
    states = {job_id: (job.state, job.outcome) for job_id, job in recorded.jobs.items()}
    assert states == {
        "7": ("running", ""), "10[1]": ("suspended", ""), "6": ("pending", ""), "4[3]": ("pending", ""),
        "1": ("pending", ""), "8": ("pending", ""), "9": ("pending", ""), "11": ("pending", ""),
        "10[2]": ("pending", ""), "10[3]": ("pending", ""), "5": ("ended", "completed"),
        "2": ("ended", "failed"), "4[2]": ("ended", "completed"), "4[1]": ("ended", "completed"),
        "13": ("ended", "failed"), "12": ("ended", "completed"), "3": ("ended", "completed"),
    }  # fmt: skip
    held = {job_id for job_id, job in recorded.jobs.items() if job.job.held}
    assert held == {"9"} and recorded.jobs["9"].held_by == "user"


def test_a_recorded_pending_job(recorded: reader.Jobs) -> None:
    job = recorded.jobs["8"]
    assert (job.job.name, job.job.user, job.job.pool) == ("pend two", "alice", "normal")
    assert job.job.submit_time == at(6, 38, 58)
    assert job.job.request == Request(2, 3900.0, nodes=1, memory_per_node=10 * MIB)
    assert recorded.details["8"] == Detail(held=False, least=2, most=2)


def test_recorded_jobs_that_wait_for_something(recorded: reader.Jobs) -> None:
    assert recorded.jobs["11"].job.dependencies == (Dependency("completed", "7"),)
    assert "is not met" in recorded.details["11"].waits
    assert recorded.jobs["6"].job.begin_time == at(23, 50)
    assert not recorded.details["6"].waits
    assert recorded.details["9"].held


def test_a_recorded_running_job(recorded: reader.Jobs) -> None:
    job = recorded.jobs["7"]
    assert (job.placement, job.start_time) == ((("lsfhost", 1),), at(6, 38, 58))
    assert job.job.request == Request(1, 600.0, nodes=1)
    element = recorded.jobs["10[1]"].job
    assert (element.array_id, element.array_index) == ("10", 1)


# ---------------------------------------------------------------------- requests


@pytest.mark.parametrize(
    ("told", "queue", "walltime"),
    [
        (facts(run_limit=60.0), "short", 60.0),
        (facts(), "short", 600.0),
        (facts(), "normal", YEAR),
    ],
)
def test_the_estimate(told: Facts, queue: str, walltime: float) -> None:
    assert pending(told, queue=queue)[0].job.request.walltime == walltime


def test_a_queue_with_a_largest_limit_only() -> None:
    queue = Queue("normal", "Open:Inact_Adm", limit=7200.0)
    assert hosts.pool(queue, managed=True).max_walltime == 7200.0


@pytest.mark.parametrize(
    ("requirement", "least", "request_"),
    [
        ("span[hosts=1]", 3, {"nodes": 1}),
        ("span[ptile=2]", 4, {"processors_per_node": 2}),
        ("span[ptile=8]", 4, {"nodes": 1}),
        ("span[ptile=3]", 4, {}),
        ("select[mg] rusage[mem=1G]", 1, {"features": ("mg",), "memory_per_node": 1 << 30}),
        ("select[hname!=h2]", 1, {"excluded_nodes": ("h2",)}),
    ],
)
def test_requirements(requirement: str, least: int, request_: dict[str, Any]) -> None:
    told = facts(requirement=requirement, least=least, most=least)
    assert pending(told)[0].job.request == Request(least, YEAR, **request_)


def test_hosts_asked_for_leave_the_others_out() -> None:
    groups = {"g1": ("h2", "h3")}
    found = read([row()], {"5": facts(asked_hosts=("h1", "g1+2"))}, groups=groups)
    assert found.jobs["5"].job.request.excluded_nodes == ()
    found = read([row()], {"5": facts(asked_hosts=("h2+1",))})
    assert found.jobs["5"].job.request.excluded_nodes == ("h1", "h3")


def test_from_so_many_to_so_many_slots() -> None:
    job, detail = pending(facts(least=2, most=6))
    assert job.job.request.processors == 2 and job.job.attributes == {"most_processors": 6}
    assert (detail.least, detail.most) == (2, 6)


@pytest.mark.parametrize(
    ("least", "requirement", "shape"),
    [
        (1, "", {}),
        (3, "", {"nodes": 1}),
        (4, "", {"nodes": 1}),
        (8, "", {"processors_per_node": 4}),
        (6, "", {}),
        (8, "span[ptile=4]", {"processors_per_node": 4}),
        (3, "span[hosts=1]", {"nodes": 1}),
    ],
)
def test_where_brun_cannot_say_the_slots_jobs_get_one_host_or_whole_ones(
    least: int, requirement: str, shape: dict[str, int]
) -> None:
    told = facts(least=least, most=least, requirement=requirement)
    found = read([row()], {"5": told}, site=Site(("normal",), fills=True))
    assert found.jobs["5"].job.request == Request(least, YEAR, **shape)


@pytest.mark.parametrize(
    ("least", "most", "requirement", "request_"),
    [
        (2, 6, "", Request(4, YEAR, nodes=1)),
        (5, 12, "", Request(8, YEAR, nodes=2, processors_per_node=4)),
        (1, 4, "span[hosts=1]", Request(4, YEAR, nodes=1)),
        (2, 3, "", Request(3, YEAR, nodes=1)),
        (2, 6, "span[hosts=1]", Request(4, YEAR, nodes=1)),
        (5, 7, "", Request(7, YEAR)),
        (5, 7, "span[hosts=1]", Request(5, YEAR, nodes=1)),
        (2, 6, "span[ptile=2]", Request(2, YEAR, nodes=1)),
    ],
)
def test_where_brun_cannot_say_the_slots_a_range_is_planned_as_what_brun_gives(
    least: int, most: int, requirement: str, request_: Request
) -> None:
    """All that the hosts have: four slots each."""
    told = facts(least=least, most=most, requirement=requirement)
    found = read([row()], {"5": told}, site=Site(("normal",), fills=True))
    assert found.jobs["5"].job.request == request_
    assert (found.details["5"].least, found.details["5"].most) == (least, most)


def test_where_brun_cannot_say_the_slots_a_tile_that_is_no_whole_host_is_left_alone() -> None:
    told = facts(least=4, most=4, requirement="span[ptile=2]")
    found = read([row()], {"5": told}, site=Site(("normal",), fills=True))
    assert found.jobs["5"].job.held
    assert found.jobs["5"].reason == "this LSF's brun cannot give 2 slots on each of several hosts"


@pytest.mark.parametrize(
    ("description", "attributes"),
    [
        ("headway:dedicated", {"requested_start": at(8, 0)}),
        ("headway:dedicated,malleable", {"requested_start": at(8, 0), "malleable": True}),
        ("headway:malleable", {"malleable": True}),
        ("dedicated", {"comment": "dedicated"}),
        ("headway:moldable", {"moldable": True}),
        ("headway:job=film7,stage=2,length=x", {"window": {"job": "film7", "stage": 2, "length": "x"}}),
        ("headway:malleable scopred:app=ft;N=3", {"malleable": True, "comment": "scopred:app=ft;N=3"}),
        ("", None),
    ],
)
def test_the_job_description_marks_dedicated_and_malleable_jobs(
    description: str, attributes: dict[str, Any] | None
) -> None:
    assert pending(facts(begin=at(8, 0), description=description))[0].job.attributes == attributes


@pytest.mark.parametrize("words", [frozenset(), frozenset({"saves-itself"})])
def test_an_attribute_that_the_configuration_names_can_be_said(words: frozenset[str]) -> None:
    told = facts(description="headway:malleable,saves-itself")
    found = read([row()], {"5": told}, site=Site(("normal",), words=words))
    attributes = found.jobs["5"].job.attributes
    assert attributes is not None and attributes["malleable"]
    assert attributes.get("saves-itself", False) is bool(words)


def test_an_exclusive_job_and_a_reservation() -> None:
    job, _ = pending(facts(exclusive=True, reservation="headway_r1"))
    assert job.job.request.exclusive and job.job.reservation == "r1"
    assert pending(facts(reservation="user1#0"))[0].job.reservation == "user1#0"


# ---------------------------------------------------------------------- who may start


@pytest.mark.parametrize(
    ("stat", "queue", "told", "held_by", "reason"),
    [
        ("PEND", "normal", facts(), "", ""),
        ("PSUSP", "normal", facts(), "user", "held (PSUSP); bresume releases it"),
        ("FWD_PEND", "normal", facts(), "system", "its state is FWD_PEND"),
        ("PEND", "other", facts(), "system", "queue other is not headway's"),
        ("PEND", "normal", facts(requirement="{a} || {b}"), "system", "cannot be expressed"),
        ("PEND", "normal", facts(dependency="done(99)"), "system", "cannot be judged"),
        (
            "PEND",
            "normal",
            facts(doubtful=True),
            "system",
            "LSF's listings contradict each other about the job",
        ),
    ],
)
def test_who_holds_a_job(stat: str, queue: str, told: Facts, held_by: str, reason: str) -> None:
    job, _ = pending(told, stat=stat, queue=queue)
    assert (job.held_by, job.job.held) == (held_by, bool(held_by))
    assert reason in job.reason


def test_dependencies_on_jobs_of_the_listing() -> None:
    found = read(
        [row(), row("6", "RUN", hosts=(("h1", 1),), name="first"), row("7", "DONE", name="done")],
        {"5": facts(dependency='done("first") && done(7)'), "6": facts(), "7": facts()},
    )
    assert found.jobs["5"].job.dependencies == (Dependency("completed", "6"),)
    assert not found.jobs["5"].job.held


def test_begin_times_count_while_they_lie_ahead() -> None:
    assert pending(facts(begin=NOW + 60))[0].job.begin_time == NOW + 60
    job, detail = pending(facts(begin=NOW - 60))
    assert job.job.begin_time is None and detail.waits == ""


def test_a_job_without_details_is_left_for_the_next_look() -> None:
    assert read([row()], {}).jobs == {}
    known, _ = pending()
    before = Snapshot(NOW - 2, {"5": known})
    again = read([row()], {}, before=before)
    assert again.jobs == {"5": known} and again.details == {}


def test_a_doubtful_job_stays_as_it_was() -> None:
    known, _ = pending()
    before = Snapshot(NOW - 2, {"5": known})
    found = read([row(stat="DONE", doubtful=True)], {"5": facts()}, before=before)
    assert found.jobs == {"5": known}
    assert read([row(stat="RUN", doubtful=True)], {"5": facts()}).jobs == {}


def test_unknown_states_are_tolerated_and_noted() -> None:
    notes: set[str] = set()
    found = read(
        [row("5", "DREAM"), row("6", "DREAM", hosts=(("h1", 1),))], {"5": facts(), "6": facts()}, notes=notes
    )
    assert (found.jobs["5"].state, found.jobs["6"].state) == ("pending", "running")
    assert found.jobs["5"].job.held
    assert notes == {"unknown job state 'DREAM'; headway does not touch such a job"}


@pytest.mark.parametrize(
    ("stat", "state"),
    [
        ("RUN", "running"), ("UNKWN", "running"), ("ZOMBI", "running"), ("USUSP", "suspended"),
        ("SSUSP", "suspended"), ("PROV", "starting"), ("WAIT", "starting"),
    ],
)  # fmt: skip
def test_states_on_hosts(stat: str, state: str) -> None:
    found = read([row(stat=stat, hosts=(("h1", 2),), started=at(6, 39))], {"5": facts(exclusive=True)})
    job = found.jobs["5"]
    assert (job.state, job.placement, job.start_time) == (state, (("h1", 2),), at(6, 39))
    assert job.job.request == Request(2, YEAR, nodes=1, exclusive=True)


# ---------------------------------------------------------------------- ends


@pytest.mark.parametrize(
    ("stat", "told", "hosts", "outcome", "code"),
    [
        ("DONE", facts(), True, "completed", 0),
        ("EXIT", facts(exit_code=3), True, "failed", 3),
        ("EXIT", facts(exit_code=130), True, "cancelled", 130),
        ("EXIT", facts(exit_code=143), True, "cancelled", 143),
        ("EXIT", facts(exit_code=130, run_limit=60.0), True, "timed out", 130),
        ("EXIT", facts(), True, "failed", None),
        ("EXIT", facts(), False, "cancelled", None),
        ("EXIT", facts(exit_reason="TERM_RUNLIMIT: job killed", exit_code=140), True, "timed out", 140),
        ("EXIT", facts(exit_reason="TERM_OWNER: job killed by owner", exit_code=130), True, "cancelled", 130),
        ("EXIT", facts(exit_reason="TERM_PREEMPT: x"), True, "preempted", None),
        ("EXIT", facts(exit_reason="TERM_ZOMBI: x"), True, "node failure", None),
        ("EXIT", facts(exit_reason="TERM_MEMLIMIT: x", exit_code=130), True, "failed", 130),
    ],
)  # fmt: skip
def test_how_jobs_end(stat: str, told: Facts, hosts: bool, outcome: str, code: int | None) -> None:
    ended = row(
        stat=stat, hosts=(("h1", 1),) if hosts else (), started=at(6, 37) if hosts else None, ended=at(6, 38)
    )
    job = read([ended], {"5": told}).jobs["5"]
    assert (job.state, job.outcome, job.exit_code) == ("ended", outcome, code)
    assert job.end_time == at(6, 38) and job.start_time == (at(6, 37) if hosts else None)


def test_an_end_from_the_history() -> None:
    known = read([row(stat="RUN", hosts=(("h1", 1),), started=at(6, 38))], {"5": facts()}).jobs["5"]
    ending = Ending("ended", False, 9, "", at(6, 38), at(6, 39), (("h1", 1),))
    ended = reader.ended_job(known, ending, NOW)
    assert (ended.state, ended.outcome, ended.exit_code, ended.end_time) == ("ended", "failed", 9, at(6, 39))
    never, _ = pending()
    ended = reader.ended_job(never, Ending("ended"), NOW)
    assert (ended.outcome, ended.placement, ended.end_time) == ("cancelled", (), NOW)


def test_whole_minutes_get_their_seconds_from_our_looks() -> None:
    submitted = row("5", submitted=at(6, 39))
    first = read([submitted], {"5": facts()}, before=Snapshot(at(6, 39, 4), {}))
    assert first.jobs["5"].job.submit_time == at(6, 39, 4)
    second = read([submitted], {"5": facts()}, before=Snapshot(at(6, 39, 8), first.jobs))
    assert second.jobs["5"].job.submit_time == at(6, 39, 4)
    running = row("5", "RUN", hosts=(("h1", 1),), submitted=at(6, 39), started=at(6, 39))
    third = read([running], {"5": facts()}, before=Snapshot(at(6, 39, 8), second.jobs))
    assert third.jobs["5"].start_time == at(6, 39, 8)
    fourth = read([running], {"5": facts()}, before=Snapshot(at(6, 39, 9), third.jobs))
    assert fourth.jobs["5"].start_time == at(6, 39, 8)
    # A start of another minute is another start; one that we did not see coming is taken as written.
    again = row("5", "RUN", hosts=(("h1", 1),), started=at(6, 41))
    assert read([again], {"5": facts()}, before=Snapshot(NOW, fourth.jobs)).jobs["5"].start_time == at(6, 41)
    assert read([running], {"5": facts()}).jobs["5"].start_time == at(6, 39)


@pytest.mark.parametrize(
    ("ran", "began"),
    [
        (80.0, at(6, 39, 40)), (119.0, at(6, 39, 1)),
        # It is within that minute, whatever was counted: LSF does not count while a job is suspended.
        (500.0, at(6, 39)), (5.0, at(6, 39, 59)),
    ],
)  # fmt: skip
def test_whole_minutes_get_their_seconds_from_how_long_the_job_has_run(ran: float, began: float) -> None:
    """`headway explain` sees each job for the first time, and foresees its end to the second."""
    running = row("5", "RUN", hosts=(("h1", 1),), submitted=at(6, 39), started=at(6, 39), ran=ran)
    first = read([running], {"5": facts()}, now=at(6, 41))
    assert first.jobs["5"].start_time == began
    again = read([running], {"5": facts()}, now=at(6, 41, 7), before=Snapshot(at(6, 41), first.jobs))
    assert again.jobs["5"].start_time == began


# ---------------------------------------------------------------------- hosts and pools


@pytest.mark.parametrize(
    ("status", "available", "reason"),
    [
        ("ok", True, ""), ("closed_Full", True, ""), ("closed_Excl", True, ""),
        ("closed_Adm", False, "closed by the administrator: disk"),
        ("closed_Busy", False, "over its load threshold: disk"),
        ("unavail", False, "its daemons do not run: disk"), ("unreach", False, "not reachable: disk"),
        ("closed_Moon", False, "closed_Moon: disk"),
    ],
)  # fmt: skip
def test_which_hosts_take_jobs(status: str, available: bool, reason: str) -> None:
    notes: set[str] = set()
    states = {"h1": HostState("h1", status, 0, 0, "disk")}
    node = hosts.read_nodes(states, QUEUES, HOSTS, {}, notes).nodes["h1"]
    assert (node.available, node.reason) == (available, reason)
    # Without a limit of slots it has as many as CPUs.
    assert node.processors == 4
    assert bool(notes) == (status == "closed_Moon")


@pytest.mark.parametrize(("power", "reason"), [(True, ""), (False, "in power saving: disk")])
def test_a_sleeping_host_is_in_order_where_headway_may_wake_it(power: bool, reason: str) -> None:
    states = {"h1": HostState("h1", "closed_Power", 0, 0, "disk")}
    found = hosts.read_nodes(states, QUEUES, HOSTS, {}, set(), power=power)
    assert (found.nodes["h1"].available, found.nodes["h1"].reason) == (power, reason)
    assert found.power == {"h1": "asleep"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("all",), ("h1", "h2", "h3")),
        (("h1", "h3+2"), ("h1", "h3")),
        (("g1/",), ("h2", "h3")),
        (("g1", "h1"), ("h2", "h3", "h1")),
        (("all", "~h2"), ("h1", "h3")),
        (("all", "~g1/"), ("h1",)),
        (("h1!", "others"), ("h1", "h2", "h3")),
        (("none",), ()),
        (("h9",), ()),
    ],
)
def test_the_hosts_of_a_queue(words: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert hosts.members(Queue("q", hosts=words), ("h1", "h2", "h3"), {"g1": ("h2", "h3")}) == expected


def test_a_pool_is_closed_while_its_run_window_is_or_when_it_is_not_ours() -> None:
    assert hosts.pool(Queue("q", "Open:Inact_Adm"), managed=True).open
    assert not hosts.pool(Queue("q", "Open:Inact_Win"), managed=True).open
    assert not hosts.pool(Queue("q", "Open:Active"), managed=False).open


def test_reservations() -> None:
    nodes = hosts.read_nodes(STATES, QUEUES, HOSTS, {}, set()).nodes
    bookings = {
        name: Booking(name, kind, owner, hosts, 100.0, 200.0)
        for name, kind, owner, hosts in [
            ("headway_7", "user", "alice", ("h1", "h2")), ("weekly#1", "group", "staff", ("h3", "gone")),
            ("m#0", "sys", "-", ("h1",)), ("x#0", "user", "bob", ("gone",)),
        ]
    }  # fmt: skip
    assert hosts.read_reservations(bookings, nodes) == {
        "7": Reservation("7", 100.0, 200.0, nodes=("h1", "h2"), users=("alice",), ours=True),
        "weekly#1": Reservation("weekly#1", 100.0, 200.0, nodes=("h3",), accounts=("staff",), reason="group"),
        "m#0": Reservation("m#0", 100.0, 200.0, nodes=("h1",), reason="sys"),
    }


@pytest.mark.parametrize("seed", range(3))
def test_the_place_of_a_job_in_the_listing_counts_for_nothing(seed: int) -> None:
    """At a first look, such as after a restart, elements of begun arrays stand elsewhere than before."""
    names = ["5", "12[3]", "12[10]", "13", "100[1]"]
    rows = [row(name) for name in names]
    told = {name: facts() for name in names}
    found, again = read(rows, told).jobs, read(random.Random(seed).sample(rows, len(rows)), told).jobs
    assert again == found
    assert list(diff(None, Snapshot(NOW, again))) == list(diff(None, Snapshot(NOW, found)))
    assert [
        event.job.id for event in diff(None, Snapshot(NOW, again)) if isinstance(event, JobSubmitted)
    ] == names
