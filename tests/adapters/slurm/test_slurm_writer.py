"""Decisions as argument vectors."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import decisions as d
from headway.model import Reservation
from headway_adapters.slurm import marker, writer
from headway_adapters.slurm.client import only_reads
from headway_adapters.slurm.reader import Detail

NOW = 1795244660.0
HELD = Detail(held=True)
TWO = (("n2", 4), ("n1", 2))


def steps(decision: d.Decision, **known: object) -> list[str]:
    plan = writer.plan(decision, now=NOW, **known)  # type: ignore[arg-type]
    return [" ".join(argv) for argv in plan.steps]


def test_a_start_pins_and_then_releases() -> None:
    plan = writer.start(d.Start("7", TWO), HELD, "batch")
    update, release = plan.steps
    assert update[:5] == ("scontrol", "update", "JobId=7", "ReqNodeList=n[1-2]", "NumNodes=2-2")
    assert release == ("scontrol", "release", "7")
    (comment,) = [word for word in update if word.startswith("AdminComment=")]
    expected = marker.Pin(nodes=("n1", "n2"), placement=(("n1", 2), ("n2", 4)))
    assert marker.parse(comment.partition("=")[2]) == expected


def test_a_start_writes_no_comment_over_somebody_elses() -> None:
    foreign = Detail(held=True, comment_free=False)
    assert not any("AdminComment" in w for w in writer.start(d.Start("7", TWO), foreign, "batch").steps[0])


def test_a_start_chooses_one_of_several_partitions_and_writes_the_list_down() -> None:
    many = Detail(held=True, listed=("fg", "batch"))
    plan = writer.start(d.Start("7", TWO), many, "batch")
    assert "Partition=batch" in plan.steps[0]
    (comment,) = [word for word in plan.steps[0] if word.startswith("AdminComment=")]
    told = marker.parse(comment.removeprefix("AdminComment="))
    assert plan.pin is not None and told is not None
    assert plan.pin.listed == told.listed == ("fg", "batch")


def test_a_start_that_does_not_happen_gives_the_list_back() -> None:
    pin = writer.start(d.Start("7", TWO), Detail(held=True, listed=("fg", "batch")), "batch").pin
    assert pin is not None
    assert "Partition=fg,batch" in writer.restore("7", pin, mark=True)
    without = writer.restore("7", marker.Pin(("n1",)), mark=True)
    assert not any(word.startswith("Partition=") for word in without)


def test_a_list_with_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(writer.Unfit, match="partition"):
        writer.start(d.Start("7", TWO), Detail(held=True, listed=("-a", "batch")), "batch")


def test_a_start_without_the_nodes_that_the_user_named_is_refused() -> None:
    with pytest.raises(writer.Unfit, match="n9"):
        writer.start(d.Start("7", TWO), Detail(held=True, node_list=("n9", "n1")), "batch")


@pytest.mark.parametrize("placement", [(), (("n1", 1), ("n1", 1)), (("-n1", 1),), (("n1,n2", 1),)])
def test_a_start_must_name_each_node_once(placement: tuple[tuple[str, int], ...]) -> None:
    with pytest.raises(writer.Unfit):
        writer.start(d.Start("7", placement), HELD, "batch")


def test_a_dedicated_job_starts_inside_its_own_reservation_and_leaves_it_if_it_does_not_start() -> None:
    plan = writer.start(d.Start("7_3", TWO), HELD, "batch", reserved=True)
    assert "ReservationName=headway_job_7_3" in plan.steps[0]
    (comment,) = [word for word in plan.steps[0] if word.startswith("AdminComment=")]
    pin = marker.parse(comment.partition("=")[2])
    assert plan.pin is not None and pin is not None and pin.reserved and plan.pin.reserved
    assert "ReservationName=" in writer.restore("7_3", plan.pin, mark=True)
    users = writer.start(d.Start("7_3", TWO), HELD, "batch")
    assert users.pin is not None
    assert not any(
        "Reservation" in word for word in (*users.steps[0], *writer.restore("7_3", users.pin, mark=True))
    )


def test_what_is_restored_is_what_the_user_asked_for() -> None:
    pin = marker.Pin(nodes=("n1", "n2"), asked=("n2",), least=1, most=4)
    argv = writer.restore("7", pin, mark=True)
    assert argv[2:] == ("JobId=7", "ReqNodeList=n2", "NumNodes=1-4", "AdminComment=headway:held")
    forgotten = writer.restore("7", marker.Pin(nodes=("n1",)), mark=True)
    assert "ReqNodeList=" in forgotten and not any("NumNodes" in word for word in forgotten)


@pytest.mark.parametrize(
    ("decision", "commands"),
    [
        (d.Kill("7"), ["scancel 7"]),
        (d.Cancel("7_3"), ["scancel 7_3"]),
        (d.Suspend("7"), ["scontrol suspend 7"]),
        (d.Resume("7"), ["scontrol resume 7"]),
        (d.Requeue("7"), ["scontrol update JobId=7 Priority=0", "scontrol requeue 7"]),
        (d.Hold("7"), ["scontrol update JobId=7 Priority=0 AdminComment=hold: by headway"]),
        (d.Release("7"), ["scontrol update JobId=7 Priority=0 AdminComment=headway:held"]),
        (d.SetTimeLimit("7", 3600.0), ["scontrol update JobId=7 TimeLimit=60"]),
        (d.SetTimeLimit("7", 3601.0), ["scontrol update JobId=7 TimeLimit=61"]),
        (d.SetTimeLimit("7", 5.0), ["scontrol update JobId=7 TimeLimit=1"]),
        (
            d.Annotate("7", "protect", "a=B-1,c=D"),
            ["scontrol update JobId=7 Comment=headway-protect:a=B-1,c=D"],
        ),
        (d.Route("7_3", "long"), ["scontrol update JobId=7_3 Partition=long"]),
        (d.Unreserve("exam"), ["scontrol delete ReservationName=headway_exam"]),
        (d.Bind("7", "exam"), ["scontrol update JobId=7 ReservationName=exam"]),
        (d.Bind("7", ""), ["scontrol update JobId=7 ReservationName="]),
        (d.PowerDown(("n1", "n2")), ["scontrol update NodeName=n[1-2] State=POWER_DOWN"]),
        (d.PowerUp(("n1",)), ["scontrol update NodeName=n1 State=POWER_UP"]),
    ],
)
def test_decisions(decision: d.Decision, commands: list[str]) -> None:
    assert steps(decision) == commands


def test_a_job_is_bound_to_a_reservation_of_headways_or_of_another_maker() -> None:
    (command,) = steps(d.Bind("7", "exam"), reservation_exists=True)
    assert command == "scontrol update JobId=7 ReservationName=headway_exam"


def test_a_reservation_is_made_and_changed() -> None:
    exam = Reservation("exam", NOW + 3600, NOW + 7200, nodes=("n1", "n2"), users=("ann",), accounts=("phys",))
    when = "StartTime=2026-11-21T08:04:20 EndTime=2026-11-21T09:04:20"
    rest = f"{when} Nodes=n[1-2] Users=ann Accounts=phys"
    assert steps(d.Reserve(exam)) == [f"scontrol create reservation ReservationName=headway_exam {rest}"]
    changed = steps(d.Reserve(exam), reservation_exists=True)
    assert changed == [f"scontrol update ReservationName=headway_exam {rest}"]


def test_a_reservation_for_a_job_does_not_end_the_job() -> None:
    own = Reservation("job_7", NOW + 3600, NOW + 7200, nodes=("n1",), users=("ann",), ours=True)
    assert steps(d.Reserve(own))[0].endswith("Users=ann Flags=FLEX")
    assert "FLEX" not in steps(d.Reserve(own), reservation_exists=True)[0]


@pytest.mark.parametrize(
    "decision",
    [
        d.Reserve(Reservation("exam", NOW, NOW + 60)),
        d.Reserve(Reservation("exam", NOW - 60, NOW - 30, nodes=("n1",))),
        d.SetTimeLimit("7", float("nan")),
        d.SetTimeLimit("7", -1.0),
        d.PowerDown(()),
        d.Annotate("7", "", "x"),
        d.Annotate("7", "Two words", "x"),
        d.Annotate("7", "protect", ""),
        d.Annotate("7", "protect", "two words"),
        d.Checkpoint("7"),
        d.Resize("7", 8),
        d.Route("7", "two partitions"),
        d.Route("7", "a,b"),
        d.Route("7", ""),
    ],
)
def test_what_slurm_cannot_do_is_refused(decision: d.Decision) -> None:
    with pytest.raises(writer.Unfit):
        steps(decision)


def test_a_waiting_job_gets_another_size() -> None:
    assert steps(d.Resize("7", 2), waits=True) == ["scontrol update JobId=7 NumCPUs=2-2 NumTasks=2"]
    with pytest.raises(writer.Unfit, match="no number of processors"):
        steps(d.Resize("7", 0), waits=True)


def test_shrinking_keeps_the_node_of_the_script() -> None:
    nodes = ("n1", "n2", "n3")
    shrunk = steps(d.Resize("7", 2, (("n1", 2),)), running_nodes=nodes)
    assert shrunk == ["scontrol update JobId=7 NodeList=n1"]
    with pytest.raises(writer.Unfit, match="script"):
        steps(d.Resize("7", 2, (("n2", 2),)), running_nodes=nodes)
    with pytest.raises(writer.Unfit):
        steps(d.Resize("7", 2, (("n1", 2), ("n4", 2))), running_nodes=nodes)


NASTY = st.text(alphabet=st.sampled_from("-a1_n[],=; \n\t'\"$`*/.\0é%@"), max_size=12)
ANY = NASTY | st.text(max_size=6)
SAFE_VALUE = re.compile(r"[A-Za-z0-9_.,:;=@\[\]/ -]*", re.ASCII)


@st.composite
def anything(draw: st.DrawFn) -> d.Decision:
    """A decision with text in it that somebody hostile chose."""
    job, node, other = draw(ANY), draw(ANY), draw(ANY)
    reservation = Reservation(
        draw(ANY), NOW, NOW + 60, nodes=(node, "n1"), users=(other,), accounts=(draw(ANY),)
    )
    return draw(
        st.sampled_from(
            [
                d.Kill(job), d.Suspend(job), d.Requeue(job), d.Hold(job), d.Release(job),
                d.SetTimeLimit(job, 60.0), d.Reserve(reservation), d.Unreserve(job),
                d.Annotate(job, node, other), d.Annotate("7", "protect", other),
                d.Route(job, other), d.Route("7", other),
                d.PowerDown((node,)), d.Start("7", ((node, 1), (other, 2))), d.Start(job, (("n1", 1),)),
            ]
        )
    )  # fmt: skip


@given(anything())
def test_no_text_from_outside_becomes_an_option_or_more_than_its_value(decision: d.Decision) -> None:
    try:
        if isinstance(decision, d.Start):
            plan = writer.start(decision, HELD, "batch")
        else:
            plan = writer.plan(decision, now=NOW)
    except writer.Unfit:
        return
    for argv in plan.steps:
        assert argv[0] in ("scontrol", "scancel")
        assert not only_reads(argv)
        for word in argv[1:]:
            assert not word.startswith("-")
            assert SAFE_VALUE.fullmatch(word), word


@pytest.mark.parametrize(
    ("comment", "written"),
    [
        ("scopred:app=x;N=2", "scopred:app=x;N=2 headway-protect:a=b"),
        (
            "my own words headway-protect:old headway-took:1",
            "my own words headway-protect:a=b headway-took:1",
        ),
        # The submit filter's word is looked for at the end.
        ("x headway:released", "x headway-protect:a=b headway:released"),
        ("headway:released", "headway-protect:a=b headway:released"),
        ("x headway:user-hold", "x headway-protect:a=b headway:user-hold"),
        # No shell reads it, and Slurm takes it as it is.
        ('it\'s "my" $(x) `y` \\ é;|&', 'it\'s "my" $(x) `y` \\ é;|& headway-protect:a=b'),
    ],
)
def test_a_note_stands_behind_what_the_user_wrote(comment: str, written: str) -> None:
    plan = writer.plan(d.Annotate("7", "protect", "a=b"), now=NOW, comment=comment)
    (argv,) = plan.steps
    assert argv[-1] == f"Comment={written}"


def test_a_note_behind_a_long_comment_can_be_written_again():
    comment = "x" * 1000
    for value in ("a=b", "a=c"):
        note = d.Annotate("7", "protect", value)
        comment = writer.plan(note, now=NOW, comment=comment).noted
    assert comment == "x" * 1000 + " headway-protect:a=c"


@pytest.mark.parametrize("comment", ["a\nb", "a\tb", "a\x1b[2J", "a\udce9", "a\ufffd", "x" * 1001])
def test_a_comment_that_could_come_out_otherwise_is_left_alone(comment: str) -> None:
    with pytest.raises(writer.Unfit, match=r"be written again|can rewrite at most"):
        writer.plan(d.Annotate("7", "protect", "a=b"), now=NOW, comment=comment)
