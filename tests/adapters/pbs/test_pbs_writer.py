"""Decisions as PBS's commands; nothing that users or plugins wrote becomes more than an argument."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import decisions as d
from headway.model import Reservation
from headway_adapters.pbs import writer
from headway_adapters.pbs.client import only_reads
from headway_adapters.pbs.reader import Detail
from headway_adapters.pbs.select import Chunk

MB = 1 << 20
HOSTS = {"h[0]": "h", "h[1]": "h", "g[0]": "g"}
PROCESSORS = dict.fromkeys(HOSTS, 8)
RESERVATION = Reservation("r1", start=1795246380.0, end=1795248180.0, nodes=("h[0]", "g[0]"), users=("bob",))


def start(placement: Any, *chunks: Chunk, torque: bool = False, **fields: Any) -> tuple[str, ...]:
    decision = d.Start(fields.pop("job_id", "1.s"), placement)
    return writer.start(decision, Detail("Q", chunks, **fields), torque=torque)


@pytest.mark.parametrize(
    ("placement", "chunks", "where"),
    [
        ((("h[0]", 4), ("h[1]", 4)), [Chunk(4)] * 2, "(h[0]:ncpus=4)+(h[1]:ncpus=4)"),
        ((("h[0]", 8),), [Chunk(4, 512 * MB)] * 2, "(h[0]:ncpus=4:mem=524288kb)+(h[0]:ncpus=4:mem=524288kb)"),
        ((("h[0]", 8), ("g[0]", 8)), [Chunk(1), Chunk(8)], "(g[0]:ncpus=1)+(h[0]:ncpus=8)"),
        ((("h[0]", 2),), [Chunk(2, 1, (("ngpus", 1),))], "(h[0]:ncpus=2:mem=1kb:ngpus=1)"),
    ],
)
def test_a_start_has_a_parenthesis_for_each_chunk_in_its_order(
    placement: Any, chunks: list[Chunk], where: str
) -> None:
    assert start(placement, *chunks) == ("qrun", "-H", where, "1.s")


def test_a_whole_vnode_gets_the_chunk_that_was_asked_for() -> None:
    assert start((("h[0]", 8),), Chunk(2), whole=True)[2] == "(h[0]:ncpus=2)"


def test_torque_takes_hosts() -> None:
    assert start((("n1", 4), ("n2", 2)), Chunk(2), Chunk(2), Chunk(2), torque=True) == (
        "qrun", "-H", "n1:ppn=4+n2:ppn=2", "1.s",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("placement", "chunks", "says"),
    [
        ((), [Chunk(1)], "must name vnodes"), ((("a", 1), ("a", 1)), [Chunk(1)] * 2, "named twice"),
        ((("a", 1),), [], "not known"), ((("a", 1),), [Chunk(4)], "has no vnode"),
        ((("a)+(b", 1),), [Chunk(1)], "not the name of a vnode"),
        ((("-H", 1),), [Chunk(1)], "not the name of a vnode"),
        ((("a", 1),), [Chunk(1, 0, (("x)+(y", 1),))], "not the name of a resource"),
    ],
)  # fmt: skip
def test_a_start_that_cannot_be_written(placement: Any, chunks: list[Chunk], says: str) -> None:
    with pytest.raises(writer.Unfit, match=re.escape(says)):
        start(placement, *chunks)


@pytest.mark.parametrize(
    ("decision", "argv"),
    [
        (d.Hold("1.s"), "qhold -h s 1.s"), (d.Release("1.s"), "qrls -h s 1.s"),
        (d.Kill("3[2].s"), "qdel 3[2].s"), (d.Cancel("1"), "qdel 1"), (d.Requeue("1.s"), "qrerun 1.s"),
        (d.Suspend("1.s"), "qsig -s admin-suspend 1.s"), (d.Resume("1.s"), "qsig -s admin-resume 1.s"),
        (d.SetTimeLimit("1.s", 5400.5), "qalter -l walltime=01:30:01 1.s"),
        (d.Resize("1.s", 16, (("h[0]", 8), ("h[1]", 8))), "pbs_release_nodes -j 1.s g[0]"),
        (d.Unreserve("r1"), "pbs_rdel R5.s"), (d.Route("1.s", "long"), "qmove long 1.s"),
    ],
)  # fmt: skip
def test_every_other_decision(decision: d.Decision, argv: str) -> None:
    plan = writer.plan(decision, now=0.0, running_on=HAS, hosts=HOSTS, reservation="R5.s")
    assert [" ".join(step) for step in plan.steps] == [argv]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "headway-protect:a=B-1,c=D"),
        ("headway-protect:x headway-z:1", "headway-protect:a=B-1,c=D headway-z:1"),
    ],
)
def test_a_note_is_written_into_a_resource_of_its_own(before: str, after: str) -> None:
    made = writer.plan(d.Annotate("1.s", "protect", "a=B-1,c=D"), now=0.0, notes=before)
    assert made.steps == (("qalter", "-l", f'headway_notes="{after}"', "1.s"),)


@given(st.text(), st.text(), st.text())
def test_a_note_ends_no_quotes(key: str, value: str, before: str) -> None:
    try:
        ((_, _, written, _),) = writer.plan(d.Annotate("1.s", key, value), now=0.0, notes=before).steps
    except writer.Unfit:
        return
    assert re.fullmatch(r'headway_notes="[A-Za-z0-9_.,:;=@\[\]/+ -]*"', written)


@pytest.mark.parametrize(
    "route",
    [d.Route("1[2].s", "long"), d.Route("1.s", "long@there"), d.Route("1.s", "-x"), d.Route("x", "long")],
)
def test_a_route_that_cannot_be_written(route: d.Route) -> None:
    with pytest.raises(writer.Unfit):
        writer.plan(route, now=0.0)


def test_a_job_is_moved_into_the_queue_of_a_reservation_and_back() -> None:
    def plan(decision: d.Bind, reservation: str = "", *, waits: bool = True) -> str:
        pending = Detail("Q") if waits else None
        made = writer.plan(decision, now=0.0, reservation=reservation, pending=pending)
        return " ".join(made.steps[0])

    assert plan(d.Bind("7.s", "r1"), "R5.s") == "qmove R5 7.s"
    assert plan(d.Bind("7.s", "", pool="batch")) == "qmove batch 7.s"
    for wrong in (d.Bind("7.s", "r1"), d.Bind("7.s", ""), d.Bind("7.s", "", pool="-a"), d.Bind("-f", "")):
        with pytest.raises(writer.Unfit):
            plan(wrong)
    with pytest.raises(writer.Unfit, match="no longer waits"):
        plan(d.Bind("7.s", "r1"), "R5.s", waits=False)


def test_torque_suspends_in_its_own_way() -> None:
    assert writer.plan(d.Suspend("1.s"), now=0, torque=True).steps == (("qsig", "-s", "suspend", "1.s"),)
    assert writer.plan(d.Resume("1.s"), now=0, torque=True).steps == (("qsig", "-s", "resume", "1.s"),)


def test_hosts_are_taken_out_of_service_and_put_back() -> None:
    assert writer.offline("h", "headway: asleep") == ("pbsnodes", "-C", "headway: asleep", "-o", "h")
    assert writer.online("h") == ("pbsnodes", "-C", "", "-r", "h")
    assert writer.offline("h", "x", torque=True) == ("pbsnodes", "-N", "x", "-o", "h")
    with pytest.raises(writer.Unfit):
        writer.offline("-a", "x")


def test_reservations_are_made_moved_and_refused() -> None:
    def plan(reservation: Reservation, existing: str = "") -> str:
        made = writer.plan(d.Reserve(reservation), now=100.0, processors=PROCESSORS, reservation=existing)
        return " ".join(made.steps[0])

    times = "-R 202611210733.00 -E 202611210803.00"
    waits = "-I -10"
    chunks = "1:vnode=h[0]:ncpus=8+1:vnode=g[0]:ncpus=8"
    assert plan(RESERVATION) == (
        f"pbs_rsub -N headway_r1 {times} {waits} -l select={chunks} -l place=excl -U bob"
    )
    assert plan(RESERVATION, "R5.s") == f"pbs_ralter -I 10 {times} R5.s"
    for wrong in (
        Reservation("r1", 0, 50, nodes=("h[0]",)), Reservation("r1", 0, 500),
        Reservation("r 1", 0, 500, nodes=("h[0]",)), Reservation("r1", 0, 500, nodes=("gone",)),
        Reservation("r1", 0, 500, nodes=("h[0]",), users=("-x",)),
    ):  # fmt: skip
        with pytest.raises(writer.Unfit):
            plan(wrong)
    with pytest.raises(writer.Unfit, match="no reservation of that name"):
        writer.plan(d.Unreserve("r9"), now=0)


#: What a running job has.
HAS = (("h[0]", 8), ("h[1]", 8), ("g[0]", 8))


@pytest.mark.parametrize(
    ("placement", "says"),
    [
        ((("h[0]", 8), ("h[1]", 4)), r"it cannot keep 4 of its 8 processors on h\[1\]"),
        ((("h[0]", 4), ("h[1]", 8), ("g[0]", 8)), "whole vnodes"),
        ((), "whole vnodes"), ((("h[0]", 8), ("h[1]", 8), ("g[0]", 8)), "whole vnodes"),
        ((("other", 8),), "whole vnodes"), ((("g[0]", 8),), "its script runs on that host"),
        ((("h[0]", 8), ("g[0]", 8)), "its script runs on that host"),
    ],
)  # fmt: skip
def test_what_a_running_job_cannot_give_back(placement: Any, says: str) -> None:
    with pytest.raises(writer.Unfit, match=says):
        writer.plan(d.Resize("1.s", 8, placement), now=0, running_on=HAS, hosts=HOSTS)


@pytest.mark.parametrize("decision", [d.Migrate("1.s"), d.Checkpoint("1.s"), d.SetFrequency("1.s", 2e9)])
def test_what_pbs_has_no_command_for(decision: d.Decision) -> None:
    with pytest.raises(writer.Unfit, match="cannot be carried out on PBS"):
        writer.plan(decision, now=0)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e12])
def test_what_is_no_limit(seconds: float) -> None:
    with pytest.raises(writer.Unfit):
        writer.walltime(seconds)


SAFE = re.compile(r"[A-Za-z0-9._\[\]#^:=+() -]*")


@given(st.text(), st.text(), st.text())
def test_nothing_but_checked_names_becomes_an_argument(job_id: str, node: str, resource: str) -> None:
    chunk = Chunk(1, 0, ((resource, 1),))
    decisions: list[d.Decision] = [d.Kill(job_id), d.Hold(job_id), d.SetTimeLimit(job_id, 60)]
    plans = [lambda one=one: writer.plan(one, now=0).steps for one in decisions]
    plans.append(lambda: (start(((node, 1),), chunk, job_id=job_id),))
    plans.append(lambda: (writer.offline(node, "headway: asleep"),))
    for plan in plans:
        try:
            steps = plan()
        except writer.Unfit:
            continue
        for argv in steps:
            assert argv[0] in ("qdel", "qhold", "qalter", "pbsnodes", "qrun")
            assert all(SAFE.fullmatch(word) for word in argv)
            assert not argv[-1].startswith("-")


@pytest.mark.parametrize(
    ("argv", "reads"),
    [
        (("qstat", "-t", "-f", "-F", "json"), True), (("pbsnodes", "-av", "-F", "json"), True),
        (("pbsnodes", "-x"), True), (("pbs_rstat", "-F"), True), (("qrun", "--version"), True),
        (("pbsnodes", "-o", "h"), False), (("pbsnodes", "h"), False), (("pbsnodes",), False),
        (("qrun", "--version", "1"), False), (("qmgr", "-c", "list server"), False), (("qdel", "1"), False),
    ],
)  # fmt: skip
def test_what_counts_as_reading(argv: tuple[str, ...], reads: bool) -> None:
    assert only_reads(argv) is reads


# ---------------------------------------------------------------------- the size of a job that waits


@pytest.mark.parametrize(
    ("select", "size", "written"),
    [
        ("8:ncpus=1", 3, "3:ncpus=1"), ("1:ncpus=1:mem=2gb:mpiprocs=1", 4, "4:ncpus=1:mem=2gb:mpiprocs=1"),
        ("ncpus=1", 2, "2:ncpus=1"), ("5", 6, "6:ncpus=1"),
        ("2:ncpus=1:kind=a-1+1:ncpus=1:kind=a-1", 1, "1:ncpus=1:kind=a-1"),
    ],
)  # fmt: skip
def test_a_job_that_waits_gets_another_number_of_chunks(select: str, size: int, written: str) -> None:
    plan = writer.plan(d.Resize("1.s", size), now=0.0, pending=Detail(letter="Q", select=select))
    assert plan.steps == (("qalter", "-l", f"select={written}", "1.s"),)


@pytest.mark.parametrize(
    ("select", "size", "says"),
    [
        ("2:ncpus=4", 2, "more than one processor"), ("1:ncpus=1+1:ncpus=1:mem=1gb", 2, "several kinds"),
        ('2:ncpus=1:kind="a b"', 2, "not plain words"), ("", 2, "with a select of its own"),
        ("2:ncpus=1", 0, "0 is no number of processors"), ("2:ncpus=x", 3, "is no number of processors"),
    ],
)  # fmt: skip
def test_a_size_that_cannot_be_changed_alone(select: str, size: int, says: str) -> None:
    with pytest.raises(writer.Unfit, match=re.escape(says)):
        writer.plan(d.Resize("1.s", size), now=0.0, pending=Detail(letter="Q", select=select))
